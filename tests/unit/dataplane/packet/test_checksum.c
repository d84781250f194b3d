// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/checksum.h"

#include "tests/lib/suite.h"

#include <stdio.h>

// RFC 1071 section 1, as slow as the text: big-endian words, every carry added back at once.
static uint16_t naive_checksum(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)~sum;
}

static void sums_of_every_length_agree_with_the_rfc(void)
{
	uint64_t state = suite_seed();
	uint8_t bytes[1600];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)suite_random(&state);
	for (unsigned length = 0; length <= sizeof(bytes); length++) {
		CU_ASSERT_EQUAL(be16toh(checksum_finish(checksum_add(0, bytes, length))),
			naive_checksum(bytes, length));
	}
}

static void carries_of_all_ones_are_folded(void)
{
	static uint8_t ones[65534];

	memset(ones, 0xff, sizeof(ones));
	for (unsigned length = 2; length <= sizeof(ones); length += 502)
		CU_ASSERT_EQUAL(checksum_finish(checksum_add(0, ones, length)), 0);
	CU_ASSERT_EQUAL(checksum_fold(UINT64_MAX), UINT16_MAX);
	CU_ASSERT_EQUAL(checksum_fold(UINT64_C(0xffffffff0000ffff)), UINT16_MAX);
	CU_ASSERT_EQUAL(checksum_fold(UINT64_C(0x1fffe)), UINT16_MAX);
	CU_ASSERT_EQUAL(checksum_fold(UINT64_C(0x1ffff)), 1);
}

static void fold_of_every_32_bit_half_agrees_with_division(void)
{
	// Ones' complement folding is the remainder by 65,535, with 65,535 for 0 unless the sum is 0.
	for (uint64_t high = 0; high <= UINT16_MAX; high++) {
		for (uint64_t low = 0; low <= UINT16_MAX; low += 4369) {
			uint64_t sum = high << 16 | low;
			uint64_t expected = sum == 0 ? 0 : sum % 65535 == 0 ? 65535 : sum % 65535;

			if (checksum_fold(sum) != expected)
				CU_FAIL("fold");
			if (checksum_fold(sum << 32 | sum) !=
				(sum == 0 ? 0
						: (sum % 65535 * 2) % 65535 == 0
						? 65535
						: (sum % 65535 * 2) % 65535))
				CU_FAIL("fold of 64 bits");
		}
	}
}

// Four words; the second changes from every value to some, and from some to every value.
static void check_update(uint16_t from, uint16_t to)
{
	uint16_t words[4] = {htobe16(0x4500), from, htobe16(0xbeef), 0};
	uint16_t before = checksum_finish(checksum_add(0, words, sizeof(words)));

	words[1] = to;
	uint16_t after = checksum_finish(checksum_add(0, words, sizeof(words)));

	if (checksum_update(before, from, to) != after) {
		printf("# %#x -> %#x\n", from, to);
		CU_FAIL("update");
	}
}

static void updates_equal_a_new_sum_for_every_value(void)
{
	static const uint16_t others[] = {0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x4110, 0xbeef};

	for (unsigned value = 0; value <= UINT16_MAX; value++) {
		for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			check_update((uint16_t)value, others[i]);
			check_update(others[i], (uint16_t)value);
		}
	}
}

static void updates_keep_every_checksum_right_but_that_of_nothing(void)
{
	// Type, checksum and one more word that makes every checksum come up.
	for (unsigned word = 0; word <= UINT16_MAX; word++) {
		uint16_t words[3] = {htobe16(0x0800), 0, (uint16_t)word};

		words[1] = checksum_finish(checksum_add(0, words, sizeof(words)));
		CU_ASSERT(checksum_is_right(checksum_add(0, words, sizeof(words))));
		words[1] = checksum_update(words[1], words[0], 0);
		words[0] = 0;
		// Zeros alone need the other zero: the caller's case.
		if (word == 0)
			CU_ASSERT_EQUAL(words[1], 0)
		else if (!checksum_is_right(checksum_add(0, words, sizeof(words))))
			CU_FAIL("update");
	}
}

static void rfc_1624_example(void)
{
	// Section 4: HC 0xdd2f, m 0x5555, m' 0x3285 -> 0x0000, which equation 2 gets wrong.
	CU_ASSERT_EQUAL(checksum_update(htobe16(0xdd2f), htobe16(0x5555), htobe16(0x3285)), 0);
}

static const struct test_case cases[] = {
	{"sums_of_every_length_agree_with_the_rfc", sums_of_every_length_agree_with_the_rfc},
	{"carries_of_all_ones_are_folded", carries_of_all_ones_are_folded},
	{"fold_of_every_32_bit_half_agrees_with_division",
		fold_of_every_32_bit_half_agrees_with_division},
	{"updates_equal_a_new_sum_for_every_value", updates_equal_a_new_sum_for_every_value},
	{"updates_keep_every_checksum_right_but_that_of_nothing",
		updates_keep_every_checksum_right_but_that_of_nothing},
	{"rfc_1624_example", rfc_1624_example},
};

int main(void)
{
	return SUITE_RUN("checksum", cases);
}
