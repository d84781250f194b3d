// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/machine.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <stdio.h>
#include <string.h>

static struct cutover cutover;
static struct cutover_facts facts;
static struct cutover_result result;
static uint64_t now_ms;

static void reach(enum cutover_state state)
{
	fixture_reach(&cutover, state);
	fixture_facts(&cutover.spec, &facts);
	now_ms = cutover.state_ms;
}

static enum cutover_event step(uint64_t later_ms)
{
	enum cutover_event event;

	now_ms += later_ms;
	cutover_step(&cutover, &facts, now_ms, &event);
	return event;
}

static enum cutover_code give(struct cutover_command order)
{
	return cutover_command(&cutover, &order, &facts, now_ms, &result);
}

static enum cutover_code give_verb(enum cutover_event verb)
{
	return give(fixture_command(verb));
}

static uint32_t share(const char *datacenter)
{
	return cutover_share(&cutover, datacenter, false, NULL);
}

static void clean_run_goes_through_every_step_in_order(void)
{
	static const struct {
		uint32_t ams, fra;
	} want[] = {{10000, 0}, {100000, 0}, {500000, 500000}, {GATE_SHARE_ALL, GATE_SHARE_ALL}};

	reach(CUTOVER_STAGED);
	CU_ASSERT_EQUAL(share("ams"), 0);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_START), CUTOVER_OK);
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(cutover.state, CUTOVER_SHIFTING);
		CU_ASSERT_EQUAL(share("ams"), want[i].ams);
		CU_ASSERT_EQUAL(share("waw"), want[i].ams);
		CU_ASSERT_EQUAL(share("fra"), want[i].fra);
		CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
		CU_ASSERT_EQUAL(step(59000), CUTOVER_EVENT_COUNT); // one second short of min_soak
		step(1000);
		if (cutover.state == CUTOVER_GATED) {
			CU_ASSERT_EQUAL(i, 1);
			CU_ASSERT_EQUAL(step(3600000), CUTOVER_EVENT_COUNT);
			CU_ASSERT_EQUAL(give_verb(CUTOVER_ADVANCE), CUTOVER_OK);
		}
	}
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_FULL);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_RETIRE), CUTOVER_OK);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_DRAINED);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_RETIRED);
	CU_ASSERT_FALSE(cutover_state_needs_old(cutover.state));
	CU_ASSERT_EQUAL(share("fra"), GATE_SHARE_ALL);
}

static void shift_waits_for_every_node_and_then_pauses(void)
{
	reach(CUTOVER_SHIFTING);
	facts.datacenters[1].applied = 1;
	CU_ASSERT_EQUAL(step(1000), CUTOVER_EVENT_COUNT);
	facts.datacenters[2].applied = 0; // fra has no part in this stage
	CU_ASSERT_EQUAL(step(cutover.spec.apply_ms), CUTOVER_HALT);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_PAUSED);
	CU_ASSERT_EQUAL(cutover.pause, CUTOVER_PAUSE_MISSING);
	CU_ASSERT_PTR_NOT_NULL(strstr(cutover.reason, "waw"));
	CU_ASSERT_EQUAL(share("ams"), 10000); // frozen, not reset
	CU_ASSERT_EQUAL(give_verb(CUTOVER_RESUME), CUTOVER_OK);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_SHIFTING);
}

static void missing_nodes_are_tolerated_up_to_the_limit(void)
{
	reach(CUTOVER_SHIFTING);
	facts.datacenters[0].applied = 1;
	facts.datacenters[0].missing = 1;
	CU_ASSERT_EQUAL(step(1000), CUTOVER_EVENT_COUNT);
	cutover.spec.stages[0].missing_nodes_max = 1;
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
}

