// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/waits.h"

#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <stdio.h>
#include <string.h>

static void spans_have_two_units_at_most(void)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} spans[] = {{0, "0 s"}, {999, "0 s"}, {45000, "45 s"}, {60000, "1 min"},
		{192000, "3 min 12 s"}, {3600000, "1 h"}, {3659000, "1 h"}, {7500000, "2 h 5 min"},
		{86400000, "1 d"}, {273600000, "3 d 4 h"}};

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		char text[CUTOVER_SPAN_TEXT_BYTES];

		cutover_span_format(spans[i].ms, text);
		CU_ASSERT_STRING_EQUAL(text, spans[i].text);
	}
}

static void check(const struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t after_ms, uint64_t left_ms, const char *expected)
{
	char text[CUTOVER_REASON_BYTES] = "";
	uint64_t left;

	cutover_waits(cutover, facts, cutover->state_ms + after_ms, text, &left);
	CU_ASSERT_STRING_EQUAL(text, expected);
	CU_ASSERT_EQUAL(left, left_ms);
}

static void staged_waits_for_nodes_then_shadow_then_start(void)
{
	struct cutover cutover;
	struct cutover_facts facts;

	fixture_reach(&cutover, CUTOVER_STAGED);
	fixture_facts(&cutover.spec, &facts);
	cutover.spec.shadow_ms = 60000;
	facts.datacenters[1].prepared = 0;
	check(&cutover, &facts, 0, 60000, "0 of 2 nodes of waw hold the new ring");
	fixture_facts(&cutover.spec, &facts);
	check(&cutover, &facts, 15000, 45000, "45 s more of shadow comparison, then start");
	check(&cutover, &facts, 60000, 0, "start");
}

static void shifting_waits_for_nodes_until_it_pauses(void)
{
	struct cutover cutover;
	struct cutover_facts facts;
	char expected[128];

	fixture_reach(&cutover, CUTOVER_SHIFTING);
	fixture_facts(&cutover.spec, &facts);
	cutover.spec.apply_ms = 120000;
	facts.datacenters[0].applied = 1;
	snprintf(expected, sizeof(expected),
		"1 of 2 nodes of ams follow revision %lu; pauses in 1 min 50 s",
		(unsigned long)cutover.shares_revision);
	check(&cutover, &facts, 10000, 110000, expected);
	facts.datacenters[0].applied = 2;
	check(&cutover, &facts, 10000, 110000, "the conductor's next look");
}

static void soaking_waits_for_time_guards_and_nodes(void)
{
	struct cutover cutover;
	struct cutover_facts facts;

	fixture_reach(&cutover, CUTOVER_SOAKING);
	fixture_facts(&cutover.spec, &facts);
	cutover.spec.guard_passes = 3;
	check(&cutover, &facts, 18000, 42000,
		"42 s more of soak, and 3 rounds in a row that every guard passes");
	check(&cutover, &facts, 61000, 0, "3 rounds in a row that every guard passes");
	facts.guards.action = GUARD_WAIT;
	snprintf(facts.guards.text, sizeof(facts.guards.text), "load: 2 is too hot");
	check(&cutover, &facts, 18000, 42000, "load: 2 is too hot");
	facts.datacenters[0].missing = 1;
	check(&cutover, &facts, 18000, 42000, "1 of 2 nodes of ams do not answer");
	fixture_facts(&cutover.spec, &facts);
	cutover.spec.guard_count = 0;
	check(&cutover, &facts, 18000, 42000, "42 s more of soak");
}

static void the_other_states_say_who_is_next(void)
{
	static const struct {
		enum cutover_state state;
		const char *text;
	} rows[] = {{CUTOVER_PLANNED, "stage"}, {CUTOVER_GATED, "advance"},
		{CUTOVER_PAUSED, "somebody who decides"}, {CUTOVER_FULL, "retire"},
		{CUTOVER_ROLLING_BACK, "the conductor's next look"},
		{CUTOVER_ROLLED_BACK, "discard"}, {CUTOVER_RETIRED, "nothing"},
		{CUTOVER_DISCARDED, "nothing"}};
	struct cutover cutover;
	struct cutover_facts facts;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fixture_reach(&cutover, rows[i].state);
		fixture_facts(&cutover.spec, &facts);
		check(&cutover, &facts, 0, 0, rows[i].text);
	}
	fixture_reach(&cutover, CUTOVER_PAUSED);
	facts.guards.action = GUARD_PAUSE;
	snprintf(facts.guards.text, sizeof(facts.guards.text), "origin: 1.7");
	check(&cutover, &facts, 0, 0, "a guard that does not pass: origin: 1.7");
	fixture_reach(&cutover, CUTOVER_FULL);
	cutover.spec.full_soak_ms = 86400000;
	check(&cutover, &facts, 3600000, 82800000, "23 h more of soak at 100%, then retire");
	fixture_reach(&cutover, CUTOVER_RETIRING);
	cutover.spec.retire_hold_ms = 900000;
	check(&cutover, &facts, 60000, 840000, "14 min until the old ring is freed");
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(spans_have_two_units_at_most),
	CASE(staged_waits_for_nodes_then_shadow_then_start),
	CASE(shifting_waits_for_nodes_until_it_pauses),
	CASE(soaking_waits_for_time_guards_and_nodes),
	CASE(the_other_states_say_who_is_next),
};

int main(void)
{
	return SUITE_RUN("cutover waits", cases);
}
