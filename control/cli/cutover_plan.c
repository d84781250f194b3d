// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cutover.h"

#include "control/cli/files.h"
#include "control/cli/output.h"
#include "control/cli/request.h"
#include "control/cli/traffic.h"
#include "control/config/report.h"
#include "control/config/tree.h"
#include "control/cutover/spec_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_MAX 32u

// Flows of a sample that fit a request; 200,000 tell a share within 0.1 %.
#define CUTOVER_PLAN_FLOWS_MAX 200000u

// A backend that gets more than so many times its share is warned of.
#define HOTTEST_MAX 1.25
// Of a stage, in a line.
#define DATACENTERS_SHOWN 8u

// --- cutover.yaml to JSON: scalars stay text, the specification types them ------------------------

static json_t *tree_to_json(const struct tree_node *node)
{
	json_t *ret;

	if (node->kind == TREE_SCALAR)
		return json_string(node->text);
	ret = node->kind == TREE_MAP ? json_object() : json_array();
	for (const struct tree_node *child = node->first; child != NULL; child = child->next) {
		json_t *value = tree_to_json(child);

		if (node->kind == TREE_MAP)
			json_object_set_new(ret, child->key, value);
		else
			json_array_append_new(ret, value);
	}
	return ret;
}

// Says every fault with its line and column.
static void say_faults(
	struct config_report *report, const struct cutover_spec_error *faults, size_t count)
{
	for (size_t i = 0; i < count; i++)
		config_report_add(
			report, CONFIG_BAD_VALUE, faults[i].where, NULL, "%s", faults[i].text);
}

static json_t *read_spec(struct config_report *report)
{
	struct cutover_spec_error faults[FAULTS_MAX];
	struct cutover_spec *spec = malloc(sizeof(*spec));
	struct config_tree *tree = NULL;
	json_t *object = NULL;

	if (spec != NULL && tree_read(report->source, report->source_length, report, &tree) == 0) {
		report->tree = tree;
		object = tree_to_json(tree->root);
		size_t count = cutover_spec_read(object, spec, faults, FAULTS_MAX);

		say_faults(report, faults, count);
		if (count != 0) {
			json_decref(object);
			object = NULL;
		}
		report->tree = NULL;
		tree_free(tree);
	}
	free(spec);
	return object;
}

static enum answer load_spec(struct cli *cli, json_t **ret)
{
	struct config_report *report = calloc(1, sizeof(*report));
	const char *path = cli->value[CLI_FILE];
	char *text = NULL;
	size_t length;
	enum answer answer;

	if (report == NULL)
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	if (path == NULL) {
		free(report);
		return cli_fail(cli, ANSWER_USAGE, "name the file: -f cutover.yaml");
	}
	answer = files_load(cli, path, &text, &length);
	if (answer == ANSWER_DONE) {
		config_report_init(report, path, text, length);
		*ret = read_spec(report);
		if (report->finding_count > 0)
			config_report_print(report, cli->err);
		config_report_free(report);
		answer = *ret ? ANSWER_DONE : ANSWER_INVALID;
	}
	free(text);
	free(report);
	return answer;
}

// --- the plan for people ---------------------------------------------------------------------------

static double number_at(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void time_at(const json_t *object, const char *key, char ret[static CUTOVER_TIME_TEXT_BYTES])
{
	uint64_t ms = (uint64_t)json_integer_value(json_object_get(object, key));

	// Nobody plans in milliseconds what takes minutes.
	cutover_time_format(ms > 600000 ? (ms + 59999) / 60000 * 60000 : ms, ret);
}

static const char *ring_text(const json_t *ring, char *ret, size_t bytes)
{
	json_int_t points = json_integer_value(json_object_get(ring, "points"));

	snprintf(ret, bytes, "%s", text_at(ring, "version"));
	if (points != 0)
		snprintf(ret, bytes, "%s x%lld", text_at(ring, "version"), (long long)points);
	return ret;
}

static void print_head(FILE *out, const json_t *plan)
{
	const json_t *spec = json_object_get(plan, "spec");
	const json_t *first = json_array_get(json_object_get(plan, "rings"), 0);
	char from[32], to[32];

	fprintf(out, "plan %s (base generation %lld)   pool %s   %s -> %s   affinity %s\n",
		text_at(plan, "plan"), (long long)number_at(plan, "base_generation"),
		text_at(plan, "pool"), ring_text(json_object_get(spec, "from"), from, sizeof(from)),
		ring_text(json_object_get(spec, "to"), to, sizeof(to)), text_at(first, "affinity"));
}

// Now, with both rings, and after.
static void print_bytes(FILE *out, const json_t *memory, const char *of)
{
	static const char *const times[] = {"now", "during", "after"};
	char field[40];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(field, sizeof(field), "%s_bytes_%s", of, times[i]);
		char *text = output_text("bytes", json_object_get(memory, field), false);

		fprintf(out, "%s%s", i ? ", " : " ", text ? text : "?");
		free(text);
	}
}

