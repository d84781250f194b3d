// SPDX-License-Identifier: Apache-2.0
#include "control/cli/files.h"

#include "control/cli/request.h"
#include "control/config/diff.h"
#include "control/config/pool_ring.h"
#include "control/config/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum answer files_load(struct cli *cli, const char *path, char **ret_text, size_t *ret_length)
{
	int error = config_file_load(
		strcmp(path, "-") == 0 ? "/dev/stdin" : path, ret_text, ret_length);

	if (error == -ENOENT)
		return cli_fail(cli, ANSWER_NOT_FOUND, "%s: there is no such file", path);
	if (error == -EFBIG)
		return cli_fail(cli, ANSWER_INVALID,
			"%s: larger than the %u MiB that a file may have", path,
			CONFIG_BYTES_MAX >> 20);
	if (error)
		return cli_fail(cli, answer_of_errno(error), "%s: %s", path, strerror(-error));
	return ANSWER_DONE;
}

// Reads text as pools (or node) and says its findings.
static enum answer read_text(struct cli *cli, const char *path, const char *text, size_t length,
	struct config_pools **ret_pools, struct config_node **ret_node)
{
	struct config_report *report = calloc(1, sizeof(*report));
	int error;

	if (report == NULL)
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	config_report_init(report, path, text, length);
	error = ret_pools ? config_pools_read(report, ret_pools)
			  : config_node_read(report, ret_node);
	if (report->finding_count > 0)
		config_report_print(report, cli->err);
	config_report_free(report);
	free(report);
	if (error == -EINVAL)
		return ANSWER_INVALID;
	return error ? cli_fail(cli, ANSWER_FAILED, "%s: %s", path, strerror(-error)) : ANSWER_DONE;
}

enum answer files_pools_text(
	struct cli *cli, const char *name, const char *text, struct config_pools **ret)
{
	return read_text(cli, name, text, strlen(text), ret, NULL);
}

enum answer files_pools(struct cli *cli, const char *path, struct config_pools **ret)
{
	char *text = NULL;
	size_t length = 0;
	enum answer answer = files_load(cli, path, &text, &length);

	if (answer == ANSWER_DONE)
		answer = read_text(cli, path, text, length, ret, NULL);
	free(text);
	return answer;
}

enum answer files_node(struct cli *cli, const char *path, struct config_node **ret)
{
	char *text = NULL;
	size_t length = 0;
	enum answer answer = files_load(cli, path, &text, &length);

	if (answer == ANSWER_DONE)
		answer = read_text(cli, path, text, length, NULL, ret);
	free(text);
	return answer;
}

json_t *files_findings(const struct config_report *report)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < report->finding_count; i++) {
		const struct config_finding *finding = &report->findings[i];
		char code[16];

		snprintf(code, sizeof(code), "CFG%03d", finding->code);
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s, s:i, s:i, s:s?, s:s?, s:s?}", "severity",
				finding->warning ? "warning" : "error", "code", code, "file",
				report->file, "line", (int)finding->line, "column",
				(int)finding->column, "path", finding->path, "text", finding->text,
				"hint", finding->hint));
	}
	return rows;
}

json_t *files_changes(const struct config_diff *diff)
{
	static const char *const kinds[] = {[CONFIG_ADDED] = "added",
		[CONFIG_REMOVED] = "removed",
		[CONFIG_CHANGED] = "changed"};
	json_t *rows = json_array();

	for (uint32_t i = 0; i < diff->change_count; i++)
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s?, s:s?}", "kind", kinds[diff->changes[i].kind],
				"path", diff->changes[i].path, "before", diff->changes[i].before,
				"after", diff->changes[i].after));
	return rows;
}

// Adds what only the rings know (twins, too many points) to the findings of a pools file.
static void check_rings(struct config_report *report, const struct config_pools *pools)
{
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		const struct config_pool *pool = &pools->pools[i];
		struct ring_error error;
		struct pool_ring ring;
		char path[64];

		if (pool_ring_spec(pool, &pool->ring, NULL, 0, &ring, &error) == 0) {
			pool_ring_free(&ring);
			continue;
		}
		snprintf(path, sizeof(path), "pools[%u].backends", i);
		config_report_add(report, CONFIG_RING, path, NULL, "%s", error.text);
	}
}

// Validates one file, prints its findings and adds them to rows.
static enum answer validate_one(
	struct cli *cli, const char *path, bool is_node, json_t *rows, struct config_report *report)
{
	struct config_pools *pools = NULL;
	struct config_node *node = NULL;
	char *text = NULL;
	size_t length = 0;
	enum answer answer = files_load(cli, path, &text, &length);
	json_t *findings;
	int error;

