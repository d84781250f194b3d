// SPDX-License-Identifier: Apache-2.0
// What share of flows a node sends to the new ring. Two independent dimensions: which datacenters take part, and
// what share of flows there.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Everything that has a say, in the order in which it is asked. Shares are millionths (common/gate.h).
struct threshold_inputs {
	bool kill_switch;  // of this node
	bool has_override; // of its datacenter; the conductor takes it out when its time is over
	uint32_t override_share; // for has_override
	bool admitted;           // the datacenter takes part
	uint32_t share;          // that the datacenter's stage has reached
	uint32_t cap;            // of the datacenter; GATE_SHARE_ALL when it has none
};

// Which line of the rule decided.
enum threshold_cause {
	THRESHOLD_KILL_SWITCH,
	THRESHOLD_OVERRIDE,
	THRESHOLD_NOT_ADMITTED,
	THRESHOLD_STAGE,
	THRESHOLD_CAP,
};

// The effective share, first match: kill switch 0; override; datacenter not admitted 0; the smaller of the stage's
// share and the datacenter's cap. Never more than GATE_SHARE_ALL, whatever the inputs say.
// *ret_cause: which line decided; may be NULL.
uint32_t threshold_share(const struct threshold_inputs *inputs, enum threshold_cause *ret_cause);

// "kill switch", "override", ... for people.
const char *threshold_cause_text(enum threshold_cause cause);
