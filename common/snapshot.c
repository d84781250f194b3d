// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot.h"

#include "common/flow.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SERVICE_FLAGS    (SNAPSHOT_USED | SNAPSHOT_SERVICE_STATELESS)
#define IDLE_SECONDS_MAX 7200u

// A ring without members belongs to every pool.
#define RING_POOL_ANY UINT32_MAX

// One opening: what is checked so far, and where to write why not.
struct opening {
	struct snapshot *snapshot;
	uint8_t *image;
	uint64_t taken; // end of the last section or ring image; the next one starts here or later
	uint32_t ring_pools[SNAPSHOT_RINGS_MAX]; // the pool that a ring's members are of
	struct snapshot_error *error;
};

// A section of the format: what it may hold, in the order in which the image has them.
struct section_rule {
	const char *name;
	size_t header_offset;
	uint32_t count_max;
	uint32_t stride;
};

static const struct section_rule section_rules[] = {
	{"bindings", offsetof(struct snapshot_header, bindings), SNAPSHOT_BINDINGS_MAX,
		sizeof(struct snapshot_binding)},
	{"services", offsetof(struct snapshot_header, services), SNAPSHOT_SERVICES_MAX,
		sizeof(struct snapshot_service)},
	{"pools", offsetof(struct snapshot_header, pools), SNAPSHOT_POOLS_MAX,
		sizeof(struct snapshot_pool)},
	{"backends", offsetof(struct snapshot_header, backends), SNAPSHOT_BACKENDS_MAX,
		sizeof(struct snapshot_backend)},
	{"rings", offsetof(struct snapshot_header, rings), SNAPSHOT_RINGS_MAX,
		sizeof(struct snapshot_ring)},
};

