// SPDX-License-Identifier: Apache-2.0
#include "control/cli/help.h"

#include <ctype.h>
#include <string.h>

void help_print_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\#`<>[]|", *text) != NULL)
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void print_man_option(FILE *out, int option)
{
	const struct cli_option_info *info = &cli_options[option];

	fputc('*', out);
	if (info->letter != 0)
		fprintf(out, "-%c*, *", info->letter);
	fprintf(out, "--%s*", info->name);
	if (info->argument != NULL) {
		fputs(" \\", out);
		fputc('<', out);
		help_print_escaped(out, info->argument);
		fputs("\\>", out);
	}
	fputs("\n\t", out);
	help_print_escaped(out, info->text);
	fputs("\n\n", out);
}

static void print_man_answers(FILE *out, uint32_t answers)
{
	fputs("Exit codes:", out);
	for (int i = 0; i < ANSWER_COUNT; i++) {
		if (answers & 1u << i)
			fprintf(out, " %d", i);
	}
	fputs(".\n\n", out);
}

static void print_man_command(FILE *out, const struct cli_command *command)
{
	uint64_t own =
		cli_command_options(command) & ~cli_command_options(&(struct cli_command){0});

	fprintf(out, "## %s%s%s", command->noun, command->verb ? " " : "",
		command->verb ? command->verb : "");
	fputs("\n\n*ringway ", out);
	fprintf(out, "%s%s%s*", command->noun, command->verb ? " " : "",
		command->verb ? command->verb : "");
	if (command->operands != NULL) {
		fputc(' ', out);
		help_print_escaped(out, command->operands);
	}
	fputs("\n\n", out);
	fputc(toupper(command->summary[0]), out);
	help_print_escaped(out, command->summary + 1);
	fputs(".\n\n", out);
	if (command->details != NULL) {
		help_print_escaped(out, command->details);
		fputs("\n\n", out);
	}
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		if (own & CLI_BIT(i))
			print_man_option(out, i);
	}
	print_man_answers(out, help_answers(command));
}

void help_man(FILE *out)
{
	fputs("ringway(1)\n\n# NAME\n\nringway - operate a Ringway load balancer\n\n"
	      "# SYNOPSIS\n\n*ringway* \\<noun\\> [\\<verb\\>] [\\<name\\>...] [\\<option\\>...]\n\n"
	      "# DESCRIPTION\n\n"
	      "*ringway* talks to *ringwayd*(8) on a Unix socket. Commands that need no node work "
	      "without it: validate, diff of two files, dataplane-args, ring simulate, ring show -f, "
	      "ring diff of files, explain -f, drop list, help.\n\n"
	      "Data goes to standard output, messages go to standard error. *--json* prints one "
	      "object with a schema\\_version; later versions only add fields, and readers ignore "
	      "fields that they do not know. Numbers are numbers, with their unit at the end of the "
	      "field's name: \\_bytes, \\_ns, \\_ppm (millionths), \\_share (of 1), \\_ratio. Without "
	      "*--json* the same values are shown for people.\n\n"
	      "Commands that change something take *--dry-run*, *--reason* and *--generation*.\n\n"
	      "# OPTIONS\n\n",
		out);
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		if (cli_command_options(&(struct cli_command){0}) & CLI_BIT(i))
			print_man_option(out, i);
	}
	fputs("# COMMANDS\n\n", out);
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (!(cli_commands[i].flags & CLI_HIDDEN))
			print_man_command(out, &cli_commands[i]);
	}
	fputs("# EXIT CODES\n\n", out);
	for (int i = 0; i < ANSWER_COUNT; i++) {
		fprintf(out, "*%d*\n\t", i);
		help_print_escaped(out, answer_text(i));
		fputs("\n\n", out);
	}
	fputs("# ENVIRONMENT\n\n*RINGWAY\\_RUN\\_DIR*\n\tRun directory, when *--run-dir* is not "
	      "given.\n\n*NO\\_COLOR*\n\tNo colour in messages, whatever its value.\n\n"
	      "# SEE ALSO\n\n*ringwayd*(8), *ringway-dataplane*(8), *ringway-decap*(8), "
	      "*node.yaml*(5), *pools.yaml*(5)\n",
		out);
}

enum answer help_man_run(struct cli *cli)
{
	if (cli->operand_count == 0) {
		help_man(cli->out);
		return ANSWER_DONE;
	}
	if (!help_man_config(cli->out, cli->operand[0]))
		return cli_fail(cli, ANSWER_NOT_FOUND, "no page for %s: node.yaml or pools.yaml",
			cli->operand[0]);
	return ANSWER_DONE;
}
