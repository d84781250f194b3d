// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/image.h"

#include "control/ring/build.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct writer {
	const struct document *document;
	const struct rings *rings;
	enum image_shares shares;
	unsigned char *memory;
	struct snapshot_header *header;
	uint8_t *states; // enum snapshot_backend_state, by backend id
};

static uint64_t align_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

static uint32_t ids_count(const struct document *document, enum document_kind kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < document->id_count; i++) {
		const struct document_id *id = &document->ids[i];

		if (id->kind == kind && id->freed_s == 0 && id->id >= count)
			count = id->id + 1;
	}
	return count;
}

static uint32_t bindings_count(const struct config_pools *pools)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pools->service_count; i++)
		count += pools->services[i].port_count > 0 ? pools->services[i].port_count : 1;
	return count;
}

static struct snapshot_section section_place(uint64_t *at, uint32_t count, uint32_t stride)
{
	struct snapshot_section section = {.offset = *at, .count = count, .stride = stride};

	*at = align_up(*at + (uint64_t)count * stride, SNAPSHOT_ALIGN);
	return section;
}

// The header with every section's place; the rings follow the last section.
static struct snapshot_header header_plan(
	const struct document *document, const struct rings *rings)
{
	uint64_t at = sizeof(struct snapshot_header);
	struct snapshot_header header = {
		.magic = SNAPSHOT_MAGIC,
		.format = SNAPSHOT_FORMAT,
		.header_bytes = sizeof(header),
		.generation = document->snapshot_generation,
		.unknown = (uint8_t)document->pools->unknown,
	};

	memcpy(header.id_space, document->id_space, sizeof(header.id_space));
	memcpy(header.hash_seed, document->hash_seed, sizeof(header.hash_seed));
	header.bindings = section_place(
		&at, bindings_count(document->pools), sizeof(struct snapshot_binding));
	header.services = section_place(
		&at, ids_count(document, DOCUMENT_SERVICE), sizeof(struct snapshot_service));
	header.pools = section_place(
		&at, ids_count(document, DOCUMENT_POOL), sizeof(struct snapshot_pool));
	header.backends = section_place(
		&at, ids_count(document, DOCUMENT_BACKEND), sizeof(struct snapshot_backend));
	header.rings = section_place(&at, rings->count, sizeof(struct snapshot_ring));
	header.bytes = at + rings->bytes;
	return header;
}

static uint32_t id_of(
	const struct writer *w, enum document_kind kind, const char *pool, const char *name)
{
	// document_ids_assign() has given one to everything that the configuration names.
	return document_id_find(w->document, kind, pool, name)->id;
}

static void bindings_write(struct writer *w)
{
	struct snapshot_binding *binding = (void *)(w->memory + w->header->bindings.offset);

	for (uint32_t i = 0; i < w->document->pools->service_count; i++) {
		const struct config_service *service = &w->document->pools->services[i];
		uint32_t id = id_of(w, DOCUMENT_SERVICE, "", service->name);
		uint32_t count = service->port_count > 0 ? service->port_count : 1;

		for (uint32_t p = 0; p < count; p++, binding++) {
			uint32_t port = service->port_count > 0 ? service->ports[p] : 0;

			binding->address = service->address.address;
			binding->prefix_bits = (uint8_t)service->address.bits;
			binding->protocol = (uint8_t)service->protocol;
			binding->port_be = htons((uint16_t)port);
			binding->service = id;
		}
	}
}

static void service_write(struct writer *w, uint32_t position)
{
	const struct config_service *from = &w->document->pools->services[position];
	struct snapshot_service *services = (void *)(w->memory + w->header->services.offset);
	struct snapshot_service *to = &services[id_of(w, DOCUMENT_SERVICE, "", from->name)];

	to->flags = SNAPSHOT_USED;
	if (from->state == CONFIG_STATE_NONE)
		to->flags |= SNAPSHOT_SERVICE_STATELESS;
	to->pool = id_of(w, DOCUMENT_POOL, "", from->pool);
	to->ring_old = w->rings->services[position].ring_old;
	to->ring_new = w->rings->services[position].ring_new;
	to->affinity = (uint8_t)from->affinity;
	to->tunnel = (uint8_t)from->tunnel.type;
	to->gue_port_be = htons((uint16_t)from->tunnel.port);
	to->source4 = from->tunnel.source4.address;
	to->source6 = from->tunnel.source6.address;
	to->source4_bits = (uint8_t)from->tunnel.source4.bits;
	to->source6_bits = (uint8_t)from->tunnel.source6.bits;
	to->idle_syn_s = (uint16_t)from->timeouts.syn_s;
	to->idle_established_s = (uint16_t)from->timeouts.established_s;
	to->idle_closing_s = (uint16_t)from->timeouts.closing_s;
	to->idle_udp_s = (uint16_t)from->timeouts.udp_s;
}

