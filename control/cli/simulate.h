// SPDX-License-Identifier: Apache-2.0
// `ringway ring simulate`: the mathematics of rings as a tool. Needs no daemon.
#pragma once

#include "control/cli/cli.h"
#include "control/ring/balance_stats.h"
#include "control/ring/spec.h"

enum answer simulate_run(struct cli *cli);

// One point of a sweep; spreads are fractions of 1.
struct simulate_step {
	uint32_t points;
	double predicted_cv;
	double fixed_ties_cv; // measured with v2's order of ties
	double fair_ties_cv;  // measured with v3's
};

// Draws a sweep as an SVG picture with logarithmic axes.
// Returns 0 or -errno.
int simulate_draw(
	const char *path, const struct simulate_step *steps, unsigned count, uint32_t backends);
