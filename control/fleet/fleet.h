// SPDX-License-Identifier: Apache-2.0
// A node's part in a fleet: it writes its statement, follows the cutovers in the store, and stands for conductor.
//
// One thread of its own does all that waits for the store, with a handle of its own, so that a lost store never stops
// the daemon. The daemon hands in what the node is (fleet_report()) and takes out what the store wants (fleet_take()).
// What was taken last lies in the run directory too: a daemon that restarts without its store goes on as before.
#pragma once

#include "control/fleet/cutovers.h"
#include "control/fleet/status.h"

struct fleet;

// Reads the cutovers (without the store: those known last), and starts the thread. config: must outlive the fleet.
// alone: the store was not to be had just now, and is not waited for once more.
// Returns 0 or -errno; ret_error: STORE_ERROR_BYTES.
int fleet_open(const struct config_node *config, bool alone, struct fleet **ret, char *ret_error);

// Ends the thread; gives the election back. May wait for a call to the store. NULL is allowed.
void fleet_close(struct fleet *fleet);

// Polls readable when fleet_take() has something new.
int fleet_descriptor(const struct fleet *fleet);

// Takes the newest cutovers over. Returns whether there were newer ones than at the last call.
// The pointer of fleet_cutovers() is good until the next call.
bool fleet_take(struct fleet *fleet);
const struct fleet_cutovers *fleet_cutovers(const struct fleet *fleet);

// Has the store read again soon, after this node itself has changed something there.
void fleet_poke(struct fleet *fleet);

// Hands in what this node is now. Written at once when it follows another revision or its rings changed, else when it
// is time.
void fleet_report(struct fleet *fleet, const struct fleet_status *status);

struct fleet_state {
	bool connected;                // the store answered the last call
	uint64_t silent_ms;            // since it last did
	bool elected;                  // this node conducts
	char error[STORE_ERROR_BYTES]; // of the last call that failed
};

void fleet_state(struct fleet *fleet, struct fleet_state *ret);

// What the cutover's guards said last, as fleet_guards_said(), if this node conducts; else empty. A new reference.
json_t *fleet_verdicts(struct fleet *fleet, const struct cutover *cutover);
