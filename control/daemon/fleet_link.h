// SPDX-License-Identifier: Apache-2.0
// Between the node and its fleet: takes the cutovers' shares into use here, says what came of it, and puts the rings
// of cutovers into the document and out of it again.
//
// Context: the daemon's thread. Nothing here waits for the store but the rare commits of rings.
#pragma once

#include "control/daemon/node.h"
#include "control/fleet/fleet.h"
#include "control/metrics/stats_file.h"

struct fleet_link;
struct sd_event;

// What this node does with a pool's cutover on its own account.
enum fleet_link_local {
	FLEET_LINK_FOLLOWS,  // what the fleet says
	FLEET_LINK_BACK,     // new flows take the old ring
	FLEET_LINK_BACK_ALL, // and established flows of the new ring come back
};

// Starts the fleet's thread and takes the last known shares into use, before the dataplane is spoken to.
// Returns 0 or -errno; ret_error: NODE_TEXT_BYTES.
int fleet_link_open(struct node *node, struct fleet_link **ret, char *ret_error);
void fleet_link_close(struct fleet_link *link); // NULL is allowed

// Attaches to the event loop: new cutovers at once, a statement every second.
int fleet_link_attach(struct fleet_link *link, struct sd_event *event);

struct fleet *fleet_link_fleet(struct fleet_link *link);

// This node's statement as it was handed in last.
const struct fleet_status *fleet_link_status(const struct fleet_link *link);

// What the pool of a cutover by hand does on this node now, as the statement would say it. live: zeroed; stays so when
// the dataplane has no statistics.
struct fleet_live;
void fleet_link_live(
	struct fleet_link *link, const struct document_cutover *cutover, struct fleet_live *live);

// Whether a cutover of the pool is under way: the fleet's, or one by hand.
bool fleet_link_moves(const struct fleet_link *link, const char *pool);

// The node's own switches; they need no store, survive restarts, and come before everything that the fleet or the
// document says.
// Kill switch: no pool takes its new ring here. Local: that pool does not, until its cutover has gone the same way back or
// has ended.
// Return 0, or -errno when the switch could not be kept on disk (it is in effect all the same).
int fleet_link_kill_switch(struct fleet_link *link, bool on);
int fleet_link_local_set(struct fleet_link *link, const char *pool, enum fleet_link_local mode);
enum fleet_link_local fleet_link_local(const struct fleet_link *link, const char *pool);

// Takes the rings of a cutover that has ended out of the document. Returns whether they are out: true also when they
// were, or when it has not ended and they are in.
bool fleet_link_settle(struct fleet_link *link, const struct cutover *cutover);

// Looks at cutovers, shares and rings now instead of at the next tick.
void fleet_link_refresh(struct fleet_link *link);
