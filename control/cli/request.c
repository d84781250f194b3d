// SPDX-License-Identifier: Apache-2.0
#include "control/cli/request.h"

#include "control/cli/client.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLY_TIMEOUT_MS 60000

// Options that steer the CLI itself or stand at the top of a request: none of them is an argument of a verb.
#define NO_ARGUMENT                                                                           \
	(CLI_BIT(CLI_HELP) | CLI_BIT(CLI_VERSION) | CLI_BIT(CLI_JSON) | CLI_BIT(CLI_OUTPUT) | \
		CLI_BIT(CLI_RUN_DIR) | CLI_BIT(CLI_SOCKET) | CLI_BIT(CLI_DRY_RUN) |           \
		CLI_BIT(CLI_REASON) | CLI_BIT(CLI_GENERATION) | CLI_BIT(CLI_YES) |            \
		CLI_BIT(CLI_FILE) | CLI_BIT(CLI_NODE_FILE) | CLI_BIT(CLI_EXIT_CODE) |         \
		CLI_BIT(CLI_FOR) | CLI_BIT(CLI_TIMEOUT) | CLI_BIT(CLI_POOLS_FILE))

void request_socket_path(const struct cli *cli, char *ret, size_t ret_bytes)
{
	const char *run_dir = cli->value[CLI_RUN_DIR];

	if (cli_has(cli, CLI_SOCKET)) {
		snprintf(ret, ret_bytes, "%s", cli->value[CLI_SOCKET]);
		return;
	}
	if (run_dir == NULL)
		run_dir = getenv("RINGWAY_RUN_DIR");
	if (run_dir == NULL || run_dir[0] == '\0')
		run_dir = PROTOCOL_RUN_DIR;
	snprintf(ret, ret_bytes, "%s/%s", run_dir, PROTOCOL_SOCKET_NAME);
}

static json_t *list_value(const char *text)
{
	json_t *list = json_array();

	while (list != NULL && *text != '\0') {
		size_t length = strcspn(text, ",");

		if (length > 0)
			json_array_append_new(list, json_stringn(text, length));
		text += length + (text[length] == ',');
	}
	return list;
}

// Adds one option to the args of a request, under its name with _ for -.
static enum answer add_option(struct cli *cli, enum cli_option option, json_t *args)
{
	const struct cli_option_info *info = &cli_options[option];
	const char *text = cli->value[option];
	uint64_t number = 0;
	double real = 0;
	enum answer answer = ANSWER_DONE;
	json_t *value = NULL;
	char key[64];

	snprintf(key, sizeof(key), "%s%s", info->name, info->value == CLI_PERCENT ? "_ppm" : "");
	for (char *c = key; *c; c++) {
		if (*c == '-')
			*c = '_';
	}
	switch (info->value) {
	case CLI_FLAG:
		value = json_true();
		break;
	case CLI_TEXT:
		value = json_string(text);
		break;
	case CLI_LIST:
		value = list_value(text);
		break;
	case CLI_NUMBER:
		answer = cli_number(cli, option, 0, INT64_MAX, &number);
		value = json_integer((json_int_t)number);
		break;
	case CLI_REAL:
		answer = cli_real(cli, option, 0, 1e9, &real);
		value = json_real(real);
		break;
	case CLI_PERCENT:
		if (cli_share_parse(text) < 0)
			answer = cli_fail(cli, ANSWER_USAGE,
				"--%s: \"%s\" is no share: write 12.5%% or 0.125, in steps of 0.0001%%",
				info->name, text);
		value = json_integer(cli_share_parse(text));
		break;
	}
	if (answer == ANSWER_DONE && json_object_get(args, key) == NULL) {
		if (value == NULL || json_object_set(args, key, value) != 0)
			answer = cli_fail(
				cli, ANSWER_USAGE, "--%s: the text is no UTF-8", info->name);
	}
	json_decref(value);
	return answer;
}

// Adds the operands under their names in the command table, lower case, without brackets.
static enum answer add_operands(struct cli *cli, json_t *args)
{
	const char *names = cli->command->operands;

	for (unsigned i = 0; i < cli->operand_count; i++) {
		char key[32];
		unsigned length = 0;

		names += strspn(names, " []");
		while (*names && strchr(" []", *names) == NULL && length < sizeof(key) - 1)
			key[length++] = (char)tolower(*names++);
		key[length] = '\0';
		if (json_object_set_new(args, key, json_string(cli->operand[i])) != 0)
			return cli_fail(cli, ANSWER_USAGE, "%s: the text is no UTF-8", key);
	}
	return ANSWER_DONE;
}

