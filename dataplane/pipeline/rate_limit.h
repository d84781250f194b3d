// SPDX-License-Identifier: Apache-2.0
// A token bucket: so many a second, so many at once. One worker's own; time is an argument.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
	uint64_t now_ns;   // when tokens were last added
	uint64_t token_ns; // time that makes one token
	uint64_t tokens;
	uint64_t tokens_max;
};

// rate: tokens a second, at least 1. burst: tokens at the start and at most.
static inline void rate_limit_init(struct rate_limit *limit, uint64_t rate, uint64_t burst)
{
	*limit = (struct rate_limit){
		.token_ns = UINT64_C(1000000000) / rate, .tokens = burst, .tokens_max = burst};
}

// Takes a token. Returns false when there is none. A clock that goes back adds nothing.
static inline bool rate_limit_take(struct rate_limit *limit, uint64_t now_ns)
{
	if (now_ns > limit->now_ns) {
		uint64_t made = (now_ns - limit->now_ns) / limit->token_ns;

		limit->tokens = made > limit->tokens_max - limit->tokens ? limit->tokens_max
									 : limit->tokens + made;
		// What is left of a token's time is kept, so that frequent calls lose nothing.
		limit->now_ns = limit->tokens == limit->tokens_max
			? now_ns
			: limit->now_ns + made * limit->token_ns;
	}
	if (limit->tokens == 0)
		return false;
	limit->tokens--;
	return true;
}

// Gives tokens back, or as a reward.
static inline void rate_limit_add(struct rate_limit *limit, uint64_t tokens)
{
	limit->tokens = tokens > limit->tokens_max - limit->tokens ? limit->tokens_max
								   : limit->tokens + tokens;
}
