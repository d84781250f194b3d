// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/guard.h"
#include "control/cutover/spec_json.h"
#include "control/cutover/threshold.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void share_is_read_down_to_a_ten_thousandth_of_a_percent(void)
{
	static const struct {
		const char *text;
		uint32_t share;
	} good[] = {{"0", 0}, {"0%", 0}, {"0.0001%", 1}, {"0.0001 %", 1}, {"1", 10000},
		{" 12.5%", 125000}, {"99.9999%", 999999}, {"100", GATE_SHARE_ALL},
		{"100.0000%", GATE_SHARE_ALL}};
	static const char *const bad[] = {"", "%", "-1", "100.0001", "101", "1e2", "0.00001", "1.",
		".5", "10 % x", "nan", "99999999999999999999"};
	uint32_t share;

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CU_ASSERT_EQUAL(cutover_share_parse(good[i].text, &share), 0);
		CU_ASSERT_EQUAL(share, good[i].share);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		share = 77;
		CU_ASSERT_EQUAL(cutover_share_parse(bad[i], &share), -EINVAL);
		CU_ASSERT_EQUAL(share, 77);
	}
}

static void share_text_reads_back(void)
{
	uint64_t state = suite_seed();

	for (unsigned i = 0; i < 10000; i++) {
		uint32_t share = (uint32_t)(suite_random(&state) % (GATE_SHARE_ALL + 1)), back;
		char text[CUTOVER_SHARE_TEXT_BYTES];

		cutover_share_format(share, text);
		CU_ASSERT_EQUAL_FATAL(cutover_share_parse(text, &back), 0);
		CU_ASSERT_EQUAL_FATAL(back, share);
	}
}

static void ramp_ends_exactly_at_its_end(void)
{
	struct cutover_stage stage = {.ramp_to = GATE_SHARE_ALL, .ramp_step = 14000};
	uint32_t share = 10000, steps = 0;

	while (cutover_stage_next_share(&stage, share) > share && steps < 1000) {
		share = cutover_stage_next_share(&stage, share);
		steps++;
	}
	CU_ASSERT_EQUAL(share, GATE_SHARE_ALL);
	CU_ASSERT_EQUAL(steps, 71); // 99 % in steps of 1.4 %
}

static void threshold_is_the_first_line_that_matches(void)
{
	struct threshold_inputs inputs = {.kill_switch = true,
		.has_override = true,
		.override_share = 7,
		.admitted = true,
		.share = 5,
		.cap = 3};
	enum threshold_cause cause;

	CU_ASSERT_EQUAL(threshold_share(&inputs, &cause), 0);
	CU_ASSERT_EQUAL(cause, THRESHOLD_KILL_SWITCH);
	inputs.kill_switch = false;
	CU_ASSERT_EQUAL(threshold_share(&inputs, &cause), 7);
	CU_ASSERT_EQUAL(cause, THRESHOLD_OVERRIDE);
	inputs.has_override = false;
	CU_ASSERT_EQUAL(threshold_share(&inputs, &cause), 3);
	CU_ASSERT_EQUAL(cause, THRESHOLD_CAP);
	inputs.cap = GATE_SHARE_ALL;
	CU_ASSERT_EQUAL(threshold_share(&inputs, &cause), 5);
	CU_ASSERT_EQUAL(cause, THRESHOLD_STAGE);
	inputs.admitted = false;
	CU_ASSERT_EQUAL(threshold_share(&inputs, &cause), 0);
	CU_ASSERT_EQUAL(cause, THRESHOLD_NOT_ADMITTED);
	inputs = (struct threshold_inputs){.has_override = true, .override_share = UINT32_MAX};
	CU_ASSERT_EQUAL(threshold_share(&inputs, NULL), GATE_SHARE_ALL);
}

static void good_specification_has_no_fault(void)
{
	struct cutover_spec_error errors[8];
	struct cutover_spec spec;

	fixture_spec(&spec);
	CU_ASSERT_EQUAL(cutover_spec_check(&spec, errors, 8), 0);
}

static void expect_fault(const struct cutover_spec *spec, const char *where, const char *word)
{
	struct cutover_spec_error errors[16];
	size_t count = cutover_spec_check(spec, errors, 16);
	bool found = false;

	for (size_t i = 0; i < count; i++)
		found |=
			strcmp(errors[i].where, where) == 0 && strstr(errors[i].text, word) != NULL;
	if (!found)
		printf("# no fault at %s about %s\n", where, word);
	CU_ASSERT_TRUE(found);
}

