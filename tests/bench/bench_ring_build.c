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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 15u

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
	struct ring_points *points = NULL;
	uint64_t start;

	// A few in a row: the first finds the caches full of what was measured before.
	ret->build = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++) {
		ring_points_free(points);
		start = bench_now_ns();
		if (ring_points_build(spec, &points) != 0)
			abort();
		uint64_t spent = bench_now_ns() - start;

		ret->build = spent < ret->build ? spent : ret->build;
	}
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

// The best of the rounds: a busy machine only adds.
static uint64_t best(const uint64_t values[ROUNDS])
{
	uint64_t ret = values[0];

	for (unsigned i = 1; i < ROUNDS; i++)
		ret = values[i] < ret ? values[i] : ret;
	return ret;
}

// One member leaves and comes back, in place.
static uint64_t time_change(struct ring_set *set, struct ring_points *points)
{
	struct ring_spec_member *members = set->spec.members;
	uint32_t count = set->spec.member_count, owner = count / 3;
	struct ring_spec_member leaver = members[owner];

	memmove(members + owner, members + owner + 1, (count - owner - 1) * sizeof(*members));
	set->spec.member_count--;
	uint64_t start = bench_now_ns();

	if (ring_points_change(points, &set->spec, RING_CHANGE_REMOVE, owner) != 0)
		abort();
	uint64_t spent = bench_now_ns() - start;

	memmove(members + owner + 1, members + owner, (count - owner - 1) * sizeof(*members));
	members[owner] = leaver;
	set->spec.member_count++;
	start = bench_now_ns();
	if (ring_points_change(points, &set->spec, RING_CHANGE_ADD, owner) != 0)
		abort();
	return (spent + bench_now_ns() - start) / 2;
}

struct figures {
	uint64_t build;
	uint64_t v1_way;
	uint64_t change;
	uint64_t resolve;
};

static struct figures bench_size(
	enum ring_version version, uint32_t members, uint32_t points, bool v1_way)
{
	uint64_t way[ROUNDS], build[ROUNDS], write[ROUNDS], resolve[ROUNDS], change[ROUNDS];
	struct ring_points *changed;
	struct ring_error error;
	struct ring_set set;

	ring_set_init(&set, version, points, members);
	ring_set_sequence(&set, 0x0a140000, 8080);
	if (ring_spec_normalise(&set.spec, &error) != 0 ||
		ring_points_build(&set.spec, &changed) != 0)
		abort();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct round round;

		time_build(&set.spec, &round);
		way[i] = v1_way ? time_v1_way(&set.spec) : 0;
		build[i] = round.build;
		write[i] = round.write;
		resolve[i] = round.resolve;
		change[i] = time_change(&set, changed);
	}
	struct figures ret = {best(build), best(way), best(change), best(resolve)};

	printf("v%d %5u x %-5u  build %9.3f ms (%5.2f ns/point)  write %8.3f ms  resolve %7.3f ms  "
	       "change of one %7.3f ms  v1's way %9.3f ms\n",
		(int)version, members, points, (double)ret.build / 1e6,
		(double)ret.build / ((double)members * points), (double)best(write) / 1e6,
		(double)best(resolve) / 1e6, (double)ret.change / 1e6, (double)ret.v1_way / 1e6);
	ring_points_free(changed);
	ring_set_free(&set);
	return ret;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

// The peak of building 6.5 million points and writing their image, in a process of its own, over the image's bytes.
static double memory_ratio(enum ring_version version)
{
	double ratio = 0;
	int channel[2];

	if (pipe(channel) != 0)
		abort();
	pid_t child = fork();

	if (child == 0) {
		struct ring_error error;
		struct ring_set set;
		size_t bytes;
		void *image;

		ring_set_init(&set, version, 160, 2048);
		ring_set_sequence(&set, 0x0a140000, 8080);
		for (uint32_t i = 0; i < 2048; i++)
			set.spec.members[i].weight = 20;
		if (ring_spec_normalise(&set.spec, &error) != 0)
			_exit(1);
		long before = peak_kib();

		if (ring_build_image(&set.spec, &image, &bytes) != 0)
			_exit(1);
		ratio = (double)(peak_kib() - before) * 1024 / (double)bytes;
		_exit(write(channel[1], &ratio, sizeof(ratio)) == sizeof(ratio) ? 0 : 1);
	}
	close(channel[1]);
	if (read(channel[0], &ratio, sizeof(ratio)) != sizeof(ratio))
		abort();
	close(channel[0]);
	waitpid(child, NULL, 0);
	return ratio;
}

static unsigned failed;

static void check_bar(const char *what, double value, double bar, bool at_least)
{
	bool met = at_least ? value >= bar : value <= bar;

	failed += !met;
	printf("  %-62s %8.3f  bar %s %5.1f  %s\n", what, value, at_least ? ">=" : "<=", bar,
		met ? "met" : "MISSED");
}

int main(void)
{
	double memory[] = {memory_ratio(RING_V1), memory_ratio(RING_V2), memory_ratio(RING_V3)};

	// Memory stays with the process between rounds: page faults are the kernel's time, and more of v1's.
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	bench_size(RING_V3, 2048, 16, true);
	struct figures full = bench_size(RING_V3, 2048, 160, true);

	bench_size(RING_V2, 2048, 160, true);
	bench_size(RING_V1, 2048, 160, true);
	bench_size(RING_V3, 2048, 3200, false);
	printf("\nbars (2,048 x 160, ratios in this run; memory: 6.5 M points)\n");
	check_bar("v1's way / full build", (double)full.v1_way / (double)full.build, 25, true);
	check_bar("full build / change of one member", (double)full.build / (double)full.change, 30,
		true);
	check_bar(
		"resolve with half of the members down, ms", (double)full.resolve / 1e6, 5, false);
	for (unsigned i = 0; i < 3; i++) {
		char what[64];

		snprintf(what, sizeof(what), "peak memory of a build / ring, v%u", i + 1);
		check_bar(what, memory[i], 2, false);
	}
	return failed > 0;
}
