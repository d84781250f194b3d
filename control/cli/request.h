// SPDX-License-Identifier: Apache-2.0
// Commands that ringwayd carries out: from the operands and options of a run to a request, from its replies to
// output and exit code.
#pragma once

#include "control/cli/cli.h"

// The usual run of a command: operands and options become args, "noun verb" becomes the verb "noun.verb", and every
// reply is written as the command's shape says.
enum answer request_run(struct cli *cli);

// The same with args that the caller made, and each result written by the caller's function.
// args: a stolen reference; the operands and options of the run are added where args does not have them yet.
typedef enum answer request_printer(struct cli *cli, json_t *result);
enum answer request_run_printed(struct cli *cli, json_t *args, request_printer *print);

// Asks once and gives the result back instead of writing it. args: stolen. *ret: a new reference.
enum answer request_ask(struct cli *cli, const char *verb, json_t *args, json_t **ret);

// The usual request of a run, its result given back instead of written; dry_run: only what it would do, whatever the run
// says. *ret: a new reference.
enum answer request_change(struct cli *cli, bool dry_run, json_t **ret);

// Asks for the name again before something that cannot be undone, on a terminal; elsewhere --yes is needed. A dry run
// needs neither.
enum answer request_confirm(struct cli *cli);

// Writes a result in the command's shape and the format of the run.
enum answer request_print(struct cli *cli, json_t *result);

// Path of ringwayd's socket for this run. ret: at least 4096 bytes.
void request_socket_path(const struct cli *cli, char *ret, size_t ret_bytes);
