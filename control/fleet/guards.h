// SPDX-License-Identifier: Apache-2.0
// The guards of one cutover at work: measurements from the fleet's statements and from Prometheus, cut into windows,
// judged by control/cutover/guard.h. Passive: it says what it sees, the state machine acts.
#pragma once

#include "control/fleet/roster.h"

#define FLEET_GUARDS_PREFIX "status/guards/"

struct fleet_guards;

struct fleet_guards *fleet_guards_create(void);
void fleet_guards_free(struct fleet_guards *guards); // NULL is allowed

// A look of the conductor at a cutover and its nodes.
struct fleet_look {
	const struct cutover *cutover;
	const struct fleet_roster *roster;
	const struct cutover_facts *facts; // of fleet_facts()
	uint64_t now_ms;                   // CLOCK_MONOTONIC
	uint64_t soaked_ms;                // since the last change of share was taken over
};

// Takes what the roster shows since the last call, judges the guards whose window is over, and fills *ret. A round is
// over (ret->evaluated) when every guard was judged since the last round. A change of shares starts all windows anew:
// flows of two shares are never mixed. A window that was too small to tell goes on growing.
// Context: the conductor; blocks for Prometheus, at most HTTP_TIMEOUT_MS a query.
void fleet_guards_run(struct fleet_guards *guards, const struct fleet_look *look,
	struct cutover_guard_facts *ret);

// Publishes what every guard last said, for `show` and for the verbs that do not walk past a guard.
void fleet_guards_publish(
	const struct fleet_guards *guards, const struct cutover *cutover, struct store *store);

// What the guards of this cutover said last: a new reference to
// [{"name", "kind", "verdict", "action", "value", "text", "dry_run", "windows"}], empty when they said nothing yet.
// Context: whoever may read the store.
json_t *fleet_guards_said(struct store *store, const struct cutover *cutover);
