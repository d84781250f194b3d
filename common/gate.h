// SPDX-License-Identifier: Apache-2.0
// The gate: the per-flow decision "old ring or new ring" of a cutover.
#pragma once

#include "common/hash.h"

#include <stdbool.h>

// Every flow takes the new ring. One more than the largest bucket, hence 33 bits.
#define GATE_ALWAYS (UINT64_C(1) << 32)
#define GATE_NEVER  UINT64_C(0)

// GATE_NEVER, and more: flows that took the new ring before pick again at their next packet. Not a threshold; a word that
// a gate may hold, so that one store says both.
#define GATE_RECALL (UINT64_C(1) << 63)

// Shares are counted in millionths (0.0001 %), the finest step an operator can write.
#define GATE_SHARE_ALL UINT32_C(1000000)

// word: a threshold, 0..GATE_ALWAYS, or GATE_RECALL. All that a change of share writes.
// salt: fixed for the life of a cutover and the same on every node, else a change reshuffles the fleet.
struct gate {
	uint64_t word; // control rw (one aligned store), workers ro
	uint32_t salt; // control rw only between cutovers
	uint32_t reserved;
};

_Static_assert(sizeof(struct gate) == 16, "struct gate is part of the snapshot image");

// The flow's place in 0..2^32-1; a flow takes the new ring while its bucket is below the threshold.
static inline uint32_t gate_bucket(uint32_t ring_hash, uint32_t salt)
{
	return hash_mix32(ring_hash ^ salt);
}

// Tells whether a flow takes the new ring.
// ring_hash: what the ring hashes (flow_ring_hash()), never another hash of the flow.
// Monotone: a flow that is new at a threshold is new at every higher one. Source: docs/ring.md section 4.
static inline bool gate_uses_new(uint64_t threshold, uint32_t salt, uint32_t ring_hash)
{
	return gate_bucket(ring_hash, salt) < threshold;
}

// Tells whether a gate may hold a word.
static inline bool gate_word_valid(uint64_t word)
{
	return word <= GATE_ALWAYS || word == GATE_RECALL;
}

// The threshold in a gate's word.
static inline uint64_t gate_word_threshold(uint64_t word)
{
	return word & ~GATE_RECALL;
}

// The threshold that lets a share of the buckets through, rounded down; exact at 0 and at GATE_SHARE_ALL.
// share: millionths, 0..GATE_SHARE_ALL; more counts as all.
static inline uint64_t gate_threshold(uint32_t share)
{
	if (share >= GATE_SHARE_ALL)
		return GATE_ALWAYS;
	return ((uint64_t)share << 32) / GATE_SHARE_ALL;
}

// The word of a gate that lets a share through; recalls: with share 0, flows of the new ring are to come back.
static inline uint64_t gate_word(uint32_t share, bool recalls)
{
	return recalls && share == 0 ? GATE_RECALL : gate_threshold(share);
}
