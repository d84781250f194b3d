// SPDX-License-Identifier: Apache-2.0
#include "control/ring/balance.h"
#include "control/ring/chain.h"

#include "tests/lib/suite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS 2048u

// A fleet of made-up members 10.x.y.z:80 and what the balancer chose for them.
struct fleet {
	struct balance_member *members;
	uint32_t *ids;
	uint32_t count;
	struct balance_choice *choices;
	uint32_t choice_count;
	struct balance_report report;
};

static struct chain_tables tables;

static uint32_t state_of(uint32_t id)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "10.%u.%u.%u", id >> 16, id >> 8 & 255, id & 255);

	length += 1 + snprintf(text + length + 1, sizeof(text) - (size_t)length - 1, "80");
	return chain_seed(&tables, UINT32_MAX, text, (size_t)length);
}

static struct balance_request request_of(
	const struct fleet *fleet, uint32_t points, double tolerance)
{
	return (struct balance_request){
		.members = fleet->members,
		.count = fleet->count,
		.points = points,
		.tolerance = tolerance,
	};
}

static struct fleet fleet_new(uint32_t count)
{
	struct fleet fleet = {.count = count};

	chain_tables_fill(&tables);
	fleet.members = calloc(count, sizeof(*fleet.members));
	fleet.ids = calloc(count, sizeof(*fleet.ids));
	for (uint32_t i = 0; i < count; i++) {
		fleet.ids[i] = i;
		fleet.members[i] = (struct balance_member){.weight = 1, .state = state_of(i)};
	}
	return fleet;
}

static void fleet_free(struct fleet *fleet)
{
	free(fleet->members);
	free(fleet->ids);
	free(fleet->choices);
}

static void choose_fresh(struct fleet *fleet, uint32_t points)
{
	struct balance_request request = request_of(fleet, points, 0.1);

	CU_ASSERT_EQUAL_FATAL(
		balance_layout(&request, NULL, 0, &fleet->choices, &fleet->choice_count), 0);
	CU_ASSERT_EQUAL_FATAL(
		balance_fresh(&request, fleet->choices, fleet->choice_count, &fleet->report), 0);
}

// The naive twin of the arcs: a list of points and owners, sorted by the library, gone through once.
struct point {
	uint32_t hash;
	uint32_t id;
};

static int compare_points(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static uint32_t points_of(const struct fleet *fleet, struct point *ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < fleet->choice_count; i++) {
		const struct balance_choice *choice = &fleet->choices[i];
		uint32_t state = fleet->members[choice->member].state, point = 0;

		for (uint32_t at = 0; at < choice->base + ARCS_SLOTS; at++) {
			point = chain_step(&tables, state, point);
			if (at >= choice->base && choice->mask >> (at - choice->base) & 1)
				ret[count++] = (struct point){point, fleet->ids[choice->member]};
		}
	}
	qsort(ret, count, sizeof(*ret), compare_points);
	return count;
}

static struct point *points_new(const struct fleet *fleet, uint32_t *ret_count)
{
	struct point *points = calloc(fleet->choice_count, ARCS_SLOTS * sizeof(*points));

	*ret_count = points_of(fleet, points);
	return points;
}

// Share of the circle whose owner differs.
static double churn(const struct fleet *a, const struct fleet *b)
{
	uint32_t a_count, b_count, i = 0, j = 0;
	struct point *x = points_new(a, &a_count), *y = points_new(b, &b_count);
	uint64_t at = 0, moved = 0, all = UINT64_C(1) << 32;

	while (at < all) {
		uint64_t x_end = i < a_count ? x[i].hash + UINT64_C(1) : all;
		uint64_t y_end = j < b_count ? y[j].hash + UINT64_C(1) : all;
		uint64_t end = x_end < y_end ? x_end : y_end;

		if (x[i < a_count ? i : 0].id != y[j < b_count ? j : 0].id)
			moved += end - at;
		at = end;
		while (i < a_count && x[i].hash + UINT64_C(1) <= end)
			i++;
		while (j < b_count && y[j].hash + UINT64_C(1) <= end)
			j++;
	}
	free(x);
	free(y);
	return (double)moved / (double)all;
}

// Largest share / target by the naive twin.
static double hottest(const struct fleet *fleet)
{
	uint32_t count;
	struct point *points = points_new(fleet, &count);
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
	struct fleet fleet = fleet_new(MEMBERS);

	choose_fresh(&fleet, 16);
	CU_ASSERT_EQUAL(fleet.choice_count, MEMBERS);
	CU_ASSERT(fleet.report.cv <= 0.01);
	CU_ASSERT(fleet.report.hottest <= 1.03);
	CU_ASSERT(fleet.report.points <= MEMBERS * 17);
	CU_ASSERT_DOUBLE_EQUAL(hottest(&fleet), fleet.report.hottest, 1e-6);
	fleet_free(&fleet);
}

// One member in the fleet has more than the points of a lane; most have one or two.
static void weights_are_met_within_two_percent(void)
{
	static const struct {
		uint32_t count, weight_max;
	} fleets[] = {{100, 625}, {1000, 625}, {3, 625}};

	for (unsigned f = 0; f < sizeof(fleets) / sizeof(fleets[0]); f++) {
		struct fleet fleet = fleet_new(fleets[f].count);

		for (uint32_t i = 0; i < fleet.count; i++)
			fleet.members[i].weight = 1 + i * 2654435761u % fleets[f].weight_max;
		choose_fresh(&fleet, 16);
		CU_ASSERT(fleet.report.hottest <= 1.02);
		CU_ASSERT(fleet.report.coldest >= 0.98);
		CU_ASSERT(fleet.report.points <= fleet.count * 18);
		CU_ASSERT_DOUBLE_EQUAL(hottest(&fleet), fleet.report.hottest, 1e-6);
		fleet_free(&fleet);
	}
}

