// SPDX-License-Identifier: Apache-2.0
// `ringway drop list`: the drop reasons of this build.
#pragma once

#include "control/cli/cli.h"

enum answer drops_list_run(struct cli *cli);
