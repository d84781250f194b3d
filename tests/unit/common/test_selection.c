// SPDX-License-Identifier: Apache-2.0
#include "common/selection.h"

#include "tests/lib/image.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

static struct snapshot snapshot;
static void *image;

static void open_seeded(bool staged, uint8_t seeded)
{
	struct image_shape shape = {.generation = 1,
		.pool_count = 2,
		.backend_count = 20,
		.points = 16,
		.staged = staged,
		.seeded = seeded};
	struct snapshot_error error;
	uint64_t bytes;

	image = image_build(&shape, &bytes);
	CU_ASSERT_EQUAL_FATAL(snapshot_open(image, bytes, &snapshot, &error), 0);
}

static void open_image(bool staged)
{
	open_seeded(staged, 0);
}

// One hash for both rings, as without seeds of their own.
static struct selection_hash both(uint32_t hash)
{
	return (struct selection_hash){hash, hash};
}

static void gate_decides_between_the_rings(void)
{
	uint64_t state = suite_seed();

	open_image(true);
	const struct snapshot_service *service = &snapshot.services[1];
	struct snapshot_pool *pool = &snapshot.pools[service->pool];
	unsigned differ = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct selection_hash hash = {
			(uint32_t)suite_random(&state), (uint32_t)suite_random(&state)};
		uint64_t threshold = suite_random(&state) >> 31;
		struct selection pick;
		uint32_t on_old, on_new;

		snapshot_gate_set(pool, threshold);
		selection_prefetch(&snapshot, service, hash);
		selection_pick(&snapshot, service, hash, &pick);
		selection_pick_both(&snapshot, service, hash, &on_old, &on_new);
		// The old ring's hash alone decides at the gate.
		bool is_new = gate_uses_new(threshold, pool->gate.salt, hash.ring_old);
		uint32_t ring = is_new ? service->ring_new : service->ring_old;
		uint32_t owner =
			ring_lookup(&snapshot.rings[ring], is_new ? hash.ring_new : hash.ring_old);

		CU_ASSERT_EQUAL(pick.uses_new, is_new);
		CU_ASSERT_EQUAL(pick.ring, ring);
		CU_ASSERT_EQUAL(pick.bucket, gate_bucket(hash.ring_old, pool->gate.salt));
		CU_ASSERT_EQUAL(pick.backend, ring_member(&snapshot.rings[ring], owner));
		CU_ASSERT_EQUAL(pick.backend, is_new ? on_new : on_old);
		CU_ASSERT_EQUAL(pick.hash.ring_old, hash.ring_old);
		CU_ASSERT_EQUAL(pick.hash.ring_new, hash.ring_new);
		CU_ASSERT_EQUAL(snapshot.backends[pick.backend].pool, service->pool);
		differ += on_old != on_new;
	}
	CU_ASSERT(differ > 1000);
	free(image);
}

static void without_a_new_ring_the_gate_is_moot(void)
{
	open_image(false);
	const struct snapshot_service *service = &snapshot.services[0];
	struct selection pick;

	snapshot_gate_set(&snapshot.pools[service->pool], GATE_ALWAYS);
	selection_pick(&snapshot, service, (struct selection_hash){12345, 54321}, &pick);
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
	uint32_t on_old = 0, on_new = 0;

	selection_pick(&snapshot, service, both(12345), &pick);
	CU_ASSERT_EQUAL(pick.backend, SELECTION_NO_BACKEND);
	selection_pick_both(&snapshot, service, both(12345), &on_old, &on_new);
	CU_ASSERT_EQUAL(on_old, SELECTION_NO_BACKEND);
	CU_ASSERT_EQUAL(on_new, SELECTION_NO_BACKEND);
	free(image);
}

static const uint8_t connection[] = {1, 2, 3, 4, 5, 6, 7, 8};

static struct flow_key some_key(void)
{
	return (struct flow_key){.family = ADDR_V4,
		.protocol = IPPROTO_UDP,
		.source = {10, 1, 2, 3},
		.destination = {203, 0, 113, 1},
		.source_port_be = htons(1000),
		.destination_port_be = htons(443)};
}

static struct selection_hash hash_of(
	const struct snapshot_service *service, const struct flow_key *key, size_t id_length)
{
	return selection_ring_hash(&snapshot, service, key, flow_hash(key, &snapshot.hash_seed),
		connection, id_length);
}

// What a ring under a seed must see, written down once more.
static uint32_t expected(const struct snapshot_service *service, const struct flow_key *key,
	size_t id_length, const struct hash_seed *seed)
{
	struct flow_key part = flow_key_project(key, (enum flow_affinity)service->affinity);

	if (service->affinity == FLOW_AFFINITY_QUIC && id_length > 0)
		return flow_ring_hash(hash_bytes(connection, id_length, seed));
	return flow_ring_hash(flow_hash(&part, seed));
}

