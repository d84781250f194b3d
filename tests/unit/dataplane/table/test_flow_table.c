// SPDX-License-Identifier: Apache-2.0
// The flow table against its naive twin, and the rules that users care about one by one.
#include "dataplane/table/flow_table.h"

#include "common/hash.h"

#include "tests/lib/suite.h"
#include "tests/oracle/flow_list.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NOW 1000000u

static const struct flow_idle idle = {
	.syn_s = 30, .established_s = 900, .closing_s = 30, .udp_s = 60};

static struct flow_table *make(uint32_t entries, uint32_t now_s)
{
	void *memory = NULL;

	CU_ASSERT_EQUAL_FATAL(
		posix_memalign(&memory, FLOW_TABLE_ALIGN, flow_table_footprint(entries)), 0);
	return flow_table_format(memory, entries, now_s);
}

static struct flow_entry find(struct flow_table *table, uint64_t hash)
{
	struct flow_entry ret;

	flow_table_find_burst(table, &hash, 1, &ret);
	return ret;
}

static enum flow_insert insert(
	struct flow_table *table, uint64_t hash, enum flow_event event, uint32_t backend)
{
	struct flow_choice choice = {.backend = backend};
	struct flow_entry entry;

	return flow_table_insert(table, hash, event, &choice, &idle, &entry);
}

// One packet of a flow: advances it, or stores it. Returns what the pipeline would count.
static bool packet(struct flow_table *table, uint64_t hash, enum flow_event event)
{
	struct flow_entry entry = find(table, hash);

	if (entry.slot != NULL && !flow_word_restarts(entry.word, event))
		return flow_table_advance(table, &entry, event, &idle);
	insert(table, hash, event, 7);
	return false;
}

static void establish(struct flow_table *table, uint64_t hash)
{
	packet(table, hash, FLOW_EVENT_SYN);
	packet(table, hash, FLOW_EVENT_DATA);
	packet(table, hash, FLOW_EVENT_DATA);
	packet(table, hash, FLOW_EVENT_DATA);
}

// A hash in a chosen bucket with a chosen tag.
static uint64_t hash_in(uint64_t bucket, uint64_t tag)
{
	return bucket | tag << FLOW_WORD_TAG_HASH_SHIFT;
}

// Fills the bucket beside another with established flows, so that a test can look at that one alone.
static void fill_neighbour(struct flow_table *table, uint64_t bucket)
{
	for (uint64_t i = 101; i <= 108; i++)
		establish(table, hash_in(bucket ^ 1, i));
}

static void footprint_is_eight_bytes_an_entry(void)
{
	CU_ASSERT_EQUAL(flow_table_footprint(1), 4096 + 64 * 8);
	CU_ASSERT_EQUAL(flow_table_footprint(64), 4096 + 64 * 8);
	CU_ASSERT_EQUAL(flow_table_footprint(65), 4096 + 128 * 8);
	CU_ASSERT_EQUAL(flow_table_footprint(1048576), 4096 + 1048576 * 8);
	CU_ASSERT_EQUAL(flow_table_capacity(FLOW_TABLE_ENTRIES_MAX), UINT64_C(1) << 31);
}

static void flow_is_found_with_what_was_stored(void)
{
	struct flow_table *table = make(1024, NOW);
	struct flow_choice choice = {.backend = 0xfffff, .uses_new = true};
	struct flow_entry entry;
	uint64_t hash = 0x0123456789abcdef;

	CU_ASSERT_PTR_NULL(find(table, hash).slot);
	CU_ASSERT_EQUAL(flow_table_insert(table, hash, FLOW_EVENT_SYN, &choice, &idle, &entry),
		FLOW_INSERT_FREE);
	CU_ASSERT_PTR_EQUAL(find(table, hash).slot, entry.slot);
	CU_ASSERT_EQUAL(flow_word_backend(entry.word), 0xfffff);
	CU_ASSERT_TRUE(flow_word_uses_new(entry.word));
	CU_ASSERT_EQUAL(flow_word_state(entry.word), FLOW_STATE_SYN);
	CU_ASSERT_EQUAL(flow_word_remaining_s(entry.word, NOW), 31);
	CU_ASSERT_EQUAL(flow_table_peek(table, hash, NOW), entry.word);
	CU_ASSERT_EQUAL(flow_table_peek(table, hash ^ 2, NOW), 0);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 1);
	free(table);
}

static void flow_with_tag_zero_is_not_found_in_free_places(void)
{
	struct flow_table *table = make(64, NOW);

	for (uint64_t bucket = 0; bucket < 8; bucket++)
		CU_ASSERT_PTR_NULL(find(table, hash_in(bucket, 0)).slot);
	insert(table, hash_in(3, 0), FLOW_EVENT_UDP, 5);
	CU_ASSERT_EQUAL(flow_word_backend(find(table, hash_in(3, 0)).word), 5);
	free(table);
}

