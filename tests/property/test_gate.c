// SPDX-License-Identifier: Apache-2.0
// What a cutover promises of its gate, over real flow hashes and real rings.
#include "common/flow.h"
#include "common/gate.h"
#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define FLOWS 100000u

static uint32_t *flow_hashes(uint32_t count, uint64_t *state)
{
	uint32_t *hashes = calloc(count, sizeof(*hashes));
	uint8_t fleet[HASH_SEED_BYTES];

	CU_ASSERT_PTR_NOT_NULL_FATAL(hashes);
	for (unsigned i = 0; i < sizeof(fleet); i++)
		fleet[i] = (uint8_t)suite_random(state);
	struct hash_seed seed = hash_seed_expand(fleet);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t random = suite_random(state);
		struct flow_key key = {.family = ADDR_V4,
			.protocol = IPPROTO_TCP,
			.source_port_be = htons((uint16_t)(1024 + i % 60000)),
			.destination_port_be = htons(443),
			.destination = {203, 0, 113, 10}};

		memcpy(key.source, &random, 4);
		hashes[i] = flow_ring_hash(flow_hash(&key, &seed));
	}
	return hashes;
}

// Sweeps the share up and down; no flow flips twice in one direction, and the way down undoes the way up.
static void sweep_is_monotone_and_undone(void)
{
	uint64_t state = suite_seed();
	uint32_t salt = (uint32_t)suite_random(&state), *hashes = flow_hashes(FLOWS, &state);
	uint32_t *new_since = calloc(FLOWS, sizeof(*new_since)), flips = 0;

	for (uint32_t share = 0; share <= GATE_SHARE_ALL; share += 2500) {
		for (uint32_t i = 0; i < FLOWS; i++) {
			bool is_new = gate_uses_new(gate_threshold(share), salt, hashes[i]);

			if (new_since[i] != 0 && !is_new)
				CU_FAIL("a flow went back while the share rose");
			if (new_since[i] == 0 && is_new) {
				new_since[i] = share;
				flips++;
			}
		}
	}
	CU_ASSERT_EQUAL(flips, FLOWS);
	for (uint32_t share = GATE_SHARE_ALL; share <= GATE_SHARE_ALL; share -= 2500) {
		for (uint32_t i = 0; i < FLOWS; i++) {
			bool is_new = gate_uses_new(gate_threshold(share), salt, hashes[i]);

			if (is_new != (share >= new_since[i]))
				CU_FAIL("the way down is not the way up");
		}
	}
	free(new_since);
	free(hashes);
}

static void share_of_flows_is_the_share_asked_for(void)
{
	static const uint32_t shares[] = {1, 100, 10000, 100000, 333333, 500000, 999999};
	uint64_t state = suite_seed();
	uint32_t salt = (uint32_t)suite_random(&state), count = 1000000;
	uint32_t *hashes = flow_hashes(count, &state);

	for (unsigned s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
		double p = (double)shares[s] / GATE_SHARE_ALL, expected = p * count;
		uint32_t taken = 0;

		for (uint32_t i = 0; i < count; i++)
			taken += gate_uses_new(gate_threshold(shares[s]), salt, hashes[i]);
		// Six standard deviations and, for the smallest share, room for a Poisson tail.
		CU_ASSERT(fabs(taken - expected) <= 6 * sqrt(expected * (1 - p)) + 6);
	}
	free(hashes);
}

// A gate that used the ring's own hash, or another linear one, would send 1 % to an arc: 160 of 1,000 backends.
static void one_percent_reaches_every_backend(void)
{
	uint64_t state = suite_seed();
	uint32_t salt = (uint32_t)suite_random(&state), count = 5000000, seen = 0, most = 0;
	uint32_t *hashes = flow_hashes(count, &state), *loads = calloc(1000, sizeof(*loads));
	uint32_t total = 0, backends_seen = 0;
	struct ring_set set;
	struct ring_built built;

	ring_set_init(&set, RING_V2, 16, 1000);
	ring_set_sequence(&set, 0x0a000001, 0);
	CU_ASSERT_EQUAL_FATAL(ring_built_make(&set, &built), 0);
	for (uint32_t i = 0; i < count; i++) {
		if (!gate_uses_new(gate_threshold(10000), salt, hashes[i]))
			continue;
		seen = ++loads[ring_lookup(&built.ring, hashes[i])];
		most = seen > most ? seen : most;
		total++;
	}
	for (unsigned i = 0; i < 1000; i++)
		backends_seen += loads[i] > 0;
	printf("# %u flows at 1 %%: %u of 1000 backends, hottest %.2f of the fair share\n", total,
		backends_seen, most * 1000.0 / total);
	// The coldest arc of 16 points is a third of the fair share: 16 of the 50 flows expected.
	CU_ASSERT_EQUAL(backends_seen, 1000);
	CU_ASSERT(most * 1000.0 / total < 4);
	ring_built_free(&built);
	ring_set_free(&set);
	free(loads);
	free(hashes);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"sweep_is_monotone_and_undone", sweep_is_monotone_and_undone},
		{"share_of_flows_is_the_share_asked_for", share_of_flows_is_the_share_asked_for},
		{"one_percent_reaches_every_backend", one_percent_reaches_every_backend},
	};

	return SUITE_RUN("gate", cases);
}
