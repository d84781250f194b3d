// SPDX-License-Identifier: Apache-2.0
// Selection: gate, ring, backend. The one function that the dataplane, `ringway explain` and the tests share.
#pragma once

#include "common/flow.h"
#include "common/snapshot.h"

#define SELECTION_NO_BACKEND UINT32_MAX
#define SELECTION_BURST      32u // flows that one selection_pick_burst() takes

struct selection {
	uint32_t backend; // id, or SELECTION_NO_BACKEND
	uint32_t ring;    // index of the ring that was asked
	uint32_t bucket;  // the flow's place at the gate
	bool uses_new;    // the gate sent it to the new ring
};

// Picks the backend of a new flow.
// service: of this snapshot. ring_hash: of the service's affinity (selection_ring_hash()).
// A service without a new ring takes the old one whatever the gate says.
// Context: any; a worker inside an RCU reader section. Cost: one mix, one ring_lookup().
void selection_pick(const struct snapshot *snapshot, const struct snapshot_service *service,
	uint32_t ring_hash, struct selection *ret);

// selection_pick() for many flows at once: look-ups in the same ring are interleaved, so that their cache misses
// overlap. services, ring_hashes, ret: count elements, 1..SELECTION_BURST.
// Cost: one ring_lookup_burst() for each ring that is asked.
void selection_pick_burst(const struct snapshot *snapshot,
	const struct snapshot_service *const *services, const uint32_t *ring_hashes, unsigned count,
	struct selection *ret);

// Brings the ring lines that selection_pick() will need into the cache.
void selection_prefetch(const struct snapshot *snapshot, const struct snapshot_service *service,
	uint32_t ring_hash);

// The hash that gate and ring see: of the whole key, or of the part that the affinity names.
// whole: flow_hash() of the key, so that the usual case hashes once.
// connection_id, length: for FLOW_AFFINITY_QUIC; length 0 when the packet shows none.
uint32_t selection_ring_hash(const struct snapshot *snapshot,
	const struct snapshot_service *service, const struct flow_key *key, uint64_t whole,
	const uint8_t *connection_id, size_t length);
