// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cutover.h"

#include "control/cli/files.h"
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

static void print_ring(FILE *out, const json_t *ring)
{
	const json_t *before = json_object_get(ring, "before"),
		     *after = json_object_get(ring, "after");

	fprintf(out, "ring %-12s churn %.2f%%", text_at(ring, "tags"),
		100 * number_at(ring, "churn"));
	if (json_is_number(json_object_get(ring, "churn_traffic")))
		fprintf(out, ", weighted by traffic %.2f%%",
			100 * number_at(ring, "churn_traffic"));
	fprintf(out, "   build %.1f ms\n", number_at(ring, "build_ns") / 1e6);
	if (json_is_true(json_object_get(ring, "hash_seed_changes")))
		fprintf(out,
			"  the hash seed changes: every key is drawn anew, and stays by chance alone\n");
	fprintf(out,
		"  balance before   CV %.4f (formula %.4f)   hottest %s %.3fx   coldest %s %.3fx\n",
		number_at(before, "cv"), number_at(before, "cv_predicted"),
		text_at(before, "hottest_backend"), number_at(before, "hottest"),
		text_at(before, "coldest_backend"), number_at(before, "coldest"));
	fprintf(out,
		"  balance after    CV %.4f (formula %.4f)   hottest %s %.3fx   coldest %s %.3fx%s\n",
		number_at(after, "cv"), number_at(after, "cv_predicted"),
		text_at(after, "hottest_backend"), number_at(after, "hottest"),
		text_at(after, "coldest_backend"), number_at(after, "coldest"),
		number_at(after, "hottest") > 1.25 ? "   WARN above 1.25x" : "");
}

static void print_step(FILE *out, const json_t *step)
{
	char soak[CUTOVER_TIME_TEXT_BYTES], least[CUTOVER_TIME_TEXT_BYTES];
	char total[CUTOVER_TIME_TEXT_BYTES];
	json_int_t rises = json_integer_value(json_object_get(step, "rises"));
	json_t *name;
	size_t i;

	time_at(step, "soak_ms", soak);
	time_at(step, "soak_min_ms", least);
	time_at(step, "total_ms", total);
	fprintf(out, "stage %lld  %s -> %s", (long long)number_at(step, "stage"),
		text_at(step, "from"), text_at(step, "to"));
	if (rises > 1)
		fprintf(out, " in %lld steps of %s, about %s", (long long)rises,
			text_at(step, "rise"), total);
	fprintf(out, "   moves %.2f%% of new flows, 0 established", 100 * number_at(step, "moves"));
	if (number_at(step, "surge") > 0)
		fprintf(out, "   origin %+.0f%%%s", 100 * number_at(step, "surge"),
			json_is_true(json_object_get(step, "over_limit")) ? " OVER THE LIMIT" : "");
	fprintf(out, "   soak %s", soak);
	if (json_is_integer(json_object_get(step, "soak_min_ms")))
		fprintf(out, " (guards and caches want %s)", least);
	fputs("   ", out);
	json_array_foreach (json_object_get(step, "datacenters"), i, name) {
		if (i == 8) {
			fprintf(out, ",... (%zu)",
				json_array_size(json_object_get(step, "datacenters")));
			break;
		}
		fprintf(out, "%s%s", i ? "," : "", json_string_value(name));
	}
	fputc('\n', out);
}

static void print_end(FILE *out, const json_t *plan)
{
	char total[CUTOVER_TIME_TEXT_BYTES];

	time_at(plan, "total_ms", total);
	fprintf(out, "all steps soak for %s in all\n", total);
	if (number_at(plan, "churn_surge") > 0 && number_at(plan, "step_max") < 1)
		fprintf(out,
			"largest safe step %.4f%%   a rollback after the refill time costs %+.0f%% "
			"origin traffic\n",
			100 * number_at(plan, "step_max"), 100 * number_at(plan, "rollback_late"));
	else
		fputs("origin traffic: no surge is expected: keys of this affinity have no home, or "
		      "no hit ratio is given\n",
			out);
	fprintf(out, "nothing was changed. apply with:  ringway cutover stage %s\n",
		text_at(plan, "plan"));
}

static enum answer print_plan(struct cli *cli, json_t *plan)
{
	const json_t *memory = json_object_get(plan, "memory");
	json_t *item;
	size_t i;

	if (cli->output != OUTPUT_TABLE && cli->output != OUTPUT_WIDE)
		return request_print(cli, plan);
	fprintf(cli->out, "plan %s (base generation %lld)   pool %s\n", text_at(plan, "plan"),
		(long long)number_at(plan, "base_generation"), text_at(plan, "pool"));
	json_array_foreach (json_object_get(plan, "rings"), i, item)
		print_ring(cli->out, item);
	fprintf(cli->out,
		"memory of a worker  %.1f kB now, %.1f kB during, %.1f kB after   of a node  %.1f kB, "
		"%.1f kB, %.1f kB\n",
		number_at(memory, "worker_bytes_now") / 1e3,
		number_at(memory, "worker_bytes_during") / 1e3,
		number_at(memory, "worker_bytes_after") / 1e3,
		number_at(memory, "node_bytes_now") / 1e3,
		number_at(memory, "node_bytes_during") / 1e3,
		number_at(memory, "node_bytes_after") / 1e3);
	json_array_foreach (json_object_get(plan, "steps"), i, item)
		print_step(cli->out, item);
	print_end(cli->out, plan);
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
