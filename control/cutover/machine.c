// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/machine.h"

#include "control/cutover/moves.h"

#include <stdio.h>
#include <string.h>

// A soak whose guards have not passed may last twice its time and this much, then it pauses.
#define SOAK_GRACE_MS (60 * CUTOVER_SECOND_MS)

static const char *const pause_names[CUTOVER_PAUSE_COUNT] = {"none", "operator", "guard",
	"guard_inconclusive", "stage_expired", "nodes_missing", "store_lost"};

void cutover_init(struct cutover *ret, const struct cutover_spec *spec, uint64_t base_generation,
	uint64_t now_ms)
{
	memset(ret, 0, sizeof(*ret));
	ret->spec = *spec;
	ret->plan_id = cutover_plan_id(spec, base_generation);
	ret->base_generation = base_generation;
	ret->revision = 1;
	ret->shares_revision = 1;
	ret->state = CUTOVER_PLANNED;
	ret->state_ms = now_ms;
	for (uint32_t i = 0; i < CUTOVER_DATACENTERS_MAX; i++)
		ret->datacenters[i].cap = GATE_SHARE_ALL;
}

static uint32_t share_of(const struct cutover *cutover, uint32_t index, bool kill_switch,
	enum threshold_cause *ret_cause)
{
	struct threshold_inputs inputs = {
		.kill_switch = kill_switch,
		.admitted = cutover->datacenters[index].admitted,
		.share = cutover->datacenters[index].share,
		.cap = cutover->datacenters[index].cap,
	};

	for (uint32_t i = 0; i < CUTOVER_OVERRIDES_MAX; i++) {
		const struct cutover_override *override = &cutover->overrides[i];

		if (override->used && override->datacenter == index) {
			inputs.has_override = true;
			inputs.override_share = override->share;
		}
	}
	return threshold_share(&inputs, ret_cause);
}

uint32_t cutover_share(const struct cutover *cutover, const char *datacenter, bool kill_switch,
	enum threshold_cause *ret_cause)
{
	int index = cutover_datacenter_find(&cutover->spec, datacenter);
	struct threshold_inputs outside = {.kill_switch = kill_switch};

	if (index < 0)
		return threshold_share(&outside, ret_cause);
	return share_of(cutover, (uint32_t)index, kill_switch, ret_cause);
}

bool cutover_recalls(const struct cutover *cutover, const char *datacenter)
{
	int index = cutover_datacenter_find(&cutover->spec, datacenter);

	return index >= 0 && cutover->datacenters[index].move_established;
}

uint32_t cutover_share_min(const struct cutover *cutover)
{
	uint32_t least = GATE_SHARE_ALL;

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		uint32_t share = share_of(cutover, i, false, NULL);

		least = share < least ? share : least;
	}
	return least;
}

uint32_t cutover_share_max(const struct cutover *cutover)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		uint32_t share = share_of(cutover, i, false, NULL);

		most = share > most ? share : most;
	}
	return most;
}

bool cutover_held_back(const struct cutover *cutover, char *ret)
{
	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		enum threshold_cause cause;
		char text[CUTOVER_SHARE_TEXT_BYTES];
		uint32_t share = share_of(cutover, i, false, &cause);

		if (share == GATE_SHARE_ALL)
			continue;
		cutover_share_format(share, text);
		move_say(ret, "all stages are done, but %s is at %s: %s",
			cutover->spec.datacenters[i], text, threshold_cause_text(cause));
		return true;
	}
	return false;
}

