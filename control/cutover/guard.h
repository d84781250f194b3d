// SPDX-License-Identifier: Apache-2.0
// Guards: what a window of measurements says about going on. They judge, they never act: the state machine does.
//
// Each window gives one verdict. Missing data is an error and too little data is inconclusive; neither is ever a pass.
// New-ring flows are compared with old-ring flows of the same nodes in the same window, not with yesterday.
#pragma once

#include "control/cutover/spec.h"

enum guard_verdict {
	GUARD_PASSED,
	GUARD_FAILED,
	GUARD_INCONCLUSIVE, // too few flows to tell
	GUARD_ERROR,        // no measurement
};

enum guard_action {
	GUARD_GO,       // passed
	GUARD_WAIT,     // not passed, but no reason to act yet
	GUARD_PAUSE,    // freeze the shares
	GUARD_ROLLBACK, // back to the old ring
};

// One side of a comparison, over one window.
struct guard_arm {
	uint64_t flows;  // new flows that took this ring
	uint64_t events; // those of them that went wrong
};

// One window's measurements for one guard. Each kind reads its own part.
struct guard_sample {
	bool available;          // false: the measurement failed, nothing else is valid
	const char *error;       // then why, or NULL
	bool few;                // there was too little to measure: inconclusive
	bool young;              // early_abort: aborts of these flows may still be on their way
	struct guard_arm before; // early_abort, new_drops, share: old ring
	struct guard_arm after;  // new ring
	double value; // load: new flows of the hottest backend; lookup_cost, memory, startup: the figure; missing,
		// digest: nodes; promql: the query's value
	double reference; // what value is compared with: the most that rings and chance explain, or the baseline
	const char *backend; // load: the hottest one, and the node that saw it
	const char *node;
	double share;       // intended share on the new ring, 0..1, over the same nodes
	uint64_t soaked_ms; // GUARD_NOT_RECOVERING: since the last change of share
	uint64_t
		since_ms; // the same: since the value before, which windows without one make longer than a window
};

// What a guard remembers between windows.
struct guard_memory {
	enum guard_verdict verdict;
	enum guard_action action;
	uint32_t failures; // consecutive windows
	uint32_t errors;   // consecutive windows
	double value;      // of the last window that had one
	double previous;   // of the one before; NAN: none
	uint64_t windows;
	char text[CUTOVER_REASON_BYTES]; // the last verdict in words, with its figures
};

// Defaults of a kind: name, thresholds, windows (docs/cutover.md, table of guards).
void guard_default(enum guard_kind kind, struct guard_config *ret);

// The guards that every cutover has unless its specification says otherwise. Returns how many it wrote, at most
// GUARD_KIND_COUNT.
uint32_t guard_defaults(struct guard_config *ret);

void guard_reset(struct guard_memory *memory);

// Judges one window and counts it. A guard that failed in config->failures consecutive windows asks for its action;
// one without data in config->errors windows asks for a pause; a dry run asks for nothing, but says what it would.
// Returns memory->action.
enum guard_action guard_judge(const struct guard_config *config, const struct guard_sample *sample,
	struct guard_memory *memory);

// Flows that each side needs before a difference d can be told from chance at error ratio e (80 % power, 5 %):
// n = 16 e (1 - e) / d^2. e = 0.001, d = 0.0005 -> 63 936.
// error: 0..1, 0 counts as d (a ratio below what matters). difference: above 0.
double guard_sample_min(double error, double difference);

// Tells whether an observed share is further from the intended one than sigmas standard deviations of the binomial.
// *ret_sigmas: how far. flows above 0.
bool guard_share_off(
	uint64_t flows_new, uint64_t flows, double share, double sigmas, double *ret_sigmas);

const char *guard_kind_name(enum guard_kind kind);
bool guard_kind_find(const char *name, enum guard_kind *ret);
const char *guard_verdict_name(enum guard_verdict verdict);
const char *guard_action_name(enum guard_action action);
