// SPDX-License-Identifier: Apache-2.0
// A small cutover for the tests: datacenters ams and waw (2 nodes each) first, then everything with fra.
#pragma once

#include "control/cutover/machine.h"

#define FIXTURE_START_MS UINT64_C(1700000000000)

// Stage 1: ams and waw, steps 1 % and 10 %, gated by hand; stage 2: all, steps 50 % and 100 %.
// One guard round must pass a soak of 60 s; no shadow, full-soak or retire waits.
void fixture_spec(struct cutover_spec *ret);

// Every node there, holding both rings and following the document, guards passing.
void fixture_facts(const struct cutover_spec *spec, struct cutover_facts *ret);

// A cutover that was taken to a state by commands and steps alone. PAUSED is entered from SOAKING.
void fixture_reach(struct cutover *ret, enum cutover_state state);

// A command with an actor and a reason.
struct cutover_command fixture_command(enum cutover_event verb);