bool cutover_applied(
	const struct cutover *cutover, const struct cutover_facts *facts, bool all, char *ret_why)
{
	const struct cutover_spec *spec = &cutover->spec;
	const struct cutover_stage *stage =
		&spec->stages[cutover->stage < spec->stage_count ? cutover->stage
								 : spec->stage_count - 1];

	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		const struct cutover_datacenter_facts *seen = &facts->datacenters[i];
		const char *name = spec->datacenters[i];

		if (!all && !datacenter_set_has(&stage->datacenters, i))
			continue;
		if (!all && seen->nodes == 0) {
			move_say(ret_why, "datacenter %s has no nodes", name);
			return false;
		}
		if (!all && seen->missing > stage->missing_nodes_max) {
			move_say(ret_why, "%u of %u nodes of %s do not answer", seen->missing,
				seen->nodes, name);
			return false;
		}
		if (seen->applied + seen->missing < seen->nodes) {
			move_say(ret_why, "%u of %u nodes of %s follow revision %lu", seen->applied,
				seen->nodes, name, (unsigned long)cutover->shares_revision);
			return false;
		}
	}
	return true;
}

// What happened, and the words for it.
struct happening {
	enum cutover_event event; // CUTOVER_EVENT_COUNT: nothing
	enum cutover_pause pause;
	char reason[CUTOVER_REASON_BYTES];
};

// The event after a soak that is over.
static enum cutover_event after_soak(const struct cutover *cutover, struct happening *happening)
{
	const struct cutover_spec *spec = &cutover->spec;
	const struct cutover_stage *stage = &spec->stages[cutover->stage];

	if (cutover->manual) {
		move_say(
			happening->reason, "the share was set by hand; advance goes on from there");
		return CUTOVER_STAGE_DONE;
	}
	if (cutover_stage_next_share(stage, cutover->share) > cutover->share)
		return CUTOVER_STEP_DONE;
	if (stage->require != CUTOVER_REQUIRE_AUTO) {
		move_say(happening->reason, "stage %u is done; waiting for %s", cutover->stage + 1,
			stage->require == CUTOVER_REQUIRE_HOOK ? "its hook, or advance"
							       : "advance");
		return CUTOVER_STAGE_DONE;
	}
	if (cutover->stage + 1 < spec->stage_count)
		return CUTOVER_STAGE_NEXT;
	return cutover_held_back(cutover, happening->reason) ? CUTOVER_STAGE_DONE
							     : CUTOVER_COMPLETE;
}

static void look_at_soak(struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t now_ms, struct happening *happening)
{
	const struct cutover_spec *spec = &cutover->spec;
	const struct cutover_stage *stage = &spec->stages[cutover->stage];
	uint64_t soaked = now_ms - cutover->soak_ms;

	if (facts->guards.evaluated)
		cutover->passes = facts->guards.action == GUARD_GO ? cutover->passes + 1 : 0;
	bool passed = spec->guard_count == 0 || cutover->passes >= spec->guard_passes;
	bool applied = cutover_applied(cutover, facts, false, happening->reason);

	if (soaked >= stage->min_soak_ms && passed && applied) {
		enum cutover_event event = after_soak(cutover, happening);
		uint32_t next = cutover->stage + (event == CUTOVER_STAGE_NEXT);
		bool rises = event == CUTOVER_STEP_DONE || event == CUTOVER_STAGE_NEXT;

		if (!rises || move_ready(cutover, next, facts, false, happening->reason)) {
			happening->event = event;
			return;
		}
	}
	if (soaked < 2 * stage->min_soak_ms + SOAK_GRACE_MS)
		return;
	happening->event = CUTOVER_HALT;
	happening->pause = applied && !passed ? CUTOVER_PAUSE_INCONCLUSIVE : CUTOVER_PAUSE_MISSING;
	if (applied && !passed) {
		move_say(happening->reason, "%.140s: no pass in twice the soak time",
			facts->guards.text[0] != '\0' ? facts->guards.text : "guards");
	}
}

