// SPDX-License-Identifier: Apache-2.0
// The frame of ringway: what a command is, and what its run sees. Read with commands.c, the one table that makes
// the grammar, --help, the man page and the shell completion.
#pragma once

#include "control/cli/output.h"
#include "control/cli/protocol.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_OPERANDS_MAX 4

// Every option of every command, in the order of the table in options.c.
enum cli_option {
	CLI_HELP,
	CLI_VERSION,
	CLI_JSON,
	CLI_OUTPUT,
	CLI_RUN_DIR,
	CLI_SOCKET,
	CLI_DRY_RUN,
	CLI_REASON,
	CLI_GENERATION,
	CLI_YES,
	CLI_FORCE,
	CLI_WATCH,
	CLI_FILE,
	CLI_NODE_FILE,
	CLI_EXIT_CODE,
	CLI_ADDRESS,
	CLI_PORT,
	CLI_WEIGHT,
	CLI_TAGS,
	CLI_STATE,
	CLI_TO,
	CLI_POINTS,
	CLI_BALANCE,
	CLI_SHARE,
	CLI_REQUIRES,
	CLI_TRAFFIC,
	CLI_BACKENDS,
	CLI_WEIGHTS,
	CLI_RING,
	CLI_TARGET_CV,
	CLI_SWEEP,
	CLI_SVG,
	CLI_RUNS,
	CLI_SEED,
	CLI_WORKERS,
	CLI_NODES,
	CLI_WORKER,
	CLI_MOVE_ESTABLISHED,
	CLI_DATACENTER,
	CLI_SHIFT,
	CLI_COUNT,
	CLI_SECONDS,
	CLI_INTERVAL,
	CLI_TRACES,
	CLI_SERVICE,
	CLI_CAP,
	CLI_TTL,
	CLI_REVISION,
	CLI_LOCAL,
	CLI_CLEAR,
	CLI_ALLOW_NODE_CHURN,
	CLI_FLOWS,
	CLI_FOR,
	CLI_TIMEOUT,
	CLI_POOLS_FILE,
	CLI_OPTION_COUNT,
};

#define CLI_BIT(option) (UINT64_C(1) << (option))

_Static_assert(CLI_OPTION_COUNT <= 64, "a set of options is one word");

enum cli_value {
	CLI_FLAG,    // no argument; true in a request
	CLI_TEXT,    // a string
	CLI_NUMBER,  // a whole number
	CLI_REAL,    // a decimal number
	CLI_PERCENT, // "12.5%" or "0.125"; millionths in a request, under the name with "_ppm"
	CLI_LIST,    // comma-separated; an array of strings in a request
};

struct cli_option_info {
	const char *name;
	char letter; // 0: none
	enum cli_value value;
	const char *argument; // how help names it; NULL for flags
	const char *text;
};

extern const struct cli_option_info cli_options[CLI_OPTION_COUNT];

// A column of a table: a field of each row, which may lie deeper ("old.points"). How a number is written follows
// from the unit at the end of the field's name (output.h).
struct cli_column {
	const char *heading;
	const char *field;
	bool wide; // only with -o wide
};

#define CLI_MUTATES UINT32_C(1)  // takes --dry-run, --reason and --generation
#define CLI_OFFLINE UINT32_C(2)  // never speaks to ringwayd
#define CLI_STREAMS UINT32_C(4)  // takes --watch
#define CLI_DANGER  UINT32_C(8)  // asks for --yes, or the name typed again on a terminal
#define CLI_HIDDEN  UINT32_C(16) // in no list: for build and shells

struct cli;

struct cli_command {
	const char *noun;
	const char *verb;     // NULL: the noun stands alone
	const char *operands; // "POOL [BACKEND]"; as keys of a request they are lower case
	const char *summary;  // one line, no full stop
	const char *details;  // paragraphs for --help and the man page; may be NULL
	uint64_t options;     // beside those that every command has
	uint32_t flags;
	uint32_t answers;                 // bits of enum answer beside done, failed and usage
	const char *rows;                 // field of the result that holds the rows of a table
	const struct cli_column *columns; // ends with a NULL heading; NULL: fields under each other
	enum answer (*run)(struct cli *cli);
};

extern const struct cli_command cli_commands[];
extern const unsigned cli_command_count;

// One run of ringway.
struct cli {
	const struct cli_command *command;
	const char *operand[CLI_OPERANDS_MAX];
	unsigned operand_count;
	const char *value[CLI_OPTION_COUNT]; // NULL: not given; "" for a flag that is given
	enum output_format output;
	FILE *out; // data
	FILE *err; // messages
};

static inline bool cli_has(const struct cli *cli, enum cli_option option)
{
	return cli->value[option] != NULL;
}

// Says on stderr what is wrong and what to do, and returns the answer, so that a caller can write
// `return cli_fail(cli, ANSWER_USAGE, ...)`.
enum answer cli_fail(struct cli *cli, enum answer answer, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// Reads the value of a number option within bounds.
// Returns ANSWER_DONE with *ret set (fallback when the option is not given), or ANSWER_USAGE, said on stderr.
enum answer cli_number(
	struct cli *cli, enum cli_option option, uint64_t low, uint64_t high, uint64_t *ret);
enum answer cli_real(struct cli *cli, enum cli_option option, double low, double high, double *ret);

// Reads a share: "12.5%", or "0.125" of one.
// Returns millionths, 0..1000000, or -EINVAL; finer steps than a millionth are refused, not rounded.
int64_t cli_share_parse(const char *text);

// Finds a command by its words.
// Returns NULL when there is none; a noun that needs a verb is none.
const struct cli_command *cli_command_find(const char *noun, const char *verb);

// All options that a command takes, the common ones included.
uint64_t cli_command_options(const struct cli_command *command);

// Runs ringway on an argument vector; what main() does, callable from tests.
int cli_main(int argc, char **argv, FILE *out, FILE *err);
