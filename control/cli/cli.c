// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cli.h"

#include "control/cli/help.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMON_OPTIONS                                                                        \
	(CLI_BIT(CLI_HELP) | CLI_BIT(CLI_VERSION) | CLI_BIT(CLI_JSON) | CLI_BIT(CLI_OUTPUT) | \
		CLI_BIT(CLI_RUN_DIR) | CLI_BIT(CLI_SOCKET))
#define CHANGE_OPTIONS (CLI_BIT(CLI_DRY_RUN) | CLI_BIT(CLI_REASON) | CLI_BIT(CLI_GENERATION))

// getopt_long() values of options without a letter; letters stay below.
#define LONG_ONLY 256

static void print_mark(struct cli *cli)
{
	const char *no_color = getenv("NO_COLOR");
	bool color = isatty(fileno(cli->err)) && (no_color == NULL || no_color[0] == '\0');

	fputs(color ? "\033[1;31mringway:\033[0m " : "ringway: ", cli->err);
}

enum answer cli_fail(struct cli *cli, enum answer answer, const char *format, ...)
{
	va_list arguments;

	print_mark(cli);
	va_start(arguments, format);
	vfprintf(cli->err, format, arguments);
	va_end(arguments);
	fputc('\n', cli->err);
	return answer;
}

const struct cli_command *cli_command_find(const char *noun, const char *verb)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		const struct cli_command *command = &cli_commands[i];

		if (strcmp(command->noun, noun) != 0)
			continue;
		if (verb == NULL ? command->verb == NULL
				 : command->verb && strcmp(command->verb, verb) == 0)
			return command;
	}
	return NULL;
}

uint64_t cli_command_options(const struct cli_command *command)
{
	uint64_t options = COMMON_OPTIONS | command->options;

	if (command->flags & CLI_MUTATES)
		options |= CHANGE_OPTIONS;
	if (command->flags & CLI_STREAMS)
		options |= CLI_BIT(CLI_WATCH);
	if (command->flags & CLI_DANGER)
		options |= CLI_BIT(CLI_YES);
	return options;
}

static bool noun_exists(const char *noun)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (strcmp(cli_commands[i].noun, noun) == 0)
			return true;
	}
	return false;
}

// Makes the tables of getopt_long() for a set of options. longs: CLI_OPTION_COUNT + 1 entries.
static void make_getopt(uint64_t options, struct option *longs, char *letters)
{
	unsigned count = 0;

	// A colon in front: a missing argument is told apart from an unknown option.
	*letters++ = ':';
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		const struct cli_option_info *info = &cli_options[i];

		if (!(options & CLI_BIT(i)))
			continue;
		longs[count++] = (struct option){info->name,
			info->value == CLI_FLAG ? no_argument : required_argument, NULL,
			LONG_ONLY + i};
		if (info->letter != 0) {
			*letters++ = info->letter;
			if (info->value != CLI_FLAG)
				*letters++ = ':';
		}
	}
	*letters = '\0';
	longs[count] = (struct option){0};
}

static int option_of(int found, uint64_t options)
{
	if (found >= LONG_ONLY)
		return found - LONG_ONLY;
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		if ((options & CLI_BIT(i)) && cli_options[i].letter == found)
			return i;
	}
	return -1;
}

// Reads options into the run, and moves the rest of the words to the front of argv.
// stop: at the first word that is no option. Returns the number of words, or -1 after a message.
static int take_options(struct cli *cli, uint64_t options, bool stop, int argc, char **argv)
{
	struct option longs[CLI_OPTION_COUNT + 1];
	char letters[2 * CLI_OPTION_COUNT + 3];
	int found;

	letters[0] = '+';
	make_getopt(options, longs, stop ? letters + 1 : letters);
	opterr = 0;
	optind = 0; // glibc: start over
	while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const char *word = argv[optind - 1];

		if (found == ':') {
			cli_fail(cli, ANSWER_USAGE, "%s needs an argument", word);
			return -1;
		}
		if (found == '?') {
			cli_fail(cli, ANSWER_USAGE, "no such option here: %s", word);
			return -1;
		}
		cli->value[option_of(found, options)] = optarg ? optarg : "";
	}
	return argc - optind;
}

static enum answer take_output(struct cli *cli)
{
	const char *name = cli->value[CLI_OUTPUT];
	int format = name ? output_format_of(name) : OUTPUT_TABLE;

