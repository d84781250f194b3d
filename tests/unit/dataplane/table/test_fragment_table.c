// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table/fragment_table.h"

#include "tests/lib/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct fragment_table *make(void)
{
	return fragment_table_format(
		aligned_alloc(FRAGMENT_TABLE_ALIGN, fragment_table_footprint()));
}

static void later_fragment_finds_the_first_ones_choice(void)
{
	struct fragment_table *table = make();
	struct fragment_choice choice = {.service = 16383, .backend = 0xfffff, .uses_new = true},
			       found;

	CU_ASSERT_FALSE(fragment_table_find(table, 0, 100, &found));
	CU_ASSERT_FALSE(fragment_table_find(table, 12345, 100, &found));
	fragment_table_store(table, 12345, &choice, 100);
	CU_ASSERT_TRUE(fragment_table_find(table, 12345, 100, &found));
	CU_ASSERT_EQUAL(found.service, 16383);
	CU_ASSERT_EQUAL(found.backend, 0xfffff);
	CU_ASSERT_TRUE(found.uses_new);
	CU_ASSERT_FALSE(fragment_table_find(table, 12345 + FRAGMENT_TABLE_ENTRIES, 100, &found));
	CU_ASSERT_TRUE(fragment_table_find(table, 12345, 100 + FRAGMENT_TABLE_IDLE_S, &found));
	CU_ASSERT_FALSE(fragment_table_find(table, 12345, 101 + FRAGMENT_TABLE_IDLE_S, &found));
	free(table);
}

static void same_datagram_takes_one_place(void)
{
	struct fragment_table *table = make();
	struct fragment_choice choice = {.service = 1, .backend = 1}, found;

	for (uint32_t i = 0; i < 100; i++) {
		choice.backend = i;
		fragment_table_store(table, 7, &choice, i);
	}
	CU_ASSERT_TRUE(fragment_table_find(table, 7, 100, &found));
	CU_ASSERT_EQUAL(found.backend, 99);
	free(table);
}

static void full_line_gives_up_its_oldest(void)
{
	struct fragment_table *table = make();
	uint64_t line = FRAGMENT_TABLE_ENTRIES / 4;
	struct fragment_choice choice = {.service = 1}, found;

	for (uint32_t i = 0; i < 5; i++) {
		choice.backend = i;
		fragment_table_store(table, 3 + i * line, &choice, i == 2 ? 10 : 20 + i);
	}
	CU_ASSERT_FALSE(fragment_table_find(table, 3 + 2 * line, 25, &found));
	for (uint32_t i = 0; i < 5; i++) {
		if (i == 2)
			continue;
		CU_ASSERT_TRUE(fragment_table_find(table, 3 + i * line, 25, &found));
		CU_ASSERT_EQUAL(found.backend, i);
	}
	free(table);
}

// One thread writes two datagrams into one place in turn, this one reads: it must never see the choice of one under
// the hash of the other.
static atomic_bool stop;

static void *write_in_turn(void *argument)
{
	struct fragment_table *table = argument;
	uint64_t line = FRAGMENT_TABLE_ENTRIES / 4;

	for (uint32_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		struct fragment_choice choice = {.service = i % 8, .backend = i % 8};

		fragment_table_store(table, 1 + i % 8 * line, &choice, 1);
	}
	return NULL;
}

static void reader_on_another_core_sees_no_mixture(void)
{
	struct fragment_table *table = make();
	uint64_t line = FRAGMENT_TABLE_ENTRIES / 4, found_count = 0, wrong = 0;
	pthread_t writer;

	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&writer, NULL, write_in_turn, table), 0);
	for (uint32_t i = 0; i < 4000000 || (found_count < 1000 && i < 2000000000); i++) {
		struct fragment_choice found;

		if (!fragment_table_find(table, 1 + i % 8 * line, 1, &found))
			continue;
		found_count++;
		wrong += found.backend != i % 8 || found.service != i % 8;
	}
	atomic_store(&stop, true);
	pthread_join(writer, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(found_count >= 1000);
	free(table);
}

static const struct test_case cases[] = {
	{"later_fragment_finds_the_first_ones_choice", later_fragment_finds_the_first_ones_choice},
	{"same_datagram_takes_one_place", same_datagram_takes_one_place},
	{"full_line_gives_up_its_oldest", full_line_gives_up_its_oldest},
	{"reader_on_another_core_sees_no_mixture", reader_on_another_core_sees_no_mixture},
};

int main(void)
{
	return SUITE_RUN("fragment_table", cases);
}
