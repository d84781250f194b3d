// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rate {
	uint64_t epoch;
	uint64_t flows;
	uint64_t began_ns; // 0: nothing seen
	uint64_t taken_ns;
	double per_second;
};

struct rates {
	struct rate *items; // by pool id
	uint32_t count;
};

struct rates *rates_create(void)
{
	return calloc(1, sizeof(struct rates));
}

void rates_free(struct rates *rates)
{
	if (rates == NULL)
		return;
	free(rates->items);
	free(rates);
}

static struct rate *rate_of(struct rates *rates, uint32_t pool)
{
	if (pool >= rates->count) {
		uint32_t count = pool + 1 > 2 * rates->count ? pool + 1 : 2 * rates->count;
		struct rate *larger = realloc(rates->items, count * sizeof(*larger));

		if (larger == NULL)
			return NULL;
		memset(larger + rates->count, 0, (count - rates->count) * sizeof(*larger));
		rates->items = larger;
		rates->count = count;
	}
	return &rates->items[pool];
}

void rates_take(struct rates *rates, uint32_t pool, uint64_t flows, uint64_t epoch, uint64_t now_ns)
{
	struct rate *rate = rate_of(rates, pool);

	if (rate == NULL || now_ns <= rate->taken_ns)
		return;
	if (rate->began_ns == 0 || rate->epoch != epoch || flows < rate->flows) {
		*rate = (struct rate){
			.epoch = epoch, .flows = flows, .began_ns = now_ns, .taken_ns = now_ns};
		return;
	}
	double seconds = (double)(now_ns - rate->taken_ns) / 1e9;
	double age = (double)(now_ns - rate->began_ns) / 1e9;
	double part = 1 - exp(-seconds / RATES_MEMORY_S);

	// A young rate is a plain mean.
	if (part < seconds / age)
		part = seconds / age;
	rate->per_second += part * ((double)(flows - rate->flows) / seconds - rate->per_second);
	rate->flows = flows;
	rate->taken_ns = now_ns;
}

double rates_of(const struct rates *rates, uint32_t pool)
{
	return pool < rates->count ? rates->items[pool].per_second : 0;
}
