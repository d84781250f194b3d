// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/control/cutover/fixture.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

void fixture_spec(struct cutover_spec *ret)
{
	static const char *const names[] = {"ams", "waw", "fra"};
	static const uint32_t steps[2][2] = {{10000, 100000}, {500000, GATE_SHARE_ALL}};

	cutover_spec_init(ret);
	snprintf(ret->pool, sizeof(ret->pool), "web");
	ret->from = (struct cutover_ring){.version = RING_V1, .points = 160};
	ret->to = (struct cutover_ring){.version = RING_V2, .points = 16};
	ret->salt = 0x5a17;
	ret->shadow_ms = 0;
	ret->full_soak_ms = 0;
	ret->retire_hold_ms = 0;
	ret->guard_passes = 1;
	ret->stage_count = 2;
	for (unsigned i = 0; i < 2; i++) {
		struct cutover_stage *stage = &ret->stages[i];

		memcpy(stage->steps, steps[i], sizeof(steps[i]));
		stage->step_count = 2;
		stage->min_soak_ms = 60000;
	}
	ret->stages[0].require = CUTOVER_REQUIRE_MANUAL;
	ret->stages[1].every = true;
	for (unsigned i = 0; i < 3; i++)
		cutover_datacenter_add(ret, names[i]);
	datacenter_set_add(&ret->stages[0].datacenters, 0);
	datacenter_set_add(&ret->stages[0].datacenters, 1);
	guard_default(GUARD_EARLY_ABORT, &ret->guards[ret->guard_count++]);
}

void fixture_facts(const struct cutover_spec *spec, struct cutover_facts *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		ret->datacenters[i].nodes = 2;
		ret->datacenters[i].prepared = 2;
		ret->datacenters[i].applied = 2;
	}
	ret->guards.evaluated = true;
	ret->guards.action = GUARD_GO;
}

struct cutover_command fixture_command(enum cutover_event verb)
{
	return (struct cutover_command){.verb = verb, .actor = "ann", .reason = "a test"};
}

static void command(struct cutover *cutover, enum cutover_event verb, uint64_t now_ms)
{
	struct cutover_command order = fixture_command(verb);
	struct cutover_facts facts;
	struct cutover_result result;

	fixture_facts(&cutover->spec, &facts);
	CU_ASSERT_EQUAL_FATAL(
		cutover_command(cutover, &order, &facts, now_ms, &result), CUTOVER_OK);
}

// Lets time pass until the state is there; opens gates by hand.
static void run(struct cutover *cutover, enum cutover_state state, uint64_t *now_ms)
{
	struct cutover_facts facts;
	enum cutover_event event;

	fixture_facts(&cutover->spec, &facts);
	for (unsigned i = 0; i < 1000 && cutover->state != state; i++) {
		*now_ms += 10000;
		cutover_step(cutover, &facts, *now_ms, &event);
		if (cutover->state == CUTOVER_GATED && state != CUTOVER_GATED)
			command(cutover, CUTOVER_ADVANCE, *now_ms);
	}
	CU_ASSERT_EQUAL_FATAL(cutover->state, state);
}

void fixture_reach(struct cutover *ret, enum cutover_state state)
{
	struct cutover_spec spec;
	uint64_t now_ms = FIXTURE_START_MS;

	fixture_spec(&spec);
	cutover_init(ret, &spec, 418, now_ms);
	if (state == CUTOVER_PLANNED)
		return;
	command(ret, CUTOVER_STAGE, now_ms);
	if (state == CUTOVER_STAGED)
		return;
	if (state == CUTOVER_DISCARDED) {
		command(ret, CUTOVER_DISCARD, now_ms);
		return;
	}
	command(ret, CUTOVER_START, now_ms);
	if (state == CUTOVER_SHIFTING)
		return;
	if (state == CUTOVER_SOAKING || state == CUTOVER_GATED || state == CUTOVER_FULL) {
		run(ret, state, &now_ms);
		return;
	}
	if (state == CUTOVER_RETIRING || state == CUTOVER_RETIRED) {
		run(ret, CUTOVER_FULL, &now_ms);
		command(ret, CUTOVER_RETIRE, now_ms);
		run(ret, state, &now_ms);
		return;
	}
	run(ret, CUTOVER_SOAKING, &now_ms);
	if (state == CUTOVER_PAUSED)
		command(ret, CUTOVER_PAUSE, now_ms);
	else
		command(ret, CUTOVER_ROLLBACK, now_ms);
	run(ret, state, &now_ms);
}
