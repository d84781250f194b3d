// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/json.h"
#include "control/cutover/spec_json.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void every_state_reads_back_as_it_was_written(void)
{
	for (unsigned s = 0; s < CUTOVER_STATE_COUNT; s++) {
		struct cutover before, after;
		char error[CUTOVER_REASON_BYTES] = "";

		fixture_reach(&before, (enum cutover_state)s);
		before.spec.hit_ratio = 0.95;
		before.overrides[0] = (struct cutover_override){
			true, 2, 77, FIXTURE_START_MS + 1, "because \"of\" it"};
		snprintf(before.lock.owner, sizeof(before.lock.owner), "ann");
		before.lock.expires_ms = FIXTURE_START_MS;
		before.datacenters[1].move_established = true;
		json_t *first = cutover_write(&before);

		CU_ASSERT_PTR_NOT_NULL_FATAL(first);
		CU_ASSERT_EQUAL_FATAL(cutover_read(first, &after, error), 0);
		CU_ASSERT_EQUAL(after.state, s);
		CU_ASSERT_EQUAL(after.shares_revision, before.shares_revision);
		CU_ASSERT_EQUAL(
			memcmp(after.datacenters, before.datacenters, sizeof(after.datacenters)),
			0);
		CU_ASSERT_EQUAL(cutover_plan_id(&after.spec, after.base_generation),
			cutover_plan_id(&before.spec, before.base_generation));
		json_t *second = cutover_write(&after);

		CU_ASSERT_TRUE(json_equal(first, second));
		json_decref(first);
		json_decref(second);
	}
}

// A node of before wrote it.
static void document_without_a_word_on_established_flows_leaves_them(void)
{
	struct cutover before, after;
	char error[CUTOVER_REASON_BYTES] = "";
	json_t *datacenter;
	size_t i;

	fixture_reach(&before, CUTOVER_ROLLED_BACK);
	before.datacenters[1].move_established = true;
	json_t *object = cutover_write(&before);

	json_array_foreach (json_object_get(object, "datacenters"), i, datacenter)
		json_object_del(datacenter, "move_established");
	CU_ASSERT_EQUAL_FATAL(cutover_read(object, &after, error), 0);
	for (i = 0; i < before.spec.datacenter_count; i++)
		CU_ASSERT_FALSE(after.datacenters[i].move_established);
	json_decref(object);
}

// Takes each key out of the document, and gives each a wrong kind: read says so, and never crashes.
static void document_with_a_part_missing_is_refused(void)
{
	struct cutover cutover, ret;
	char error[CUTOVER_REASON_BYTES];
	const char *key;
	json_t *value;

	fixture_reach(&cutover, CUTOVER_SOAKING);
	json_t *whole = cutover_write(&cutover);

	json_object_foreach (whole, key, value) {
		json_t *cut = json_deep_copy(whole), *odd = json_deep_copy(whole);

		json_object_del(cut, key);
		error[0] = '\0';
		CU_ASSERT_EQUAL(
			cutover_read(cut, &ret, error), strcmp(key, "pool") == 0 ? 0 : -EINVAL);
		CU_ASSERT_TRUE(error[0] != '\0' || strcmp(key, "pool") == 0);
		json_object_set_new(odd, key, json_null());
		CU_ASSERT_EQUAL(
			cutover_read(odd, &ret, error), strcmp(key, "pool") == 0 ? 0 : -EINVAL);
		json_decref(cut);
		json_decref(odd);
	}
	json_object_set_new(whole, "schema_version", json_integer(2));
	CU_ASSERT_EQUAL(cutover_read(whole, &ret, error), -ENOTSUP);
	json_decref(whole);
	CU_ASSERT_EQUAL(cutover_read(NULL, &ret, error), -EINVAL);
}

