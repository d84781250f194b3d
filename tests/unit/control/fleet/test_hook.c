// SPDX-License-Identifier: Apache-2.0
// The hook of a gate: asked with what it needs to know, heard, and never waited for.
#include "control/fleet/hook.h"
#include "tests/lib/http_server.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct cutover cutover;
static struct hook hook;
static struct http_server *server;
static uint64_t now_ms;

static void begin(void)
{
	server = http_server_start();
	fixture_reach(&cutover, CUTOVER_GATED);
	cutover.spec.stages[cutover.stage].require = CUTOVER_REQUIRE_HOOK;
	snprintf(cutover.spec.hook, sizeof(cutover.spec.hook), "%s/ok", http_server_url(server));
	now_ms = 1000000;
}

static void end(void)
{
	http_server_stop(server);
	hook_reset(&hook);
}

// Looks until there are news, which there are after HTTP_TIMEOUT_MS at the latest.
static bool news(void)
{
	struct timespec slice = {.tv_nsec = 5000000};

	for (unsigned i = 0; i < 6000; i++) {
		if (hook_look(&hook, &cutover, now_ms))
			return true;
		nanosleep(&slice, NULL);
	}
	return false;
}

static void check_said(const char *verdict, const char *text)
{
	json_t *said = hook_said(&hook, &cutover);

	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(said, "verdict")), verdict);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(said, "text")), text);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(said, "url")), cutover.spec.hook);
	json_decref(said);
}

static void a_hook_that_says_no_is_asked_again_until_it_says_yes(void)
{
	begin();
	http_server_say(server, 403, "not yet");
	check_said("inconclusive", "not asked yet");
	CU_ASSERT_TRUE(news());
	CU_ASSERT_FALSE(hook_opens(&hook, &cutover));
	check_said("failed", "hook answered 403");
	http_server_say(server, 204, "");
	CU_ASSERT_FALSE(hook_look(&hook, &cutover, now_ms + HOOK_PERIOD_MS - 1));
	CU_ASSERT_PTR_NULL(hook.inquiry); // not again so soon
	now_ms += HOOK_PERIOD_MS;
	CU_ASSERT_TRUE(news());
	CU_ASSERT_TRUE(hook_opens(&hook, &cutover));
	check_said("passed", "hook answered 204");
	// A yes is one for this stage alone.
	cutover.stage++;
	CU_ASSERT_FALSE(hook_opens(&hook, &cutover));
	hook_look(&hook, &cutover, now_ms);
	CU_ASSERT_FALSE(hook_opens(&hook, &cutover));
	end();
}

static void a_redirection_is_not_a_yes(void)
{
	begin();
	http_server_say(server, 302, "");
	CU_ASSERT_TRUE(news());
	CU_ASSERT_FALSE(hook_opens(&hook, &cutover));
	check_said("failed", "hook answered 302");
	end();
}

static void it_is_told_pool_plan_stage_and_share(void)
{
	char line[512], body[512];
	json_t *told;

	begin();
	http_server_say(server, 200, "");
	CU_ASSERT_TRUE(news());
	http_server_asked(server, line, body, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line, "POST /ok HTTP/1.1");
	told = json_loads(body, 0, NULL);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(told, "pool")), "web");
	CU_ASSERT_EQUAL(strtoull(json_string_value(json_object_get(told, "plan")), NULL, 16),
		cutover.plan_id);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(told, "stage")), cutover.stage + 1);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(told, "share")),
		(double)cutover.share / GATE_SHARE_ALL, 1e-6);
	CU_ASSERT_STRING_EQUAL(
		json_string_value(json_array_get(json_object_get(told, "datacenters"), 0)), "ams");
	json_decref(told);
	end();
}

static void a_hook_that_hangs_holds_nobody_up(void)
{
	begin();
	for (unsigned i = 0; i < 1000; i++)
		CU_ASSERT_FALSE(hook_look(&hook, &cutover, now_ms)); // never answered, never waited
	CU_ASSERT_TRUE(news());
	CU_ASSERT_FALSE(hook_opens(&hook, &cutover));
	check_said("error", "hook gave no answer: Timeout was reached");
	end();
}

static void nobody_there_is_an_error(void)
{
	begin();
	snprintf(cutover.spec.hook, sizeof(cutover.spec.hook), "http://127.0.0.1:1/ok");
	CU_ASSERT_TRUE(news());
	check_said("error", "hook gave no answer: Couldn't connect to server");
	end();
}

static void only_a_gate_that_waits_for_it_asks(void)
{
	begin();
	cutover.spec.stages[cutover.stage].require = CUTOVER_REQUIRE_MANUAL;
	hook_look(&hook, &cutover, now_ms);
	CU_ASSERT_PTR_NULL(hook.inquiry);
	CU_ASSERT_PTR_NULL(hook_said(&hook, &cutover));
	cutover.spec.stages[cutover.stage].require = CUTOVER_REQUIRE_HOOK;
	cutover.state = CUTOVER_SOAKING;
	hook_look(&hook, &cutover, now_ms);
	CU_ASSERT_PTR_NULL(hook.inquiry);
	end();
}

// The gate was opened by a person, and another one is closed, before the yes came.
static void an_answer_to_an_earlier_gate_does_not_count(void)
{
	char line[512] = "", body[512];
	struct timespec slice = {.tv_nsec = 5000000};

	begin();
	http_server_say(server, 200, "");
	hook_look(&hook, &cutover, now_ms);
	for (unsigned i = 0; i < 6000 && line[0] == '\0'; i++) {
		nanosleep(&slice, NULL);
		http_server_asked(server, line, body, sizeof(line));
	}
	http_server_say(server, 403, "");
	cutover.stage++;
	cutover.spec.stages[cutover.stage].require = CUTOVER_REQUIRE_HOOK;
	CU_ASSERT_TRUE(news());
	CU_ASSERT_FALSE(hook_opens(&hook, &cutover));
	check_said("failed", "hook answered 403");
	end();
}

static const struct test_case cases[] = {
	SUITE_CASE(a_hook_that_says_no_is_asked_again_until_it_says_yes),
	SUITE_CASE(a_redirection_is_not_a_yes),
	SUITE_CASE(it_is_told_pool_plan_stage_and_share),
	SUITE_CASE(a_hook_that_hangs_holds_nobody_up),
	SUITE_CASE(nobody_there_is_an_error),
	SUITE_CASE(only_a_gate_that_waits_for_it_asks),
	SUITE_CASE(an_answer_to_an_earlier_gate_does_not_count),
};

int main(void)
{
	return SUITE_RUN("hook", cases);
}
