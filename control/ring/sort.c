// SPDX-License-Identifier: Apache-2.0
#include "control/ring/sort.h"

#include <string.h>

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

void sort_heap(uint32_t *words, uint32_t count)
{
	for (uint32_t i = count / 2; i > 0; i--)
		heap_sink(words, i - 1, count);
	for (uint32_t left = count; left-- > 1;) {
		uint32_t top = words[0];

		words[0] = words[left];
		words[left] = top;
		heap_sink(words, 0, left);
	}
}
