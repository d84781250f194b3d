// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table/neighbour_table.h"

#include "tests/lib/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};

static struct neighbour_table *make(uint32_t slots)
{
	uint64_t bytes = (neighbour_table_footprint(slots) + 63) / 64 * 64;

	return neighbour_table_format(aligned_alloc(NEIGHBOUR_TABLE_ALIGN, bytes), slots);
}

static struct ip_addr address(uint32_t number)
{
	struct ip_addr ret = {
		.bytes = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number},
		.family = ADDR_V4};

	return ret;
}

static uint32_t intern(struct neighbour_table *table, uint32_t number, uint64_t epoch)
{
	struct ip_addr wanted = address(number);
	uint32_t slot = NEIGHBOUR_NONE;

	CU_ASSERT_EQUAL(neighbour_table_intern(table, 0, &wanted, epoch, &slot), 0);
	return slot;
}

static bool learn(struct neighbour_table *table, uint32_t number, const uint8_t *mac,
	bool overrides, uint32_t now_s)
{
	struct neighbour_answer answer = {.address = address(number), .overrides = overrides};

	memcpy(answer.mac, mac, 6);
	return neighbour_table_learn(table, &answer, now_s);
}

static bool has_mac(const struct neighbour_table *table, uint32_t slot, const uint8_t *mac)
{
	uint64_t word = neighbour_word(neighbour_table_words(table), slot);

	return word != 0 && memcmp(&word, mac, 6) == 0;
}

static void answer_fills_the_slot_that_waits_for_it(void)
{
	struct neighbour_table *table = make(16);
	uint32_t slot = intern(table, 1, 1);

	CU_ASSERT_EQUAL(neighbour_word(neighbour_table_words(table), slot), 0);
	CU_ASSERT_TRUE(learn(table, 1, mac_a, true, 50));
	CU_ASSERT_TRUE(has_mac(table, slot, mac_a));
	CU_ASSERT_EQUAL(intern(table, 1, 2), slot);
	CU_ASSERT_TRUE(has_mac(table, slot, mac_a));
	free(table);
}

static void answer_nobody_waits_for_is_not_learnt(void)
{
	struct neighbour_table *table = make(16);
	struct neighbour_answer other_port = {.port = 1, .address = address(1)};

	intern(table, 1, 1);
	CU_ASSERT_FALSE(learn(table, 2, mac_a, true, 50));
	CU_ASSERT_FALSE(neighbour_table_learn(table, &other_port, 50));
	free(table);
}

static void answer_without_override_does_not_replace(void)
{
	struct neighbour_table *table = make(16);
	uint32_t slot = intern(table, 1, 1);

	learn(table, 1, mac_a, false, 50);
	CU_ASSERT_TRUE(learn(table, 1, mac_b, false, 51));
	CU_ASSERT_TRUE(has_mac(table, slot, mac_a));
	CU_ASSERT_TRUE(learn(table, 1, mac_b, true, 52));
	CU_ASSERT_TRUE(has_mac(table, slot, mac_b));
	free(table);
}

static void unknown_neighbour_is_asked_with_growing_pauses(void)
{
	struct neighbour_table *table = make(16);
	struct neighbour_request request;
	uint32_t asked[16], count = 0;

	intern(table, 1, 1);
	for (uint32_t now_s = 0; now_s < 140; now_s++) {
		if (neighbour_table_due(table, now_s, &request, 1) == 1 && count < 16) {
			asked[count++] = now_s;
			CU_ASSERT_FALSE(request.known);
		}
	}
	static const uint32_t expected[] = {0, 1, 3, 7, 15, 31, 63, 95, 127};

	CU_ASSERT_EQUAL_FATAL(count, 9);
	CU_ASSERT_EQUAL(memcmp(asked, expected, sizeof(expected)), 0);
	free(table);
}

static void known_neighbour_is_asked_again_when_stale(void)
{
	struct neighbour_table *table = make(16);
	struct neighbour_request request;
	uint32_t slot = intern(table, 1, 1);

	CU_ASSERT_EQUAL(neighbour_table_due(table, 100, &request, 1), 1);
	learn(table, 1, mac_a, true, 100);
	for (uint32_t now_s = 101; now_s < 130; now_s++)
		CU_ASSERT_EQUAL(neighbour_table_due(table, now_s, &request, 1), 0);
	CU_ASSERT_EQUAL(neighbour_table_due(table, 138, &request, 1), 1);
	CU_ASSERT_TRUE(request.known);
	CU_ASSERT_EQUAL(memcmp(request.mac, mac_a, 6), 0);
	CU_ASSERT_EQUAL(neighbour_table_due(table, 138, &request, 1), 0);
	CU_ASSERT_EQUAL(neighbour_table_due(table, 139, &request, 1), 1);
	CU_ASSERT_TRUE(request.known);
	CU_ASSERT_EQUAL(neighbour_table_due(table, 141, &request, 1), 1);
	CU_ASSERT_FALSE(request.known); // silent twice: it may have another MAC now
	CU_ASSERT_TRUE(has_mac(table, slot, mac_a));
	learn(table, 1, mac_a, true, 142);
	CU_ASSERT_EQUAL(neighbour_table_due(table, 150, &request, 1), 0);
	free(table);
}

