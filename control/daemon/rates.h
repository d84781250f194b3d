// SPDX-License-Identifier: Apache-2.0
// New flows a second of each pool, over about the last minute.
#pragma once

#include <stdint.h>

// Seconds in which an old rate is forgotten to 37 %.
#define RATES_MEMORY_S 60

struct rates;

struct rates *rates_create(void); // NULL when memory is short
void rates_free(struct rates *rates);

// Takes what a counter of a pool is now. Counters that begin anew, or shrink, begin a new rate.
// Cost: O(1), but for the first call with a larger id.
void rates_take(
	struct rates *rates, uint32_t pool, uint64_t flows, uint64_t epoch, uint64_t now_ns);

// The rate of a pool; 0 before two looks.
double rates_of(const struct rates *rates, uint32_t pool);