__attribute__((format(printf, 2, 3))) static int refuse(
	const struct opening *opening, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(opening->error->text, sizeof(opening->error->text), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static bool all_zero(const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint8_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum |= bytes[i];
	return sum == 0;
}

// Tells whether every bit of an address from bits on is zero.
static bool host_bits_clear(const struct ip_addr *addr, unsigned bits)
{
	size_t whole = bits / 8;

	if (bits % 8 != 0 && (addr->bytes[whole++] & (0xffu >> bits % 8)) != 0)
		return false;
	return all_zero(addr->bytes + whole, sizeof(addr->bytes) - whole);
}

// Tells whether an address is of a family, and canonical: nothing behind it.
static bool address_valid(const struct ip_addr *addr)
{
	if (!all_zero(addr->reserved, sizeof(addr->reserved)))
		return false;
	if (addr->family == ADDR_V4)
		return host_bits_clear(addr, 32);
	return addr->family == ADDR_V6;
}

static unsigned address_bits(const struct ip_addr *addr)
{
	return addr->family == ADDR_V4 ? 32 : 128;
}

uint64_t snapshot_checksum(const void *image, uint64_t bytes)
{
	const size_t field = offsetof(struct snapshot_header, checksum);
	const size_t behind = field + sizeof(uint64_t);
	uint64_t front = XXH3_64bits(image, field);

	return XXH3_64bits_withSeed((const uint8_t *)image + behind, (size_t)bytes - behind, front);
}

static int check_header(const struct opening *opening, uint64_t bytes)
{
	const struct snapshot_header *header = (const struct snapshot_header *)opening->image;
	uint64_t checksum;

	if (bytes < sizeof(*header)) {
		return refuse(opening, "image: %" PRIu64 " bytes, shorter than its header of %zu",
			bytes, sizeof(*header));
	}
	if (header->magic != SNAPSHOT_MAGIC)
		return refuse(opening, "header: magic is %016" PRIx64 ", not a snapshot image",
			header->magic);
	if (header->format != SNAPSHOT_FORMAT) {
		refuse(opening, "header: format %" PRIu32 ", this program reads format %" PRIu32,
			header->format, SNAPSHOT_FORMAT);
		return header->format > SNAPSHOT_FORMAT ? -ENOTSUP : -EINVAL;
	}
	if (header->header_bytes != sizeof(*header))
		return refuse(opening, "header: header_bytes is %" PRIu32 ", not %zu",
			header->header_bytes, sizeof(*header));
	if (header->bytes < sizeof(*header) || header->bytes > SNAPSHOT_BYTES_MAX)
		return refuse(opening, "header: bytes is %" PRIu64 ", out of range", header->bytes);
	if (header->bytes > bytes) {
		return refuse(opening, "image: cut, has %" PRIu64 " of its %" PRIu64 " bytes",
			bytes, header->bytes);
	}
	checksum = snapshot_checksum(header, header->bytes);
	if (checksum != header->checksum) {
		return refuse(opening,
			"header: checksum is %016" PRIx64 ", the bytes give %016" PRIx64,
			header->checksum, checksum);
	}
	if (header->generation == 0)
		return refuse(opening, "header: generation is 0, the first one is 1");
	if (header->unknown > SNAPSHOT_UNKNOWN_DROP)
		return refuse(opening, "header: unknown is %u, must be 0 or 1", header->unknown);
	if (header->ring_seeds > 1)
		return refuse(
			opening, "header: ring_seeds is %u, must be 0 or 1", header->ring_seeds);
	if (!all_zero(header->reserved, sizeof(header->reserved)) ||
		!all_zero(header->reserved2, sizeof(header->reserved2)))
		return refuse(opening, "header: reserved bytes are not zero");
	return 0;
}

// Takes the next part of the image: parts follow each other, so a gate that is written later lies in no other part.
static int take(struct opening *opening, const char *what, uint64_t offset, uint64_t length)
{
	const struct snapshot_header *header = (const struct snapshot_header *)opening->image;

	if (offset % SNAPSHOT_ALIGN != 0)
		return refuse(opening, "%s: offset %" PRIu64 " is no multiple of %u", what, offset,
			SNAPSHOT_ALIGN);
	if (offset < opening->taken) {
		return refuse(opening,
			"%s: offset %" PRIu64 " lies before %" PRIu64
			", the end of the part before it",
			what, offset, opening->taken);
	}
	if (offset > header->bytes || length > header->bytes - offset) {
		return refuse(opening,
			"%s: %" PRIu64 " bytes at offset %" PRIu64
			" reach beyond the image of %" PRIu64,
			what, length, offset, header->bytes);
	}
	opening->taken = offset + length;
	return 0;
}

static int check_sections(struct opening *opening)
{
	opening->taken = sizeof(struct snapshot_header);
	for (size_t i = 0; i < sizeof(section_rules) / sizeof(section_rules[0]); i++) {
		const struct section_rule *rule = &section_rules[i];
		struct snapshot_section section;
		int result;

		memcpy(&section, opening->image + rule->header_offset, sizeof(section));
		if (section.count > rule->count_max)
			return refuse(opening,
				"%s: count %" PRIu32 " is above the limit of %" PRIu32, rule->name,
				section.count, rule->count_max);
		if (section.stride != rule->stride)
			return refuse(opening, "%s: stride %" PRIu32 ", format 1 has %" PRIu32,
				rule->name, section.stride, rule->stride);
		result = take(opening, rule->name, section.offset,
			(uint64_t)section.count * section.stride);
		if (result != 0)
			return result;
	}
	return 0;
}

// Sets pointers and counts from a header whose sections are checked.
static void view_sections(uint8_t *image, struct snapshot *ret)
{
	struct snapshot_header *header = (struct snapshot_header *)image;

	ret->header = header;
	ret->bindings = (const struct snapshot_binding *)(image + header->bindings.offset);
	ret->services = (const struct snapshot_service *)(image + header->services.offset);
	ret->pools = (struct snapshot_pool *)(image + header->pools.offset);
	ret->backends = (const struct snapshot_backend *)(image + header->backends.offset);
	ret->binding_count = header->bindings.count;
	ret->service_count = header->services.count;
	ret->pool_count = header->pools.count;
	ret->backend_count = header->backends.count;
	ret->ring_count = header->rings.count;
	ret->has_ring_seeds = header->ring_seeds != 0;
	ret->hash_seed = hash_seed_expand(header->hash_seed);
}

static void view_ring_seed(struct snapshot *ret, uint32_t index)
{
	const struct ring_header *ring = ret->rings[index].header;

	ret->ring_seeds[index] =
		ring->seed_mark != 0 ? hash_seed_expand(ring->hash_seed) : ret->hash_seed;
}

static const struct snapshot_ring *ring_slots(const struct snapshot *snapshot)
{
	return (const struct snapshot_ring *)((const uint8_t *)snapshot->header +
		snapshot->header->rings.offset);
}

static int check_pool(const struct opening *opening, uint32_t id)
{
	const struct snapshot_pool *pool = &opening->snapshot->pools[id];

	if ((pool->flags & ~SNAPSHOT_USED) != 0)
		return refuse(
			opening, "pool %" PRIu32 ": unknown flags %#" PRIx32, id, pool->flags);
	if (!gate_word_valid(pool->gate.word)) {
		return refuse(opening, "pool %" PRIu32 ": gate threshold %" PRIu64 " is above 2^32",
			id, pool->gate.word);
	}
	if (pool->reserved != 0 || pool->gate.reserved != 0 ||
		!all_zero(pool->reserved2, sizeof(pool->reserved2)))
		return refuse(opening, "pool %" PRIu32 ": reserved bytes are not zero", id);
	return 0;
}

static bool pool_used(const struct snapshot *snapshot, uint32_t id)
{
	return id < snapshot->pool_count && (snapshot->pools[id].flags & SNAPSHOT_USED) != 0;
}

static int check_backend(const struct opening *opening, uint32_t id)
{
	const struct snapshot_backend *backend = &opening->snapshot->backends[id];

	if (backend->state > SNAPSHOT_BACKEND_DOWN)
		return refuse(opening, "backend %" PRIu32 ": unknown state %u", id, backend->state);
	if (!all_zero(backend->reserved, sizeof(backend->reserved)))
		return refuse(opening, "backend %" PRIu32 ": reserved bytes are not zero", id);
	if (backend->state == SNAPSHOT_BACKEND_FREE)
		return 0;
	if (!address_valid(&backend->address)) {
		return refuse(opening, "backend %" PRIu32 ": address of family %u is malformed", id,
			backend->address.family);
	}
	if (!pool_used(opening->snapshot, backend->pool))
		return refuse(opening, "backend %" PRIu32 ": pool %" PRIu32 " is not in use", id,
			backend->pool);
	return 0;
}

// Every member of a ring must be a used backend, all of one pool.
static int check_members(struct opening *opening, uint32_t index)
{
	const struct snapshot *snapshot = opening->snapshot;
	const struct ring *ring = &snapshot->rings[index];

	opening->ring_pools[index] = RING_POOL_ANY;
	for (uint32_t i = 0; i < ring->header->member_count; i++) {
		uint32_t id = ring->members[i];

		if (id >= snapshot->backend_count ||
			snapshot->backends[id].state == SNAPSHOT_BACKEND_FREE) {
			return refuse(opening,
				"ring %" PRIu32 ": member %" PRIu32 " is backend %" PRIu32
				", which is not in use",
				index, i, id);
		}
		if (i > 0 && snapshot->backends[id].pool != opening->ring_pools[index]) {
			return refuse(opening,
				"ring %" PRIu32 ": member %" PRIu32 " is of pool %" PRIu32
				", the first one of pool %" PRIu32,
				index, i, snapshot->backends[id].pool, opening->ring_pools[index]);
		}
		opening->ring_pools[index] = snapshot->backends[id].pool;
	}
	return 0;
}

// A program that knows of no seeds of rings must not take a ring that has one; the header tells it.
static int check_ring_seed(const struct opening *opening, uint32_t index)
{
	const struct ring_header *ring = opening->snapshot->rings[index].header;

	if (ring->seed_mark != hash_seed_mark(ring->hash_seed))
		return refuse(
			opening, "ring %" PRIu32 ": seed_mark is not that of its hash seed", index);
	if (ring->seed_mark != 0 && !opening->snapshot->has_ring_seeds)
		return refuse(opening,
			"ring %" PRIu32 ": has a hash seed, and the header's ring_seeds is 0",
			index);
	return 0;
}

static int check_ring(struct opening *opening, uint32_t index)
{
	const struct snapshot_ring *slot = &ring_slots(opening->snapshot)[index];
	const char *reason = "";
	char name[24];
	int result;

	snprintf(name, sizeof(name), "ring %" PRIu32, index);
	result = take(opening, name, slot->offset, slot->bytes);
	if (result != 0)
		return result;
	if (ring_open(opening->image + slot->offset, (size_t)slot->bytes,
		    &opening->snapshot->rings[index], &reason) != 0)
		return refuse(opening, "%s: %s", name, reason);
	result = check_ring_seed(opening, index);
	if (result != 0)
		return result;
	view_ring_seed(opening->snapshot, index);
	return check_members(opening, index);
}

static int check_service_ring(
	const struct opening *opening, uint32_t id, const char *which, uint32_t index)
{
	const struct snapshot_service *service = &opening->snapshot->services[id];

	if (index >= opening->snapshot->ring_count) {
		return refuse(opening, "service %" PRIu32 ": %s %" PRIu32 " of %" PRIu32 " rings",
			id, which, index, opening->snapshot->ring_count);
	}
	if (opening->ring_pools[index] != RING_POOL_ANY &&
		opening->ring_pools[index] != service->pool) {
		return refuse(opening,
			"service %" PRIu32 ": %s %" PRIu32 " is of pool %" PRIu32
			", the service of pool %" PRIu32,
			id, which, index, opening->ring_pools[index], service->pool);
	}
	return 0;
}

static int check_source(
	const struct opening *opening, uint32_t id, const struct ip_addr *source, uint8_t family)
{
	const struct snapshot_service *service = &opening->snapshot->services[id];
	unsigned bits = family == ADDR_V4 ? service->source4_bits : service->source6_bits;

	if (source->family == ADDR_NONE && all_zero(source, sizeof(*source)) && bits == 0)
		return 0;
	if (source->family != family || !address_valid(source))
		return refuse(opening, "service %" PRIu32 ": source%u is no IPv%u address", id,
			family, family);
	if (bits > address_bits(source) || !host_bits_clear(source, bits)) {
		return refuse(opening,
			"service %" PRIu32 ": source%u_bits is %u, does not fit source%u", id,
			family, bits, family);
	}
	return 0;
}

static int check_idle(const struct opening *opening, uint32_t id)
{
	const struct snapshot_service *service = &opening->snapshot->services[id];
	const struct {
		const char *name;
		uint16_t seconds;
	} times[] = {
		{"idle_syn_s", service->idle_syn_s},
		{"idle_established_s", service->idle_established_s},
		{"idle_closing_s", service->idle_closing_s},
		{"idle_udp_s", service->idle_udp_s},
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i].seconds < 1 || times[i].seconds > IDLE_SECONDS_MAX) {
			return refuse(opening, "service %" PRIu32 ": %s is %u, must be 1..%u", id,
				times[i].name, times[i].seconds, IDLE_SECONDS_MAX);
		}
	}
	return 0;
}

