// SPDX-License-Identifier: Apache-2.0
// Where a flow goes by a snapshot alone, with the functions that the dataplane runs: for ringwayd while the dataplane
// is away, and for an image on disk after the fact.
#pragma once

#include "common/ipc.h"

// Explains a flow. snapshot: opened. The flow table is not part of a snapshot: in_table is 0.
// Cost: a walk over the bindings.
void explain_snapshot(
	const struct snapshot *snapshot, const struct flow_key *key, struct ipc_explained *ret);

// The sentence that says why: of the verdict, the flow table, the gate. A static text.
const char *explain_why(const struct ipc_explained *explained);

// "forward", "no_service", "no_backend".
const char *explain_verdict_name(uint32_t verdict);

// "up", "drain", "down", "free".
const char *explain_state_name(uint8_t state);
