// SPDX-License-Identifier: Apache-2.0
// A hit ratio comes with its age, or with the reason why there is none; never silently as "no surge".
#include "control/fleet/hit_ratio.h"
#include "tests/lib/http_server.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct http_server *server;

static void vector_of(char ret[static 256], const char *value)
{
	snprintf(ret, 256,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
		"{\"metric\":{},\"value\":[1,\"%s\"]}]}}",
		value);
}

static void say(const char *value, const char *timestamp)
{
	char body[256];

	vector_of(body, value);
	http_server_say(server, 200, body);
	vector_of(body, timestamp);
	http_server_say_about(server, "timestamp", 200, body);
}

static void value_comes_with_its_age(void)
{
	struct hit_ratio hit;
	char then[32];

	snprintf(then, sizeof(then), "%lld", (long long)time(NULL) - 100);
	say("0.953", then);
	CU_ASSERT_EQUAL(hit_ratio_measure(http_server_url(server), "hits", &hit), 0);
	CU_ASSERT_DOUBLE_EQUAL(hit.value, 0.953, 0);
	CU_ASSERT_TRUE(hit.age_s >= 99 && hit.age_s < 10000);
	// A scalar has no timestamp: Prometheus refuses the second query.
	http_server_say_about(server, "timestamp", 400, "{\"error\":\"expected type\"}");
	CU_ASSERT_EQUAL(hit_ratio_measure(http_server_url(server), "hits", &hit), 0);
	CU_ASSERT_DOUBLE_EQUAL(hit.age_s, 0, 0);
}

static void ends_of_the_range_are_told_apart(void)
{
	static const struct {
		const char *value;
		int rc;
	} cases[] = {{"0", 0}, {"0.9999", 0}, {"1", -ERANGE}, {"95", -ERANGE}, {"-0.1", -ERANGE},
		{"+Inf", -ERANGE}, {"NaN", -ENODATA}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hit_ratio hit;

		say(cases[i].value, "1");
		CU_ASSERT_EQUAL(
			hit_ratio_measure(http_server_url(server), "hits", &hit), cases[i].rc);
		CU_ASSERT_EQUAL(hit.error[0] == '\0', cases[i].rc == 0);
	}
	struct hit_ratio hit;

	say("95", "1");
	hit_ratio_measure(http_server_url(server), "hits", &hit);
	CU_ASSERT_STRING_EQUAL(
		hit.error, "95 is no hit ratio: it must be from 0 up to, not including, 1");
}

static void none_or_several_values_are_no_ratio(void)
{
	struct hit_ratio hit;

	http_server_say(server, 200,
		"{\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,\"0.5\"]},{\"value\":[1,"
		"\"0.6\"]}]}}");
	CU_ASSERT_EQUAL(hit_ratio_measure(http_server_url(server), "hits", &hit), -ENODATA);
	CU_ASSERT_STRING_EQUAL(hit.error, "the query has 2 values, not one");
	http_server_say(server, 200, "{\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
	CU_ASSERT_EQUAL(hit_ratio_measure(http_server_url(server), "hits", &hit), -ENODATA);
}

// Both questions hang; each has HTTP_TIMEOUT_MS, at the same time.
static void a_server_that_hangs_is_given_up(void)
{
	struct http_server *silent = http_server_start();
	struct hit_ratio hit;

	CU_ASSERT_EQUAL(hit_ratio_measure(http_server_url(silent), "hits", &hit), -EIO);
	CU_ASSERT_STRING_EQUAL(hit.error, "Timeout was reached");
	http_server_stop(silent);
	CU_ASSERT_EQUAL(hit_ratio_measure("http://127.0.0.1:1", "hits", &hit), -EIO);
	CU_ASSERT_STRING_EQUAL(hit.error, "Couldn't connect to server");
}

static const struct test_case cases[] = {
	SUITE_CASE(value_comes_with_its_age),
	SUITE_CASE(ends_of_the_range_are_told_apart),
	SUITE_CASE(none_or_several_values_are_no_ratio),
	SUITE_CASE(a_server_that_hangs_is_given_up),
};

int main(void)
{
	server = http_server_start();
	int rc = SUITE_RUN("hit ratio", cases);

	http_server_stop(server);
	return rc;
}
