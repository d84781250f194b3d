// SPDX-License-Identifier: Apache-2.0
// What seeds the points of a member. Private to control/ring and the tests.
#pragma once

#include "control/ring/chain.h"
#include "control/ring/spec.h"

// The CRC register behind a member's seed bytes (docs/ring.md section 1). The bytes are never put together: the
// CRC takes them in pieces.
uint32_t seed_state(const struct chain_tables *tables, enum ring_seed seed,
	const struct ring_spec_member *member);
