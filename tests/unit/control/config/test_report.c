// SPDX-License-Identifier: Apache-2.0
#include "control/config/report.h"

#include "control/config/reader.h"
#include "tests/lib/suite.h"

#include <stdlib.h>
#include <string.h>

static char *printed(const char *text)
{
	struct config_pools *pools = NULL;
	struct config_report report;
	char *out_text = NULL;
	size_t length;
	FILE *out = open_memstream(&out_text, &length);

	config_report_init(&report, "pools.yaml", text, strlen(text));
	if (config_pools_read(&report, &pools) == 0)
		config_pools_free(pools);
	config_report_print(&report, out);
	fclose(out);
	config_report_free(&report);
	return out_text;
}

static void finding_shows_place_line_caret_and_hint(void)
{
	char *text = printed("pools:\n"
			     "  - name: web\n"
			     "    ring: {version: v1}\n"
			     "    backends:\n"
			     "      - {name: a, address: 10.0.0.1, weight: 70000}\n");

	CU_ASSERT_STRING_EQUAL(text,
		"error[CFG014]: pools.yaml:5:46  pools[0].backends[0].weight: "
		"70000 is out of range 1..65535\n"
		"    5 |       - {name: a, address: 10.0.0.1, weight: 70000}\n"
		"      |                                              ^^^^^\n"
		"  hint: to stop new flows use `state: drain`; weight 0 is not allowed\n"
		"pools.yaml: 1 error, 0 warnings\n");
	free(text);
}

static void misspelt_key_brings_the_right_one(void)
{
	char *text = printed("servces: []\n");

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "unknown key `servces`"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "did you mean `services`?"));
	free(text);
}

// A terminal must not take orders from a file.
static void control_characters_are_not_printed(void)
{
	char *text = printed("unknown: \"\x1b[2J\"\n");

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "CFG001"));
	CU_ASSERT_PTR_NULL(strchr(text, '\x1b'));
	free(text);
	text = printed("\"\\e[2J\": 1\n");
	CU_ASSERT_PTR_NULL(strchr(text, '\x1b'));
	free(text);
	text = printed("unknown: \"\\e[2J\"\n");
	CU_ASSERT_PTR_NULL(strchr(text, '\x1b'));
	free(text);
}

static void caret_counts_characters_not_bytes(void)
{
	char *text = printed("unknown: \"\u00fc\u00fc\"  # \u00fc\n");

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "      |          ^^^^\n"));
	free(text);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"finding_shows_place_line_caret_and_hint",
			finding_shows_place_line_caret_and_hint},
		{"misspelt_key_brings_the_right_one", misspelt_key_brings_the_right_one},
		{"control_characters_are_not_printed", control_characters_are_not_printed},
		{"caret_counts_characters_not_bytes", caret_counts_characters_not_bytes},
	};

	return SUITE_RUN("config_report", cases);
}