static void questions_beyond_the_capacity_come_next_time(void)
{
	struct neighbour_table *table = make(100);
	struct neighbour_request requests[100];
	bool asked[100] = {false};

	for (uint32_t i = 0; i < 100; i++)
		intern(table, i, 1);
	for (unsigned round = 0; round < 10; round++) {
		CU_ASSERT_EQUAL(neighbour_table_due(table, 7, requests, 10), 10);
		for (unsigned i = 0; i < 10; i++)
			asked[requests[i].slot] = true;
	}
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_TRUE(asked[i]);
	CU_ASSERT_EQUAL(neighbour_table_due(table, 7, requests, 10), 0);
	free(table);
}

static void full_table_refuses_and_keeps_what_it_has(void)
{
	struct neighbour_table *table = make(4);
	struct ip_addr fifth = address(5);
	uint32_t slot = 77;

	for (uint32_t i = 1; i <= 4; i++)
		intern(table, i, 1);
	CU_ASSERT_EQUAL(neighbour_table_intern(table, 0, &fifth, 2, &slot), -ENOSPC);
	CU_ASSERT_EQUAL(slot, 77);
	CU_ASSERT_TRUE(learn(table, 4, mac_a, true, 1));
	free(table);
}

static void slot_is_used_again_only_after_resting(void)
{
	struct neighbour_table *table = make(2);
	struct ip_addr third = address(3);
	uint32_t one = intern(table, 1, 1), two = intern(table, 2, 1), slot;

	learn(table, 1, mac_a, true, 1);
	CU_ASSERT_EQUAL(intern(table, 2, 2), two);
	CU_ASSERT_EQUAL(neighbour_table_collect(table, 2), 1);
	CU_ASSERT_FALSE(learn(table, 1, mac_b, true, 2));
	CU_ASSERT_TRUE(learn(table, 2, mac_b, true, 2));
	CU_ASSERT_EQUAL(neighbour_table_intern(table, 0, &third, 2, &slot), -ENOSPC);
	CU_ASSERT_EQUAL(neighbour_table_collect(table, 2), 0);
	CU_ASSERT_EQUAL(intern(table, 3, 2), one);
	CU_ASSERT_EQUAL(neighbour_word(neighbour_table_words(table), one), 0);
	CU_ASSERT_TRUE(has_mac(table, two, mac_b));
	free(table);
}

static void thousand_configurations_agree_with_a_plain_list(void)
{
	enum {
		NAMES = 300,
		SLOTS = 200
	};
	struct neighbour_table *table = make(SLOTS);
	uint64_t random = suite_seed();
	uint64_t used_by[NAMES] = {0};

	for (uint64_t epoch = 1; epoch <= 1000; epoch++) {
		for (unsigned i = 0; i < 60; i++) {
			uint32_t name = (uint32_t)(suite_random(&random) % NAMES);

			intern(table, name, epoch);
			used_by[name] = epoch;
		}
		neighbour_table_collect(table, epoch);
		for (uint32_t name = 0; name < NAMES; name++)
			CU_ASSERT_EQUAL_FATAL(
				learn(table, name, mac_a, true, 1), used_by[name] == epoch);
	}
	free(table);
}

static void view_says_what_stands_in_a_slot(void)
{
	struct neighbour_table *table = make(2);
	struct neighbour_view view;
	struct neighbour_request request;
	uint32_t slot = intern(table, 9, 1);

	CU_ASSERT_TRUE(neighbour_table_view(table, slot, 10, &view));
	CU_ASSERT_FALSE(view.known);
	neighbour_table_due(table, 10, &request, 1);
	neighbour_table_view(table, slot, 10, &view);
	CU_ASSERT_EQUAL(view.unanswered, 1);
	learn(table, 9, mac_a, true, 65534);
	CU_ASSERT_TRUE(neighbour_table_view(table, slot, 65537, &view));
	CU_ASSERT_TRUE(view.known);
	CU_ASSERT_EQUAL(view.age_s, 3);
	CU_ASSERT_EQUAL(view.unanswered, 0);
	CU_ASSERT_EQUAL(memcmp(view.mac, mac_a, 6), 0);
	CU_ASSERT_EQUAL(memcmp(view.address.bytes, address(9).bytes, 16), 0);
	CU_ASSERT_FALSE(neighbour_table_view(table, 1 - slot, 10, &view));
	free(table);
}

static const struct test_case cases[] = {
	{"answer_fills_the_slot_that_waits_for_it", answer_fills_the_slot_that_waits_for_it},
	{"answer_nobody_waits_for_is_not_learnt", answer_nobody_waits_for_is_not_learnt},
	{"answer_without_override_does_not_replace", answer_without_override_does_not_replace},
	{"unknown_neighbour_is_asked_with_growing_pauses",
		unknown_neighbour_is_asked_with_growing_pauses},
	{"known_neighbour_is_asked_again_when_stale", known_neighbour_is_asked_again_when_stale},
	{"questions_beyond_the_capacity_come_next_time",
		questions_beyond_the_capacity_come_next_time},
	{"full_table_refuses_and_keeps_what_it_has", full_table_refuses_and_keeps_what_it_has},
	{"slot_is_used_again_only_after_resting", slot_is_used_again_only_after_resting},
	{"thousand_configurations_agree_with_a_plain_list",
		thousand_configurations_agree_with_a_plain_list},
	{"view_says_what_stands_in_a_slot", view_says_what_stands_in_a_slot},
};

int main(void)
{
	return SUITE_RUN("neighbour_table", cases);
}
