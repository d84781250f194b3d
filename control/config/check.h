// SPDX-License-Identifier: Apache-2.0
// What a schema cannot say: references, duplicates, overlaps, limits, ring rules.
#pragma once

#include "control/config/config.h"
#include "control/config/report.h"

// Check a model that was read or edited; findings go to the report, with places if it has a tree.
// Return 0 or -EINVAL (report->error_count > 0).
int config_pools_check(const struct config_pools *pools, struct config_report *report);
int config_node_check(const struct config_node *node, struct config_report *report);