static size_t read_text(
	const char *text, struct cutover_spec *ret, struct cutover_spec_error *errors, size_t max)
{
	json_t *object = json_loads(text, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	size_t count = cutover_spec_read(object, ret, errors, max);

	json_decref(object);
	return count;
}

static void specification_of_an_operator_is_read(void)
{
	static const char text[] =
		"{\"pool\":\"web\",\"to\":{\"version\":\"v2\",\"points\":\"16\"},\"hit_ratio\":\"0.95\","
		"\"refill\":\"22m\",\"prometheus\":\"http://p:9090\",\"stages\":[{\"datacenters\":[\"ams\",\"waw\"],\"steps\":[\"1%\","
		"\"0.5\",10],\"require\":\"manual\",\"max_step_surge\":\"25%\"},{\"datacenters\":\"all\","
		"\"ramp\":{\"rate\":\"1.4%\"},\"min_soak\":\"90s\"}],\"guards\":[{\"kind\":\"early_abort\","
		"\"dry_run\":\"true\"},{\"name\":\"origin\",\"query\":\"sum(x)\",\"pause\":\"1.25\"}]}";
	struct cutover_spec spec;
	struct cutover_spec_error errors[8];

	CU_ASSERT_EQUAL_FATAL(read_text(text, &spec, errors, 8), 0);
	CU_ASSERT_EQUAL(spec.to.version, RING_V2);
	CU_ASSERT_EQUAL(spec.to.points, 16);
	CU_ASSERT_EQUAL(spec.datacenter_count, 2);
	CU_ASSERT_EQUAL(spec.stages[0].steps[1], 5000);
	CU_ASSERT_EQUAL(spec.stages[0].steps[2], 100000);
	CU_ASSERT_EQUAL(spec.stages[0].min_soak_ms, 22 * 60000);
	CU_ASSERT_DOUBLE_EQUAL(spec.stages[0].max_step_surge, 0.25, 0);
	CU_ASSERT_TRUE(datacenter_set_has(&spec.stages[1].datacenters, 1));
	CU_ASSERT_EQUAL(spec.stages[1].ramp_to, GATE_SHARE_ALL);
	CU_ASSERT_EQUAL(spec.guard_count, GUARD_KIND_COUNT);
	CU_ASSERT_TRUE(spec.guards[GUARD_EARLY_ABORT].dry_run);
	CU_ASSERT_DOUBLE_EQUAL(spec.guards[GUARD_PROMQL].pause_at, 1.25, 0);
	// 0.5 % after 1 % is what the check is for.
	CU_ASSERT_EQUAL(cutover_spec_check(&spec, errors, 8), 1);
	CU_ASSERT_STRING_EQUAL(errors[0].where, "stages[0].steps[1]");
}

static void all_faults_come_at_once_each_with_its_place(void)
{
	static const char text[] =
		"{\"pool\":7.5,\"speed\":1,\"to\":{\"version\":\"v4\"},\"salt\":\"-1\",\"stages\":["
		"{\"datacenters\":\"some\",\"steps\":[\"200%\"]},"
		"{\"datacenters\":[\"a\"],\"min_soak\":\"soon\"}],"
		"\"guards\":[{\"kind\":\"magic\"},{\"kind\":\"share\",\"dry_run\":\"maybe\"}]}";
	static const char *const places[] = {"speed", "to.version", "salt", "stages[0].datacenters",
		"stages[0].steps", "stages[1]", "stages[1].min_soak", "guards[0].kind",
		"guards[1].dry_run"};
	struct cutover_spec spec;
	struct cutover_spec_error errors[32];
	size_t count = read_text(text, &spec, errors, 32);

	CU_ASSERT_EQUAL(count, sizeof(places) / sizeof(places[0]));
	for (size_t i = 0; i < count && i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(errors[i].where, places[i]) != 0)
			printf("# %s: %s\n", errors[i].where, errors[i].text);
		CU_ASSERT_STRING_EQUAL(errors[i].where, places[i]);
	}
}

#define SEED "00112233445566778899aabbccddeeff"

// A specification that moves to `to`.
static size_t read_to(const char *to, struct cutover_spec *ret, struct cutover_spec_error *errors)
{
	char text[512];

	snprintf(text, sizeof(text),
		"{\"pool\":\"web\",\"to\":%s,\"stages\":[{\"datacenters\":[\"a\"],"
		"\"steps\":[\"100%%\"]}]}",
		to);
	return read_text(text, ret, errors, 4);
}

