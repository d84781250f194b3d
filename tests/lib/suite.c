// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/suite.h"

#include "common/hash.h"

#include <CUnit/TestRun.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void print_failures(CU_pFailureRecord from)
{
	for (CU_pFailureRecord failure = from; failure != NULL; failure = failure->pNext) {
		printf("# %s:%u - %s\n", failure->strFileName ? failure->strFileName : "?",
			failure->uiLineNumber, failure->strCondition ? failure->strCondition : "?");
	}
}

static unsigned run_case(CU_pSuite suite, CU_pTest test, unsigned number)
{
	CU_run_test(suite, test);
	unsigned failures = CU_get_number_of_failures();

	printf("%s %u - %s\n", failures ? "not ok" : "ok", number, test->pName);
	print_failures(CU_get_failure_list());
	fflush(stdout);
	return failures != 0;
}

int suite_run(const char *name, const struct test_case *cases, unsigned count)
{
	unsigned failed = 0;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite(name, NULL, NULL);

	if (suite == NULL || count == 0)
		return 1;
	printf("1..%u\n", count);
	for (unsigned i = 0; i < count; i++) {
		CU_pTest test = CU_add_test(suite, cases[i].name, cases[i].run);

		if (test == NULL) {
			printf("not ok %u - %s # could not be added\n", i + 1, cases[i].name);
			failed++;
			continue;
		}
		failed += run_case(suite, test, i + 1);
	}
	CU_cleanup_registry();
	return failed ? 1 : 0;
}

uint64_t suite_seed(void)
{
	static uint64_t seed;

	if (seed == 0) {
		const char *text = getenv("RINGWAY_TEST_SEED");
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		seed = text ? strtoull(text, NULL, 0)
			    : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
		printf("# RINGWAY_TEST_SEED=%" PRIu64 "\n", seed);
	}
	return seed;
}

uint64_t suite_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return hash_splitmix64(*state);
}
