// SPDX-License-Identifier: Apache-2.0
#include "common/selection.h"

// Computes gate and ring once, so that pick and prefetch cannot disagree. Returns the hash that the ring sees.
static uint32_t choose_ring(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash, struct selection *ret)
{
	const struct gate *gate = &snapshot->pools[service->pool].gate;
	uint64_t threshold = snapshot_threshold(&snapshot->pools[service->pool]);

	// The gate stays with the old ring's hash: a flow has one bucket for the life of a cutover, and what the old ring
	// keeps on one backend goes through the gate as one.
	ret->bucket = gate_bucket(hash.ring_old, gate->salt);
	ret->hash = hash;
	ret->uses_new = service->ring_new != SNAPSHOT_NO_RING && ret->bucket < threshold;
	ret->ring = ret->uses_new ? service->ring_new : service->ring_old;
	return ret->uses_new ? hash.ring_new : hash.ring_old;
}

// The backend behind an owner that a look-up in this ring returned.
static uint32_t backend_of(const struct ring *ring, uint32_t owner)
{
	return owner == RING_NO_OWNER ? SELECTION_NO_BACKEND : ring_member(ring, owner);
}

void selection_pick(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash, struct selection *ret)
{
	uint32_t ring_hash = choose_ring(snapshot, service, hash, ret);
	const struct ring *ring = &snapshot->rings[ret->ring];

	ret->backend = backend_of(ring, ring_lookup(ring, ring_hash));
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
		ret[places[n]].backend = backend_of(ring, owners[n]);
	return left;
}

void selection_pick_burst(const struct snapshot *snapshot,
	const struct snapshot_service *const *services, const struct selection_hash *hashes,
	unsigned count, struct selection *ret)
{
	uint32_t waiting = (uint32_t)((UINT64_C(1) << count) - 1);
	uint32_t ring_hashes[SELECTION_BURST];

	for (unsigned i = 0; i < count; i++)
		ring_hashes[i] = choose_ring(snapshot, services[i], hashes[i], &ret[i]);
	while (waiting != 0)
		waiting = pick_on_one_ring(snapshot, ring_hashes, waiting, ret);
}

void selection_prefetch(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash)
{
	struct selection choice;
	uint32_t ring_hash = choose_ring(snapshot, service, hash, &choice);

	ring_prefetch(&snapshot->rings[choice.ring], ring_hash);
}

void selection_pick_both(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash, uint32_t *ret_old, uint32_t *ret_new)
{
	const struct ring *ring = &snapshot->rings[service->ring_old];

	*ret_old = backend_of(ring, ring_lookup(ring, hash.ring_old));
	*ret_new = SELECTION_NO_BACKEND;
	if (service->ring_new == SNAPSHOT_NO_RING)
		return;
	ring = &snapshot->rings[service->ring_new];
	*ret_new = backend_of(ring, ring_lookup(ring, hash.ring_new));
}

// A flow as its service's affinity sees it.
struct flow_part {
	enum flow_affinity affinity;
	const struct flow_key *key;
	uint32_t fleet; // what a ring under the fleet's seed sees
	const uint8_t *connection_id;
	size_t length;
};

static uint32_t hash_part(const struct flow_part *part, const struct hash_seed *seed)
{
	struct flow_key key;

	if (part->affinity == FLOW_AFFINITY_QUIC && part->length > 0)
		return flow_ring_hash(hash_bytes(part->connection_id, part->length, seed));
	key = flow_key_project(part->key, part->affinity);
	return flow_ring_hash(flow_hash(&key, seed));
}

// Words 0 and 1 of a schedule are bijections of the seed's halves.
static bool same_seed(const struct hash_seed *a, const struct hash_seed *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

static uint32_t hash_for_ring(
	const struct snapshot *snapshot, uint32_t ring, const struct flow_part *part)
{
	const struct hash_seed *seed = &snapshot->ring_seeds[ring];

	// A remix of the fleet's hash would not do: flows that share all its bits would share a backend under any seed.
	return same_seed(seed, &snapshot->hash_seed) ? part->fleet : hash_part(part, seed);
}

// Out of line, so that a snapshot without such rings does not pay for it: 15 instructions a new flow.
static __attribute__((noinline)) struct selection_hash hash_under_seeds(
	const struct snapshot *snapshot, const struct snapshot_service *service,
	const struct flow_part *part)
{
	struct selection_hash ret;

	ret.ring_old = ret.ring_new = hash_for_ring(snapshot, service->ring_old, part);
	if (service->ring_new != SNAPSHOT_NO_RING &&
		!same_seed(&snapshot->ring_seeds[service->ring_new],
			&snapshot->ring_seeds[service->ring_old]))
		ret.ring_new = hash_for_ring(snapshot, service->ring_new, part);
	return ret;
}

struct selection_hash selection_ring_hash(const struct snapshot *snapshot,
	const struct snapshot_service *service, const struct flow_key *key, uint64_t whole,
	const uint8_t *connection_id, size_t length)
{
	enum flow_affinity affinity = (enum flow_affinity)service->affinity;
	uint32_t fleet = flow_ring_hash(whole);
	bool is_whole =
		affinity == FLOW_AFFINITY_FLOW || (affinity == FLOW_AFFINITY_QUIC && length == 0);

	if (__builtin_expect(is_whole && !snapshot->has_ring_seeds, 1))
		return (struct selection_hash){fleet, fleet};
	struct flow_part part = {affinity, key, fleet, connection_id, length};

	if (!is_whole)
		part.fleet = hash_part(&part, &snapshot->hash_seed);
	if (!snapshot->has_ring_seeds)
		return (struct selection_hash){part.fleet, part.fleet};
	return hash_under_seeds(snapshot, service, &part);
}