static enum answer make_request(struct cli *cli, const char *verb, json_t *args, json_t **ret)
{
	json_t *request = json_pack("{s:i, s:s, s:O}", "id", 1, "verb", verb, "args", args);
	uint64_t generation = 0;

	if (request == NULL)
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	if (cli_has(cli, CLI_REASON) &&
		json_object_set_new(request, "reason", json_string(cli->value[CLI_REASON])) != 0) {
		json_decref(request);
		return cli_fail(cli, ANSWER_USAGE, "--reason: the text is no UTF-8");
	}
	if (cli_has(cli, CLI_DRY_RUN))
		json_object_set_new(request, "dry_run", json_true());
	if (cli_has(cli, CLI_GENERATION)) {
		enum answer answer = cli_number(cli, CLI_GENERATION, 0, INT64_MAX, &generation);

		if (answer != ANSWER_DONE) {
			json_decref(request);
			return answer;
		}
		json_object_set_new(request, "generation", json_integer((json_int_t)generation));
	}
	*ret = request;
	return ANSWER_DONE;
}

// The message for a daemon that cannot be reached: what works without it, and how to start it.
static enum answer say_unreachable(struct cli *cli, const char *path, int error)
{
	if (error == -EACCES || error == -EPERM)
		return cli_fail(cli, ANSWER_PERMISSION,
			"%s: not allowed to connect: join the group of the socket, or use sudo",
			path);
	if (error == -ENAMETOOLONG)
		return cli_fail(cli, ANSWER_USAGE, "%s: longer than a socket path may be", path);
	if (error == -ENOENT || error == -ECONNREFUSED)
		return cli_fail(cli, ANSWER_FAILED,
			"ringwayd does not listen on %s. Start it (systemctl start ringwayd), or name its "
			"run directory with --run-dir. validate, diff A B, ring simulate, explain -f and "
			"help work without it; the dataplane keeps forwarding",
			path);
	return cli_fail(cli, ANSWER_FAILED, "%s: %s", path, strerror(-error));
}

// Writes an error reply to stderr, or to stdout as JSON when the run asked for JSON.
static enum answer say_error(struct cli *cli, const json_t *reply)
{
	const json_t *error = json_object_get(reply, "error");
	const char *message = json_string_value(json_object_get(error, "message"));
	json_int_t code = json_integer_value(json_object_get(error, "code"));
	const json_t *detail;
	size_t i;

	if (code <= ANSWER_DONE || code >= ANSWER_COUNT)
		code = ANSWER_FAILED;
	cli_fail(cli, (enum answer)code, "%s", message ? message : answer_text((enum answer)code));
	json_array_foreach (json_object_get(error, "details"), i, detail) {
		if (json_is_string(detail))
			fprintf(cli->err, "%s\n", json_string_value(detail));
	}
	if (cli->output == OUTPUT_JSON || cli->output == OUTPUT_JSONL) {
		json_dumpf(error, cli->out,
			cli->output == OUTPUT_JSON ? JSON_INDENT(2) : JSON_COMPACT);
		fputc('\n', cli->out);
	}
	return (enum answer)code;
}

static enum answer say_lost(struct cli *cli, int error)
{
	if (error == -ETIMEDOUT)
		return cli_fail(cli, ANSWER_TIMEOUT,
			"no answer from ringwayd within %d s; the request may still be carried out: "
			"ask for status before you repeat it",
			REPLY_TIMEOUT_MS / 1000);
	if (error == -ECONNRESET)
		return cli_fail(cli, ANSWER_FAILED,
			"ringwayd closed the connection before it answered; ask for status before you "
			"repeat the request");
	return cli_fail(
		cli, ANSWER_FAILED, "the answer of ringwayd cannot be read: %s", strerror(-error));
}

enum answer request_print(struct cli *cli, json_t *result)
{
	// A stream of JSON is whole objects, one a line.
	bool lines = cli_has(cli, CLI_WATCH) && cli->output == OUTPUT_JSON;
	const struct output_shape shape = {
		lines ? NULL : cli->command->rows, cli->command->columns};
	int error = output_result(cli->out, lines ? OUTPUT_JSONL : cli->output, &shape, result);

	if (error)
		return cli_fail(cli, ANSWER_FAILED, "writing the output: %s", strerror(-error));
	return ANSWER_DONE;
}

// Takes replies until the last one. print: for each one, or NULL; then ret is where the result goes.
static enum answer take_replies(
	struct cli *cli, struct client *client, request_printer *print, json_t **ret)
{
	bool more = true;
	enum answer answer = ANSWER_DONE;