static void look_at_clock(
	const struct cutover *cutover, uint64_t now_ms, struct happening *happening)
{
	const struct cutover_stage *stage = &cutover->spec.stages[cutover->stage];

	if (happening->event != CUTOVER_EVENT_COUNT || stage->max_duration_ms == 0 ||
		now_ms - cutover->stage_ms < stage->max_duration_ms)
		return;
	happening->event =
		stage->on_expiry == CUTOVER_EXPIRY_ROLLBACK ? CUTOVER_FAIL : CUTOVER_HALT;
	happening->pause = CUTOVER_PAUSE_EXPIRED;
	move_say(happening->reason, "stage %u took longer than its max_duration of %lu s",
		cutover->stage + 1, (unsigned long)(stage->max_duration_ms / CUTOVER_SECOND_MS));
}

static void look_at_nodes(const struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t now_ms, struct happening *happening)
{
	char why[CUTOVER_REASON_BYTES];

	if (cutover_applied(cutover, facts, false, why)) {
		happening->event = CUTOVER_APPLIED;
	} else if (now_ms - cutover->state_ms >= cutover->spec.apply_ms) {
		happening->event = CUTOVER_HALT;
		happening->pause = CUTOVER_PAUSE_MISSING;
		move_say(happening->reason, "%s", why);
	}
}

static void look_at_gate(const struct cutover *cutover, const struct cutover_facts *facts,
	struct happening *happening)
{
	const struct cutover_spec *spec = &cutover->spec;

	if (cutover->manual || !facts->hook_confirmed ||
		spec->stages[cutover->stage].require != CUTOVER_REQUIRE_HOOK)
		return;
	move_say(happening->reason, "stage %u: its hook %.140s said yes", cutover->stage + 1,
		spec->hook);
	if (cutover->stage + 1 == spec->stage_count) {
		if (cutover_share_min(cutover) == GATE_SHARE_ALL)
			happening->event = CUTOVER_COMPLETE;
	} else if (move_ready(cutover, cutover->stage + 1, facts, false, NULL)) {
		happening->event = CUTOVER_STAGE_NEXT;
	}
}

// What comes before everything else: guards that say no, and a store that was away.
static void look_at_dangers(const struct cutover_facts *facts, struct happening *happening)
{
	if (facts->guards.action == GUARD_ROLLBACK) {
		happening->event = CUTOVER_FAIL;
		move_say(happening->reason, "%s", facts->guards.text);
	} else if (facts->guards.action == GUARD_PAUSE) {
		happening->event = CUTOVER_HALT;
		happening->pause =
			facts->guards.no_data ? CUTOVER_PAUSE_INCONCLUSIVE : CUTOVER_PAUSE_GUARD;
		move_say(happening->reason, "%s", facts->guards.text);
	} else if (facts->store_lost) {
		happening->event = CUTOVER_HALT;
		happening->pause = CUTOVER_PAUSE_STORE;
		move_say(happening->reason, "the store could not be reached for a while");
	}
}

static void look(struct cutover *cutover, const struct cutover_facts *facts, uint64_t now_ms,
	struct happening *happening)
{
	bool moving = cutover->state != CUTOVER_ROLLING_BACK && cutover->state != CUTOVER_STAGED;

	if (moving)
		look_at_dangers(facts, happening);
	if (happening->event != CUTOVER_EVENT_COUNT)
		return;
	switch (cutover->state) {
	case CUTOVER_SHIFTING:
		look_at_nodes(cutover, facts, now_ms, happening);
		look_at_clock(cutover, now_ms, happening);
		break;
	case CUTOVER_SOAKING:
		look_at_soak(cutover, facts, now_ms, happening);
		look_at_clock(cutover, now_ms, happening);
		break;
	case CUTOVER_GATED:
		look_at_gate(cutover, facts, happening);
		break;
	case CUTOVER_RETIRING:
		if (facts->drained || now_ms - cutover->state_ms >= cutover->spec.retire_hold_ms)
			happening->event = CUTOVER_DRAINED;
		break;
	case CUTOVER_ROLLING_BACK:
		if (cutover_applied(cutover, facts, true, NULL))
			happening->event = CUTOVER_APPLIED;
		break;
	default:
		break;
	}
}

