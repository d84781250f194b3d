// SPDX-License-Identifier: Apache-2.0
// What a schema cannot say: references, duplicates, overlaps, limits, ring rules.
#pragma once

#include "control/config/config.h"
#include "control/config/report.h"

// Check a model that was read or edited; findings go to the report, with places if it has a tree.
// Return 0 or -EINVAL (report->error_count > 0).
int config_pools_check(const struct config_pools *pools, struct config_report *report);

int config_node_check(const struct config_node *node, struct config_report *report);

// Checks what must hold between the fields of a ring, which is complete (config_ring_complete()). at: path of the ring.
void config_ring_check(
	const struct config_ring *ring, struct config_report *report, const char *at);
