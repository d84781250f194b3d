// SPDX-License-Identifier: Apache-2.0
// Lookup in all storages and by all twins, around every point; and images that must be refused.
#include "common/ring.h"

#include "common/ring_v3.h"
#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 32u

// Asks every way to look a hash up; all must say the same.
struct asker {
	const struct ring *ring;
	uint32_t hashes[BURST];
	uint32_t expected[BURST];
	unsigned count;
	uint64_t wrong;
};

static void ask_flush(struct asker *asker)
{
	uint32_t owners[BURST];

	ring_lookup_burst(asker->ring, asker->hashes, asker->count, owners);
	for (unsigned i = 0; i < asker->count; i++) {
		ring_prefetch(asker->ring, asker->hashes[i]);
		asker->wrong += owners[i] != asker->expected[i];
		asker->wrong += ring_lookup(asker->ring, asker->hashes[i]) != asker->expected[i];
	}
	for (int twin = 0; twin < RING_V3_TWIN_COUNT && asker->count > 0; twin++) {
		if (asker->ring->header->version != RING_V3 || !ring_v3_twin_runs(twin))
			continue;
		ring_v3_burst(twin, asker->ring, asker->hashes, asker->count, owners);
		for (unsigned i = 0; i < asker->count; i++)
			asker->wrong += owners[i] != asker->expected[i];
	}
	asker->count = 0;
}

static void ask(struct asker *asker, uint32_t hash, uint32_t expected)
{
	asker->hashes[asker->count] = hash;
	asker->expected[asker->count++] = expected;
	if (asker->count == BURST)
		ask_flush(asker);
}

// Asks for each point's hash, one less, one more, and the ends of the range. points: ascending.
static void check_boundaries(
	const struct ring *ring, const struct writer_point *points, uint32_t count)
{
	struct asker asker = {.ring = ring};

	for (uint32_t i = 0; i < count; i++) {
		uint32_t hash = points[i].hash, next = points[(i + 1) % count].owner;
		bool before_is_point = i > 0 && points[i - 1].hash == hash - 1;

		ask(&asker, hash, points[i].owner);
		if (hash > 0)
			ask(&asker, hash - 1, points[before_is_point ? i - 1 : i].owner);
		if (hash < UINT32_MAX)
			ask(&asker, hash + 1, next);
	}
	ask(&asker, 0, points[0].owner);
	ask(&asker, UINT32_MAX,
		points[count - 1].hash == UINT32_MAX ? points[count - 1].owner : points[0].owner);
	ask_flush(&asker);
	CU_ASSERT_EQUAL(asker.wrong, 0);
}

static void check_in_all_versions(
	const struct writer_point *points, uint32_t count, uint32_t member_count)
{
	for (enum ring_version version = RING_V1; version <= RING_V3; version++) {
		struct ring_built built;

		CU_ASSERT_EQUAL_FATAL(
			ring_built_from_points(version, member_count, points, count, &built), 0);
		CU_ASSERT_EQUAL(built.ring.header->point_count, count);
		if (version != RING_V3 || built.ring.header->index_width == 2)
			CU_ASSERT_EQUAL(
				built.bytes, ring_image_bytes(version, count, member_count));
		check_boundaries(&built.ring, points, count);
		ring_built_free(&built);
	}
}

static struct writer_point *allocate(uint32_t count)
{
	struct writer_point *points = calloc(count, sizeof(*points));

	CU_ASSERT_PTR_NOT_NULL_FATAL(points);
	return points;
}

static void one_point_owns_all(void)
{
	static const uint32_t hashes[] = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
		struct writer_point point = {hashes[i], 0};

		check_in_all_versions(&point, 1, 1);
		point.owner = 6;
		check_in_all_versions(&point, 1, 7);
	}
}

static void points_at_both_ends(void)
{
	static const struct writer_point points[] = {
		{0, 2}, {1, 0}, {UINT32_MAX - 1, 1}, {UINT32_MAX, 0}};

	check_in_all_versions(points, 4, 3);
	check_in_all_versions(points + 1, 3, 3);
	check_in_all_versions(points, 3, 3);
	check_in_all_versions(points + 1, 2, 3);
}

// All points in one prefix, at its start, middle and end: the longest possible run.
static void all_points_in_one_prefix(void)
{
	static const uint32_t bases[] = {0, 0x40000000, 0xffff0000};

	for (unsigned b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		for (uint32_t count = 1; count <= 40; count++) {
			struct writer_point points[40];

			for (uint32_t i = 0; i < count; i++)
				points[i] = (struct writer_point){bases[b] + 3 * i, i % 5};
			check_in_all_versions(points, count, 5);
		}
	}
}

// Every hash of an interval is a point, next to nothing elsewhere: index entries far off the line.
static void lopsided_points_get_a_wide_index(void)
{
	uint32_t count = 200000;
	struct writer_point *points = allocate(count);
	struct ring_built built;

	for (uint32_t i = 0; i < count; i++)
		points[i] = (struct writer_point){UINT32_MAX - count + 1 + i, i % 3000};
	check_in_all_versions(points, count, 3000);
	CU_ASSERT_EQUAL_FATAL(ring_built_from_points(RING_V3, 3000, points, count, &built), 0);
	CU_ASSERT_EQUAL(built.ring.header->index_width, 4);
	ring_built_free(&built);
	for (uint32_t i = 0; i < count; i++)
		points[i].hash = i;
	check_in_all_versions(points, count, 3000);
	free(points);
}

