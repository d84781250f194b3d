// SPDX-License-Identifier: Apache-2.0
#include "control/config/edit.h"

#include "control/config/arena.h"
#include "control/config/check.h"
#include "control/config/reader.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <string.h>

static const char text[] = "pools:\n"
			   "  - {name: web, ring: {version: v1}, backends: ["
			   "{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]}\n";

static struct config_pools *pools_make(void)
{
	struct config_pools *pools = NULL;
	struct config_report report;

	config_report_init(&report, "text", text, strlen(text));
	CU_ASSERT_EQUAL_FATAL(config_pools_read(&report, &pools), 0);
	config_report_free(&report);
	return pools;
}

static void added_backends_are_copied_and_found(void)
{
	struct config_pools *pools = pools_make();
	char name[] = "c0";
	struct config_backend backend = {.name = name, .weight = 3, .state = CONFIG_BACKEND_UP};
	const struct config_pool *web = config_pool_find(pools, "web");

	// Past several doublings of the array.
	for (char digit = '0'; digit <= '9'; digit++) {
		name[1] = digit;
		CU_ASSERT_EQUAL(config_backend_add(pools, "web", &backend), 0);
	}
	CU_ASSERT_EQUAL(config_backend_add(pools, "web", &backend), -EEXIST);
	CU_ASSERT_EQUAL(config_backend_add(pools, "wbe", &backend), -ENOENT);
	CU_ASSERT_EQUAL(web->backend_count, 12);
	CU_ASSERT_STRING_EQUAL(web->backends[2].name, "c0");
	CU_ASSERT_STRING_EQUAL(web->backends[11].name, "c9");
	config_pools_free(pools);
}

static void only_named_parts_change(void)
{
	struct config_pools *pools = pools_make();
	struct config_backend change = {.name = "b", .weight = 9, .state = CONFIG_BACKEND_DRAIN};
	const struct config_backend *b = config_backend_find(config_pool_find(pools, "web"), "b");
	const char *missing = NULL;

	CU_ASSERT_EQUAL(config_backend_edit(pools, "web", CONFIG_EDIT_STATE, &change, &missing), 0);
	CU_ASSERT_EQUAL(b->state, CONFIG_BACKEND_DRAIN);
	CU_ASSERT_EQUAL(b->weight, 1);
	CU_ASSERT_EQUAL(
		config_backend_edit(pools, "web", CONFIG_EDIT_WEIGHT, &change, &missing), 0);
	CU_ASSERT_EQUAL(b->weight, 9);
	change.name = "x";
	CU_ASSERT_EQUAL(config_backend_edit(pools, "web", 0, &change, &missing), -ENOENT);
	CU_ASSERT_STRING_EQUAL(missing, "backend");
	CU_ASSERT_EQUAL(config_backend_edit(pools, "wbe", 0, &change, &missing), -ENOENT);
	CU_ASSERT_STRING_EQUAL(missing, "pool");
	config_pools_free(pools);
}

static void removed_backend_is_gone_and_others_stay(void)
{
	struct config_pools *pools = pools_make();
	const struct config_pool *web = config_pool_find(pools, "web");
	const char *missing = NULL;

	CU_ASSERT_EQUAL(config_backend_remove(pools, "web", "a", &missing), 0);
	CU_ASSERT_EQUAL(web->backend_count, 1);
	CU_ASSERT_STRING_EQUAL(web->backends[0].name, "b");
	CU_ASSERT_EQUAL(config_backend_remove(pools, "web", "a", &missing), -ENOENT);
	CU_ASSERT_STRING_EQUAL(missing, "backend");
	config_pools_free(pools);
}

static void copies_can_be_edited_without_touching_the_original(void)
{
	struct config_pools *pools = pools_make();
	struct config_pools *copy = config_pools_copy(pools);
	struct config_backend backend = {.name = "c", .weight = 1};
	const char *missing = NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	CU_ASSERT_EQUAL(config_backend_add(copy, "web", &backend), 0);
	CU_ASSERT_EQUAL(config_backend_remove(copy, "web", "a", &missing), 0);
	CU_ASSERT_EQUAL(config_pool_find(pools, "web")->backend_count, 2);
	CU_ASSERT_STRING_EQUAL(config_pool_find(pools, "web")->backends[0].name, "a");
	config_pools_free(copy);
	config_pools_free(pools);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"added_backends_are_copied_and_found", added_backends_are_copied_and_found},
		{"only_named_parts_change", only_named_parts_change},
		{"removed_backend_is_gone_and_others_stay",
			removed_backend_is_gone_and_others_stay},
		{"copies_can_be_edited_without_touching_the_original",
			copies_can_be_edited_without_touching_the_original},
	};

	return SUITE_RUN("config_edit", cases);
}
