// SPDX-License-Identifier: Apache-2.0
// What a cutover does in one datacenter right now: the statements of its nodes added up, as `cutover show` hands them to
// `cutover watch`, which makes rates of two of them.
#pragma once

#include "control/fleet/status.h"

// One ring's side.
struct fleet_live_ring {
	uint64_t flows;
	uint64_t aborts;
	uint64_t drops;
	uint64_t packets;
	uint64_t bytes; // of the ring, in all workers
};

// Zeroed, then filled by fleet_live_add().
struct fleet_live {
	uint32_t nodes;
	uint64_t counters_of;  // mix of nodes and starts: two sums of the same can be subtracted
	uint64_t time_ms;      // sum of the statements' times
	uint64_t intended_ppm; // sum of the shares that the nodes use
	struct fleet_live_ring rings[2]; // old, new
	uint64_t shadow_same;
	uint64_t shadow_different;
	uint64_t recalled; // flows that a rollback moved from the new ring to another backend
	uint64_t live_new; // flows of the new ring in the last sweeps
	uint64_t dataplane_resident_bytes;
	uint64_t daemon_resident_bytes;
	uint64_t hugepage_bytes;
	uint64_t startup_ns[STARTUP_PHASES]; // of the slowest dataplane, and of the slowest daemon
	uint64_t daemon_startup_ns[DAEMON_PHASES];
};

// Adds a node that has the pool. Nodes that are missing are left out by the caller: what they did last is not now.
void fleet_live_add(
	struct fleet_live *live, const struct fleet_status *status, const struct fleet_pool *pool);

// Writes it: a new reference. time_ms is the mean of the statements' times, startup phases are objects.
// Without nodes: JSON null.
json_t *fleet_live_write(const struct fleet_live *live);
