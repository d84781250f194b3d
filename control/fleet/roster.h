// SPDX-License-Identifier: Apache-2.0
// Everybody's status at one moment, and what it says about a cutover.
#pragma once

#include "control/cutover/machine.h"
#include "control/fleet/status.h"
#include "control/store/store.h"

#define FLEET_NODES_MAX 16384u

struct fleet_member {
	struct fleet_status status;
	uint64_t
		seen_ms; // CLOCK_MONOTONIC of the reader when this statement was new; clocks of nodes do not matter
};

struct fleet_roster {
	struct fleet_member **members; // ordered by name
	uint32_t count;
};

// Reads all statuses. A member whose statement is the same as before keeps its seen_ms; new ones get now_ms.
// roster: zeroed, or of an earlier call. On failure it stays as it was.
// Returns 0 or the store's -errno.
int fleet_roster_read(struct store *store, struct fleet_roster *roster, uint64_t now_ms);
void fleet_roster_free(struct fleet_roster *roster);

// Tells whether a member has been silent for too long.
bool fleet_member_missing(const struct fleet_member *member, uint64_t now_ms);

// What the roster says about a cutover: everything of *ret but guards, hook, store_lost and drained, which stay.
// reference: the statement whose digests are right, this node's own; NULL: nobody is called mismatched.
void fleet_facts(const struct fleet_roster *roster, const struct cutover *cutover,
	const struct fleet_status *reference, uint64_t now_ms, struct cutover_facts *ret);
