// SPDX-License-Identifier: Apache-2.0
// Sorts without comparisons of pairs. Private to control/ring, the tests and the benchmarks.
#pragma once

#include <stdint.h>

// Sorts 64-bit keys ascending, a byte at a time from the lowest; bytes that are equal in all keys are skipped.
// scratch: count words.
void sort_u64(uint64_t *keys, uint64_t *scratch, uint32_t count);

// Sorts a short run of distinct words ascending, in place. Meant for a mean of four to eight: up to sixteen are
// ranked by vector compares without a branch on the data; longer runs go through a heap, so the worst case is
// count x log2(count).
void sort_run(uint32_t *words, uint32_t count);
