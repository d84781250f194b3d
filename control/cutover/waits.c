// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/waits.h"

#include "control/cutover/moves.h"

#include <stdio.h>

void cutover_span_format(uint64_t ms, char ret[static CUTOVER_SPAN_TEXT_BYTES])
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	uint64_t seconds = ms / CUTOVER_SECOND_MS;
	unsigned i = 0;

	while (i < 3 && seconds < units[i].seconds)
		i++;
	uint64_t whole = seconds / units[i].seconds;
	uint64_t rest = i < 3 ? seconds % units[i].seconds / units[i + 1].seconds : 0;

	if (rest == 0)
		snprintf(ret, CUTOVER_SPAN_TEXT_BYTES, "%llu %s", (unsigned long long)whole,
			units[i].name);
	else
		snprintf(ret, CUTOVER_SPAN_TEXT_BYTES, "%llu %s %llu %s", (unsigned long long)whole,
			units[i].name, (unsigned long long)rest, units[i + 1].name);
}

static uint64_t left_of(uint64_t began_ms, uint64_t length_ms, uint64_t now_ms)
{
	uint64_t end_ms = began_ms + length_ms;

	return end_ms > now_ms ? end_ms - now_ms : 0;
}

// The time that a state takes by itself.
static uint64_t state_left(const struct cutover *cutover, uint64_t now_ms)
{
	const struct cutover_spec *spec = &cutover->spec;

	switch (cutover->state) {
	case CUTOVER_STAGED:
		return left_of(cutover->state_ms, spec->shadow_ms, now_ms);
	case CUTOVER_SHIFTING:
		return left_of(cutover->state_ms, spec->apply_ms, now_ms);
	case CUTOVER_SOAKING:
		return left_of(cutover->soak_ms, spec->stages[cutover->stage].min_soak_ms, now_ms);
	case CUTOVER_FULL:
		return left_of(cutover->state_ms, spec->full_soak_ms, now_ms);
	case CUTOVER_RETIRING:
		return left_of(cutover->state_ms, spec->retire_hold_ms, now_ms);
	default:
		return 0;
	}
}

static void wait_staged(const struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t left_ms, const char *left, char *ret)
{
	if (!move_ready(cutover, 0, facts, false, ret))
		return;
	if (left_ms != 0)
		move_say(ret, "%s more of shadow comparison, then start", left);
	else
		move_say(ret, "start");
}

static void wait_shifting(const struct cutover *cutover, const struct cutover_facts *facts,
	const char *left, char *ret)
{
	char why[CUTOVER_REASON_BYTES];

	if (cutover_applied(cutover, facts, false, why))
		move_say(ret, "the conductor's next look");
	else
		move_say(ret, "%.120s; pauses in %s", why, left);
}

static void wait_soaking(const struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t left_ms, const char *left, char *ret)
{
	const struct cutover_spec *spec = &cutover->spec;
	char why[CUTOVER_REASON_BYTES];

	if (!cutover_applied(cutover, facts, false, why))
		move_say(ret, "%s", why);
	else if (facts->guards.action > GUARD_GO)
		move_say(ret, "%s", facts->guards.text);
	else if (left_ms != 0 && spec->guard_count != 0)
		move_say(ret, "%s more of soak, and %u round%s in a row that every guard passes",
			left, spec->guard_passes, spec->guard_passes == 1 ? "" : "s");
	else if (left_ms != 0)
		move_say(ret, "%s more of soak", left);
	else if (spec->guard_count != 0)
		move_say(ret, "%u round%s in a row that every guard passes", spec->guard_passes,
			spec->guard_passes == 1 ? "" : "s");
	else
		move_say(ret, "the conductor's next look");
}

static void wait_gated(const struct cutover *cutover, char *ret)
{
	bool hook = !cutover->manual &&
		cutover->spec.stages[cutover->stage].require == CUTOVER_REQUIRE_HOOK;

	if (cutover_held_back(cutover, ret) && cutover->stage + 1 == cutover->spec.stage_count)
		return;
	move_say(ret, hook ? "its hook, or advance" : "advance");
}

void cutover_waits(const struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t now_ms, char *ret, uint64_t *ret_left_ms)
{
	char left[CUTOVER_SPAN_TEXT_BYTES], why[CUTOVER_REASON_BYTES];

	*ret_left_ms = state_left(cutover, now_ms);
	cutover_span_format(*ret_left_ms, left);
	switch (cutover->state) {
	case CUTOVER_PLANNED:
		move_say(ret, "stage");
		break;
	case CUTOVER_STAGED:
		wait_staged(cutover, facts, *ret_left_ms, left, ret);
		break;
	case CUTOVER_SHIFTING:
		wait_shifting(cutover, facts, left, ret);
		break;
	case CUTOVER_SOAKING:
		wait_soaking(cutover, facts, *ret_left_ms, left, ret);
		break;
	case CUTOVER_GATED:
		wait_gated(cutover, ret);
		break;
	case CUTOVER_PAUSED:
		if (facts->guards.action > GUARD_GO)
			move_say(ret, "a guard that does not pass: %.140s", facts->guards.text);
		else
			move_say(ret, "somebody who decides");
		break;
	case CUTOVER_FULL:
		if (*ret_left_ms != 0)
			move_say(ret, "%s more of soak at 100%%, then retire", left);
		else
			move_say(ret, "retire");
		break;
	case CUTOVER_RETIRING:
		move_say(ret, "%s until the old ring is freed", left);
		break;
	case CUTOVER_ROLLING_BACK:
		if (cutover_applied(cutover, facts, true, why))
			move_say(ret, "the conductor's next look");
		else
			move_say(ret, "%s", why);
		break;
	case CUTOVER_ROLLED_BACK:
		move_say(ret, "discard");
		break;
	default:
		move_say(ret, "nothing");
		break;
	}
}
