// SPDX-License-Identifier: Apache-2.0
// What the command table says about itself: --help, the man page, shell completion.
#pragma once

#include "control/cli/cli.h"

// One line: the words of a command and its options.
void help_usage(FILE *out, const struct cli_command *command);

// All about one command: usage, details, options, exit codes.
void help_command(FILE *out, const struct cli_command *command);

// The verbs of a noun; all nouns; the whole of `ringway --help`.
void help_noun(FILE *out, const char *noun);
void help_nouns(FILE *out);
void help_all(FILE *out);

// Bits of enum answer that a command can end with.
uint32_t help_answers(const struct cli_command *command);

// ringway.1 in scdoc's language, and the pages of the two files. help_man_config() returns false for another name.
void help_man(FILE *out);
bool help_man_config(FILE *out, const char *name);

// Writes text with scdoc's markup escaped. A dash at the start of a line cannot be: it begins a list there, so no
// paragraph begins with one.
void help_print_escaped(FILE *out, const char *text);

// The commands of the CLI that print these.
enum answer help_run(struct cli *cli);
enum answer help_man_run(struct cli *cli);
enum answer help_completion_run(struct cli *cli);
enum answer help_version_run(struct cli *cli);
