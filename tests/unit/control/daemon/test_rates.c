// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/rates.h"
#include "tests/lib/suite.h"

#include <math.h>

#define SECOND UINT64_C(1000000000)

static struct rates *rates;
static uint64_t now_ns, flows;

static void begin(void)
{
	rates = rates_create();
	now_ns = 5 * SECOND;
	flows = 1000;
	rates_take(rates, 3, flows, 1, now_ns);
}

static void seconds_of(unsigned count, uint64_t per_second)
{
	for (unsigned i = 0; i < count; i++) {
		now_ns += SECOND;
		flows += per_second;
		rates_take(rates, 3, flows, 1, now_ns);
	}
}

static void young_rate_is_the_mean_and_an_old_one_forgets(void)
{
	begin();
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 0, 0);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 7000), 0, 0);
	seconds_of(1, 90);
	seconds_of(2, 30);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 50, 1e-9);
	seconds_of(1000, 400);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 400, 0.01);
	seconds_of(RATES_MEMORY_S, 0);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 400 * exp(-1), 0.1);
	rates_free(rates);
}

static void counters_that_begin_anew_begin_a_new_rate(void)
{
	begin();
	seconds_of(10, 100);
	now_ns += SECOND;
	rates_take(rates, 3, flows + 1000000, 2, now_ns); // another dataplane
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 0, 0);
	rates_take(rates, 3, flows + 1000007, 2, now_ns + SECOND);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 7, 1e-9);
	rates_take(rates, 3, 5, 2, now_ns + 2 * SECOND); // the id is another pool's
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 0, 0);
	rates_free(rates);
}

static void pools_have_rates_of_their_own(void)
{
	begin();
	rates_take(rates, 900, 0, 1, now_ns);
	rates_take(rates, 900, 50, 1, now_ns + SECOND);
	seconds_of(1, 20);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 900), 50, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(rates_of(rates, 3), 20, 1e-9);
	rates_free(rates);
}

static const struct test_case cases[] = {
	SUITE_CASE(young_rate_is_the_mean_and_an_old_one_forgets),
	SUITE_CASE(counters_that_begin_anew_begin_a_new_rate),
	SUITE_CASE(pools_have_rates_of_their_own),
};

int main(void)
{
	return SUITE_RUN("rates", cases);
}