// The starts drift from the line as far as 16-bit entries can follow, and a step further.
static void index_width_changes_where_it_must(void)
{
	for (int64_t lead = 32700; lead <= 32800; lead += 10) {
		uint32_t count = 131072, at = 0;
		struct writer_point *points = allocate(count);
		uint64_t spread = (uint64_t)(count - lead);

		// A block of lead points at the start, the others evenly over the circle.
		for (; at < lead; at++)
			points[at] = (struct writer_point){at, at % 100};
		for (uint64_t i = 0; at < count; at++, i++)
			points[at] = (struct writer_point){
				(uint32_t)(lead + (i * ((UINT64_C(1) << 32) - 40000)) / spread), 7};
		check_in_all_versions(points, count, 100);
		free(points);
	}
}

static void full_house_of_65535_owners(void)
{
	uint32_t count = RING_MEMBERS_MAX;
	struct writer_point *points = allocate(2 * count);

	for (uint32_t i = 0; i < count; i++)
		points[i] = (struct writer_point){i * 65537u, i};
	check_in_all_versions(points, count, count);
	for (uint32_t i = 0; i < 2 * count; i++)
		points[i] = (struct writer_point){i * 32768u, (i * 40503u) % count};
	check_in_all_versions(points, 2 * count, count);
	free(points);
}

static int by_hash(const void *a, const void *b)
{
	const struct writer_point *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

static void random_points_of_many_sizes(void)
{
	static const uint32_t sizes[] = {
		2, 3, 7, 8, 9, 16, 17, 31, 48, 100, 1600, 32768, 65535, 65536, 65537, 327680};
	uint64_t state = suite_seed();

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct writer_point *points = allocate(sizes[s]);
		uint32_t count = 0, members = (uint32_t)(1 + suite_random(&state) % 3000);

		for (uint32_t i = 0; i < sizes[s]; i++)
			points[i] = (struct writer_point){(uint32_t)suite_random(&state),
				(uint32_t)(suite_random(&state) % members)};
		qsort(points, sizes[s], sizeof(*points), by_hash);
		for (uint32_t i = 0; i < sizes[s]; i++) {
			if (i == 0 || points[i].hash != points[count - 1].hash)
				points[count++] = points[i];
		}
		check_in_all_versions(points, count, members);
		free(points);
	}
}

static void no_points_no_owner(void)
{
	for (enum ring_version version = RING_V1; version <= RING_V3; version++) {
		uint32_t hash = 5, owner = 0;
		struct ring_built built;

		CU_ASSERT_EQUAL_FATAL(ring_built_from_points(version, 0, NULL, 0, &built), 0);
		CU_ASSERT_EQUAL(ring_lookup(&built.ring, hash), RING_NO_OWNER);
		ring_lookup_burst(&built.ring, &hash, 1, &owner);
		CU_ASSERT_EQUAL(owner, RING_NO_OWNER);
		ring_prefetch(&built.ring, hash);
		ring_built_free(&built);
	}
}

static const char *refusal(const void *image, size_t bytes)
{
	const char *reason = NULL;
	struct ring ring;

	return ring_open(image, bytes, &ring, &reason) == -EINVAL ? reason : NULL;
}

// Spoils one byte after the other, everywhere; an image either is refused or still looks up inside its bounds.
static void spoilt_images_are_refused_or_harmless(void)
{
	static const struct writer_point points[] = {
		{10, 0}, {1000000, 1}, {0x40000000, 2}, {0x40000001, 0}, {0xf0000000, 1}};
	uint32_t hashes[] = {0, 11, 0x3fffffff, 0x40000001, 0xf0000001, UINT32_MAX}, owners[6];

	for (enum ring_version version = RING_V1; version <= RING_V3; version++) {
		struct ring_built built;
		unsigned refused = 0;

		CU_ASSERT_EQUAL_FATAL(ring_built_from_points(version, 3, points, 5, &built), 0);
		for (size_t i = 0; i < built.bytes * 8; i++) {
			struct ring ring;
			const char *reason;

			((uint8_t *)built.image)[i / 8] ^= (uint8_t)(1u << i % 8);
			if (ring_open(built.image, built.bytes, &ring, &reason) != 0) {
				refused++;
			} else {
				ring_lookup_burst(&ring, hashes, 6, owners);
				for (unsigned h = 0; h < 6; h++)
					CU_ASSERT(owners[h] < 3 || owners[h] == RING_NO_OWNER);
			}
			((uint8_t *)built.image)[i / 8] ^= (uint8_t)(1u << i % 8);
		}
		CU_ASSERT(refused > 400);
		ring_built_free(&built);
	}
}

