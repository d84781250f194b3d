// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/plan.h"
#include "control/ring/build.h"
#include "control/ring/walk.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS 200u

static struct cutover_spec spec;
static struct plan plan;

static void surge_is_that_of_the_table(void)
{
	// churn 0.9, growth 25 %: the steps that the operators' table names.
	CU_ASSERT_DOUBLE_EQUAL(plan_step_max(0.25, 0.9, 0.80), 0.0694, 0.0001);
	CU_ASSERT_DOUBLE_EQUAL(plan_step_max(0.25, 0.9, 0.90), 0.0309, 0.0001);
	CU_ASSERT_DOUBLE_EQUAL(plan_step_max(0.25, 0.9, 0.95), 0.0146, 0.0001);
	CU_ASSERT_DOUBLE_EQUAL(plan_step_max(0.25, 0.9, 0.99), 0.0028, 0.0001);
	CU_ASSERT_DOUBLE_EQUAL(plan_surge(0.4, 0.9, 0.80), 2.44, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(plan_surge(0.4, 0.9, 0.99), 36.6, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(plan_step_max(0.25, 0, 0.9), 1, 0);
	CU_ASSERT_DOUBLE_EQUAL(plan_step_max(0.25, 0.9, 0), 1, 0);
	// A step of that size grows the origin by exactly what is tolerated.
	CU_ASSERT_DOUBLE_EQUAL(plan_surge(plan_step_max(0.25, 0.9, 0.95), 0.9, 0.95), 1.25, 1e-9);
}

static void late_rollback_costs_more_and_early_nothing(void)
{
	CU_ASSERT_DOUBLE_EQUAL(plan_rollback_surge(0.9, 0.9, 0.95, 0, 1000), 0, 1e-12);
	double soon = plan_rollback_surge(0.9, 0.9, 0.95, 100, 1000);
	double late = plan_rollback_surge(0.9, 0.9, 0.95, 3600000, 1000);

	CU_ASSERT_TRUE(soon > 0 && soon < late);
	CU_ASSERT_DOUBLE_EQUAL(late, plan_surge(0.9, 0.9, 0.95) - 1, 1e-9);
}

static void prediction_is_the_exact_formula(void)
{
	uint32_t equal[MEMBERS];

	for (unsigned i = 0; i < MEMBERS; i++)
		equal[i] = 7;
	CU_ASSERT_DOUBLE_EQUAL(plan_cv_predicted(equal, MEMBERS, MEMBERS * 16),
		sqrt((MEMBERS - 1.0) / (MEMBERS * 16.0 + 1)), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(plan_cv_predicted(equal, 100, 100), 0.99, 0.005);
	CU_ASSERT_DOUBLE_EQUAL(plan_cv_predicted(equal, 100, 16000), 0.08, 0.002);
}

// A ring of MEMBERS servers 10.0.x.y, every weight 1.
static void *build(enum ring_version version, uint32_t points, struct ring *ret)
{
	struct ring_spec_member members[MEMBERS];
	struct ring_spec ring_spec = {
		.version = version, .points = points, .member_count = MEMBERS, .members = members};
	struct ring_error error;
	const char *reason;
	void *image;
	size_t bytes;

	memset(members, 0, sizeof(members));
	for (uint32_t i = 0; i < MEMBERS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.%u", i / 250, i % 250 + 1);
		CU_ASSERT_EQUAL_FATAL(addr_parse(text, &members[i].address), 0);
		members[i].port = 80;
		members[i].weight = 1;
		members[i].backend = i;
	}
	CU_ASSERT_EQUAL_FATAL(ring_spec_normalise(&ring_spec, &error), 0);
	CU_ASSERT_EQUAL_FATAL(ring_build_image(&ring_spec, &image, &bytes), 0);
	CU_ASSERT_EQUAL_FATAL(ring_open(image, bytes, ret, &reason), 0);
	return image;
}

// Operators' table: 200 servers, v1 to v2 x 16, moves 89.7 % and leaves CV 0.24, hottest 1.73, coldest 0.49.
static void churn_and_balance_of_v1_to_v2_are_those_of_the_table(void)
{
	uint64_t arcs[MEMBERS];
	uint32_t weights[MEMBERS];
	struct plan_balance old_balance, new_balance;
	struct ring old_ring, new_ring;
	void *old_image = build(RING_V1, 0, &old_ring);
	void *new_image = build(RING_V2, 16, &new_ring);
	double churn = (double)ring_churn(&old_ring, &new_ring, NULL, NULL) / (double)RING_CIRCLE;

	for (unsigned i = 0; i < MEMBERS; i++)
		weights[i] = 1;
	ring_shares(&old_ring, arcs);
	plan_balance_of(arcs, weights, MEMBERS, 160 * MEMBERS, &old_balance);
	ring_shares(&new_ring, arcs);
	plan_balance_of(arcs, weights, MEMBERS, 16 * MEMBERS, &new_balance);
	printf("# churn %.4f, v1 CV %.3f (%.3f), v2 CV %.3f (%.3f) %.2f %.2f\n", churn,
		old_balance.cv, old_balance.predicted, new_balance.cv, new_balance.predicted,
		new_balance.hottest, new_balance.coldest);
	// The 16 points are among the 160, so a key stays with chance 1/10, or by falling to the same server again.
	CU_ASSERT_DOUBLE_EQUAL(churn, 0.9 * (1 - 1.0 / MEMBERS), 0.01);
	CU_ASSERT_DOUBLE_EQUAL(old_balance.cv, old_balance.predicted, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(new_balance.cv, new_balance.predicted, 0.03);
	CU_ASSERT_TRUE(new_balance.hottest > 1.4 && new_balance.hottest < 2.1);
	CU_ASSERT_TRUE(new_balance.coldest > 0.3 && new_balance.coldest < 0.7);
	free(old_image);
	free(new_image);
}

// Arithmetic on arcs against a million keys, one by one.
static void exact_churn_is_what_a_million_keys_do(void)
{
	struct ring old_ring, new_ring;
	void *old_image = build(RING_V1, 0, &old_ring);
	void *new_image = build(RING_V2, 32, &new_ring);
	double churn = (double)ring_churn(&old_ring, &new_ring, NULL, NULL) / (double)RING_CIRCLE;
	uint64_t state = suite_seed(), moved = 0;
	const uint64_t keys = 1000000;

	for (uint64_t i = 0; i < keys; i++) {
		uint32_t hash = (uint32_t)suite_random(&state);

		moved += ring_member(&old_ring, ring_lookup(&old_ring, hash)) !=
			ring_member(&new_ring, ring_lookup(&new_ring, hash));
	}
	double off = fabs((double)moved / (double)keys - churn);

	CU_ASSERT_TRUE(off < 5 * plan_sample_error(churn, keys));
	free(old_image);
	free(new_image);
}

static void compute(enum flow_affinity affinity)
{
	static const double flows[CUTOVER_DATACENTERS_MAX] = {600, 1400, 3000};
	struct plan_ring ring = {.affinity = affinity, .churn = 0.9};
	struct plan_input input = {
		.spec = &spec, .rings = &ring, .ring_count = 1, .flows_per_second = flows};

	plan_compute(&input, &plan);
}

static void plan_lists_every_step_with_what_it_moves(void)
{
	fixture_spec(&spec);
	compute(FLOW_AFFINITY_FLOW);
	CU_ASSERT_EQUAL_FATAL(plan.step_count, 4);
	CU_ASSERT_DOUBLE_EQUAL(plan.steps[0].moves, 0.009, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(plan.steps[1].moves, 0.081, 1e-9);
	CU_ASSERT_EQUAL(plan.steps[2].from, 0); // fra comes in at 0 %
	CU_ASSERT_DOUBLE_EQUAL(plan.steps[0].surge, 0, 0);
	CU_ASSERT_DOUBLE_EQUAL(plan.step_max, 1, 0);
	// 15 984 flows at 1 % of 2 000 a second of ams and waw.
	CU_ASSERT_DOUBLE_EQUAL((double)plan.steps[0].soak_min_ms, 799200, 1);
	CU_ASSERT_DOUBLE_EQUAL(plan.steps[2].flows_per_second, 5000, 0);
}

static void soak_is_as_long_as_its_early_abort_needs(void)
{
	fixture_spec(&spec);
	CU_ASSERT_EQUAL_FATAL(spec.guards[0].kind, GUARD_EARLY_ABORT);
	spec.guards[0].difference_min = 0.01;
	compute(FLOW_AFFINITY_FLOW);
	CU_ASSERT_DOUBLE_EQUAL(plan.flows_min, 1584, 1); // 16 d (1 - d)/d^2
	CU_ASSERT_DOUBLE_EQUAL((double)plan.steps[0].soak_min_ms, 79200, 1);
	spec.guards[0].dry_run = true; // nobody waits for what it says
	compute(FLOW_AFFINITY_FLOW);
	CU_ASSERT_EQUAL(plan.steps[0].soak_min_ms, 0);
	spec.guards[0].dry_run = false;
	struct plan_ring ring = {.churn = 0.9};
	struct plan_input unknown = {.spec = &spec, .rings = &ring, .ring_count = 1};

	plan_compute(&unknown, &plan);
	CU_ASSERT_EQUAL(plan.steps[0].soak_min_ms, UINT64_MAX);
}

static void surge_counts_only_where_keys_have_a_home(void)
{
	fixture_spec(&spec);
	spec.hit_ratio = 0.95;
	spec.stages[1].max_step_surge = 0.25;
	compute(FLOW_AFFINITY_CLIENT);
	CU_ASSERT_DOUBLE_EQUAL(plan.step_max, 0.0146, 0.0001);
	CU_ASSERT_DOUBLE_EQUAL(plan.steps[0].surge, 0.171, 0.001);
	CU_ASSERT_FALSE(plan.steps[0].over_limit);
	CU_ASSERT_TRUE(plan.steps[2].over_limit);
	plan_limit_steps(&spec, &plan);
	CU_ASSERT_EQUAL(spec.stages[0].step_share_max, 0);
	CU_ASSERT_EQUAL(spec.stages[1].step_share_max, 14619);
	CU_ASSERT_DOUBLE_EQUAL(plan.rollback_late, 0.9 * 19 * (1 - exp(-1)), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(plan.steps[0].rollback_late, 0.01 * 0.9 * 19 * (1 - exp(-1)), 1e-9);
	compute(FLOW_AFFINITY_FLOW);
	CU_ASSERT_FALSE(plan.steps[2].over_limit);
	CU_ASSERT_DOUBLE_EQUAL(plan.step_max, 1, 0);
}

static void ramp_is_one_line_with_its_whole_time(void)
{
	fixture_spec(&spec);
	spec.stages[1].step_count = 0;
	spec.stages[1].ramp_to = GATE_SHARE_ALL;
	spec.stages[1].ramp_step = 14000;
	spec.stages[1].min_soak_ms = 22 * 60000;
	compute(FLOW_AFFINITY_FLOW);
	CU_ASSERT_EQUAL_FATAL(plan.step_count, 3);
	CU_ASSERT_EQUAL(plan.steps[2].rises, 72);
	CU_ASSERT_EQUAL(plan.steps[2].total_ms, UINT64_C(72) * 22 * 60000);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(surge_is_that_of_the_table),
	CASE(late_rollback_costs_more_and_early_nothing),
	CASE(prediction_is_the_exact_formula),
	CASE(churn_and_balance_of_v1_to_v2_are_those_of_the_table),
	CASE(exact_churn_is_what_a_million_keys_do),
	CASE(plan_lists_every_step_with_what_it_moves),
	CASE(soak_is_as_long_as_its_early_abort_needs),
	CASE(surge_counts_only_where_keys_have_a_home),
	CASE(ramp_is_one_line_with_its_whole_time),
};

int main(void)
{
	return SUITE_RUN("cutover plan", cases);
}
