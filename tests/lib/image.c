// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/image.h"

#include "common/flow.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#define BINDINGS_EACH 4u
#define RINGS_EACH    2u

static uint64_t align_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

static uint32_t member_count(const struct image_shape *shape, uint32_t pool)
{
	return shape->backend_count / shape->pool_count +
		(pool < shape->backend_count % shape->pool_count);
}

// Room for a ring; a bit more than it takes when two of its points are equal.
static uint64_t ring_room(const struct image_shape *shape, uint32_t pool)
{
	uint32_t members = member_count(shape, pool);

	return ring_image_bytes(RING_V1, (uint64_t)members * shape->points, members);
}

static struct snapshot_section place(uint64_t *at, uint32_t count, uint32_t stride)
{
	struct snapshot_section section = {.offset = *at, .count = count, .stride = stride};

	*at = align_up(*at + (uint64_t)count * stride, SNAPSHOT_ALIGN);
	return section;
}

static void place_all(struct snapshot_header *header, const struct image_shape *shape)
{
	uint64_t at = sizeof(*header);

	header->bindings =
		place(&at, shape->pool_count * BINDINGS_EACH, sizeof(struct snapshot_binding));
	header->services = place(&at, shape->pool_count, sizeof(struct snapshot_service));
	header->pools = place(&at, shape->pool_count, sizeof(struct snapshot_pool));
	header->backends = place(&at, shape->backend_count, sizeof(struct snapshot_backend));
	header->rings = place(&at, shape->pool_count * RINGS_EACH, sizeof(struct snapshot_ring));
	header->bytes = at;
	for (uint32_t pool = 0; pool < shape->pool_count; pool++)
		header->bytes += RINGS_EACH * ring_room(shape, pool);
}

static struct ip_addr address4(uint32_t number)
{
	struct ip_addr ret = {.family = ADDR_V4};
	uint32_t be = htonl(number);

	memcpy(ret.bytes, &be, sizeof(be));
	return ret;
}

// 2001:db8:<group>::<number>
static struct ip_addr address6(uint16_t group, uint32_t number)
{
	struct ip_addr ret = {.family = ADDR_V6, .bytes = {0x20, 0x01, 0x0d, 0xb8}};
	uint16_t group_be = htons(group);
	uint32_t be = htonl(number);

	memcpy(ret.bytes + 4, &group_be, sizeof(group_be));
	memcpy(ret.bytes + 12, &be, sizeof(be));
	return ret;
}

static void fill_bindings(uint8_t *image, uint32_t pool)
{
	const struct snapshot_header *header = (const struct snapshot_header *)image;
	struct snapshot_binding *binding =
		(struct snapshot_binding *)(image + header->bindings.offset) + pool * BINDINGS_EACH;

	for (uint32_t i = 0; i < BINDINGS_EACH; i++, binding++) {
		bool four = i < 2;

		binding->address = four ? address4(IMAGE_ADDRESS4 + pool) : address6(0xcb, pool);
		binding->prefix_bits = four ? 32 : 128;
		binding->protocol = i % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;
		binding->port_be = htons(i % 2 == 0 ? IMAGE_PORT_TCP : IMAGE_PORT_UDP);
		binding->service = pool;
	}
}

static void fill_service(uint8_t *image, const struct image_shape *shape, uint32_t pool)
{
	const struct snapshot_header *header = (const struct snapshot_header *)image;
	struct snapshot_service *service =
		(struct snapshot_service *)(image + header->services.offset) + pool;

	service->flags = SNAPSHOT_USED;
	service->pool = pool;
	service->ring_old = pool * RINGS_EACH;
	service->ring_new = shape->staged ? pool * RINGS_EACH + 1 : SNAPSHOT_NO_RING;
	service->affinity = FLOW_AFFINITY_FLOW;
	service->tunnel = shape->tunnel;
	service->gue_port_be = htons(6080);
	service->source4 = address4(0x0a640000); // 10.100.0.0/16
	service->source4_bits = 16;
	service->source6 = address6(0x64, 0);
	service->source6_bits = 64;
	service->idle_syn_s = 30;
	service->idle_established_s = 900;
	service->idle_closing_s = 30;
	service->idle_udp_s = 60;
}

static int compare_points(const void *a, const void *b)
{
	const struct ring_point_v1 *left = a, *right = b;

	return (left->hash > right->hash) - (left->hash < right->hash);
}

