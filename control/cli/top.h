// SPDX-License-Identifier: Apache-2.0
// `ringway top`: rates of a node on a full screen.
#pragma once

#include "control/cli/cli.h"

// What a screen shows, worked out from two answers of `stats`, oldest first. A JSON object: rates a second.
// The caller frees it. NULL when they are not comparable: no time between them, or the dataplane restarted.
json_t *top_rates(const json_t *before, const json_t *after);

enum answer top_run(struct cli *cli);
