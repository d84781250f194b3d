// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/guard.h"
#include "tests/lib/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct guard_config config;
static struct guard_memory memory;

static void begin(enum guard_kind kind)
{
	guard_default(kind, &config);
	guard_reset(&memory);
}

static enum guard_action arms(
	uint64_t flows_old, uint64_t bad_old, uint64_t flows_new, uint64_t bad_new)
{
	struct guard_sample sample = {
		.available = true, .before = {flows_old, bad_old}, .after = {flows_new, bad_new}};

	return guard_judge(&config, &sample, &memory);
}

static enum guard_action value(double figure, double reference)
{
	struct guard_sample sample = {.available = true, .value = figure, .reference = reference};

	return guard_judge(&config, &sample, &memory);
}

static enum guard_action nothing(void)
{
	struct guard_sample sample = {.available = false};

	return guard_judge(&config, &sample, &memory);
}

static void missing_data_never_passes_whatever_the_guard(void)
{
	for (unsigned i = 0; i < GUARD_KIND_COUNT; i++) {
		begin((enum guard_kind)i);
		config.dry_run = false;
		CU_ASSERT_EQUAL(nothing(), GUARD_WAIT);
		CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
		CU_ASSERT_EQUAL(nothing(), GUARD_PAUSE);
		CU_ASSERT_EQUAL(nothing(), GUARD_PAUSE);
	}
}

static void sample_size_is_the_textbook_one(void)
{
	CU_ASSERT_DOUBLE_EQUAL(guard_sample_min(0.001, 0.0005), 63936, 0.5);
	CU_ASSERT_DOUBLE_EQUAL(guard_sample_min(0, 0.001), 15984, 0.5);
	CU_ASSERT_DOUBLE_EQUAL(guard_sample_min(0.5, 0.1), 400, 0.001);
}

