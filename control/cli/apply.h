// SPDX-License-Identifier: Apache-2.0
// Commands that hand a whole pools file to ringwayd: apply, and diff against what runs.
#pragma once

#include "control/cli/cli.h"

enum answer apply_run(struct cli *cli);

// diff A B of two files, or diff -f FILE against the node.
enum answer apply_diff_run(struct cli *cli);

// The node's pools file.
enum answer apply_export_run(struct cli *cli);
