// SPDX-License-Identifier: Apache-2.0
#include "control/ring/kernels.h"

#include <stddef.h>

#define LANES        8u
#define LANE_STRIDE  (CHAIN_BLOCK / LANES)
#define POINT_STRIDE 1u

// All lanes advance together: one chain waits for its own last table load, eight keep the loads busy.
static void fill_all_lanes(const struct chain_tables *tables, struct chain *lanes, uint32_t count,
	struct chain_block *ret)
{
	uint32_t state[LANES], point[LANES];

	for (unsigned lane = 0; lane < LANES; lane++) {
		state[lane] = lanes[lane].state;
		point[lane] = lanes[lane].point;
	}
	for (uint32_t i = 0; i < count; i++) {
#pragma GCC unroll 8
		for (unsigned lane = 0; lane < LANES; lane++) {
			point[lane] = chain_step(tables, state[lane], point[lane]);
			ret->points[lane * LANE_STRIDE + i * POINT_STRIDE] = point[lane];
		}
	}
	for (unsigned lane = 0; lane < LANES; lane++)
		lanes[lane].point = point[lane];
}

static void fill(const struct chain_tables *tables, struct chain *lanes, unsigned lane_count,
	uint32_t count, struct chain_block *ret)
{
	if (lane_count == LANES) {
		fill_all_lanes(tables, lanes, count, ret);
		return;
	}
	for (unsigned lane = 0; lane < lane_count; lane++) {
		for (uint32_t i = 0; i < count; i++) {
			lanes[lane].point =
				chain_step(tables, lanes[lane].state, lanes[lane].point);
			ret->points[lane * LANE_STRIDE + i * POINT_STRIDE] = lanes[lane].point;
		}
	}
}

#define KERNELS ring_kernels_plain
#include "control/ring/kernels.inc.c"

#if defined(__x86_64__)
extern const struct ring_kernels ring_kernels_x86;
#endif

const struct ring_kernels *ring_kernels_wide(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return &ring_kernels_x86;
#endif
	return NULL;
}

const struct ring_kernels *ring_kernels(void)
{
	const struct ring_kernels *wide = ring_kernels_wide();

	return wide != NULL ? wide : &ring_kernels_plain;
}
