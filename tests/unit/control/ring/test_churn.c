// SPDX-License-Identifier: Apache-2.0
// What moves between rings under one hash seed and under two: exact where it can be, and against a million keys.
#include "control/ring/churn.h"

#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 1000000u

// A ring of members with the backends first, first + 1, ... and weights that are all different.
struct one {
	struct ring_set set;
	struct ring_built built;
	struct hash_seed seed;
};

static void make(
	struct one *one, enum ring_version version, uint32_t first, uint32_t count, uint64_t *state)
{
	uint8_t bytes[HASH_SEED_BYTES];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)suite_random(state);
	one->seed = hash_seed_expand(bytes);
	ring_set_init(&one->set, version, version == RING_V1 ? 160 : 16, count);
	ring_set_sequence(&one->set, 0x0a000001 + first, 80);
	for (uint32_t i = 0; i < count; i++) {
		// In reverse, so that neither order is the other's.
		one->set.spec.members[i].backend = 1000 - first - i;
		one->set.spec.members[i].weight = 1 + (first + i) % 7;
	}
	ring_spec_seed(&one->set.spec, bytes);
	CU_ASSERT_EQUAL_FATAL(ring_built_make(&one->set, &one->built), 0);
}

static void drop(struct one *one)
{
	ring_built_free(&one->built);
	ring_set_free(&one->set);
}

static uint32_t pick(const struct one *one, uint64_t key)
{
	const struct ring *ring = &one->built.ring;
	uint32_t hash = (uint32_t)(hash_bytes(&key, sizeof(key), &one->seed) >> 32);
	uint32_t owner = ring_lookup(ring, hash);

	return owner == RING_NO_OWNER ? owner : ring_member(ring, owner);
}

// Sums of what leaves and comes agree with what moves, each within half a hash a member.
static void check_sums(const struct ring *a, const struct ring *b, uint64_t moved)
{
	uint64_t lost[64] = {0}, gained[64] = {0}, lost_sum = 0, gained_sum = 0, again = 0;

	CU_ASSERT_EQUAL_FATAL(ring_moved(a, b, &again, lost, gained), 0);
	CU_ASSERT_EQUAL(again, moved);
	for (unsigned i = 0; i < 64; i++) {
		lost_sum += lost[i];
		gained_sum += gained[i];
	}
	CU_ASSERT(llabs((long long)(lost_sum - moved)) <= 64);
	CU_ASSERT(llabs((long long)(gained_sum - moved)) <= 64);
}

// The two rings are one but for the seed, or differ in everything.
static void churn_under_two_seeds_is_what_a_million_keys_do(void)
{
	uint64_t state = suite_seed();

	for (unsigned round = 0; round < 4; round++) {
		struct one a, b;
		uint64_t moved = 0, measured = 0;

		make(&a, RING_V2, 0, 30, &state);
		make(&b, round == 2 ? RING_V1 : RING_V2, round > 0 ? 10 : 0, round == 3 ? 5 : 30,
			&state);
		CU_ASSERT_FALSE(ring_same_seed(&a.built.ring, &b.built.ring));
		CU_ASSERT_EQUAL(ring_moved(&a.built.ring, &b.built.ring, &moved, NULL, NULL), 0);
		for (uint32_t i = 0; i < KEYS; i++) {
			uint64_t key = suite_random(&state);

			measured += pick(&a, key) != pick(&b, key);
		}
		double predicted = (double)moved / (double)RING_CIRCLE;
		double error = sqrt(predicted * (1 - predicted) / KEYS);

		printf("# round %u: predicted %.4f %%, of %u keys %.4f %% (%.1f sigma)\n", round,
			100 * predicted, KEYS, 100.0 * (double)measured / KEYS,
			((double)measured / KEYS - predicted) / error);
		CU_ASSERT(fabs((double)measured / KEYS - predicted) < 5 * error);
		check_sums(&a.built.ring, &b.built.ring, moved);
		drop(&a);
		drop(&b);
	}
}

static void rings_with_one_seed_are_laid_over_each_other(void)
{
	uint64_t state = suite_seed(), moved = 1, lost[64] = {0}, arcs[64];
	struct one a, b;

	make(&a, RING_V2, 0, 30, &state);
	make(&b, RING_V2, 3, 30, &state);
	// The mark alone is looked at: who compares rings need not know seeds.
	((struct ring_header *)b.built.ring.header)->seed_mark = a.built.ring.header->seed_mark;
	CU_ASSERT_EQUAL(ring_moved(&a.built.ring, &a.built.ring, &moved, NULL, NULL), 0);
	CU_ASSERT_EQUAL(moved, 0);
	CU_ASSERT_EQUAL(ring_moved(&a.built.ring, &b.built.ring, &moved, lost, NULL), 0);
	CU_ASSERT_EQUAL(moved, ring_churn(&a.built.ring, &b.built.ring, NULL, NULL));
	ring_shares(&a.built.ring, arcs);
	// The first three backends are not in b: they lose all they have.
	CU_ASSERT_EQUAL(lost[0], arcs[0]);
	CU_ASSERT(moved < RING_CIRCLE / 2);
	drop(&a);
	drop(&b);
}