static void busy_flow_is_written_once_a_granule(void)
{
	struct flow_table *table = make(64, NOW);
	unsigned writes = 0;

	establish(table, 99);
	uint64_t before = find(table, 99).word;

	for (uint32_t second = 1; second <= 280; second++) {
		flow_table_tick(table, NOW + second);
		for (unsigned i = 0; i < 3; i++)
			packet(table, 99, FLOW_EVENT_DATA);
		uint64_t word = find(table, 99).word;

		writes += word != before;
		before = word;
		CU_ASSERT(flow_word_remaining_s(word, NOW + second) > idle.established_s);
	}
	CU_ASSERT_EQUAL(writes, 10); // 900 / 32 = 28 s apart
	free(table);
}

static void idle_flow_lives_its_idle_time_and_not_much_longer(void)
{
	static const struct {
		enum flow_event events[4];
		unsigned count;
		uint32_t idle_s;
	} cases[] = {
		{{FLOW_EVENT_SYN}, 1, 30},
		{{FLOW_EVENT_SYN, FLOW_EVENT_DATA, FLOW_EVENT_DATA}, 3, 900},
		{{FLOW_EVENT_SYN, FLOW_EVENT_DATA, FLOW_EVENT_FIN}, 3, 30},
		{{FLOW_EVENT_SYN, FLOW_EVENT_RST}, 2, 30},
		{{FLOW_EVENT_DATA}, 1, 900},
		{{FLOW_EVENT_UDP}, 1, 60},
		{{FLOW_EVENT_UDP, FLOW_EVENT_UDP}, 2, 60},
	};

	for (unsigned n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct flow_table *table = make(64, NOW);

		for (unsigned i = 0; i < cases[n].count; i++)
			packet(table, 5, cases[n].events[i]);
		flow_table_tick(table, NOW + cases[n].idle_s);
		CU_ASSERT_PTR_NOT_NULL(find(table, 5).slot);
		flow_table_tick(table, NOW + cases[n].idle_s + cases[n].idle_s / 32 + 1);
		CU_ASSERT_PTR_NULL(find(table, 5).slot);
		free(table);
	}
}

static void retransmitted_syn_keeps_the_flow(void)
{
	struct flow_table *table = make(64, NOW);

	establish(table, 5);
	CU_ASSERT_FALSE(packet(table, 5, FLOW_EVENT_SYN));
	CU_ASSERT_EQUAL(flow_word_state(find(table, 5).word), FLOW_STATE_ESTABLISHED);
	CU_ASSERT_EQUAL(insert(table, 5, FLOW_EVENT_SYN, 8), FLOW_INSERT_FOUND);
	CU_ASSERT_EQUAL(flow_word_backend(find(table, 5).word), 7);
	free(table);
}

static void syn_on_a_closing_flow_starts_a_new_one(void)
{
	struct flow_table *table = make(64, NOW);

	establish(table, 5);
	packet(table, 5, FLOW_EVENT_FIN);
	CU_ASSERT_TRUE(flow_word_restarts(find(table, 5).word, FLOW_EVENT_SYN));
	CU_ASSERT_FALSE(flow_word_restarts(find(table, 5).word, FLOW_EVENT_DATA));
	CU_ASSERT_EQUAL(insert(table, 5, FLOW_EVENT_SYN, 8), FLOW_INSERT_FREE);
	CU_ASSERT_EQUAL(flow_word_backend(find(table, 5).word), 8);
	CU_ASSERT_EQUAL(flow_word_state(find(table, 5).word), FLOW_STATE_SYN);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 1);
	free(table);
}

static void early_aborts_count_once_a_flow(void)
{
	struct flow_table *table = make(64, NOW);

	packet(table, 1, FLOW_EVENT_SYN);
	CU_ASSERT_TRUE(packet(table, 1, FLOW_EVENT_SYN));
	CU_ASSERT_FALSE(packet(table, 1, FLOW_EVENT_SYN));
	CU_ASSERT_FALSE(packet(table, 1, FLOW_EVENT_RST));

	packet(table, 2, FLOW_EVENT_SYN);
	packet(table, 2, FLOW_EVENT_DATA);
	packet(table, 2, FLOW_EVENT_DATA);
	CU_ASSERT_TRUE(packet(table, 2, FLOW_EVENT_RST));
	CU_ASSERT_FALSE(packet(table, 2, FLOW_EVENT_RST));

	establish(table, 3);
	CU_ASSERT_FALSE(packet(table, 3, FLOW_EVENT_RST));

	packet(table, 4, FLOW_EVENT_SYN);
	packet(table, 4, FLOW_EVENT_DATA);
	CU_ASSERT_FALSE(packet(table, 4, FLOW_EVENT_FIN));
	free(table);
}

