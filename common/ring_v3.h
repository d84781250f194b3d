// SPDX-License-Identifier: Apache-2.0
// Lookup in v3 storage: a scalar twin and vector twins that find the same owners. Private to common/ring.c, the
// tests and the benchmarks.
#pragma once

#include "common/ring.h"

enum ring_v3_twin {
	RING_V3_SCALAR = 0,
	RING_V3_AVX2 = 1,
	RING_V3_TWIN_COUNT,
};

// Tells whether this CPU runs the twin.
bool ring_v3_twin_runs(enum ring_v3_twin twin);

// ring_lookup_burst() of a v3 ring with points and usable members, by a given twin.
void ring_v3_burst(enum ring_v3_twin twin, const struct ring *ring, const uint32_t *ring_hashes,
	unsigned count, uint32_t *ret_owners);

// ring_lookup() of a v3 ring with points and usable members.
uint32_t ring_v3_lookup(const struct ring *ring, uint32_t ring_hash);

// Brings the index line of a hash into the cache.
void ring_v3_prefetch(const struct ring *ring, uint32_t ring_hash);

// The points of a prefix: [start, start + count) of the points. prefix < 2^prefix_bits.
struct ring_v3_run {
	uint32_t start;
	uint32_t count;
};

struct ring_v3_run ring_v3_run(const struct ring *ring, uint32_t prefix);
