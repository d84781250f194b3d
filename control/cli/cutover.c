// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cutover.h"

#include "control/cli/cutover_page.h"
#include "control/cli/files.h"
#include "control/cli/request.h"
#include "control/cutover/spec.h"
#include "control/cutover/state.h"

#include <string.h>
#include <time.h>

#define POLL_MS           500u
#define TIMEOUT_DEFAULT_S 600u
#define TIMEOUT_MAX_S     864000u

static bool for_people(const struct cli *cli)
{
	return cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE;
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void share_at(const json_t *object, char ret[static CUTOVER_SHARE_TEXT_BYTES])
{
	cutover_share_format(
		(uint32_t)json_integer_value(json_object_get(object, "share_ppm")), ret);
}

// Who follows and who does not: the names that make an exit code of "partial".
static enum answer print_nodes(struct cli *cli, const json_t *nodes)
{
	unsigned behind = 0;
	json_t *node;
	size_t i;

	json_array_foreach (nodes, i, node) {
		bool follows = json_is_true(json_object_get(node, "follows"));
		char share[CUTOVER_SHARE_TEXT_BYTES];

		share_at(node, share);
		behind += !follows;
		fprintf(cli->out, "%-20s %-12s %-9s %s\n", text_at(node, "node"),
			text_at(node, "datacenter"), share,
			follows ? "follows" : "does not follow yet");
	}
	if (behind == 0)
		return ANSWER_DONE;
	return cli_fail(cli, ANSWER_PARTIAL,
		"%u of %zu nodes have not said yet that they follow; they will when they can",
		behind, json_array_size(nodes));
}

static enum answer print_change(struct cli *cli, json_t *result)
{
	const json_t *nodes = json_object_get(result, "nodes");
	bool back = strcmp(cli->command->verb, "rollback") == 0 && nodes != NULL &&
		json_is_true(json_object_get(result, "changed"));

	if (!for_people(cli))
		return request_print(cli, result);
	files_print_changes(cli, json_object_get(result, "changes"));
	fprintf(cli->err, "%s", text_at(result, "text"));
	if (json_object_get(result, "revision") != NULL)
		fprintf(cli->err, " (revision %lld, %lld ms)",
			(long long)json_integer_value(json_object_get(result, "revision")),
			(long long)json_integer_value(json_object_get(result, "took_ms")));
	fputc('\n', cli->err);
	if (text_at(result, "dataplane")[0] != '\0')
		fprintf(cli->err, "dataplane: %s\n", text_at(result, "dataplane"));
	return back ? print_nodes(cli, nodes) : ANSWER_DONE;
}

enum answer cutover_change_run(struct cli *cli)
{
	return request_run_printed(cli, json_object(), print_change);
}

// What established flows a rollback concerns; in the words of an estimate, since it is one.
static void print_established(struct cli *cli, const json_t *established)
{
	const json_t *moving = json_object_get(established, "moving");
	json_int_t silent = json_integer_value(json_object_get(established, "nodes_silent"));

	fprintf(cli->err,
		"established: %lld flows are on the new ring, as %lld nodes counted them up to 15 s ago",
		(long long)json_integer_value(json_object_get(established, "live_new")),
		(long long)json_integer_value(json_object_get(established, "nodes")));
	if (silent != 0)
		fprintf(cli->err, "; %lld nodes gave no figure", (long long)silent);
	fputc('\n', cli->err);
	if (json_is_integer(moving))
		fprintf(cli->err,
			"about %lld of them get another backend at their next packet and break: the "
			"rings differ for %.3g%% of %lld sampled flows\n",
			(long long)json_integer_value(moving),
			100 * json_number_value(json_object_get(established, "differ_ratio")),
			(long long)json_integer_value(json_object_get(established, "sampled")));
	else
		fputs("how many get another backend and break is not known: no flow was sampled\n",
			cli->err);
}

enum answer cutover_rollback_run(struct cli *cli)
{
	json_t *preview = NULL, *result = NULL;
	json_t *established;
	enum answer answer;

	if (!cli_has(cli, CLI_MOVE_ESTABLISHED))
		return cutover_change_run(cli);
	answer = request_change(cli, true, &preview);
	if (answer != ANSWER_DONE)
		return answer;
	established = json_object_get(preview, "established");
	if (for_people(cli))
		print_established(cli, established);
	answer = request_confirm(cli);
	if (answer == ANSWER_DONE && cli_has(cli, CLI_DRY_RUN))
		result = json_incref(preview);
	else if (answer == ANSWER_DONE)
		answer = request_change(cli, false, &result);
	if (answer == ANSWER_DONE) {
		json_object_set(result, "established", established);
		answer = print_change(cli, result);
	}
	json_decref(preview);
	json_decref(result);
	return answer;
}

// --- show ------------------------------------------------------------------------------------------

static enum answer print_show(struct cli *cli, json_t *result)
{
	struct cutover_page page = {.width = cutover_width()};

	if (!for_people(cli))
		return request_print(cli, result);
	cutover_page_print(cli->out, result, &page);
	return fflush(cli->out) == 0 ? ANSWER_DONE
				     : cli_fail(cli, ANSWER_FAILED, "writing the output failed");
}

enum answer cutover_show_run(struct cli *cli)
{
	return request_run_printed(cli, json_object(), print_show);
}

// --- wait ------------------------------------------------------------------------------------------

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum answer read_goal(struct cli *cli, enum cutover_state *ret)
{
	const char *text = cli->value[CLI_FOR];
	char name[32] = "";

	if (text != NULL && strncmp(text, "state=", 6) == 0)
		snprintf(name, sizeof(name), "%s", text + 6);
	for (char *c = name; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
	if (cutover_state_find(name, ret))
		return ANSWER_DONE;
	return cli_fail(cli, ANSWER_USAGE, "--for=state=STATE: staged, gated, full, retired, ...");
}

// From some states others cannot be reached any more; waiting for them would only pass the time.
static bool hopeless(enum cutover_state now, enum cutover_state goal)
{
	if (now == goal)
		return false;
	if (now == CUTOVER_RETIRED || now == CUTOVER_DISCARDED)
		return true;
	if (now == CUTOVER_ROLLED_BACK)
		return goal != CUTOVER_DISCARDED;
	return now == CUTOVER_ROLLING_BACK && goal != CUTOVER_ROLLED_BACK &&
		goal != CUTOVER_DISCARDED;
}

static enum answer show(struct cli *cli, json_t **ret)
{
	return request_ask(cli, "cutover.show", json_pack("{s:s}", "pool", cli->operand[0]), ret);
}

enum answer cutover_wait_run(struct cli *cli)
{
	uint64_t timeout_s = TIMEOUT_DEFAULT_S;
	enum cutover_state goal, now = CUTOVER_PLANNED;
	enum answer answer = read_goal(cli, &goal);

	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_TIMEOUT, 0, TIMEOUT_MAX_S, &timeout_s);
	if (answer != ANSWER_DONE)
		return answer;
	for (uint64_t end_ms = now_ms() + timeout_s * 1000;;) {
		struct timespec slice = {.tv_nsec = POLL_MS * 1000000};
		json_t *cutover = NULL;

		answer = show(cli, &cutover);
		if (answer != ANSWER_DONE)
			return answer;
		cutover_state_find(text_at(cutover, "state"), &now);
		json_decref(cutover);
		if (now == goal)
			return ANSWER_DONE;
		if (hopeless(now, goal))
			return cli_fail(cli, ANSWER_FAILED, "it is %s and will not be %s any more",
				cutover_state_name(now), cutover_state_name(goal));
		if (now_ms() >= end_ms)
			return cli_fail(cli, ANSWER_TIMEOUT, "it is still %s after %llu s",
				cutover_state_name(now), (unsigned long long)timeout_s);
		nanosleep(&slice, NULL);
	}
}

// --- ring verify -----------------------------------------------------------------------------------

static enum answer print_verify(struct cli *cli, json_t *result)
{
	enum answer answer = request_print(cli, result);

	if (answer != ANSWER_DONE || json_is_true(json_object_get(result, "equal")))
		return answer;
	return cli_fail(cli, ANSWER_DIFFERENT, "digests differ");
}

enum answer ring_verify_run(struct cli *cli)
{
	return request_run_printed(cli, json_object(), print_verify);
}