// An image with the share of its time never says that flows come back: a gate is set for that.
static uint64_t word_of(const struct document_cutover *cutover, enum image_shares shares)
{
	return shares == IMAGE_SHARES_NOW ? document_cutover_gate(cutover)
					  : gate_threshold(cutover->sent_share);
}

static void pools_write(struct writer *w)
{
	const struct config_pools *pools = w->document->pools;
	struct snapshot_pool *to = (void *)(w->memory + w->header->pools.offset);

	for (uint32_t i = 0; i < pools->pool_count; i++)
		to[id_of(w, DOCUMENT_POOL, "", pools->pools[i].name)].flags = SNAPSHOT_USED;
	for (uint32_t i = 0; i < w->document->cutover_count; i++) {
		const struct document_cutover *cutover = &w->document->cutovers[i];
		struct gate *gate = &to[id_of(w, DOCUMENT_POOL, "", cutover->pool)].gate;

		gate->salt = cutover->salt;
		gate->word = word_of(cutover, w->shares);
	}
}

static uint8_t state_of(enum config_backend_state state)
{
	switch (state) {
	case CONFIG_BACKEND_DRAIN:
		return SNAPSHOT_BACKEND_DRAIN;
	case CONFIG_BACKEND_DOWN:
		return SNAPSHOT_BACKEND_DOWN;
	default:
		return SNAPSHOT_BACKEND_UP;
	}
}

static void members_write(
	struct writer *w, const char *pool, const struct config_backend *backends, uint32_t count)
{
	struct snapshot_backend *to = (void *)(w->memory + w->header->backends.offset);
	uint32_t pool_id = id_of(w, DOCUMENT_POOL, "", pool);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t id = id_of(w, DOCUMENT_BACKEND, pool, backends[i].name);

		to[id].address = backends[i].address;
		to[id].pool = pool_id;
		to[id].state = state_of(backends[i].state);
		w->states[id] = to[id].state;
	}
}

// What a backend has in its pool counts more than what a cutover's copy of it says.
static void backends_write(struct writer *w)
{
	const struct config_pools *pools = w->document->pools;

	for (uint32_t i = 0; i < w->document->cutover_count; i++) {
		const struct document_cutover *cutover = &w->document->cutovers[i];

		members_write(w, cutover->pool, cutover->backends, cutover->backend_count);
	}
	for (uint32_t i = 0; i < pools->pool_count; i++)
		members_write(w, pools->pools[i].name, pools->pools[i].backends,
			pools->pools[i].backend_count);
}

static int ring_write(struct writer *w, const struct rings_image *image, uint64_t offset)
{
	uint64_t *usable = calloc((image->member_count + 63u) / 64 + 1, sizeof(*usable));

	if (usable == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < image->member_count; i++) {
		if (w->states[image->backends[i]] == SNAPSHOT_BACKEND_UP)
			usable[i / 64] |= UINT64_C(1) << (i % 64);
	}
	memcpy(w->memory + offset, image->bytes_at, image->bytes);
	ring_resolve(w->memory + offset, usable);
	free(usable);
	return 0;
}

static int rings_write(struct writer *w)
{
	struct snapshot_ring *slots = (void *)(w->memory + w->header->rings.offset);
	uint64_t at = w->header->bytes - w->rings->bytes;
	int rc = 0;

	for (uint32_t i = 0; i < w->rings->count && rc == 0; i++) {
		const struct rings_image *image = w->rings->items[i].image;

		slots[i].offset = at;
		slots[i].bytes = image->bytes;
		if (((const struct ring_header *)image->bytes_at)->seed_mark != 0)
			w->header->ring_seeds = 1;
		rc = ring_write(w, image, at);
		at += image->bytes;
	}
	return rc;
}