	if (answer != ANSWER_DONE)
		return answer;
	config_report_init(report, path, text, length);
	error = is_node ? config_node_read(report, &node) : config_pools_read(report, &pools);
	if (pools != NULL)
		check_rings(report, pools);
	if (report->finding_count > 0)
		config_report_print(report, cli->err);
	findings = files_findings(report);
	json_array_extend(rows, findings);
	json_decref(findings);
	if (error || report->error_count > 0)
		answer = error == -ENOMEM ? cli_fail(cli, ANSWER_FAILED, "out of memory")
					  : ANSWER_INVALID;
	config_pools_free(pools);
	config_node_free(node);
	config_report_free(report);
	free(text);
	return answer;
}

static enum answer print_validation(struct cli *cli, bool valid, json_t *rows)
{
	json_t *result = json_pack("{s:b, s:O}", "valid", valid, "findings", rows);
	enum answer answer = ANSWER_DONE;

	if (cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE)
		fputs(valid ? "valid\n" : "invalid\n", cli->out);
	else
		answer = result ? request_print(cli, result)
				: cli_fail(cli, ANSWER_FAILED, "out of memory");
	json_decref(result);
	return answer;
}

enum answer files_validate_run(struct cli *cli)
{
	struct config_report *report = calloc(1, sizeof(*report));
	enum answer answer = ANSWER_DONE, node_answer = ANSWER_DONE, printed;
	const char *pools = cli->operand_count ? cli->operand[0] : cli->value[CLI_FILE];
	json_t *rows = json_array();

	if (report == NULL || rows == NULL)
		answer = cli_fail(cli, ANSWER_FAILED, "out of memory");
	else if (pools == NULL && !cli_has(cli, CLI_NODE_FILE))
		answer = cli_fail(cli, ANSWER_USAGE,
			"say what to validate: -f pools.yaml, --node node.yaml, or both");
	if (answer == ANSWER_DONE && pools != NULL)
		answer = validate_one(cli, pools, false, rows, report);
	// All errors of both files at once.
	if ((answer == ANSWER_DONE || answer == ANSWER_INVALID) && cli_has(cli, CLI_NODE_FILE)) {
		node_answer = validate_one(cli, cli->value[CLI_NODE_FILE], true, rows, report);
		answer = answer == ANSWER_DONE ? node_answer : answer;
	}
	if (answer == ANSWER_DONE || answer == ANSWER_INVALID) {
		printed = print_validation(cli, answer == ANSWER_DONE, rows);
		answer = printed == ANSWER_DONE ? answer : printed;
	}
	json_decref(rows);
	free(report);
	return answer;
}

void files_print_changes(struct cli *cli, const json_t *rows)
{
	static const char marks[] = {'+', '-', '~'};
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *kind = json_string_value(json_object_get(row, "kind"));
		const char *before = json_string_value(json_object_get(row, "before"));
		const char *after = json_string_value(json_object_get(row, "after"));
		char mark = marks[kind[0] == 'a' ? 0 : kind[0] == 'r' ? 1 : 2];

		fprintf(cli->out, "%c %s", mark, json_string_value(json_object_get(row, "path")));
		if (before != NULL || after != NULL)
			fprintf(cli->out, ": %s%s%s", before ? before : "",
				before && after ? " -> " : "", after ? after : "");
		fputc('\n', cli->out);
	}
}

// Two files: no daemon is asked.
static enum answer diff_files(struct cli *cli)
{
	struct config_pools *before = NULL, *after = NULL;
	struct config_diff *diff = NULL;
	enum answer answer = files_pools(cli, cli->operand[0], &before);
	json_t *result = NULL;
	bool different;

	if (answer == ANSWER_DONE)
		answer = files_pools(cli, cli->operand[1], &after);
	if (answer != ANSWER_DONE)
		goto out;
	diff = config_pools_diff(before, after);
	result = diff ? json_pack("{s:b, s:o}", "different", diff->change_count > 0, "changes",
				files_changes(diff))
		      : NULL;
	if (result == NULL) {
		answer = cli_fail(cli, ANSWER_FAILED, "out of memory");
		goto out;
	}
	different = diff->change_count > 0;
	if (cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE)
		files_print_changes(cli, json_object_get(result, "changes"));
	else
		answer = request_print(cli, result);
	if (answer == ANSWER_DONE && different && cli_has(cli, CLI_EXIT_CODE))
		answer = ANSWER_DIFFERENT;
out:
	json_decref(result);
	config_diff_free(diff);
	config_pools_free(before);
	config_pools_free(after);
	return answer;
}