static void fin_or_rst_of_an_unknown_flow_stores_nothing(void)
{
	struct flow_table *table = make(64, NOW);

	CU_ASSERT_EQUAL(insert(table, 1, FLOW_EVENT_FIN, 1), FLOW_INSERT_NOT_WORTH_STORING);
	CU_ASSERT_EQUAL(insert(table, 1, FLOW_EVENT_RST, 1), FLOW_INSERT_NOT_WORTH_STORING);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 0);
	free(table);
}

static void flow_that_finds_its_bucket_full_lives_next_door(void)
{
	struct flow_table *table = make(64, NOW);
	uint64_t hashes[16];
	struct flow_entry found[16];

	for (uint64_t i = 0; i < 16; i++) {
		hashes[i] = hash_in(2, i + 1);
		CU_ASSERT_EQUAL(insert(table, hashes[i], i < 8 ? FLOW_EVENT_SYN : FLOW_EVENT_DATA,
					(uint32_t)i),
			FLOW_INSERT_FREE);
	}
	flow_table_find_burst(table, hashes, 16, found);
	for (unsigned i = 0; i < 16; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(found[i].slot);
		CU_ASSERT_EQUAL(flow_word_backend(found[i].word), i);
		CU_ASSERT_EQUAL((found[i].slot - flow_table_entries(table)) / 8, i < 8 ? 2 : 3);
		CU_ASSERT_EQUAL(flow_table_peek(table, hashes[i], NOW), found[i].word);
	}
	// Its own bucket has room again: it is still found, and not stored twice.
	flow_table_tick(table, NOW + 40);
	CU_ASSERT_PTR_NULL(find(table, hashes[0]).slot);
	CU_ASSERT_PTR_EQUAL(find(table, hashes[12]).slot, found[12].slot);
	CU_ASSERT_EQUAL(insert(table, hashes[12], FLOW_EVENT_DATA, 99), FLOW_INSERT_FOUND);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW + 40), 8);
	free(table);
}

static void full_bucket_of_established_flows_refuses_a_syn(void)
{
	struct flow_table *table = make(64, NOW);

	fill_neighbour(table, 2);
	for (uint64_t i = 1; i <= 8; i++)
		establish(table, hash_in(2, i));
	// However long they were idle, as long as they live.
	flow_table_tick(table, NOW + 899);
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 9), FLOW_EVENT_SYN, 1), FLOW_INSERT_REFUSED);
	// Other packets may take the place of one that used more than half of its time.
	CU_ASSERT_EQUAL(
		insert(table, hash_in(2, 10), FLOW_EVENT_DATA, 1), FLOW_INSERT_EVICT_OLDEST);
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 9), FLOW_EVENT_SYN, 1), FLOW_INSERT_REFUSED);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW + 899), 16);
	free(table);
}

static void full_bucket_of_young_established_flows_refuses_all(void)
{
	struct flow_table *table = make(64, NOW);

	fill_neighbour(table, 2);
	for (uint64_t i = 1; i <= 8; i++)
		establish(table, hash_in(2, i));
	flow_table_tick(table, NOW + 400);
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 9), FLOW_EVENT_SYN, 1), FLOW_INSERT_REFUSED);
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 9), FLOW_EVENT_DATA, 1), FLOW_INSERT_REFUSED);
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 9), FLOW_EVENT_UDP, 1), FLOW_INSERT_REFUSED);
	free(table);
}

