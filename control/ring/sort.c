// SPDX-License-Identifier: Apache-2.0
#include "control/ring/sort.h"

#include <string.h>

#define LANES 16u

typedef uint32_t vector_u32 __attribute__((vector_size(LANES * sizeof(uint32_t))));

static void sort_pass(
	const uint64_t *from, uint64_t *to, uint32_t count, unsigned shift, uint32_t place[256])
{
	for (uint32_t i = 0; i < count; i++)
		to[place[from[i] >> shift & 0xff]++] = from[i];
}

void sort_u64(uint64_t *keys, uint64_t *scratch, uint32_t count)
{
	uint64_t *from = keys, *to = scratch;

	for (unsigned shift = 0; shift < 64; shift += 8) {
		uint32_t place[256] = {0}, sum = 0, largest = 0;

		for (uint32_t i = 0; i < count; i++)
			place[from[i] >> shift & 0xff]++;
		for (unsigned digit = 0; digit < 256; digit++) {
			uint32_t size = place[digit];

			largest = size > largest ? size : largest;
			place[digit] = sum;
			sum += size;
		}
		if (largest == count)
			continue;
		sort_pass(from, to, count, shift, place);
		uint64_t *swap = from;

		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, count * sizeof(*keys));
}

// The rank of a word is the number of smaller ones. Insertion into such short runs would mispredict about once a
// word; this costs the same for every order.
static void sort_ranked(uint32_t *words, uint32_t count)
{
	uint32_t sorted[LANES];
	vector_u32 all, rank = {0};

	memset(&all, 0xff, sizeof(all));
	memcpy(&all, words, count * sizeof(*words));
	for (uint32_t i = 0; i < count; i++)
		rank -= (vector_u32)(all > words[i]);
	for (uint32_t i = 0; i < count; i++)
		sorted[rank[i]] = words[i];
	memcpy(words, sorted, count * sizeof(*words));
}

static void heap_sink(uint32_t *words, uint32_t root, uint32_t count)
{
	uint32_t word = words[root];

	for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		child += child + 1 < count && words[child + 1] > words[child];
		if (words[child] <= word)
			break;
		words[root] = words[child];
		root = child;
	}
	words[root] = word;
}

static void sort_heap(uint32_t *words, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		heap_sink(words, i - 1, count);
	for (uint32_t left = count - 1; left > 0; left--) {
		uint32_t top = words[0];

		words[0] = words[left];
		words[left] = top;
		heap_sink(words, 0, left);
	}
}

void sort_run(uint32_t *words, uint32_t count)
{
	if (count < 2)
		return;
	if (count <= LANES)
		sort_ranked(words, count);
	else
		sort_heap(words, count);
}
