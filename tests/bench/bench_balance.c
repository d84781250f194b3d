// SPDX-License-Identifier: Apache-2.0
// What the balancer of v3 rings reaches, and the frontier between balance and churn after a change.
//	bench_balance [--svg FILE]
#include "control/ring/balance.h"
#include "control/ring/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMBERS 2048u
#define POINTS  16u
#define REMOVED 20u // single removals that a figure of the frontier is the mean of

static struct chain_tables tables;

struct fleet {
	struct balance_member *members;
	uint32_t count;
	struct balance_choice *choices;
	uint32_t choice_count;
	struct balance_report report;
};

struct frontier_row {
	double tolerance;
	double one_left;    // churn / unavoidable
	double twenty_left; // churn / unavoidable
	double one_came;    // churn / unavoidable
	double hottest;     // of all of them
};

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *reserve(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (memory == NULL) {
		fprintf(stderr, "bench_balance: out of memory\n");
		exit(1);
	}
	return memory;
}

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench_balance: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static uint32_t state_of(uint32_t id)
{
	char text[32];
	int host =
		snprintf(text, sizeof(text), "10.%u.%u.%u", id >> 16, id >> 8 & 255, id & 255) + 1;
	int port = snprintf(text + host, sizeof(text) - (size_t)host, "80");

	return chain_seed(&tables, UINT32_MAX, text, (size_t)(host + port));
}

static struct fleet fleet_new(uint32_t count)
{
	struct fleet fleet = {.count = count, .members = reserve(count, sizeof(*fleet.members))};

	for (uint32_t i = 0; i < count; i++)
		fleet.members[i] = (struct balance_member){.weight = 1, .state = state_of(i)};
	return fleet;
}

