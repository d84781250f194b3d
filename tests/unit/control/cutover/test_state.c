// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/state.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <stdio.h>
#include <string.h>

// The whole table once more, in another notation, so that a slip in one shows: a letter is the state that the event
// leads to, '.' is "already so", '-' is refused, '<' is the state before the pause.
//	P planned  S staged  H shifting  O soaking  G gated  F full  R retiring  X retired
//	Z paused   B rolling_back  K rolled_back  D discarded
static const char letters[] = "PSHOGFRXZBKD";

static const struct {
	enum cutover_state state;
	const char *
		verbs; // stage start advance pause resume set rollback retire discard override_set/clear lock unlock
	const char *events; // applied step_done stage_done stage_next complete halt fail drained
} table[] = {
	{CUTOVER_PLANNED, "S-----.-D--PP", "........"},
	{CUTOVER_STAGED, ".H-Z.HB-DSSSS", "........"},
	{CUTOVER_SHIFTING, "..-Z.HB--HHHH", "O....ZB."},
	{CUTOVER_SOAKING, "..HZ.HB--HHOO", ".HGHFZB."},
	{CUTOVER_GATED, "..HZ.HB--HHGG", "...HFZB."},
	{CUTOVER_FULL, "...Z.HBR-HHFF", ".....ZB."},
	{CUTOVER_RETIRING, "...Z.-B.--RRR", ".....ZBX"},
	{CUTOVER_RETIRED, "-------.-----", "........"},
	{CUTOVER_PAUSED, ".--.<ZB--ZZZZ", "......B."},
	{CUTOVER_ROLLING_BACK, "------B---BBB", "K......."},
	{CUTOVER_ROLLED_BACK, "------B-D---K", "........"},
	{CUTOVER_DISCARDED, "------.-.----", "........"},
};

static char notation(const struct cutover_rule *rule)
{
	if (rule->move == CUTOVER_MOVE_REFUSE)
		return '-';
	if (rule->move == CUTOVER_MOVE_STAY)
		return '.';
	return rule->next == CUTOVER_AS_BEFORE ? '<' : letters[rule->next];
}

static void every_cell_is_what_the_design_says(void)
{
	CU_ASSERT_EQUAL_FATAL(sizeof(table) / sizeof(table[0]), CUTOVER_STATE_COUNT);
	for (unsigned i = 0; i < CUTOVER_STATE_COUNT; i++) {
		char row[CUTOVER_EVENT_COUNT + 1] = "", want[CUTOVER_EVENT_COUNT + 1];

		for (unsigned e = 0; e < CUTOVER_EVENT_COUNT; e++)
			row[e] = notation(cutover_rule(table[i].state, (enum cutover_event)e));
		snprintf(want, sizeof(want), "%s%s", table[i].verbs, table[i].events);
		if (strcmp(row, want) != 0)
			printf("# %s: %s, want %s\n", cutover_state_name(table[i].state), row,
				want);
		CU_ASSERT_STRING_EQUAL(row, want);
	}
}

static void every_refusal_says_why(void)
{
	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		for (unsigned e = 0; e < CUTOVER_EVENT_COUNT; e++) {
			const struct cutover_rule *rule =
				cutover_rule((enum cutover_state)s, (enum cutover_event)e);

			CU_ASSERT_PTR_NOT_NULL_FATAL(rule->why);
			CU_ASSERT_TRUE(rule->move == CUTOVER_MOVE_GO || strlen(rule->why) > 10);
		}
	}
}

static void rollback_is_legal_in_every_state_but_retired(void)
{
	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		enum cutover_move move =
			cutover_rule((enum cutover_state)s, CUTOVER_ROLLBACK)->move;

		CU_ASSERT_EQUAL(move == CUTOVER_MOVE_REFUSE, s == CUTOVER_RETIRED);
	}
}

