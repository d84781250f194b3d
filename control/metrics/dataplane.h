// SPDX-License-Identifier: Apache-2.0
// The metrics that the stats file alone gives: packets, drops, flow tables, workers. No node is needed.
#pragma once

#include "control/metrics/stats_file.h"
#include "control/metrics/text.h"

// Writes them. now_ns: CLOCK_MONOTONIC, for the age of the heartbeat.
void metrics_dataplane(struct metrics_text *text, const struct stats_file *file, uint64_t now_ns);