static void act(struct cutover *cutover, const struct happening *happening, enum cutover_state next,
	uint64_t now_ms)
{
	bool shares = true, gated = cutover->state == CUTOVER_GATED;

	switch (happening->event) {
	case CUTOVER_STEP_DONE:
		move_raise(cutover,
			cutover_stage_next_share(
				&cutover->spec.stages[cutover->stage], cutover->share));
		move_enter(cutover, next, now_ms);
		break;
	case CUTOVER_STAGE_NEXT:
		move_begin_stage(cutover, cutover->stage + 1, now_ms);
		move_enter(cutover, next, now_ms);
		break;
	case CUTOVER_FAIL:
		move_zero(cutover);
		move_enter(cutover, next, now_ms);
		break;
	case CUTOVER_HALT:
		move_pause(cutover, happening->pause, happening->reason, now_ms);
		shares = false;
		break;
	default:
		move_enter(cutover, next, now_ms);
		// Which rings a node holds changes only at the end.
		shares = next == CUTOVER_RETIRED;
		break;
	}
	// A way back and a gate say why, and so does who opened the gate.
	if (happening->event == CUTOVER_FAIL || happening->event == CUTOVER_STAGE_DONE || gated)
		move_say(cutover->reason, "%s", happening->reason);
	// Who took it back stays the actor when the nodes have followed, as the reason does.
	if (next != CUTOVER_ROLLED_BACK)
		snprintf(cutover->actor, sizeof(cutover->actor), "conductor");
	move_count(cutover, shares);
}

// Takes out what has a time and is past it. Nodes never look at their own clocks.
static bool expire(struct cutover *cutover, uint64_t now_ms, enum cutover_event *ret_event)
{
	bool shares = false, lock = false;

	for (uint32_t i = 0; i < CUTOVER_OVERRIDES_MAX; i++) {
		struct cutover_override *override = &cutover->overrides[i];

		if (override->used && now_ms >= override->expires_ms) {
			memset(override, 0, sizeof(*override));
			shares = true;
		}
	}
	if (cutover->lock.owner[0] != '\0' && now_ms >= cutover->lock.expires_ms) {
		memset(&cutover->lock, 0, sizeof(cutover->lock));
		lock = true;
	}
	if (!shares && !lock)
		return false;
	const struct cutover_rule *rule = cutover_rule(cutover->state, CUTOVER_OVERRIDE_CLEAR);

	if (shares && rule->move == CUTOVER_MOVE_GO && rule->next != cutover->state)
		move_enter(cutover, rule->next, now_ms);
	move_count(cutover, shares);
	*ret_event = shares ? CUTOVER_OVERRIDE_CLEAR : CUTOVER_UNLOCK;
	return true;
}

bool cutover_step(struct cutover *cutover, const struct cutover_facts *facts, uint64_t now_ms,
	enum cutover_event *ret_event)
{
	struct happening happening = {.event = CUTOVER_EVENT_COUNT};

	*ret_event = CUTOVER_EVENT_COUNT;
	if (cutover->state == CUTOVER_PLANNED || cutover_state_terminal(cutover->state))
		return false;
	if (expire(cutover, now_ms, ret_event))
		return true;
	look(cutover, facts, now_ms, &happening);
	if (happening.event == CUTOVER_EVENT_COUNT)
		return false;
	const struct cutover_rule *rule = cutover_rule(cutover->state, happening.event);

	if (rule->move != CUTOVER_MOVE_GO)
		return false;
	act(cutover, &happening, rule->next, now_ms);
	*ret_event = happening.event;
	return true;
}

const char *cutover_pause_name(enum cutover_pause pause)
{
	return pause_names[pause];
}

bool cutover_pause_find(const char *name, enum cutover_pause *ret)
{
	for (unsigned i = 0; i < CUTOVER_PAUSE_COUNT; i++) {
		if (strcmp(name, pause_names[i]) == 0) {
			*ret = (enum cutover_pause)i;
			return true;
		}
	}
	return false;
}
