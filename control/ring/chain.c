// SPDX-License-Identifier: Apache-2.0
#include "control/ring/chain.h"

#define POLYNOMIAL 0xedb88320u

void chain_tables_fill(struct chain_tables *ret)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		ret->slice[0][i] = crc;
	}
	for (unsigned slice = 1; slice < 4; slice++) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t before = ret->slice[slice - 1][i];

			ret->slice[slice][i] = before >> 8 ^ ret->slice[0][before & 0xff];
		}
	}
}

uint32_t chain_seed(
	const struct chain_tables *tables, uint32_t state, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < length; i++)
		state = state >> 8 ^ tables->slice[0][(state ^ bytes[i]) & 0xff];
	return state;
}

// All lanes advance together: the step of one depends only on its own last point.
static void fill_all_lanes(const struct chain_tables *tables, struct chain *lanes, uint32_t count,
	struct chain_block *ret)
{
	uint32_t state[CHAIN_LANES], point[CHAIN_LANES];

	for (unsigned lane = 0; lane < CHAIN_LANES; lane++) {
		state[lane] = lanes[lane].state;
		point[lane] = lanes[lane].point;
	}
	for (uint32_t i = 0; i < count; i++) {
#pragma GCC unroll 8
		for (unsigned lane = 0; lane < CHAIN_LANES; lane++) {
			point[lane] = chain_step(tables, state[lane], point[lane]);
			ret->points[lane][i] = point[lane];
		}
	}
	for (unsigned lane = 0; lane < CHAIN_LANES; lane++)
		lanes[lane].point = point[lane];
}

void chain_fill(const struct chain_tables *tables, struct chain *lanes, unsigned lane_count,
	uint32_t count, struct chain_block *ret)
{
	if (lane_count == CHAIN_LANES) {
		fill_all_lanes(tables, lanes, count, ret);
		return;
	}
	for (unsigned lane = 0; lane < lane_count; lane++) {
		for (uint32_t i = 0; i < count; i++) {
			lanes[lane].point =
				chain_step(tables, lanes[lane].state, lanes[lane].point);
			ret->points[lane][i] = lanes[lane].point;
		}
	}
}