static void guard_that_fails_hard_takes_all_back_from_every_moving_state(void)
{
	static const enum cutover_state states[] = {CUTOVER_SHIFTING, CUTOVER_SOAKING,
		CUTOVER_GATED, CUTOVER_FULL, CUTOVER_RETIRING, CUTOVER_PAUSED};

	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		reach(states[i]);
		facts.guards.action = GUARD_ROLLBACK;
		snprintf(facts.guards.text, sizeof(facts.guards.text), "early_abort: 9%%");
		CU_ASSERT_EQUAL(step(1000), CUTOVER_FAIL);
		CU_ASSERT_EQUAL(cutover.state, CUTOVER_ROLLING_BACK);
		CU_ASSERT_EQUAL(cutover_share_max(&cutover), 0);
		CU_ASSERT_STRING_EQUAL(cutover.reason, "early_abort: 9%");
		facts.datacenters[0].applied = 1;
		CU_ASSERT_EQUAL(step(1000), CUTOVER_EVENT_COUNT);
		facts.datacenters[0].missing = 1; // a node that is gone does not hold a rollback up
		CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
		CU_ASSERT_EQUAL(cutover.state, CUTOVER_ROLLED_BACK);
	}
}

static void guard_that_fails_softly_pauses_with_its_words(void)
{
	reach(CUTOVER_SOAKING);
	facts.guards.action = GUARD_PAUSE;
	snprintf(facts.guards.text, sizeof(facts.guards.text), "load: 2.9 times");
	CU_ASSERT_EQUAL(step(1000), CUTOVER_HALT);
	CU_ASSERT_EQUAL(cutover.pause, CUTOVER_PAUSE_GUARD);
	CU_ASSERT_STRING_EQUAL(cutover.reason, "load: 2.9 times");
	// It is not waved through while it still fails.
	CU_ASSERT_EQUAL(give_verb(CUTOVER_RESUME), CUTOVER_REFUSED);
	facts.guards.action = GUARD_GO;
	CU_ASSERT_EQUAL(give_verb(CUTOVER_RESUME), CUTOVER_OK);
}

static void soak_without_a_pass_ends_in_a_pause_never_in_a_step(void)
{
	reach(CUTOVER_SOAKING);
	facts.guards.action = GUARD_WAIT;
	CU_ASSERT_EQUAL(step(60000), CUTOVER_EVENT_COUNT);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_EVENT_COUNT);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_HALT);
	CU_ASSERT_EQUAL(cutover.pause, CUTOVER_PAUSE_INCONCLUSIVE);

	reach(CUTOVER_SOAKING);
	facts.guards.evaluated = false;
	CU_ASSERT_EQUAL(step(179000), CUTOVER_EVENT_COUNT);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_HALT);
}

static void passes_must_be_consecutive(void)
{
	reach(CUTOVER_SOAKING);
	cutover.spec.guard_passes = 3;
	step(30000);
	step(10000);
	facts.guards.action = GUARD_WAIT;
	step(10000);
	facts.guards.action = GUARD_GO;
	CU_ASSERT_EQUAL(step(20000), CUTOVER_EVENT_COUNT);
	CU_ASSERT_EQUAL(step(10000), CUTOVER_EVENT_COUNT);
	CU_ASSERT_EQUAL(step(10000), CUTOVER_STEP_DONE);
}

static void stage_that_takes_too_long_pauses_or_goes_back_as_written(void)
{
	reach(CUTOVER_SOAKING);
	facts.guards.action = GUARD_WAIT;
	cutover.spec.stages[0].max_duration_ms = 90000;
	CU_ASSERT_EQUAL(step(90000), CUTOVER_HALT);
	CU_ASSERT_EQUAL(cutover.pause, CUTOVER_PAUSE_EXPIRED);

	reach(CUTOVER_SOAKING);
	facts.guards.action = GUARD_WAIT;
	cutover.spec.stages[0].max_duration_ms = 90000;
	cutover.spec.stages[0].on_expiry = CUTOVER_EXPIRY_ROLLBACK;
	CU_ASSERT_EQUAL(step(90000), CUTOVER_FAIL);
	CU_ASSERT_EQUAL(cutover_share_max(&cutover), 0);
}

