// SPDX-License-Identifier: Apache-2.0
// `cutover watch`: the page of `cutover show` and what flows do, again and again.
#include "control/cli/cutover.h"
#include "control/cli/cutover_page.h"
#include "control/cli/cutover_rates.h"
#include "control/cli/request.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_DEFAULT_S 2
#define INTERVAL_MAX_S     3600u
#define TRACES_SHOWN       8u
#define SHIFT_DEFAULT      6

struct watch {
	uint64_t interval_s;
	uint64_t count; // pages
	json_t *memory; // of cutover_rates_add()
	json_t *traces; // the newest first; NULL: not asked for
	bool on_terminal;
};

unsigned cutover_width(void)
{
	struct winsize size = {0};

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Tells whether a byte begins a character.
static bool is_first(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

// Draws over the page before: each line is cleared to its end, and what is left below too. What does not fit the terminal
// is cut, or it would scroll.
static void redraw(FILE *out, const char *text)
{
	struct winsize size = {0};
	unsigned lines = 1, columns = 0;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fputs("\033[H", out);
	for (const char *c = text; *c; c++) {
		if (*c == '\n') {
			fputs("\033[K", out);
			columns = 0;
			if (size.ws_row > 2 && ++lines >= size.ws_row)
				break;
		} else {
			columns += is_first(*c);
		}
		if (*c == '\n' || size.ws_col == 0 || columns <= size.ws_col)
			fputc(*c, out);
	}
	if (lines >= size.ws_row && size.ws_row > 2)
		fputs("\nthere is more: a higher terminal, or | cat", out);
	fputs("\033[K\033[J", out);
}

static enum answer print_page(struct cli *cli, const struct watch *watch, const json_t *cutover)
{
	struct cutover_page page = {
		.is_live = true, .width = watch->on_terminal ? cutover_width() : 0};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (out == NULL)
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	cutover_page_print(out, cutover, &page);
	if (fclose(out) != 0) {
		free(text);
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	}
	if (watch->on_terminal)
		redraw(cli->out, text);
	else
		fprintf(cli->out, "%s\n", text);
	free(text);
	fflush(cli->out);
	return ferror(cli->out) ? cli_fail(cli, ANSWER_FAILED, "writing the output failed")
				: ANSWER_DONE;
}

// Programs get whole objects, one a line.
static enum answer print_object(struct cli *cli, json_t *cutover)
{
	static const struct output_shape shape;
	enum output_format format = cli->output == OUTPUT_JSON ? OUTPUT_JSONL : cli->output;
	int error = output_result(cli->out, format, &shape, cutover);

	return error ? cli_fail(cli, ANSWER_FAILED, "writing the output: %s", strerror(-error))
		     : ANSWER_DONE;
}

// Takes what was traced since the last page, and keeps the newest.
static enum answer take_traces(struct cli *cli, struct watch *watch, json_t *cutover)
{
	json_t *result = NULL, *trace;
	enum answer answer;
	size_t i;

	if (watch->traces == NULL)
		return ANSWER_DONE;
	answer = request_ask(cli, "trace.read", json_object(), &result);
	json_array_foreach (json_object_get(result, "traces"), i, trace)
		json_array_insert(watch->traces, 0, trace);
	while (json_array_size(watch->traces) > TRACES_SHOWN)
		json_array_remove(watch->traces, TRACES_SHOWN);
	json_decref(result);
	json_object_set(cutover, "traces", watch->traces);
	return answer;
}

static enum answer show_once(struct cli *cli, struct watch *watch)
{
	bool for_people = cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE;
	json_t *cutover = NULL;
	enum answer answer = request_ask(
		cli, "cutover.show", json_pack("{s:s}", "pool", cli->operand[0]), &cutover);

	if (answer != ANSWER_DONE)
		return answer;
	cutover_rates_add(watch->memory, cutover);
	answer = take_traces(cli, watch, cutover);
	if (answer == ANSWER_DONE)
		answer = for_people ? print_page(cli, watch, cutover) : print_object(cli, cutover);
	json_decref(cutover);
	return answer;
}

static enum answer trace_begin(struct cli *cli, struct watch *watch)
{
	uint64_t shift = SHIFT_DEFAULT;
	json_t *result = NULL;
	enum answer answer = cli_number(cli, CLI_SHIFT, 0, 31, &shift);

	if (answer != ANSWER_DONE || !cli_has(cli, CLI_TRACES))
		return answer;
	watch->traces = json_array();
	answer = request_ask(
		cli, "trace.start", json_pack("{s:I}", "shift", (json_int_t)shift), &result);
	json_decref(result);
	return answer;
}

// Who is interrupted instead leaves it to the lease of the traces.
static void trace_end(struct cli *cli, struct watch *watch)
{
	json_t *result = NULL;

	if (watch->traces != NULL)
		request_ask(cli, "trace.stop", json_object(), &result);
	json_decref(result);
}

enum answer cutover_watch_run(struct cli *cli)
{
	struct watch watch = {.interval_s = INTERVAL_DEFAULT_S,
		.count = UINT64_MAX,
		.on_terminal = isatty(STDOUT_FILENO)};
	enum answer answer = cli_number(cli, CLI_INTERVAL, 1, INTERVAL_MAX_S, &watch.interval_s);

	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_COUNT, 1, INT64_MAX, &watch.count);
	if (answer == ANSWER_DONE)
		answer = trace_begin(cli, &watch);
	watch.memory = json_object();
	for (uint64_t i = 0; answer == ANSWER_DONE && i < watch.count; i++) {
		struct timespec pause = {.tv_sec = (time_t)watch.interval_s};

		if (i > 0)
			nanosleep(&pause, NULL);
		answer = show_once(cli, &watch);
	}
	trace_end(cli, &watch);
	json_decref(watch.memory);
	json_decref(watch.traces);
	return answer;
}
