// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/state.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define GO(state)                                    \
	{                                            \
		CUTOVER_MOVE_GO, CUTOVER_##state, "" \
	}
#define BACK                                           \
	{                                              \
		CUTOVER_MOVE_GO, CUTOVER_AS_BEFORE, "" \
	}
#define STAY(why)                                       \
	{                                               \
		CUTOVER_MOVE_STAY, CUTOVER_PLANNED, why \
	}
#define NO(why)                                           \
	{                                                 \
		CUTOVER_MOVE_REFUSE, CUTOVER_PLANNED, why \
	}

// Sentences that many cells share.
#define UNSTAGED  "no node knows this cutover yet; stage it first"
#define UNSTARTED "it has not started; start it first"
#define RUNNING   "it has started already"
#define HELD      "it is paused; resume it, or roll it back"
#define RETURNING "it is rolling back; a rollback is not stopped, plan a new cutover afterwards"
#define RETURNED  "it was rolled back, which is final; discard it and plan a new cutover"
#define FINISHED  "it is retired, which is final; plan a new cutover for the way back"
#define GONE      "it was discarded, which is final; plan a new cutover"
#define IDLE      "nothing to do in this state"

static const struct cutover_rule rules[CUTOVER_STATE_COUNT][CUTOVER_EVENT_COUNT] = {
	// The plan is bound to a generation; nothing is resident.
	[CUTOVER_PLANNED] =
		{
			[CUTOVER_STAGE] = GO(STAGED),
			[CUTOVER_START] = NO(UNSTAGED),
			[CUTOVER_ADVANCE] = NO(UNSTAGED),
			[CUTOVER_PAUSE] = NO(UNSTAGED),
			[CUTOVER_RESUME] = NO(UNSTAGED),
			[CUTOVER_SET] = NO(UNSTAGED),
			[CUTOVER_ROLLBACK] =
				STAY("nothing to roll back: no node knows this cutover"),
			[CUTOVER_RETIRE] = NO(UNSTAGED),
			[CUTOVER_DISCARD] = GO(DISCARDED),
			[CUTOVER_OVERRIDE_SET] = NO(UNSTAGED),
			[CUTOVER_OVERRIDE_CLEAR] = NO(UNSTAGED),
			[CUTOVER_LOCK] = GO(PLANNED),
			[CUTOVER_UNLOCK] = GO(PLANNED),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = STAY(IDLE),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Both rings resident at 0 %; shadow comparison counts. A bad guard blocks start, there is nothing to undo.
	[CUTOVER_STAGED] =
		{
			[CUTOVER_STAGE] = STAY("it is staged already"),
			[CUTOVER_START] = GO(SHIFTING),
			[CUTOVER_ADVANCE] = NO(UNSTARTED),
			[CUTOVER_PAUSE] = GO(PAUSED),
			[CUTOVER_RESUME] = STAY("it is not paused"),
			[CUTOVER_SET] = GO(SHIFTING),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO("not every datacenter is at 100 %"),
			[CUTOVER_DISCARD] = GO(DISCARDED),
			[CUTOVER_OVERRIDE_SET] = GO(STAGED),
			[CUTOVER_OVERRIDE_CLEAR] = GO(STAGED),
			[CUTOVER_LOCK] = GO(STAGED),
			[CUTOVER_UNLOCK] = GO(STAGED),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = STAY(IDLE),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// The share is committed; waiting for nodes.
	[CUTOVER_SHIFTING] =
		{
			[CUTOVER_STAGE] = STAY(RUNNING),
			[CUTOVER_START] = STAY(RUNNING),
			[CUTOVER_ADVANCE] = NO("nodes have not all taken over the last share yet"),
			[CUTOVER_PAUSE] = GO(PAUSED),
			[CUTOVER_RESUME] = STAY("it is not paused"),
			[CUTOVER_SET] = GO(SHIFTING),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO("not every datacenter is at 100 %"),
			[CUTOVER_DISCARD] = NO("flows use the new ring; roll it back first"),
			[CUTOVER_OVERRIDE_SET] = GO(SHIFTING),
			[CUTOVER_OVERRIDE_CLEAR] = GO(SHIFTING),
			[CUTOVER_LOCK] = GO(SHIFTING),
			[CUTOVER_UNLOCK] = GO(SHIFTING),
			[CUTOVER_APPLIED] = GO(SOAKING),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = GO(PAUSED),
			[CUTOVER_FAIL] = GO(ROLLING_BACK),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Time and guards.
	[CUTOVER_SOAKING] =
		{
			[CUTOVER_STAGE] = STAY(RUNNING),
			[CUTOVER_START] = STAY(RUNNING),
			[CUTOVER_ADVANCE] = GO(SHIFTING),
			[CUTOVER_PAUSE] = GO(PAUSED),
			[CUTOVER_RESUME] = STAY("it is not paused"),
			[CUTOVER_SET] = GO(SHIFTING),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO("not every datacenter is at 100 %"),
			[CUTOVER_DISCARD] = NO("flows use the new ring; roll it back first"),
			[CUTOVER_OVERRIDE_SET] = GO(SHIFTING),
			[CUTOVER_OVERRIDE_CLEAR] = GO(SHIFTING),
			[CUTOVER_LOCK] = GO(SOAKING),
			[CUTOVER_UNLOCK] = GO(SOAKING),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = GO(SHIFTING),
			[CUTOVER_STAGE_DONE] = GO(GATED),
			[CUTOVER_STAGE_NEXT] = GO(SHIFTING),
			[CUTOVER_COMPLETE] = GO(FULL),
			[CUTOVER_HALT] = GO(PAUSED),
			[CUTOVER_FAIL] = GO(ROLLING_BACK),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Waiting for a yes; guards still watch.
	[CUTOVER_GATED] =
		{
			[CUTOVER_STAGE] = STAY(RUNNING),
			[CUTOVER_START] = STAY(RUNNING),
			[CUTOVER_ADVANCE] = GO(SHIFTING),
			[CUTOVER_PAUSE] = GO(PAUSED),
			[CUTOVER_RESUME] = STAY("it is not paused; advance opens the gate"),
			[CUTOVER_SET] = GO(SHIFTING),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO("not every datacenter is at 100 %"),
			[CUTOVER_DISCARD] = NO("flows use the new ring; roll it back first"),
			[CUTOVER_OVERRIDE_SET] = GO(SHIFTING),
			[CUTOVER_OVERRIDE_CLEAR] = GO(SHIFTING),
			[CUTOVER_LOCK] = GO(GATED),
			[CUTOVER_UNLOCK] = GO(GATED),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = GO(SHIFTING),
			[CUTOVER_COMPLETE] = GO(FULL),
			[CUTOVER_HALT] = GO(PAUSED),
			[CUTOVER_FAIL] = GO(ROLLING_BACK),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// 100 % everywhere, the old ring resident: rollback costs one document.
	[CUTOVER_FULL] =
		{
			[CUTOVER_STAGE] = STAY(RUNNING),
			[CUTOVER_START] = STAY(RUNNING),
			[CUTOVER_ADVANCE] = STAY("every datacenter is at 100 %; retire is next"),
			[CUTOVER_PAUSE] = GO(PAUSED),
			[CUTOVER_RESUME] = STAY("it is not paused"),
			[CUTOVER_SET] = GO(SHIFTING),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = GO(RETIRING),
			[CUTOVER_DISCARD] = NO("flows use the new ring; roll it back first"),
			[CUTOVER_OVERRIDE_SET] = GO(SHIFTING),
			[CUTOVER_OVERRIDE_CLEAR] = GO(SHIFTING),
			[CUTOVER_LOCK] = GO(FULL),
			[CUTOVER_UNLOCK] = GO(FULL),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = GO(PAUSED),
			[CUTOVER_FAIL] = GO(ROLLING_BACK),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Rollback stays legal until the memory is given back.
	[CUTOVER_RETIRING] =
		{
			[CUTOVER_STAGE] = STAY(RUNNING),
			[CUTOVER_START] = STAY(RUNNING),
			[CUTOVER_ADVANCE] = STAY("it is retiring already"),
			[CUTOVER_PAUSE] = GO(PAUSED),
			[CUTOVER_RESUME] = STAY("it is not paused"),
			[CUTOVER_SET] = NO("it is retiring; roll it back, or let it finish"),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = STAY("it is retiring already"),
			[CUTOVER_DISCARD] = NO("flows use the new ring; roll it back first"),
			[CUTOVER_OVERRIDE_SET] = NO("it is retiring; pause it, or roll it back"),
			[CUTOVER_OVERRIDE_CLEAR] = GO(RETIRING),
			[CUTOVER_LOCK] = GO(RETIRING),
			[CUTOVER_UNLOCK] = GO(RETIRING),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = GO(PAUSED),
			[CUTOVER_FAIL] = GO(ROLLING_BACK),
			[CUTOVER_DRAINED] = GO(RETIRED),
		},
	// Terminal: the old ring is gone, so is the way back.
	[CUTOVER_RETIRED] =
		{
			[CUTOVER_STAGE] = NO(FINISHED),
			[CUTOVER_START] = NO(FINISHED),
			[CUTOVER_ADVANCE] = NO(FINISHED),
			[CUTOVER_PAUSE] = NO(FINISHED),
			[CUTOVER_RESUME] = NO(FINISHED),
			[CUTOVER_SET] = NO(FINISHED),
			[CUTOVER_ROLLBACK] = NO(FINISHED),
			[CUTOVER_RETIRE] = STAY("it is retired already"),
			[CUTOVER_DISCARD] = NO(FINISHED),
			[CUTOVER_OVERRIDE_SET] = NO(FINISHED),
			[CUTOVER_OVERRIDE_CLEAR] = NO(FINISHED),
			[CUTOVER_LOCK] = NO(FINISHED),
			[CUTOVER_UNLOCK] = NO(FINISHED),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = STAY(IDLE),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Frozen where it was. A guard that fails hard still takes it back.
	[CUTOVER_PAUSED] =
		{
			[CUTOVER_STAGE] = STAY(RUNNING),
			[CUTOVER_START] = NO(HELD),
			[CUTOVER_ADVANCE] = NO(HELD),
			[CUTOVER_PAUSE] = STAY("it is paused already"),
			[CUTOVER_RESUME] = BACK,
			[CUTOVER_SET] = GO(PAUSED),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO(HELD),
			[CUTOVER_DISCARD] = NO("it is paused; roll it back first"),
			[CUTOVER_OVERRIDE_SET] = GO(PAUSED),
			[CUTOVER_OVERRIDE_CLEAR] = GO(PAUSED),
			[CUTOVER_LOCK] = GO(PAUSED),
			[CUTOVER_UNLOCK] = GO(PAUSED),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = GO(ROLLING_BACK),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Shares are 0 in the document; waiting only for nodes that can be reached. Another rollback can only add that
	// established flows come back, too; so it can after the end.
	[CUTOVER_ROLLING_BACK] =
		{
			[CUTOVER_STAGE] = NO(RETURNING),
			[CUTOVER_START] = NO(RETURNING),
			[CUTOVER_ADVANCE] = NO(RETURNING),
			[CUTOVER_PAUSE] = NO(RETURNING),
			[CUTOVER_RESUME] = NO(RETURNING),
			[CUTOVER_SET] = NO(RETURNING),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO(RETURNING),
			[CUTOVER_DISCARD] = NO("nodes have not all gone back to the old ring yet"),
			[CUTOVER_OVERRIDE_SET] = NO(RETURNING),
			[CUTOVER_OVERRIDE_CLEAR] = GO(ROLLING_BACK),
			[CUTOVER_LOCK] = GO(ROLLING_BACK),
			[CUTOVER_UNLOCK] = GO(ROLLING_BACK),
			[CUTOVER_APPLIED] = GO(ROLLED_BACK),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = STAY(IDLE),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Terminal but for discard, which gives the rejected ring's memory back.
	[CUTOVER_ROLLED_BACK] =
		{
			[CUTOVER_STAGE] = NO(RETURNED),
			[CUTOVER_START] = NO(RETURNED),
			[CUTOVER_ADVANCE] = NO(RETURNED),
			[CUTOVER_PAUSE] = NO(RETURNED),
			[CUTOVER_RESUME] = NO(RETURNED),
			[CUTOVER_SET] = NO(RETURNED),
			[CUTOVER_ROLLBACK] = GO(ROLLING_BACK),
			[CUTOVER_RETIRE] = NO(RETURNED),
			[CUTOVER_DISCARD] = GO(DISCARDED),
			[CUTOVER_OVERRIDE_SET] = NO(RETURNED),
			[CUTOVER_OVERRIDE_CLEAR] = NO(RETURNED),
			[CUTOVER_LOCK] = NO(RETURNED),
			[CUTOVER_UNLOCK] = GO(ROLLED_BACK),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = STAY(IDLE),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
	// Terminal: only the old ring is left.
	[CUTOVER_DISCARDED] =
		{
			[CUTOVER_STAGE] = NO(GONE),
			[CUTOVER_START] = NO(GONE),
			[CUTOVER_ADVANCE] = NO(GONE),
			[CUTOVER_PAUSE] = NO(GONE),
			[CUTOVER_RESUME] = NO(GONE),
			[CUTOVER_SET] = NO(GONE),
			[CUTOVER_ROLLBACK] =
				STAY("nothing to roll back: the new ring was discarded"),
			[CUTOVER_RETIRE] = NO(GONE),
			[CUTOVER_DISCARD] = STAY("it was discarded already"),
			[CUTOVER_OVERRIDE_SET] = NO(GONE),
			[CUTOVER_OVERRIDE_CLEAR] = NO(GONE),
			[CUTOVER_LOCK] = NO(GONE),
			[CUTOVER_UNLOCK] = NO(GONE),
			[CUTOVER_APPLIED] = STAY(IDLE),
			[CUTOVER_STEP_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_DONE] = STAY(IDLE),
			[CUTOVER_STAGE_NEXT] = STAY(IDLE),
			[CUTOVER_COMPLETE] = STAY(IDLE),
			[CUTOVER_HALT] = STAY(IDLE),
			[CUTOVER_FAIL] = STAY(IDLE),
			[CUTOVER_DRAINED] = STAY(IDLE),
		},
};

static const char *const state_names[CUTOVER_STATE_COUNT] = {"planned", "staged", "shifting",
	"soaking", "gated", "full", "retiring", "retired", "paused", "rolling_back", "rolled_back",
	"discarded"};

static const char *const event_names[CUTOVER_EVENT_COUNT] = {"stage", "start", "advance", "pause",
	"resume", "set", "rollback", "retire", "discard", "override_set", "override_clear", "lock",
	"unlock", "applied", "step_done", "stage_done", "stage_next", "complete", "halt", "fail",
	"drained"};

const struct cutover_rule *cutover_rule(enum cutover_state state, enum cutover_event event)
{
	assert(state < CUTOVER_STATE_COUNT && event < CUTOVER_EVENT_COUNT);
	return &rules[state][event];
}

bool cutover_state_terminal(enum cutover_state state)
{
	return state == CUTOVER_RETIRED || state == CUTOVER_ROLLED_BACK ||
		state == CUTOVER_DISCARDED;
}

bool cutover_state_needs_new(enum cutover_state state)
{
	return state != CUTOVER_PLANNED && state != CUTOVER_DISCARDED;
}

bool cutover_state_needs_old(enum cutover_state state)
{
	return state != CUTOVER_RETIRED;
}

const char *cutover_state_name(enum cutover_state state)
{
	assert(state < CUTOVER_STATE_COUNT);
	return state_names[state];
}

const char *cutover_event_name(enum cutover_event event)
{
	assert(event < CUTOVER_EVENT_COUNT);
	return event_names[event];
}

bool cutover_state_find(const char *name, enum cutover_state *ret)
{
	for (unsigned i = 0; i < CUTOVER_STATE_COUNT; i++) {
		if (strcmp(name, state_names[i]) == 0) {
			*ret = (enum cutover_state)i;
			return true;
		}
	}
	return false;
}

bool cutover_verb_find(const char *name, enum cutover_event *ret)
{
	for (unsigned i = 0; i < CUTOVER_VERB_COUNT; i++) {
		if (strcmp(name, event_names[i]) == 0) {
			*ret = (enum cutover_event)i;
			return true;
		}
	}
	return false;
}
