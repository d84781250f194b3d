// SPDX-License-Identifier: Apache-2.0
#include "common/selection.h"

// Computes gate and ring once, so that pick and prefetch cannot disagree.
static uint32_t choose_ring(const struct snapshot *snapshot, const struct snapshot_service *service,
	uint32_t ring_hash, struct selection *ret)
{
	const struct gate *gate = &snapshot->pools[service->pool].gate;
	uint64_t threshold = snapshot_threshold(&snapshot->pools[service->pool]);

	ret->bucket = gate_bucket(ring_hash, gate->salt);
	ret->uses_new = service->ring_new != SNAPSHOT_NO_RING && ret->bucket < threshold;
	ret->ring = ret->uses_new ? service->ring_new : service->ring_old;
	return ret->ring;
}

void selection_pick(const struct snapshot *snapshot, const struct snapshot_service *service,
	uint32_t ring_hash, struct selection *ret)
{
	const struct ring *ring = &snapshot->rings[choose_ring(snapshot, service, ring_hash, ret)];
	uint32_t owner = ring_lookup(ring, ring_hash);

	ret->backend = owner == RING_NO_OWNER ? SELECTION_NO_BACKEND : ring_member(ring, owner);
}

// Looks up all flows of `waiting` (a bit each) that go to the ring of the first one; returns those that are left.
static uint32_t pick_on_one_ring(const struct snapshot *snapshot, const uint32_t *ring_hashes,
	uint32_t waiting, struct selection *ret)
{
	uint32_t number = ret[__builtin_ctz(waiting)].ring;
	const struct ring *ring = &snapshot->rings[number];
	uint32_t hashes[SELECTION_BURST] = {0}, owners[SELECTION_BURST], left = 0;
	unsigned places[SELECTION_BURST], count = 0;

	for (; waiting != 0; waiting &= waiting - 1) {
		unsigned i = (unsigned)__builtin_ctz(waiting);

		if (ret[i].ring != number) {
			left |= UINT32_C(1) << i;
			continue;
		}
		hashes[count] = ring_hashes[i];
		places[count++] = i;
	}
	ring_lookup_burst(ring, hashes, count, owners);
	for (unsigned n = 0; n < count; n++)
		ret[places[n]].backend = owners[n] == RING_NO_OWNER ? SELECTION_NO_BACKEND
								    : ring_member(ring, owners[n]);
	return left;
}

void selection_pick_burst(const struct snapshot *snapshot,
	const struct snapshot_service *const *services, const uint32_t *ring_hashes, unsigned count,
	struct selection *ret)
{
	uint32_t waiting = (uint32_t)((UINT64_C(1) << count) - 1);

	for (unsigned i = 0; i < count; i++)
		choose_ring(snapshot, services[i], ring_hashes[i], &ret[i]);
	while (waiting != 0)
		waiting = pick_on_one_ring(snapshot, ring_hashes, waiting, ret);
}

void selection_prefetch(
	const struct snapshot *snapshot, const struct snapshot_service *service, uint32_t ring_hash)
{
	struct selection choice;

	ring_prefetch(
		&snapshot->rings[choose_ring(snapshot, service, ring_hash, &choice)], ring_hash);
}

uint32_t selection_ring_hash(const struct snapshot *snapshot,
	const struct snapshot_service *service, const struct flow_key *key, uint64_t whole,
	const uint8_t *connection_id, size_t length)
{
	struct flow_key part;

	switch ((enum flow_affinity)service->affinity) {
	case FLOW_AFFINITY_CLIENT:
	case FLOW_AFFINITY_DESTINATION:
		part = flow_key_project(key, (enum flow_affinity)service->affinity);
		return flow_ring_hash(flow_hash(&part, &snapshot->hash_seed));
	case FLOW_AFFINITY_QUIC:
		if (length > 0)
			return flow_ring_hash(
				hash_bytes(connection_id, length, &snapshot->hash_seed));
		return flow_ring_hash(whole);
	case FLOW_AFFINITY_FLOW:
	case FLOW_AFFINITY_COUNT:
		break;
	}
	return flow_ring_hash(whole);
}
