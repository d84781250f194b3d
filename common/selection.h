// SPDX-License-Identifier: Apache-2.0
// Selection: gate, ring, backend. The one function that the dataplane, `ringway explain` and the tests share.
#pragma once

#include "common/flow.h"
#include "common/snapshot.h"

#define SELECTION_NO_BACKEND UINT32_MAX
#define SELECTION_BURST      32u // flows that one selection_pick_burst() takes

// What the rings of a service see of a flow: the same part of its key, hashed under the seed of each. The two differ only
// while a pool moves to another hash seed. The gate sees what the old ring sees.
struct selection_hash {
	uint32_t ring_old;
	uint32_t ring_new; // without a new ring: as ring_old
};

struct selection {
	uint32_t backend; // id, or SELECTION_NO_BACKEND
	uint32_t ring;    // index of the ring that was asked
	uint32_t bucket;  // the flow's place at the gate
	struct selection_hash hash;
	bool uses_new; // the gate sent it to the new ring
};

// Picks the backend of a new flow.
// service: of this snapshot. hash: of this service (selection_ring_hash()).
// A service without a new ring takes the old one whatever the gate says.
// Context: any; a worker inside an RCU reader section. Cost: one mix, one ring_lookup().
void selection_pick(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash, struct selection *ret);

// selection_pick() for many flows at once: look-ups in the same ring are interleaved, so that their cache misses
// overlap. services, hashes, ret: count elements, 1..SELECTION_BURST.
// Cost: one ring_lookup_burst() for each ring that is asked.
void selection_pick_burst(const struct snapshot *snapshot,
	const struct snapshot_service *const *services, const struct selection_hash *hashes,
	unsigned count, struct selection *ret);

// Brings the ring lines that selection_pick() will need into the cache.
void selection_prefetch(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash);

// The picks of both rings of a service, whatever the gate says: for shadow comparisons, traces, explanations.
// *ret_new is SELECTION_NO_BACKEND without a new ring. Cost: two ring_lookup().
void selection_pick_both(const struct snapshot *snapshot, const struct snapshot_service *service,
	struct selection_hash hash, uint32_t *ret_old, uint32_t *ret_new);

// The hash that gate and rings see: of the whole key, or of the part that the affinity names.
// whole: flow_hash() of the key under the fleet's seed, so that the usual case hashes once.
// connection_id, length: for FLOW_AFFINITY_QUIC; length 0 when the packet shows none.
// Cost: as flow_hash() for each different seed of the service's rings that is not the fleet's.
struct selection_hash selection_ring_hash(const struct snapshot *snapshot,
	const struct snapshot_service *service, const struct flow_key *key, uint64_t whole,
	const uint8_t *connection_id, size_t length);