static void print_memory(FILE *out, const char *whose, const json_t *memory)
{
	fprintf(out, "%s now, during, after   a worker", whose);
	print_bytes(out, memory, "worker");
	fputs("   a node", out);
	print_bytes(out, memory, "node");
	fputc('\n', out);
}

static void print_balance(FILE *out, const char *when, const json_t *balance, bool judged)
{
	fprintf(out, "  balance %-6s  CV %.4f (formula %.4f)   hottest %s %.3fx   coldest %s %.3fx",
		when, number_at(balance, "cv"), number_at(balance, "cv_predicted"),
		text_at(balance, "hottest_backend"), number_at(balance, "hottest"),
		text_at(balance, "coldest_backend"), number_at(balance, "coldest"));
	if (judged && number_at(balance, "hottest") > HOTTEST_MAX)
		fprintf(out, "   WARN above %.2fx", HOTTEST_MAX);
	fputc('\n', out);
}

static void print_ring(FILE *out, const json_t *ring)
{
	json_int_t services = json_integer_value(json_object_get(ring, "services"));

	fprintf(out, "ring %-12s churn %.2f%%", text_at(ring, "tags"),
		100 * number_at(ring, "churn"));
	if (json_is_number(json_object_get(ring, "churn_traffic")))
		fprintf(out, ", weighted by traffic %.2f%%",
			100 * number_at(ring, "churn_traffic"));
	fprintf(out, "   %lld service%s   build %.1f ms\n", (long long)services,
		services == 1 ? "" : "s", number_at(ring, "build_ns") / 1e6);
	if (json_is_true(json_object_get(ring, "hash_seed_changes")))
		fprintf(out,
			"  the hash seed changes: every key is drawn anew, and stays by chance alone\n");
	print_balance(out, "before", json_object_get(ring, "before"), false);
	print_balance(out, "after", json_object_get(ring, "after"), true);
	print_memory(out, "  memory", json_object_get(ring, "memory"));
}

// What is known of the traffic, and what follows from it for all steps.
static void print_traffic(FILE *out, const json_t *plan)
{
	const json_t *hit = json_object_get(plan, "hit_ratio");
	bool surge = number_at(plan, "churn_surge") > 0;

	if (!json_is_object(hit) || !surge) {
		fprintf(out, "origin traffic: no surge is expected: %s\n",
			surge ? "no hit ratio is given, so these are no caches"
			      : "keys of this affinity have no home");
		return;
	}
	fprintf(out, "hit ratio %.4g (%s", number_at(hit, "value"), text_at(hit, "source"));
	if (json_is_number(json_object_get(hit, "age_s")))
		fprintf(out, ", %.0f s old", number_at(hit, "age_s"));
	fputc(')', out);
	if (number_at(plan, "step_max") < 1)
		fprintf(out, "   largest safe step %.4f%%", 100 * number_at(plan, "step_max"));
	fputc('\n', out);
}

static void print_datacenters(FILE *out, const json_t *names)
{
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		if (i == DATACENTERS_SHOWN) {
			fprintf(out, ",... (%zu)", json_array_size(names));
			break;
		}
		fprintf(out, "%s%s", i ? "," : "", json_string_value(name));
	}
}

// What moves, and what caches feel of it.
static void print_moves(FILE *out, const json_t *step)
{
	fprintf(out, "         moves %.2f%% of new flows, 0 established",
		100 * number_at(step, "moves"));
	if (number_at(step, "surge") > 0) {
		fprintf(out, "   origin %+.0f%%", 100 * number_at(step, "surge"));
		if (number_at(step, "max_step_surge") > 0)
			fprintf(out, " (limit %.0f%%)", 100 * number_at(step, "max_step_surge"));
		if (json_is_true(json_object_get(step, "over_limit")))
			fputs(" OVER THE LIMIT", out);
		fprintf(out, "   late rollback %+.0f%%", 100 * number_at(step, "rollback_late"));
	}
	fputc('\n', out);
}