static void full_bucket_evicts_expired_then_unproven_then_oldest(void)
{
	struct flow_table *table = make(64, NOW);
	uint32_t now_s = NOW;

	fill_neighbour(table, 2);
	establish(table, hash_in(2, 1));
	packet(table, hash_in(2, 2), FLOW_EVENT_DATA); // midway
	flow_table_tick(table, now_s += 500);
	for (uint64_t i = 3; i <= 5; i++)
		establish(table, hash_in(2, i));
	packet(table, hash_in(2, 6), FLOW_EVENT_SYN);
	flow_table_tick(table, now_s += 10);
	packet(table, hash_in(2, 7), FLOW_EVENT_UDP);
	packet(table, hash_in(2, 8), FLOW_EVENT_SYN);
	flow_table_tick(table, now_s += 25); // 6 expires, 8 does not
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 20), FLOW_EVENT_DATA, 1), FLOW_INSERT_EXPIRED);
	CU_ASSERT_PTR_NULL(find(table, hash_in(2, 6)).slot);
	CU_ASSERT_EQUAL(
		insert(table, hash_in(2, 21), FLOW_EVENT_SYN, 1), FLOW_INSERT_EVICT_UNPROVEN);
	CU_ASSERT_PTR_NULL(find(table, hash_in(2, 8)).slot); // nearer to its deadline than 7
	CU_ASSERT_EQUAL(
		insert(table, hash_in(2, 22), FLOW_EVENT_DATA, 1), FLOW_INSERT_EVICT_UNPROVEN);
	CU_ASSERT_PTR_NULL(find(table, hash_in(2, 21)).slot);
	CU_ASSERT_EQUAL(
		insert(table, hash_in(2, 23), FLOW_EVENT_DATA, 1), FLOW_INSERT_EVICT_UNPROVEN);
	CU_ASSERT_PTR_NULL(find(table, hash_in(2, 7)).slot);
	for (uint64_t i = 20; i <= 23; i++)
		packet(table, hash_in(2, i), FLOW_EVENT_DATA); // proven now
	CU_ASSERT_EQUAL(insert(table, hash_in(2, 24), FLOW_EVENT_SYN, 1), FLOW_INSERT_REFUSED);
	CU_ASSERT_EQUAL(
		insert(table, hash_in(2, 24), FLOW_EVENT_DATA, 1), FLOW_INSERT_EVICT_UNPROVEN);
	CU_ASSERT_PTR_NULL(find(table, hash_in(2, 2)).slot);
	packet(table, hash_in(2, 24), FLOW_EVENT_DATA);
	CU_ASSERT_EQUAL(
		insert(table, hash_in(2, 25), FLOW_EVENT_DATA, 1), FLOW_INSERT_EVICT_OLDEST);
	CU_ASSERT_PTR_NULL(find(table, hash_in(2, 1)).slot);
	CU_ASSERT_PTR_NOT_NULL(find(table, hash_in(2, 3)).slot);
	free(table);
}

static void syn_flood_of_ten_times_the_capacity_leaves_established_flows(void)
{
	uint64_t random = suite_seed();
	uint32_t entries = 4096;
	struct flow_table *table = make(entries, NOW);
	uint32_t flow_count = entries / 4 * 3;
	uint64_t *flows = calloc(flow_count, sizeof(*flows));
	uint64_t stored = 0, counts[FLOW_INSERT_NOT_WORTH_STORING + 1] = {0};
	uint32_t now_s = NOW;

	for (unsigned i = 0; i < flow_count; i++) {
		flows[i] = suite_random(&random);
		establish(table, flows[i]);
		stored += find(table, flows[i]).slot != NULL;
	}
	CU_ASSERT(stored > flow_count / 100 * 90);
	for (unsigned i = 0; i < 10 * entries; i++) {
		if (i % 512 == 0)
			flow_table_tick(table, ++now_s);
		counts[insert(table, suite_random(&random), FLOW_EVENT_SYN, 1)]++;
	}
	uint64_t left = 0;

	for (unsigned i = 0; i < flow_count; i++)
		left += find(table, flows[i]).slot != NULL;
	CU_ASSERT_EQUAL(left, stored);
	CU_ASSERT_EQUAL(counts[FLOW_INSERT_EVICT_OLDEST], 0);
	CU_ASSERT(counts[FLOW_INSERT_EVICT_UNPROVEN] + counts[FLOW_INSERT_EXPIRED] > 5 * entries);
	CU_ASSERT(counts[FLOW_INSERT_REFUSED] > 0);
	// The flood has an end: half a minute later its entries are gone.
	flow_table_tick(table, now_s + 32);
	CU_ASSERT_EQUAL(flow_table_count(table, now_s + 32), stored);
	free(flows);
	free(table);
}

static void compare_item(const struct flow_list_item *item, uint64_t word, uint32_t now_s)
{
	CU_ASSERT_EQUAL_FATAL(flow_word_state(word), item->state);
	CU_ASSERT_EQUAL_FATAL(flow_word_backend(word), item->backend);
	CU_ASSERT_EQUAL_FATAL(flow_word_uses_new(word), item->uses_new);
	CU_ASSERT_EQUAL_FATAL(flow_word_remaining_s(word, now_s), item->deadline_s - now_s);
}

struct twins {
	struct flow_table *table;
	struct flow_list *list;
	uint64_t random;
	uint32_t now_s;
	struct flow_idle idle;
};

