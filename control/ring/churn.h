// SPDX-License-Identifier: Apache-2.0
// How many keys move from one ring to another, whichever hash seeds the two have. Exact, as walk.h is.
//
// Rings with one seed see one hash of a key, so their arcs are laid over each other. Under two seeds the two hashes of a
// key have nothing to do with each other, so it meets owner o of ring a with chance arc_a(o) and the same backend in ring
// b, independently, with chance arc_b(o): the part that stays is the sum of the products.
#pragma once

#include "control/ring/walk.h"

// Tells whether two rings see the same hash of a key.
static inline bool ring_same_seed(const struct ring *a, const struct ring *b)
{
	return a->header->seed_mark == b->header->seed_mark;
}

// Finds for each owner of ring a the hashes that its backend gets in ring b: 0 for a backend that b does not have.
// ret_arcs: member_count words of a. Returns 0 or -ENOMEM. Cost: one pass over b's points and a sort of both members.
int ring_shares_in(const struct ring *a, const struct ring *b, uint64_t *ret_arcs);

// What moves, in hashes of the circle: as ring_churn() says for rings with one seed, else what moves on average over all keys,
// rounded. Rings without any owner agree with each other alone.
// ret_lost, ret_gained: NULL, or as for ring_churn(). Returns 0 or -ENOMEM.
int ring_moved(const struct ring *a, const struct ring *b, uint64_t *ret_moved, uint64_t *ret_lost,
	uint64_t *ret_gained);

// The chance that a key moves whose hash in ring a is known: 0 or 1 for rings with one seed.
// there: ring_shares_in() of both for rings with two seeds; not looked at for others.
double ring_chance_moved(
	const struct ring *a, const struct ring *b, const uint64_t *there, uint32_t ring_hash);
