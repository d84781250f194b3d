// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/machine.h"

#include "control/cutover/moves.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// A command on its way through the checks: works on a copy, which is handed over only when all went well.
struct order {
	struct cutover next;
	const struct cutover *now;
	const struct cutover_command *command;
	const struct cutover_facts *facts;
	uint64_t now_ms;
	enum cutover_state to; // where the rule leads
	bool shares;           // the change reaches the nodes
	struct cutover_result *result;
};

__attribute__((format(printf, 3, 4))) static enum cutover_code answer(
	struct order *order, enum cutover_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(order->result->text, sizeof(order->result->text), format, args);
	va_end(args);
	order->result->code = code;
	return code;
}

static bool has_reason(const struct cutover_command *command)
{
	return command->reason != NULL && command->reason[0] != '\0';
}

// A limit that force with a reason passes.
#define LIMIT(order, ...)                                        \
	((order)->command->force && has_reason((order)->command) \
			? CUTOVER_OK                             \
			: answer(order, CUTOVER_REFUSED, __VA_ARGS__))

static enum cutover_code check_ready(struct order *order, uint32_t stage)
{
	char why[CUTOVER_REASON_BYTES];
	struct cutover_facts const *facts = order->facts;

	if (move_ready(order->now, stage, facts, order->command->allow_node_churn, why))
		return CUTOVER_OK;
	// Two rings under one name are never forced past.
	for (uint32_t i = 0; i < order->now->spec.datacenter_count; i++) {
		if (facts->datacenters[i].mismatched != 0)
			return answer(order, CUTOVER_REFUSED, "%s", why);
	}
	return LIMIT(order, "%s", why);
}

static enum cutover_code check_guards(struct order *order)
{
	const struct cutover_guard_facts *guards = &order->facts->guards;

	if (guards->action != GUARD_PAUSE && guards->action != GUARD_ROLLBACK)
		return CUTOVER_OK;
	return LIMIT(order, "a guard still fails: %s", guards->text);
}

static enum cutover_code check_start(struct order *order)
{
	uint64_t staged = order->now_ms - order->now->state_ms;

	if (staged < order->now->spec.shadow_ms) {
		enum cutover_code code =
			LIMIT(order, "staged %lu s ago; the shadow comparison wants %lu s",
				(unsigned long)(staged / CUTOVER_SECOND_MS),
				(unsigned long)(order->now->spec.shadow_ms / CUTOVER_SECOND_MS));

		if (code != CUTOVER_OK)
			return code;
	}
	enum cutover_code code = check_guards(order);

	return code != CUTOVER_OK ? code : check_ready(order, 0);
}

static enum cutover_code do_stage(struct order *order)
{
	const struct cutover_command *command = order->command;

	if (command->plan_id != 0 && command->plan_id != order->now->plan_id)
		return answer(order, CUTOVER_CONFLICT, "that is another plan");
	order->shares = true;
	move_enter(&order->next, order->to, order->now_ms);
	return CUTOVER_OK;
}

static enum cutover_code do_start(struct order *order)
{
	enum cutover_code code = check_start(order);

	if (code != CUTOVER_OK)
		return code;
	order->shares = true;
	move_begin_stage(&order->next, 0, order->now_ms);
	move_enter(&order->next, order->to, order->now_ms);
	return CUTOVER_OK;
}

// Where an opened gate leads: on in the stage after a step by hand, else to the next stage, else to FULL.
static enum cutover_code advance_from(struct order *order)
{
	struct cutover *next = &order->next;
	const struct cutover_stage *stage = &next->spec.stages[next->stage];
	uint32_t higher = cutover_stage_next_share(stage, next->share);
	bool last = next->stage + 1 == next->spec.stage_count;
	char why[CUTOVER_REASON_BYTES];

	if (higher > next->share) {
		move_raise(next, higher);
		next->manual = false;
	} else if (!last) {
		enum cutover_code code = check_ready(order, next->stage + 1);

		if (code != CUTOVER_OK)
			return code;
		move_begin_stage(next, next->stage + 1, order->now_ms);
	} else if (cutover_held_back(next, why)) {
		return answer(order, CUTOVER_REFUSED, "%s; set its share", why);
	} else {
		move_enter(next, CUTOVER_FULL, order->now_ms);
		return CUTOVER_OK;
	}
	order->shares = true;
	move_enter(next, CUTOVER_SHIFTING, order->now_ms);
	return CUTOVER_OK;
}