static void early_aborts_trip_in_three_windows_of_three(void)
{
	begin(GUARD_EARLY_ABORT);
	CU_ASSERT_EQUAL(arms(100000, 100, 100000, 400), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
	CU_ASSERT_EQUAL(arms(100000, 100, 100000, 400), GUARD_WAIT);
	CU_ASSERT_EQUAL(arms(100000, 100, 100000, 100), GUARD_GO); // one good window starts over
	CU_ASSERT_EQUAL(arms(100000, 100, 100000, 400), GUARD_WAIT);
	CU_ASSERT_EQUAL(arms(100000, 100, 100000, 400), GUARD_WAIT);
	CU_ASSERT_EQUAL(arms(100000, 100, 100000, 400), GUARD_ROLLBACK);
}

static void early_aborts_below_the_absolute_excess_pass(void)
{
	begin(GUARD_EARLY_ABORT);
	// Three times as many, but only 0.02 % of the flows.
	CU_ASSERT_EQUAL(arms(1000000, 100, 1000000, 300), GUARD_GO);
	// 0.2 % more of the flows, but only 1.2 times as many.
	CU_ASSERT_EQUAL(arms(1000000, 10000, 1000000, 12000), GUARD_GO);
}

static void silence_takes_its_time_to_be_an_abort(void)
{
	struct guard_sample sample = {.available = true,
		.young = true,
		.before = {.flows = 100000, .events = 100},
		.after = {.flows = 100000, .events = 100}};

	begin(GUARD_EARLY_ABORT);
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	sample.after.events = 400; // what is bad already does not wait
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
}

static void few_flows_are_inconclusive_unless_the_difference_is_gross(void)
{
	begin(GUARD_EARLY_ABORT);
	CU_ASSERT_EQUAL(arms(1000, 1, 1000, 3), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	CU_ASSERT_EQUAL(arms(1000, 0, 1000, 0), GUARD_WAIT); // nothing bad is no proof yet
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	CU_ASSERT_EQUAL(arms(900, 1, 100, 50), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
	CU_ASSERT_EQUAL(arms(100, 1, 0, 0), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
}

static void drops_on_the_new_ring_take_it_back_in_ten_seconds(void)
{
	begin(GUARD_NEW_DROPS);
	CU_ASSERT_EQUAL(arms(10, 0, 10, 0), GUARD_GO);
	CU_ASSERT_EQUAL(arms(10, 0, 10, 1), GUARD_WAIT);
	CU_ASSERT_EQUAL(arms(10, 0, 10, 1), GUARD_ROLLBACK);
	CU_ASSERT_TRUE(config.failures * config.window_ms <= 10000);
}

static void share_is_held_against_chance(void)
{
	struct guard_sample sample = {.available = true, .share = 0.1};

	begin(GUARD_SHARE);
	sample.before.flows = 9000;
	sample.after.flows = 1000 + 4 * 30 - 1; // sigma of 10 000 flows at 10 % is 30 flows
	sample.before.flows = 10000 - sample.after.flows;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_GO);
	sample.after.flows = 1000 + 4 * 30 + 1;
	sample.before.flows = 10000 - sample.after.flows;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_PAUSE);
	sample.before.flows = 100;
	sample.after.flows = 0;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	sample.share = 0; // one flow on the new ring at 0 % is one too many
	sample.after.flows = 1;
	guard_judge(&config, &sample, &memory);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
}

static enum guard_action load(double flows, double most)
{
	struct guard_sample sample = {.available = true,
		.value = flows,
		.reference = most,
		.backend = "b7",
		.node = "lb-1"};

	return guard_judge(&config, &sample, &memory);
}

static void load_is_held_against_the_rings(void)
{
	begin(GUARD_LOAD);
	CU_ASSERT_EQUAL(load(1190, 1000), GUARD_GO);
	CU_ASSERT_EQUAL(load(1210, 1000), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
	CU_ASSERT_STRING_EQUAL(
		memory.text, "b7 got 1210 new flows on lb-1; its rings and chance explain 1000");
	CU_ASSERT_EQUAL(load(1210, 1000), GUARD_WAIT);
	CU_ASSERT_EQUAL(load(1210, 1000), GUARD_PAUSE);
}

static void promql_has_two_thresholds(void)
{
	begin(GUARD_PROMQL);
	config.pause_at = 1.25;
	config.rollback_at = 1.5;
	config.failures = 1;
	CU_ASSERT_EQUAL(value(1.2, 0), GUARD_GO);
	CU_ASSERT_EQUAL(value(1.3, 0), GUARD_PAUSE);
	CU_ASSERT_EQUAL(value(1.6, 0), GUARD_ROLLBACK);
	CU_ASSERT_EQUAL(value(NAN, 0), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
	config.direction = GUARD_BELOW;
	config.pause_at = 0.9;
	config.rollback_at = 0.5;
	CU_ASSERT_EQUAL(value(0.95, 0), GUARD_GO);
	CU_ASSERT_EQUAL(value(0.8, 0), GUARD_PAUSE);
	CU_ASSERT_EQUAL(value(0.4, 0), GUARD_ROLLBACK);
}

static void cold_cache_may_dip_but_must_recover(void)
{
	struct guard_sample sample = {.available = true, .reference = 60000, .since_ms = 60000};

	begin(GUARD_PROMQL);
	config.direction = GUARD_NOT_RECOVERING;
	config.pause_at = 0.001;
	config.failures = 1;
	sample.value = 0.70; // from 0.95: expected
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	sample.soaked_ms = 60000;
	sample.value = 0.80;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_GO);
	sample.soaked_ms = 120000;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_PAUSE);
	// A slope is over the time that passed, however many windows had no value in between.
	sample.value = 0.8012;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_GO);
	sample.value = 0.8024;
	sample.since_ms = 120000;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_PAUSE);
}