static void refusals_say_why(void)
{
	static const struct writer_point points[] = {{10, 0}, {20, 1}, {30, 2}};
	struct ring_built built;
	struct ring_header *header, saved;

	CU_ASSERT_EQUAL_FATAL(ring_built_from_points(RING_V1, 3, points, 3, &built), 0);
	header = built.image;
	saved = *header;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, 100), "ring image is cut or not aligned");
	CU_ASSERT_STRING_EQUAL(
		refusal((uint8_t *)built.image + 4, 200), "ring image is cut or not aligned");
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes - 1), "ring image is cut");
	header->magic++;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes), "not a ring image");
	*header = saved;
	header->version = 4;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes), "unknown ring version");
	*header = saved;
	header->point_count = RING_POINTS_MAX + 1;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes),
		"ring has too many points or members, or a bad index width");
	*header = saved;
	header->points_offset = 64;
	CU_ASSERT_STRING_EQUAL(
		refusal(built.image, built.bytes), "ring offsets do not belong to its counts");
	*header = saved;
	header->usable_count = 4;
	CU_ASSERT_STRING_EQUAL(
		refusal(built.image, built.bytes), "ring has more usable members than members");
	*header = saved;
	struct ring_point_v1 *stored =
		(struct ring_point_v1 *)((uint8_t *)built.image + header->points_offset);

	stored[1].hash = 30;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes),
		"ring points are not in ascending order of their hashes");
	stored[1] = (struct ring_point_v1){20, 3};
	CU_ASSERT_STRING_EQUAL(
		refusal(built.image, built.bytes), "ring point has an owner beyond the members");
	ring_built_free(&built);
}

static void v3_refusals_say_why(void)
{
	static const struct writer_point points[] = {{10, 0}, {20, 1}, {30, 2}};
	struct ring_built built;

	CU_ASSERT_EQUAL_FATAL(ring_built_from_points(RING_V3, 3, points, 3, &built), 0);
	struct ring_header *header = built.image;
	uint32_t *words = (uint32_t *)((uint8_t *)built.image + header->points_offset);
	uint16_t *index = (uint16_t *)((uint8_t *)built.image + header->index_offset);

	words[3] ^= 1;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes),
		"ring does not wrap to the owner of its first point");
	words[3] ^= 1;
	index[2]++;
	CU_ASSERT_STRING_EQUAL(
		refusal(built.image, built.bytes), "ring index does not follow the points");
	index[2]--;
	index[0]++;
	CU_ASSERT_STRING_EQUAL(
		refusal(built.image, built.bytes), "ring index does not follow the points");
	index[0]--;
	CU_ASSERT_PTR_NULL(refusal(built.image, built.bytes));
	header->index_width = 3;
	CU_ASSERT_STRING_EQUAL(refusal(built.image, built.bytes),
		"ring has too many points or members, or a bad index width");
	ring_built_free(&built);
}

static void sizes_are_what_the_versions_promise(void)
{
	double per_v1 = (double)ring_image_bytes(RING_V1, 327680, 2048) - 128 - 8192;
	double per_v2 = (double)ring_image_bytes(RING_V2, 327680, 2048) - 128 - 8192;
	double per_v3 = (double)ring_image_bytes(RING_V3, 327680, 2048) - 128 - 8192;
	double small_v3 = (double)ring_image_bytes(RING_V3, 32768, 2048) - 128 - 8192;

	printf("# bytes a point, 2048 x 160: v1 %.3f, v2 %.3f, v3 %.3f; 2048 x 16: v3 %.3f\n",
		per_v1 / 327680, per_v2 / 327680, per_v3 / 327680, small_v3 / 32768);
	CU_ASSERT_EQUAL(per_v1, 327680 * 8);
	CU_ASSERT_EQUAL(per_v2, 327680 * 6);
	CU_ASSERT(per_v3 / 327680 <= 4.5);
	CU_ASSERT(small_v3 / 32768 <= 4.5);
	CU_ASSERT_EQUAL(ring_image_bytes(RING_V1, UINT64_C(1) << 40, 10), UINT64_MAX);
	CU_ASSERT_EQUAL(ring_image_bytes(RING_V1, 10, RING_MEMBERS_MAX + 1), UINT64_MAX);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"one_point_owns_all", one_point_owns_all},
		{"points_at_both_ends", points_at_both_ends},
		{"all_points_in_one_prefix", all_points_in_one_prefix},
		{"lopsided_points_get_a_wide_index", lopsided_points_get_a_wide_index},
		{"index_width_changes_where_it_must", index_width_changes_where_it_must},
		{"full_house_of_65535_owners", full_house_of_65535_owners},
		{"random_points_of_many_sizes", random_points_of_many_sizes},
		{"no_points_no_owner", no_points_no_owner},
		{"spoilt_images_are_refused_or_harmless", spoilt_images_are_refused_or_harmless},
		{"refusals_say_why", refusals_say_why},
		{"v3_refusals_say_why", v3_refusals_say_why},
		{"sizes_are_what_the_versions_promise", sizes_are_what_the_versions_promise},
	};

	return SUITE_RUN("ring", cases);
}