static void each_fault_is_named_with_its_place(void)
{
	struct cutover_spec spec;

	fixture_spec(&spec);
	spec.stages[0].steps[1] = spec.stages[0].steps[0];
	expect_fault(&spec, "stages[0].steps[1]", "rise");
	fixture_spec(&spec);
	spec.stages[1].steps[1] = 900000;
	expect_fault(&spec, "stages", "fra never reaches");
	fixture_spec(&spec);
	spec.stages[0].datacenters = (struct datacenter_set){0};
	expect_fault(&spec, "stages[0]", "datacenter");
	fixture_spec(&spec);
	spec.stages[1].step_count = 0;
	expect_fault(&spec, "stages[1]", "ramp");
	fixture_spec(&spec);
	spec.stages[1].max_duration_ms = 1;
	expect_fault(&spec, "stages[1]", "max_duration");
	fixture_spec(&spec);
	spec.guards[0].kind = GUARD_PROMQL;
	expect_fault(&spec, "guards[0]", "query");
	fixture_spec(&spec);
	spec.hit_ratio = 1;
	expect_fault(&spec, "hit_ratio", "1");
	fixture_spec(&spec);
	spec.stage_count = 0;
	expect_fault(&spec, "stages", "must be");
}

static void hit_ratio_is_a_number_or_a_query(void)
{
	static const struct {
		const char *json;
		const char *fault; // NULL: none
	} texts[] = {
		{"{\"hit_ratio\": \"0.95\"}", NULL},
		{"{\"hit_ratio\": {\"query\": \"h\"}, \"prometheus\": \"http://p:9090\"}", NULL},
		{"{\"hit_ratio\": {\"query\": \"h\"}}", "`prometheus` names no server"},
		{"{\"hit_ratio\": {}, \"prometheus\": \"http://p:9090\"}", "{query: 'PROMQL'}"},
		{"{\"hit_ratio\": {\"query\": \"h\", \"age\": 1}, \"prometheus\": \"http://p\"}",
			"is not known here"},
	};
	struct cutover_spec_error fault;
	static struct cutover_spec spec, again;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *object, *more = json_loads(texts[i].json, 0, NULL);

		fixture_spec(&spec);
		object = cutover_spec_write(&spec);
		json_object_update(object, more);
		size_t count = cutover_spec_read(object, &spec, &fault, 1);

		json_decref(more);
		json_decref(object);
		CU_ASSERT_EQUAL(count, texts[i].fault != NULL);
		if (count != 0)
			CU_ASSERT_PTR_NOT_NULL(strstr(fault.text, texts[i].fault));
	}
	// What a plan measured stays with the query, and is part of the plan.
	fixture_spec(&spec);
	snprintf(spec.hit_query, sizeof(spec.hit_query), "h");
	snprintf(spec.prometheus, sizeof(spec.prometheus), "http://p:9090");
	spec.hit_ratio = 0.953;
	spec.churn_surge = 0.9;
	json_t *object = cutover_spec_write(&spec);

	CU_ASSERT_EQUAL(cutover_spec_read(object, &again, &fault, 1), 0);
	json_decref(object);
	CU_ASSERT_DOUBLE_EQUAL(again.hit_ratio, 0.953, 0);
	CU_ASSERT_DOUBLE_EQUAL(again.churn_surge, 0.9, 0);
	CU_ASSERT_STRING_EQUAL(again.hit_query, "h");
	CU_ASSERT_EQUAL(cutover_plan_id(&again, 7), cutover_plan_id(&spec, 7));
	again.hit_ratio = 0.954;
	CU_ASSERT_NOT_EQUAL(cutover_plan_id(&again, 7), cutover_plan_id(&spec, 7));
}

static void datacenter_that_joins_belongs_to_all(void)
{
	struct cutover_spec spec;

	fixture_spec(&spec);
	int index = cutover_datacenter_add(&spec, "sin");

	CU_ASSERT_EQUAL(index, 3);
	CU_ASSERT_TRUE(datacenter_set_has(&spec.stages[1].datacenters, 3));
	CU_ASSERT_FALSE(datacenter_set_has(&spec.stages[0].datacenters, 3));
	CU_ASSERT_EQUAL(cutover_datacenter_add(&spec, "sin"), -EEXIST);
	CU_ASSERT_EQUAL(cutover_datacenter_add(&spec, ""), -ENAMETOOLONG);
	for (unsigned i = spec.datacenter_count; i < CUTOVER_DATACENTERS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "dc%u", i);
		CU_ASSERT_EQUAL(cutover_datacenter_add(&spec, name), (int)i);
	}
	CU_ASSERT_EQUAL(cutover_datacenter_add(&spec, "one-more"), -ENOSPC);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(share_is_read_down_to_a_ten_thousandth_of_a_percent),
	CASE(share_text_reads_back),
	CASE(ramp_ends_exactly_at_its_end),
	CASE(threshold_is_the_first_line_that_matches),
	CASE(good_specification_has_no_fault),
	CASE(each_fault_is_named_with_its_place),
	CASE(hit_ratio_is_a_number_or_a_query),
	CASE(datacenter_that_joins_belongs_to_all),
};

int main(void)
{
	return SUITE_RUN("cutover spec", cases);
}
