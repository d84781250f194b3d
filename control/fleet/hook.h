// SPDX-License-Identifier: Apache-2.0
// The hook of a cutover's gate (`require: hook`): is asked again and again, and what it answered last is remembered for
// people. The conductor never waits for it.
#pragma once

#include "control/cutover/machine.h"
#include "control/fleet/inquiry.h"

#include <jansson.h>

// Between two questions.
#define HOOK_PERIOD_MS 5000u

// Zeroed at first.
struct hook {
	struct inquiry *inquiry; // under way
	uint64_t asked_ms;
	uint32_t stage; // that all below belongs to
	bool answered;  // or failed to
	bool yes;
	char text[HTTP_ERROR_BYTES + 64]; // "hook answered 403"
};

// Asks if the cutover waits for it and it is time; takes an answer that has come. Never waits.
// Returns whether there is something new to show.
bool hook_look(struct hook *hook, const struct cutover *cutover, uint64_t now_ms);

// Whether the hook has said yes to the stage whose gate the cutover is at.
bool hook_opens(const struct hook *hook, const struct cutover *cutover);

// What it said last, as an entry of fleet_guards_said(); NULL when the cutover does not wait for it.
json_t *hook_said(const struct hook *hook, const struct cutover *cutover);

// Forgets everything; waits for a question that is under way, at most HTTP_TIMEOUT_MS.
void hook_reset(struct hook *hook);
