// SPDX-License-Identifier: Apache-2.0
#include "control/ring/chain.h"

#define POLYNOMIAL 0xedb88320u

static void fill_nibbles(struct chain_tables *tables)
{
	for (unsigned k = 0; k < 4; k++) {
		const uint32_t *slice = tables->slice[3 - k];

		for (unsigned j = 0; j < 4; j++) {
			for (unsigned n = 0; n < 16; n++) {
				tables->nibble[0][k][j][n] = (uint8_t)(slice[n] >> 8 * j);
				tables->nibble[1][k][j][n] = (uint8_t)(slice[n << 4] >> 8 * j);
			}
		}
	}
}

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
	fill_nibbles(ret);
}

uint32_t chain_seed(
	const struct chain_tables *tables, uint32_t state, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < length; i++)
		state = state >> 8 ^ tables->slice[0][(state ^ bytes[i]) & 0xff];
	return state;
}
