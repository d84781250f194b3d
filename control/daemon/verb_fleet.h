// SPDX-License-Identifier: Apache-2.0
// What the verbs of a fleet share. Private to verb_*.c.
#pragma once

#include "control/cutover/spec_json.h"
#include "control/daemon/verbs.h"
#include "control/fleet/roster.h"

// Milliseconds since 1970.
uint64_t fleet_wall_ms(void);

// Who calls: "ann@lb-ams01-1".
void fleet_actor(const struct server_call *call, char ret[static CUTOVER_NAME_BYTES]);

// Sets the failure that fits a store's -errno. Returns call->answer.
enum answer fleet_store_fail(struct server_call *call, int rc, const char *error);

// Reads all statements and, with a cutover, what they and the guards say of it.
// Returns 0 or the store's -errno.
int fleet_look_at(struct server_call *call, const struct cutover *cutover,
	struct fleet_roster *ret_roster, struct cutover_facts *ret_facts);

// Runs a verb that one node alone has as well, if the pool is in a cutover over the fleet. Returns whether it did.
bool fleet_takes(struct server_call *call, enum cutover_event verb);

// Adds to the result of a dry run with move_established what this node's flow tables hold of it.
void fleet_add_established_here(struct server_call *call, const char *pool);

// A cutover over the fleet as `show` tells it: the document, and what nodes and guards say.
json_t *verb_fleet_cutover_json(struct server_call *call, const struct cutover *cutover);
