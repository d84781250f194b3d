// SPDX-License-Identifier: Apache-2.0
// The flow table's hot side: find, advance, insert. Its life is in flow_table_life.c.
#include "dataplane/table/flow_table.h"

#include "dataplane/table/flow_bucket.h"

#include <assert.h>

// The next state, and whether the packet makes the flow an early abort.
#define ABORT 0x80u
#define FREE  FLOW_STATE_FREE

// RFC 9293 section 3.3.2 has eleven states; a balancer that sees only the client's packets can tell these apart.
// SYN on a closing flow is not here: it makes a new flow (flow_word_restarts()). SYN elsewhere is a repetition, or
// forged, and changes nothing once the flow is proven. A TCP event on a UDP entry, or the reverse, is a false hit.
// clang-format off
static const uint8_t transitions[FLOW_STATE_COUNT][FLOW_EVENT_COUNT] = {
	//                           SYN                             DATA                     FIN                  RST                          UDP
	[FLOW_STATE_FREE] =        {FLOW_STATE_SYN,                  FLOW_STATE_MIDWAY,       FREE,                FREE,                        FLOW_STATE_UDP_ONCE},
	[FLOW_STATE_SYN] =         {FLOW_STATE_SYN_ABORTED | ABORT,  FLOW_STATE_FIRST,        FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING | ABORT,  FLOW_STATE_SYN},
	[FLOW_STATE_SYN_WAITING] = {FLOW_STATE_SYN_ABORTED | ABORT,  FLOW_STATE_FIRST,        FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING | ABORT,  FLOW_STATE_SYN_WAITING},
	[FLOW_STATE_SYN_ABORTED] = {FLOW_STATE_SYN_ABORTED,          FLOW_STATE_ESTABLISHED,  FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING,          FLOW_STATE_SYN_ABORTED},
	[FLOW_STATE_MIDWAY] =      {FLOW_STATE_MIDWAY,               FLOW_STATE_ESTABLISHED,  FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING,          FLOW_STATE_MIDWAY},
	[FLOW_STATE_FIRST] =       {FLOW_STATE_FIRST,                FLOW_STATE_SECOND,       FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING | ABORT,  FLOW_STATE_FIRST},
	[FLOW_STATE_SECOND] =      {FLOW_STATE_SECOND,               FLOW_STATE_ESTABLISHED,  FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING | ABORT,  FLOW_STATE_SECOND},
	[FLOW_STATE_ESTABLISHED] = {FLOW_STATE_ESTABLISHED,          FLOW_STATE_ESTABLISHED,  FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING,          FLOW_STATE_ESTABLISHED},
	[FLOW_STATE_CLOSING] =     {FLOW_STATE_SYN,                  FLOW_STATE_CLOSING,      FLOW_STATE_CLOSING,  FLOW_STATE_CLOSING,          FLOW_STATE_CLOSING},
	[FLOW_STATE_UDP_ONCE] =    {FLOW_STATE_UDP_ONCE,             FLOW_STATE_UDP_ONCE,     FLOW_STATE_UDP_ONCE, FLOW_STATE_UDP_ONCE,         FLOW_STATE_UDP},
	[FLOW_STATE_UDP] =         {FLOW_STATE_UDP,                  FLOW_STATE_UDP,          FLOW_STATE_UDP,      FLOW_STATE_UDP,              FLOW_STATE_UDP},
};

// Who goes first when a bucket is full. A SYN may only take the place of the first rank: forged SYNs and forged UDP
// push out each other and nothing else. Rank 2 goes when it has used more than half of its time.
enum rank { RANK_FORGEABLE = 0, RANK_MIDWAY = 1, RANK_PROVEN = 2 };

static const uint8_t ranks[FLOW_STATE_COUNT] = {
	[FLOW_STATE_FREE] =        RANK_FORGEABLE,
	[FLOW_STATE_SYN] =         RANK_FORGEABLE,
	[FLOW_STATE_SYN_WAITING] = RANK_FORGEABLE,
	[FLOW_STATE_SYN_ABORTED] = RANK_FORGEABLE,
	[FLOW_STATE_UDP_ONCE] =    RANK_FORGEABLE,
	[FLOW_STATE_MIDWAY] =      RANK_MIDWAY,
	[FLOW_STATE_FIRST] =       RANK_PROVEN,
	[FLOW_STATE_SECOND] =      RANK_PROVEN,
	[FLOW_STATE_ESTABLISHED] = RANK_PROVEN,
	[FLOW_STATE_CLOSING] =     RANK_PROVEN,
	[FLOW_STATE_UDP] =         RANK_PROVEN,
};
// clang-format on

