// SPDX-License-Identifier: Apache-2.0
#include "control/cli/help.h"

#include <string.h>

#define TEXT_COLUMNS 80

// Prints text filled to TEXT_COLUMNS, each line indented; an empty line in the text stays one.
static void print_filled(FILE *out, const char *text, int indent)
{
	int column = 0;

	while (*text) {
		int length = (int)strcspn(text, " \n");

		if (column > 0 && column + 1 + length > TEXT_COLUMNS) {
			fputc('\n', out);
			column = 0;
		}
		if (length > 0) {
			column += fprintf(out, "%*s%.*s", column ? 1 : indent, "", length, text);
			text += length;
		}
		if (*text == '\n') {
			fputc('\n', out);
			column = 0;
		}
		text += *text != '\0';
	}
	if (column > 0)
		fputc('\n', out);
}

static void print_words(FILE *out, const struct cli_command *command)
{
	fprintf(out, "ringway %s", command->noun);
	if (command->verb != NULL)
		fprintf(out, " %s", command->verb);
}

void help_usage(FILE *out, const struct cli_command *command)
{
	uint64_t common = cli_command_options(&(struct cli_command){0});

	print_words(out, command);
	if (command->operands != NULL)
		fprintf(out, " %s", command->operands);
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		const struct cli_option_info *info = &cli_options[i];

		if (!(cli_command_options(command) & ~common & CLI_BIT(i)))
			continue;
		fprintf(out, " [--%s%s%s]", info->name, info->argument ? " " : "",
			info->argument ? info->argument : "");
	}
	fputc('\n', out);
}

static void print_option(FILE *out, int option)
{
	const struct cli_option_info *info = &cli_options[option];
	char letter[8] = "    ";
	int width;

	if (info->letter != 0)
		snprintf(letter, sizeof(letter), "-%c, ", info->letter);
	width = fprintf(out, "  %s--%s%s%s", letter, info->name, info->argument ? " " : "",
		info->argument ? info->argument : "");
	fprintf(out, "%*s%s\n", width < 28 ? 28 - width : 1, "", info->text);
}

static void print_options(FILE *out, uint64_t options)
{
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		if (options & CLI_BIT(i))
			print_option(out, i);
	}
}

uint32_t help_answers(const struct cli_command *command)
{
	uint32_t answers =
		command->answers | 1u << ANSWER_DONE | 1u << ANSWER_FAILED | 1u << ANSWER_USAGE;

	if (!(command->flags & CLI_OFFLINE))
		answers |= 1u << ANSWER_PERMISSION | 1u << ANSWER_TIMEOUT;
	if (command->flags & CLI_MUTATES)
		answers |= 1u << ANSWER_CONFLICT;
	return answers;
}

static void print_answers(FILE *out, uint32_t answers)
{
	for (int i = 0; i < ANSWER_COUNT; i++) {
		if (answers & 1u << i)
			fprintf(out, "  %2d  %s\n", i, answer_text(i));
	}
}

void help_command(FILE *out, const struct cli_command *command)
{
	uint64_t common = cli_command_options(&(struct cli_command){0});
	uint64_t own = cli_command_options(command) & ~common;

	print_words(out, command);
	fprintf(out, " - %s\n\nusage: ", command->summary);
	help_usage(out, command);
	if (command->details != NULL) {
		fputc('\n', out);
		print_filled(out, command->details, 0);
	}
	if (own != 0) {
		fputs("\noptions:\n", out);
		print_options(out, own);
	}
	fputs("\noptions of every command:\n", out);
	print_options(out, common);
	fputs("\nexit codes:\n", out);
	print_answers(out, help_answers(command));
}

static void print_summary(FILE *out, const struct cli_command *command)
{
	int width = fprintf(out, "  %s%s%s%s%s", command->noun, command->verb ? " " : "",
		command->verb ? command->verb : "", command->operands ? " " : "",
		command->operands ? command->operands : "");

	if (width > 36)
		width = fprintf(out, "\n") - 1;
	fprintf(out, "%*s%s\n", 38 - width, "", command->summary);
}

void help_noun(FILE *out, const char *noun)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (strcmp(cli_commands[i].noun, noun) == 0)
			print_summary(out, &cli_commands[i]);
	}
}

void help_nouns(FILE *out)
{
	const char *last = "";

	fputs("commands:", out);
	for (unsigned i = 0; i < cli_command_count; i++) {
		if ((cli_commands[i].flags & CLI_HIDDEN) || strcmp(last, cli_commands[i].noun) == 0)
			continue;
		last = cli_commands[i].noun;
		fprintf(out, " %s", last);
	}
	fputc('\n', out);
}

void help_all(FILE *out)
{
	fputs("ringway - operate a Ringway load balancer\n\n"
	      "usage: ringway NOUN [VERB] [NAME...] [OPTION...]\n\ncommands:\n",
		out);
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (!(cli_commands[i].flags & CLI_HIDDEN))
			print_summary(out, &cli_commands[i]);
	}
	fputs("\noptions of every command:\n", out);
	print_options(out, cli_command_options(&(struct cli_command){0}));
	fputs("\nexit codes:\n", out);
	print_answers(out, (1u << ANSWER_COUNT) - 1);
	fputs("\n`ringway NOUN VERB --help` says more about one command.\n", out);
}

enum answer help_run(struct cli *cli)
{
	const char *noun = cli->operand[0];
	const char *verb = cli->operand_count > 1 ? cli->operand[1] : NULL;
	const struct cli_command *command;

	if (cli->operand_count == 0) {
		help_all(cli->out);
		return ANSWER_DONE;
	}
	command = cli_command_find(noun, verb);
	if (command != NULL) {
		help_command(cli->out, command);
		return ANSWER_DONE;
	}
	for (unsigned i = 0; i < cli_command_count && verb == NULL; i++) {
		if (strcmp(cli_commands[i].noun, noun) == 0) {
			help_noun(cli->out, noun);
			return ANSWER_DONE;
		}
	}
	cli_fail(cli, ANSWER_NOT_FOUND, "no such command: %s%s%s", noun, verb ? " " : "",
		verb ? verb : "");
	help_nouns(cli->err);
	return ANSWER_NOT_FOUND;
}

enum answer help_version_run(struct cli *cli)
{
	json_t *result = json_pack("{s:s}", "version", RINGWAY_VERSION);
	const struct output_shape shape = {NULL, NULL};
	int error = result ? output_result(cli->out, cli->output, &shape, result) : -1;

	json_decref(result);
	return error ? cli_fail(cli, ANSWER_FAILED, "writing the output failed") : ANSWER_DONE;
}
