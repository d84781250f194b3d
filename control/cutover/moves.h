// SPDX-License-Identifier: Apache-2.0
// What commands and steps of a cutover have in common. For machine.c and command.c.
#pragma once

#include "control/cutover/machine.h"

// Enters a state: the clock of the state starts, and what belongs to the old one is forgotten.
void move_enter(struct cutover *cutover, enum cutover_state state, uint64_t now_ms);

// Counts one change of the document. shares: nodes must acknowledge it anew.
void move_count(struct cutover *cutover, bool shares);

// Freezes. The way back out of the pause takes over and soaks anew what was half done.
void move_pause(
	struct cutover *cutover, enum cutover_pause pause, const char *reason, uint64_t now_ms);

// Every share, override and cap that lets flows through goes to 0.
void move_zero(struct cutover *cutover);

// Lets the datacenters of the stage under way take part with at least a share.
void move_raise(struct cutover *cutover, uint32_t share);

// Begins a stage at its first share above what its datacenters have all reached.
void move_begin_stage(struct cutover *cutover, uint32_t stage, uint64_t now_ms);

// Tells whether the stage's datacenters hold the new ring and no node of them comes or goes. *ret_why (of
// CUTOVER_REASON_BYTES; may be NULL) says what is in the way.
bool move_ready(const struct cutover *cutover, uint32_t stage, const struct cutover_facts *facts,
	bool allow_churn, char *ret_why);

void move_say(char *ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
