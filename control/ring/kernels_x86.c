// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mbmi2; nothing else may be in this file, since it would get them too.
#include "control/ring/kernels.h"

#include <immintrin.h>
#include <string.h>

#define LANES        32u
#define LANE_STRIDE  1u
#define POINT_STRIDE LANES

extern const struct ring_kernels ring_kernels_x86;

// Bytes of 32 words, the lowest bytes in the first vector. After interleave() word p of memory is lane p, for which the
// byte of lane p must stand at place_of(p).
struct planes {
	__m256i byte[4];
};

static unsigned place_of(unsigned lane)
{
	return lane % 8 / 4 * 16 + lane / 8 * 4 + lane % 4;
}

static struct planes spread(const uint32_t words[LANES])
{
	uint8_t bytes[4][LANES];
	struct planes ret;

	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned k = 0; k < 4; k++)
			bytes[k][place_of(lane)] = (uint8_t)(words[lane] >> 8 * k);
	}
	memcpy(&ret, bytes, sizeof(ret));
	return ret;
}

static inline __m256i look_up(const uint8_t table[16], __m256i nibbles)
{
	__m128i half = _mm_loadu_si128((const __m128i *)table);

	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(half), nibbles);
}

// The step is linear but for a constant of the seed, which is the first point: sixteen-entry tables of nibbles in
// registers' reach make a byte of 32 next points by eight shuffles. 0.25 ns a point, where four table loads take 0.6.
static inline struct planes step(
	const struct chain_tables *tables, const struct planes *from, const struct planes *constant)
{
	const __m256i low = _mm256_set1_epi8(0x0f);
	struct planes ret = *constant;

	for (unsigned k = 0; k < 4; k++) {
		__m256i lower = _mm256_and_si256(from->byte[k], low);
		__m256i upper = _mm256_and_si256(_mm256_srli_epi16(from->byte[k], 4), low);

		for (unsigned j = 0; j < 4; j++) {
			__m256i added = _mm256_xor_si256(look_up(tables->nibble[0][k][j], lower),
				look_up(tables->nibble[1][k][j], upper));

			ret.byte[j] = _mm256_xor_si256(ret.byte[j], added);
		}
	}
	return ret;
}

static inline void interleave(const struct planes *planes, uint32_t ret[LANES])
{
	__m256i first_low = _mm256_unpacklo_epi8(planes->byte[0], planes->byte[1]);
	__m256i first_high = _mm256_unpackhi_epi8(planes->byte[0], planes->byte[1]);
	__m256i last_low = _mm256_unpacklo_epi8(planes->byte[2], planes->byte[3]);
	__m256i last_high = _mm256_unpackhi_epi8(planes->byte[2], planes->byte[3]);
	__m256i *to = (__m256i *)ret;

	_mm256_storeu_si256(to, _mm256_unpacklo_epi16(first_low, last_low));
	_mm256_storeu_si256(to + 1, _mm256_unpackhi_epi16(first_low, last_low));
	_mm256_storeu_si256(to + 2, _mm256_unpacklo_epi16(first_high, last_high));
	_mm256_storeu_si256(to + 3, _mm256_unpackhi_epi16(first_high, last_high));
}

// Lanes without a chain run along; their points are nobody's.
static void fill(const struct chain_tables *tables, struct chain *lanes, unsigned lane_count,
	uint32_t count, struct chain_block *ret)
{
	uint32_t points[LANES] = {0}, constants[LANES] = {0};

	for (unsigned lane = 0; lane < lane_count; lane++) {
		points[lane] = lanes[lane].point;
		constants[lane] = chain_first(tables, lanes[lane].state);
	}
	struct planes now = spread(points), constant = spread(constants);

	for (uint32_t i = 0; i < count; i++) {
		now = step(tables, &now, &constant);
		interleave(&now, ret->points + i * POINT_STRIDE);
	}
	for (unsigned lane = 0; lane < lane_count && count > 0; lane++)
		lanes[lane].point = ret->points[(count - 1) * POINT_STRIDE + lane];
}

#define KERNELS ring_kernels_x86
#include "control/ring/kernels.inc.c"
