// SPDX-License-Identifier: Apache-2.0
#include "control/cli/simulate_balanced.h"

#include "control/ring/build.h"
#include "control/ring/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int measure(const struct ring_spec *spec, struct simulate_balanced *ret)
{
	uint64_t *arcs = calloc(spec->member_count, sizeof(*arcs));
	uint32_t *weights = calloc(spec->member_count, sizeof(*weights));
	struct ring_points *points = NULL;
	uint64_t started = now_ns();
	int error = arcs && weights ? ring_points_build(spec, &points) : -ENOMEM;

	if (!error) {
		ret->build_ns = now_ns() - started;
		for (uint32_t i = 0; i < spec->member_count; i++)
			weights[i] = spec->members[i].weight;
		ring_points_arcs(points, RING_V3, arcs);
		ring_balance_measure(arcs, weights, spec->member_count, &ret->balance);
		ret->points = ring_points_count(points);
		ret->bytes = ring_points_image_bytes(points);
	}
	ring_points_free(points);
	free(arcs);
	free(weights);
	return error;
}

int simulate_balanced(struct ring_spec_member *members, uint32_t count, uint32_t points,
	struct simulate_balanced *ret, struct ring_error *ret_error)
{
	struct ring_spec spec = {
		.version = RING_V3, .points = points, .member_count = count, .members = members};
	struct ring_lanes_request request = {.spec = &spec, .tolerance = RING_LANES_TOLERANCE};
	struct ring_lane *lanes = NULL;
	struct simulate_balanced made;
	uint64_t started;
	int error = ring_spec_normalise(&spec, ret_error);

	if (error)
		return error;
	started = now_ns();
	error = ring_lanes_choose(&request, &lanes, &spec.lane_count, NULL);
	made.choose_ns = now_ns() - started;
	spec.lanes = lanes;
	if (!error)
		error = ring_spec_normalise(&spec, ret_error);
	if (!error)
		error = measure(&spec, &made);
	free(lanes);
	if (!error)
		*ret = made;
	return error;
}