static enum cutover_code do_advance(struct order *order)
{
	const struct cutover *now = order->now;
	enum cutover_code code = CUTOVER_OK;

	if (now->state == CUTOVER_SOAKING) {
		uint64_t soaked = (order->now_ms - now->soak_ms) / CUTOVER_SECOND_MS;

		code = LIMIT(order, "still soaking: %lu of %lu s, %u of %u rounds of guards passed",
			(unsigned long)soaked,
			(unsigned long)(now->spec.stages[now->stage].min_soak_ms /
				CUTOVER_SECOND_MS),
			now->passes, now->spec.guard_passes);
	}
	if (code == CUTOVER_OK)
		code = check_guards(order);
	if (code == CUTOVER_OK)
		code = check_ready(order, now->stage);
	return code != CUTOVER_OK ? code : advance_from(order);
}

static enum cutover_code do_pause(struct order *order)
{
	move_pause(&order->next, CUTOVER_PAUSE_OPERATOR,
		has_reason(order->command) ? order->command->reason : "paused by hand",
		order->now_ms);
	return CUTOVER_OK;
}

static enum cutover_code do_resume(struct order *order)
{
	enum cutover_code code = check_guards(order);

	if (code != CUTOVER_OK)
		return code;
	// The stage's time stood still.
	order->next.stage_ms += order->now_ms - order->now->state_ms;
	move_enter(&order->next, order->now->resume_to, order->now_ms);
	order->next.reason[0] = '\0';
	return CUTOVER_OK;
}

// The datacenters that a command names; none named: those of the stage under way.
static bool concerns(const struct order *order, uint32_t index)
{
	const struct datacenter_set *named = &order->command->datacenters;

	if (!datacenter_set_empty(named))
		return datacenter_set_has(named, index);
	return datacenter_set_has(&order->now->spec.stages[order->now->stage].datacenters, index);
}

// The largest rise of share that a `set` makes anywhere.
static uint32_t largest_rise(const struct order *order)
{
	uint32_t largest = 0, share = order->command->share;

	for (uint32_t i = 0; i < order->now->spec.datacenter_count; i++) {
		uint32_t before = order->now->datacenters[i].share;

		if (concerns(order, i) && share > before && share - before > largest)
			largest = share - before;
	}
	return largest;
}

static enum cutover_code check_set(struct order *order)
{
	const struct cutover *now = order->now;
	const struct cutover_command *command = order->command;
	const struct cutover_stage *stage = &now->spec.stages[now->stage];
	uint32_t rise = command->has_share ? largest_rise(order) : 0;
	enum cutover_code code = CUTOVER_OK;
	char limit[CUTOVER_SHARE_TEXT_BYTES], wanted[CUTOVER_SHARE_TEXT_BYTES];

	if (!command->has_share && !command->has_cap)
		return answer(order, CUTOVER_USAGE, "set needs a share or a cap");
	if ((command->has_share && command->share > GATE_SHARE_ALL) ||
		(command->has_cap && command->cap > GATE_SHARE_ALL))
		return answer(order, CUTOVER_USAGE, "a share is at most 100%%");
	if (now->state == CUTOVER_STAGED)
		code = check_start(order);
	if (code == CUTOVER_OK && stage->step_share_max != 0 && rise > stage->step_share_max) {
		cutover_share_format(stage->step_share_max, limit);
		cutover_share_format(rise, wanted);
		code = LIMIT(order, "a rise by %s is more than the %s that max_step_surge allows",
			wanted, limit);
	}
	return code;
}

static enum cutover_code do_set(struct order *order)
{
	const struct cutover_command *command = order->command;
	struct cutover *next = &order->next;
	enum cutover_code code = check_set(order);

