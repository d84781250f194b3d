// SPDX-License-Identifier: Apache-2.0
#include "common/ring.h"

#include "common/ring_v3.h"

#include <errno.h>
#include <string.h>

// Points that share a prefix, on average at most: one vector of sixteen then holds nearly every run, and the
// index costs 0.25 to 0.5 bytes a point.
#define RUN_MEAN_MAX    8u
#define PREFIX_BITS_MAX 28u

// Searches that run side by side.
#define LANES 8u

static uint64_t align_up(uint64_t bytes)
{
	return (bytes + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
}

static uint32_t prefix_bits(uint64_t point_count, uint32_t member_count)
{
	uint32_t bits = 1;

	while ((UINT64_C(1) << bits) < member_count || point_count > (uint64_t)RUN_MEAN_MAX << bits)
		bits++;
	return bits;
}

// Fills the byte counts of points and index; false when the header has no such shape.
static bool sizes(struct ring_header *header, uint64_t *ret_points, uint64_t *ret_index)
{
	uint64_t points = header->point_count;

	*ret_index = 0;
	header->prefix_bits = 0;
	switch (header->version) {
	case RING_V1:
		*ret_points = points * sizeof(struct ring_point_v1);
		return header->index_width == 0;
	case RING_V2:
		*ret_points = points * sizeof(struct ring_point_v2);
		return header->index_width == 0;
	case RING_V3:
		header->prefix_bits = prefix_bits(points, header->member_count);
		*ret_points = (points + RING_V3_PADDING) * sizeof(uint32_t);
		*ret_index = ((UINT64_C(1) << header->prefix_bits) + 1) * header->index_width;
		return header->index_width == sizeof(uint16_t) ||
			header->index_width == sizeof(uint32_t);
	default:
		return false;
	}
}

int ring_layout(struct ring_header *header)
{
	uint64_t points, index, offset = sizeof(*header);

	if (header->point_count > RING_POINTS_MAX || header->member_count > RING_MEMBERS_MAX)
		return -EINVAL;
	if (!sizes(header, &points, &index))
		return -EINVAL;
	header->points_offset = (uint32_t)offset;
	offset = align_up(offset + points);
	header->index_offset = index ? (uint32_t)offset : 0;
	offset = align_up(offset + index);
	header->members_offset = (uint32_t)offset;
	header->bytes = align_up(offset + (uint64_t)header->member_count * sizeof(uint32_t));
	return header->bytes > UINT32_MAX ? -EOVERFLOW : 0;
}

uint64_t ring_image_bytes(enum ring_version version, uint64_t point_count, uint32_t member_count)
{
	struct ring_header header = {.version = (uint16_t)version,
		.point_count = (uint32_t)point_count,
		.member_count = member_count,
		.index_width = version == RING_V3 ? sizeof(uint16_t) : 0};

	if (point_count > RING_POINTS_MAX || ring_layout(&header) == -EINVAL)
		return UINT64_MAX;
	return header.bytes;
}

static inline uint32_t hash_at(const void *points, size_t stride, uint32_t position)
{
	uint32_t hash;

	memcpy(&hash, (const uint8_t *)points + position * stride, sizeof(hash));
	return hash;
}

static inline uint32_t owner_at(const void *points, size_t stride, uint32_t position)
{
	const uint8_t *point = (const uint8_t *)points + position * stride;
	uint32_t wide;
	uint16_t narrow;

	if (stride == sizeof(struct ring_point_v1)) {
		memcpy(&wide, point + sizeof(uint32_t), sizeof(wide));
		return wide;
	}
	memcpy(&narrow, point + sizeof(uint32_t), sizeof(narrow));
	return narrow;
}

// One step of the search: half if the point is below the hash, else 0. A mask that the compiler cannot see through,
// since gcc makes a branch of the plain choice, and clang of a plain mask too; it is mispredicted every other time, and
// that, not memory, is most of the cost of a textbook lower_bound (docs/ring.md section 6).
static inline uint32_t step(uint32_t point_hash, uint32_t ring_hash, uint32_t half)
{
	uint32_t mask = 0 - (uint32_t)(point_hash < ring_hash);

	__asm__("" : "+r"(mask));
	return half & mask;
}

static inline uint32_t sorted_lookup(const struct ring *ring, size_t stride, uint32_t ring_hash)
{
	uint32_t left = ring->header->point_count, position = 0;

	while (left > 1) {
		uint32_t half = left / 2;

		position +=
			step(hash_at(ring->points, stride, position + half - 1), ring_hash, half);
		left -= half;
	}
	position += step(hash_at(ring->points, stride, position), ring_hash, 1);
	return owner_at(ring->points, stride, position == ring->header->point_count ? 0 : position);
}

// Eight hashes go down the levels together, their positions in registers: the misses of a level overlap.
static inline void sorted_eight(
	const struct ring *ring, size_t stride, const uint32_t *ring_hashes, uint32_t *ret_owners)
{
	uint32_t point_count = ring->header->point_count, position[LANES] = {0};
	const void *points = ring->points;

	for (uint32_t left = point_count; left > 1; left -= left / 2) {
		uint32_t half = left / 2;

#pragma GCC unroll 8
		for (unsigned i = 0; i < LANES; i++)
			position[i] += step(hash_at(points, stride, position[i] + half - 1),
				ring_hashes[i], half);
	}
	for (unsigned i = 0; i < LANES; i++) {
		position[i] += step(hash_at(points, stride, position[i]), ring_hashes[i], 1);
		ret_owners[i] =
			owner_at(points, stride, position[i] == point_count ? 0 : position[i]);
	}
}

static inline void sorted_burst(const struct ring *ring, size_t stride, const uint32_t *ring_hashes,
	unsigned count, uint32_t *ret_owners)
{
	unsigned i = 0;

	for (; i + LANES <= count; i += LANES)
		sorted_eight(ring, stride, ring_hashes + i, ret_owners + i);
	for (; i < count; i++)
		ret_owners[i] = sorted_lookup(ring, stride, ring_hashes[i]);
}

static inline bool has_owner(const struct ring *ring)
{
	return ring->header->point_count != 0 && ring->header->usable_count != 0;
}

uint32_t ring_lookup(const struct ring *ring, uint32_t ring_hash)
{
	if (!has_owner(ring))
		return RING_NO_OWNER;
	switch (ring->header->version) {
	case RING_V1:
		return sorted_lookup(ring, sizeof(struct ring_point_v1), ring_hash);
	case RING_V2:
		return sorted_lookup(ring, sizeof(struct ring_point_v2), ring_hash);
	default:
		return ring_v3_lookup(ring, ring_hash);
	}
}

void ring_prefetch(const struct ring *ring, uint32_t ring_hash)
{
	if (ring->header->version == RING_V3) {
		ring_v3_prefetch(ring, ring_hash);
		return;
	}
	// The first probe. The later ones depend on it; ring_lookup_burst() is what overlaps them.
	size_t stride = ring->header->version == RING_V1 ? sizeof(struct ring_point_v1)
							 : sizeof(struct ring_point_v2);

	__builtin_prefetch((const uint8_t *)ring->points + ring->header->point_count / 2 * stride);
}

void ring_lookup_burst(
	const struct ring *ring, const uint32_t *ring_hashes, unsigned count, uint32_t *ret_owners)
{
	if (!has_owner(ring)) {
		for (unsigned i = 0; i < count; i++)
			ret_owners[i] = RING_NO_OWNER;
		return;
	}
	switch (ring->header->version) {
	case RING_V1:
		sorted_burst(ring, sizeof(struct ring_point_v1), ring_hashes, count, ret_owners);
		break;
	case RING_V2:
		sorted_burst(ring, sizeof(struct ring_point_v2), ring_hashes, count, ret_owners);
		break;
	default:
		ring_v3_burst(ring_v3_twin_runs(RING_V3_AVX2) ? RING_V3_AVX2 : RING_V3_SCALAR, ring,
			ring_hashes, count, ret_owners);
	}
}

static const char *check_sorted(const struct ring *ring, size_t stride)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < ring->header->point_count; i++) {
		uint32_t hash = hash_at(ring->points, stride, i);

		if (i > 0 && hash <= before)
			return "ring points are not in ascending order of their hashes";
		if (owner_at(ring->points, stride, i) >= ring->header->member_count)
			return "ring point has an owner beyond the members";
		before = hash;
	}
	return NULL;
}

