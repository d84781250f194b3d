// SPDX-License-Identifier: Apache-2.0
#include "control/cli/change.h"

#include "control/cli/files.h"
#include "control/cli/request.h"

#include <string.h>

static bool for_people(const struct cli *cli)
{
	return cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE;
}

static enum answer print_change(struct cli *cli, json_t *result)
{
	const char *dataplane = json_string_value(json_object_get(result, "dataplane"));

	if (!for_people(cli))
		return request_print(cli, result);
	files_print_changes(cli, json_object_get(result, "changes"));
	fprintf(cli->err, "%s\n", json_string_value(json_object_get(result, "text")));
	if (dataplane != NULL && dataplane[0] != '\0')
		fprintf(cli->err, "dataplane: %s\n", dataplane);
	return ANSWER_DONE;
}

enum answer change_run(struct cli *cli)
{
	return request_run_printed(cli, json_object(), print_change);
}

static json_int_t number_at(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

// rx = forwarded + punted + answered + drops, as an equation that either holds or says by how much it does not.
static void print_balance(struct cli *cli, const json_t *balance)
{
	fprintf(cli->out,
		"rx %lld = forwarded %lld + punted %lld + answered %lld + dropped %lld   ",
		(long long)number_at(balance, "rx_packets"),
		(long long)number_at(balance, "forwarded"), (long long)number_at(balance, "punted"),
		(long long)number_at(balance, "answered"),
		(long long)number_at(balance, "dropped"));
	if (json_is_true(json_object_get(balance, "balanced")))
		fputs("balanced\n", cli->out);
	else if (number_at(balance, "difference") > 0 &&
		number_at(balance, "difference") <= number_at(balance, "in_flight_max"))
		fprintf(cli->out, "%lld in flight\n", (long long)number_at(balance, "difference"));
	else
		fprintf(cli->out, "off by %lld\n", (long long)number_at(balance, "difference"));
}

// Rows of an array whose count is not zero; all of them with -o wide.
static json_t *not_zero(const json_t *rows, const char *count, bool all)
{
	json_t *ret = json_array(), *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		if (all || number_at(row, count) != 0)
			json_array_append(ret, row);
	}
	return ret;
}

static enum answer print_rows(
	struct cli *cli, const json_t *rows, const char *count, const struct cli_column *columns)
{
	struct output_shape shape = {"rows", columns};
	json_t *kept = not_zero(rows, count, cli->output == OUTPUT_WIDE);
	int error = 0;

	if (json_array_size(kept) > 0) {
		json_t *result = json_pack("{s:O}", "rows", kept);

		fputc('\n', cli->out);
		error = output_result(cli->out, cli->output, &shape, result);
		json_decref(result);
	}
	json_decref(kept);
	return error ? cli_fail(cli, ANSWER_FAILED, "writing the output failed") : ANSWER_DONE;
}

static enum answer print_stats(struct cli *cli, json_t *result)
{
	static const struct cli_column counters[] = {{"COUNTER", "name", false},
		{"COUNT", "count", false}, {"MEANING", "text", false}, {0}};
	static const struct cli_column drops[] = {{"DROPPED", "name", false},
		{"STAGE", "stage", false}, {"PACKETS", "packets", false}, {"WHY", "text", false},
		{0}};
	static const struct cli_column pools[] = {{"POOL", "name", false},
		{"FLOWS OLD RING", "new_flows_old", false},
		{"FLOWS NEW RING", "new_flows_new", false}, {"PACKETS OLD", "packets_old", false},
		{"PACKETS NEW", "packets_new", false}, {"DROPS OLD", "drops_old", false},
		{"DROPS NEW", "drops_new", false}, {0}};
	enum answer answer;

	if (!for_people(cli))
		return request_print(cli, result);
	print_balance(cli, json_object_get(result, "balance"));
	answer = print_rows(cli, json_object_get(result, "counters"), "count", counters);
	if (answer == ANSWER_DONE)
		answer = print_rows(cli, json_object_get(result, "drops"), "packets", drops);
	if (answer == ANSWER_DONE) {
		json_t *rows = json_object_get(result, "pools");
		struct output_shape shape = {"pools", pools};

		if (json_array_size(rows) > 0) {
			fputc('\n', cli->out);
			output_result(cli->out, cli->output, &shape, result);
		}
	}
	return answer;
}

enum answer stats_run(struct cli *cli)
{
	return request_run_printed(cli, json_object(), print_stats);
}
