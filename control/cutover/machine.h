// SPDX-License-Identifier: Apache-2.0
// A cutover as a whole, and how it moves: commands of people and facts seen by the conductor go in, the next cutover
// comes out. No I/O, no clock: time and facts are arguments, so the same code runs in a daemon and in a simulation.
//
// One active cutover a pool. Nodes read the document, compute their own share (cutover_share()) and hold the rings that
// cutover_state_needs_*() names; they never see events, so a node that was away needs the newest document only.
#pragma once

#include "control/cutover/guard.h"
#include "control/cutover/spec.h"
#include "control/cutover/state.h"
#include "control/cutover/threshold.h"

#define CUTOVER_OVERRIDES_MAX 32u

enum cutover_pause {
	CUTOVER_PAUSE_NONE,
	CUTOVER_PAUSE_OPERATOR,
	CUTOVER_PAUSE_GUARD,        // failed below its rollback threshold
	CUTOVER_PAUSE_INCONCLUSIVE, // guards could not tell in twice the soak time, or had no data
	CUTOVER_PAUSE_EXPIRED,      // the stage took longer than its max_duration
	CUTOVER_PAUSE_MISSING,      // more nodes than tolerated did not take over the share
	CUTOVER_PAUSE_STORE,        // the store was lost
	CUTOVER_PAUSE_COUNT,
};

struct cutover_datacenter {
	bool admitted;
	uint32_t share; // that its stages have reached, millionths
	uint32_t cap;   // GATE_SHARE_ALL: none
	// A rollback said that established flows of the new ring come back, too. Ends with whatever sends flows there again.
	bool move_established;
};

struct cutover_override {
	bool used;
	uint32_t datacenter; // position in the specification
	uint32_t share;
	uint64_t expires_ms;
	char reason[CUTOVER_REASON_BYTES];
};

struct cutover_lock {
	char owner[CUTOVER_NAME_BYTES]; // "": not locked
	uint64_t expires_ms;
	char reason[CUTOVER_REASON_BYTES];
};

struct cutover {
	struct cutover_spec spec;
	uint64_t plan_id;
	uint64_t base_generation; // of the configuration that was planned on
	uint64_t
		revision; // of this document; grows with every change, what compare-and-swap compares
	uint64_t
		shares_revision; // revision at which shares, recalls or rings last changed; what nodes acknowledge
	enum cutover_state state;
	enum cutover_state resume_to; // for PAUSED
	enum cutover_pause pause;
	char reason[CUTOVER_REASON_BYTES]; // of the last pause, rollback or gate; "" : none
	char actor[CUTOVER_NAME_BYTES];    // who moved it last; "conductor" for itself
	uint32_t stage;                    // the one under way, in FULL the last
	uint32_t share;                    // that this stage has reached
	bool manual;       // `set` took over: shares stay until `advance` goes on from there
	uint32_t passes;   // consecutive rounds in which the guards passed, in this soak
	uint64_t state_ms; // when the state was entered, milliseconds since 1970
	uint64_t stage_ms; // when the stage began
	uint64_t soak_ms;  // when this soak began
	struct cutover_datacenter datacenters[CUTOVER_DATACENTERS_MAX];
	struct cutover_override overrides[CUTOVER_OVERRIDES_MAX];
	struct cutover_lock lock;
};

// What the conductor knows of one datacenter's nodes. missing counts only nodes that are expected to answer.
struct cutover_datacenter_facts {
	uint16_t nodes;      // registered, missing ones included
	uint16_t missing;    // gave no status for too long
	uint16_t prepared;   // hold both rings with the right digest
	uint16_t refused;    // answered that they cannot
	uint16_t mismatched; // built another digest
	uint16_t applied;    // follow shares_revision
	uint16_t churning;   // draining or joining
};

// One round of guards, all together: the worst action and whose it is.
struct cutover_guard_facts {
	bool evaluated; // a round was finished since the last step
	enum guard_action action;
	bool no_data;                    // the worst one had no data, rather than bad data
	char text[CUTOVER_REASON_BYTES]; // "early_abort: 2.1 % of ..."
};

