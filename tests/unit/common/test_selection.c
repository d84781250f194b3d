// SPDX-License-Identifier: Apache-2.0
#include "common/selection.h"

#include "tests/lib/image.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

static struct snapshot snapshot;
static void *image;

static void open_image(bool staged)
{
	struct image_shape shape = {.generation = 1,
		.pool_count = 2,
		.backend_count = 20,
		.points = 16,
		.staged = staged};
	struct snapshot_error error;
	uint64_t bytes;

	image = image_build(&shape, &bytes);
	CU_ASSERT_EQUAL_FATAL(snapshot_open(image, bytes, &snapshot, &error), 0);
}

static void gate_decides_between_the_rings(void)
{
	uint64_t state = suite_seed();

	open_image(true);
	const struct snapshot_service *service = &snapshot.services[1];
	struct snapshot_pool *pool = &snapshot.pools[service->pool];
	unsigned differ = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t hash = (uint32_t)suite_random(&state);
		uint64_t threshold = suite_random(&state) >> 31;
		struct selection pick;

		snapshot_threshold_set(pool, threshold);
		selection_prefetch(&snapshot, service, hash);
		selection_pick(&snapshot, service, hash, &pick);
		bool is_new = gate_uses_new(threshold, pool->gate.salt, hash);
		uint32_t ring = is_new ? service->ring_new : service->ring_old;
		uint32_t other = is_new ? service->ring_old : service->ring_new;
		uint32_t owner = ring_lookup(&snapshot.rings[ring], hash);

		CU_ASSERT_EQUAL(pick.uses_new, is_new);
		CU_ASSERT_EQUAL(pick.ring, ring);
		CU_ASSERT_EQUAL(pick.bucket, gate_bucket(hash, pool->gate.salt));
		CU_ASSERT_EQUAL(pick.backend, ring_member(&snapshot.rings[ring], owner));
		CU_ASSERT_EQUAL(snapshot.backends[pick.backend].pool, service->pool);
		differ += ring_member(&snapshot.rings[other],
				  ring_lookup(&snapshot.rings[other], hash)) != pick.backend;
	}
	CU_ASSERT(differ > 1000);
	free(image);
}

static void without_a_new_ring_the_gate_is_moot(void)
{
	open_image(false);
	const struct snapshot_service *service = &snapshot.services[0];
	struct selection pick;

	snapshot_threshold_set(&snapshot.pools[service->pool], GATE_ALWAYS);
	selection_pick(&snapshot, service, 12345, &pick);
	CU_ASSERT_FALSE(pick.uses_new);
	CU_ASSERT_EQUAL(pick.ring, service->ring_old);
	CU_ASSERT_NOT_EQUAL(pick.backend, SELECTION_NO_BACKEND);
	free(image);
}

static void nobody_usable_means_no_backend(void)
{
	open_image(false);
	const struct snapshot_service *service = &snapshot.services[0];
	struct ring_header *header = (struct ring_header *)snapshot.rings[service->ring_old].header;
	struct selection pick;

	header->usable_count = 0;
	selection_pick(&snapshot, service, 12345, &pick);
	CU_ASSERT_EQUAL(pick.backend, SELECTION_NO_BACKEND);
	free(image);
}

static void affinity_names_what_is_hashed(void)
{
	struct flow_key key = {.family = ADDR_V4,
		.protocol = IPPROTO_UDP,
		.source = {10, 1, 2, 3},
		.destination = {203, 0, 113, 1},
		.source_port_be = htons(1000),
		.destination_port_be = htons(443)};
	struct flow_key part, other = key;
	static const uint8_t connection[] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint32_t hash;

	open_image(false);
	struct snapshot_service service = snapshot.services[0];
	uint64_t whole = flow_hash(&key, &snapshot.hash_seed);

	service.affinity = FLOW_AFFINITY_FLOW;
	hash = selection_ring_hash(&snapshot, &service, &key, whole, NULL, 0);
	CU_ASSERT_EQUAL(hash, flow_ring_hash(whole));
	service.affinity = FLOW_AFFINITY_CLIENT;
	part = flow_key_project(&key, FLOW_AFFINITY_CLIENT);
	hash = selection_ring_hash(&snapshot, &service, &key, whole, NULL, 0);
	CU_ASSERT_EQUAL(hash, flow_ring_hash(flow_hash(&part, &snapshot.hash_seed)));
	other.source_port_be = htons(2000);
	CU_ASSERT_EQUAL(hash,
		selection_ring_hash(&snapshot, &service, &other,
			flow_hash(&other, &snapshot.hash_seed), NULL, 0));
	service.affinity = FLOW_AFFINITY_DESTINATION;
	CU_ASSERT_NOT_EQUAL(hash, selection_ring_hash(&snapshot, &service, &key, whole, NULL, 0));
	service.affinity = FLOW_AFFINITY_QUIC;
	CU_ASSERT_EQUAL(selection_ring_hash(&snapshot, &service, &key, whole, NULL, 0),
		flow_ring_hash(whole));
	hash = selection_ring_hash(
		&snapshot, &service, &key, whole, connection, sizeof(connection));
	CU_ASSERT_EQUAL(hash,
		flow_ring_hash(hash_bytes(connection, sizeof(connection), &snapshot.hash_seed)));
	// A QUIC connection keeps its backend when its client changes address.
	other.source[0] = 99;
	CU_ASSERT_EQUAL(hash,
		selection_ring_hash(&snapshot, &service, &other,
			flow_hash(&other, &snapshot.hash_seed), connection, sizeof(connection)));
	free(image);
}

static void burst_picks_what_single_picks_do(void)
{
	uint64_t state = suite_seed();

	for (unsigned round = 0; round < 2000; round++) {
		const struct snapshot_service *services[SELECTION_BURST];
		uint32_t hashes[SELECTION_BURST];
		struct selection picks[SELECTION_BURST];
		unsigned count = (unsigned)(1 + suite_random(&state) % SELECTION_BURST);

		if (round % 500 == 0)
			open_image(round % 1000 == 0);
		for (unsigned i = 0; i < 2; i++)
			snapshot_threshold_set(&snapshot.pools[i], suite_random(&state) >> 31);
		for (unsigned i = 0; i < count; i++) {
			services[i] = &snapshot.services[suite_random(&state) % 2];
			hashes[i] = (uint32_t)suite_random(&state);
		}
		selection_pick_burst(&snapshot, services, hashes, count, picks);
		for (unsigned i = 0; i < count; i++) {
			struct selection alone;

			selection_pick(&snapshot, services[i], hashes[i], &alone);
			CU_ASSERT_EQUAL(picks[i].backend, alone.backend);
			CU_ASSERT_EQUAL(picks[i].ring, alone.ring);
			CU_ASSERT_EQUAL(picks[i].bucket, alone.bucket);
			CU_ASSERT_EQUAL(picks[i].uses_new, alone.uses_new);
		}
		if (round % 500 == 499)
			free(image);
	}
}

int main(void)
{
	static const struct test_case cases[] = {
		{"burst_picks_what_single_picks_do", burst_picks_what_single_picks_do},
		{"gate_decides_between_the_rings", gate_decides_between_the_rings},
		{"without_a_new_ring_the_gate_is_moot", without_a_new_ring_the_gate_is_moot},
		{"nobody_usable_means_no_backend", nobody_usable_means_no_backend},
		{"affinity_names_what_is_hashed", affinity_names_what_is_hashed},
	};

	return SUITE_RUN("selection", cases);
}