static void twin_packet(struct twins *twins, uint64_t hash, enum flow_event event)
{
	struct flow_entry entry = find(twins->table, hash);
	struct flow_list_item *item = flow_list_find(twins->list, hash);

	CU_ASSERT_EQUAL_FATAL(entry.slot != NULL, item != NULL);
	if (item != NULL)
		compare_item(item, entry.word, twins->now_s);
	if (item != NULL && !flow_word_restarts(entry.word, event)) {
		bool abort = flow_table_advance(twins->table, &entry, event, &twins->idle);

		CU_ASSERT_EQUAL_FATAL(
			abort, flow_list_advance(twins->list, item, event, &twins->idle));
		compare_item(item, entry.word, twins->now_s);
		return;
	}
	struct flow_choice choice = {.backend = suite_random(&twins->random) & 0xfffff,
		.uses_new = suite_random(&twins->random) & 1};

	CU_ASSERT_EQUAL_FATAL(
		flow_table_insert(twins->table, hash, event, &choice, &twins->idle, &entry),
		flow_list_insert(twins->list, hash, event, &choice, &twins->idle));
}

static void twin_sweep(struct twins *twins)
{
	struct flow_sweep sweep = {.wrapped = false};
	uint64_t expired = 0, half_open = 0, list_half_open;

	while (!sweep.wrapped) {
		flow_table_sweep(twins->table, 5, &sweep);
		expired += sweep.expired;
		half_open += sweep.half_open;
	}
	CU_ASSERT_EQUAL_FATAL(expired, flow_list_sweep(twins->list, &list_half_open));
	CU_ASSERT_EQUAL_FATAL(half_open, list_half_open);
	CU_ASSERT_EQUAL_FATAL(
		flow_table_count(twins->table, twins->now_s), flow_list_count(twins->list));
}

// 200,000 packets of a few hundred flows over three buckets' worth of collisions, with time that creeps, jumps and
// wraps the 13 bits of the deadline many times.
static void random_packets_agree_with_the_naive_twin(void)
{
	struct twins twins = {.table = make(128, NOW),
		.list = flow_list_make(16, NOW),
		.random = suite_seed(),
		.now_s = NOW,
		.idle = idle};
	unsigned since_sweep_s = 0;

	for (unsigned i = 0; i < 200000; i++) {
		uint64_t dice = suite_random(&twins.random);
		uint64_t hash = hash_in(dice % 16, (dice >> 8) % 24 * 0x10001);
		uint32_t step_s = dice >> 32 & 15  ? 0
			: (dice >> 36) % 1000 == 0 ? 2000
						   : (dice >> 36) % 20;

		twins.now_s += step_s;
		twins.list->now_s += step_s;
		since_sweep_s += step_s;
		flow_table_tick(twins.table, twins.now_s);
		// A jump beyond the gap forgets at once what the list forgets when it is swept.
		if (step_s > FLOW_TABLE_GAP_MAX_S)
			for (uint64_t n = 0; n < 128; n++)
				twins.list->items[n].used &=
					twins.list->items[n].deadline_s > twins.list->now_s;
		if (since_sweep_s > 100) {
			twin_sweep(&twins);
			since_sweep_s = 0;
		}
		if (dice >> 60 == 0)
			twins.idle.established_s =
				(uint16_t)(1 + suite_random(&twins.random) % FLOW_TABLE_IDLE_MAX_S);
		twin_packet(&twins, hash, (dice >> 48) % FLOW_EVENT_COUNT);
	}
	CU_ASSERT(twins.now_s - NOW > 4 * 8192);
	flow_list_free(twins.list);
	free(twins.table);
}

static void half_open_flow_is_reported_once_after_a_whole_round(void)
{
	struct flow_table *table = make(64, NOW);
	struct flow_sweep sweep;

	insert(table, hash_in(1, 1), FLOW_EVENT_SYN, 77);
	establish(table, hash_in(1, 2));
	flow_table_sweep(table, 8, &sweep);
	CU_ASSERT_TRUE(sweep.wrapped);
	CU_ASSERT_EQUAL(sweep.live, 2);
	CU_ASSERT_EQUAL(sweep.half_open, 0);
	flow_table_sweep(table, 8, &sweep);
	CU_ASSERT_EQUAL_FATAL(sweep.half_open, 1);
	CU_ASSERT_EQUAL(flow_word_backend(sweep.half_open_words[0]), 77);
	flow_table_sweep(table, 8, &sweep);
	CU_ASSERT_EQUAL(sweep.half_open, 0);
	// A packet after all: the flow lives on, and is not counted again.
	packet(table, hash_in(1, 1), FLOW_EVENT_DATA);
	CU_ASSERT_FALSE(packet(table, hash_in(1, 1), FLOW_EVENT_RST));
	free(table);
}

static void long_pause_wraps_no_deadline(void)
{
	struct flow_table *table = make(64, NOW);

	establish(table, 5);
	// Without the visit of all entries, 8192 - 100 s later the flow would look alive again.
	flow_table_tick(table, NOW + 8192 - 100);
	CU_ASSERT_PTR_NULL(find(table, 5).slot);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW + 8192 - 100), 0);
	free(table);
}