struct cutover_facts {
	struct cutover_datacenter_facts datacenters[CUTOVER_DATACENTERS_MAX];
	uint32_t outside_nodes; // nodes whose datacenter the cutover does not list
	struct cutover_guard_facts guards;
	bool hook_confirmed; // the external hook said yes to this stage
	bool store_lost; // was unreachable since the last step; what happened meanwhile is unknown
	bool drained;    // nothing needs the old ring, before retire_hold_ms is over
};

struct cutover_command {
	enum cutover_event verb; // below CUTOVER_VERB_COUNT
	const char *actor;       // who; never NULL
	const char *reason;      // "" or NULL where none is needed
	uint64_t revision;       // expected; 0: any
	uint64_t plan_id;        // stage: must be the cutover's; 0: any
	bool force;              // past soak time, surge and shadow limits; needs a reason
	bool allow_node_churn;
	bool move_established; // rollback
	bool has_share;
	uint32_t share;                    // set, override
	struct datacenter_set datacenters; // set, rollback, override: empty means all
	bool has_cap;
	uint32_t cap;    // set
	uint64_t ttl_ms; // override, lock
};

// Outcomes of a command; the numbers are the CLI's exit codes.
enum cutover_code {
	CUTOVER_OK = 0,
	CUTOVER_USAGE = 2,
	CUTOVER_CONFLICT = 4, // wrong state, stale revision, locked
	CUTOVER_REFUSED = 8,  // a limit or guard says no; force with a reason passes it
};

struct cutover_result {
	enum cutover_code code;
	bool changed; // the document did; false with CUTOVER_OK: it was so already
	char text[256];
};

// Makes a PLANNED cutover of a checked specification (cutover_spec_check()).
void cutover_init(struct cutover *ret, const struct cutover_spec *spec, uint64_t base_generation,
	uint64_t now_ms);

// Does a command, in place: on anything but CUTOVER_OK the cutover is untouched. A change raises revision by one.
// Rollback and pause heed neither locks nor revision nor facts. Idempotent: repeated, it answers OK without a change.
// Context: wherever the command arrives; the caller commits the result by compare-and-swap on the old revision.
enum cutover_code cutover_command(struct cutover *cutover, const struct cutover_command *command,
	const struct cutover_facts *facts, uint64_t now_ms, struct cutover_result *ret);

// Lets time and facts act, in place; at most one move a call. Overrides and locks whose time is over are taken out.
// Returns true when the document changed; *ret_event: which event moved it, CUTOVER_EVENT_COUNT when none did.
// Context: the conductor alone.
bool cutover_step(struct cutover *cutover, const struct cutover_facts *facts, uint64_t now_ms,
	enum cutover_event *ret_event);

// The share that a node of a datacenter sends to the new ring. datacenter: its name; unknown ones have 0.
uint32_t cutover_share(const struct cutover *cutover, const char *datacenter, bool kill_switch,
	enum threshold_cause *ret_cause);

// Tells whether a node of a datacenter takes established flows back from the new ring, while its share is 0.
bool cutover_recalls(const struct cutover *cutover, const char *datacenter);

// Tells whether every node that counts in the stage's datacenters (all: in every datacenter) follows the document.
// Missing nodes are tolerated up to the stage's limit in each datacenter. *ret_why, of CUTOVER_REASON_BYTES, says who
// is waited for; may be NULL.
bool cutover_applied(
	const struct cutover *cutover, const struct cutover_facts *facts, bool all, char *ret_why);

// The smallest share any listed datacenter has now, overrides and caps included: 100 % everywhere means complete.
uint32_t cutover_share_min(const struct cutover *cutover);
uint32_t cutover_share_max(const struct cutover *cutover);

// Names the first datacenter that is below 100 %, and why: "fra is at 30%: cap of the datacenter".
// Returns false when there is none. ret: CUTOVER_REASON_BYTES.
bool cutover_held_back(const struct cutover *cutover, char *ret);

const char *cutover_pause_name(enum cutover_pause pause);
bool cutover_pause_find(const char *name, enum cutover_pause *ret);
