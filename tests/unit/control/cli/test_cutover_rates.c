// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cutover_rates.h"

#include "tests/lib/suite.h"

#include <math.h>
#include <stdlib.h>

// An answer of cutover.show with one datacenter. flows: of the old and the new ring; shadow: same, different.
static json_t *answer(const char *counters_of, int time_ms, int share, int old, int new)
{
	return json_pack("{s:[{s:s, s:{s:s, s:i, s:i, s:{s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i, "
			 "s:i}, s:i, s:i}}]}",
		"datacenters_now", "name", "ams01", "live", "counters_of", counters_of, "time_ms",
		time_ms, "intended_ppm", share, "old", "flows", old, "packets", 10 * old, "drops",
		0, "aborts", old / 10, "new", "flows", new, "packets", 10 * new, "drops", new / 5,
		"aborts", new / 5, "shadow_same", old / 100, "shadow_different", old / 25);
}

static const json_t *row_of(const json_t *cutover)
{
	return json_array_get(json_object_get(cutover, "datacenters_now"), 0);
}

static double rate(const json_t *cutover, const char *ring, const char *key)
{
	const json_t *rates = json_object_get(row_of(cutover), "rates");
	const json_t *value = json_object_get(json_object_get(rates, ring), key);

	return value ? json_number_value(value) : NAN;
}

static double ratio(const json_t *cutover, const char *key)
{
	const json_t *value = json_object_get(json_object_get(row_of(cutover), "ratios"), key);

	return value ? json_number_value(value) : NAN;
}

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9)

static void two_statements_make_rates_and_ratios(void)
{
	json_t *memory = json_object();
	json_t *one = answer("a", 1000, 250000, 1000, 0);
	json_t *two = answer("a", 3000, 250000, 1750, 250);
	json_t *three = answer("a", 5000, 250000, 2500, 500);

	cutover_rates_add(memory, one);
	CU_ASSERT(json_is_null(json_object_get(row_of(one), "rates")));
	CU_ASSERT(json_is_null(json_object_get(row_of(one), "ratios")));
	cutover_rates_add(memory, two);
	CU_ASSERT(NEAR(rate(two, "old", "flows"), 375));
	CU_ASSERT(NEAR(rate(two, "new", "flows"), 125));
	CU_ASSERT(NEAR(rate(two, "new", "packets"), 1250));
	CU_ASSERT(NEAR(rate(two, "new", "drops"), 25));
	CU_ASSERT(NEAR(ratio(two, "new_share"), 0.25));
	CU_ASSERT(NEAR(ratio(two, "flows"), 1000));
	CU_ASSERT(NEAR(ratio(two, "new_aborts_ratio"), 0.2));
	CU_ASSERT(NEAR(ratio(two, "old_aborts_ratio"), 0.1));
	// Rates are of the last statements, ratios of all since the beginning.
	cutover_rates_add(memory, three);
	CU_ASSERT(NEAR(rate(three, "old", "flows"), 375));
	CU_ASSERT(NEAR(ratio(three, "flows"), 2000));
	CU_ASSERT(NEAR(ratio(three, "shadow_flows"), 75));
	CU_ASSERT(NEAR(ratio(three, "shadow_different_share"), 0.8));
	json_decref(one);
	json_decref(two);
	json_decref(three);
	json_decref(memory);
}

static void a_statement_that_is_not_new_keeps_the_rates(void)
{
	json_t *memory = json_object();
	json_t *one = answer("a", 1000, 250000, 1000, 0);
	json_t *two = answer("a", 3000, 250000, 1750, 250);
	json_t *same = answer("a", 3000, 250000, 1750, 250);

	cutover_rates_add(memory, one);
	cutover_rates_add(memory, two);
	cutover_rates_add(memory, same);
	CU_ASSERT(NEAR(rate(same, "old", "flows"), 375));
	CU_ASSERT(NEAR(ratio(same, "flows"), 1000));
	json_decref(one);
	json_decref(two);
	json_decref(same);
	json_decref(memory);
}

static void another_set_of_nodes_or_starts_is_not_compared(void)
{
	json_t *memory = json_object();
	json_t *one = answer("a", 1000, 250000, 1000, 900);
	json_t *two = answer("b", 3000, 250000, 1750, 1250);
	json_t *three = answer("b", 4000, 250000, 1850, 1350);

	cutover_rates_add(memory, one);
	cutover_rates_add(memory, two);
	CU_ASSERT(json_is_null(json_object_get(row_of(two), "rates")));
	CU_ASSERT(json_is_null(json_object_get(row_of(two), "ratios")));
	cutover_rates_add(memory, three);
	CU_ASSERT(NEAR(rate(three, "old", "flows"), 100));
	json_decref(one);
	json_decref(two);
	json_decref(three);
	json_decref(memory);
}

static void flows_of_two_shares_are_not_mixed(void)
{
	json_t *memory = json_object();
	json_t *one = answer("a", 1000, 10000, 1000, 10);
	json_t *two = answer("a", 3000, 500000, 1100, 20);
	json_t *three = answer("a", 5000, 500000, 1150, 70);

	cutover_rates_add(memory, one);
	cutover_rates_add(memory, two);
	CU_ASSERT(json_is_null(json_object_get(row_of(two), "ratios")));
	CU_ASSERT(NEAR(rate(two, "old", "flows"), 50));
	cutover_rates_add(memory, three);
	CU_ASSERT(NEAR(ratio(three, "new_share"), 0.5));
	CU_ASSERT(NEAR(ratio(three, "flows"), 100));
	json_decref(one);
	json_decref(two);
	json_decref(three);
	json_decref(memory);
}

static void silence_is_null(void)
{
	json_t *memory = json_object();
	json_t *cutover = json_pack("{s:[{s:s, s:n}]}", "datacenters_now", "name", "ams01", "live");

	cutover_rates_add(memory, cutover);
	CU_ASSERT(json_is_null(json_object_get(row_of(cutover), "rates")));
	CU_ASSERT(json_is_null(json_object_get(row_of(cutover), "ratios")));
	CU_ASSERT_EQUAL(json_object_size(memory), 0);
	json_decref(cutover);
	json_decref(memory);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(two_statements_make_rates_and_ratios),
	CASE(a_statement_that_is_not_new_keeps_the_rates),
	CASE(another_set_of_nodes_or_starts_is_not_compared),
	CASE(flows_of_two_shares_are_not_mixed),
	CASE(silence_is_null),
};

int main(void)
{
	return SUITE_RUN("cutover rates", cases);
}
