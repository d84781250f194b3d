// SPDX-License-Identifier: Apache-2.0
#include "control/cli/trace.h"

#include "control/cli/request.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define SHIFT_DEFAULT 6
#define SECONDS_MAX   3600u
#define COUNT_MAX     10000000u
#define PAUSE_NS      200000000

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *text_at(const json_t *row, const char *name)
{
	const char *text = json_string_value(json_object_get(row, name));

	return text ? text : "-";
}

void trace_print(FILE *out, const json_t *row)
{
	fprintf(out,
		"%.23s %s %s > %s %s: old %s, new %s, bucket %lld %s %lld -> %s (%s, %s, worker %lld)\n",
		text_at(row, "time"), text_at(row, "protocol"), text_at(row, "source"),
		text_at(row, "destination"), text_at(row, "service"), text_at(row, "old_ring_pick"),
		text_at(row, "new_ring_pick"),
		(long long)json_integer_value(json_object_get(row, "bucket")),
		json_is_true(json_object_get(row, "uses_new")) ? "<" : ">=",
		(long long)json_integer_value(json_object_get(row, "threshold")),
		text_at(row, "backend"), text_at(row, "table"), text_at(row, "entry"),
		(long long)json_integer_value(json_object_get(row, "worker")));
}

static void print_row(struct cli *cli, const json_t *row)
{
	if (cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE) {
		trace_print(cli->out, row);
		return;
	}
	json_dumpf(row, cli->out, JSON_COMPACT);
	fputc('\n', cli->out);
}

struct limits {
	uint64_t count;
	double end_s;
	const char *service; // NULL: all
};

// Prints the rows of one reading. Returns how many.
static uint64_t print_rows(
	struct cli *cli, const json_t *result, const struct limits *limits, uint64_t printed)
{
	const json_t *row;
	uint64_t more = 0;
	size_t i;

	json_array_foreach (json_object_get(result, "traces"), i, row) {
		if (printed + more >= limits->count)
			break;
		if (limits->service != NULL &&
			strcmp(text_at(row, "service"), limits->service) != 0)
			continue;
		print_row(cli, row);
		more++;
	}
	fflush(cli->out);
	return more;
}

static enum answer follow(struct cli *cli, const struct limits *limits)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t printed = 0, lost = 0;
	enum answer answer = ANSWER_DONE;

	while (answer == ANSWER_DONE && !interrupted && printed < limits->count &&
		now_s() < limits->end_s) {
		json_t *result = NULL;

		answer = request_ask(cli, "trace.read", json_object(), &result);
		if (answer == ANSWER_DONE) {
			printed += print_rows(cli, result, limits, printed);
			lost += (uint64_t)json_integer_value(json_object_get(result, "lost"));
		}
		json_decref(result);
		if (ferror(cli->out))
			break;
		nanosleep(&pause, NULL);
	}
	if (lost > 0)
		fprintf(cli->err, "%llu traces were lost: a larger --shift samples fewer flows\n",
			(unsigned long long)lost);
	return answer;
}

enum answer trace_selections_run(struct cli *cli)
{
	uint64_t shift = SHIFT_DEFAULT, count = COUNT_MAX, seconds = SECONDS_MAX;
	struct sigaction action = {.sa_handler = on_signal}, before;
	json_t *result = NULL;
	enum answer answer, stopped;

	if (cli_number(cli, CLI_SHIFT, 0, 31, &shift) != ANSWER_DONE ||
		cli_number(cli, CLI_COUNT, 1, COUNT_MAX, &count) != ANSWER_DONE ||
		cli_number(cli, CLI_SECONDS, 1, SECONDS_MAX, &seconds) != ANSWER_DONE)
		return ANSWER_USAGE;
	answer = request_ask(
		cli, "trace.start", json_pack("{s:I}", "shift", (json_int_t)shift), &result);
	json_decref(result);
	result = NULL;
	if (answer != ANSWER_DONE)
		return answer;
	sigaction(SIGINT, &action, &before);
	const struct limits limits = {count, now_s() + (double)seconds, cli->value[CLI_SERVICE]};

	answer = follow(cli, &limits);
	sigaction(SIGINT, &before, NULL);
	stopped = request_ask(cli, "trace.stop", json_object(), &result);
	json_decref(result);
	return answer == ANSWER_DONE ? stopped : answer;
}
