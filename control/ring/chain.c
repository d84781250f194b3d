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
