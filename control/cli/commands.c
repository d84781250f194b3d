// SPDX-License-Identifier: Apache-2.0
// The command table. Everything that ringway says about its own grammar is made from it.
#include "control/cli/cli.h"
#include "control/cli/drops.h"
#include "control/cli/files.h"
#include "control/cli/help.h"
#include "control/cli/ring_ref.h"
#include "control/cli/simulate.h"

#define ANSWER(name) (1u << ANSWER_##name)

static const struct cli_column drop_columns[] = {
	{"REASON", "name", false},
	{"STAGE", "stage", false},
	{"MEANING", "text", false},
	{0},
};

#define RING_REFERENCE                                                                                 \
	"A ring is written [FILE:]POOL[+TAG,...][@VERSION[:POINTS]]: pools.yaml:web is the ring that " \
	"the file says, pools.yaml:web@v2:16 what it would be as v2 with 16 points a weight, "         \
	"web+nvme,eu the subset ring of the backends with both tags, web@new the new ring of its "     \
	"cutover. Without a file the node's configuration is taken."

const struct cli_command cli_commands[] = {
	{
		.noun = "validate",
		.summary = "check configuration files, and say all that is wrong",
		.details =
			"Needs no daemon. Findings go to standard error with file, line, column and "
			"the way out; with --json they are in the result too.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_NODE_FILE),
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(PERMISSION),
		.rows = "findings",
		.run = files_validate_run,
	},
	{
		.noun = "diff",
		.operands = "[FILE] [FILE]",
		.summary = "what differs between two pools files",
		.options = CLI_BIT(CLI_EXIT_CODE),
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(DIFFERENT),
		.rows = "changes",
		.run = files_diff_run,
	},
	{
		.noun = "dataplane-args",
		.summary = "the arguments of ringway-dataplane that a node file stands for",
		.details = "One argument a line, as `ringway-dataplane --args FILE` reads them.",
		.options = CLI_BIT(CLI_FILE),
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(PERMISSION),
		.run = files_dataplane_args_run,
	},
	{
		.noun = "ring",
		.verb = "show",
		.operands = "RING",
		.summary = "a ring: its points, bytes, digests, and the share of each backend",
		.details = RING_REFERENCE,
		.options = CLI_BIT(CLI_FILE),
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.rows = "members",
		.run = ring_show_run,
	},
	{
		.noun = "ring",
		.verb = "diff",
		.operands = "FROM TO",
		.summary = "exactly what moves between two rings, for each backend, and why",
		.details = RING_REFERENCE
		"\n\nThe churn is exact arithmetic on the arcs of both rings. --traffic weighs it by a "
		"sample of flows: a ring hash and a weight a line. unavoidable is what the change "
		"of the target shares alone must move.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_TRAFFIC) | CLI_BIT(CLI_EXIT_CODE),
		.answers =
			ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED) | ANSWER(DIFFERENT),
		.rows = "servers",
		.run = ring_diff_run,
	},
	{
		.noun = "ring",
		.verb = "simulate",
		.summary = "predict and simulate the balance and memory of a ring",
		.details =
			"Builds real rings of N backends (10.r.x.y:80) and compares their spread with the "
			"formula sqrt((K-k)/(k(K+1))) for a backend with k of K points, taken as root mean "
			"square over the backends; with equal weights that is sqrt((N-1)/(Nk+1)).\n\n"
			"Equal hashes are cut to one. v1 and v2 give it to the lowest address, which costs "
			"the higher ones a part of their share that grows with the points; v3 gives it to "
			"a fair winner. --target-cv says how many points a weight reach a spread. --sweep "
			"measures a range of points under both rules.",
		.options = CLI_BIT(CLI_BACKENDS) | CLI_BIT(CLI_WEIGHTS) | CLI_BIT(CLI_RING) |
			CLI_BIT(CLI_POINTS) | CLI_BIT(CLI_RUNS) | CLI_BIT(CLI_SEED) |
			CLI_BIT(CLI_WORKERS) | CLI_BIT(CLI_NODES) | CLI_BIT(CLI_TARGET_CV) |
			CLI_BIT(CLI_SWEEP) | CLI_BIT(CLI_SVG),
		.flags = CLI_OFFLINE,
		.answers = ANSWER(REFUSED),
		.run = simulate_run,
	},
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
