// SPDX-License-Identifier: Apache-2.0
// The insides of struct ring_points. Private to control/ring and the tests.
#pragma once

#include "control/ring/build.h"
#include "control/ring/chain.h"

// A member's place in the points. Slots do not move when members come and go, owners do; so a change of one
// member leaves the other entries as they are.
struct ring_slot {
	uint32_t state; // of the chain; no two slots in use have the same
	uint32_t count; // points; 0: the slot is free
	uint32_t owner; // position in address order
	uint32_t first; // first point of the chain, the member's name in v3's tie rule
};

struct ring_points {
	enum ring_version version;
	uint8_t spec_digest[RING_DIGEST_BYTES];
	uint32_t generated;
	uint32_t bits; // of the prefix; 2^bits >= slot_count
	uint32_t slot_count;
	uint32_t member_count;
	uint32_t *entries;  // [generated] hash << bits | slot, ascending by hash, then by slot
	uint32_t *starts;   // [2^bits + 1] where each prefix starts in entries
	uint32_t *backends; // [member_count] ids by owner
	struct ring_slot *slots;
	uint32_t distinct;    // points after the cut; valid with index_width
	uint32_t index_width; // of the v3 image; 0: not looked at yet
};

// Bits of the prefix of entries: enough for the slots, and about 64 entries a prefix.
uint32_t points_bits(uint64_t generated, uint32_t slot_count);

// Allocates the arrays for counts that are set. Returns 0 or -ENOMEM; ring_points_free() undoes it.
int points_allocate(struct ring_points *points);

// What generate hands on: some points of one slot, in chain order.
typedef void points_sink(void *context, uint32_t slot, const uint32_t *hashes, uint32_t count);

// Makes all points of all slots, several chains at a time, and hands them to sink in blocks.
void points_generate(const struct chain_tables *tables, const struct ring_slot *slots,
	uint32_t slot_count, points_sink *sink, void *context);
