// SPDX-License-Identifier: Apache-2.0
// The flow table: which backend a flow has. One table a worker, 8 bytes an entry, one cache miss a packet.
//
//	header (4 KiB) | bucket 0 | bucket 1 | ...		a bucket: 64 bytes, eight 64-bit entries
//
// The low bits of flow_hash() choose the bucket; a flow that finds it full goes to the one beside it, so that of flows
// with two entries each 0.1 % find no room instead of 0.8 %, and only those few cost a second miss. 26 higher bits are
// the tag: an entry does not hold its flow's key. A new flow is taken for another one with probability (flows in both
// buckets) / 2^26, 16 / 2^26 (1 in 4.2 million) when they are full. It then shares a backend of the same pool; a backend
// of another pool is not taken.
//
// The deadline is the second, mod 2^13, at which the flow is forgotten. A refresh moves it by idle / 32 or one second at
// a time, so a busy flow dirties its line once in 28 s (idle 900 s) and not once a packet.
//
// An entry is one aligned 64-bit word: no write can be torn, by kill -9 as little as for a reader on another core. The
// memory is the caller's. In a file it survives the process, and flow_table_open() takes it over.
// Which flows survive what: docs/flow-table.md.
#pragma once

#include "dataplane/table/flow_word.h"

#include <stddef.h>

#define FLOW_TABLE_ALIGN       4096u
#define FLOW_TABLE_WAYS        8u
#define FLOW_TABLE_ENTRIES_MIN 64u
#define FLOW_TABLE_ENTRIES_MAX (UINT32_C(1) << 31)

// A table that nobody ticked for this long has entries whose deadline would wrap; the next tick visits them all.
#define FLOW_TABLE_GAP_MAX_S 512u

// Idle times of a service, seconds, 1..FLOW_TABLE_IDLE_MAX_S.
struct flow_idle {
	uint16_t syn_s;
	uint16_t established_s;
	uint16_t closing_s;
	uint16_t udp_s;
};

// What is written for a flow.
struct flow_choice {
	uint32_t backend; // 0..2^20-1
	bool uses_new;    // chosen on the new ring
};

enum flow_insert {
	FLOW_INSERT_FREE = 0,       // into a free place
	FLOW_INSERT_EXPIRED,        // over an entry past its deadline
	FLOW_INSERT_EVICT_UNPROVEN, // over the unproven flow nearest to its deadline
	FLOW_INSERT_EVICT_OLDEST, // over a proven flow with less than half of the newcomer's idle time left
	FLOW_INSERT_FOUND,   // nothing written: another packet of the burst had written it
	FLOW_INSERT_REFUSED, // nothing written: the bucket is full of flows that are worth more
	FLOW_INSERT_NOT_WORTH_STORING // nothing written: a FIN or RST of an unknown flow
};

// A flow that was found: where, and the word that stood there.
struct flow_entry {
	uint64_t *slot; // NULL: not found
	uint64_t word;
};

// Whose ids and hashes the entries hold. Entries of another identity mean nothing.
struct flow_identity {
	uint8_t id_space[16];  // of the snapshot
	uint8_t hash_seed[16]; // of the snapshot: tags and buckets come from it
};

// The header, at the start of the table's memory. The first line never changes while a worker runs.
struct flow_table {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t bucket_count; // a power of two
	uint64_t bucket_mask;
	uint64_t checksum; // of the fields above
	uint64_t reserved[3];

	// worker rw; main and other workers never look, save clock_s (relaxed)
	uint32_t clock_s; // the last tick
	uint32_t reserved2;
	uint64_t sweep_bucket; // the next one to sweep
	struct flow_identity identity;
	uint64_t reserved3[2];

	uint8_t reserved4[3968];
	uint64_t buckets[][FLOW_TABLE_WAYS];
};

_Static_assert(offsetof(struct flow_table, clock_s) == 64, "version 1");
_Static_assert(offsetof(struct flow_table, buckets) == 4096, "version 1");

// Entries that a table asked to hold entries gets: the next power of two, at least FLOW_TABLE_ENTRIES_MIN.
// entries: 1..FLOW_TABLE_ENTRIES_MAX. Plan for two entries a flow.
uint64_t flow_table_capacity(uint32_t entries);

// Bytes of a table: 4096 + 8 * flow_table_capacity().
uint64_t flow_table_footprint(uint32_t entries);

// Makes an empty table. memory: flow_table_footprint() bytes at FLOW_TABLE_ALIGN; what stood there is lost.
// now_s: seconds of the clock that every later call uses; it must go on over a restart of the process (CLOCK_BOOTTIME).
struct flow_table *flow_table_format(void *memory, uint32_t entries, uint32_t now_s);

// Takes over a table that another process left: checks the header, forgets what expired meanwhile and every word
// that is no entry.
// bytes: readable and writable at memory. entries: as for flow_table_format().
// Returns 0 with *ret_table and *ret_kept, the flows that are still there; -EINVAL when this is no table of this
// version or its header is damaged; -ENOSPC for another size; -ESTALE when its clock is ahead of now_s (the machine
// was started again). On failure nothing is changed: format it.
// Cost: one pass. Context: before the worker starts.
int flow_table_open(void *memory, uint64_t bytes, uint32_t entries, uint32_t now_s,
	struct flow_table **ret_table, uint64_t *ret_kept);

// Tells the table whose entries it holds from now on, and empties it when they were somebody else's.
// Returns true when it was emptied. Context: the owner. Cost: one pass when it empties, else one line.
bool flow_table_adopt(struct flow_table *table, const struct flow_identity *identity);

