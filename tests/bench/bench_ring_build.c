// SPDX-License-Identifier: Apache-2.0
// How long rings take to build, beside v1's way in the same run: one byte table, one chain after the other, the
// library's comparison sort.
#include "control/ring/build.h"
#include "tests/bench/bench.h"
#include "tests/lib/ring_set.h"
#include "tests/oracle/horrible_ring.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 15u

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

// What one round measures, in nanoseconds of thread CPU time.
struct round {
	uint64_t v1_way;
	uint64_t build;
	uint64_t write;
	uint64_t resolve;
};

static uint64_t time_v1_way(const struct ring_spec *spec)
{
	uint64_t start = bench_now_ns();
	uint32_t count;
	struct horrible_point *points = horrible_ring_points_v1(spec, &count);
	uint64_t spent = bench_now_ns() - start;

	free(points);
	return spent;
}

static void time_build(const struct ring_spec *spec, struct round *ret)
{
	struct ring_points *points;
	uint64_t start = bench_now_ns();

	if (ring_points_build(spec, &points) != 0)
		abort();
	ret->build = bench_now_ns() - start;
	size_t bytes = ring_points_image_bytes(points);
	void *image = aligned_alloc(RING_ALIGN, bytes);
	uint64_t *usable = calloc(spec->member_count / 64 + 1, sizeof(*usable));

	memset(image, 0, bytes);
	start = bench_now_ns();
	if (ring_points_write(points, image) != 0)
		abort();
	ret->write = bench_now_ns() - start;
	for (uint32_t i = 0; i < spec->member_count; i += 2)
		usable[i / 64] |= UINT64_C(1) << i % 64;
	start = bench_now_ns();
	ring_resolve(image, usable);
	ret->resolve = bench_now_ns() - start;
	free(usable);
	free(image);
	ring_points_free(points);
}

static uint64_t median(uint64_t *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_time);
	return values[ROUNDS / 2];
}

static void bench_size(enum ring_version version, uint32_t members, uint32_t points, bool v1_way)
{
	uint64_t way[ROUNDS], build[ROUNDS], write[ROUNDS], resolve[ROUNDS];
	struct ring_error error;
	struct ring_set set;

	ring_set_init(&set, version, points, members);
	ring_set_sequence(&set, 0x0a140000, 8080);
	if (ring_spec_normalise(&set.spec, &error) != 0)
		abort();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct round round;

		time_build(&set.spec, &round);
		way[i] = v1_way ? time_v1_way(&set.spec) : 0;
		build[i] = round.build;
		write[i] = round.write;
		resolve[i] = round.resolve;
	}
	double n = (double)members * points;

	printf("v%d %5u x %-5u  build %9.3f ms (%5.2f ns/point)  write %8.3f ms  resolve %8.3f ms",
		(int)version, members, points, (double)median(build) / 1e6,
		(double)median(build) / n, (double)median(write) / 1e6,
		(double)median(resolve) / 1e6);
	if (v1_way)
		printf("  v1's way %9.3f ms, ratio %.1f", (double)median(way) / 1e6,
			(double)median(way) / (double)median(build));
	putchar('\n');
	ring_set_free(&set);
}

int main(void)
{
	// Memory stays with the process between rounds: page faults are the kernel's time, and more of v1's.
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	bench_size(RING_V3, 2048, 16, true);
	bench_size(RING_V3, 2048, 160, true);
	bench_size(RING_V2, 2048, 160, true);
	bench_size(RING_V1, 2048, 160, true);
	bench_size(RING_V3, 2048, 3200, false);
	return 0;
}
