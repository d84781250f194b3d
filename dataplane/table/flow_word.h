// SPDX-License-Identifier: Apache-2.0
// The 64-bit word of a flow-table entry, and how packets move it on.
//
//	63        38 37   34  33   32      20 19        0
//	+-----------+-------+-----+----------+-----------+
//	| tag    26 | state | new | deadline | backend   |	0: free
//	+-----------+-------+-----+----------+-----------+
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FLOW_WORD_DEADLINE_SHIFT 20
#define FLOW_WORD_NEW_SHIFT      33
#define FLOW_WORD_STATE_SHIFT    34
#define FLOW_WORD_TAG_SHIFT      38
#define FLOW_WORD_BACKEND_MASK   UINT32_C(0xfffff)
#define FLOW_WORD_DEADLINE_MASK  UINT32_C(0x1fff)
#define FLOW_WORD_STATE_MASK     UINT32_C(0xf)
#define FLOW_WORD_TAG_MASK       UINT32_C(0x3ffffff)

// The tag's bits of a flow hash. The bucket takes at most the 28 below them, so none is used twice.
#define FLOW_WORD_TAG_HASH_SHIFT 28

// Longest idle time that a deadline can carry, seconds; the snapshot's limit is the same.
#define FLOW_TABLE_IDLE_MAX_S 7200u

// Farthest that a deadline lies ahead: the longest idle time and its granule. What is farther is past.
#define FLOW_WORD_REMAINING_MAX_S (FLOW_TABLE_IDLE_MAX_S + FLOW_TABLE_IDLE_MAX_S / 32)

// What a packet tells about its flow.
enum flow_event {
	FLOW_EVENT_SYN = 0, // TCP SYN without ACK
	FLOW_EVENT_DATA,    // TCP with none of SYN, FIN, RST
	FLOW_EVENT_FIN,
	FLOW_EVENT_RST,
	FLOW_EVENT_UDP,
	FLOW_EVENT_COUNT,
};

// A flow is unproven until its second packet: a stranger can make as many unproven ones as he likes with forged
// source addresses, so they are the first to go.
enum flow_state {
	FLOW_STATE_FREE = 0,
	FLOW_STATE_SYN,         // a SYN and nothing after it
	FLOW_STATE_SYN_WAITING, // the same, and the sweep has been here once since
	FLOW_STATE_SYN_ABORTED, // the same, counted as an early abort
	FLOW_STATE_MIDWAY,      // one TCP packet other than a SYN: the flow began elsewhere
	FLOW_STATE_FIRST,       // TCP, one packet after the SYN
	FLOW_STATE_SECOND,      // TCP, two packets after the SYN
	FLOW_STATE_ESTABLISHED, // TCP
	FLOW_STATE_CLOSING,     // TCP, FIN or RST seen
	FLOW_STATE_UDP_ONCE,    // one UDP packet
	FLOW_STATE_UDP,
	FLOW_STATE_COUNT,
};

// The entry's tag, never 0, so that no flow is found in a free place.
static inline uint32_t flow_word_tag(uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> FLOW_WORD_TAG_HASH_SHIFT) & FLOW_WORD_TAG_MASK;

	return tag + (tag == 0);
}

// Tells whether two words are of the same flow.
static inline bool flow_word_matches(uint64_t word, uint64_t other)
{
	return (word ^ other) >> FLOW_WORD_TAG_SHIFT == 0;
}

static inline uint32_t flow_word_backend(uint64_t word)
{
	return (uint32_t)word & FLOW_WORD_BACKEND_MASK;
}

static inline bool flow_word_uses_new(uint64_t word)
{
	return (word >> FLOW_WORD_NEW_SHIFT) & 1;
}

static inline enum flow_state flow_word_state(uint64_t word)
{
	return (enum flow_state)((uint32_t)(word >> FLOW_WORD_STATE_SHIFT) & FLOW_WORD_STATE_MASK);
}

static inline uint64_t flow_word_set_state(uint64_t word, enum flow_state state)
{
	uint64_t mask = (uint64_t)FLOW_WORD_STATE_MASK << FLOW_WORD_STATE_SHIFT;

	return (word & ~mask) | (uint64_t)state << FLOW_WORD_STATE_SHIFT;
}

static inline uint64_t flow_word_set_deadline(uint64_t word, uint32_t deadline_s)
{
	uint64_t mask = (uint64_t)FLOW_WORD_DEADLINE_MASK << FLOW_WORD_DEADLINE_SHIFT;

	return (word & ~mask) |
		(uint64_t)(deadline_s & FLOW_WORD_DEADLINE_MASK) << FLOW_WORD_DEADLINE_SHIFT;
}

static inline uint64_t flow_word_set_choice(uint64_t word, uint32_t backend, bool uses_new)
{
	uint64_t mask = FLOW_WORD_BACKEND_MASK | UINT64_C(1) << FLOW_WORD_NEW_SHIFT;

	return (word & ~mask) | (backend & FLOW_WORD_BACKEND_MASK) |
		(uint64_t)uses_new << FLOW_WORD_NEW_SHIFT;
}

// Seconds until the flow is forgotten; 0 when that is past.
static inline uint32_t flow_word_remaining_s(uint64_t word, uint32_t now_s)
{
	uint32_t remaining =
		((uint32_t)(word >> FLOW_WORD_DEADLINE_SHIFT) - now_s) & FLOW_WORD_DEADLINE_MASK;

	return remaining > FLOW_WORD_REMAINING_MAX_S ? 0 : remaining;
}

// The step of a refresh: after each packet a flow has at least idle_s left and at most idle_s + granule.
static inline uint32_t flow_word_granule_s(uint32_t idle_s)
{
	return idle_s < 64 ? 1 : idle_s / 32;
}

// Tells whether a SYN on this flow begins a new one: only when the old one is closing. A repeated SYN, or a forged
// one, must not move a flow.
static inline bool flow_word_restarts(uint64_t word, enum flow_event event)
{
	return event == FLOW_EVENT_SYN && flow_word_state(word) == FLOW_STATE_CLOSING;
}
