// SPDX-License-Identifier: Apache-2.0
// The balanced v3 ring of a simulation: points that were chosen, not points as they come.
#pragma once

#include "control/ring/balance.h"
#include "control/ring/balance_stats.h"
#include "control/ring/spec.h"

struct simulate_balanced {
	struct ring_balance balance; // measured on the arcs of the built ring
	uint32_t points;             // in all
	uint64_t bytes;              // of the image
	uint64_t choose_ns;
	uint64_t build_ns;
};

// Chooses, builds and measures. points: of a member of mean weight, 1..BALANCE_POINTS_MAX.
// members: count of them; sorted by the call. Returns 0, or what ring_lanes_choose() and ring_spec_normalise() return.
int simulate_balanced(struct ring_spec_member *members, uint32_t count, uint32_t points,
	struct simulate_balanced *ret, struct ring_error *ret_error);