static void one_giant_gets_its_share_by_several_lanes(void)
{
	struct fleet fleet = fleet_new(100);

	fleet.members[0].weight = 625;
	choose_fresh(&fleet, 16);
	CU_ASSERT(fleet.choice_count > fleet.count);
	CU_ASSERT(fleet.report.hottest <= 1.02);
	CU_ASSERT(fleet.report.coldest >= 0.98);
	fleet_free(&fleet);
}

static void same_request_gives_same_choices(void)
{
	struct fleet a = fleet_new(300), b = fleet_new(300);

	choose_fresh(&a, 16);
	choose_fresh(&b, 16);
	CU_ASSERT_EQUAL_FATAL(a.choice_count, b.choice_count);
	CU_ASSERT_EQUAL(memcmp(a.choices, b.choices, a.choice_count * sizeof(*a.choices)), 0);
	fleet_free(&a);
	fleet_free(&b);
}

// A fleet after a change: some members left, some came, one has another weight; choices are carried over and repaired.
struct change {
	uint32_t removed, added, weight;
};

static struct fleet repaired(
	const struct fleet *from, const struct change *change, double tolerance)
{
	struct fleet to = fleet_new(from->count - change->removed + change->added);
	struct balance_choice *old = calloc(from->count, sizeof(*old));
	uint32_t kept = 0, stride = change->removed ? from->count / change->removed : 0;

	for (uint32_t i = 0; i < from->count; i++) {
		if (change->removed && i % stride == 13 && i / stride < change->removed)
			continue;
		to.ids[kept] = from->ids[i];
		to.members[kept] = from->members[i];
		to.members[kept].weight = 100;
		old[kept] = from->choices[i];
		old[kept].member = kept;
		kept++;
	}
	for (uint32_t i = 0; i < change->added; i++) {
		to.ids[kept + i] = from->count + i;
		to.members[kept + i] = (struct balance_member){
			.weight = 100,
			.state = state_of(from->count + i),
			.changed = true,
		};
	}
	if (change->weight) {
		to.members[77].weight = change->weight;
		to.members[77].changed = true;
	}
	struct balance_request request = request_of(&to, 16, tolerance);

	CU_ASSERT_EQUAL_FATAL(
		balance_layout(&request, old, kept, &to.choices, &to.choice_count), 0);
	CU_ASSERT_EQUAL_FATAL(balance_repair(&request, to.choices, to.choice_count, &to.report), 0);
	free(old);
	return to;
}

static void repair_moves_little_beside_the_unavoidable(void)
{
	// unavoidable: the share that leaves, comes, or changes hands by the new weight
	static const struct {
		struct change change;
		double unavoidable, at_most;
	} cases[] = {
		{{.removed = 1}, 1.0 / MEMBERS, 1.25},
		{{.removed = 20}, 20.0 / MEMBERS, 1.35},
		{{.added = 1}, 1.0 / (MEMBERS + 1), 1.25},
		{{.added = 20}, 20.0 / (MEMBERS + 20), 1.35},
		{{.weight = 200}, 1.0 / (MEMBERS + 1), 1.25},
		{{.weight = 50}, 0.5 / (MEMBERS - 0.5), 1.25},
	};
	struct fleet fleet = fleet_new(MEMBERS);

	choose_fresh(&fleet, 16);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fleet after = repaired(&fleet, &cases[i].change, 0.1);
		double ratio = churn(&fleet, &after) / cases[i].unavoidable;

		printf("# case %u: churn %.3f of the unavoidable, hottest %.3f\n", i, ratio,
			after.report.hottest);
		CU_ASSERT(ratio <= cases[i].at_most);
		CU_ASSERT(after.report.hottest <= 1.1 + 1e-9);
		fleet_free(&after);
	}
	fleet_free(&fleet);
}

static void repair_without_a_change_moves_nothing(void)
{
	struct fleet fleet = fleet_new(500);
	struct change none = {0};

	choose_fresh(&fleet, 16);
	struct fleet after = repaired(&fleet, &none, 0.1);

	CU_ASSERT_EQUAL(after.report.moves, 0);
	CU_ASSERT_EQUAL(
		memcmp(after.choices, fleet.choices, fleet.choice_count * sizeof(*fleet.choices)),
		0);
	fleet_free(&after);
	fleet_free(&fleet);
}

static void tiny_rings_work(void)
{
	for (uint32_t count = 1; count <= 3; count++) {
		struct fleet fleet = fleet_new(count);

		choose_fresh(&fleet, 1);
		CU_ASSERT(fleet.report.points >= count);
		CU_ASSERT_DOUBLE_EQUAL(hottest(&fleet), fleet.report.hottest, 1e-6);
		fleet_free(&fleet);
	}
}

static void bad_requests_are_refused(void)
{
	struct fleet fleet = fleet_new(2);
	struct balance_request request = request_of(&fleet, 16, 0.1);

	choose_fresh(&fleet, 16);
	request.points = 0;
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	request.points = BALANCE_POINTS_MAX + 1;
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	request = request_of(&fleet, 16, 0.1);
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 1, &fleet.report), -EINVAL);
	fleet.members[1].weight = 0;
	CU_ASSERT_EQUAL(balance_fresh(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	fleet.members[1].weight = 1;
	request.tolerance = NAN;
	CU_ASSERT_EQUAL(balance_repair(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	request.tolerance = 0;
	CU_ASSERT_EQUAL(balance_repair(&request, fleet.choices, 2, &fleet.report), -EINVAL);
	fleet_free(&fleet);
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
