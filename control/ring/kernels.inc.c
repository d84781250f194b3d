// SPDX-License-Identifier: Apache-2.0
// The loops of kernels.h. Included once for each target, behind its fill(), with KERNELS set to the name of its table
// and LANES, LANE_STRIDE and POINT_STRIDE to what its fill() does.
#include "control/ring/kernels.h"
#include "control/ring/sort.h"

// Words beyond this are not worth an insertion sort if they come in any order.
#define INSERT_MAX 1024u

static void count_points(void *context, const struct points_run *run)
{
	const struct scatter scatter = *(const struct scatter *)context;
	const uint32_t *hash = run->hashes, stride = run->stride;

	for (uint32_t i = run->count; i > 0; i--, hash += stride)
		scatter.offsets[*hash >> scatter.run_shift]++;
}

static void place_points(void *context, const struct points_run *run)
{
	const struct scatter scatter = *(const struct scatter *)context;
	const uint32_t *next = run->hashes, stride = run->stride, slot = run->slot;

	for (uint32_t i = run->count; i > 0; i--, next += stride) {
		uint32_t hash = *next;
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
	.lanes = LANES,
	.lane_stride = LANE_STRIDE,
	.point_stride = POINT_STRIDE,
	.fill = fill,
	.count = count_points,
	.place = place_points,
	.sort = sort_nearly,
};