	while (more && answer == ANSWER_DONE) {
		json_t *reply = NULL;
		int error = client_receive(client, REPLY_TIMEOUT_MS, &reply);

		if (error)
			return say_lost(cli, error);
		more = json_is_true(json_object_get(reply, "more"));
		json_t *result = json_object_get(reply, "result");

		if (!json_is_true(json_object_get(reply, "ok")))
			answer = say_error(cli, reply);
		else if (print == NULL)
			*ret = json_incref(result);
		else
			answer = print(cli, result);
		if (cli_has(cli, CLI_EXIT_CODE) && answer == ANSWER_DONE &&
			json_is_true(json_object_get(result, "different")))
			answer = ANSWER_DIFFERENT;
		json_decref(reply);
	}
	return answer;
}

static enum answer exchange(
	struct cli *cli, const json_t *request, request_printer *print, json_t **ret)
{
	struct client client;
	char path[PATH_MAX];
	enum answer answer;
	int error;

	request_socket_path(cli, path, sizeof(path));
	error = client_open(path, &client);
	if (error)
		return say_unreachable(cli, path, error);
	error = client_send(&client, request);
	answer = error && error != -EPIPE ? say_lost(cli, error)
					  : take_replies(cli, &client, print, ret);
	client_close(&client);
	return answer;
}

enum answer request_ask(struct cli *cli, const char *verb, json_t *args, json_t **ret)
{
	json_t *request = NULL;
	enum answer answer = make_request(cli, verb, args, &request);

	json_decref(args);
	if (answer == ANSWER_DONE)
		answer = exchange(cli, request, NULL, ret);
	json_decref(request);
	return answer;
}

enum answer request_confirm(struct cli *cli)
{
	const char *name = cli->operand_count ? cli->operand[cli->operand_count - 1] : "yes";
	char line[256];

	if (cli_has(cli, CLI_YES) || cli_has(cli, CLI_DRY_RUN))
		return ANSWER_DONE;
	if (!isatty(STDIN_FILENO))
		return cli_fail(cli, ANSWER_USAGE,
			"this cannot be undone: add --yes (or --dry-run to see what it would do)");
	fprintf(cli->err, "type %s to go on: ", name);
	if (fgets(line, sizeof(line), stdin) == NULL)
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, name) != 0)
		return cli_fail(cli, ANSWER_REFUSED, "not confirmed; nothing was changed");
	return ANSWER_DONE;
}

// The verb and the args that the run's command, operands and options make.
static enum answer make_change(
	struct cli *cli, char verb[static PROTOCOL_VERB_BYTES_MAX], json_t *args)
{
	uint64_t options = cli_command_options(cli->command) & ~NO_ARGUMENT;
	enum answer answer =
		args ? add_operands(cli, args) : cli_fail(cli, ANSWER_FAILED, "out of memory");

	for (int i = 0; i < CLI_OPTION_COUNT && answer == ANSWER_DONE; i++) {
		if ((options & CLI_BIT(i)) && cli_has(cli, i))
			answer = add_option(cli, i, args);
	}
	snprintf(verb, PROTOCOL_VERB_BYTES_MAX, "%s%s%s", cli->command->noun,
		cli->command->verb ? "." : "", cli->command->verb ? cli->command->verb : "");
	return answer;
}

enum answer request_run_printed(struct cli *cli, json_t *args, request_printer *print)
{
	enum answer answer = ANSWER_DONE;
	json_t *request = NULL;
	char verb[PROTOCOL_VERB_BYTES_MAX];

	if (cli->command->flags & CLI_DANGER)
		answer = request_confirm(cli);
	if (answer == ANSWER_DONE)
		answer = make_change(cli, verb, args);
	if (answer == ANSWER_DONE)
		answer = make_request(cli, verb, args, &request);
	json_decref(args);
	if (answer == ANSWER_DONE)
		answer = exchange(cli, request, print, NULL);
	json_decref(request);
	return answer;
}

enum answer request_change(struct cli *cli, bool dry_run, json_t **ret)
{
	json_t *args = json_object(), *request = NULL;
	char verb[PROTOCOL_VERB_BYTES_MAX];
	enum answer answer = make_change(cli, verb, args);

	if (answer == ANSWER_DONE)
		answer = make_request(cli, verb, args, &request);
	json_decref(args);
	if (answer == ANSWER_DONE && dry_run)
		json_object_set_new(request, "dry_run", json_true());
	if (answer == ANSWER_DONE)
		answer = exchange(cli, request, NULL, ret);
	json_decref(request);
	return answer;
}

enum answer request_run(struct cli *cli)
{
	return request_run_printed(cli, json_object(), request_print);
}