// Checks one run: its place, the order of its points and their owners.
static const char *check_run(
	const struct ring *ring, const uint32_t *points, struct ring_v3_run run, uint32_t expected)
{
	uint32_t owner_mask = (UINT32_C(1) << ring->header->prefix_bits) - 1;

	if (run.start != expected || run.count > ring->header->point_count - run.start)
		return "ring index does not follow the points";
	for (uint32_t i = run.start; i < run.start + run.count; i++) {
		if (i > run.start && (points[i] & ~owner_mask) <= (points[i - 1] & ~owner_mask))
			return "ring points are not in ascending order of their hashes";
		if ((points[i] & owner_mask) >= ring->header->member_count)
			return "ring point has an owner beyond the members";
	}
	return NULL;
}

static const char *check_v3(const struct ring *ring)
{
	const uint32_t *points = ring->points;
	uint32_t bits = ring->header->prefix_bits, expected = 0;
	uint32_t owner_mask = (UINT32_C(1) << bits) - 1;

	for (uint32_t prefix = 0; prefix >> bits == 0; prefix++) {
		struct ring_v3_run run = ring_v3_run(ring, prefix);
		const char *reason = check_run(ring, points, run, expected);

		if (reason != NULL)
			return reason;
		expected += run.count;
	}
	if (expected != ring->header->point_count)
		return "ring index does not cover the points";
	if (expected > 0 && (points[expected] & owner_mask) != (points[0] & owner_mask))
		return "ring does not wrap to the owner of its first point";
	return NULL;
}

