// SPDX-License-Identifier: Apache-2.0
#include "control/cli/help.h"

#include <string.h>

// The scripts hold the grammar; names of live objects come from `ringway NOUN list -o name` when a shell asks.

static bool is_first_of_noun(unsigned index)
{
	for (unsigned i = 0; i < index; i++) {
		if (strcmp(cli_commands[i].noun, cli_commands[index].noun) == 0)
			return false;
	}
	return true;
}

static void print_nouns(FILE *out)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (!(cli_commands[i].flags & CLI_HIDDEN) && is_first_of_noun(i))
			fprintf(out, "%s ", cli_commands[i].noun);
	}
}

static void print_verbs(FILE *out, const char *noun)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (strcmp(cli_commands[i].noun, noun) == 0 && cli_commands[i].verb != NULL)
			fprintf(out, "%s ", cli_commands[i].verb);
	}
}

static void print_flags(FILE *out, const struct cli_command *command)
{
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		if (cli_command_options(command) & CLI_BIT(i))
			fprintf(out, "--%s ", cli_options[i].name);
	}
}

static void print_formats(FILE *out)
{
	for (int i = 0; i < OUTPUT_COUNT; i++)
		fprintf(out, "%s ", output_format_name(i));
}

// The noun whose names a first operand is, such as pool for POOL; NULL when it names no object.
static const char *operand_noun(const struct cli_command *command)
{
	static const char *const nouns[] = {"pool", "service"};
	static const char *const operands[] = {"POOL", "SERVICE"};

	for (unsigned i = 0; command->operands && i < 2; i++) {
		const char *operand = command->operands + strspn(command->operands, "[");

		if (strncmp(operand, operands[i], strlen(operands[i])) == 0)
			return nouns[i];
	}
	return NULL;
}

static void print_bash(FILE *out)
{
	fputs("# bash completion for ringway; made by `ringway completion bash`\n"
	      "_ringway()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal noun=${COMP_WORDS[1]} verb=${COMP_WORDS[2]} words=\n"
	      "\tcase $prev in\n"
	      "\t-o|--output) words=\"",
		out);
	print_formats(out);
	fputs("\" ;;\n\t-f|--file|--node|--svg|--traffic|--socket) COMPREPLY=($(compgen -f -- \"$cur\"));"
	      " return ;;\n\t--run-dir) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
	      "\t--to|--ring) words=\"v1 v2 v3\" ;;\n\tesac\n"
	      "\tif [[ -z $words && $COMP_CWORD == 1 ]]; then\n\t\twords=\"",
		out);
	print_nouns(out);
	fputs("\"\n\telif [[ -z $words ]]; then\n\tcase \"$noun $verb\" in\n", out);
	for (unsigned i = 0; i < cli_command_count; i++) {
		const struct cli_command *command = &cli_commands[i];
		const char *noun = operand_noun(command);

		if (command->verb != NULL)
			fprintf(out, "\t\"%s %s\")", command->noun, command->verb);
		else
			fprintf(out, "\t\"%s \"*)", command->noun);
		fputs(" words=\"", out);
		print_flags(out, command);
		fputc('"', out);
		if (noun != NULL)
			fprintf(out,
				"; [[ $COMP_CWORD == %d ]] && words+=\"$(ringway %s list -o name "
				"2>/dev/null)\"",
				command->verb ? 3 : 2, noun);
		fputs(" ;;\n", out);
	}
	fputs("\tesac\n\tif [[ $COMP_CWORD == 2 ]]; then\n\tcase $noun in\n", out);
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (cli_commands[i].verb == NULL || !is_first_of_noun(i))
			continue;
		fprintf(out, "\t%s) words=\"", cli_commands[i].noun);
		print_verbs(out, cli_commands[i].noun);
		fputs("\" ;;\n", out);
	}
	fputs("\tesac\n\tfi\n\tfi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
	      "complete -F _ringway ringway\n",
		out);
}

static void print_zsh(FILE *out)
{
	// zsh runs the bash functions; one grammar is enough.
	fputs("#compdef ringway\nautoload -U +X bashcompinit && bashcompinit\n", out);
	print_bash(out);
}

// In single quotes for fish.
static void print_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

static void print_fish_command(FILE *out, const struct cli_command *command, bool first)
{
	if (command->verb == NULL || first) {
		fprintf(out, "complete -c ringway -f -n __fish_use_subcommand -a %s",
			command->noun);
		if (command->verb == NULL) {
			fputs(" -d ", out);
			print_quoted(out, command->summary);
		}
		fputc('\n', out);
	}
	if (command->verb != NULL) {
		fprintf(out, "complete -c ringway -f -n '__fish_seen_subcommand_from %s' -a %s -d ",
			command->noun, command->verb);
		print_quoted(out, command->summary);
		fputc('\n', out);
	}
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		if (!(cli_command_options(command) & CLI_BIT(i)))
			continue;
		fprintf(out, "complete -c ringway -n '__fish_seen_subcommand_from %s' -l %s%s -d ",
			command->verb ? command->verb : command->noun, cli_options[i].name,
			cli_options[i].value == CLI_FLAG ? "" : " -r");
		print_quoted(out, cli_options[i].text);
		fputc('\n', out);
	}
}

static void print_fish(FILE *out)
{
	fputs("# fish completion for ringway; made by `ringway completion fish`\n", out);
	for (unsigned i = 0; i < cli_command_count; i++) {
		if (!(cli_commands[i].flags & CLI_HIDDEN))
			print_fish_command(out, &cli_commands[i], is_first_of_noun(i));
	}
}

enum answer help_completion_run(struct cli *cli)
{
	static const struct {
		const char *shell;
		void (*print)(FILE *out);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(cli->operand[0], shells[i].shell) == 0) {
			shells[i].print(cli->out);
			return ANSWER_DONE;
		}
	}
	return cli_fail(
		cli, ANSWER_USAGE, "no completion for %s: bash, zsh or fish", cli->operand[0]);
}
