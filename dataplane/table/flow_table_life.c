// SPDX-License-Identifier: Apache-2.0
// The flow table's life: make, take over, keep the clock, sweep.
#include "common/hash.h"
#include "dataplane/table/flow_table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define FLOW_TABLE_MAGIC   UINT64_C(0x31304c4657474e52) // "RNGWFL01"
#define FLOW_TABLE_VERSION 1u

uint64_t flow_table_capacity(uint32_t entries)
{
	uint64_t capacity = FLOW_TABLE_ENTRIES_MIN;

	assert(entries <= FLOW_TABLE_ENTRIES_MAX);
	while (capacity < entries)
		capacity *= 2;
	return capacity;
}

uint64_t flow_table_footprint(uint32_t entries)
{
	return sizeof(struct flow_table) + flow_table_capacity(entries) * sizeof(uint64_t);
}

// Guards against a file that was cut, overwritten or written by something else; not against an enemy, who could
// not write it.
static uint64_t header_checksum(const struct flow_table *table)
{
	static const struct hash_seed seed = {{1, 2, 3, 4}};

	return hash_bytes(table, offsetof(struct flow_table, checksum), &seed);
}

struct flow_table *flow_table_format(void *memory, uint32_t entries, uint32_t now_s)
{
	struct flow_table *table = memory;

	assert((uintptr_t)memory % FLOW_TABLE_ALIGN == 0);
	memset(memory, 0, flow_table_footprint(entries));
	table->magic = FLOW_TABLE_MAGIC;
	table->version = FLOW_TABLE_VERSION;
	table->header_bytes = sizeof(*table);
	table->bucket_count = flow_table_capacity(entries) / FLOW_TABLE_WAYS;
	table->bucket_mask = table->bucket_count - 1;
	table->checksum = header_checksum(table);
	table->clock_s = now_s;
	return table;
}

// Forgets every entry whose life ended between the table's clock and now_s, and every word that is no entry.
// A deadline is only meaningful near the table's clock, so it is judged by that one.
static uint64_t expire_all(struct flow_table *table, uint32_t now_s)
{
	uint32_t elapsed = now_s - table->clock_s;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < table->bucket_count * FLOW_TABLE_WAYS; i++) {
		uint64_t *slot = &flow_table_entries(table)[i];
		uint64_t word = *slot;
		uint32_t state = flow_word_state(word);
		bool sound = word >> FLOW_WORD_TAG_SHIFT != 0 && state != FLOW_STATE_FREE &&
			state < FLOW_STATE_COUNT;

		if (sound && flow_word_remaining_s(word, table->clock_s) > elapsed)
			kept++;
		else if (word != 0)
			__atomic_store_n(slot, 0, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&table->clock_s, now_s, __ATOMIC_RELAXED);
	return kept;
}

int flow_table_open(void *memory, uint64_t bytes, uint32_t entries, uint32_t now_s,
	struct flow_table **ret_table, uint64_t *ret_kept)
{
	struct flow_table *table = memory;

	if (bytes < sizeof(*table) || table->magic != FLOW_TABLE_MAGIC ||
		table->version != FLOW_TABLE_VERSION || table->header_bytes != sizeof(*table) ||
		table->checksum != header_checksum(table))
		return -EINVAL;
	if (table->bucket_count != flow_table_capacity(entries) / FLOW_TABLE_WAYS ||
		table->bucket_mask != table->bucket_count - 1 ||
		bytes < flow_table_footprint(entries))
		return -ENOSPC;
	if (table->clock_s > now_s)
		return -ESTALE;
	table->sweep_bucket = 0;
	*ret_kept = expire_all(table, now_s);
	*ret_table = table;
	return 0;
}

bool flow_table_adopt(struct flow_table *table, const struct flow_identity *identity)
{
	if (memcmp(&table->identity, identity, sizeof(*identity)) == 0)
		return false;
	// Emptied first: a kill in between leaves the old identity with fewer entries, never the new one with
	// entries of the old.
	for (uint64_t i = 0; i < table->bucket_count * FLOW_TABLE_WAYS; i++)
		__atomic_store_n(&flow_table_entries(table)[i], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); // for whoever opens the file after a kill
	table->identity = *identity;
	return true;
}

void flow_table_tick(struct flow_table *table, uint32_t now_s)
{
	if (now_s <= table->clock_s)
		return;
	if (now_s - table->clock_s > FLOW_TABLE_GAP_MAX_S)
		expire_all(table, now_s);
	__atomic_store_n(&table->clock_s, now_s, __ATOMIC_RELAXED);
}

// Looks at one entry; returns its word when it became an early abort now, else 0.
static uint64_t sweep_entry(uint64_t *slot, uint32_t now_s, struct flow_sweep *ret)
{
	uint64_t word = *slot;
	enum flow_state state = flow_word_state(word);

	if (word == 0)
		return 0;
	if (flow_word_remaining_s(word, now_s) == 0) {
		__atomic_store_n(slot, 0, __ATOMIC_RELAXED);
		ret->expired++;
		return 0;
	}
	ret->live++;
	if (flow_word_uses_new(word))
		ret->live_new_backends[ret->live_new++] = flow_word_backend(word);
	if (state == FLOW_STATE_SYN) {
		word = flow_word_set_state(word, FLOW_STATE_SYN_WAITING);
		__atomic_store_n(slot, word, __ATOMIC_RELAXED);
	} else if (state == FLOW_STATE_SYN_WAITING) {
		word = flow_word_set_state(word, FLOW_STATE_SYN_ABORTED);
		__atomic_store_n(slot, word, __ATOMIC_RELAXED);
		return word;
	}
	return 0;
}

void flow_table_sweep(struct flow_table *table, unsigned buckets, struct flow_sweep *ret)
{
	uint64_t bucket = table->sweep_bucket & table->bucket_mask;

	assert(buckets >= 1 && buckets <= FLOW_TABLE_SWEEP_BUCKETS_MAX);
	ret->expired = 0;
	ret->live = 0;
	ret->half_open = 0;
	ret->live_new = 0;
	ret->wrapped = false;
	for (unsigned n = 0; n < buckets && !ret->wrapped; n++) {
		for (unsigned i = 0; i < FLOW_TABLE_WAYS; i++) {
			uint64_t word =
				sweep_entry(&table->buckets[bucket][i], table->clock_s, ret);

			if (word != 0)
				ret->half_open_words[ret->half_open++] = word;
		}
		bucket = (bucket + 1) & table->bucket_mask;
		ret->wrapped = bucket == 0;
	}
	table->sweep_bucket = bucket;
}

uint64_t flow_table_count(const struct flow_table *table, uint32_t now_s)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < table->bucket_count * FLOW_TABLE_WAYS; i++) {
		uint64_t word = __atomic_load_n(&flow_table_entries(table)[i], __ATOMIC_RELAXED);

		count += word != 0 && flow_word_remaining_s(word, now_s) != 0;
	}
	return count;
}