static void clock_that_goes_back_is_ignored(void)
{
	struct flow_table *table = make(64, NOW);

	insert(table, 5, FLOW_EVENT_SYN, 1);
	flow_table_tick(table, NOW - 50);
	CU_ASSERT_EQUAL(table->clock_s, NOW);
	CU_ASSERT_PTR_NOT_NULL(find(table, 5).slot);
	free(table);
}

static void entry_given_away_within_a_burst_is_not_touched(void)
{
	struct flow_table *table = make(64, NOW);
	struct flow_entry stale;
	struct flow_choice choice = {.backend = 3};

	fill_neighbour(table, 0);
	for (uint64_t i = 1; i <= 8; i++)
		insert(table, hash_in(0, i), FLOW_EVENT_SYN, 1);
	stale = find(table, hash_in(0, 1));
	CU_ASSERT_EQUAL(
		insert(table, hash_in(0, 9), FLOW_EVENT_DATA, 9), FLOW_INSERT_EVICT_UNPROVEN);
	CU_ASSERT_PTR_NULL(find(table, hash_in(0, 1)).slot);
	CU_ASSERT_FALSE(flow_table_advance(table, &stale, FLOW_EVENT_RST, &idle));
	flow_table_reroute(&stale, &choice);
	CU_ASSERT_EQUAL(flow_word_backend(find(table, hash_in(0, 9)).word), 9);
	CU_ASSERT_EQUAL(flow_word_state(find(table, hash_in(0, 9)).word), FLOW_STATE_MIDWAY);
	free(table);
}

static void rerouted_flow_keeps_state_and_deadline(void)
{
	struct flow_table *table = make(64, NOW);
	struct flow_choice choice = {.backend = 3, .uses_new = true};

	establish(table, 5);
	struct flow_entry entry = find(table, 5);

	flow_table_reroute(&entry, &choice);
	CU_ASSERT_EQUAL(flow_word_backend(find(table, 5).word), 3);
	CU_ASSERT_TRUE(flow_word_uses_new(find(table, 5).word));
	CU_ASSERT_EQUAL(flow_word_state(find(table, 5).word), FLOW_STATE_ESTABLISHED);
	CU_ASSERT_EQUAL(flow_word_remaining_s(find(table, 5).word, NOW), 928);
	free(table);
}

static void flow_of_another_worker_moves_in_as_it_is(void)
{
	struct flow_table *there = make(64, NOW), *here = make(1024, NOW);
	struct flow_entry entry;

	establish(there, 0x123456789abcdef0);
	uint64_t word = flow_table_peek(there, 0x123456789abcdef0, NOW + 5);

	CU_ASSERT_NOT_EQUAL_FATAL(word, 0);
	CU_ASSERT_EQUAL(
		flow_table_insert_word(here, 0x123456789abcdef0, word, &entry), FLOW_INSERT_FREE);
	CU_ASSERT_EQUAL(find(here, 0x123456789abcdef0).word, word);
	CU_ASSERT_EQUAL(flow_table_peek(there, 0x123456789abcdef0, NOW + 929), 0);
	free(there);
	free(here);
}

static void table_left_by_another_process_is_taken_over(void)
{
	uint32_t entries = 1024;
	struct flow_table *table = make(entries, NOW), *again;
	struct flow_identity identity = {.id_space = "fleet", .hash_seed = "seed"};
	uint64_t bytes = flow_table_footprint(entries), kept;

	flow_table_adopt(table, &identity);
	for (uint64_t i = 1; i <= 100; i++)
		establish(table, i * 0x9e3779b97f4a7c15);
	for (uint64_t i = 101; i <= 150; i++)
		insert(table, i * 0x9e3779b97f4a7c15, FLOW_EVENT_SYN, 1);
	CU_ASSERT_EQUAL(flow_table_open(table, bytes, entries, NOW + 1, &again, &kept), 0);
	CU_ASSERT_EQUAL(kept, 150);
	CU_ASSERT_FALSE(flow_table_adopt(again, &identity));
	CU_ASSERT_EQUAL(flow_table_open(table, bytes, entries, NOW + 100, &again, &kept), 0);
	CU_ASSERT_EQUAL(kept, 100);
	// Longer than the deadline's 13 bits: judged by the table's own clock, so nothing comes back to life.
	CU_ASSERT_EQUAL(flow_table_open(table, bytes, entries, NOW + 8192 + 10, &again, &kept), 0);
	CU_ASSERT_EQUAL(kept, 0);
	free(table);
}

