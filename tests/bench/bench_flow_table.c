// SPDX-License-Identifier: Apache-2.0
// Cost of the tables alone, nanoseconds of thread CPU time: flow-table look-ups by number of flows, with and without
// prefetch, what it saves not to write the time of each packet, inserting, sweeping; service look-ups by number of
// services.
#include "dataplane/table/flow_table.h"
#include "dataplane/table/service_table.h"
#include "tests/bench/bench.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BURST   32u
#define LOOKUPS (1u << 21)
#define ROUNDS  3u
#define NOW     1000000u

static const struct flow_idle idle = {30, 900, 30, 60};

static void *allocate(uint64_t bytes)
{
	uint64_t huge = UINT64_C(2) << 20;
	void *memory = aligned_alloc(huge, (bytes + huge - 1) / huge * huge);

	if (memory == NULL)
		abort();
	madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

static uint64_t flow(uint64_t number)
{
	return hash_splitmix64(number * UINT64_C(0x9e3779b97f4a7c15));
}

enum way {
	WAY_PREFETCH,
	WAY_SINGLE,
	WAY_WRITE_TIME
};

// One burst of look-ups of random flows, as the pipeline does them.
static unsigned look_up(struct flow_table *table, const uint64_t *hashes, enum way way)
{
	struct flow_entry entries[BURST];
	unsigned hits = 0;

	if (way == WAY_SINGLE) {
		for (unsigned i = 0; i < BURST; i++)
			flow_table_find_burst(table, &hashes[i], 1, &entries[i]);
	} else {
		for (unsigned i = 0; i < BURST; i++)
			flow_table_prefetch(table, hashes[i]);
		flow_table_find_burst(table, hashes, BURST, entries);
	}
	for (unsigned i = 0; i < BURST; i++) {
		if (entries[i].slot == NULL)
			continue;
		hits++;
		if (way == WAY_WRITE_TIME)
			__atomic_store_n(entries[i].slot, entries[i].word, __ATOMIC_RELAXED);
		else if (!flow_table_is_settled(table, entries[i].word, FLOW_EVENT_DATA, &idle))
			flow_table_advance(table, &entries[i], FLOW_EVENT_DATA, &idle);
	}
	return hits;
}

static double lookup_ns(struct flow_table *table, uint32_t flows, enum way way, double *ret_hits)
{
	double best = 1e9;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t random = round, hits = 0, spent = 0;

		for (unsigned done = 0; done < LOOKUPS; done += 1024) {
			uint64_t hashes[1024], start;

			for (unsigned i = 0; i < 1024; i++)
				hashes[i] = flow(suite_random(&random) % flows);
			start = bench_now_ns();
			for (unsigned i = 0; i < 1024; i += BURST)
				hits += look_up(table, hashes + i, way);
			spent += bench_now_ns() - start;
		}
		double ns = (double)spent / LOOKUPS;

		best = ns < best ? ns : best;
		*ret_hits = (double)hits / LOOKUPS;
	}
	return best;
}

static void establish(struct flow_table *table, uint64_t hash)
{
	struct flow_choice choice = {.backend = (uint32_t)hash & 2047};
	struct flow_entry entry;

	flow_table_insert(table, hash, FLOW_EVENT_SYN, &choice, &idle, &entry);
	for (unsigned i = 0; i < 3 && entry.slot != NULL; i++)
		flow_table_advance(table, &entry, FLOW_EVENT_DATA, &idle);
}

static void run_lookups(uint32_t flows)
{
	uint32_t entries = flows < 32 ? 64 : 2 * flows;
	struct flow_table *table =
		flow_table_format(allocate(flow_table_footprint(entries)), entries, NOW);
	double hits, prefetch, single, writing, insert, sweep;
	uint64_t start = bench_now_ns();
	struct flow_sweep swept = {.wrapped = false};

	for (uint32_t i = 0; i < flows; i++)
		establish(table, flow(i));
	insert = (double)(bench_now_ns() - start) / flows;
	prefetch = lookup_ns(table, flows, WAY_PREFETCH, &hits);
	single = lookup_ns(table, flows, WAY_SINGLE, &hits);
	writing = lookup_ns(table, flows, WAY_WRITE_TIME, &hits);
	start = bench_now_ns();
	while (!swept.wrapped)
		flow_table_sweep(table, FLOW_TABLE_SWEEP_BUCKETS_MAX, &swept);
	sweep = (double)(bench_now_ns() - start) / (double)table->bucket_count;
	printf("flows %8u   burst %5.1f ns   one by one %6.1f ns   time written a packet %5.1f ns   "
	       "insert %5.1f ns   sweep %4.1f ns/bucket   hit %5.1f %%   %6.1f MiB\n",
		flows, prefetch, single, writing, insert, sweep, 100 * hits,
		(double)flow_table_footprint(entries) / (1 << 20));
	fflush(stdout);
	free(table);
}

static void run_services(uint32_t services)
{
	struct snapshot_binding *bindings = calloc(services, sizeof(*bindings));
	struct flow_key keys[BURST] = {{.family = 0}};
	const struct flow_key *pointers[BURST];
	uint32_t found[BURST], sum = 0;
	double best = 1e9;

	for (uint32_t i = 0; i < services; i++) {
		uint32_t address_be = htonl(0xcb007100 + i);

		memcpy(bindings[i].address.bytes, &address_be, 4);
		bindings[i].address.family = ADDR_V4;
		bindings[i].prefix_bits = 32;
		bindings[i].protocol = IPPROTO_TCP;
		bindings[i].port_be = htons(443);
		bindings[i].service = i;
	}
	struct service_table *table = service_table_format(
		allocate(service_table_footprint(services)), bindings, services);

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t random = 1, spent = 0;

		for (unsigned done = 0; done < LOOKUPS; done += BURST) {
			for (unsigned i = 0; i < BURST; i++) {
				uint32_t address_be = htonl(
					0xcb007100 + (uint32_t)(suite_random(&random) % services));

				keys[i] = (struct flow_key){.family = ADDR_V4,
					.protocol = IPPROTO_TCP,
					.destination_port_be = htons(443)};
				memcpy(keys[i].destination, &address_be, 4);
				pointers[i] = &keys[i];
			}
			uint64_t start = bench_now_ns();

			service_table_find_burst(table, pointers, BURST, found);
			spent += bench_now_ns() - start;
			sum += found[done % BURST];
		}
		best = (double)spent / LOOKUPS < best ? (double)spent / LOOKUPS : best;
	}
	// The clock itself costs some 100 ns a burst here, 3 ns a look-up.
	printf("services %6u   %5.1f ns a look-up in bursts of 32, clock included   %s\n", services,
		best, sum == UINT32_MAX ? "!" : "");
	free(table);
	free(bindings);
}

int main(void)
{
	static const uint32_t flow_counts[] = {32, 1024, 65536, 307200, 1048576, 4194304};
	static const uint32_t service_counts[] = {1, 100, SNAPSHOT_SERVICES_MAX};

	for (unsigned i = 0; i < sizeof(flow_counts) / sizeof(flow_counts[0]); i++)
		run_lookups(flow_counts[i]);
	for (unsigned i = 0; i < sizeof(service_counts) / sizeof(service_counts[0]); i++)
		run_services(service_counts[i]);
	return 0;
}
