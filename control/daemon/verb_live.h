// SPDX-License-Identifier: Apache-2.0
// What `cutover show` says beside the document: which rings, whose members, what it waits for, and what flows do.
// Private to verb_*.c.
#pragma once

#include "control/daemon/verb_fleet.h"

// Adds to an object of a cutover over the fleet: "now_ms", "from", "to", "members", "churn", "waits_for", "left_ms", and
// to each row of "datacenters_now" its "live" (fleet/live.h; null without nodes).
void verb_live_add(struct server_call *call, json_t *object, const struct cutover *cutover,
	const struct fleet_roster *roster, const struct cutover_facts *facts);

// The same for a cutover by hand, on this node alone: one row in "datacenters_now", nothing that it waits for.
void verb_live_add_local(
	struct server_call *call, json_t *object, const struct document_cutover *cutover);