static void words_that_are_no_entries_are_dropped_when_taken_over(void)
{
	uint64_t random = suite_seed(), kept, live = 0;
	uint32_t entries = 4096;
	struct flow_table *table = make(entries, NOW), *again;

	for (unsigned i = 0; i < entries; i++)
		flow_table_entries(table)[i] = suite_random(&random);
	CU_ASSERT_EQUAL(
		flow_table_open(table, flow_table_footprint(entries), entries, NOW, &again, &kept),
		0);
	for (unsigned i = 0; i < entries; i++) {
		uint64_t word = flow_table_entries(table)[i];

		live += word != 0;
		CU_ASSERT(word == 0 ||
			(flow_word_state(word) > FLOW_STATE_FREE &&
				flow_word_state(word) < FLOW_STATE_COUNT));
	}
	CU_ASSERT_EQUAL(live, kept);
	CU_ASSERT(kept < entries);
	free(table);
}

static void table_that_does_not_match_is_refused(void)
{
	uint32_t entries = 1024;
	struct flow_table *table = make(entries, NOW), *again = NULL;
	uint64_t bytes = flow_table_footprint(entries), kept = 42;

	CU_ASSERT_EQUAL(flow_table_open(table, bytes, 2048, NOW, &again, &kept), -ENOSPC);
	CU_ASSERT_EQUAL(flow_table_open(table, bytes - 1, entries, NOW, &again, &kept), -ENOSPC);
	CU_ASSERT_EQUAL(flow_table_open(table, 4095, entries, NOW, &again, &kept), -EINVAL);
	CU_ASSERT_EQUAL(flow_table_open(table, bytes, entries, NOW - 1, &again, &kept), -ESTALE);
	// Each bit of the checked part of the header.
	for (unsigned bit = 0; bit < 40 * 8; bit++) {
		((uint8_t *)table)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CU_ASSERT(flow_table_open(table, bytes, entries, NOW, &again, &kept) < 0);
		((uint8_t *)table)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	CU_ASSERT_EQUAL(kept, 42);
	CU_ASSERT_PTR_NULL(again);
	CU_ASSERT_EQUAL(flow_table_open(table, bytes, entries, NOW, &again, &kept), 0);
	free(table);
}

static void table_of_another_id_space_or_seed_is_emptied(void)
{
	struct flow_table *table = make(64, NOW);
	struct flow_identity a = {.id_space = "a"}, b = {.id_space = "b"};
	struct flow_identity c = {.id_space = "b", .hash_seed = "x"};

	CU_ASSERT_TRUE(flow_table_adopt(table, &a));
	establish(table, 5);
	CU_ASSERT_FALSE(flow_table_adopt(table, &a));
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 1);
	CU_ASSERT_TRUE(flow_table_adopt(table, &b));
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 0);
	establish(table, 5);
	CU_ASSERT_TRUE(flow_table_adopt(table, &c));
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 0);
	free(table);
}

// Other cores read while the owner stores, evicts, reroutes and sweeps. Flow n only ever gets backends n * 16 .. n * 16 +
// 15, so a word that mixes two flows, or two times, would show.
enum {
	SHARED_FLOWS = 4096
};

static atomic_bool stop;

static uint64_t shared_hash(uint64_t n)
{
	return hash_splitmix64(n);
}

static void *own(void *argument)
{
	struct flow_table *table = argument;
	uint64_t random = 1;
	struct flow_sweep sweep;
	uint32_t now_s = NOW;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		uint64_t n = suite_random(&random) % SHARED_FLOWS;
		struct flow_choice choice = {
			.backend = (uint32_t)(n * 16 + suite_random(&random) % 16)};
		struct flow_entry entry = find(table, shared_hash(n));

		if (entry.slot == NULL)
			flow_table_insert(table, shared_hash(n), n % FLOW_EVENT_COUNT, &choice,
				&idle, &entry);
		else if (n % 3 == 0)
			flow_table_reroute(&entry, &choice);
		else
			flow_table_advance(table, &entry, FLOW_EVENT_DATA, &idle);
		if (suite_random(&random) % 1000 == 0) {
			flow_table_tick(table, now_s += 3);
			flow_table_sweep(table, 64, &sweep);
		}
	}
	return NULL;
}

static void readers_on_other_cores_see_whole_entries(void)
{
	struct flow_table *table = make(2048, NOW);
	uint64_t random = suite_seed(), found = 0, wrong = 0;
	pthread_t owner;

	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&owner, NULL, own, table), 0);
	for (unsigned i = 0; i < 2000000 || (found < 1000 && i < 200000000); i++) {
		uint64_t n = suite_random(&random) % SHARED_FLOWS;
		uint64_t word = flow_table_peek(
			table, shared_hash(n), __atomic_load_n(&table->clock_s, __ATOMIC_RELAXED));

		if (word == 0)
			continue;
		found++;
		wrong += flow_word_backend(word) / 16 != n ||
			flow_word_state(word) == FLOW_STATE_FREE ||
			flow_word_state(word) >= FLOW_STATE_COUNT;
	}
	atomic_store(&stop, true);
	pthread_join(owner, NULL);
	CU_ASSERT(found >= 1000);
	CU_ASSERT_EQUAL(wrong, 0);
	free(table);
}