// The fields of a service that name nothing else.
static int check_service_fields(const struct opening *opening, uint32_t id)
{
	const struct snapshot_service *service = &opening->snapshot->services[id];
	int result;

	if (service->affinity >= FLOW_AFFINITY_COUNT)
		return refuse(
			opening, "service %" PRIu32 ": unknown affinity %u", id, service->affinity);
	if (service->tunnel >= SNAPSHOT_TUNNEL_COUNT)
		return refuse(
			opening, "service %" PRIu32 ": unknown tunnel %u", id, service->tunnel);
	if (service->tunnel == SNAPSHOT_TUNNEL_GUE && service->gue_port_be == 0)
		return refuse(opening, "service %" PRIu32 ": gue_port is 0", id);
	if (!all_zero(service->reserved, sizeof(service->reserved)) ||
		!all_zero(service->reserved2, sizeof(service->reserved2)))
		return refuse(opening, "service %" PRIu32 ": reserved bytes are not zero", id);
	result = check_source(opening, id, &service->source4, ADDR_V4);
	if (result == 0)
		result = check_source(opening, id, &service->source6, ADDR_V6);
	return result != 0 ? result : check_idle(opening, id);
}

static int check_service(const struct opening *opening, uint32_t id)
{
	const struct snapshot_service *service = &opening->snapshot->services[id];
	int result;

	if ((service->flags & ~SERVICE_FLAGS) != 0 ||
		(service->flags != 0 && !(service->flags & SNAPSHOT_USED)))
		return refuse(opening, "service %" PRIu32 ": unknown flags %#" PRIx32, id,
			service->flags);
	if (service->flags == 0)
		return 0;
	if (!pool_used(opening->snapshot, service->pool))
		return refuse(opening, "service %" PRIu32 ": pool %" PRIu32 " is not in use", id,
			service->pool);
	result = check_service_ring(opening, id, "ring_old", service->ring_old);
	if (result == 0 && service->ring_new != SNAPSHOT_NO_RING)
		result = check_service_ring(opening, id, "ring_new", service->ring_new);
	return result != 0 ? result : check_service_fields(opening, id);
}