uint32_t flow_idle_s(enum flow_state state, const struct flow_idle *idle)
{
	switch (state) {
	case FLOW_STATE_SYN:
	case FLOW_STATE_SYN_WAITING:
	case FLOW_STATE_SYN_ABORTED:
		return idle->syn_s;
	case FLOW_STATE_CLOSING:
		return idle->closing_s;
	case FLOW_STATE_UDP_ONCE:
	case FLOW_STATE_UDP:
		return idle->udp_s;
	default:
		return idle->established_s;
	}
}

static uint64_t with_life(uint64_t word, enum flow_state state, uint32_t idle_s, uint32_t now_s)
{
	word = flow_word_set_state(word, state);
	return flow_word_set_deadline(word, now_s + idle_s + flow_word_granule_s(idle_s));
}

static uint64_t tag_word(uint64_t hash)
{
	return (uint64_t)flow_word_tag(hash) << FLOW_WORD_TAG_SHIFT;
}

// The one place that writes an entry. Readers on other cores see the old word or the new one.
static void store(uint64_t *slot, uint64_t word)
{
	__atomic_store_n(slot, word, __ATOMIC_RELAXED);
}

void flow_table_find_burst(const struct flow_table *table, const uint64_t *hashes, unsigned count,
	struct flow_entry *ret)
{
	uint32_t now_s = table->clock_s;

	for (unsigned i = 0; i < count; i++) {
		const uint64_t *bucket = table->buckets[hashes[i] & table->bucket_mask];
		unsigned way = flow_bucket_find(bucket, tag_word(hashes[i]));

		ret[i].slot = NULL;
		ret[i].word = 0;
		if (way == FLOW_TABLE_WAYS || flow_word_remaining_s(bucket[way], now_s) == 0)
			continue;
		ret[i].slot = (uint64_t *)(uintptr_t)&bucket[way];
		ret[i].word = bucket[way];
	}
}

uint64_t flow_table_peek(const struct flow_table *table, uint64_t hash, uint32_t now_s)
{
	const uint64_t *bucket = table->buckets[hash & table->bucket_mask];
	uint64_t wanted = tag_word(hash);

	// The owner may write between two looks, so each word is loaded once and judged by that copy.
	for (unsigned i = 0; i < FLOW_TABLE_WAYS; i++) {
		uint64_t word = __atomic_load_n(&bucket[i], __ATOMIC_RELAXED);

		if (flow_word_matches(word, wanted))
			return flow_word_remaining_s(word, now_s) ? word : 0;
	}
	return 0;
}

bool flow_table_advance(struct flow_table *table, struct flow_entry *entry, enum flow_event event,
	const struct flow_idle *idle)
{
	flow_table_reload(entry);
	if (!flow_word_matches(*entry->slot, entry->word))
		return false;

	enum flow_state state = flow_word_state(entry->word);
	uint8_t next = transitions[state][event];
	enum flow_state next_state = (enum flow_state)(next & ~ABORT);
	uint32_t idle_s = flow_idle_s(next_state, idle);
	uint32_t beyond = flow_word_remaining_s(entry->word, table->clock_s) - idle_s - 1;

	// The deadline is as good as new when idle_s < remaining <= idle_s + granule.
	if (next_state == state && beyond < flow_word_granule_s(idle_s))
		return false;
	entry->word = with_life(entry->word, next_state, idle_s, table->clock_s);
	store(entry->slot, entry->word);
	return next & ABORT;
}

void flow_table_reroute(struct flow_entry *entry, const struct flow_choice *choice)
{
	flow_table_reload(entry);
	if (!flow_word_matches(*entry->slot, entry->word))
		return;
	entry->word = flow_word_set_choice(entry->word, choice->backend, choice->uses_new);
	store(entry->slot, entry->word);
}

