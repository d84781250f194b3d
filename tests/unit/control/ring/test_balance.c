// SPDX-License-Identifier: Apache-2.0
#include "control/ring/balance.h"

#include "tests/lib/balance_fleet.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS 2048u

static struct balance_fleet chosen(struct balance_fleet fleet)
{
	CU_ASSERT_EQUAL_FATAL(balance_fleet_choose(&fleet, 16), 0);
	return fleet;
}

static struct balance_fleet fresh(uint32_t count)
{
	return chosen(balance_fleet_new(0, count));
}

// Largest share / target by the naive twin.
static double hottest(const struct balance_fleet *fleet)
{
	uint32_t count;
	struct balance_point *points = balance_fleet_points(fleet, &count);
	double *share = calloc(fleet->count, sizeof(*share)), sum = 0, worst = 0;
	uint32_t last = points[count - 1].hash;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t member = 0;

		while (fleet->ids[member] != points[i].id)
			member++;
		share[member] += count == 1 ? 0x1p32 : (double)(uint32_t)(points[i].hash - last);
		last = points[i].hash;
	}
	for (uint32_t i = 0; i < fleet->count; i++)
		sum += fleet->members[i].weight;
	for (uint32_t i = 0; i < fleet->count; i++)
		worst = fmax(worst, share[i] / 0x1p32 * sum / fleet->members[i].weight);
	free(points);
	free(share);
	return worst;
}

static void fresh_ring_is_even(void)
{
	struct balance_fleet fleet = fresh(MEMBERS);

	CU_ASSERT_EQUAL(fleet.choice_count, MEMBERS);
	CU_ASSERT(fleet.report.cv <= 0.01);
	CU_ASSERT(fleet.report.hottest <= 1.03);
	CU_ASSERT(fleet.report.points <= MEMBERS * 17);
	CU_ASSERT_DOUBLE_EQUAL(hottest(&fleet), fleet.report.hottest, 1e-6);
	balance_fleet_free(&fleet);
}

// One member in the fleet has more than the points of a lane; most have one or two.
static void weights_are_met_within_two_percent(void)
{
	static const struct {
		uint32_t count, weight_max;
	} fleets[] = {{100, 625}, {1000, 625}, {3, 625}};

	for (unsigned f = 0; f < sizeof(fleets) / sizeof(fleets[0]); f++) {
		struct balance_fleet fleet = balance_fleet_new(0, fleets[f].count);

		for (uint32_t i = 0; i < fleet.count; i++)
			fleet.members[i].weight = 1 + i * 2654435761u % fleets[f].weight_max;
		fleet = chosen(fleet);
		CU_ASSERT(fleet.report.hottest <= 1.02);
		CU_ASSERT(fleet.report.coldest >= 0.98);
		CU_ASSERT(fleet.report.points <= fleet.count * 18);
		CU_ASSERT_DOUBLE_EQUAL(hottest(&fleet), fleet.report.hottest, 1e-6);
		balance_fleet_free(&fleet);
	}
}

static void one_giant_gets_its_share_by_several_lanes(void)
{
	struct balance_fleet fleet = balance_fleet_new(0, 100);

	fleet.members[0].weight = 625;
	fleet = chosen(fleet);
	CU_ASSERT(fleet.choice_count > fleet.count);
	CU_ASSERT(fleet.report.hottest <= 1.02);
	CU_ASSERT(fleet.report.coldest >= 0.98);
	balance_fleet_free(&fleet);
}

static void same_request_gives_same_choices(void)
{
	struct balance_fleet a = fresh(300), b = fresh(300);

	CU_ASSERT_EQUAL_FATAL(a.choice_count, b.choice_count);
	CU_ASSERT_EQUAL(memcmp(a.choices, b.choices, a.choice_count * sizeof(*a.choices)), 0);
	balance_fleet_free(&a);
	balance_fleet_free(&b);
}

static void repair_moves_little_beside_the_unavoidable(void)
{
	// unavoidable: the share that leaves, comes, or changes hands by the new weight
	static const struct {
		struct balance_change change;
		double unavoidable, at_most;
	} cases[] = {
		{{.removed = 1, .first = 13}, 1.0 / MEMBERS, 1.25},
		{{.removed = 20, .first = 13}, 20.0 / MEMBERS, 1.35},
		{{.added = 1}, 1.0 / (MEMBERS + 1), 1.25},
		{{.added = 20}, 20.0 / (MEMBERS + 20), 1.35},
		{{.weight = 200}, 1.0 / (MEMBERS + 1), 1.25},
		{{.weight = 50}, 0.5 / (MEMBERS - 0.5), 1.25},
	};
	struct balance_fleet fleet = fresh(MEMBERS);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct balance_fleet after;
		int rc = balance_fleet_repaired(&fleet, &cases[i].change, 0.1, &after);

		CU_ASSERT_EQUAL_FATAL(rc, 0);
		double ratio = balance_fleet_churn(&fleet, &after) / cases[i].unavoidable;

		printf("# case %u: churn %.3f of the unavoidable, hottest %.3f\n", i, ratio,
			after.report.hottest);
		CU_ASSERT(ratio <= cases[i].at_most);
		CU_ASSERT(after.report.hottest <= 1.1 + 1e-9);
		balance_fleet_free(&after);
	}
	balance_fleet_free(&fleet);
}

