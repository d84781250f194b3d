// SPDX-License-Identifier: Apache-2.0
#include "control/config/diff.h"

#include "control/config/reader.h"
#include "tests/lib/suite.h"

#include <string.h>

static const char before_text[] =
	"pools:\n"
	"  - {name: web, ring: {version: v1}, backends: ["
	"{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2, tags: [x]},"
	" {name: c, address: 10.0.0.3}]}\n"
	"services:\n"
	"  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web, ports: [80]}\n";

static struct config_pools *pools_of(const char *text)
{
	struct config_pools *pools = NULL;
	struct config_report report;

	config_report_init(&report, "text", text, strlen(text));
	CU_ASSERT_EQUAL_FATAL(config_pools_read(&report, &pools), 0);
	config_report_free(&report);
	return pools;
}

static struct config_diff *diff_to(const char *text)
{
	struct config_pools *before = pools_of(before_text);
	struct config_pools *after = pools_of(text);
	struct config_diff *diff = config_pools_diff(before, after);

	CU_ASSERT_PTR_NOT_NULL_FATAL(diff);
	config_pools_free(before);
	config_pools_free(after);
	return diff;
}

static void order_and_spelling_are_no_difference(void)
{
	struct config_diff *diff = diff_to(
		"services:\n"
		"  - {protocol: tcp, ports: [80], name: s, address: 203.0.113.1/32, pool: web}\n"
		"pools:\n"
		"  - {ring: {version: v1, points: 160}, name: web, backends: ["
		"{name: c, address: 10.0.0.3}, {name: a, address: 10.0.0.1, weight: 1},"
		" {name: b, address: 10.0.0.2, tags: [x]}]}\n");

	CU_ASSERT_EQUAL(diff->change_count, 0);
	config_diff_free(diff);
}

static void each_change_has_path_before_and_after(void)
{
	static const struct config_change wanted[] = {
		{CONFIG_CHANGED, "pools.web.ring.version", "\"v1\"", "\"v2\""},
		{CONFIG_CHANGED, "pools.web.ring.points", "160", "16"},
		{CONFIG_CHANGED, "pools.web.backends.a.weight", "1", "5"},
		{CONFIG_CHANGED, "pools.web.backends.b.tags", "[\"x\"]", "[\"x\", \"y\"]"},
		{CONFIG_ADDED, "pools.web.backends.d", NULL,
			"{\"name\": \"d\", \"address\": \"10.0.0.4\"}"},
		{CONFIG_REMOVED, "pools.web.backends.c",
			"{\"name\": \"c\", \"address\": \"10.0.0.3\"}", NULL},
		{CONFIG_CHANGED, "services.s.ports", "[80]", "[80, 81]"},
		{CONFIG_CHANGED, "services.s.timeouts.udp", "60", "61"},
	};
	struct config_diff *diff = diff_to(
		"pools:\n"
		"  - {name: web, ring: {version: v2}, backends: ["
		"{name: a, address: 10.0.0.1, weight: 5},"
		" {name: b, address: 10.0.0.2, tags: [y, x]}, {name: d, address: 10.0.0.4}]}\n"
		"services:\n"
		"  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web, ports: [80, 81],"
		" timeouts: {udp: 61}}\n");

	CU_ASSERT_EQUAL_FATAL(diff->change_count, sizeof(wanted) / sizeof(wanted[0]));
	for (uint32_t i = 0; i < diff->change_count; i++) {
		const struct config_change *change = &diff->changes[i];

		CU_ASSERT_EQUAL(change->kind, wanted[i].kind);
		CU_ASSERT_STRING_EQUAL(change->path, wanted[i].path);
		CU_ASSERT_EQUAL_FATAL(change->before == NULL, wanted[i].before == NULL);
		CU_ASSERT_EQUAL_FATAL(change->after == NULL, wanted[i].after == NULL);
		if (change->before != NULL)
			CU_ASSERT_STRING_EQUAL(change->before, wanted[i].before);
		if (change->after != NULL)
			CU_ASSERT_STRING_EQUAL(change->after, wanted[i].after);
	}
	config_diff_free(diff);
}

// Every field that a file may leave out, from nothing to something and back.
static void what_was_left_out_has_a_text_too(void)
{
	static const char bare[] =
		"pools:\n"
		"  - {name: web, ring: {version: v1}, backends: [{name: a, address: 10.0.0.1}]}\n"
		"services:\n"
		"  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web}\n";
	static const char all[] =
		"unknown: drop\n"
		"pools:\n"
		"  - {name: web, ring: {version: v1, hash_seed: 00112233445566778899aabbccddeeff},\n"
		"     backends: [{name: a, address: 10.0.0.1, port: 80, weight: 2, state: drain,"
		" tags: [x]}]}\n"
		"services:\n"
		"  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web, ports: [80],"
		" requires: [x], affinity: client, state: none, tunnel: {type: gue},"
		" timeouts: {syn: 1, established: 2, closing: 3, udp: 4}}\n";
	struct config_pools *pools[] = {pools_of(bare), pools_of(all)};

	for (unsigned i = 0; i < 2; i++) {
		struct config_diff *diff = config_pools_diff(pools[i], pools[!i]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(diff);
		CU_ASSERT_TRUE(diff->change_count >= 14);
		for (uint32_t k = 0; k < diff->change_count; k++) {
			const struct config_change *change = &diff->changes[k];

			CU_ASSERT_EQUAL(change->kind, CONFIG_CHANGED);
			CU_ASSERT_TRUE(strlen(change->before) > 0 && strlen(change->after) > 0);
			if (strcmp(change->path, "services.s.requires") == 0) {
				CU_ASSERT_STRING_EQUAL(change->before, i ? "[\"x\"]" : "[]");
				CU_ASSERT_STRING_EQUAL(change->after, i ? "[]" : "[\"x\"]");
			}
		}
		config_diff_free(diff);
	}
	config_pools_free(pools[0]);
	config_pools_free(pools[1]);
}

static void against_nothing_all_is_added(void)
{
	struct config_pools *after = pools_of(before_text);
	struct config_diff *diff = config_pools_diff(NULL, after);

	CU_ASSERT_PTR_NOT_NULL_FATAL(diff);
	CU_ASSERT_EQUAL_FATAL(diff->change_count, 2);
	CU_ASSERT_EQUAL(diff->changes[0].kind, CONFIG_ADDED);
	CU_ASSERT_STRING_EQUAL(diff->changes[0].path, "pools.web");
	CU_ASSERT_STRING_EQUAL(diff->changes[1].path, "services.s");
	config_diff_free(diff);
	config_pools_free(after);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"order_and_spelling_are_no_difference", order_and_spelling_are_no_difference},
		{"each_change_has_path_before_and_after", each_change_has_path_before_and_after},
		{"what_was_left_out_has_a_text_too", what_was_left_out_has_a_text_too},
		{"against_nothing_all_is_added", against_nothing_all_is_added},
	};

	return SUITE_RUN("config_diff", cases);
}
