// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/rings.h"

#include "control/daemon/lanes.h"
#include "control/ring/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

static void image_drop(struct rings_image *image)
{
	if (image == NULL || --image->holders > 0)
		return;
	free(image->backends);
	free(image->bytes_at);
	free(image);
}

void rings_free(struct rings *rings)
{
	if (rings == NULL)
		return;
	for (uint32_t i = 0; i < rings->count; i++) {
		pool_ring_free(&rings->items[i].spec);
		image_drop(rings->items[i].image);
	}
	free(rings->items);
	free(rings->services);
	free(rings);
}

// A member's backend is its position in the pool until here; the image needs its id.
static int members_number(
	const struct document *document, const struct config_pool *pool, struct ring_spec *spec)
{
	for (uint32_t i = 0; i < spec->member_count; i++) {
		const char *name = pool->backends[spec->members[i].backend].name;
		const struct document_id *id =
			document_id_find(document, DOCUMENT_BACKEND, pool->name, name);

		if (id == NULL)
			return -EINVAL;
		spec->members[i].backend = id->id;
	}
	return 0;
}

static bool tags_equal(const struct rings_ring *ring, const struct config_service *service)
{
	if (ring->tag_count != service->require_count)
		return false;
	for (uint32_t i = 0; i < ring->tag_count; i++) {
		if (strcmp(ring->tags[i], service->requires[i]) != 0)
			return false;
	}
	return true;
}

struct planner {
	struct document *document;
	struct rings *rings;
	char *error; // RINGS_ERROR_BYTES
};

// Side of a pool that a ring is wanted for.
struct side {
	struct config_pool pool; // members of this side
	const struct config_ring *ring;
	bool is_new;
};

// The ring that another service with the same pool, side and tags has already.
static uint32_t ring_same_tags(
	const struct rings *rings, const struct side *side, const struct config_service *service)
{
	for (uint32_t i = 0; i < rings->count; i++) {
		const struct rings_ring *ring = &rings->items[i];

		if (ring->pool == side->pool.name && ring->is_new == side->is_new &&
			tags_equal(ring, service))
			return i;
	}
	return SNAPSHOT_NO_RING;
}

// Other tags may choose the same backends: the specification's digest tells.
static uint32_t ring_same_digest(
	const struct rings *rings, const struct side *side, const uint8_t *digest)
{
	for (uint32_t i = 0; i < rings->count; i++) {
		const struct rings_ring *ring = &rings->items[i];

		if (ring->pool == side->pool.name &&
			memcmp(ring->digest, digest, RING_DIGEST_BYTES) == 0)
			return i;
	}
	return SNAPSHOT_NO_RING;
}

static uint64_t v1_bytes(const struct ring_spec *spec)
{
	uint64_t weights = 0;

	for (uint32_t i = 0; i < spec->member_count; i++)
		weights += spec->members[i].weight;
	return weights * RING_V1_POINTS * sizeof(struct ring_point_v1);
}

// Adds a ring to the plan. spec: moves into it.
static int ring_add(struct planner *p, const struct side *side,
	const struct config_service *service, struct pool_ring *spec)
{
	struct rings *rings = p->rings;
	struct rings_ring *ring;

	if (rings->count == SNAPSHOT_RINGS_MAX) {
		snprintf(p->error, RINGS_ERROR_BYTES,
			"service \"%s\": more than %u different rings (pools, required tags and "
			"cutovers)",
			service->name, SNAPSHOT_RINGS_MAX);
		return -E2BIG;
	}
	if (members_number(p->document, &side->pool, &spec->spec) < 0) {
		snprintf(p->error, RINGS_ERROR_BYTES, "pool \"%s\": a backend has no id",
			side->pool.name);
		return -EINVAL;
	}
	ring = &rings->items[rings->count++];
	*ring = (struct rings_ring){.pool = side->pool.name,
		.is_new = side->is_new,
		.tags = service->requires,
		.tag_count = service->require_count,
		.v1_bytes = v1_bytes(&spec->spec),
		.spec = *spec};
	ring_spec_digest(&spec->spec, ring->digest);
	rings->bytes += ring_image_bytes(
		spec->spec.version, ring_spec_points(&spec->spec), spec->spec.member_count);
	*spec = (struct pool_ring){0};
	return 0;
}

// The specification of a ring with its lanes, if it is balanced.
static int ring_spec_make(struct document *document, const struct side *side,
	const struct config_service *service, struct pool_ring *ret, struct ring_error *error)
{
	struct lanes_key key = {
		.pool = side->pool.name,
		.is_new = side->is_new,
		.tags = service->requires,
		.tag_count = service->require_count,
	};
	int rc = pool_ring_spec(&side->pool, side->ring, (const char *const *)service->requires,
		service->require_count, ret, error);

	if (rc < 0)
		return rc;
	// The fleet's seed, written out, is no seed of its own: such a ring moves nothing.
	if (memcmp(side->ring->hash_seed, document->hash_seed, sizeof(document->hash_seed)) == 0)
		ring_spec_seed(&ret->spec, (const uint8_t[HASH_SEED_BYTES]){0});
	rc = lanes_attach(document, &key, side->ring, ret, error);
	if (rc < 0)
		pool_ring_free(ret);
	return rc;
}