static int check_binding(const struct opening *opening, uint32_t index)
{
	const struct snapshot *snapshot = opening->snapshot;
	const struct snapshot_binding *binding = &snapshot->bindings[index];

	if (!address_valid(&binding->address))
		return refuse(opening, "binding %" PRIu32 ": address of family %u is malformed",
			index, binding->address.family);
	if (binding->prefix_bits > address_bits(&binding->address))
		return refuse(opening, "binding %" PRIu32 ": prefix_bits is %u, the address has %u",
			index, binding->prefix_bits, address_bits(&binding->address));
	if (!host_bits_clear(&binding->address, binding->prefix_bits))
		return refuse(opening,
			"binding %" PRIu32 ": address has bits beyond prefix_bits %u", index,
			binding->prefix_bits);
	if (binding->protocol != IPPROTO_TCP && binding->protocol != IPPROTO_UDP)
		return refuse(opening, "binding %" PRIu32 ": protocol %u is neither TCP nor UDP",
			index, binding->protocol);
	if (binding->service >= snapshot->service_count ||
		!(snapshot->services[binding->service].flags & SNAPSHOT_USED)) {
		return refuse(opening, "binding %" PRIu32 ": service %" PRIu32 " is not in use",
			index, binding->service);
	}
	if (binding->reserved != 0)
		return refuse(opening, "binding %" PRIu32 ": reserved bytes are not zero", index);
	return 0;
}

