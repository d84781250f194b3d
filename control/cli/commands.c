// SPDX-License-Identifier: Apache-2.0
// The command table. Everything that ringway says about its own grammar is made from it.
#include "control/cli/cli.h"
#include "control/cli/drops.h"
#include "control/cli/help.h"

#define ANSWER(name) (1u << ANSWER_##name)

static const struct cli_column drop_columns[] = {
	{"REASON", "name", false},
	{"STAGE", "stage", false},
	{"MEANING", "text", false},
	{0},
};

const struct cli_command cli_commands[] = {
	{
		.noun = "drop",
		.verb = "list",
		.summary = "every reason why a packet is not forwarded",
		.details =
			"The names are stable: they are labels of the metrics and keys of `stats`.",
		.flags = CLI_OFFLINE,
		.rows = "drops",
		.columns = drop_columns,
		.run = drops_list_run,
	},
	{
		.noun = "help",
		.operands = "[NOUN] [VERB]",
		.summary = "say what a command does",
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND),
		.run = help_run,
	},
	{
		.noun = "version",
		.summary = "print the version",
		.flags = CLI_OFFLINE,
		.run = help_version_run,
	},
	{
		.noun = "completion",
		.operands = "SHELL",
		.summary = "print a completion script for bash, zsh or fish",
		.details = "For bash: source <(ringway completion bash).",
		.flags = CLI_OFFLINE,
		.run = help_completion_run,
	},
	{
		.noun = "man",
		.summary = "print the source of ringway(1)",
		.flags = CLI_OFFLINE | CLI_HIDDEN,
		.run = help_man_run,
	},
};

const unsigned cli_command_count = sizeof(cli_commands) / sizeof(cli_commands[0]);
