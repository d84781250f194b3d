// SPDX-License-Identifier: Apache-2.0
// The CRC-32 chain that makes the points of a member: point i is CRC-32(seed, point i-1 as four little-endian
// bytes), point 0 being 0. Private to control/ring, the tests and the benchmarks.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Chains that run side by side, at most.
#define CHAIN_LANES_MAX 32u

// Slice-by-4 tables of the reflected polynomial 0xEDB88320. 4 KiB, made for each build: no globals.
struct chain_tables {
	uint32_t slice[4][256];
	// The same map by nibbles, for vectors: byte [high][k][j][n] is byte j of what nibble n, the low or high one of
	// byte k, adds to the next point.
	uint8_t nibble[2][4][4][16];
};

struct chain {
	uint32_t state; // CRC register behind the seed, before the final inversion
	uint32_t point; // the last point made; 0 at the start
};

void chain_tables_fill(struct chain_tables *ret);

// CRC register behind some bytes, before the final inversion.
// state: UINT32_MAX at the start, else what a call before returned.
uint32_t chain_seed(
	const struct chain_tables *tables, uint32_t state, const void *data, size_t length);

// The next point of a chain. Inline: four loads and five xors.
static inline uint32_t chain_step(const struct chain_tables *tables, uint32_t state, uint32_t point)
{
	uint32_t word = state ^ point;

	return ~(tables->slice[3][word & 0xff] ^ tables->slice[2][word >> 8 & 0xff] ^
		tables->slice[1][word >> 16 & 0xff] ^ tables->slice[0][word >> 24]);
}

// The first point of a seed. Two seeds share a point at one place of their chains only if they share this one.
static inline uint32_t chain_first(const struct chain_tables *tables, uint32_t state)
{
	return chain_step(tables, state, 0);
}

// Points of all lanes in one go: 8 KiB, which stay in the first-level cache.
#define CHAIN_BLOCK 2048u

struct chain_block {
	uint32_t points[CHAIN_BLOCK];
};