	if (code != CUTOVER_OK)
		return code;
	for (uint32_t i = 0; i < next->spec.datacenter_count; i++) {
		struct cutover_datacenter *datacenter = &next->datacenters[i];

		if (!concerns(order, i))
			continue;
		datacenter->move_established = false;
		if (command->has_share) {
			datacenter->admitted = true;
			datacenter->share = command->share;
			datacenter->cap = GATE_SHARE_ALL;
		}
		if (command->has_cap)
			datacenter->cap = command->cap;
	}
	if (command->has_share && datacenter_set_empty(&command->datacenters))
		next->share = command->share;
	next->manual = true;
	order->shares = true;
	if (order->now->state == CUTOVER_STAGED)
		next->stage_ms = order->now_ms;
	if (order->now->state == CUTOVER_PAUSED)
		next->resume_to = CUTOVER_SHIFTING;
	else
		move_enter(next, order->to, order->now_ms);
	return CUTOVER_OK;
}

// Marks the datacenters of a rollback whose established flows are to come back; none named: all. Returns whether any of
// them was not marked yet.
static bool recall(struct order *order)
{
	const struct cutover_command *command = order->command;
	bool any = false;

	for (uint32_t i = 0; i < order->next.spec.datacenter_count; i++) {
		bool *marked = &order->next.datacenters[i].move_established;

		if (!command->move_established ||
			(!datacenter_set_empty(&command->datacenters) &&
				!datacenter_set_has(&command->datacenters, i)))
			continue;
		any |= !*marked;
		*marked = true;
	}
	return any;
}

// Takes some datacenters back and keeps them out until `set` names them again; the others stay, paused.
static enum cutover_code rollback_some(struct order *order)
{
	struct cutover *next = &order->next;
	bool any = false;

	for (uint32_t i = 0; i < next->spec.datacenter_count; i++) {
		struct cutover_datacenter *datacenter = &next->datacenters[i];

		if (!concerns(order, i))
			continue;
		for (uint32_t o = 0; o < CUTOVER_OVERRIDES_MAX; o++) {
			if (next->overrides[o].used && next->overrides[o].datacenter == i) {
				memset(&next->overrides[o], 0, sizeof(next->overrides[o]));
				any = true;
			}
		}
		any |= datacenter->share != 0 || datacenter->cap != 0;
		*datacenter = (struct cutover_datacenter){
			.move_established = datacenter->move_established};
	}
	any |= recall(order);
	if (!any)
		return answer(order, CUTOVER_OK, "those datacenters are at 0%% already");
	order->shares = true;
	if (order->now->state != CUTOVER_PAUSED)
		move_pause(next, CUTOVER_PAUSE_OPERATOR, order->command->reason, order->now_ms);
	next->resume_to = CUTOVER_SHIFTING;
	return CUTOVER_OK;
}

// A way back that was taken already has only established flows to go on about. Nodes must follow once more.
static enum cutover_code do_rollback(struct order *order)
{
	enum cutover_state state = order->now->state;
	bool returns = state == CUTOVER_ROLLING_BACK || state == CUTOVER_ROLLED_BACK;

	if (!has_reason(order->command) && (!returns || order->command->move_established))
		return answer(order, CUTOVER_USAGE, "rollback needs a reason");
	if (!datacenter_set_empty(&order->command->datacenters) && state != CUTOVER_STAGED &&
		!returns)
		return rollback_some(order);
	if (!recall(order) && returns)
		return answer(order, CUTOVER_OK, "it %s already",
			state == CUTOVER_ROLLED_BACK ? "was rolled back" : "is rolling back");
	order->shares = true;
	move_zero(&order->next);
	move_enter(&order->next, order->to, order->now_ms);
	move_say(order->next.reason, "%s", order->command->reason);
	return CUTOVER_OK;
}

static enum cutover_code do_retire(struct order *order)
{
	const struct cutover *now = order->now;
	uint64_t full = order->now_ms - now->state_ms;
	enum cutover_code code = CUTOVER_OK;
	char why[CUTOVER_REASON_BYTES];

