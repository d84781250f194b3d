// SPDX-License-Identifier: Apache-2.0
// The guards of one cutover at work: measurements from the fleet's statements and from Prometheus, cut into windows,
// judged by control/cutover/guard.h. Passive: it says what it sees, the state machine acts.
#pragma once

#include "control/fleet/roster.h"

#define FLEET_GUARDS_PREFIX "status/guards/"

struct fleet_guards;

struct fleet_guards *fleet_guards_create(void);
// Waits for queries that are under way, at most HTTP_TIMEOUT_MS. NULL is allowed.
void fleet_guards_free(struct fleet_guards *guards);

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
// Returns whether a guard gave a verdict.
// Context: the conductor. Waits for nobody: a query is sent when its window is over and judged when its answer is there.
bool fleet_guards_run(struct fleet_guards *guards, const struct fleet_look *look,
	struct cutover_guard_facts *ret);

// What every guard last said: a new reference to {"plan", "guards": [{"name", "kind", "verdict", "action", "value", "text",
// "dry_run", "windows", "time_ms"}]}; time_ms, since 1970, is when it said it, null: not yet. beside: an entry of another
// kind (hook.h), taken over; NULL for none.
json_t *fleet_guards_write(
	const struct fleet_guards *guards, const struct cutover *cutover, json_t *beside);

// The list in that, as a new reference; an empty one when said is NULL or of another plan: what guards said of an earlier
// cutover of the pool says nothing about this one.
json_t *fleet_guards_of(const json_t *said, const struct cutover *cutover);

// Puts it into the store, for `show` and for the verbs that do not walk past a guard; reads the list from there.
// Context: whoever may write to or read from the store.
void fleet_guards_publish(const json_t *said, const struct cutover *cutover, struct store *store);
json_t *fleet_guards_said(struct store *store, const struct cutover *cutover);
