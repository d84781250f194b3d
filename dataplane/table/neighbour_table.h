// SPDX-License-Identifier: Apache-2.0
// The neighbour table: MAC addresses of the next hops, shared by all workers.
//
// One slot for each next hop that the configuration names: backends on a port's link, and gateways. Main makes and frees
// slots; workers read a slot's word for each packet, and store a MAC address when an answer arrives. Answers of others
// find no slot and are not learnt, so a stranger can fill nothing. A word is 64 bits: no reader sees half a MAC.
//
//	63            48 47                     0
//	+---------------+------------------------+
//	| stamp         | MAC, as on the wire    |	0: not known; stamp = 1 + second mod 65535
//	+---------------+------------------------+
//
// A MAC once learnt is used until another answer replaces it: a neighbour that falls silent is asked again and
// again, but only health checks take traffic away from it.
#pragma once

#include "common/addr.h"

#define NEIGHBOUR_TABLE_ALIGN 64u
#define NEIGHBOUR_TABLE_MAX   (1u << 20)
#define NEIGHBOUR_NONE        UINT32_MAX

// Asked again when an answer is older than this.
#define NEIGHBOUR_STALE_S 30u

// Unanswered questions come after 1, 2, 4 ... NEIGHBOUR_BACKOFF_MAX_S seconds.
#define NEIGHBOUR_BACKOFF_MAX_S 32u

struct neighbour_table;

// A question that is due.
struct neighbour_request {
	uint32_t slot;
	struct ip_addr address;
	uint8_t port;
	bool known;     // mac is the last answer: ask that one alone (RFC 4861 section 7.3.1)
	uint8_t mac[6]; // as on the wire
};

// What stands in a slot, for people.
struct neighbour_view {
	struct ip_addr address;
	uint8_t port;
	bool known;
	uint8_t mac[6];
	uint32_t age_s;      // since the last answer
	uint32_t unanswered; // questions since then
};

// Bytes of a table with slot_count slots, 1..NEIGHBOUR_TABLE_MAX.
uint64_t neighbour_table_footprint(uint32_t slot_count);

// Makes an empty table. memory: neighbour_table_footprint() bytes at NEIGHBOUR_TABLE_ALIGN.
struct neighbour_table *neighbour_table_format(void *memory, uint32_t slot_count);

// Finds or makes the slot of a next hop and marks it as used by this epoch.
// epoch: number of the configuration that is being built; only grows.
// Returns 0 with *ret_slot; -ENOSPC when all slots are taken. Context: main.
int neighbour_table_intern(struct neighbour_table *table, uint8_t port,
	const struct ip_addr *address, uint64_t epoch, uint32_t *ret_slot);

// Frees the slots that no epoch from oldest_epoch on uses. Call it when no worker reads an older configuration any
// more (after the grace period). A freed slot rests until the next call, so no worker that still compares its
// address sees another one grow in it. Returns the number of slots freed. Context: main.
uint32_t neighbour_table_collect(struct neighbour_table *table, uint64_t oldest_epoch);

// The slot's word. slot: of neighbour_table_intern(). Context: any.
static inline uint64_t neighbour_word(const uint64_t *words, uint32_t slot)
{
	return __atomic_load_n(&words[slot], __ATOMIC_RELAXED);
}

// The array of words, for neighbour_word() and prefetch. It stays where it is for the table's life.
const uint64_t *neighbour_table_words(const struct neighbour_table *table);

// What a neighbour said.
struct neighbour_answer {
	uint8_t port;
	uint8_t mac[6];
	bool overrides; // may replace another MAC (RFC 4861 section 7.2.5); every ARP message may
	struct ip_addr address;
};

// Stores an answer. now_s: seconds, any origin.
// Returns true when a slot waits for this address. Written only when MAC or second changed.
// Context: any worker. Cost: one hash look-up. While main frees slots an answer may find none; it is asked for again.
bool neighbour_table_learn(
	struct neighbour_table *table, const struct neighbour_answer *answer, uint32_t now_s);

// Collects the questions that are due and counts them as asked. capacity: room in ret; what does not fit comes
// next time. Call it every 100 ms or so.
// Returns how many. Context: main. Cost: one pass over the slots in use.
unsigned neighbour_table_due(struct neighbour_table *table, uint32_t now_s,
	struct neighbour_request *ret, unsigned capacity);

// Reads slot index, 0..slot_count-1, for people. Returns false when it is free. Context: main.
bool neighbour_table_view(const struct neighbour_table *table, uint32_t slot, uint32_t now_s,
	struct neighbour_view *ret);
