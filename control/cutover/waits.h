// SPDX-License-Identifier: Apache-2.0
// What a cutover waits for, in words for people. Pure, as all of this folder: time is an argument.
#pragma once

#include "control/cutover/machine.h"

// Says what stands between a cutover and its next move: a time, nodes, guards, a person.
// *ret_left_ms: what is left of the state's own time, 0 when none is. ret: CUTOVER_REASON_BYTES.
void cutover_waits(const struct cutover *cutover, const struct cutover_facts *facts,
	uint64_t now_ms, char *ret, uint64_t *ret_left_ms);

// Writes a time as people say it, two units at most: "45 s", "3 min 12 s", "2 h 5 min", "3 d 4 h".
#define CUTOVER_SPAN_TEXT_BYTES 48u
void cutover_span_format(uint64_t ms, char ret[static CUTOVER_SPAN_TEXT_BYTES]);
