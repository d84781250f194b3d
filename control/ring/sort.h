// SPDX-License-Identifier: Apache-2.0
// Sorts for what is not sorted yet. Private to control/ring, the tests and the benchmarks.
#pragma once

#include <stdint.h>

// Sorts 64-bit keys ascending, a byte at a time from the lowest; bytes that are equal in all keys are skipped.
// scratch: count words.
void sort_u64(uint64_t *keys, uint64_t *scratch, uint32_t count);

// Sorts words ascending, in place, through a heap: count x log2(count) whatever their order.
void sort_heap(uint32_t *words, uint32_t count);
