// SPDX-License-Identifier: Apache-2.0
#include "control/config/writer.h"

#include "control/config/diff.h"
#include "control/config/reader.h"
#include "tests/lib/suite.h"

#include <stdlib.h>
#include <string.h>

static uint64_t seed;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)(suite_random(&seed) % limit);
}

static const char *pick(const char *const *words, unsigned count)
{
	return words[below(count)];
}

#define PICK(...)                                \
	pick((const char *const[]){__VA_ARGS__}, \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void backend_write(FILE *out, unsigned pool, unsigned index)
{
	fprintf(out, "    - name: %s%u\n", PICK("b", "y-", "no.", "1_"), index);
	fprintf(out, "      address: %s%u.%u.1\n", PICK("10.", "172."), pool + 1, index);
	if (below(2))
		fprintf(out, "      weight: %u\n", 1 + below(CONFIG_WEIGHT_MAX));
	if (below(2))
		fprintf(out, "      port: %u\n", 1 + below(65535));
	if (below(2))
		fprintf(out, "      tags: [%s]\n", PICK("nvme", "on, nvme", "1.5", "zz, aa, b-c"));
	if (below(2))
		fprintf(out, "      state: %s\n", PICK("up", "drain", "down"));
}

static void service_write(FILE *out, unsigned index, unsigned pool)
{
	fprintf(out, "- name: s%u\n  address: %s%x%s\n", index, "\"2001:db8:", index + 1,
		PICK("::/48\"", "::\"", ":0::1\"", "::ffff:1.2.3.4\""));
	fprintf(out, "  protocol: %s\n  pool: p%u\n", PICK("tcp", "udp"), pool);
	if (below(2))
		fprintf(out, "  ports: [%s]\n", PICK("443", "443, 80", "1, 65535"));
	if (below(2))
		fprintf(out, "  affinity: %s\n", PICK("flow", "client", "destination", "quic"));
	if (below(2))
		fprintf(out, "  tunnel: {type: %s, source4: 10.255.0.0/16}\n",
			PICK("gue", "ipip", "gre", "l2"));
	if (below(2))
		fprintf(out, "  timeouts: {udp: %s, syn: %u}\n", PICK("1", "90s", "2m", "1h"),
			1 + below(7200));
	if (below(2))
		fprintf(out, "  state: %s\n", PICK("flows", "none"));
}

// Any configuration that an operator may write.
static char *random_pools(void)
{
	unsigned pools = 1 + below(4), services = below(5);
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	fprintf(out, "unknown: %s\npools:\n", PICK("punt", "drop"));
	for (unsigned p = 0; p < pools; p++) {
		unsigned backends = below(5);

		fprintf(out, "- name: p%u\n  ring: {version: %s}\n", p,
			PICK("v1", "v2", "v2, points: 40", "v3", "v3, balance: 0.0125",
				"v1, seed: nginx"));
		if (backends > 0)
			fputs("  backends:\n", out);
		for (unsigned b = 0; b < backends; b++)
			backend_write(out, p, b);
	}
	if (services > 0)
		fputs("services:\n", out);
	for (unsigned s = 0; s < services; s++)
		service_write(out, s, below(pools));
	fclose(out);
	return text;
}

static struct config_pools *pools_of(const char *text)
{
	struct config_pools *pools = NULL;
	struct config_report report;

	config_report_init(&report, "text", text, strlen(text));
	if (config_pools_read(&report, &pools) != 0) {
		printf("# seed %llu\n", (unsigned long long)seed);
		config_report_print(&report, stdout);
	}
	config_report_free(&report);
	return pools;
}

static char *text_of(const struct config_pools *pools, enum config_format format, bool full)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	CU_ASSERT_EQUAL(config_pools_write(pools, format, full, out), 0);
	fclose(out);
	return text;
}

static void round_trip(const struct config_pools *pools, enum config_format format, bool full)
{
	char *text = text_of(pools, format, full);
	struct config_pools *again = pools_of(text);
	struct config_diff *diff;
	char *text_again;

	CU_ASSERT_PTR_NOT_NULL_FATAL(again);
	diff = config_pools_diff(pools, again);
	CU_ASSERT_PTR_NOT_NULL_FATAL(diff);
	CU_ASSERT_EQUAL(diff->change_count, 0);
	text_again = text_of(again, format, full);
	CU_ASSERT_STRING_EQUAL(text, text_again);
	config_diff_free(diff);
	config_pools_free(again);
	free(text);
	free(text_again);
}

static void any_model_reads_back_as_itself(void)
{
	seed = suite_seed();
	for (unsigned i = 0; i < 300; i++) {
		char *text = random_pools();
		struct config_pools *pools = pools_of(text);

		CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
		round_trip(pools, CONFIG_YAML, false);
		round_trip(pools, CONFIG_YAML, true);
		round_trip(pools, CONFIG_JSON, false);
		round_trip(pools, CONFIG_JSON, true);
		config_pools_free(pools);
		free(text);
	}
}

static void copy_is_equal_and_independent(void)
{
	seed = suite_seed();
	for (unsigned i = 0; i < 100; i++) {
		char *text = random_pools();
		struct config_pools *pools = pools_of(text);
		struct config_pools *copy = config_pools_copy(pools);
		char *before = text_of(pools, CONFIG_JSON, true);
		char *after;

		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		config_pools_free(pools);
		after = text_of(copy, CONFIG_JSON, true);
		CU_ASSERT_STRING_EQUAL(before, after);
		config_pools_free(copy);
		free(before);
		free(after);
		free(text);
	}
}

static void canonical_text_is_what_an_operator_would_write(void)
{
	static const char canonical[] =
		"unknown: drop\n"
		"pools:\n"
		"  - name: web\n"
		"    ring: {version: v2, points: 16}\n"
		"    backends:\n"
		"      - {name: web-1, address: 10.0.0.11, weight: 100, tags: [eu, nvme]}\n"
		"      - {name: \"no\", address: \"2001:db8::1\", weight: 2, state: drain}\n"
		"services:\n"
		"  - name: https\n"
		"    address: 203.0.113.0/24\n"
		"    protocol: tcp\n"
		"    ports: [443]\n"
		"    pool: web\n"
		"    requires: [nvme]\n"
		"    tunnel: {type: gue}\n"
		"    timeouts: {udp: 90}\n";
	struct config_pools *pools = pools_of(canonical);
	char *text;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
	text = text_of(pools, CONFIG_YAML, false);
	CU_ASSERT_STRING_EQUAL(text, canonical);
	free(text);
	config_pools_free(pools);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"any_model_reads_back_as_itself", any_model_reads_back_as_itself},
		{"copy_is_equal_and_independent", copy_is_equal_and_independent},
		{"canonical_text_is_what_an_operator_would_write",
			canonical_text_is_what_an_operator_would_write},
	};

	return SUITE_RUN("config_writer", cases);
}