// A v1 ring whose points are spread by a plain mixer: a shape that lookups accept, not what any builder makes.
static void fill_ring(uint8_t *at, const struct image_shape *shape, uint32_t pool, uint32_t salt)
{
	struct ring_header *header = (struct ring_header *)at;
	struct ring_point_v1 *points = (struct ring_point_v1 *)(header + 1);
	uint32_t members = member_count(shape, pool);
	uint32_t total = members * shape->points, kept = 0;
	uint32_t *ids;

	for (uint32_t i = 0; i < total; i++) {
		points[i].hash =
			(uint32_t)hash_splitmix64((uint64_t)salt << 48 | (uint64_t)pool << 32 | i);
		points[i].owner = i / shape->points;
	}
	qsort(points, total, sizeof(*points), compare_points);
	for (uint32_t i = 0; i < total; i++) {
		if (kept == 0 || points[i].hash != points[kept - 1].hash)
			points[kept++] = points[i];
	}
	header->magic = RING_MAGIC;
	header->version = RING_V1;
	header->point_count = kept;
	header->member_count = members;
	header->usable_count = members;
	if (ring_layout(header) != 0)
		abort();
	ids = (uint32_t *)(at + header->members_offset);
	memset(points + kept, 0, header->bytes - sizeof(*header) - kept * sizeof(*points));
	for (uint32_t i = 0; i < members; i++)
		ids[i] = pool + i * shape->pool_count;
}

static void seed_ring(struct ring_header *header, uint32_t index)
{
	memset(header->hash_seed, (int)(IMAGE_SEED + index), sizeof(header->hash_seed));
	header->seed_mark = hash_seed_mark(header->hash_seed);
}

static void fill_rings(uint8_t *image, const struct image_shape *shape)
{
	const struct snapshot_header *header = (const struct snapshot_header *)image;
	struct snapshot_ring *slot = (struct snapshot_ring *)(image + header->rings.offset);
	uint64_t at =
		align_up(header->rings.offset + header->rings.count * sizeof(*slot), RING_ALIGN);

	for (uint32_t i = 0; i < header->rings.count; i++) {
		slot[i].offset = at;
		slot[i].bytes = ring_room(shape, i / RINGS_EACH);
		fill_ring(image + at, shape, i / RINGS_EACH, i % RINGS_EACH);
		at += slot[i].bytes;
		slot[i].bytes = ((const struct ring_header *)(image + slot[i].offset))->bytes;
		if (shape->seeded & 1u << i % RINGS_EACH)
			seed_ring((struct ring_header *)(image + slot[i].offset), i);
	}
}

static void fill_elements(uint8_t *image, const struct image_shape *shape)
{
	const struct snapshot_header *header = (const struct snapshot_header *)image;
	struct snapshot_pool *pools = (struct snapshot_pool *)(image + header->pools.offset);
	struct snapshot_backend *backends =
		(struct snapshot_backend *)(image + header->backends.offset);

	for (uint32_t i = 0; i < shape->pool_count; i++) {
		fill_bindings(image, i);
		fill_service(image, shape, i);
		pools[i].flags = SNAPSHOT_USED;
		pools[i].gate.salt = 0x5a170000u + i;
	}
	for (uint32_t i = 0; i < shape->backend_count; i++) {
		backends[i].address =
			shape->backends6 ? address6(0xb, i + 1) : address4(0x0a010001u + i);
		backends[i].pool = i % shape->pool_count;
		backends[i].state = SNAPSHOT_BACKEND_UP;
	}
}

void *image_build(const struct image_shape *shape, uint64_t *ret_bytes)
{
	struct snapshot_header header = {.magic = SNAPSHOT_MAGIC,
		.format = SNAPSHOT_FORMAT,
		.header_bytes = sizeof(header),
		.generation = shape->generation,
		.unknown = SNAPSHOT_UNKNOWN_DROP,
		.ring_seeds = shape->seeded != 0};
	uint8_t *image;

	memset(header.id_space, 0x1d, sizeof(header.id_space));
	memset(header.hash_seed, 0x5e, sizeof(header.hash_seed));
	place_all(&header, shape);
	image = aligned_alloc(SNAPSHOT_ALIGN, header.bytes);
	if (image == NULL)
		abort();
	memset(image, 0, header.bytes);
	memcpy(image, &header, sizeof(header));
	fill_elements(image, shape);
	fill_rings(image, shape);
	image_seal(image);
	*ret_bytes = header.bytes;
	return image;
}

void image_seal(void *image)
{
	struct snapshot_header *header = image;

	header->checksum = snapshot_checksum(image, header->bytes);
}
