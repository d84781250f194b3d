// SPDX-License-Identifier: Apache-2.0
// The loops that a build spends its time in, compiled twice: for every CPU, and for those with AVX2 and BMI2, where a
// build takes 0.8 of the time (shifts by a variable are three instructions without BMI2). Private to control/ring and
// the tests.
#pragma once

#include "control/ring/chain.h"

// Where place() puts points.
struct scatter {
	uint8_t *offsets; // [2^run_bits] counts, then the next place of each run in its prefix
	const uint32_t *starts; // of the prefixes
	uint32_t *entries;
	unsigned run_shift;
	unsigned prefix_shift;
	unsigned entry_bits;
};

// Some points of one slot, in chain order: hashes[0], hashes[stride], ...
struct points_run {
	const uint32_t *hashes;
	uint32_t count;
	uint32_t stride;
	uint32_t slot;
};

// What makes points hands them on to.
typedef void points_sink(void *context, const struct points_run *run);

struct ring_kernels {
	uint32_t lanes; // up to CHAIN_LANES_MAX
	uint32_t lane_stride;
	uint32_t point_stride;
	// Makes the next count points of each of lane_count chains, and moves the chains on.
	// lane_count: 1..lanes. count: up to CHAIN_BLOCK / lanes. Point i of a lane goes to ret->points[lane *
	// lane_stride + i * point_stride].
	void (*fill)(const struct chain_tables *tables, struct chain *lanes, unsigned lane_count,
		uint32_t count, struct chain_block *ret);
	points_sink *count; // context: struct scatter
	points_sink *place; // context: struct scatter
	// Sorts words ascending, in place, that are at most a few places from where they belong: two passes, of which
	// only the second branches on the data, and rarely. Any order is sorted; long slices through a heap.
	void (*sort)(uint32_t *words, uint32_t count);
};

extern const struct ring_kernels ring_kernels_plain;

// The twin for wide CPUs; NULL where this build or this CPU has none.
const struct ring_kernels *ring_kernels_wide(void);

// The best that this CPU runs.
const struct ring_kernels *ring_kernels(void);
