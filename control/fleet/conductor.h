// SPDX-License-Identifier: Apache-2.0
// The conductor: moves cutovers when time, nodes and guards say so. Elected through the store; every node has one, at
// most one works. Forwarding and rollback need none.
#pragma once

#include "control/fleet/cutovers.h"
#include "control/fleet/roster.h"

#define FLEET_CONDUCTOR_LOCK  "conductor"
#define FLEET_CONDUCTOR_TTL_S 15u

// An outage of the store that is longer than this pauses what was moving: nobody knows what happened meanwhile.
#define FLEET_STORE_LOST_MS 30000u

struct fleet_conductor;

// node: this node's name. Returns NULL when memory is short.
struct fleet_conductor *fleet_conductor_create(const char *node);
void fleet_conductor_free(struct fleet_conductor *conductor); // NULL is allowed

// One look at everything, if this node is elected or can be: renews the election, reads all statements, judges guards,
// moves each cutover by at most one step, writes steps down in the audit log, and publishes what the guards said.
// cutovers: as just read; what was moved is not in them, read again. self: this node's own statement.
// Returns how many cutovers were moved, 0 also when another conducts; or the store's -errno.
// Context: the fleet's thread; about every second. Waits for the store alone, never for a Prometheus or a hook. Cost: one listing of all statements and a few small writes.
int fleet_conductor_run(struct fleet_conductor *conductor, struct store *store,
	const struct fleet_cutovers *cutovers, const struct fleet_status *self);

// What guards said, {pool: fleet_guards_write()}, as a new reference; NULL when they said nothing since the last call.
// Empty once another node conducts.
json_t *fleet_conductor_said(struct fleet_conductor *conductor);

// Tells what was just read of the store. A step whose swap was not answered is looked up there, and written down in the
// audit log if it was done; until then no look moves anything. To be called before the next look after one that failed.
void fleet_conductor_saw(struct fleet_conductor *conductor, struct store *store,
	const struct fleet_cutovers *cutovers);

// Whether this node was elected at the last look.
bool fleet_conductor_elected(const struct fleet_conductor *conductor);

// Gives the election back, so that another need not wait for it to run out.
void fleet_conductor_resign(struct fleet_conductor *conductor, struct store *store);