static void hash_seed_is_digits_or_the_fleets_or_left_out(void)
{
	static const char *const bad[] = {"{\"hash_seed\":\"0011\"}", "{\"hash_seed\":7}",
		"{\"hash_seed\":\"00000000000000000000000000000000\"}",
		"{\"hash_seed\":\"g0112233445566778899aabbccddeeff\"}", "{\"hash_seed\":\"own\"}",
		"{\"seed_mark\":\"1\"}"};
	struct cutover_spec spec;
	struct cutover_spec_error errors[4];

	CU_ASSERT_EQUAL(read_to("{\"points\":32}", &spec, errors), 0);
	CU_ASSERT_TRUE(spec.to.keeps_seed);
	CU_ASSERT_EQUAL(spec.to.version, 0); // the pool's
	CU_ASSERT_EQUAL(read_to("{\"hash_seed\":\"fleet\"}", &spec, errors), 0);
	CU_ASSERT_FALSE(spec.to.keeps_seed);
	CU_ASSERT_EQUAL(spec.to.seed_mark, 0);
	CU_ASSERT_EQUAL(read_to("{\"hash_seed\":\"" SEED "\"}", &spec, errors), 0);
	CU_ASSERT_FALSE(spec.to.keeps_seed);
	CU_ASSERT_EQUAL(spec.to.hash_seed[1], 0x11);
	CU_ASSERT_EQUAL(spec.to.seed_mark, hash_seed_mark(spec.to.hash_seed));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(read_to(bad[i], &spec, errors), 1);
		CU_ASSERT_STRING_EQUAL(errors[0].where, i < 5 ? "to.hash_seed" : "to.seed_mark");
	}
}

// What goes to the store and to people has the mark alone; it is the same plan all the same.
static void hash_seed_is_not_written(void)
{
	struct cutover_spec spec, other, again;
	struct cutover_spec_error errors[4];

	CU_ASSERT_EQUAL(read_to("{\"hash_seed\":\"" SEED "\"}", &spec, errors), 0);
	spec.to.version = spec.from.version = RING_V2;
	json_t *object = cutover_spec_write(&spec);
	char *text = json_dumps(object, 0);

	CU_ASSERT_PTR_NULL(strstr(text, "hash_seed"));
	CU_ASSERT_PTR_NULL(strstr(text, SEED));
	CU_ASSERT_EQUAL(cutover_spec_read(object, &again, errors, 4), 0);
	CU_ASSERT_EQUAL(again.to.seed_mark, spec.to.seed_mark);
	CU_ASSERT_FALSE(again.to.keeps_seed);
	CU_ASSERT_FALSE(again.from.keeps_seed);
	CU_ASSERT_EQUAL(cutover_plan_id(&again, 7), cutover_plan_id(&spec, 7));
	other = spec;
	other.to.seed_mark++;
	CU_ASSERT_NOT_EQUAL(cutover_plan_id(&other, 7), cutover_plan_id(&spec, 7));
	free(text);
	json_decref(object);
}

static void times_read_back(void)
{
	static const uint64_t times[] = {
		0, 1, 999, 1000, 90000, 60000, 3600000, 86400000, 90061001};
	uint64_t ms;

	for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		char text[CUTOVER_TIME_TEXT_BYTES];

		cutover_time_format(times[i], text);
		CU_ASSERT_EQUAL(cutover_time_parse(text, &ms), 0);
		CU_ASSERT_EQUAL(ms, times[i]);
	}
	CU_ASSERT_EQUAL(cutover_time_parse("-1s", &ms), -EINVAL);
	CU_ASSERT_EQUAL(cutover_time_parse("1 s", &ms), -EINVAL);
	CU_ASSERT_EQUAL(cutover_time_parse("", &ms), -EINVAL);
	CU_ASSERT_EQUAL(cutover_time_parse("99999999999999999999h", &ms), -EINVAL);
	CU_ASSERT_EQUAL(cutover_time_parse("18446744073709551615d", &ms), -EINVAL);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(every_state_reads_back_as_it_was_written),
	CASE(document_without_a_word_on_established_flows_leaves_them),
	CASE(document_with_a_part_missing_is_refused),
	CASE(specification_of_an_operator_is_read),
	CASE(all_faults_come_at_once_each_with_its_place),
	CASE(hash_seed_is_digits_or_the_fleets_or_left_out),
	CASE(hash_seed_is_not_written),
	CASE(times_read_back),
};

int main(void)
{
	return SUITE_RUN("cutover json", cases);
}
