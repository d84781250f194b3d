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

// A flow's own bucket, and the one beside it that takes what does not fit.
static const uint64_t *home_of(const struct flow_table *table, uint64_t hash)
{
	return table->buckets[hash & table->bucket_mask];
}

static const uint64_t *neighbour_of(const struct flow_table *table, uint64_t hash)
{
	return table->buckets[(hash & table->bucket_mask) ^ 1];
}

// The place of a tag in a bucket, live or expired; NULL when it is not there. The owner may write through it.
static uint64_t *find_in(const uint64_t *bucket, uint64_t wanted)
{
	unsigned way = flow_bucket_find(bucket, wanted);

	return way == FLOW_TABLE_WAYS ? NULL : (uint64_t *)(uintptr_t)&bucket[way];
}

static struct flow_entry live_entry(uint64_t *slot, uint32_t now_s)
{
	if (slot == NULL || flow_word_remaining_s(*slot, now_s) == 0)
		return (struct flow_entry){NULL, 0};
	return (struct flow_entry){slot, *slot};
}

void flow_table_find_burst(const struct flow_table *table, const uint64_t *hashes, unsigned count,
	struct flow_entry *ret)
{
	uint32_t now_s = table->clock_s;
	unsigned missed = 0;

	for (unsigned i = 0; i < count; i++) {
		ret[i] = live_entry(find_in(home_of(table, hashes[i]), tag_word(hashes[i])), now_s);
		if (ret[i].slot != NULL)
			continue;
		// Who is not at home may be next door; ask for that line while the others are looked up.
		__builtin_prefetch(neighbour_of(table, hashes[i]), 0, 3);
		missed++;
	}
	for (unsigned i = 0; missed > 0; i++) {
		if (ret[i].slot != NULL)
			continue;
		ret[i] = live_entry(
			find_in(neighbour_of(table, hashes[i]), tag_word(hashes[i])), now_s);
		missed--;
	}
}

// The owner may write between two looks, so each word is loaded once and judged by that copy.
static uint64_t peek_in(const uint64_t *bucket, uint64_t wanted, uint32_t now_s)
{
	for (unsigned i = 0; i < FLOW_TABLE_WAYS; i++) {
		uint64_t word = __atomic_load_n(&bucket[i], __ATOMIC_RELAXED);

		if (flow_word_matches(word, wanted))
			return flow_word_remaining_s(word, now_s) ? word : 0;
	}
	return 0;
}

uint64_t flow_table_peek(const struct flow_table *table, uint64_t hash, uint32_t now_s)
{
	uint64_t word = peek_in(home_of(table, hash), tag_word(hash), now_s);

	return word ? word : peek_in(neighbour_of(table, hash), tag_word(hash), now_s);
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

// What it costs to give an entry's place to a newcomer; UINT32_MAX: the entry stays.
#define COST_FREE    0u
#define COST_EXPIRED 1u
#define COST_LIVE    2u

static uint32_t cost_of(uint64_t word, uint64_t newcomer, uint32_t now_s)
{
	enum rank rank = (enum rank)ranks[flow_word_state(word)];
	uint32_t remaining = flow_word_remaining_s(word, now_s);

	if (word == 0)
		return COST_FREE;
	if (remaining == 0)
		return COST_EXPIRED;
	if (rank != RANK_FORGEABLE && flow_word_state(newcomer) == FLOW_STATE_SYN)
		return UINT32_MAX;
	if (rank == RANK_PROVEN && remaining >= flow_word_remaining_s(newcomer, now_s) / 2)
		return UINT32_MAX;
	return COST_LIVE + (uint32_t)rank * (FLOW_WORD_DEADLINE_MASK + 1) + remaining;
}

struct candidate {
	const uint64_t *slot;
	uint32_t cost;
};

// Takes the cheapest place of a bucket, if it is cheaper than the best so far.
static void bid(const uint64_t *bucket, uint64_t newcomer, uint32_t now_s, struct candidate *best)
{
	for (unsigned i = 0; i < FLOW_TABLE_WAYS; i++) {
		uint32_t cost = cost_of(bucket[i], newcomer, now_s);

		if (cost < best->cost)
			*best = (struct candidate){&bucket[i], cost};
	}
}

// Chooses the place for a newcomer that is in neither of its buckets.
static enum flow_insert choose(
	const struct flow_table *table, uint64_t hash, uint64_t newcomer, uint64_t **ret_slot)
{
	struct candidate best = {NULL, UINT32_MAX};

	// An empty place at home is found with one line; next door is asked only when there is none.
	bid(home_of(table, hash), newcomer, table->clock_s, &best);
	if (best.cost >= COST_LIVE)
		bid(neighbour_of(table, hash), newcomer, table->clock_s, &best);
	if (best.slot == NULL)
		return FLOW_INSERT_REFUSED;
	*ret_slot = (uint64_t *)(uintptr_t)best.slot;
	if (*best.slot == 0)
		return FLOW_INSERT_FREE;
	if (best.cost < COST_LIVE)
		return FLOW_INSERT_EXPIRED;
	return ranks[flow_word_state(*best.slot)] == RANK_PROVEN ? FLOW_INSERT_EVICT_OLDEST
								 : FLOW_INSERT_EVICT_UNPROVEN;
}

// What happens to a newcomer whose tag is there already.
static enum flow_insert meet(uint64_t present, uint64_t newcomer, uint32_t now_s)
{
	if (flow_word_remaining_s(present, now_s) == 0)
		return FLOW_INSERT_EXPIRED;
	if (flow_word_state(newcomer) == FLOW_STATE_SYN &&
		flow_word_state(present) == FLOW_STATE_CLOSING)
		return FLOW_INSERT_FREE;
	return FLOW_INSERT_FOUND;
}

// Places a complete word.
static enum flow_insert place(
	struct flow_table *table, uint64_t hash, uint64_t word, struct flow_entry *ret)
{
	uint64_t *slot = find_in(home_of(table, hash), word);
	enum flow_insert result;

	if (slot == NULL)
		slot = find_in(neighbour_of(table, hash), word);
	if (slot != NULL)
		result = meet(*slot, word, table->clock_s);
	else
		result = choose(table, hash, word, &slot);
	if (result == FLOW_INSERT_REFUSED) {
		*ret = (struct flow_entry){NULL, 0};
		return result;
	}
	if (result != FLOW_INSERT_FOUND)
		store(slot, word);
	*ret = (struct flow_entry){slot, *slot};
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
