// SPDX-License-Identifier: Apache-2.0
// `ringway trace selections`: how new flows are chosen, as it happens.
#pragma once

#include "control/cli/cli.h"

// Writes one line of a selection, as trace.read gives it: who, which service, what each ring says, where it went.
void trace_print(FILE *out, const json_t *row);

enum answer trace_selections_run(struct cli *cli);