static void repair_without_a_change_moves_nothing(void)
{
	struct balance_fleet fleet = fresh(500), after;
	struct balance_change none = {0};

	CU_ASSERT_EQUAL_FATAL(balance_fleet_repaired(&fleet, &none, 0.1, &after), 0);
	CU_ASSERT_EQUAL(after.report.moves, 0);
	CU_ASSERT_EQUAL(
		memcmp(after.choices, fleet.choices, fleet.choice_count * sizeof(*fleet.choices)),
		0);
	balance_fleet_free(&after);
	balance_fleet_free(&fleet);
}

static void tiny_rings_work(void)
{
	for (uint32_t count = 1; count <= 3; count++) {
		struct balance_fleet fleet = balance_fleet_new(0, count);

		CU_ASSERT_EQUAL_FATAL(balance_fleet_choose(&fleet, 1), 0);
		CU_ASSERT(fleet.report.points >= count);
		CU_ASSERT_DOUBLE_EQUAL(hottest(&fleet), fleet.report.hottest, 1e-6);
		balance_fleet_free(&fleet);
	}
}

static void bad_requests_are_refused(void)
{
	struct balance_fleet fleet = fresh(2);
	struct balance_request request = balance_fleet_request(&fleet, 16, 0.1);

	request.points = 0;
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	request.points = BALANCE_POINTS_MAX + 1;
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	request = balance_fleet_request(&fleet, 16, 0.1);
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 1, &fleet.report), -EINVAL);
	fleet.members[1].weight = 0;
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	fleet.members[1].weight = 1;
	request.tolerance = NAN;
	CU_ASSERT_EQUAL(balance_repair(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	request.tolerance = 0;
	CU_ASSERT_EQUAL(balance_repair(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	balance_fleet_free(&fleet);
}

// Random choices and drops: the shares that arcs keeps are those of arcs made anew.
static void arcs_follow_every_move(void)
{
	uint64_t seed = suite_seed(), masks[32];
	uint32_t candidates[32 * ARCS_SLOTS];
	struct arcs *arcs = NULL, *fresh = NULL;

	for (unsigned i = 0; i < 32 * ARCS_SLOTS; i++)
		candidates[i] = (uint32_t)suite_random(&seed) & 0xfff0ff0f; // with equal hashes
	for (unsigned i = 0; i < 32; i++)
		masks[i] = suite_random(&seed);
	CU_ASSERT_EQUAL_FATAL(arcs_create(candidates, masks, 32, &arcs), 0);
	for (unsigned step = 0; step < 2000; step++) {
		uint32_t position = (uint32_t)suite_random(&seed) % arcs->candidate_count;

		if (!arcs_is_chosen(arcs, position))
			arcs_choose(arcs, position);
		else if (arcs->chosen_count > 1)
			arcs_drop(arcs, position);
	}
	int64_t sum = 0;

	for (uint32_t i = 0; i < 32; i++)
		masks[i] = arcs_mask(arcs, i);
	CU_ASSERT_EQUAL_FATAL(arcs_create(candidates, masks, 32, &fresh), 0);
	for (uint32_t i = 0; i < 32; i++) {
		CU_ASSERT_EQUAL(arcs->share[i], fresh->share[i]);
		sum += arcs->share[i];
	}
	CU_ASSERT_EQUAL(sum, ARCS_CIRCLE);
	arcs_destroy(arcs);
	arcs_destroy(fresh);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"fresh_ring_is_even", fresh_ring_is_even},
		{"weights_are_met_within_two_percent", weights_are_met_within_two_percent},
		{"one_giant_gets_its_share_by_several_lanes",
			one_giant_gets_its_share_by_several_lanes},
		{"same_request_gives_same_choices", same_request_gives_same_choices},
		{"repair_moves_little_beside_the_unavoidable",
			repair_moves_little_beside_the_unavoidable},
		{"repair_without_a_change_moves_nothing", repair_without_a_change_moves_nothing},
		{"tiny_rings_work", tiny_rings_work},
		{"bad_requests_are_refused", bad_requests_are_refused},
		{"arcs_follow_every_move", arcs_follow_every_move},
	};

	return SUITE_RUN("balance", cases);
}