// Four verdicts of a guard that holds a figure against what it was while staged.
static void baseline_verdicts(enum guard_kind kind, double limit)
{
	struct guard_sample few = {.available = true, .few = true};

	begin(kind);
	config.dry_run = false;
	config.failures = 1;
	CU_ASSERT_EQUAL(value(100 * limit - 1, 100), GUARD_GO);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_PASSED);
	CU_ASSERT_EQUAL(value(100 * limit + 1, 100), GUARD_PAUSE);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
	// No baseline yet, or nothing to measure: neither a pass nor a reason to act.
	CU_ASSERT_EQUAL(guard_judge(&config, &few, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	CU_ASSERT_EQUAL(value(NAN, 100), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
	CU_ASSERT_EQUAL(value(100, 0), GUARD_PAUSE); // the second window without one
	CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
}

static void lookup_cost_passes_fails_waits_and_errs(void)
{
	baseline_verdicts(GUARD_LOOKUP_COST, 1.2);
}

static void memory_passes_fails_waits_and_errs(void)
{
	baseline_verdicts(GUARD_MEMORY, 1.25);
}

static void startup_passes_fails_waits_and_errs(void)
{
	baseline_verdicts(GUARD_STARTUP, 1.5);
}

static void guards_of_a_nodes_own_figures_are_dry_runs(void)
{
	static const enum guard_kind kinds[] = {GUARD_LOOKUP_COST, GUARD_MEMORY, GUARD_STARTUP};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		begin(kinds[i]);
		config.failures = 1;
		CU_ASSERT_EQUAL(value(1000, 100), GUARD_GO);
		CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
		CU_ASSERT_PTR_NOT_NULL(strstr(memory.text, "would say pause"));
	}
}

static void missing_nodes_pause_in_two_windows(void)
{
	struct guard_sample few = {.available = true, .few = true};

	begin(GUARD_MISSING);
	CU_ASSERT_EQUAL(value(0, 0), GUARD_GO);
	CU_ASSERT_EQUAL(value(1, 0), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
	CU_ASSERT_EQUAL(value(1, 0), GUARD_PAUSE);
	CU_ASSERT_STRING_EQUAL(memory.text, "1 nodes do not answer");
	CU_ASSERT_EQUAL(guard_judge(&config, &few, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_INCONCLUSIVE);
	CU_ASSERT_EQUAL(nothing(), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
	CU_ASSERT_EQUAL(nothing(), GUARD_PAUSE);
}

static void not_recovering_errs_without_a_value(void)
{
	struct guard_sample sample = {.available = true, .reference = 0, .value = NAN};

	begin(GUARD_PROMQL);
	config.direction = GUARD_NOT_RECOVERING;
	config.pause_at = 0.001;
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_WAIT);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
	sample = (struct guard_sample){.error = "Connection refused"};
	CU_ASSERT_EQUAL(guard_judge(&config, &sample, &memory), GUARD_PAUSE);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_ERROR);
	CU_ASSERT_STRING_EQUAL(memory.text, "no measurement: Connection refused");
}

static void dry_run_says_what_it_would_do_and_does_nothing(void)
{
	begin(GUARD_NEW_DROPS);
	config.dry_run = true;
	arms(10, 0, 10, 5);
	CU_ASSERT_EQUAL(arms(10, 0, 10, 5), GUARD_GO);
	CU_ASSERT_EQUAL(memory.verdict, GUARD_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(memory.text, "rollback"));
}

static void defaults_cover_every_built_in_guard(void)
{
	struct guard_config list[GUARD_KIND_COUNT];
	enum guard_kind kind;
	uint32_t count = guard_defaults(list);

	CU_ASSERT_EQUAL(count, GUARD_KIND_COUNT - 1);
	for (uint32_t i = 0; i < count; i++) {
		CU_ASSERT_TRUE(guard_kind_find(list[i].name, &kind));
		CU_ASSERT_EQUAL(kind, list[i].kind);
		CU_ASSERT_FALSE(isnan(list[i].pause_at) && isnan(list[i].rollback_at));
		CU_ASSERT_TRUE(list[i].failures > 0 && list[i].errors > 0 && list[i].window_ms > 0);
	}
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(missing_data_never_passes_whatever_the_guard),
	CASE(sample_size_is_the_textbook_one),
	CASE(early_aborts_trip_in_three_windows_of_three),
	CASE(silence_takes_its_time_to_be_an_abort),
	CASE(early_aborts_below_the_absolute_excess_pass),
	CASE(few_flows_are_inconclusive_unless_the_difference_is_gross),
	CASE(drops_on_the_new_ring_take_it_back_in_ten_seconds),
	CASE(share_is_held_against_chance),
	CASE(load_is_held_against_the_rings),
	CASE(promql_has_two_thresholds),
	CASE(cold_cache_may_dip_but_must_recover),
	CASE(lookup_cost_passes_fails_waits_and_errs),
	CASE(memory_passes_fails_waits_and_errs),
	CASE(startup_passes_fails_waits_and_errs),
	CASE(guards_of_a_nodes_own_figures_are_dry_runs),
	CASE(missing_nodes_pause_in_two_windows),
	CASE(not_recovering_errs_without_a_value),
	CASE(dry_run_says_what_it_would_do_and_does_nothing),
	CASE(defaults_cover_every_built_in_guard),
};

int main(void)
{
	return SUITE_RUN("cutover guard", cases);
}