static int memory_fill(struct writer *w, const struct snapshot_header *header)
{
	int rc;

	w->header = (void *)w->memory;
	*w->header = *header;
	w->states = calloc((size_t)header->backends.count + 1, 1);
	if (w->states == NULL)
		return -ENOMEM;
	bindings_write(w);
	for (uint32_t i = 0; i < w->document->pools->service_count; i++)
		service_write(w, i);
	pools_write(w);
	backends_write(w);
	rc = rings_write(w);
	w->header->checksum = snapshot_checksum(w->memory, header->bytes);
	free(w->states);
	return rc;
}

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

// Writes through a shared mapping, takes it down, and seals: nobody can change the bytes afterwards.
static int memfd_write(struct writer *w, const struct snapshot_header *header, struct image *ret)
{
	int rc = 0;

	ret->fd = memfd_create("ringway-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ret->fd < 0 || ftruncate(ret->fd, (off_t)header->bytes) < 0)
		return -errno;
	w->memory = mmap(NULL, header->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
	if (w->memory == MAP_FAILED)
		return -errno;
	rc = memory_fill(w, header);
	munmap(w->memory, header->bytes);
	if (rc == 0 && fcntl(ret->fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	return rc;
}

static int image_view(struct image *image, char *error)
{
	struct snapshot_error why;

	image->memory = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, image->fd, 0);
	if (image->memory == MAP_FAILED) {
		image->memory = NULL;
		return -errno;
	}
	image->snapshot = malloc(sizeof(*image->snapshot));
	if (image->snapshot == NULL)
		return -ENOMEM;
	// The same check as the dataplane's, before anything is sent: what it would refuse is not committed.
	if (snapshot_open(image->memory, image->bytes, image->snapshot, &why) < 0) {
		snprintf(error, IMAGE_ERROR_BYTES, "%s", why.text);
		return -EINVAL;
	}
	return 0;
}

int image_write(const struct document *document, const struct rings *rings,
	enum image_shares shares, struct image *ret, char ret_error[static IMAGE_ERROR_BYTES])
{
	struct writer w = {.document = document, .rings = rings, .shares = shares};
	struct snapshot_header header = header_plan(document, rings);
	struct image image = {.fd = -1, .bytes = header.bytes};
	int rc = memfd_write(&w, &header, &image);

	if (rc == 0) {
		ret_error[0] = '\0';
		rc = image_view(&image, ret_error);
	}
	if (rc < 0) {
		if (rc != -EINVAL)
			snprintf(ret_error, IMAGE_ERROR_BYTES,
				"cannot make a snapshot of %llu bytes: %s",
				(unsigned long long)header.bytes, strerror(-rc));
		image_destroy(&image);
		return rc;
	}
	*ret = image;
	return 0;
}

uint64_t image_checksum(
	const struct image *image, const struct document *document, enum image_shares shares)
{
	struct snapshot *snapshot = image->snapshot;
	uint64_t *kept = calloc((size_t)snapshot->pool_count + 1, sizeof(*kept));
	uint64_t checksum;

	if (kept == NULL)
		return 0;
	for (uint32_t i = 0; i < snapshot->pool_count; i++)
		kept[i] = snapshot_gate(&snapshot->pools[i]);
	for (uint32_t i = 0; i < document->cutover_count; i++) {
		const struct document_cutover *cutover = &document->cutovers[i];
		uint32_t id = document_id_find(document, DOCUMENT_POOL, "", cutover->pool)->id;

		snapshot_gate_set(&snapshot->pools[id], word_of(cutover, shares));
	}
	checksum = snapshot_checksum(image->memory, image->bytes);
	for (uint32_t i = 0; i < snapshot->pool_count; i++)
		snapshot_gate_set(&snapshot->pools[i], kept[i]);
	free(kept);
	return checksum;
}

void image_destroy(struct image *image)
{
	free(image->snapshot);
	if (image->memory != NULL)
		munmap(image->memory, image->bytes);
	if (image->fd >= 0)
		close(image->fd);
	*image = (struct image){.fd = -1};
}
