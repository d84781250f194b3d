// SPDX-License-Identifier: Apache-2.0
// Dozens of rings over one fleet: 2,048 backends with weights by disk size, five tags, one ring for each of the 32 sets
// of tags that a service may require. What a worker's copy of all of them takes in each version, and how long they
// take to build.
#include "control/ring/balance_stats.h"
#include "control/ring/lanes.h"
#include "control/ring/walk.h"
#include "tests/bench/bench.h"
#include "tests/lib/ring_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKENDS 2048u
#define TAGS     5u

// What all rings of one version come to.
struct totals {
	uint64_t members;
	uint64_t points;
	uint64_t bytes;
	double choose_ms; // v3: choosing points; nodes that have the choices do without
	double build_ms;  // points and image
	double worst_cv;
	double hottest;
	double coldest;
};

// Weights of 1 to 625, the sizes of disks in a fleet that grew for years: many small ones, some very large.
static uint32_t weight_of(uint32_t backend)
{
	static const uint32_t sizes[] = {1, 50, 120, 240, 240, 480, 480, 625};

	return sizes[backend * 2654435761u >> 29];
}

static uint32_t tags_of(uint32_t backend)
{
	return (backend * 2246822519u) >> 13 & ((1u << TAGS) - 1);
}

static void take_subset(struct ring_set *set, uint32_t required)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < BACKENDS; i++) {
		if ((tags_of(i) & required) != required)
			continue;
		struct ring_spec_member *member = &set->spec.members[count++];

		*member = (struct ring_spec_member){.weight = weight_of(i),
			.backend = i,
			.address = {.family = ADDR_V4,
				.bytes = {10, 20, (uint8_t)(i >> 8), (uint8_t)i}}};
	}
	set->spec.member_count = count;
}

static void measure(const struct ring *ring, const struct ring_spec *spec, struct totals *totals)
{
	uint64_t *arcs = calloc(spec->member_count, sizeof(*arcs));
	uint32_t *weights = calloc(spec->member_count, sizeof(*weights));
	struct ring_balance balance;

	if (arcs == NULL || weights == NULL)
		abort();
	for (uint32_t i = 0; i < spec->member_count; i++)
		weights[i] = spec->members[i].weight;
	ring_shares(ring, arcs);
	ring_balance_measure(arcs, weights, spec->member_count, &balance);
	if (balance.cv > totals->worst_cv)
		totals->worst_cv = balance.cv;
	if (balance.hottest_ratio > totals->hottest)
		totals->hottest = balance.hottest_ratio;
	if (balance.coldest_ratio < totals->coldest)
		totals->coldest = balance.coldest_ratio;
	free(weights);
	free(arcs);
}

// Chooses the points of a v3 ring. Returns the lanes, for free().
static struct ring_lane *choose(struct ring_spec *spec, struct totals *totals)
{
	struct ring_lanes_request request = {.spec = spec, .tolerance = RING_LANES_TOLERANCE};
	struct ring_lane *lanes = NULL;
	uint64_t start = bench_now_ns();

	if (spec->version == RING_V3) {
		if (ring_lanes_choose(&request, &lanes, &spec->lane_count, NULL) != 0)
			abort();
		spec->lanes = lanes;
	}
	totals->choose_ms += (double)(bench_now_ns() - start) / 1e6;
	return lanes;
}

static void add_ring(struct ring_spec *spec, struct totals *totals)
{
	struct ring_error error;
	const char *reason = "";
	struct ring ring;
	size_t bytes;
	void *image;

	spec->lanes = NULL;
	spec->lane_count = 0;
	if (ring_spec_normalise(spec, &error) != 0) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	struct ring_lane *lanes = choose(spec, totals);
	uint64_t start = bench_now_ns();

	if (ring_build_image(spec, &image, &bytes) != 0) {
		fprintf(stderr, "no memory for this ring\n");
		exit(1);
	}
	totals->build_ms += (double)(bench_now_ns() - start) / 1e6;
	if (ring_open(image, bytes, &ring, &reason) != 0) {
		fprintf(stderr, "%s\n", reason);
		exit(1);
	}
	measure(&ring, spec, totals);
	totals->members += spec->member_count;
	totals->points += ring.header->point_count;
	totals->bytes += bytes;
	free(image);
	free(lanes);
}

static void bench_version(enum ring_version version, uint32_t points, const char *name)
{
	struct totals totals = {.coldest = 1};
	struct ring_set set;

	ring_set_init(&set, version, points, BACKENDS);
	for (uint32_t required = 0; required < 1u << TAGS; required++) {
		take_subset(&set, required);
		add_ring(&set.spec, &totals);
	}
	printf("%-14s %11" PRIu64 " %12.2f %10.0f %10.0f %9.3f %% %9.3f %9.3f\n", name,
		totals.points, (double)totals.bytes / (1 << 20), totals.choose_ms, totals.build_ms,
		totals.worst_cv * 100, totals.hottest, totals.coldest);
	fflush(stdout);
	ring_set_free(&set);
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "--all") == 0;

	printf("%-14s %11s %12s %10s %10s %11s %9s %9s\n", "32 rings", "points", "MiB a copy",
		"choose ms", "build ms", "worst CV", "hottest", "coldest");
	// Some 800 million points, of which the largest ring needs 1.3 GB while it is built: only if asked for.
	if (all)
		bench_version(RING_V1, 160, "v1");
	bench_version(RING_V2, 16, "v2, 16");
	bench_version(RING_V3, 16, "v3, balanced");
	return 0;
}