static const char *check_header(const struct ring_header *header, size_t bytes)
{
	struct ring_header shape;

	if (header->magic != RING_MAGIC)
		return "not a ring image";
	if (header->version < RING_V1 || header->version > RING_V3)
		return "unknown ring version";
	shape = *header;
	if (ring_layout(&shape) != 0)
		return "ring has too many points or members, or a bad index width";
	if (memcmp(&shape, header, sizeof(shape)) != 0)
		return "ring offsets do not belong to its counts";
	if (header->bytes > bytes)
		return "ring image is cut";
	if (header->usable_count > header->member_count)
		return "ring has more usable members than members";
	if (header->point_count > 0 && header->member_count == 0)
		return "ring has points without members";
	return NULL;
}

int ring_open(const void *image, size_t bytes, struct ring *ret, const char **ret_reason)
{
	const struct ring_header *header = image;
	const uint8_t *base = image;
	struct ring ring = {.header = header};

	if ((uintptr_t)image % RING_ALIGN != 0 || bytes < sizeof(*header)) {
		*ret_reason = "ring image is cut or not aligned";
		return -EINVAL;
	}
	const char *reason = check_header(header, bytes);

	if (reason == NULL) {
		ring.points = base + header->points_offset;
		ring.index = header->index_offset ? base + header->index_offset : NULL;
		ring.members = (const uint32_t *)(base + header->members_offset);
		if (header->version == RING_V3)
			reason = check_v3(&ring);
		else
			reason = check_sorted(&ring,
				header->version == RING_V1 ? sizeof(struct ring_point_v1)
							   : sizeof(struct ring_point_v2));
	}
	if (reason != NULL) {
		*ret_reason = reason;
		return -EINVAL;
	}
	*ret = ring;
	return 0;
}
