// SPDX-License-Identifier: Apache-2.0
// Balanced v3 rings: the image has the shares that the balancer promised, and a change moves little.
#include "control/ring/lanes.h"

#include "control/ring/balance_stats.h"
#include "control/ring/walk.h"
#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"
#include "tests/oracle/horrible_ring.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct balanced {
	struct ring_set set;
	struct ring_lane *lanes;
	struct balance_report report;
	struct ring_built built;
};

// Normalises, balances and builds. old: NULL for a fresh ring.
static void balance(struct balanced *ret, const struct balanced *old)
{
	struct ring_error error = {""};
	struct ring_lanes_request request = {
		.spec = &ret->set.spec,
		.old = old ? old->lanes : NULL,
		.old_count = old ? old->set.spec.lane_count : 0,
		.tolerance = RING_LANES_TOLERANCE,
	};
	uint32_t count = 0;

	ret->set.spec.lanes = NULL;
	ret->set.spec.lane_count = 0;
	CU_ASSERT_EQUAL_FATAL(ring_spec_normalise(&ret->set.spec, &error), 0);
	CU_ASSERT_EQUAL_FATAL(ring_lanes_choose(&request, &ret->lanes, &count, &ret->report), 0);
	ret->set.spec.lanes = ret->lanes;
	ret->set.spec.lane_count = count;
	CU_ASSERT_EQUAL_FATAL(ring_built_make(&ret->set, &ret->built), 0);
}

static void release(struct balanced *balanced)
{
	ring_built_free(&balanced->built);
	ring_set_free(&balanced->set);
	free(balanced->lanes);
	balanced->lanes = NULL;
}

static void start(struct balanced *ret, uint32_t count)
{
	memset(ret, 0, sizeof(*ret));
	ring_set_init(&ret->set, RING_V3, 16, count);
	ring_set_sequence(&ret->set, 0x0a140000, 8080);
}

static void measure(const struct balanced *balanced, struct ring_balance *ret)
{
	uint32_t count = balanced->set.spec.member_count;
	uint64_t *arcs = calloc(count, sizeof(*arcs));
	uint32_t *weights = calloc(count, sizeof(*weights));

	CU_ASSERT_FATAL(arcs != NULL && weights != NULL);
	for (uint32_t i = 0; i < count; i++)
		weights[i] = balanced->set.spec.members[i].weight;
	ring_shares(&balanced->built.ring, arcs);
	ring_balance_measure(arcs, weights, count, ret);
	free(weights);
	free(arcs);
}

static void built_ring_has_the_balance_promised(void)
{
	struct balanced ring;
	struct ring_balance measured;

	start(&ring, 2048);
	balance(&ring, NULL);
	measure(&ring, &measured);
	printf("# 2,048 x 16: CV %.3f %%, hottest %.4f; points %u; promised CV %.3f %%, %.4f\n",
		measured.cv * 100, measured.hottest_ratio, ring.built.ring.header->point_count,
		ring.report.cv * 100, ring.report.hottest);
	CU_ASSERT(measured.cv <= 0.01);
	CU_ASSERT(measured.hottest_ratio <= 1.03);
	CU_ASSERT(fabs(measured.cv - ring.report.cv) < 1e-4);
	CU_ASSERT(ring.report.points - ring.built.ring.header->point_count < 10);
	release(&ring);
}

static void weights_are_target_shares(void)
{
	struct balanced ring;
	struct ring_balance measured;

	start(&ring, 100);
	for (uint32_t i = 0; i < 100; i++)
		ring.set.spec.members[i].weight = 1 + i * 624 / 99;
	balance(&ring, NULL);
	measure(&ring, &measured);
	printf("# 100 backends of weights 1 to 625: %u points, hottest %.4f, coldest %.4f\n",
		ring.built.ring.header->point_count, measured.hottest_ratio,
		measured.coldest_ratio);
	CU_ASSERT(measured.hottest_ratio <= 1.02);
	CU_ASSERT(measured.coldest_ratio >= 0.98);
	release(&ring);
}

static void points_equal_the_oracle(void)
{
	struct balanced ring;
	struct horrible_ring oracle;
	struct ring_cursor cursor;
	struct ring_walk_point point;
	uint32_t at = 0;

	start(&ring, 60);
	for (uint32_t i = 0; i < 60; i++)
		ring.set.spec.members[i].weight = i % 20 == 0 ? 40 : 1 + i % 3;
	balance(&ring, NULL);
	CU_ASSERT(ring.set.spec.lane_count > 60);
	horrible_ring_build(&ring.set.spec, &oracle);
	CU_ASSERT_EQUAL_FATAL(ring.built.ring.header->point_count, oracle.count);
	ring_cursor_first(&cursor, &ring.built.ring);
	for (; ring_cursor_next(&cursor, &point); at++) {
		CU_ASSERT_EQUAL(point.hash, oracle.points[at].hash);
		CU_ASSERT_EQUAL(point.owner, oracle.points[at].owner);
	}
	horrible_ring_free(&oracle);
	release(&ring);
}

