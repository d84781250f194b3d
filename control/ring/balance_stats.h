// SPDX-License-Identifier: Apache-2.0
// How evenly a ring spreads its hashes: what theory predicts, and what a ring's arcs show. Pure.
//
// The spread is the coefficient of variation: the root mean square of (share / target share - 1) over the members,
// where the target share of a member is its weight over the sum of weights.
#pragma once

#include <stdint.h>

// What the arcs of a ring show.
struct ring_balance {
	double cv;
	double hottest_ratio; // share over target share
	double coldest_ratio;
	uint32_t hottest; // owner; the lowest of equal ones
	uint32_t coldest;
};

// Computes the balance of arcs (ring_shares(), ring_points_arcs()).
// weights: of each owner, each at least 1. count: at least 1. The arcs must not all be 0.
void ring_balance_measure(
	const uint64_t *arcs, const uint32_t *weights, uint32_t count, struct ring_balance *ret);

// Predicts the spread of random points: for a member with k of K points it is sqrt((K - k) / (k (K + 1))), by the
// Beta distribution of a sum of spacings; with equal weights that is sqrt((N - 1) / (N k + 1)).
// points: a weight, at least 1. Source: docs/ring.md section 7.
double ring_balance_predict(const uint32_t *weights, uint32_t count, uint32_t points);

// The same with the loss by a fixed order of ties (v1, v2): shares fall in a line along the order, by K / 2^32 from
// the first member to the last, which adds K / (2^32 sqrt(12)) in quadrature. v3's fair ties add nothing.
double ring_balance_predict_fixed_ties(const uint32_t *weights, uint32_t count, uint32_t points);

// Points that are expected to share their hash with another and so be cut, of a ring of total points.
double ring_balance_collisions(uint64_t total);

// Finds the least points a weight whose predicted spread is at most target.
// fixed_ties: as ring_balance_predict_fixed_ties(); its spread has a minimum, beyond which more points hurt.
// Returns the points, or 0 when no number of points up to points_max reaches the target; then *ret_best is the
// number that comes closest.
uint32_t ring_balance_points_for(const uint32_t *weights, uint32_t count, double target,
	int fixed_ties, uint32_t points_max, uint32_t *ret_best);
