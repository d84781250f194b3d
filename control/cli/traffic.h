// SPDX-License-Identifier: Apache-2.0
// A sample of flows to weigh by: a text file with a ring hash and, if it is not 1, a weight on each line.
#pragma once

#include "control/cli/cli.h"

// Takes one flow of the sample.
typedef void traffic_sink(void *context, uint32_t ring_hash, double weight);

// Reads the file of --traffic ("-" is standard input) into a sink. Lines that begin with # and empty ones do not count.
// Returns ANSWER_DONE; else the failure, with the line named, is said already.
enum answer traffic_read(struct cli *cli, traffic_sink *sink, void *context);