static void input_order_does_not_matter(void)
{
	struct balanced ring, reversed;

	start(&ring, 300);
	start(&reversed, 300);
	for (uint32_t i = 0; i < 300; i++) {
		struct ring_spec_member *from = &ring.set.spec.members[299 - i];

		from->weight = 1 + i % 4;
		reversed.set.spec.members[i] = *from;
	}
	balance(&ring, NULL);
	balance(&reversed, NULL);
	CU_ASSERT_EQUAL(memcmp(ring.built.image, reversed.built.image, ring.built.bytes), 0);
	release(&ring);
	release(&reversed);
}

// Takes `leavers` members out of 2,048 and balances again, from the old choices.
static void check_leave(uint32_t leavers, double bar)
{
	struct balanced before, after;
	struct ring_balance measured;
	uint64_t arcs[2048], unavoidable = 0;

	start(&before, 2048);
	balance(&before, NULL);
	start(&after, 2048);
	ring_shares(&before.built.ring, arcs);
	for (uint32_t i = 0; i < leavers; i++)
		unavoidable += arcs[700 + i];
	memmove(after.set.spec.members + 700, after.set.spec.members + 700 + leavers,
		(2048 - 700 - leavers) * sizeof(*after.set.spec.members));
	after.set.spec.member_count -= leavers;
	balance(&after, &before);
	measure(&after, &measured);
	double churn =
		(double)ring_churn(&before.built.ring, &after.built.ring, NULL, NULL) / unavoidable;

	printf("# %u of 2,048 leave: churn %.3f x unavoidable, hottest %.4f, CV %.3f %%\n", leavers,
		churn, measured.hottest_ratio, measured.cv * 100);
	CU_ASSERT(churn <= bar);
	CU_ASSERT(measured.hottest_ratio <= 1.10);
	release(&before);
	release(&after);
}

static void leaving_moves_little_more_than_it_must(void)
{
	check_leave(1, 1.25);
	check_leave(20, 1.35);
}

static void joining_and_reweighting_move_little(void)
{
	struct balanced before, after;
	struct ring_balance measured;
	uint64_t arcs[2049], old_arcs[2049];

	start(&before, 2048);
	balance(&before, NULL);
	start(&after, 2049);
	balance(&after, &before);
	measure(&after, &measured);
	ring_shares(&after.built.ring, arcs);
	double churn = (double)ring_churn(&before.built.ring, &after.built.ring, NULL, NULL) /
		((double)RING_CIRCLE / 2049);

	printf("# one joins 2,048: churn %.3f x unavoidable, hottest %.4f\n", churn,
		measured.hottest_ratio);
	CU_ASSERT(churn <= 1.25);
	CU_ASSERT(measured.hottest_ratio <= 1.10);
	release(&after);
	start(&after, 2048);
	after.set.spec.members[5].weight = 2;
	balance(&after, &before);
	measure(&after, &measured);
	ring_shares(&before.built.ring, old_arcs);
	churn = (double)ring_churn(&before.built.ring, &after.built.ring, NULL, NULL) /
		(2.0 * (double)RING_CIRCLE / 2049 - (double)old_arcs[5]);
	printf("# one of 2,048 doubles its weight: churn %.3f x unavoidable, hottest %.4f\n", churn,
		measured.hottest_ratio);
	CU_ASSERT(churn <= 1.25);
	CU_ASSERT(measured.hottest_ratio <= 1.10);
	release(&before);
	release(&after);
}

static void check_refused(struct ring_set *set, const char *words)
{
	struct ring_error error = {""};

	CU_ASSERT_EQUAL(ring_spec_normalise(&set->spec, &error), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, words));
	if (strstr(error.text, words) == NULL)
		printf("# got: %s\n", error.text);
}

static void lanes_must_fit_the_members(void)
{
	struct ring_lane lanes[4] = {0};
	struct ring_set set;

	ring_set_init(&set, RING_V3, 16, 3);
	ring_set_sequence(&set, 0x0a000001, 0);
	for (unsigned i = 0; i < 3; i++)
		lanes[i] = (struct ring_lane){set.spec.members[i].address, 0, 1, 0, 0xffff};
	set.spec.lanes = lanes;
	set.spec.lane_count = 2;
	check_refused(&set, "backend 10.0.0.3: the ring's balance does not know it");
	set.spec.lane_count = 3;
	set.spec.member_count = 2;
	check_refused(&set, "names a backend that is not a member");
	set.spec.member_count = 3;
	lanes[1].mask = 0;
	check_refused(&set, "backend 10.0.0.2: its balance is malformed");
	lanes[1].mask = 1;
	lanes[1].base = 32;
	check_refused(&set, "backend 10.0.0.2: its balance is malformed");
	lanes[1].base = 64;
	lanes[3] = lanes[2];
	set.spec.lane_count = 4;
	check_refused(&set, "backend 10.0.0.3: its lanes are not in order");
	set.spec.lane_count = 3;
	set.spec.version = RING_V2;
	check_refused(&set, "only a v3 ring has a balance");
	ring_set_free(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"built_ring_has_the_balance_promised", built_ring_has_the_balance_promised},
		{"weights_are_target_shares", weights_are_target_shares},
		{"points_equal_the_oracle", points_equal_the_oracle},
		{"input_order_does_not_matter", input_order_does_not_matter},
		{"leaving_moves_little_more_than_it_must", leaving_moves_little_more_than_it_must},
		{"joining_and_reweighting_move_little", joining_and_reweighting_move_little},
		{"lanes_must_fit_the_members", lanes_must_fit_the_members},
	};

	return SUITE_RUN("ring lanes", cases);
}