static void affinity_names_what_is_hashed(void)
{
	struct flow_key key = some_key(), other = key;
	struct selection_hash hash;

	open_image(true);
	struct snapshot_service service = snapshot.services[0];

	for (unsigned affinity = 0; affinity < FLOW_AFFINITY_COUNT; affinity++) {
		for (size_t length = 0; length <= sizeof(connection); length += 8) {
			service.affinity = (uint8_t)affinity;
			hash = hash_of(&service, &key, length);
			CU_ASSERT_EQUAL(hash.ring_old,
				expected(&service, &key, length, &snapshot.hash_seed));
			CU_ASSERT_EQUAL(hash.ring_new, hash.ring_old);
		}
	}
	service.affinity = FLOW_AFFINITY_CLIENT;
	hash = hash_of(&service, &key, 0);
	other.source_port_be = htons(2000);
	CU_ASSERT_EQUAL(hash.ring_old, hash_of(&service, &other, 0).ring_old);
	service.affinity = FLOW_AFFINITY_DESTINATION;
	CU_ASSERT_NOT_EQUAL(hash.ring_old, hash_of(&service, &key, 0).ring_old);
	// A QUIC connection keeps its backend when its client changes address.
	service.affinity = FLOW_AFFINITY_QUIC;
	hash = hash_of(&service, &key, sizeof(connection));
	other.source[0] = 99;
	CU_ASSERT_EQUAL(hash.ring_old, hash_of(&service, &other, sizeof(connection)).ring_old);
	free(image);
}

// Each ring sees the flow under its own seed, for every affinity and every side that has one.
static void rings_see_flows_under_their_own_seeds(void)
{
	struct flow_key key = some_key();

	for (unsigned seeded = 0; seeded < 4; seeded++) {
		open_seeded(true, (uint8_t)seeded);
		struct snapshot_service service = snapshot.services[1];
		uint8_t bytes[2][HASH_SEED_BYTES];

		memset(bytes[0], (int)(IMAGE_SEED + service.ring_old), HASH_SEED_BYTES);
		memset(bytes[1], (int)(IMAGE_SEED + service.ring_new), HASH_SEED_BYTES);
		struct hash_seed old_seed =
			seeded & IMAGE_SEEDED_OLD ? hash_seed_expand(bytes[0]) : snapshot.hash_seed;
		struct hash_seed new_seed =
			seeded & IMAGE_SEEDED_NEW ? hash_seed_expand(bytes[1]) : snapshot.hash_seed;

		CU_ASSERT_EQUAL(snapshot.has_ring_seeds, seeded != 0);
		for (unsigned i = 0; i < 2 * FLOW_AFFINITY_COUNT; i++) {
			size_t length = i % 2 ? sizeof(connection) : 0;

			service.affinity = (uint8_t)(i / 2);
			struct selection_hash hash = hash_of(&service, &key, length);

			CU_ASSERT_EQUAL(hash.ring_old, expected(&service, &key, length, &old_seed));
			CU_ASSERT_EQUAL(hash.ring_new, expected(&service, &key, length, &new_seed));
		}
		// Without a new ring there is one hash.
		service.ring_new = SNAPSHOT_NO_RING;
		struct selection_hash hash = hash_of(&service, &key, 0);

		CU_ASSERT_EQUAL(hash.ring_new, hash.ring_old);
		free(image);
	}
}

static void burst_picks_what_single_picks_do(void)
{
	uint64_t state = suite_seed();

	for (unsigned round = 0; round < 2000; round++) {
		const struct snapshot_service *services[SELECTION_BURST];
		struct selection_hash hashes[SELECTION_BURST];
		struct selection picks[SELECTION_BURST];
		unsigned count = (unsigned)(1 + suite_random(&state) % SELECTION_BURST);

		if (round % 500 == 0)
			open_image(round % 1000 == 0);
		for (unsigned i = 0; i < 2; i++)
			snapshot_gate_set(&snapshot.pools[i], suite_random(&state) >> 31);
		for (unsigned i = 0; i < count; i++) {
			services[i] = &snapshot.services[suite_random(&state) % 2];
			hashes[i] = (struct selection_hash){
				(uint32_t)suite_random(&state), (uint32_t)suite_random(&state)};
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
		{"rings_see_flows_under_their_own_seeds", rings_see_flows_under_their_own_seeds},
	};

	return SUITE_RUN("selection", cases);
}