// A rollback leaves ROLLED_BACK only to say that established flows come back, too.
static void nothing_leaves_a_terminal_state_but_discard(void)
{
	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		enum cutover_state state = (enum cutover_state)s;

		for (unsigned e = 0; e < CUTOVER_EVENT_COUNT; e++) {
			const struct cutover_rule *rule =
				cutover_rule(state, (enum cutover_event)e);
			bool leaves = rule->move == CUTOVER_MOVE_GO && rule->next != state;

			if (cutover_state_terminal(state) && leaves) {
				CU_ASSERT_EQUAL(state, CUTOVER_ROLLED_BACK);
				CU_ASSERT_TRUE(e == CUTOVER_DISCARD || e == CUTOVER_ROLLBACK);
			}
		}
	}
}

static void names_are_found_again(void)
{
	enum cutover_state state;
	enum cutover_event verb;

	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		CU_ASSERT_TRUE(
			cutover_state_find(cutover_state_name((enum cutover_state)s), &state));
		CU_ASSERT_EQUAL(state, s);
	}
	for (unsigned v = 0; v < CUTOVER_VERB_COUNT; v++) {
		CU_ASSERT_TRUE(cutover_verb_find(cutover_event_name((enum cutover_event)v), &verb));
		CU_ASSERT_EQUAL(verb, v);
	}
	CU_ASSERT_FALSE(cutover_verb_find("drained", &verb));
	CU_ASSERT_FALSE(cutover_state_find("", &state));
}

// The command that a verb needs to succeed wherever the table lets it.
static struct cutover_command complete_command(enum cutover_event verb)
{
	struct cutover_command order = fixture_command(verb);

	order.force = true;
	order.ttl_ms = 1000;
	if (verb == CUTOVER_SET || verb == CUTOVER_OVERRIDE_SET) {
		order.has_share = true;
		order.share = 20000;
	}
	if (verb == CUTOVER_OVERRIDE_SET)
		datacenter_set_add(&order.datacenters, 0);
	return order;
}

// Every verb in every state through the real machine: it does what the table says, or says so and touches nothing.
static void run_verb(enum cutover_state state, enum cutover_event verb)
{
	const struct cutover_rule *rule = cutover_rule(state, verb);
	struct cutover_command order = complete_command(verb);
	struct cutover before, after;
	struct cutover_facts facts;
	struct cutover_result result;

	fixture_reach(&before, state);
	fixture_facts(&before.spec, &facts);
	after = before;
	enum cutover_code code =
		cutover_command(&after, &order, &facts, before.state_ms + 5000, &result);

	if (rule->move == CUTOVER_MOVE_REFUSE) {
		CU_ASSERT_EQUAL(code, CUTOVER_CONFLICT);
	} else {
		CU_ASSERT_EQUAL(code, CUTOVER_OK);
	}
	CU_ASSERT_TRUE(strlen(result.text) > 5);
	if (rule->move != CUTOVER_MOVE_GO || !result.changed) {
		CU_ASSERT_FALSE(result.changed);
		CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
		return;
	}
	enum cutover_state next = rule->next == CUTOVER_AS_BEFORE ? before.resume_to : rule->next;

	CU_ASSERT_EQUAL(after.state, next);
	CU_ASSERT_EQUAL(after.revision, before.revision + 1);
	CU_ASSERT_STRING_EQUAL(after.actor, "ann");
}

static void every_verb_in_every_state_does_what_the_table_says(void)
{
	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		for (unsigned v = 0; v < CUTOVER_VERB_COUNT; v++)
			run_verb((enum cutover_state)s, (enum cutover_event)v);
	}
}

