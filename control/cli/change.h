// SPDX-License-Identifier: Apache-2.0
// Commands whose result people see as a few sentences: single changes, statistics, explanations.
#pragma once

#include "control/cli/cli.h"

// A change by operands and options; says what was done on stderr, prints the changes.
enum answer change_run(struct cli *cli);

// stats: the balance line, then what is not zero.
enum answer stats_run(struct cli *cli);
