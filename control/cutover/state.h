// SPDX-License-Identifier: Apache-2.0
// The states of a cutover, what may happen in each, and where it leads: one const table, nothing else.
//
//	PLANNED -> STAGED -> SHIFTING -> SOAKING -> GATED -> ... -> FULL -> RETIRING -> RETIRED
//	              \______ PAUSED, ROLLING_BACK -> ROLLED_BACK -> DISCARDED ______/
//
// Pure: no clock, no I/O. machine.h decides which event happens; this table says whether it may.
#pragma once

#include <stdbool.h>

enum cutover_state {
	CUTOVER_PLANNED,  // computed and bound to a generation; no node knows of it
	CUTOVER_STAGED,   // both rings in every node's memory, nobody takes the new one
	CUTOVER_SHIFTING, // a new share is written down, nodes have not all taken it over
	CUTOVER_SOAKING,  // every node has it; time and guards must pass
	CUTOVER_GATED,    // a stage is done; a person or a hook must let it go on
	CUTOVER_FULL,     // everything takes the new ring, the old one is still resident
	CUTOVER_RETIRING, // the old ring is about to be freed; the last moment of a cheap way back
	CUTOVER_RETIRED,  // terminal: only the new ring is left
	CUTOVER_PAUSED,   // shares stay where they are, with a reason
	CUTOVER_ROLLING_BACK, // shares are 0 in the document, nodes are taking that over
	CUTOVER_ROLLED_BACK, // terminal but for discard: shares are 0, the new ring is still resident
	CUTOVER_DISCARDED,   // terminal: only the old ring is left
	CUTOVER_STATE_COUNT,
};

enum cutover_event {
	// What people ask for.
	CUTOVER_STAGE,
	CUTOVER_START,
	CUTOVER_ADVANCE,
	CUTOVER_PAUSE,
	CUTOVER_RESUME,
	CUTOVER_SET,
	CUTOVER_ROLLBACK,
	CUTOVER_RETIRE,
	CUTOVER_DISCARD,
	CUTOVER_OVERRIDE_SET,
	CUTOVER_OVERRIDE_CLEAR,
	CUTOVER_LOCK,
	CUTOVER_UNLOCK,
	CUTOVER_VERB_COUNT,
	// What the conductor sees.
	CUTOVER_APPLIED = CUTOVER_VERB_COUNT, // every node that counts follows the document
	CUTOVER_STEP_DONE,                    // soaked, and the stage has a higher share to go to
	CUTOVER_STAGE_DONE,                   // soaked at the stage's last share, which needs a yes
	CUTOVER_STAGE_NEXT,                   // the next stage may begin by itself
	CUTOVER_COMPLETE,                     // no stage is left and every datacenter is at 100 %
	CUTOVER_HALT,                         // a guard, a limit or a loss says: no further
	CUTOVER_FAIL,                         // a guard or an expiry says: back
	CUTOVER_DRAINED,                      // nothing needs the old ring any more
	CUTOVER_EVENT_COUNT,
};

enum cutover_move {
	CUTOVER_MOVE_REFUSE, // illegal here; why says what to do instead
	CUTOVER_MOVE_STAY,   // already so, or of no effect here: success, nothing changes
	CUTOVER_MOVE_GO,
};

// A rule's next state "the one before the pause".
#define CUTOVER_AS_BEFORE CUTOVER_STATE_COUNT

struct cutover_rule {
	enum cutover_move move;
	enum cutover_state next; // for CUTOVER_MOVE_GO; may equal the state or be CUTOVER_AS_BEFORE
	const char *why;         // for the other two: a sentence for people, never NULL
};

// The rule for an event in a state. Both in range.
const struct cutover_rule *cutover_rule(enum cutover_state state, enum cutover_event event);

// Tells whether nothing but discard can ever happen again.
bool cutover_state_terminal(enum cutover_state state);

// Tells which rings a node must hold: the new one beside the old one, and the old one at all.
bool cutover_state_needs_new(enum cutover_state state);
bool cutover_state_needs_old(enum cutover_state state);

// Lower-case names as in documents, metrics and CLI: "rolling_back", "override_set". Numbers are those of the enum
// and stable, they are the values of a metric.
const char *cutover_state_name(enum cutover_state state);
const char *cutover_event_name(enum cutover_event event);

// Find by name. Return false when there is none; *ret is then untouched.
bool cutover_state_find(const char *name, enum cutover_state *ret);
bool cutover_verb_find(const char *name, enum cutover_event *ret);