static void lost_store_freezes(void)
{
	reach(CUTOVER_SOAKING);
	facts.store_lost = true;
	CU_ASSERT_EQUAL(step(1000), CUTOVER_HALT);
	CU_ASSERT_EQUAL(cutover.pause, CUTOVER_PAUSE_STORE);
	CU_ASSERT_EQUAL(share("ams"), 10000);
}

static void second_of_two_operators_gets_a_conflict(void)
{
	struct cutover_command first, second;

	reach(CUTOVER_GATED);
	first = fixture_command(CUTOVER_ADVANCE);
	first.revision = cutover.revision;
	second = first;
	second.actor = "bob";
	CU_ASSERT_EQUAL(give(first), CUTOVER_OK);
	CU_ASSERT_TRUE(result.changed);
	CU_ASSERT_EQUAL(give(second), CUTOVER_CONFLICT);
	CU_ASSERT_PTR_NOT_NULL(strstr(result.text, "ann")); // who was faster
	second.verb = CUTOVER_ROLLBACK;                     // asks nobody
	CU_ASSERT_EQUAL(give(second), CUTOVER_OK);
}

static void lock_holds_others_but_not_rollback_or_pause(void)
{
	struct cutover_command order = fixture_command(CUTOVER_LOCK);

	reach(CUTOVER_GATED);
	order.ttl_ms = 60000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	order = fixture_command(CUTOVER_ADVANCE);
	order.actor = "bob";
	CU_ASSERT_EQUAL(give(order), CUTOVER_CONFLICT);
	order.verb = CUTOVER_UNLOCK;
	CU_ASSERT_EQUAL(give(order), CUTOVER_CONFLICT);
	order.verb = CUTOVER_PAUSE;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	order.verb = CUTOVER_ROLLBACK;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_UNLOCK); // its time is over
	CU_ASSERT_EQUAL(cutover.lock.owner[0], '\0');
}

static void override_rules_until_its_time_is_over(void)
{
	struct cutover_command order = fixture_command(CUTOVER_OVERRIDE_SET);

	reach(CUTOVER_SOAKING);
	datacenter_set_add(&order.datacenters, 0);
	order.has_share = true;
	order.share = 0;
	CU_ASSERT_EQUAL(give(order), CUTOVER_USAGE); // without a time to live
	order.ttl_ms = 30000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("ams"), 0);
	CU_ASSERT_EQUAL(share("waw"), 10000);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(step(29000), CUTOVER_OVERRIDE_CLEAR);
	CU_ASSERT_EQUAL(share("ams"), 10000);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_SHIFTING); // taken over and soaked anew
}

static void kill_switch_comes_before_everything(void)
{
	enum threshold_cause cause;

	reach(CUTOVER_FULL);
	CU_ASSERT_EQUAL(cutover_share(&cutover, "ams", true, &cause), 0);
	CU_ASSERT_EQUAL(cause, THRESHOLD_KILL_SWITCH);
	CU_ASSERT_EQUAL(cutover_share(&cutover, "nowhere", false, &cause), 0);
	CU_ASSERT_EQUAL(cause, THRESHOLD_NOT_ADMITTED);
}

static void rollback_of_one_datacenter_keeps_it_out_until_set(void)
{
	struct cutover_command order = fixture_command(CUTOVER_ROLLBACK);

	reach(CUTOVER_SOAKING);
	datacenter_set_add(&order.datacenters, 1);
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("waw"), 0);
	CU_ASSERT_EQUAL(share("ams"), 10000);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_PAUSED);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_RESUME), CUTOVER_OK);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_STEP_DONE);
	CU_ASSERT_EQUAL(share("ams"), 100000);
	CU_ASSERT_EQUAL(share("waw"), 0);
	order.verb = CUTOVER_SET;
	order.has_share = true;
	order.share = 100000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("waw"), 100000);
}