static int ring_find(struct planner *p, const struct side *side,
	const struct config_service *service, uint32_t *ret_index)
{
	uint8_t digest[RING_DIGEST_BYTES];
	struct ring_error error;
	struct pool_ring spec;
	uint32_t index = ring_same_tags(p->rings, side, service);
	int rc;

	if (index == SNAPSHOT_NO_RING) {
		rc = ring_spec_make(p->document, side, service, &spec, &error);
		if (rc < 0) {
			snprintf(p->error, RINGS_ERROR_BYTES, "pool \"%s\": %s", side->pool.name,
				error.text);
			return rc;
		}
		ring_spec_digest(&spec.spec, digest);
		index = ring_same_digest(p->rings, side, digest);
		rc = 0;
		if (index == SNAPSHOT_NO_RING) {
			index = p->rings->count;
			rc = ring_add(p, side, service, &spec);
		}
		pool_ring_free(&spec);
		if (rc < 0)
			return rc;
	}
	p->rings->items[index].service_count++;
	*ret_index = index;
	return 0;
}

static int service_plan(struct planner *p, uint32_t position)
{
	const struct config_service *service = &p->document->pools->services[position];
	const struct config_pool *pool = config_pool_find(p->document->pools, service->pool);
	const struct document_cutover *cutover = document_cutover_find(p->document, service->pool);
	struct rings_service *uses = &p->rings->services[position];
	struct side side = {.pool = *pool, .ring = &pool->ring};
	int rc = ring_find(p, &side, service, &uses->ring_old);

	uses->ring_new = SNAPSHOT_NO_RING;
	if (rc < 0 || cutover == NULL)
		return rc;
	side.ring = &cutover->ring;
	side.is_new = true;
	if (cutover->backend_count > 0) {
		side.pool.backends = cutover->backends;
		side.pool.backend_count = cutover->backend_count;
	}
	return ring_find(p, &side, service, &uses->ring_new);
}

int rings_plan(
	struct document *document, struct rings **ret, char ret_error[static RINGS_ERROR_BYTES])
{
	struct rings *rings = calloc(1, sizeof(*rings));
	struct planner p = {.document = document, .rings = rings, .error = ret_error};
	int rc = -ENOMEM;

	snprintf(ret_error, RINGS_ERROR_BYTES, "out of memory");
	if (rings == NULL)
		return rc;
	rings->items = calloc(SNAPSHOT_RINGS_MAX, sizeof(*rings->items));
	rings->services =
		calloc((size_t)document->pools->service_count + 1, sizeof(*rings->services));
	if (rings->items != NULL && rings->services != NULL)
		rc = 0;
	lanes_begin(document);
	for (uint32_t i = 0; i < document->pools->service_count && rc == 0; i++)
		rc = service_plan(&p, i);
	if (rc < 0) {
		rings_free(rings);
		return rc;
	}
	lanes_end(document);
	*ret = rings;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Equal digests mean equal points; the ids of the members must be equal, too.
static bool image_fits(const struct rings_image *image, const struct rings_ring *ring)
{
	const struct ring_spec *spec = &ring->spec.spec;

	if (memcmp(image->digest, ring->digest, RING_DIGEST_BYTES) != 0 ||
		image->version != spec->version || image->member_count != spec->member_count)
		return false;
	for (uint32_t i = 0; i < spec->member_count; i++) {
		if (image->backends[i] != spec->members[i].backend)
			return false;
	}
	return true;
}

static struct rings_image *image_take_over(
	const struct rings *previous, const struct rings_ring *ring)
{
	for (uint32_t i = 0; previous != NULL && i < previous->count; i++) {
		struct rings_image *image = previous->items[i].image;

		if (image != NULL && image_fits(image, ring)) {
			image->holders++;
			return image;
		}
	}
	return NULL;
}

static struct rings_image *image_build(const struct rings_ring *ring)
{
	const struct ring_spec *spec = &ring->spec.spec;
	struct rings_image *image = calloc(1, sizeof(*image));
	uint64_t start = now_ns();

	if (image == NULL)
		return NULL;
	image->holders = 1;
	image->backends = calloc((size_t)spec->member_count + 1, sizeof(*image->backends));
	if (image->backends == NULL ||
		ring_build_image(spec, &image->bytes_at, &image->bytes) < 0) {
		image_drop(image);
		return NULL;
	}
	memcpy(image->digest, ring->digest, RING_DIGEST_BYTES);
	image->version = spec->version;
	image->member_count = spec->member_count;
	for (uint32_t i = 0; i < spec->member_count; i++)
		image->backends[i] = spec->members[i].backend;
	image->build_ns = now_ns() - start;
	return image;
}

int rings_build(struct rings *rings, const struct rings *previous)
{
	rings->bytes = 0;
	for (uint32_t i = 0; i < rings->count; i++) {
		struct rings_ring *ring = &rings->items[i];

		ring->image = image_take_over(previous, ring);
		if (ring->image == NULL) {
			ring->image = image_build(ring);
			rings->built++;
			// Millions of points take seconds: the watchdog must not take that for a hang.
			sd_notify(0, "WATCHDOG=1");
		}
		if (ring->image == NULL)
			return -ENOMEM;
		rings->bytes += ring->image->bytes;
		pool_ring_free(&ring->spec);
	}
	return 0;
}
