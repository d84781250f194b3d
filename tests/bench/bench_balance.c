// SPDX-License-Identifier: Apache-2.0
// What the balancer of v3 rings reaches, and the frontier between balance and churn after a change.
//	bench_balance [--svg FILE]
#include "tests/lib/balance_fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMBERS 2048u
#define POINTS  16u
#define REMOVED 20u // single removals that a figure of the frontier is the mean of

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

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench_balance: %s: %s\n", what, strerror(-rc));
	exit(1);
}

// Churn of a repaired change beside the share that has to move.
static double repaired(
	const struct balance_fleet *from, struct balance_change change, struct frontier_row *row)
{
	struct balance_fleet to;

	must(balance_fleet_repaired(from, &change, row->tolerance, &to), "repair");
	double unavoidable = change.removed ? (double)change.removed / from->count
					    : (double)change.added / to.count;
	double ratio = balance_fleet_churn(from, &to) / unavoidable;

	row->hottest = fmax(row->hottest, to.report.hottest);
	balance_fleet_free(&to);
	return ratio;
}

static void measure_row(const struct balance_fleet *fleet, struct frontier_row *row)
{
	for (uint32_t i = 0; i < REMOVED; i++)
		row->one_left +=
			repaired(fleet, (struct balance_change){.removed = 1, .first = i * 97 + 13},
				row) /
			REMOVED;
	row->twenty_left = repaired(fleet, (struct balance_change){.removed = 20, .first = 7}, row);
	row->one_came = repaired(fleet, (struct balance_change){.added = 1}, row);
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
	struct balance_fleet fleet = balance_fleet_new(0, count);
	double formula = sqrt((count - 1.0) / ((double)count * points + 1));

	for (uint32_t i = 0; i < count; i++)
		fleet.members[i].weight = 1 + i * 2654435761u % weight_max;
	double began = now_ms();

	must(balance_fleet_choose(&fleet, points), "choose");
	double ms = now_ms() - began;

	printf("%7u %7u  1..%-5u %8u %9.3f %% %9.4f %9.4f %9.1f %10.3f %%\n", count, points,
		weight_max, fleet.report.points, fleet.report.cv * 100, fleet.report.hottest,
		fleet.report.coldest, ms, formula * 100);
	balance_fleet_free(&fleet);
}

int main(int argc, char **argv)
{
	static const uint32_t fresh[][3] = {{100, 16, 1}, {2048, 8, 1}, {2048, 16, 1},
		{2048, 32, 1}, {10000, 16, 1}, {100, 16, 625}, {2048, 16, 625}};
	struct frontier_row rows[] = {{.tolerance = 0.01}, {.tolerance = 0.02}, {.tolerance = 0.03},
		{.tolerance = 0.05}, {.tolerance = 0.075}, {.tolerance = 0.1}, {.tolerance = 0.15},
		{.tolerance = 0.2}};
	unsigned row_count = sizeof(rows) / sizeof(rows[0]);
	struct balance_fleet fleet;

	if (argc != 1 && (argc != 3 || strcmp(argv[1], "--svg") != 0)) {
		fprintf(stderr, "usage: bench_balance [--svg FILE]\n");
		return 2;
	}
	printf("members  points  weights    in all         CV    hottest   coldest   CPU ms  first points' CV\n");
	for (unsigned i = 0; i < sizeof(fresh) / sizeof(fresh[0]); i++)
		print_fresh(fresh[i][0], fresh[i][1], fresh[i][2]);
	fleet = balance_fleet_new(0, MEMBERS);
	must(balance_fleet_choose(&fleet, POINTS), "choose");
	printf("\nchurn / unavoidable, %u members of %u points\n"
	       "tolerance  1 left (mean of %u)  20 left  1 came  hottest\n",
		MEMBERS, POINTS, REMOVED);
	for (unsigned i = 0; i < row_count; i++) {
		measure_row(&fleet, &rows[i]);
		printf("%7.1f %%  %19.3f  %7.3f  %6.3f  %7.3f\n", rows[i].tolerance * 100,
			rows[i].one_left, rows[i].twenty_left, rows[i].one_came, rows[i].hottest);
	}
	balance_fleet_free(&fleet);
	if (argc == 3)
		draw(argv[2], rows, row_count);
	return 0;
}