static void every_verb_twice_changes_nothing_the_second_time(void)
{
	static const enum cutover_event repeatable[] = {CUTOVER_STAGE, CUTOVER_START, CUTOVER_PAUSE,
		CUTOVER_RESUME, CUTOVER_ROLLBACK, CUTOVER_RETIRE, CUTOVER_DISCARD};

	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		for (unsigned i = 0; i < sizeof(repeatable) / sizeof(repeatable[0]); i++) {
			struct cutover_command order = complete_command(repeatable[i]);
			struct cutover cutover;
			struct cutover_facts facts;
			struct cutover_result result;

			fixture_reach(&cutover, (enum cutover_state)s);
			fixture_facts(&cutover.spec, &facts);
			uint64_t now_ms = cutover.state_ms + 5000;

			if (cutover_command(&cutover, &order, &facts, now_ms, &result) !=
					CUTOVER_OK ||
				!result.changed)
				continue;
			CU_ASSERT_EQUAL(
				cutover_command(&cutover, &order, &facts, now_ms + 1000, &result),
				CUTOVER_OK);
			CU_ASSERT_FALSE(result.changed);
		}
	}
}

// --move-established, in every state: what the plain one does, and a mark; after the way back was taken, the mark alone.
static void rollback_takes_established_flows_along_in_every_state(void)
{
	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		const struct cutover_rule *rule =
			cutover_rule((enum cutover_state)s, CUTOVER_ROLLBACK);
		struct cutover_command order = complete_command(CUTOVER_ROLLBACK);
		struct cutover cutover, plain;
		struct cutover_facts facts;
		struct cutover_result result;

		fixture_reach(&cutover, (enum cutover_state)s);
		fixture_facts(&cutover.spec, &facts);
		plain = cutover;
		uint64_t now_ms = cutover.state_ms + 5000, revision = cutover.revision;

		cutover_command(&plain, &order, &facts, now_ms, &result);
		order.move_established = true;
		cutover_command(&cutover, &order, &facts, now_ms, &result);
		CU_ASSERT_EQUAL(result.changed, rule->move == CUTOVER_MOVE_GO);
		if (rule->move != CUTOVER_MOVE_GO)
			continue;
		CU_ASSERT_EQUAL(cutover.state, CUTOVER_ROLLING_BACK);
		CU_ASSERT_EQUAL(cutover.revision, revision + 1);
		CU_ASSERT_EQUAL(cutover.shares_revision, revision + 1); // nodes have to follow
		CU_ASSERT_EQUAL(cutover_share_max(&cutover), 0);
		for (uint32_t i = 0; i < cutover.spec.datacenter_count; i++) {
			const char *name = cutover.spec.datacenters[i];

			CU_ASSERT_TRUE(cutover_recalls(&cutover, name));
			CU_ASSERT_FALSE(cutover_recalls(&plain, name));
		}
		CU_ASSERT_FALSE(cutover_recalls(&cutover, "nowhere"));
		CU_ASSERT_EQUAL(
			cutover_command(&cutover, &order, &facts, now_ms, &result), CUTOVER_OK);
		CU_ASSERT_FALSE(result.changed);
		// Said without it afterwards, nothing is taken back of what was said.
		order.move_established = false;
		CU_ASSERT_EQUAL(
			cutover_command(&cutover, &order, &facts, now_ms, &result), CUTOVER_OK);
		CU_ASSERT_TRUE(cutover_recalls(&cutover, cutover.spec.datacenters[0]));
	}
}

static const struct test_case cases[] = {
	{"every_cell_is_what_the_design_says", every_cell_is_what_the_design_says},
	{"every_refusal_says_why", every_refusal_says_why},
	{"rollback_is_legal_in_every_state_but_retired",
		rollback_is_legal_in_every_state_but_retired},
	{"nothing_leaves_a_terminal_state_but_discard",
		nothing_leaves_a_terminal_state_but_discard},
	{"rollback_takes_established_flows_along_in_every_state",
		rollback_takes_established_flows_along_in_every_state},
	{"names_are_found_again", names_are_found_again},
	{"every_verb_in_every_state_does_what_the_table_says",
		every_verb_in_every_state_does_what_the_table_says},
	{"every_verb_twice_changes_nothing_the_second_time",
		every_verb_twice_changes_nothing_the_second_time},
};

int main(void)
{
	return SUITE_RUN("cutover state", cases);
}