// Of one datacenter alone, until something sends flows there again.
static void established_flows_of_one_datacenter_come_back(void)
{
	struct cutover_command order = fixture_command(CUTOVER_ROLLBACK);

	reach(CUTOVER_SOAKING);
	datacenter_set_add(&order.datacenters, 1);
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "waw"));
	order.move_established = true; // it hurts still
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_TRUE(result.changed);
	CU_ASSERT_EQUAL(cutover.shares_revision, cutover.revision);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_PAUSED);
	CU_ASSERT_TRUE(cutover_recalls(&cutover, "waw"));
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "ams"));
	CU_ASSERT_EQUAL(share("ams"), 10000);
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_FALSE(result.changed);
	order.move_established = false;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_FALSE(result.changed);
	// The others go on; this one stays as it is.
	CU_ASSERT_EQUAL(give_verb(CUTOVER_RESUME), CUTOVER_OK);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_STEP_DONE);
	CU_ASSERT_EQUAL(share("ams"), 100000);
	CU_ASSERT_TRUE(cutover_recalls(&cutover, "waw"));
	order.verb = CUTOVER_SET;
	order.has_share = true;
	order.share = 100000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("waw"), 100000);
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "waw"));
}

static void override_and_discard_end_what_a_rollback_said_of_established_flows(void)
{
	struct cutover_command order = fixture_command(CUTOVER_ROLLBACK);

	reach(CUTOVER_SOAKING);
	datacenter_set_add(&order.datacenters, 0);
	datacenter_set_add(&order.datacenters, 1);
	order.move_established = true;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	order = fixture_command(CUTOVER_OVERRIDE_SET);
	datacenter_set_add(&order.datacenters, 1);
	order.has_share = true;
	order.share = 50000;
	order.ttl_ms = 1000000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_TRUE(cutover_recalls(&cutover, "ams"));
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "waw"));
	order = fixture_command(CUTOVER_ROLLBACK);
	datacenter_set_add(&order.datacenters, 1);
	order.move_established = true; // of one; the others' flows stay
	CU_ASSERT_EQUAL(give_verb(CUTOVER_ROLLBACK), CUTOVER_OK);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_ROLLED_BACK);
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_ROLLING_BACK);
	CU_ASSERT_TRUE(cutover_recalls(&cutover, "waw"));
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "fra"));
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_DISCARD), CUTOVER_OK);
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "ams"));
	CU_ASSERT_FALSE(cutover_recalls(&cutover, "waw"));
}

static void datacenter_that_is_held_back_keeps_it_from_full(void)
{
	struct cutover_command order = fixture_command(CUTOVER_SET);

	reach(CUTOVER_GATED);
	datacenter_set_add(&order.datacenters, 2);
	order.has_cap = true;
	order.cap = 300000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	for (unsigned i = 0; i < 100; i++) {
		step(30000);
		if (cutover.state == CUTOVER_GATED)
			give_verb(CUTOVER_ADVANCE);
	}
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_GATED);
	CU_ASSERT_EQUAL(share("fra"), 300000);
	CU_ASSERT_EQUAL(share("ams"), GATE_SHARE_ALL);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_ADVANCE), CUTOVER_REFUSED);
	order.cap = GATE_SHARE_ALL;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	step(1000);
	step(60000);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_ADVANCE), CUTOVER_OK);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_FULL);
}

static void share_by_hand_waits_for_advance_and_then_goes_on_from_there(void)
{
	struct cutover_command order = fixture_command(CUTOVER_SET);

	reach(CUTOVER_SOAKING);
	order.has_share = true;
	order.share = 30000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("waw"), 30000);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_STAGE_DONE);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_ADVANCE), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("waw"), 100000);
}

