// SPDX-License-Identifier: Apache-2.0
// The verbs of the daemon and the commands of the CLI are two tables of one language.
#include "control/daemon/verbs.h"

#include "control/cli/cli.h"
#include "control/cli/top.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <string.h>

static const struct server_verb *find_verb(const char *name)
{
	for (unsigned i = 0; i < verbs_count; i++) {
		if (strcmp(verbs_table[i].name, name) == 0)
			return &verbs_table[i];
	}
	return NULL;
}

static const struct cli_command *find_command(const char *verb)
{
	char noun[64] = "";

	strncat(noun, verb, strcspn(verb, "."));
	return cli_command_find(noun, strchr(verb, '.') ? strchr(verb, '.') + 1 : NULL);
}

static void every_verb_has_its_command_with_the_same_marks(void)
{
	for (unsigned i = 0; i < verbs_count; i++) {
		const struct cli_command *command = find_command(verbs_table[i].name);

		// `trace selections` speaks three verbs.
		if (strncmp(verbs_table[i].name, "trace.", 6) == 0)
			continue;
		CU_ASSERT_PTR_NOT_NULL_FATAL(command);
		CU_ASSERT_EQUAL(verbs_table[i].mutates, (command->flags & CLI_MUTATES) != 0);
		CU_ASSERT_EQUAL(verbs_table[i].streams, (command->flags & CLI_STREAMS) != 0);
		CU_ASSERT_EQUAL(command->flags & CLI_OFFLINE, 0);
	}
}

static void every_command_that_changes_something_has_its_verb(void)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		const struct cli_command *command = &cli_commands[i];
		char name[64];

		if (!(command->flags & (CLI_MUTATES | CLI_STREAMS)))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", command->noun, command->verb ? "." : "",
			command->verb ? command->verb : "");
		CU_ASSERT_PTR_NOT_NULL(find_verb(name));
	}
}

static void verbs_that_change_something_need_more_than_a_viewer(void)
{
	for (unsigned i = 0; i < verbs_count; i++) {
		CU_ASSERT_PTR_NOT_NULL(verbs_table[i].run);
		CU_ASSERT(verbs_table[i].role >= SERVER_VIEWER);
		CU_ASSERT_EQUAL(verbs_table[i].mutates, verbs_table[i].role > SERVER_VIEWER);
		CU_ASSERT_FALSE(verbs_table[i].mutates && verbs_table[i].streams);
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(verbs_table[i].name, verbs_table[j].name);
	}
}

// The way back must be open to whoever may go forward.
static void an_operator_may_roll_back(void)
{
	CU_ASSERT_EQUAL(find_verb("cutover.rollback")->role, SERVER_OPERATOR);
	CU_ASSERT(find_verb("cutover.rollback")->role <= find_verb("cutover.set")->role);
}

static json_t *reading(int seconds, int packets, const char *pool)
{
	return json_pack("{s:I, s:i, s:{s:i, s:i}, s:[{s:s, s:i}], s:[], s:[{s:s, s:i}], s:[]}",
		"time_ns", (json_int_t)seconds * 1000000000, "tsc_hz", 1000, "balance",
		"rx_packets", packets, "forwarded", packets / 2, "counters", "name", "flow_hit",
		"count", packets * 3, "drops", "pools", "name", pool, "packets_old", packets,
		"workers");
}

static void rates_are_differences_over_time(void)
{
	json_t *before = reading(10, 1000, "web"), *after = reading(12, 5000, "web");
	json_t *rates = top_rates(before, after);
	const json_t *pool = json_array_get(json_object_get(rates, "pools"), 0);
	const json_t *counter = json_array_get(json_object_get(rates, "counters"), 0);

	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(rates, "rx_packets")), 2000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(rates, "forwarded")), 1000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(pool, "packets_old")), 2000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(counter, "count")), 6000, 1e-9);
	json_decref(rates);
	// A pool that is new has no rate yet.
	json_t *other = reading(13, 6000, "new");

	rates = top_rates(after, other);
	pool = json_array_get(json_object_get(rates, "pools"), 0);
	CU_ASSERT_PTR_NULL(json_object_get(pool, "packets_old"));
	json_decref(rates);
	// A dataplane that restarted, and two readings of one moment, have none at all.
	CU_ASSERT_PTR_NULL(top_rates(after, before));
	CU_ASSERT_PTR_NULL(top_rates(after, after));
	json_t *restarted = reading(14, 10, "new");

	CU_ASSERT_PTR_NULL(top_rates(other, restarted));
	json_decref(restarted);
	json_decref(before);
	json_decref(after);
	json_decref(other);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"every_verb_has_its_command_with_the_same_marks",
			every_verb_has_its_command_with_the_same_marks},
		{"every_command_that_changes_something_has_its_verb",
			every_command_that_changes_something_has_its_verb},
		{"verbs_that_change_something_need_more_than_a_viewer",
			verbs_that_change_something_need_more_than_a_viewer},
		{"an_operator_may_roll_back", an_operator_may_roll_back},
		{"rates_are_differences_over_time", rates_are_differences_over_time},
	};

	return SUITE_RUN("verbs", cases);
}