// Brings the clock forward; call before the lookups of a burst. Does nothing while the second is the same; visits
// every entry when FLOW_TABLE_GAP_MAX_S have passed unseen, so that no deadline wraps. A clock that goes back is ignored.
void flow_table_tick(struct flow_table *table, uint32_t now_s);

// Finds the flows of a burst. Ask for the buckets with flow_table_prefetch() some work earlier: 32 misses of the cache
// then cost little more than one. hashes: of flow_hash(). count: any. ret: count entries.
// An entry past its deadline is not found (it stays until swept or overwritten).
// Context: the owner, after flow_table_tick().
void flow_table_find_burst(const struct flow_table *table, const uint64_t *hashes, unsigned count,
	struct flow_entry *ret);

// Looks for one flow in any worker's table.
// now_s: at most FLOW_TABLE_GAP_MAX_S past the owner's last tick.
// Returns the entry's word, 0 when there is none. Context: any thread; relaxed loads, pairs with nothing.
uint64_t flow_table_peek(const struct flow_table *table, uint64_t hash, uint32_t now_s);

// Brings the bucket of a flow into the cache.
static inline void flow_table_prefetch(const struct flow_table *table, uint64_t hash)
{
	__builtin_prefetch(table->buckets[hash & table->bucket_mask], 0, 3);
}

// Moves a flow on by one packet: state machine, deadline. Writes only when something changes.
// entry: from flow_table_find_burst(); its word is updated.
// Returns true when this packet makes the flow an early abort (a RST, or a SYN again, within the first packets):
// once a flow. Context: the owner.
bool flow_table_advance(struct flow_table *table, struct flow_entry *entry, enum flow_event event,
	const struct flow_idle *idle);

// Tells whether flow_table_advance() would change nothing, for the packets that are most of the traffic: of an
// established TCP or proven UDP flow whose deadline is far enough. false says nothing. Fifteen instructions instead of
// fifty.
static inline bool flow_table_is_settled(const struct flow_table *table, uint64_t word,
	enum flow_event event, const struct flow_idle *idle)
{
	bool is_udp = event == FLOW_EVENT_UDP;
	uint32_t idle_s = is_udp ? idle->udp_s : idle->established_s;
	uint32_t beyond = flow_word_remaining_s(word, table->clock_s) - idle_s - 1;

	return (is_udp || event == FLOW_EVENT_DATA) &&
		flow_word_state(word) == (is_udp ? FLOW_STATE_UDP : FLOW_STATE_ESTABLISHED) &&
		beyond < flow_word_granule_s(idle_s);
}

// Gives a flow that was found another backend; state and deadline stay. Context: the owner.
void flow_table_reroute(struct flow_entry *entry, const struct flow_choice *choice);

// The idle time that holds in a state.
uint32_t flow_idle_s(enum flow_state state, const struct flow_idle *idle);

// Stores a flow. ret: the flow's entry, with slot NULL when it has none; it may hold another choice than was asked
// for (FLOW_INSERT_FOUND).
// Context: the owner. Cost: the bucket is in the cache after flow_table_find_burst().
enum flow_insert flow_table_insert(struct flow_table *table, uint64_t hash, enum flow_event event,
	const struct flow_choice *choice, const struct flow_idle *idle, struct flow_entry *ret);

// Stores a flow as another worker's table has it. word: of flow_table_peek(). Returns as flow_table_insert().
enum flow_insert flow_table_insert_word(
	struct flow_table *table, uint64_t hash, uint64_t word, struct flow_entry *ret);

// Buckets that one flow_table_sweep() visits at most.
#define FLOW_TABLE_SWEEP_BUCKETS_MAX 64u

// What a sweep found.
struct flow_sweep {
	uint64_t expired;   // entries past their deadline, now free
	uint64_t live;      // entries left in the buckets visited
	uint32_t half_open; // entries of half_open_words
	bool wrapped;       // the last bucket was visited
	// Flows that showed a SYN and nothing else over a whole round: early aborts, reported once each.
	uint64_t half_open_words[FLOW_TABLE_WAYS * FLOW_TABLE_SWEEP_BUCKETS_MAX];
	// Backends of the entries left that were picked on a new ring, one each.
	uint32_t live_new;
	uint32_t live_new_backends[FLOW_TABLE_WAYS * FLOW_TABLE_SWEEP_BUCKETS_MAX];
};

// Visits the next buckets, round and round. A round must take less than FLOW_TABLE_GAP_MAX_S; 4 s is a good one.
// buckets: 1..FLOW_TABLE_SWEEP_BUCKETS_MAX. Context: the owner, after flow_table_tick().
void flow_table_sweep(struct flow_table *table, unsigned buckets, struct flow_sweep *ret);

// Counts the live entries. Cost: one pass. Context: any thread.
uint64_t flow_table_count(const struct flow_table *table, uint32_t now_s);

// All entries in one row, for passes over the whole table.
static inline uint64_t *flow_table_entries(const struct flow_table *table)
{
	return (uint64_t *)((uintptr_t)table + offsetof(struct flow_table, buckets));
}

// Reads the word again: an earlier packet of the burst may have moved the flow on, or given its place away.
static inline void flow_table_reload(struct flow_entry *entry)
{
	uint64_t word = *entry->slot;

	if (flow_word_matches(word, entry->word))
		entry->word = word;
}