static void rise_beyond_the_surge_limit_needs_force_and_a_reason(void)
{
	struct cutover_command order = fixture_command(CUTOVER_SET);

	reach(CUTOVER_SOAKING);
	cutover.spec.stages[0].step_share_max = 14600;
	order.has_share = true;
	order.share = 24601;
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	CU_ASSERT_PTR_NOT_NULL(strstr(result.text, "1.46%"));
	order.share = 24600;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	order.share = 500000;
	order.force = true;
	order.reason = "";
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	order.reason = "the old caches are on fire";
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
}

static void start_wants_every_ring_everywhere(void)
{
	struct cutover_command order = fixture_command(CUTOVER_START);

	reach(CUTOVER_STAGED);
	facts.datacenters[0].prepared = 1;
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	facts.datacenters[0].prepared = 2;
	facts.datacenters[2].mismatched = 1; // anywhere
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	order.force = true; // two rings under one name are never forced past
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	facts.datacenters[2].mismatched = 0;
	facts.datacenters[0].churning = 1;
	order.force = false;
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	order.allow_node_churn = true;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
}

static void steps_wait_while_nodes_come_and_go(void)
{
	reach(CUTOVER_SOAKING);
	facts.datacenters[1].churning = 1;
	CU_ASSERT_EQUAL(step(60000), CUTOVER_EVENT_COUNT);
	facts.datacenters[1].churning = 0;
	CU_ASSERT_EQUAL(step(1000), CUTOVER_STEP_DONE);
}

static void retire_refuses_nodes_that_would_jump(void)
{
	struct cutover_command order = fixture_command(CUTOVER_RETIRE);

	reach(CUTOVER_FULL);
	facts.outside_nodes = 1;
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	facts.outside_nodes = 0;
	cutover.spec.full_soak_ms = 3600000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_REFUSED);
	now_ms += 3600000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
}

static void who_took_it_back_and_why_stays_when_nodes_have_followed(void)
{
	struct cutover_command order = fixture_command(CUTOVER_ROLLBACK);

	reach(CUTOVER_SOAKING);
	order.reason = "looks wrong";
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_ROLLED_BACK);
	CU_ASSERT_STRING_EQUAL(cutover.actor, "ann");
	CU_ASSERT_STRING_EQUAL(cutover.reason, "looks wrong");
	reach(CUTOVER_SOAKING);
	facts.guards.action = GUARD_ROLLBACK;
	snprintf(facts.guards.text, sizeof(facts.guards.text), "load: hot");
	CU_ASSERT_EQUAL(step(1000), CUTOVER_FAIL);
	CU_ASSERT_EQUAL(step(1000), CUTOVER_APPLIED);
	CU_ASSERT_STRING_EQUAL(cutover.actor, "conductor");
	CU_ASSERT_STRING_EQUAL(cutover.reason, "load: hot");
}

static void guards_that_never_pass_are_named(void)
{
	reach(CUTOVER_SOAKING);
	facts.guards.action = GUARD_WAIT;
	snprintf(facts.guards.text, sizeof(facts.guards.text), "load: too little was seen to tell");
	for (unsigned i = 0; i < 100 && cutover.state == CUTOVER_SOAKING; i++)
		step(60000);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_PAUSED);
	CU_ASSERT_EQUAL(cutover.pause, CUTOVER_PAUSE_INCONCLUSIVE);
	CU_ASSERT_STRING_EQUAL(cutover.reason,
		"load: too little was seen to tell: no pass in twice the soak time");
}

static void hook_opens_the_gate_or_a_person_does(void)
{
	reach(CUTOVER_SOAKING);
	cutover.spec.stages[0].require = CUTOVER_REQUIRE_HOOK;
	for (unsigned i = 0; i < 10 && cutover.state != CUTOVER_GATED; i++)
		step(60000);
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_GATED);
	CU_ASSERT_EQUAL(step(60000), CUTOVER_EVENT_COUNT);
	snprintf(cutover.spec.hook, sizeof(cutover.spec.hook), "http://change/ok");
	facts.hook_confirmed = true;
	CU_ASSERT_EQUAL(step(1000), CUTOVER_STAGE_NEXT);
	CU_ASSERT_STRING_EQUAL(cutover.reason, "stage 1: its hook http://change/ok said yes");
	CU_ASSERT_EQUAL(share("fra"), 500000);
}

