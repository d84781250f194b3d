// SPDX-License-Identifier: Apache-2.0
// Any bytes as pools.yaml: what is refused says why; what is taken has one canonical text, which reads back as itself, and
// differs from itself in nothing and from other files in words.
#include "control/config/diff.h"
#include "control/config/reader.h"
#include "control/config/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *pools_text(const struct config_pools *pools, enum config_format format, size_t *ret)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret);

	if (out == NULL || config_pools_write(pools, format, true, out) != 0 || fclose(out) != 0)
		abort();
	return text;
}

static void round_trip(const struct config_pools *pools, enum config_format format)
{
	struct config_pools *again = NULL;
	struct config_report report;
	size_t length, length_again;
	char *text = pools_text(pools, format, &length);
	char *text_again;

	config_report_init(&report, "again", text, length);
	if (config_pools_read(&report, &again) != 0)
		abort();
	text_again = pools_text(again, format, &length_again);
	if (strcmp(text, text_again) != 0)
		abort();
	config_report_free(&report);
	config_pools_free(again);
	free(text);
	free(text_again);
}

static void assert_told(const struct config_pools *before, const struct config_pools *after)
{
	struct config_diff *diff = config_pools_diff(before, after);

	if (diff == NULL || (before == after && diff->change_count != 0))
		abort();
	for (uint32_t i = 0; i < diff->change_count; i++) {
		const struct config_change *change = &diff->changes[i];

		if (change->path[0] == '\0' ||
			(change->before != NULL && change->before[0] == '\0') ||
			(change->after != NULL && change->after[0] == '\0'))
			abort();
	}
	config_diff_free(diff);
}

// Against a file with the usual names that leaves out all that it may.
static void differences(const struct config_pools *pools)
{
	static const char bare[] =
		"pools: [{name: web, ring: {version: v2}, backends: [{name: web-1, address: 10.0.0.1},"
		" {name: a, address: 10.0.0.2}]}]\n"
		"services: [{name: https, address: 203.0.113.10, protocol: tcp, pool: web}]\n";
	static struct config_pools *other;
	struct config_report report;

	if (other == NULL) {
		config_report_init(&report, "bare", bare, strlen(bare));
		if (config_pools_read(&report, &other) != 0)
			abort();
		config_report_free(&report);
	}
	assert_told(pools, pools);
	assert_told(pools, other);
	assert_told(other, pools);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_pools *pools = NULL;
	struct config_report report;
	char *printed = NULL;
	size_t length;
	FILE *out = open_memstream(&printed, &length);
	int rc;

	config_report_init(&report, "fuzz", (const char *)data, size);
	rc = config_pools_read(&report, &pools);
	config_report_print(&report, out);
	fclose(out);
	if (rc == -EINVAL && (report.error_count == 0 || length == 0))
		abort();
	if (rc == 0) {
		round_trip(pools, CONFIG_YAML);
		round_trip(pools, CONFIG_JSON);
		differences(pools);
	}
	free(printed);
	config_report_free(&report);
	config_pools_free(pools);
	return 0;
}
