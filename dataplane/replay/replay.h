// SPDX-License-Identifier: Apache-2.0
// Replay: the same pipeline over a capture file. No port, no root, no hugepages; time is the packets' own, so a
// replay gives the same bytes on every machine.
#pragma once

#include "dataplane/pipeline/pipeline.h"

#include <stdio.h>

struct replay_options {
	const char *input_path;    // pcap or pcapng, Ethernet
	const char *output_path;   // pcap with nanoseconds: forwarded packets and answers, in order
	const char *snapshot_path; // an image as ringwayd writes it
	// port_count, ports and has_punt as for a live run. Packets arrive on port 0. worker_count is 1.
	const struct pipeline *pipeline;
	uint32_t flow_entries;
	// MAC that every next hop answers with; all zero: none, packets wait for answers in the capture, and the
	// questions are written to the output.
	uint8_t neighbour_mac[6];
	FILE *report; // counters and drops that are not zero, "name value" a line; NULL: none
};

struct replay_result {
	uint64_t packets_in;
	uint64_t packets_out;
	uint64_t counter[COUNTER_COUNT];
	uint64_t drop[DROP_COUNT];
};

// Runs a capture through the pipeline.
// Returns 0; a negative errno value with *ret_error saying which file and what is wrong. Nothing is kept in the
// output's place when it fails before the first packet.
int replay_run(const struct replay_options *options, struct replay_result *ret,
	struct snapshot_error *ret_error);