static void rollback_needs_a_reason_and_takes_overrides_with_it(void)
{
	struct cutover_command order = fixture_command(CUTOVER_OVERRIDE_SET);

	reach(CUTOVER_STAGED);
	datacenter_set_add(&order.datacenters, 2);
	order.has_share = true;
	order.share = 50000;
	order.ttl_ms = 1000000;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("fra"), 50000);
	CU_ASSERT_EQUAL(give_verb(CUTOVER_DISCARD), CUTOVER_CONFLICT); // flows use it
	order = fixture_command(CUTOVER_ROLLBACK);
	order.reason = NULL;
	CU_ASSERT_EQUAL(give(order), CUTOVER_USAGE);
	order.reason = "enough";
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	CU_ASSERT_EQUAL(share("fra"), 0);
}

static void stage_binds_to_its_plan(void)
{
	struct cutover_command order = fixture_command(CUTOVER_STAGE);
	struct cutover_spec spec;

	reach(CUTOVER_PLANNED);
	order.plan_id = cutover.plan_id + 1;
	CU_ASSERT_EQUAL(give(order), CUTOVER_CONFLICT);
	order.plan_id = cutover.plan_id;
	CU_ASSERT_EQUAL(give(order), CUTOVER_OK);
	fixture_spec(&spec);
	CU_ASSERT_EQUAL(cutover_plan_id(&spec, 418), cutover.plan_id);
	CU_ASSERT_NOT_EQUAL(cutover_plan_id(&spec, 419), cutover.plan_id);
	spec.stages[1].steps[0]++;
	CU_ASSERT_NOT_EQUAL(cutover_plan_id(&spec, 418), cutover.plan_id);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(clean_run_goes_through_every_step_in_order),
	CASE(shift_waits_for_every_node_and_then_pauses),
	CASE(missing_nodes_are_tolerated_up_to_the_limit),
	CASE(guard_that_fails_hard_takes_all_back_from_every_moving_state),
	CASE(guard_that_fails_softly_pauses_with_its_words),
	CASE(soak_without_a_pass_ends_in_a_pause_never_in_a_step),
	CASE(passes_must_be_consecutive),
	CASE(stage_that_takes_too_long_pauses_or_goes_back_as_written),
	CASE(lost_store_freezes),
	CASE(second_of_two_operators_gets_a_conflict),
	CASE(lock_holds_others_but_not_rollback_or_pause),
	CASE(override_rules_until_its_time_is_over),
	CASE(kill_switch_comes_before_everything),
	CASE(rollback_of_one_datacenter_keeps_it_out_until_set),
	CASE(established_flows_of_one_datacenter_come_back),
	CASE(override_and_discard_end_what_a_rollback_said_of_established_flows),
	CASE(datacenter_that_is_held_back_keeps_it_from_full),
	CASE(share_by_hand_waits_for_advance_and_then_goes_on_from_there),
	CASE(rise_beyond_the_surge_limit_needs_force_and_a_reason),
	CASE(start_wants_every_ring_everywhere),
	CASE(steps_wait_while_nodes_come_and_go),
	CASE(retire_refuses_nodes_that_would_jump),
	CASE(who_took_it_back_and_why_stays_when_nodes_have_followed),
	CASE(guards_that_never_pass_are_named),
	CASE(hook_opens_the_gate_or_a_person_does),
	CASE(rollback_needs_a_reason_and_takes_overrides_with_it),
	CASE(stage_binds_to_its_plan),
};

int main(void)
{
	return SUITE_RUN("cutover machine", cases);
}
