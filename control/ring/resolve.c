// SPDX-License-Identifier: Apache-2.0
#include "control/ring/build.h"

static bool is_usable(const uint64_t *usable, uint32_t owner)
{
	return usable[owner / 64] >> owner % 64 & 1;
}

static uint32_t count_usable(const uint64_t *usable, uint32_t member_count)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < member_count; i++)
		count += is_usable(usable, i);
	return count;
}

// A point keeps its owner if that is usable, else takes the owner that the point behind it ended up with. A mask, since
// with half of the members down a branch is wrong every other time: seven times the cost.
static inline uint32_t choose(const uint64_t *usable, uint32_t own, uint32_t next)
{
	uint32_t mask = 0 - (uint32_t)(usable[own / 64] >> own % 64 & 1);

	// Hidden, or clang makes the branch again.
	__asm__("" : "+r"(mask));
	return (own & mask) | (next & ~mask);
}

// One backward pass for each storage. The first usable owner stands behind the last point.
static void resolve_v1(
	struct ring_point_v1 *points, uint32_t count, const uint64_t *usable, uint32_t owner)
{
	for (uint32_t i = count; i-- > 0;) {
		owner = choose(usable, points[i].owner, owner);
		points[i].owner = owner;
	}
}

static void resolve_v2(
	struct ring_point_v2 *points, uint32_t count, const uint64_t *usable, uint32_t owner)
{
	for (uint32_t i = count; i-- > 0;) {
		owner = choose(usable, points[i].owner, owner);
		points[i].owner = (uint16_t)owner;
	}
}

static void resolve_v3(
	uint32_t *words, const struct ring_header *header, const uint64_t *usable, uint32_t owner)
{
	uint32_t mask = (UINT32_C(1) << header->prefix_bits) - 1;

	words[header->point_count] = owner;
	for (uint32_t i = header->point_count; i-- > 0;) {
		uint32_t own = words[i] & mask;

		owner = choose(usable, own, owner);
		words[i] = (words[i] & ~mask) | owner;
	}
}

static uint32_t owner_of(const struct ring_header *header, const void *points, uint32_t i)
{
	switch (header->version) {
	case RING_V1:
		return ((const struct ring_point_v1 *)points)[i].owner;
	case RING_V2:
		return ((const struct ring_point_v2 *)points)[i].owner;
	default:
		return ((const uint32_t *)points)[i] & ((UINT32_C(1) << header->prefix_bits) - 1);
	}
}

void ring_resolve(void *image, const uint64_t *usable)
{
	struct ring_header *header = image;
	void *points = (uint8_t *)image + header->points_offset;
	uint32_t first = 0;

	if (usable == NULL)
		return;
	header->usable_count = count_usable(usable, header->member_count);
	if (header->usable_count == 0 || header->usable_count == header->member_count)
		return;
	// A member without a point left (it lost every tie) may be the only usable one.
	while (first < header->point_count && !is_usable(usable, owner_of(header, points, first)))
		first++;
	if (first == header->point_count) {
		header->usable_count = 0;
		return;
	}
	uint32_t owner = owner_of(header, points, first);

	switch (header->version) {
	case RING_V1:
		resolve_v1(points, header->point_count, usable, owner);
		break;
	case RING_V2:
		resolve_v2(points, header->point_count, usable, owner);
		break;
	default:
		resolve_v3(points, header, usable, owner);
	}
}