// The points do not depend on the seed; what people and nodes compare does.
static void seed_changes_the_digests_and_no_point(void)
{
	uint64_t state = suite_seed();
	struct one a, b;

	make(&a, RING_V3, 0, 30, &state);
	make(&b, RING_V3, 0, 30, &state);
	const struct ring_header *x = a.built.ring.header, *y = b.built.ring.header;

	CU_ASSERT_EQUAL_FATAL(x->bytes, y->bytes);
	CU_ASSERT_EQUAL(memcmp(x + 1, y + 1, x->bytes - sizeof(*x)), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(x->spec_digest, y->spec_digest, RING_DIGEST_BYTES), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(x->points_digest, y->points_digest, RING_DIGEST_BYTES), 0);
	drop(&a);
	drop(&b);
}

static void shares_in_another_ring_follow_the_backends(void)
{
	uint64_t state = suite_seed(), there[64], arcs[64];
	struct one a, b;

	make(&a, RING_V2, 0, 30, &state);
	make(&b, RING_V1, 10, 40, &state);
	CU_ASSERT_EQUAL(ring_shares_in(&a.built.ring, &b.built.ring, there), 0);
	ring_shares(&b.built.ring, arcs);
	for (uint32_t i = 0; i < 30; i++)
		CU_ASSERT_EQUAL(there[i], i < 10 ? 0 : arcs[i - 10]);
	drop(&a);
	drop(&b);
}

static void one_backend_alone_moves_nothing_and_an_empty_ring_all(void)
{
	uint64_t state = suite_seed(), moved = 1;
	struct one a, b, none;

	make(&a, RING_V2, 0, 1, &state);
	make(&b, RING_V2, 0, 1, &state);
	make(&none, RING_V2, 0, 0, &state);
	CU_ASSERT_EQUAL(ring_moved(&a.built.ring, &b.built.ring, &moved, NULL, NULL), 0);
	CU_ASSERT_EQUAL(moved, 0);
	CU_ASSERT_EQUAL(ring_moved(&a.built.ring, &none.built.ring, &moved, NULL, NULL), 0);
	CU_ASSERT_EQUAL(moved, RING_CIRCLE);
	CU_ASSERT_EQUAL(ring_moved(&none.built.ring, &a.built.ring, &moved, NULL, NULL), 0);
	CU_ASSERT_EQUAL(moved, RING_CIRCLE);
	drop(&b);
	make(&b, RING_V2, 0, 0, &state);
	CU_ASSERT_EQUAL(ring_moved(&none.built.ring, &b.built.ring, &moved, NULL, NULL), 0);
	CU_ASSERT_EQUAL(moved, 0);
	drop(&a);
	drop(&b);
	drop(&none);
}

// A sample of flows on one backend: they stay with the chance that the other ring's share of it is.
static void chance_of_a_known_hash_is_the_share_of_its_backend(void)
{
	uint64_t state = suite_seed(), there[64];
	struct one a, b;

	make(&a, RING_V2, 0, 30, &state);
	make(&b, RING_V2, 0, 30, &state);
	CU_ASSERT_EQUAL(ring_shares_in(&a.built.ring, &b.built.ring, there), 0);
	for (unsigned i = 0; i < 1000; i++) {
		uint32_t hash = (uint32_t)suite_random(&state);
		uint32_t owner = ring_lookup(&a.built.ring, hash);

		CU_ASSERT_DOUBLE_EQUAL(ring_chance_moved(&a.built.ring, &b.built.ring, there, hash),
			1 - (double)there[owner] / 0x1p32, 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(
			ring_chance_moved(&a.built.ring, &a.built.ring, NULL, hash), 0, 0);
	}
	drop(&a);
	drop(&b);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"churn_under_two_seeds_is_what_a_million_keys_do",
			churn_under_two_seeds_is_what_a_million_keys_do},
		{"rings_with_one_seed_are_laid_over_each_other",
			rings_with_one_seed_are_laid_over_each_other},
		{"seed_changes_the_digests_and_no_point", seed_changes_the_digests_and_no_point},
		{"shares_in_another_ring_follow_the_backends",
			shares_in_another_ring_follow_the_backends},
		{"one_backend_alone_moves_nothing_and_an_empty_ring_all",
			one_backend_alone_moves_nothing_and_an_empty_ring_all},
		{"chance_of_a_known_hash_is_the_share_of_its_backend",
			chance_of_a_known_hash_is_the_share_of_its_backend},
	};

	return SUITE_RUN("ring churn", cases);
}
