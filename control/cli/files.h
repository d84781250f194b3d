// SPDX-License-Identifier: Apache-2.0
// Configuration files as commands see them: loaded, with their findings said on stderr.
#pragma once

#include "control/cli/cli.h"
#include "control/config/config.h"
#include "control/config/report.h"

// Reads a file, or standard input for "-". *ret_text: the caller's.
// Returns ANSWER_DONE, or a failure that was said.
enum answer files_load(struct cli *cli, const char *path, char **ret_text, size_t *ret_length);

// Reads and checks a pools or node file. Findings go to stderr, also warnings of a good file.
// Returns ANSWER_DONE with a model that the caller frees; ANSWER_INVALID; or another failure that was said.
enum answer files_pools(struct cli *cli, const char *path, struct config_pools **ret);
enum answer files_node(struct cli *cli, const char *path, struct config_node **ret);

// The same for text that is at hand; name stands for the file in messages.
enum answer files_pools_text(
	struct cli *cli, const char *name, const char *text, struct config_pools **ret);

// Findings as JSON: an array of objects with code, file, line, column, path, text and hint.
json_t *files_findings(const struct config_report *report);

// Changes as JSON: an array of objects with kind, path, before and after.
struct config_diff;
json_t *files_changes(const struct config_diff *diff);

// Writes such an array for people: + added, - removed, ~ changed.
void files_print_changes(struct cli *cli, const json_t *rows);

// validate, diff, dataplane-args.
enum answer files_validate_run(struct cli *cli);
enum answer files_diff_run(struct cli *cli);
enum answer files_dataplane_args_run(struct cli *cli);
