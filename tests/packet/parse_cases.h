// SPDX-License-Identifier: Apache-2.0
// Frames and what the parser must say about them. The same frames seed the fuzzers and are cut at every length.
#pragma once

#include "tests/lib/packet_builder.h"

struct parse_case {
	const char *description;
	void (*build)(struct frame *frame);
	uint8_t verdict; // enum packet_verdict
	uint8_t reason;  // with PACKET_DROP
	uint32_t flags;  // enum packet_flag, exactly
};

extern const struct parse_case parse_good_cases[];
extern const unsigned parse_good_count;
extern const struct parse_case parse_bad_cases[];
extern const unsigned parse_bad_count;