// How little an entry is worth beside a newcomer, the less the smaller; UINT32_MAX: it stays.
static uint32_t worth(uint64_t word, uint64_t newcomer, uint32_t now_s)
{
	enum rank rank = (enum rank)ranks[flow_word_state(word)];
	bool newcomer_is_syn = flow_word_state(newcomer) == FLOW_STATE_SYN;
	uint32_t remaining = flow_word_remaining_s(word, now_s);

	if (rank != RANK_FORGEABLE && newcomer_is_syn)
		return UINT32_MAX;
	if (rank == RANK_PROVEN && remaining >= flow_word_remaining_s(newcomer, now_s) / 2)
		return UINT32_MAX;
	return (uint32_t)rank * (FLOW_WORD_DEADLINE_MASK + 1) + remaining;
}

// Chooses the place in a bucket for a newcomer that is not in it.
static enum flow_insert choose_way(
	const uint64_t *bucket, uint64_t newcomer, uint32_t now_s, unsigned *ret_way)
{
	uint32_t least = UINT32_MAX;
	unsigned expired = FLOW_TABLE_WAYS;

	for (unsigned i = 0; i < FLOW_TABLE_WAYS; i++) {
		if (bucket[i] == 0) {
			*ret_way = i;
			return FLOW_INSERT_FREE;
		}
		if (flow_word_remaining_s(bucket[i], now_s) == 0 && expired == FLOW_TABLE_WAYS)
			expired = i;
		uint32_t value = worth(bucket[i], newcomer, now_s);

		if (value < least) {
			least = value;
			*ret_way = i;
		}
	}
	if (expired != FLOW_TABLE_WAYS) {
		*ret_way = expired;
		return FLOW_INSERT_EXPIRED;
	}
	if (least == UINT32_MAX)
		return FLOW_INSERT_REFUSED;
	return ranks[flow_word_state(bucket[*ret_way])] == RANK_PROVEN ? FLOW_INSERT_EVICT_OLDEST
								       : FLOW_INSERT_EVICT_UNPROVEN;
}

// Places a complete word.
static enum flow_insert place(
	struct flow_table *table, uint64_t hash, uint64_t word, struct flow_entry *ret)
{
	uint64_t *bucket = table->buckets[hash & table->bucket_mask];
	unsigned way = flow_bucket_find(bucket, word);
	enum flow_insert result;

	if (way != FLOW_TABLE_WAYS) {
		bool expired = flow_word_remaining_s(bucket[way], table->clock_s) == 0;
		bool restarts = flow_word_state(word) == FLOW_STATE_SYN &&
			flow_word_state(bucket[way]) == FLOW_STATE_CLOSING;

		result = expired   ? FLOW_INSERT_EXPIRED
			: restarts ? FLOW_INSERT_FREE
				   : FLOW_INSERT_FOUND;
	} else {
		result = choose_way(bucket, word, table->clock_s, &way);
	}
	if (result == FLOW_INSERT_REFUSED) {
		*ret = (struct flow_entry){NULL, 0};
		return result;
	}
	if (result != FLOW_INSERT_FOUND)
		store(&bucket[way], word);
	*ret = (struct flow_entry){&bucket[way], bucket[way]};
	return result;
}

enum flow_insert flow_table_insert(struct flow_table *table, uint64_t hash, enum flow_event event,
	const struct flow_choice *choice, const struct flow_idle *idle, struct flow_entry *ret)
{
	enum flow_state state = (enum flow_state)transitions[FLOW_STATE_FREE][event];
	uint64_t word = tag_word(hash);

	if (state == FLOW_STATE_FREE) {
		*ret = (struct flow_entry){NULL, 0};
		return FLOW_INSERT_NOT_WORTH_STORING;
	}
	word = flow_word_set_choice(word, choice->backend, choice->uses_new);
	word = with_life(word, state, flow_idle_s(state, idle), table->clock_s);
	return place(table, hash, word, ret);
}

enum flow_insert flow_table_insert_word(
	struct flow_table *table, uint64_t hash, uint64_t word, struct flow_entry *ret)
{
	return place(table, hash, word, ret);
}
