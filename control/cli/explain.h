// SPDX-License-Identifier: Apache-2.0
// `ringway explain`: asks the node, or reads a snapshot image.
#pragma once

#include "control/cli/cli.h"

enum answer explain_run(struct cli *cli);
