// SPDX-License-Identifier: Apache-2.0
// Reads rings of any version point by point: shares, failover order, and what moves between two rings. Exact: arcs
// of the circle of 2^32 hashes, no sampling.
#pragma once

#include "common/ring.h"

// Hashes on the circle; an arc of a one-point ring is all of them, hence 64 bits.
#define RING_CIRCLE (UINT64_C(1) << 32)

struct ring_cursor {
	const struct ring *ring;
	uint32_t position; // of the point that comes next
	uint32_t prefix;   // v3: of that point
	uint32_t run_end;  // v3: where that prefix ends
};

struct ring_walk_point {
	uint32_t hash;
	uint32_t owner;
};

// Puts the cursor before the first point.
void ring_cursor_first(struct ring_cursor *cursor, const struct ring *ring);

// Puts the cursor before the first point whose hash is >= ring_hash; behind the last point if there is none.
void ring_cursor_seek(struct ring_cursor *cursor, const struct ring *ring, uint32_t ring_hash);

// Takes the next point. Returns false behind the last one.
bool ring_cursor_next(struct ring_cursor *cursor, struct ring_walk_point *ret);

// Computes the hashes that each owner gets. They sum to RING_CIRCLE, or are all 0 if the ring has no owner.
// ret_arcs: member_count words. Cost: one pass over the points.
void ring_shares(const struct ring *ring, uint64_t *ret_arcs);

// Lists the different owners in the order in which a hash would try them: the walk to the next owner along the
// ring, repeats left out. ring: an unresolved image, else the unusable ones are missing.
// Returns how many were found: limit, or all that have points.
// Cost: points walked x owners found; limit is meant to be small.
unsigned ring_failover_order(
	const struct ring *ring, uint32_t ring_hash, uint32_t *ret_owners, unsigned limit);

// What moves from ring a to ring b, which have one hash seed (else churn.h): a hash moves if the backend ids of its owners differ. A hash with no owner in
// one of the rings moves.
// ret_lost, ret_gained: hashes that leave each owner of a, that come to each owner of b; NULL, or member_count
// words of the ring. Returns the hashes that move, 0..RING_CIRCLE.
// Cost: one pass over both rings' points.
uint64_t ring_churn(
	const struct ring *a, const struct ring *b, uint64_t *ret_lost, uint64_t *ret_gained);