static void print_soak(FILE *out, const json_t *plan, const json_t *step)
{
	const json_t *least_ms = json_object_get(step, "soak_min_ms");
	char soak[CUTOVER_TIME_TEXT_BYTES], least[CUTOVER_TIME_TEXT_BYTES];

	time_at(step, "soak_ms", soak);
	time_at(step, "soak_min_ms", least);
	fprintf(out, "         soak %s", soak);
	if (number_at(step, "flows_per_second") > 0)
		fprintf(out, "   %.1f new flows a second (%s)", number_at(step, "flows_per_second"),
			text_at(plan, "flows_source"));
	if (!json_is_integer(least_ms))
		fprintf(out,
			"   WARN early_abort wants %.0f flows on each ring; no rate of flows is known",
			number_at(plan, "flows_min"));
	else if (json_integer_value(least_ms) >
		json_integer_value(json_object_get(step, "soak_ms")))
		fprintf(out, "   WARN guards and caches want %s", least);
	else if (json_integer_value(least_ms) > 0)
		fprintf(out, "   guards and caches want %s", least);
	fputc('\n', out);
}

static void print_step(FILE *out, const json_t *plan, const json_t *step)
{
	json_int_t rises = json_integer_value(json_object_get(step, "rises"));
	char total[CUTOVER_TIME_TEXT_BYTES];

	time_at(step, "total_ms", total);
	fprintf(out, "stage %-2lld %s -> %s", (long long)number_at(step, "stage"),
		text_at(step, "from"), text_at(step, "to"));
	if (rises > 1)
		fprintf(out, " in %lld steps of %s, about %s", (long long)rises,
			text_at(step, "rise"), total);
	fputs("   ", out);
	print_datacenters(out, json_object_get(step, "datacenters"));
	fputc('\n', out);
	print_moves(out, step);
	print_soak(out, plan, step);
}

static enum answer print_plan(struct cli *cli, json_t *plan)
{
	const json_t *rings = json_object_get(plan, "rings");
	char total[CUTOVER_TIME_TEXT_BYTES];
	json_t *item;
	size_t i;

	if (cli->output != OUTPUT_TABLE && cli->output != OUTPUT_WIDE)
		return request_print(cli, plan);
	print_head(cli->out, plan);
	json_array_foreach (rings, i, item)
		print_ring(cli->out, item);
	if (json_array_size(rings) > 1)
		print_memory(cli->out, "all rings", json_object_get(plan, "memory"));
	print_traffic(cli->out, plan);
	json_array_foreach (json_object_get(plan, "steps"), i, item)
		print_step(cli->out, plan, item);
	time_at(plan, "total_ms", total);
	fprintf(cli->out, "all steps soak for %s in all\n", total);
	fprintf(cli->out, "nothing was changed. apply with:  ringway cutover stage %s\n",
		text_at(plan, "plan"));
	return ANSWER_DONE;
}

// The sample travels as one list: hash, weight, hash, weight.
static void append_flow(void *context, uint32_t ring_hash, double weight)
{
	json_array_append_new(context, json_integer(ring_hash));
	json_array_append_new(context, json_real(weight));
}

static enum answer load_traffic(struct cli *cli, json_t *args)
{
	json_t *flows = json_array();
	enum answer answer = traffic_read(cli, append_flow, flows);

	if (answer == ANSWER_DONE && json_array_size(flows) > 2 * CUTOVER_PLAN_FLOWS_MAX)
		answer = cli_fail(cli, ANSWER_REFUSED, "%s: more than %u flows: a sample is enough",
			cli->value[CLI_TRAFFIC], CUTOVER_PLAN_FLOWS_MAX);
	json_object_set_new(args, "traffic", flows);
	return answer;
}

enum answer cutover_plan_run(struct cli *cli)
{
	json_t *spec = NULL;
	enum answer answer = load_spec(cli, &spec);

	if (answer != ANSWER_DONE)
		return answer;
	json_t *args = json_pack("{s:o}", "spec", spec);

	if (cli_has(cli, CLI_POOLS_FILE)) {
		char *text = NULL;
		size_t length;

		answer = files_load(cli, cli->value[CLI_POOLS_FILE], &text, &length);
		if (answer == ANSWER_DONE)
			json_object_set_new(args, "pools", json_stringn(text, length));
		free(text);
	}
	if (answer == ANSWER_DONE && cli_has(cli, CLI_TRAFFIC))
		answer = load_traffic(cli, args);
	if (answer == ANSWER_DONE)
		return request_run_printed(cli, args, print_plan);
	json_decref(args);
	return answer;
}