	if (full < now->spec.full_soak_ms) {
		code = LIMIT(order, "at 100%% for %lu s; full_soak wants %lu s",
			(unsigned long)(full / CUTOVER_SECOND_MS),
			(unsigned long)(now->spec.full_soak_ms / CUTOVER_SECOND_MS));
	}
	if (code == CUTOVER_OK && order->facts->outside_nodes != 0) {
		code = LIMIT(order,
			"%u nodes are in datacenters that the cutover does not list: they would jump "
			"from 0%% to 100%%",
			order->facts->outside_nodes);
	}
	if (code == CUTOVER_OK && !cutover_applied(now, order->facts, true, why))
		code = LIMIT(order, "%s", why);
	if (code == CUTOVER_OK)
		code = check_guards(order);
	if (code == CUTOVER_OK)
		move_enter(&order->next, order->to, order->now_ms);
	return code;
}

static enum cutover_code do_discard(struct order *order)
{
	if (cutover_share_max(order->now) != 0)
		return answer(order, CUTOVER_CONFLICT,
			"an override sends flows to the new ring; clear it first");
	for (uint32_t i = 0; i < order->next.spec.datacenter_count; i++)
		order->next.datacenters[i].move_established = false;
	order->shares = true;
	move_enter(&order->next, order->to, order->now_ms);
	return CUTOVER_OK;
}

static struct cutover_override *override_slot(struct cutover *cutover, uint32_t datacenter)
{
	struct cutover_override *unused = NULL;

	for (uint32_t i = 0; i < CUTOVER_OVERRIDES_MAX; i++) {
		struct cutover_override *override = &cutover->overrides[i];

		if (override->used && override->datacenter == datacenter)
			return override;
		if (!override->used && unused == NULL)
			unused = override;
	}
	return unused;
}

static enum cutover_code put_override(struct order *order, uint32_t index)
{
	const struct cutover_command *command = order->command;
	struct cutover_override *override = override_slot(&order->next, index);

	if (override == NULL)
		return answer(order, CUTOVER_REFUSED, "%u overrides stand already; clear some",
			CUTOVER_OVERRIDES_MAX);
	override->used = true;
	override->datacenter = index;
	override->share = command->share;
	override->expires_ms = order->now_ms + command->ttl_ms;
	order->next.datacenters[index].move_established = false;
	move_say(override->reason, "%s", command->reason);
	return CUTOVER_OK;
}

static enum cutover_code do_override_set(struct order *order)
{
	const struct cutover_command *command = order->command;
	enum cutover_code code = CUTOVER_OK;

	if (!has_reason(command) || command->ttl_ms == 0 || !command->has_share ||
		command->share > GATE_SHARE_ALL || datacenter_set_empty(&command->datacenters))
		return answer(order, CUTOVER_USAGE,
			"override needs datacenters, a share, a time to live and a reason");
	for (uint32_t i = 0; i < order->now->spec.datacenter_count && code == CUTOVER_OK; i++) {
		if (concerns(order, i))
			code = put_override(order, i);
	}
	if (code != CUTOVER_OK)
		return code;
	order->shares = true;
	if (order->to != order->now->state)
		move_enter(&order->next, order->to, order->now_ms);
	return CUTOVER_OK;
}

static enum cutover_code do_override_clear(struct order *order)
{
	const struct datacenter_set *named = &order->command->datacenters;
	bool any = false;

	for (uint32_t i = 0; i < CUTOVER_OVERRIDES_MAX; i++) {
		struct cutover_override *override = &order->next.overrides[i];

		if (override->used &&
			(datacenter_set_empty(named) ||
				datacenter_set_has(named, override->datacenter))) {
			memset(override, 0, sizeof(*override));
			any = true;
		}
	}
	if (!any)
		return answer(order, CUTOVER_OK, "no such override stands");
	order->shares = true;
	if (order->to != order->now->state)
		move_enter(&order->next, order->to, order->now_ms);
	return CUTOVER_OK;
}

static enum cutover_code do_lock(struct order *order)
{
	struct cutover_lock *lock = &order->next.lock;

	if (!has_reason(order->command) || order->command->ttl_ms == 0)
		return answer(order, CUTOVER_USAGE, "lock needs a reason and a time to live");
	snprintf(lock->owner, sizeof(lock->owner), "%s", order->command->actor);
	lock->expires_ms = order->now_ms + order->command->ttl_ms;
	move_say(lock->reason, "%s", order->command->reason);
	return CUTOVER_OK;
}