// The bound in flow_table.h: 16 / 2^26 for full buckets. 16.8 million look-ups of absent flows in full buckets, expected
// 4 false hits; more than 20 has a probability below 1e-8.
static void false_hits_are_as_rare_as_promised(void)
{
	uint64_t random = suite_seed(), false_hits = 0;
	struct flow_table *table = make(1024, NOW);

	for (unsigned i = 0; i < 64 * 1024; i++)
		insert(table, suite_random(&random), FLOW_EVENT_SYN, 1);
	CU_ASSERT_EQUAL(flow_table_count(table, NOW), 1024);
	for (unsigned i = 0; i < 1u << 19; i++) {
		uint64_t hashes[32];
		struct flow_entry entries[32];

		for (unsigned n = 0; n < 32; n++)
			hashes[n] = suite_random(&random);
		flow_table_find_burst(table, hashes, 32, entries);
		for (unsigned n = 0; n < 32; n++)
			false_hits += entries[n].slot != NULL;
	}
	CU_ASSERT(false_hits <= 20);
	free(table);
}

static const struct test_case cases[] = {
	{"footprint_is_eight_bytes_an_entry", footprint_is_eight_bytes_an_entry},
	{"flow_is_found_with_what_was_stored", flow_is_found_with_what_was_stored},
	{"flow_with_tag_zero_is_not_found_in_free_places",
		flow_with_tag_zero_is_not_found_in_free_places},
	{"busy_flow_is_written_once_a_granule", busy_flow_is_written_once_a_granule},
	{"idle_flow_lives_its_idle_time_and_not_much_longer",
		idle_flow_lives_its_idle_time_and_not_much_longer},
	{"retransmitted_syn_keeps_the_flow", retransmitted_syn_keeps_the_flow},
	{"syn_on_a_closing_flow_starts_a_new_one", syn_on_a_closing_flow_starts_a_new_one},
	{"early_aborts_count_once_a_flow", early_aborts_count_once_a_flow},
	{"fin_or_rst_of_an_unknown_flow_stores_nothing",
		fin_or_rst_of_an_unknown_flow_stores_nothing},
	{"flow_that_finds_its_bucket_full_lives_next_door",
		flow_that_finds_its_bucket_full_lives_next_door},
	{"full_bucket_of_established_flows_refuses_a_syn",
		full_bucket_of_established_flows_refuses_a_syn},
	{"full_bucket_of_young_established_flows_refuses_all",
		full_bucket_of_young_established_flows_refuses_all},
	{"full_bucket_evicts_expired_then_unproven_then_oldest",
		full_bucket_evicts_expired_then_unproven_then_oldest},
	{"syn_flood_of_ten_times_the_capacity_leaves_established_flows",
		syn_flood_of_ten_times_the_capacity_leaves_established_flows},
	{"random_packets_agree_with_the_naive_twin", random_packets_agree_with_the_naive_twin},
	{"half_open_flow_is_reported_once_after_a_whole_round",
		half_open_flow_is_reported_once_after_a_whole_round},
	{"long_pause_wraps_no_deadline", long_pause_wraps_no_deadline},
	{"clock_that_goes_back_is_ignored", clock_that_goes_back_is_ignored},
	{"entry_given_away_within_a_burst_is_not_touched",
		entry_given_away_within_a_burst_is_not_touched},
	{"rerouted_flow_keeps_state_and_deadline", rerouted_flow_keeps_state_and_deadline},
	{"flow_of_another_worker_moves_in_as_it_is", flow_of_another_worker_moves_in_as_it_is},
	{"table_left_by_another_process_is_taken_over",
		table_left_by_another_process_is_taken_over},
	{"words_that_are_no_entries_are_dropped_when_taken_over",
		words_that_are_no_entries_are_dropped_when_taken_over},
	{"table_that_does_not_match_is_refused", table_that_does_not_match_is_refused},
	{"table_of_another_id_space_or_seed_is_emptied",
		table_of_another_id_space_or_seed_is_emptied},
	{"readers_on_other_cores_see_whole_entries", readers_on_other_cores_see_whole_entries},
	{"false_hits_are_as_rare_as_promised", false_hits_are_as_rare_as_promised},
};

int main(void)
{
	return SUITE_RUN("flow_table", cases);
}
