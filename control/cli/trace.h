// SPDX-License-Identifier: Apache-2.0
// `ringway trace selections`: how new flows are chosen, as it happens.
#pragma once

#include "control/cli/cli.h"

enum answer trace_selections_run(struct cli *cli);