static int check_elements(struct opening *opening)
{
	const struct snapshot *snapshot = opening->snapshot;
	int result = 0;

	// In this order each check names only what the ones before it have accepted.
	for (uint32_t i = 0; i < snapshot->pool_count && result == 0; i++)
		result = check_pool(opening, i);
	for (uint32_t i = 0; i < snapshot->backend_count && result == 0; i++)
		result = check_backend(opening, i);
	for (uint32_t i = 0; i < snapshot->ring_count && result == 0; i++)
		result = check_ring(opening, i);
	for (uint32_t i = 0; i < snapshot->service_count && result == 0; i++)
		result = check_service(opening, i);
	for (uint32_t i = 0; i < snapshot->binding_count && result == 0; i++)
		result = check_binding(opening, i);
	return result;
}

int snapshot_open(
	void *image, uint64_t bytes, struct snapshot *ret, struct snapshot_error *ret_error)
{
	struct opening opening = {.snapshot = ret, .image = image, .error = ret_error};
	int result;

	if ((uintptr_t)image % SNAPSHOT_ALIGN != 0)
		return refuse(&opening, "image: not aligned to %u bytes", SNAPSHOT_ALIGN);
	result = check_header(&opening, bytes);
	if (result == 0)
		result = check_sections(&opening);
	if (result != 0)
		return result;
	view_sections(image, ret);
	return check_elements(&opening);
}

void snapshot_view(void *image, struct snapshot *ret)
{
	view_sections(image, ret);
	for (uint32_t i = 0; i < ret->ring_count; i++) {
		const uint8_t *at = (const uint8_t *)image + ring_slots(ret)[i].offset;
		const struct ring_header *header = (const struct ring_header *)at;
		struct ring *ring = &ret->rings[i];

		ring->header = header;
		ring->points = at + header->points_offset;
		ring->index = header->index_offset != 0 ? at + header->index_offset : NULL;
		ring->members = (const uint32_t *)(at + header->members_offset);
		view_ring_seed(ret, i);
	}
}
