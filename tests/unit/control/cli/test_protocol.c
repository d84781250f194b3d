// SPDX-License-Identifier: Apache-2.0
#include "control/cli/protocol.h"

#include "tests/lib/suite.h"

#include <errno.h>
#include <string.h>

static int parse(const char *line, struct protocol_request *ret, char *ret_error)
{
	return protocol_request_parse(line, strlen(line), ret, ret_error);
}

static void a_whole_request_is_read(void)
{
	struct protocol_request request;
	char error[256];

	CU_ASSERT_EQUAL(parse("{\"id\":7,\"verb\":\"backend.set\",\"args\":{\"weight\":3},"
			      "\"reason\":\"why\",\"generation\":418,\"dry_run\":true,\"new\":[1]}",
				&request, error),
		0);
	CU_ASSERT_EQUAL(request.id, 7);
	CU_ASSERT_STRING_EQUAL(request.verb, "backend.set");
	CU_ASSERT_STRING_EQUAL(request.reason, "why");
	CU_ASSERT_EQUAL(request.generation, 418);
	CU_ASSERT_TRUE(request.dry_run);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(request.args, "weight")), 3);
	protocol_request_clear(&request);
}

static void what_is_left_out_has_its_default(void)
{
	struct protocol_request request;
	char error[256];

	CU_ASSERT_EQUAL(parse("{\"verb\":\"status\"}", &request, error), 0);
	CU_ASSERT_EQUAL(request.id, 0);
	CU_ASSERT_EQUAL(request.generation, PROTOCOL_NO_GENERATION);
	CU_ASSERT_FALSE(request.dry_run);
	CU_ASSERT_STRING_EQUAL(request.reason, "");
	CU_ASSERT_TRUE(json_is_object(request.args));
	protocol_request_clear(&request);
}

static void bad_requests_are_refused_with_a_sentence(void)
{
	static const char *const cases[] = {
		"",
		"x",
		"[]",
		"1",
		"{",
		"{}",
		"{\"verb\":1}",
		"{\"verb\":\"\"}",
		"{\"verb\":\"A b\"}",
		"{\"verb\":\"a\\u0000b\"}",
		"{\"verb\":\"a\",\"args\":[]}",
		"{\"verb\":\"a\",\"args\":1}",
		"{\"verb\":\"a\",\"id\":\"1\"}",
		"{\"verb\":\"a\",\"id\":1.5}",
		"{\"verb\":\"a\",\"generation\":-1}",
		"{\"verb\":\"a\",\"generation\":\"1\"}",
		"{\"verb\":\"a\",\"dry_run\":1}",
		"{\"verb\":\"a\",\"reason\":1}",
		"{\"verb\":\"a\",\"verb\":\"b\"}",
		"{\"verb\":\"a\"} x",
		"{\"verb\":\"\xff\"}",
		"{\"verb\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct protocol_request request;
		char error[256] = "";

		CU_ASSERT_EQUAL(parse(cases[i], &request, error), -EINVAL);
		CU_ASSERT(strlen(error) > 5);
		CU_ASSERT_PTR_NULL(request.args);
	}
}

static void the_id_of_a_bad_request_is_kept_for_the_answer(void)
{
	struct protocol_request request;
	char error[256];

	CU_ASSERT_EQUAL(parse("{\"id\":9,\"verb\":3}", &request, error), -EINVAL);
	CU_ASSERT_EQUAL(request.id, 9);
}

static void replies_have_the_shape_of_the_language(void)
{
	json_t *reply = protocol_error(3, ANSWER_CONFLICT, "no", json_pack("[s]", "because"));
	json_t *error = json_object_get(reply, "error");

	CU_ASSERT_EQUAL(json_integer_value(json_object_get(reply, "id")), 3);
	CU_ASSERT_TRUE(json_is_false(json_object_get(reply, "ok")));
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(error, "code")), 4);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(error, "name")), "conflict");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(error, "details")), 1);
	json_decref(reply);
	reply = protocol_result(3, json_object(), true);
	CU_ASSERT_TRUE(json_is_true(json_object_get(reply, "more")));
	json_decref(reply);
	reply = protocol_result(3, NULL, false);
	CU_ASSERT_PTR_NULL(json_object_get(reply, "more"));
	json_decref(reply);
}

static void answers_are_the_documented_numbers(void)
{
	static const char *const names[] = {"done", "failed", "usage", "not_found", "conflict",
		"partial", "timeout", "invalid", "refused", "permission", "different"};

	CU_ASSERT_EQUAL(ANSWER_COUNT, 11);
	for (int i = 0; i < ANSWER_COUNT; i++)
		CU_ASSERT_STRING_EQUAL(answer_name(i), names[i]);
	CU_ASSERT_EQUAL(answer_of_errno(-ENOENT), ANSWER_NOT_FOUND);
	CU_ASSERT_EQUAL(answer_of_errno(EPERM), ANSWER_PERMISSION);
	CU_ASSERT_EQUAL(answer_of_errno(-EIO), ANSWER_FAILED);
	CU_ASSERT_EQUAL(answer_of_errno(0), ANSWER_DONE);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"a_whole_request_is_read", a_whole_request_is_read},
		{"what_is_left_out_has_its_default", what_is_left_out_has_its_default},
		{"bad_requests_are_refused_with_a_sentence",
			bad_requests_are_refused_with_a_sentence},
		{"the_id_of_a_bad_request_is_kept_for_the_answer",
			the_id_of_a_bad_request_is_kept_for_the_answer},
		{"replies_have_the_shape_of_the_language", replies_have_the_shape_of_the_language},
		{"answers_are_the_documented_numbers", answers_are_the_documented_numbers},
	};

	return SUITE_RUN("protocol", cases);
}
