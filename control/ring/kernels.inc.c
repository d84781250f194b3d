// SPDX-License-Identifier: Apache-2.0
// The loops of kernels.h. Included once for each target, with KERNELS set to the name of its table.
#include "control/ring/kernels.h"
#include "control/ring/sort.h"

// Words beyond this are not worth an insertion sort if they come in any order.
#define INSERT_MAX 1024u

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

static void fill(const struct chain_tables *tables, struct chain *lanes, unsigned lane_count,
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

static void count_points(void *context, uint32_t slot, const uint32_t *hashes, uint32_t count)
{
	const struct scatter scatter = *(const struct scatter *)context;

	(void)slot;
	for (uint32_t i = 0; i < count; i++)
		scatter.offsets[hashes[i] >> scatter.run_shift]++;
}

static void place_points(void *context, uint32_t slot, const uint32_t *hashes, uint32_t count)
{
	const struct scatter scatter = *(const struct scatter *)context;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t hash = hashes[i];
		uint32_t place = scatter.starts[hash >> scatter.prefix_shift] +
			scatter.offsets[hash >> scatter.run_shift]++;

		scatter.entries[place] = hash << scatter.entry_bits | slot;
	}
}

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t greatest(uint32_t a, uint32_t b)
{
	return a < b ? b : a;
}

// Pulls the words through a window of the two greatest so far: what is at most two places off comes out in order,
// without a branch. Plain insertion mispredicts about once in three words here, and takes twice as long.
static void pull_through(uint32_t *words, uint32_t count)
{
	uint32_t low = least(words[0], words[1]), high = greatest(words[0], words[1]);

	for (uint32_t i = 2; i < count; i++) {
		uint32_t word = greatest(low, words[i]);

		words[i - 2] = least(low, words[i]);
		low = least(word, high);
		high = greatest(word, high);
	}
	words[count - 2] = low;
	words[count - 1] = high;
}

static void sort_nearly(uint32_t *words, uint32_t count)
{
	if (count < 2)
		return;
	if (count > INSERT_MAX) {
		sort_heap(words, count);
		return;
	}
	pull_through(words, count);
	for (uint32_t i = 1; i < count; i++) {
		uint32_t word = words[i], place = i;

		if (__builtin_expect(words[i - 1] <= word, 1))
			continue;
		for (; place > 0 && words[place - 1] > word; place--)
			words[place] = words[place - 1];
		words[place] = word;
	}
}

const struct ring_kernels KERNELS = {
	.fill = fill,
	.count = count_points,
	.place = place_points,
	.sort = sort_nearly,
};
