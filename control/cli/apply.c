// SPDX-License-Identifier: Apache-2.0
#include "control/cli/apply.h"

#include "control/cli/files.h"
#include "control/cli/request.h"

#include <stdlib.h>
#include <string.h>

// Asks ringwayd with the text of the file of -f.
static enum answer ask(struct cli *cli, const char *verb, json_t **ret)
{
	const char *path = cli->value[CLI_FILE];
	char *text = NULL;
	size_t length = 0;
	enum answer answer;
	json_t *args;

	if (path == NULL)
		return cli_fail(cli, ANSWER_USAGE, "say which file: -f pools.yaml");
	answer = files_load(cli, path, &text, &length);
	if (answer != ANSWER_DONE)
		return answer;
	// Fails for text that is no UTF-8, which no pools file is.
	args = json_pack("{s:s%, s:s, s:b}", "pools", text, length, "file", path, "force",
		cli_has(cli, CLI_FORCE));
	free(text);
	if (args == NULL)
		return cli_fail(cli, ANSWER_INVALID, "%s: is no UTF-8 text", path);
	return request_ask(cli, verb, args, ret);
}

// "web+nvme: 12.5 % of its keys move, hottest 1.05 x -> 1.07 x, 1.2 MiB -> 0.9 MiB a worker"
static void print_moves(struct cli *cli, const json_t *moves)
{
	const json_t *move;
	size_t i;

	json_array_foreach (moves, i, move) {
		double before = json_number_value(json_object_get(move, "hottest_before"));

		fprintf(cli->out, "  ring %s: ", json_string_value(json_object_get(move, "ring")));
		if (before > 0)
			fprintf(cli->out, "%.2f %% of its keys move, hottest %.2f x -> ",
				100 * json_number_value(json_object_get(move, "moved_ratio")),
				before);
		else
			fputs("new, hottest ", cli->out);
		fprintf(cli->out, "%.2f x of its share, %.1f -> %.1f KiB a worker\n",
			json_number_value(json_object_get(move, "hottest_after")),
			json_number_value(json_object_get(move, "worker_bytes_before")) / 1024,
			json_number_value(json_object_get(move, "worker_bytes_after")) / 1024);
	}
}

// What a change did, for people: the changes, then what became of them.
static enum answer print(struct cli *cli, json_t *result)
{
	const char *dataplane = json_string_value(json_object_get(result, "dataplane"));

	if (cli->output != OUTPUT_TABLE && cli->output != OUTPUT_WIDE)
		return request_print(cli, result);
	files_print_changes(cli, json_object_get(result, "changes"));
	print_moves(cli, json_object_get(result, "moves"));
	fprintf(cli->err, "%s\n", json_string_value(json_object_get(result, "text")));
	if (dataplane != NULL && dataplane[0] != '\0')
		fprintf(cli->err, "dataplane: %s\n", dataplane);
	return ANSWER_DONE;
}

enum answer apply_run(struct cli *cli)
{
	json_t *result = NULL;
	enum answer answer = ask(cli, "apply", &result);

	if (answer == ANSWER_DONE)
		answer = print(cli, result);
	json_decref(result);
	return answer;
}

enum answer apply_diff_run(struct cli *cli)
{
	json_t *result = NULL;
	enum answer answer;

	if (cli->operand_count == 2)
		return files_diff_run(cli);
	if (cli->operand_count == 1)
		return cli_fail(cli, ANSWER_USAGE,
			"diff takes two files, or -f FILE to compare with the node");
	answer = ask(cli, "diff", &result);
	if (answer == ANSWER_DONE || answer == ANSWER_DIFFERENT) {
		enum answer printed = print(cli, result);

		answer = printed == ANSWER_DONE ? answer : printed;
	}
	json_decref(result);
	return answer;
}

enum answer apply_export_run(struct cli *cli)
{
	json_t *result = NULL;
	enum answer answer = request_ask(cli, "config.export", json_object(), &result);

	if (answer == ANSWER_DONE && (cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE))
		fputs(json_string_value(json_object_get(result, "pools")), cli->out);
	else if (answer == ANSWER_DONE)
		answer = request_print(cli, result);
	json_decref(result);
	return answer;
}
