// SPDX-License-Identifier: Apache-2.0
#include "common/ring_v3.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BURST_MAX 32u

// An index beyond this many bytes is asked for ahead: 0.3 ns a lookup when it is in the first-level cache anyway, and
// half of the cost of a lookup when it is in none. A smaller index hardly ever is in none.
#define INDEX_HOT_BYTES 4096u

// Hides a value from the compiler, so that it does not make vectors of a loop: -O3 does, for runs of five.
#define KEEP_SCALAR(value) __asm__("" : "+r"(value))

// count - limit, or 0. A mask, since compilers make a branch of the plain choice, and half of all runs are longer than
// eight where a ring is packed as densely as allowed: mispredictions then double the cost of a lookup.
static inline uint32_t beyond(uint32_t count, uint32_t limit)
{
	return (count - limit) & (0 - (uint32_t)(count > limit));
}

// Where runs start, from an index of 16-bit entries. An entry holds the low half of the start; the high half
// comes from the straight line through the counts, from which no start is more than 2^15 away (the builder
// checks that, or takes 32-bit entries). Below 2^16 points the entry is the start itself.
struct line {
	uint32_t slope; // points, or 0
	uint32_t bias;
};

static inline struct line index_line(const struct ring_header *header)
{
	if (header->point_count < 1u << 16)
		return (struct line){0, 0};
	return (struct line){header->point_count, 1u << 15};
}

static inline struct ring_v3_run run_narrow(
	const struct ring *ring, struct line line, uint32_t prefix)
{
	uint32_t lowest =
		(uint32_t)((uint64_t)prefix * line.slope >> ring->header->prefix_bits) - line.bias;
	uint16_t entry[2];

	memcpy(entry, (const uint16_t *)ring->index + prefix, sizeof(entry));
	return (struct ring_v3_run){
		.start = lowest + (uint16_t)(entry[0] - lowest),
		.count = (uint16_t)(entry[1] - entry[0]),
	};
}

static inline struct ring_v3_run run_wide(const struct ring *ring, uint32_t prefix)
{
	const uint32_t *index = ring->index;

	return (struct ring_v3_run){index[prefix], index[prefix + 1] - index[prefix]};
}

struct ring_v3_run ring_v3_run(const struct ring *ring, uint32_t prefix)
{
	if (ring->header->index_width == sizeof(uint32_t))
		return run_wide(ring, prefix);
	return run_narrow(ring, index_line(ring->header), prefix);
}

// A run has eight points on average, and more than sixteen once in several hundred lookups. Halving bounds what
// points that crowd into one prefix can cost.
static inline struct ring_v3_run shorten(
	const uint32_t *points, struct ring_v3_run run, uint32_t remainder)
{
	while (__builtin_expect(run.count > RING_V3_PADDING, 0)) {
		uint32_t half = run.count / 2;

		if (points[run.start + half - 1] < remainder) {
			run.start += half;
			run.count -= half;
		} else {
			run.count = half;
		}
	}
	return run;
}

// The prefix fixes the top bits, so in a run the order of the stored words is the order of the hashes, and a
// point is >= the key exactly when its word is >= the key's remainder with owner 0.
static inline uint32_t resolve_scalar(
	const uint32_t *points, uint32_t bits, struct ring_v3_run run, uint32_t ring_hash)
{
	uint32_t remainder = ring_hash << bits, below = 0;

	run = shorten(points, run, remainder);
	// No branch on the data: a mispredicted exit costs more than the compares it saves.
	for (uint32_t i = 0; i < run.count; i++) {
		below += points[run.start + i] < remainder;
		KEEP_SCALAR(below);
	}
	return points[run.start + below] & ((UINT32_C(1) << bits) - 1);
}

uint32_t ring_v3_lookup(const struct ring *ring, uint32_t ring_hash)
{
	uint32_t bits = ring->header->prefix_bits;

	return resolve_scalar(
		ring->points, bits, ring_v3_run(ring, ring_hash >> (32 - bits)), ring_hash);
}

void ring_v3_prefetch(const struct ring *ring, uint32_t ring_hash)
{
	uint32_t prefix = ring_hash >> (32 - ring->header->prefix_bits);

	__builtin_prefetch(
		(const uint8_t *)ring->index + (size_t)prefix * ring->header->index_width);
}