static void fleet_free(struct fleet *fleet)
{
	free(fleet->members);
	free(fleet->choices);
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

static double choose_fresh(struct fleet *fleet, uint32_t points)
{
	struct balance_request request = request_of(fleet, points, 0.1);
	double began = now_ms();

	must(balance_layout(&request, NULL, 0, &fleet->choices, &fleet->choice_count), "layout");
	must(balance_fresh(&request, fleet->choices, fleet->choice_count, &fleet->report), "fresh");
	return now_ms() - began;
}

struct point {
	uint32_t hash;
	uint32_t state; // names its member
};

static int compare_points(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static struct point *points_of(const struct fleet *fleet, uint32_t *ret_count)
{
	struct point *points = reserve(fleet->choice_count * ARCS_SLOTS, sizeof(*points));
	uint32_t count = 0;

	for (uint32_t i = 0; i < fleet->choice_count; i++) {
		const struct balance_choice *choice = &fleet->choices[i];
		uint32_t state = fleet->members[choice->member].state, hash = 0;

		for (uint32_t at = 0; at < choice->base + ARCS_SLOTS; at++) {
			hash = chain_step(&tables, state, hash);
			if (at >= choice->base && choice->mask >> (at - choice->base) & 1)
				points[count++] = (struct point){hash, state};
		}
	}
	qsort(points, count, sizeof(*points), compare_points);
	*ret_count = count;
	return points;
}

// Share of the circle whose owner differs between two fleets.
static double churn(const struct fleet *a, const struct fleet *b)
{
	uint32_t a_count, b_count, i = 0, j = 0;
	struct point *x = points_of(a, &a_count), *y = points_of(b, &b_count);
	uint64_t at = 0, moved = 0, all = UINT64_C(1) << 32;

	while (at < all) {
		uint64_t x_end = i < a_count ? x[i].hash + UINT64_C(1) : all;
		uint64_t y_end = j < b_count ? y[j].hash + UINT64_C(1) : all;
		uint64_t end = x_end < y_end ? x_end : y_end;

		if (x[i < a_count ? i : 0].state != y[j < b_count ? j : 0].state)
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

// Churn of a repaired change beside the share that has to move. left: ids first, first + stride, ... go.
static double repaired(const struct fleet *from, uint32_t left, uint32_t first, uint32_t came,
	struct frontier_row *row)
{
	struct fleet to = fleet_new(from->count - left + came);
	struct balance_choice *old = reserve(from->count, sizeof(*old));
	uint32_t kept = 0, stride = left ? from->count / left : from->count;

	for (uint32_t i = 0; i < from->count; i++) {
		if (left && i >= first && (i - first) % stride == 0 && (i - first) / stride < left)
			continue;
		to.members[kept] = from->members[i];
		old[kept] = from->choices[i];
		old[kept].member = kept;
		kept++;
	}
	for (uint32_t i = 0; i < came; i++)
		to.members[kept + i] = (struct balance_member){1, state_of(from->count + i), true};
	struct balance_request request = request_of(&to, POINTS, row->tolerance);

	must(balance_layout(&request, old, kept, &to.choices, &to.choice_count), "layout");
	must(balance_repair(&request, to.choices, to.choice_count, &to.report), "repair");
	double unavoidable = left ? (double)left / from->count : (double)came / to.count;
	double ratio = churn(from, &to) / unavoidable;

	row->hottest = fmax(row->hottest, to.report.hottest);
	free(old);
	fleet_free(&to);
	return ratio;
}

static void measure_row(const struct fleet *fleet, struct frontier_row *row)
{
	for (uint32_t i = 0; i < REMOVED; i++)
		row->one_left += repaired(fleet, 1, i * 97 + 13, 0, row) / REMOVED;
	row->twenty_left = repaired(fleet, 20, 7, 0, row);
	row->one_came = repaired(fleet, 0, 0, 1, row);
}

static void draw(const char *path, const struct frontier_row *rows, unsigned count)
{
	FILE *out = fopen(path, "w");

	if (out == NULL) {
		perror(path);
		exit(1);
	}
	fprintf(out,
		"<svg xmlns='http://www.w3.org/2000/svg' width='640' height='400' "
		"font-family='sans-serif' font-size='12'>\n"
		"<rect width='640' height='400' fill='#fff'/>\n<text x='320' y='24' "
		"text-anchor='middle' font-size='14'>Keys moved after one of %u members left, "
		"against the tolerance</text>\n",
		MEMBERS);
	for (unsigned i = 0; i <= 4; i++) {
		double y = 340 - i * 70;

		fprintf(out,
			"<line x1='60' x2='620' y1='%.0f' y2='%.0f' stroke='#ddd'/>"
			"<text x='52' y='%.0f' text-anchor='end'>%.2fx</text>\n",
			y, y, y + 4, 1 + i * 0.25);
	}
	fprintf(out, "<polyline fill='none' stroke='#16a' stroke-width='2' points='");
	for (unsigned i = 0; i < count; i++)
		fprintf(out, "%.1f,%.1f ", 60 + rows[i].tolerance * 2600,
			340 - (rows[i].one_left - 1) * 280);
	fprintf(out, "'/>\n");
	for (unsigned i = 0; i < count; i++)
		fprintf(out,
			"<circle cx='%.1f' cy='%.1f' r='4' fill='#16a'/><text x='%.1f' y='360' "
			"text-anchor='middle'>%g %%</text>\n",
			60 + rows[i].tolerance * 2600, 340 - (rows[i].one_left - 1) * 280,
			60 + rows[i].tolerance * 2600, rows[i].tolerance * 100);
	fprintf(out,
		"<text x='340' y='386' text-anchor='middle'>tolerance: how far above its "
		"share the hottest member may be</text>\n</svg>\n");
	fclose(out);
}

static void print_fresh(uint32_t count, uint32_t points, uint32_t weight_max)
{
	struct fleet fleet = fleet_new(count);
	double formula = sqrt((count - 1.0) / ((double)count * points + 1));

	for (uint32_t i = 0; i < count; i++)
		fleet.members[i].weight = 1 + i * 2654435761u % weight_max;
	double ms = choose_fresh(&fleet, points);

	printf("%7u %7u  1..%-5u %8u %9.3f %% %9.4f %9.4f %9.1f %10.3f %%\n", count, points,
		weight_max, fleet.report.points, fleet.report.cv * 100, fleet.report.hottest,
		fleet.report.coldest, ms, formula * 100);
	fleet_free(&fleet);
}

int main(int argc, char **argv)
{
	static const uint32_t fresh[][3] = {{100, 16, 1}, {2048, 8, 1}, {2048, 16, 1},
		{2048, 32, 1}, {10000, 16, 1}, {100, 16, 625}, {2048, 16, 625}};
	struct frontier_row rows[] = {{.tolerance = 0.01}, {.tolerance = 0.02}, {.tolerance = 0.03},
		{.tolerance = 0.05}, {.tolerance = 0.075}, {.tolerance = 0.1}, {.tolerance = 0.15},
		{.tolerance = 0.2}};
	unsigned row_count = sizeof(rows) / sizeof(rows[0]);
	struct fleet fleet;

	if (argc != 1 && (argc != 3 || strcmp(argv[1], "--svg") != 0)) {
		fprintf(stderr, "usage: bench_balance [--svg FILE]\n");
		return 2;
	}
	chain_tables_fill(&tables);
	printf("members  points  weights    in all         CV    hottest   coldest   CPU ms  first points' CV\n");
	for (unsigned i = 0; i < sizeof(fresh) / sizeof(fresh[0]); i++)
		print_fresh(fresh[i][0], fresh[i][1], fresh[i][2]);
	fleet = fleet_new(MEMBERS);
	choose_fresh(&fleet, POINTS);
	printf("\nchurn / unavoidable, %u members of %u points\n"
	       "tolerance  1 left (mean of %u)  20 left  1 came  hottest\n",
		MEMBERS, POINTS, REMOVED);
	for (unsigned i = 0; i < row_count; i++) {
		measure_row(&fleet, &rows[i]);
		printf("%7.1f %%  %19.3f  %7.3f  %6.3f  %7.3f\n", rows[i].tolerance * 100,
			rows[i].one_left, rows[i].twenty_left, rows[i].one_came, rows[i].hottest);
	}
	fleet_free(&fleet);
	if (argc == 3)
		draw(argv[2], rows, row_count);
	return 0;
}
