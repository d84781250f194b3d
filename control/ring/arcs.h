// SPDX-License-Identifier: Apache-2.0
// Arcs: which candidate points of which members are chosen, and how much of the circle each member owns by them.
//
// Every member has ARCS_SLOTS candidates; a ring is a choice among them. A chosen point owns the arc from the chosen
// point before it (exclusive) to itself (inclusive). The circle has 2^32 places, and the shares always add up to that.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ARCS_SLOTS  64u
#define ARCS_CIRCLE (INT64_C(1) << 32)

// Read freely; write through arcs_choose() and arcs_drop() only.
struct arcs {
	uint32_t member_count;
	uint32_t candidate_count; // member_count * ARCS_SLOTS
	uint32_t chosen_count;
	uint32_t *hash;   // [candidate_count], ascending; equal hashes in member order
	uint16_t *owner;  // [candidate_count], member
	uint32_t *place;  // [member * ARCS_SLOTS + slot], position in hash and owner
	uint64_t *chosen; // bitmap over positions
	int64_t *share;   // [member_count], places of the circle
};

// Sorts the candidates and applies the masks.
// candidates: [member_count * ARCS_SLOTS], member by member. masks: bit s chooses slot s; at least one bit in all.
// member_count: 1..65535. Returns 0, -ENOMEM, or -EINVAL when nothing is chosen.
// Cost: one radix sort; 10 bytes a candidate stay.
int arcs_create(const uint32_t *candidates, const uint64_t *masks, uint32_t member_count,
	struct arcs **ret);

// Accepts NULL.
void arcs_destroy(struct arcs *arcs);

// The chosen position before or after a position, around the circle; the position itself when it is the only one.
// At least one position must be chosen.
uint32_t arcs_before(const struct arcs *arcs, uint32_t position);
uint32_t arcs_after(const struct arcs *arcs, uint32_t position);

// The places from the chosen point before a position up to it: what it owns, or would own if it were chosen.
int64_t arcs_length(const struct arcs *arcs, uint32_t position);

// Chooses a free position, or drops a chosen one (never the last); the shares follow. Cost: two short bitmap scans.
void arcs_choose(struct arcs *arcs, uint32_t position);
void arcs_drop(struct arcs *arcs, uint32_t position);

static inline bool arcs_is_chosen(const struct arcs *arcs, uint32_t position)
{
	return arcs->chosen[position / 64] >> (position % 64) & 1;
}

// The chosen slots of a member as a mask.
uint64_t arcs_mask(const struct arcs *arcs, uint32_t member);

// The first position whose hash is >= hash, around the circle. For points that are no candidates (yet).
uint32_t arcs_find(const struct arcs *arcs, uint32_t hash);
