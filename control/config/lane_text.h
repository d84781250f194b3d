// SPDX-License-Identifier: Apache-2.0
// A lane of a balanced v3 ring as one word a field: "ADDRESS PORT WEIGHT BASE MASK", the mask in hexadecimal. So it
// stands in the store, and so a node tells it to those who want to build the same ring.
#pragma once

#include "control/ring/spec.h"

#define LANE_TEXT_BYTES (ADDR_TEXT_BYTES + 6 + 11 + 11 + 17)

void lane_text_format(const struct ring_lane *lane, char ret[static LANE_TEXT_BYTES]);

// Reads one. What the numbers mean is for ring_spec_normalise() to check. Returns 0 or -EINVAL.
int lane_text_parse(const char *text, struct ring_lane *ret);