	if (format < 0)
		return cli_fail(cli, ANSWER_USAGE,
			"-o: \"%s\" is no format: table, wide, json, jsonl, yaml or name", name);
	cli->output = cli_has(cli, CLI_JSON) ? OUTPUT_JSON : (enum output_format)format;
	return ANSWER_DONE;
}

// Operands that must be there, and all that may be: the words of the table, those in brackets are optional.
static void count_operands(const char *names, unsigned *ret_least, unsigned *ret_most)
{
	*ret_least = 0;
	*ret_most = 0;
	while (names && *names) {
		bool optional = *names == '[';
		size_t length = strcspn(names, " ");

		(*ret_most)++;
		if (!optional)
			(*ret_least)++;
		names += length;
		names += strspn(names, " ");
	}
}

static enum answer take_operands(struct cli *cli, int count, char **words)
{
	unsigned least, most;

	count_operands(cli->command->operands, &least, &most);
	if ((unsigned)count < least || (unsigned)count > most) {
		enum answer answer = cli_fail(cli, ANSWER_USAGE, "%s: %s",
			(unsigned)count < least ? "something is missing" : "too many words",
			(unsigned)count < least ? cli->command->operands : words[most]);

		fputs("usage: ", cli->err);
		help_usage(cli->err, cli->command);
		return answer;
	}
	for (int i = 0; i < count; i++) {
		if (words[i][0] == '\0')
			return cli_fail(cli, ANSWER_USAGE, "an empty word is no name");
		cli->operand[i] = words[i];
	}
	cli->operand_count = (unsigned)count;
	return ANSWER_DONE;
}

static enum answer run_command(struct cli *cli, int argc, char **argv)
{
	int count = take_options(cli, cli_command_options(cli->command), false, argc, argv);
	enum answer answer;

	if (count < 0)
		return ANSWER_USAGE;
	if (cli_has(cli, CLI_HELP)) {
		help_command(cli->out, cli->command);
		return ANSWER_DONE;
	}
	answer = take_output(cli);
	if (answer == ANSWER_DONE)
		answer = take_operands(cli, count, argv + argc - count);
	if (answer == ANSWER_DONE)
		answer = cli->command->run(cli);
	// A full disk or a closed pipe must not look like success.
	if (answer == ANSWER_DONE && (fflush(cli->out) || ferror(cli->out)))
		answer = cli_fail(cli, ANSWER_FAILED, "writing the output: %s", strerror(errno));
	return answer;
}

static enum answer say_no_command(struct cli *cli, const char *noun, const char *verb)
{
	if (!noun_exists(noun)) {
		cli_fail(cli, ANSWER_USAGE, "no such command: %s", noun);
		help_nouns(cli->err);
		return ANSWER_USAGE;
	}
	if (verb != NULL)
		cli_fail(cli, ANSWER_USAGE, "%s has no verb %s", noun, verb);
	else
		cli_fail(cli, ANSWER_USAGE, "%s needs a verb", noun);
	help_noun(cli->err, noun);
	return ANSWER_USAGE;
}

// Finds the command behind the noun at words[0], and runs it.
static enum answer dispatch(struct cli *cli, int count, char **words)
{
	int used = 1;

	cli->command = cli_command_find(words[0], NULL);
	if (cli->command == NULL && count > 1) {
		if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) {
			if (!noun_exists(words[0]))
				return say_no_command(cli, words[0], NULL);
			help_noun(cli->out, words[0]);
			return ANSWER_DONE;
		}
		cli->command = cli_command_find(words[0], words[1]);
		used = 2;
	}
	if (cli->command == NULL)
		return say_no_command(cli, words[0], count > 1 ? words[1] : NULL);
	// getopt takes the word before the first option for the name of the program.
	return run_command(cli, count - used + 1, words + used - 1);
}

int cli_main(int argc, char **argv, FILE *out, FILE *err)
{
	struct cli cli = {.out = out, .err = err};
	int count = take_options(&cli, COMMON_OPTIONS, true, argc, argv);

	if (count < 0)
		return ANSWER_USAGE;
	if (cli_has(&cli, CLI_VERSION)) {
		fprintf(out, "ringway %s\n", RINGWAY_VERSION);
		return ANSWER_DONE;
	}
	if (cli_has(&cli, CLI_HELP)) {
		help_all(out);
		return ANSWER_DONE;
	}
	if (count == 0) {
		help_all(err);
		return ANSWER_USAGE;
	}
	return (int)dispatch(&cli, count, argv + argc - count);
}
