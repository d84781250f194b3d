// SPDX-License-Identifier: Apache-2.0
// What a Prometheus may answer, and what is made of it.
#include "control/fleet/inquiry.h"
#include "tests/lib/http_server.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct http_server *server;

#define VECTOR(values) \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" values "]}}"
#define VALUE(text) "{\"metric\":{},\"value\":[1700000000.5,\"" text "\"]}"

static void queries_with_one_value_have_it(void)
{
	char error[HTTP_ERROR_BYTES], line[512], body[512];
	double value = 0;

	http_server_say(server, 200, VECTOR(VALUE("0.953")));
	CU_ASSERT_EQUAL(http_query(http_server_url(server), "a{b=\"c d\"}", &value, error), 0);
	CU_ASSERT_DOUBLE_EQUAL(value, 0.953, 0);
	http_server_asked(server, line, body, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line, "GET /api/v1/query?query=a%7Bb%3D%22c%20d%22%7D HTTP/1.1");
	http_server_say(server, 200,
		"{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}");
	CU_ASSERT_EQUAL(http_query(http_server_url(server), "2", &value, error), 0);
	CU_ASSERT_DOUBLE_EQUAL(value, 2, 0);
}

static void other_answers_are_no_value_and_say_why(void)
{
	static const struct {
		unsigned status;
		const char *body;
		int rc;
		const char *why;
	} answers[] = {
		{200, VECTOR(""), -ENODATA, "the query has 0 values, not one"},
		{200, VECTOR(VALUE("1") "," VALUE("2")), -ENODATA,
			"the query has 2 values, not one"},
		{200, VECTOR(VALUE("NaN")), -ENODATA, "the query's value is no number"},
		{200, VECTOR(VALUE("")), -ENODATA, "the query's value is no number"},
		{400, "{\"status\":\"error\",\"error\":\"1:3: parse error\"}", -EPROTO,
			"1:3: parse error"},
		{503, "<html>", -EPROTO, "the answer is not a Prometheus's"},
		{200, "", -EPROTO, "the answer is not a Prometheus's"},
	};

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		char error[HTTP_ERROR_BYTES] = "";
		double value = 7;

		http_server_say(server, answers[i].status, answers[i].body);
		CU_ASSERT_EQUAL(
			http_query(http_server_url(server), "q", &value, error), answers[i].rc);
		CU_ASSERT_STRING_EQUAL(error, answers[i].why);
		CU_ASSERT_DOUBLE_EQUAL(value, 7, 0);
	}
}

static void nobody_there_is_no_answer(void)
{
	struct http_server *gone = http_server_start();
	char error[HTTP_ERROR_BYTES] = "", url[64];
	double value;

	snprintf(url, sizeof(url), "%s", http_server_url(gone));
	http_server_stop(gone);
	CU_ASSERT_EQUAL(http_query(url, "q", &value, error), -EIO);
	CU_ASSERT_NOT_EQUAL(strlen(error), 0);
	CU_ASSERT_EQUAL(http_post(url, "{}", error), -EIO);
	CU_ASSERT_EQUAL(http_post("ftp://127.0.0.1/", "{}", error), -EIO);
}

// Both are asked at once, and neither waits for the other.
static void inquiries_run_beside_each_other(void)
{
	struct http_server *silent = http_server_start();
	struct inquiry *hangs = inquiry_query(http_server_url(silent), "q");
	struct inquiry_answer answer;

	http_server_say(server, 200, VECTOR(VALUE("5")));
	inquiry_wait(inquiry_query(http_server_url(server), "q"), &answer);
	CU_ASSERT_EQUAL(answer.result, 0);
	CU_ASSERT_DOUBLE_EQUAL(answer.value, 5, 0);
	CU_ASSERT_FALSE(inquiry_end(hangs, &answer));
	inquiry_wait(hangs, &answer); // its time is bounded
	CU_ASSERT_EQUAL(answer.result, -EIO);
	CU_ASSERT_NOT_EQUAL(strlen(answer.error), 0);
	http_server_stop(silent);
}

static const struct test_case cases[] = {
	SUITE_CASE(queries_with_one_value_have_it),
	SUITE_CASE(other_answers_are_no_value_and_say_why),
	SUITE_CASE(nobody_there_is_no_answer),
	SUITE_CASE(inquiries_run_beside_each_other),
};

int main(void)
{
	server = http_server_start();
	int rc = SUITE_RUN("http", cases);

	http_server_stop(server);
	return rc;
}