static enum cutover_code do_unlock(struct order *order)
{
	if (order->now->lock.owner[0] == '\0')
		return answer(order, CUTOVER_OK, "it is not locked");
	memset(&order->next.lock, 0, sizeof(order->next.lock));
	return CUTOVER_OK;
}

static enum cutover_code (*const verbs[CUTOVER_VERB_COUNT])(struct order *) = {
	[CUTOVER_STAGE] = do_stage,
	[CUTOVER_START] = do_start,
	[CUTOVER_ADVANCE] = do_advance,
	[CUTOVER_PAUSE] = do_pause,
	[CUTOVER_RESUME] = do_resume,
	[CUTOVER_SET] = do_set,
	[CUTOVER_ROLLBACK] = do_rollback,
	[CUTOVER_RETIRE] = do_retire,
	[CUTOVER_DISCARD] = do_discard,
	[CUTOVER_OVERRIDE_SET] = do_override_set,
	[CUTOVER_OVERRIDE_CLEAR] = do_override_clear,
	[CUTOVER_LOCK] = do_lock,
	[CUTOVER_UNLOCK] = do_unlock,
};

// Two operators at once: the second sees what the first did. Rollback and pause ask nobody.
static enum cutover_code check_turn(struct order *order)
{
	const struct cutover *now = order->now;
	const struct cutover_command *command = order->command;
	const struct cutover_lock *lock = &now->lock;

	if (command->verb == CUTOVER_ROLLBACK || command->verb == CUTOVER_PAUSE)
		return CUTOVER_OK;
	if (command->revision != 0 && command->revision != now->revision)
		return answer(order, CUTOVER_CONFLICT,
			"revision %lu was expected; it is at %lu, %s, last moved by %s",
			(unsigned long)command->revision, (unsigned long)now->revision,
			cutover_state_name(now->state), now->actor);
	if (lock->owner[0] != '\0' && order->now_ms < lock->expires_ms &&
		strcmp(lock->owner, command->actor) != 0) {
		if (command->verb == CUTOVER_UNLOCK && command->force && has_reason(command))
			return CUTOVER_OK;
		return answer(order, CUTOVER_CONFLICT, "locked by %s for %lu s more: %s",
			lock->owner,
			(unsigned long)((lock->expires_ms - order->now_ms) / CUTOVER_SECOND_MS),
			lock->reason);
	}
	return CUTOVER_OK;
}

enum cutover_code cutover_command(struct cutover *cutover, const struct cutover_command *command,
	const struct cutover_facts *facts, uint64_t now_ms, struct cutover_result *ret)
{
	const struct cutover_rule *rule = cutover_rule(cutover->state, command->verb);
	struct order order = {.next = *cutover,
		.now = cutover,
		.command = command,
		.facts = facts,
		.now_ms = now_ms,
		.to = rule->next,
		.result = ret};

	*ret = (struct cutover_result){.code = CUTOVER_OK};
	if (check_turn(&order) != CUTOVER_OK)
		return ret->code;
	if (rule->move == CUTOVER_MOVE_STAY)
		return answer(&order, CUTOVER_OK, "%s", rule->why);
	if (rule->move == CUTOVER_MOVE_REFUSE)
		return answer(&order, CUTOVER_CONFLICT,
			"%s is not possible in state %s, where %s left it: %s",
			cutover_event_name(command->verb), cutover_state_name(cutover->state),
			cutover->actor[0] ? cutover->actor : "nobody", rule->why);
	// A verb that had nothing to do has answered already.
	if (verbs[command->verb](&order) != CUTOVER_OK || ret->text[0] != '\0')
		return ret->code;
	snprintf(order.next.actor, sizeof(order.next.actor), "%s", command->actor);
	move_count(&order.next, order.shares);
	*cutover = order.next;
	ret->changed = true;
	snprintf(ret->text, sizeof(ret->text), "%s: now %s%s", cutover_event_name(command->verb),
		cutover_state_name(cutover->state),
		command->move_established ? "; established flows of the new ring come back" : "");
	return ret->code;
}
