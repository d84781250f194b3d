// SPDX-License-Identifier: Apache-2.0
#include "control/ring/balance_stats.h"

#include <math.h>

#define CIRCLE 4294967296.0

static uint64_t weight_sum(const uint32_t *weights, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += weights[i];
	return sum;
}

void ring_balance_measure(
	const uint64_t *arcs, const uint32_t *weights, uint32_t count, struct ring_balance *ret)
{
	double total = 0, scale, squares = 0;
	struct ring_balance found = {.hottest_ratio = -1, .coldest_ratio = HUGE_VAL};

	for (uint32_t i = 0; i < count; i++)
		total += (double)arcs[i];
	scale = (double)weight_sum(weights, count) / total;
	for (uint32_t i = 0; i < count; i++) {
		double ratio = (double)arcs[i] * scale / weights[i];

		squares += (ratio - 1) * (ratio - 1);
		if (ratio > found.hottest_ratio) {
			found.hottest_ratio = ratio;
			found.hottest = i;
		}
		if (ratio < found.coldest_ratio) {
			found.coldest_ratio = ratio;
			found.coldest = i;
		}
	}
	found.cv = sqrt(squares / count);
	*ret = found;
}

double ring_balance_predict(const uint32_t *weights, uint32_t count, uint32_t points)
{
	double total = (double)weight_sum(weights, count) * points, squares = 0;

	for (uint32_t i = 0; i < count; i++) {
		double own = (double)weights[i] * points;

		squares += (total - own) / (own * (total + 1));
	}
	return sqrt(squares / count);
}

double ring_balance_predict_fixed_ties(const uint32_t *weights, uint32_t count, uint32_t points)
{
	double total = (double)weight_sum(weights, count) * points;

	return hypot(ring_balance_predict(weights, count, points), total / (CIRCLE * sqrt(12)));
}

double ring_balance_collisions(uint64_t total)
{
	// K minus the expected number of distinct hashes; expm1 and log1p keep the digits when K is small.
	return (double)total + CIRCLE * expm1((double)total * log1p(-1 / CIRCLE));
}

uint32_t ring_balance_points_for(const uint32_t *weights, uint32_t count, double target,
	int fixed_ties, uint32_t points_max, uint32_t *ret_best)
{
	double (*predict)(const uint32_t *, uint32_t, uint32_t) =
		fixed_ties ? ring_balance_predict_fixed_ties : ring_balance_predict;
	uint32_t low = 1, high = points_max;

	// The spread falls up to its one minimum: find that first, by the sign of the slope.
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (predict(weights, count, middle) <= predict(weights, count, middle + 1))
			high = middle;
		else
			low = middle + 1;
	}
	*ret_best = low;
	if (predict(weights, count, low) > target)
		return 0;
	// Left of the minimum the spread falls, so the least number is found by halving.
	high = low;
	low = 1;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (predict(weights, count, middle) <= target)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