// First pass of a burst: finds the runs and asks for their points, both ends, since a run of eight words crosses
// a line every other time.
static inline __attribute__((always_inline)) void find_runs(const struct ring *ring,
	const uint32_t *ring_hashes, unsigned count, struct ring_v3_run *ret_runs)
{
	const struct ring_header *header = ring->header;
	const uint32_t *points = ring->points;
	unsigned shift = 32 - header->prefix_bits;
	struct line line = index_line(header);

	if ((size_t)header->index_width << header->prefix_bits > INDEX_HOT_BYTES) {
		const uint8_t *index = ring->index;
		size_t width = header->index_width;

		for (unsigned i = 0; i < count; i++)
			__builtin_prefetch(index + (ring_hashes[i] >> shift) * width);
	}
	for (unsigned i = 0; i < count; i++) {
		struct ring_v3_run run = header->index_width == sizeof(uint16_t)
			? run_narrow(ring, line, ring_hashes[i] >> shift)
			: run_wide(ring, ring_hashes[i] >> shift);
		__builtin_prefetch(points + run.start);
		__builtin_prefetch(points + run.start + 7 + beyond(run.count, 7));
		ret_runs[i] = run;
	}
}

static void burst_scalar(
	const struct ring *ring, const uint32_t *ring_hashes, unsigned count, uint32_t *ret_owners)
{
	struct ring_v3_run runs[BURST_MAX];

	find_runs(ring, ring_hashes, count, runs);
	for (unsigned i = 0; i < count; i++) {
		ret_owners[i] = resolve_scalar(
			ring->points, ring->header->prefix_bits, runs[i], ring_hashes[i]);
	}
}

#if defined(__x86_64__)
// Bits of the eight words that are below the key, as unsigned numbers: not (max(word, key) == word).
static inline __attribute__((target("avx2,popcnt"), always_inline)) uint32_t below_mask8(
	const uint32_t *points, __m256i key)
{
	__m256i words = _mm256_loadu_si256((const __m256i *)points);
	__m256i above = _mm256_cmpeq_epi32(_mm256_max_epu32(words, key), words);

	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(above)) ^ 0xffu;
}

// Two vectors hold the sixteen points of a run. The second ends where the run ends, so that no line is read that the
// run does not touch: with a fixed place it cost a miss in every other lookup of a ring beyond the cache.
static inline __attribute__((target("avx2,popcnt"), always_inline)) uint32_t resolve_avx2(
	const uint32_t *points, uint32_t bits, struct ring_v3_run run, uint32_t ring_hash)
{
	uint32_t remainder = ring_hash << bits;
	__m256i key = _mm256_set1_epi32((int)remainder);

	run = shorten(points, run, remainder);
	uint32_t second = beyond(run.count, 8);
	uint32_t mask = below_mask8(points + run.start, key) |
		below_mask8(points + run.start + second, key) << second;
	uint32_t below = (uint32_t)_mm_popcnt_u32(mask & ((1u << run.count) - 1));

	return points[run.start + below] & ((UINT32_C(1) << bits) - 1);
}

static __attribute__((target("avx2,popcnt"))) void burst_avx2(
	const struct ring *ring, const uint32_t *ring_hashes, unsigned count, uint32_t *ret_owners)
{
	const uint32_t *points = ring->points;
	uint32_t bits = ring->header->prefix_bits;
	struct ring_v3_run runs[BURST_MAX];

	find_runs(ring, ring_hashes, count, runs);
	for (unsigned i = 0; i < count; i++)
		ret_owners[i] = resolve_avx2(points, bits, runs[i], ring_hashes[i]);
}
#endif

bool ring_v3_twin_runs(enum ring_v3_twin twin)
{
	switch (twin) {
	case RING_V3_SCALAR:
		return true;
	case RING_V3_AVX2:
#if defined(__x86_64__)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
#else
		return false;
#endif
	case RING_V3_TWIN_COUNT:
		break;
	}
	return false;
}

void ring_v3_burst(enum ring_v3_twin twin, const struct ring *ring, const uint32_t *ring_hashes,
	unsigned count, uint32_t *ret_owners)
{
#if defined(__x86_64__)
	if (twin == RING_V3_AVX2) {
		burst_avx2(ring, ring_hashes, count, ret_owners);
		return;
	}
#endif
	(void)twin;
	burst_scalar(ring, ring_hashes, count, ret_owners);
}
