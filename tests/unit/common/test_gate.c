// SPDX-License-Identifier: Apache-2.0
#include "common/gate.h"
#include "tests/lib/suite.h"

static void ends_are_exact(void)
{
	CU_ASSERT_EQUAL(gate_threshold(0), GATE_NEVER);
	CU_ASSERT_EQUAL(gate_threshold(GATE_SHARE_ALL), GATE_ALWAYS);
	CU_ASSERT_EQUAL(gate_threshold(UINT32_MAX), GATE_ALWAYS);
	CU_ASSERT_EQUAL(gate_threshold(500000), GATE_ALWAYS / 2);
	CU_ASSERT_EQUAL(gate_threshold(1), 4294);
	CU_ASSERT_EQUAL(gate_threshold(GATE_SHARE_ALL - 1), 4294963001);
	for (uint64_t i = 0; i < 1000; i++) {
		uint32_t hash = hash_mix32((uint32_t)i);

		CU_ASSERT_FALSE(gate_uses_new(GATE_NEVER, 7, hash));
		CU_ASSERT_TRUE(gate_uses_new(GATE_ALWAYS, 7, hash));
	}
}

// A flow changes sides exactly where the threshold passes its bucket.
static void threshold_cuts_at_the_bucket(void)
{
	const uint32_t salt = 0x12345678;
	uint64_t state = suite_seed();

	CU_ASSERT_TRUE(gate_uses_new(1, salt, salt)); // bucket 0 is the first to go
	for (unsigned i = 0; i < 10000; i++) {
		uint32_t hash = (uint32_t)suite_random(&state);
		uint64_t bucket = gate_bucket(hash, salt);

		CU_ASSERT_FALSE(gate_uses_new(bucket, salt, hash));
		CU_ASSERT_TRUE(gate_uses_new(bucket + 1, salt, hash));
	}
}

static void buckets_are_pinned(void)
{
	CU_ASSERT_EQUAL(gate_bucket(0, 0), 0);
	CU_ASSERT_EQUAL(gate_bucket(1, 0), 0x514e28b7);
	CU_ASSERT_EQUAL(gate_bucket(0xdeadbeef ^ 0x55, 0x55), 0x0de5c6a9);
}

static void recall_is_never_and_no_threshold(void)
{
	CU_ASSERT_EQUAL(gate_word(0, false), GATE_NEVER);
	CU_ASSERT_EQUAL(gate_word(0, true), GATE_RECALL);
	CU_ASSERT_EQUAL(
		gate_word(1, true), gate_threshold(1)); // flows are let through: none comes back
	CU_ASSERT_EQUAL(gate_word_threshold(GATE_RECALL), GATE_NEVER);
	CU_ASSERT_EQUAL(gate_word_threshold(GATE_ALWAYS), GATE_ALWAYS);
	CU_ASSERT_TRUE(gate_word_valid(GATE_RECALL));
	CU_ASSERT_TRUE(gate_word_valid(GATE_ALWAYS));
	CU_ASSERT_FALSE(gate_word_valid(GATE_ALWAYS + 1));
	CU_ASSERT_FALSE(gate_word_valid(GATE_RECALL | 1));
}

int main(void)
{
	static const struct test_case cases[] = {
		{"ends_are_exact", ends_are_exact},
		{"threshold_cuts_at_the_bucket", threshold_cuts_at_the_bucket},
		{"buckets_are_pinned", buckets_are_pinned},
		{"recall_is_never_and_no_threshold", recall_is_never_and_no_threshold},
	};

	return SUITE_RUN("gate", cases);
}