enum answer files_diff_run(struct cli *cli)
{
	if (cli->operand_count == 2)
		return diff_files(cli);
	return cli_fail(cli, ANSWER_USAGE, "two files: ringway diff A B");
}

// Adds an argument of the dataplane.
static void add(json_t *arguments, const char *text)
{
	json_array_append_new(arguments, json_string(text));
}

static void add_number(json_t *arguments, const char *flag, uint32_t number)
{
	add(arguments, flag);
	json_array_append_new(arguments, json_sprintf("%u", number));
}

// The options after a --port belong to it.
static void add_link(json_t *arguments, const struct config_link *link)
{
	char text[ADDR_TEXT_BYTES];

	add(arguments, "--port");
	add(arguments, link->device);
	add_number(arguments, "--mtu", link->mtu);
	if (link->vlan != 0)
		add_number(arguments, "--vlan", link->vlan);
	for (uint32_t i = 0; i < link->address_count; i++) {
		addr_format(&link->addresses[i].address, text);
		add(arguments, "--address");
		json_array_append_new(
			arguments, json_sprintf("%s/%u", text, link->addresses[i].bits));
	}
	for (uint32_t i = 0; i < link->gateway_count; i++) {
		addr_format(&link->gateways[i], text);
		add(arguments, "--gateway");
		add(arguments, text);
	}
	if (link->punt[0] != '\0') {
		add(arguments, "--punt");
		add(arguments, link->punt);
	}
}

static json_t *dataplane_arguments(const struct config_node *node)
{
	const struct config_dataplane *dataplane = &node->dataplane;
	json_t *ret = json_array();
	char workers[CONFIG_WORKERS_MAX * 12] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < dataplane->worker_count && used < sizeof(workers) - 12; i++)
		used += (size_t)snprintf(workers + used, sizeof(workers) - used, "%s%u",
			i ? "," : "", dataplane->workers[i]);
	add(ret, "--run-dir");
	add(ret, node->run_dir);
	add_number(ret, "--main", dataplane->main);
	add(ret, "--workers");
	add(ret, workers);
	add_number(ret, "--flow-entries", dataplane->flow_entries);
	if (dataplane->huge_dir[0] != '\0') {
		add(ret, "--huge-dir");
		add(ret, dataplane->huge_dir);
	}
	if (dataplane->user[0] != '\0') {
		add(ret, "--user");
		add(ret, dataplane->user);
	}
	if (dataplane->idle == CONFIG_IDLE_SLEEP)
		add(ret, "--idle-sleep");
	add_number(ret, "--services", dataplane->services);
	add_number(ret, "--pools", dataplane->pools);
	add_number(ret, "--backends", dataplane->backends);
	for (uint32_t i = 0; i < dataplane->eal_count; i++) {
		add(ret, "--eal");
		add(ret, dataplane->eal[i]);
	}
	for (uint32_t i = 0; i < dataplane->port_count; i++)
		add_link(ret, &dataplane->ports[i]);
	return ret;
}

// For people and for `ringway-dataplane --args FILE`: one argument a line.
static enum answer print_arguments(struct cli *cli, json_t *arguments)
{
	json_t *result, *argument;
	enum answer answer;
	size_t i;

	if (cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE ||
		cli->output == OUTPUT_NAME) {
		json_array_foreach (arguments, i, argument) {
			fprintf(cli->out, "%s\n", json_string_value(argument));
		}
		return ANSWER_DONE;
	}
	result = json_pack("{s:O}", "arguments", arguments);
	answer =
		result ? request_print(cli, result) : cli_fail(cli, ANSWER_FAILED, "out of memory");
	json_decref(result);
	return answer;
}

enum answer files_dataplane_args_run(struct cli *cli)
{
	struct config_node *node = NULL;
	json_t *arguments;
	enum answer answer;

	if (!cli_has(cli, CLI_FILE))
		return cli_fail(cli, ANSWER_USAGE, "say which node file: -f node.yaml");
	answer = files_node(cli, cli->value[CLI_FILE], &node);
	if (answer != ANSWER_DONE)
		return answer;
	arguments = dataplane_arguments(node);
	answer = print_arguments(cli, arguments);
	json_decref(arguments);
	config_node_free(node);
	return answer;
}
