// SPDX-License-Identifier: Apache-2.0
// Balances a v3 ring: chooses the lanes of its members, so that weights are target shares.
#pragma once

#include "control/ring/balance.h"
#include "control/ring/spec.h"

// How far a member may be above its target share before a repair touches it, unless the operator says otherwise.
#define RING_LANES_TOLERANCE 0.09

struct ring_lanes_request {
	const struct ring_spec *spec; // normalised, v3, not empty; its lanes do not count
	// The lanes of the ring before, in any order: kept but for what the change of members asks, so that few keys
	// move. NULL and 0: chosen anew, for the best balance.
	const struct ring_lane *old;
	uint32_t old_count;
	double tolerance; // 0.001..10
};

// Chooses lanes. Deterministic: nodes that ask the same get the same, whatever the order of the operator's list.
// ret_lanes: free() it; set it as the specification's lanes and normalise again. ret_report: may be NULL.
// Returns 0; -EINVAL for a request out of range; -E2BIG for more than 65,535 lanes; -ENOMEM.
// Cost: 45 ms for 2,048 members of 16 points chosen anew; less for a repair.
int ring_lanes_choose(const struct ring_lanes_request *request, struct ring_lane **ret_lanes,
	uint32_t *ret_count, struct balance_report *ret_report);
