// SPDX-License-Identifier: Apache-2.0
// The ring as a textbook says it, slow and plain: the naive twin of control/ring and common/ring.c.
#pragma once

#include "control/ring/spec.h"

struct horrible_point {
	uint32_t hash;
	uint32_t owner; // position in the specification's members
};

struct horrible_ring {
	struct horrible_point *points;
	uint32_t count; // after the cut
	uint32_t member_count;
};

// Builds from a normalised specification: CRC bit by bit, library sort, then the cut. Aborts without memory.
void horrible_ring_build(const struct ring_spec *spec, struct horrible_ring *ret);
void horrible_ring_free(struct horrible_ring *ring);

// Walks from the first point. down: owners to pass over; NULL: none. RING_NO_OWNER when nobody is left.
uint32_t horrible_ring_lookup(const struct horrible_ring *ring, uint32_t hash, const bool *down);

// v1 as its authors built it: one byte table, one chain after the other, a comparison sort. For benchmarks.
// Returns the points before the cut; the caller frees them.
struct horrible_point *horrible_ring_points_v1(const struct ring_spec *spec, uint32_t *ret_count);
