// SPDX-License-Identifier: Apache-2.0
// The insides of struct ring_points. Private to control/ring and the tests.
#pragma once

#include "control/ring/build.h"
#include "control/ring/kernels.h"

// Some points of one member: the first ones of its chain, or those of a lane. Slots do not move when members come and
// go, owners do; so a change of one member leaves the other entries as they are.
struct ring_slot {
	uint32_t state; // of the chain; slots with the same state are lanes of one member
	uint32_t count; // points of the chain to go through; 0: the slot is free
	uint32_t owner; // position in address order
	uint32_t first; // first point of the chain, the member's name in v3's tie rule
	uint64_t mask;  // lane: which of the 64 points are used; 0: all count points
	uint32_t base;  // points of the chain to pass over first
	uint32_t seat;  // the last one of those; 0 if base is 0
};

// The points that a slot brings.
static inline uint32_t slot_points(const struct ring_slot *slot)
{
	return slot->mask != 0 ? (uint32_t)__builtin_popcountll(slot->mask) : slot->count;
}

struct ring_points {
	enum ring_version version;
	uint8_t spec_digest[RING_DIGEST_BYTES];
	uint8_t hash_seed[HASH_SEED_BYTES]; // of the specification, for the image's header
	uint64_t seed_mark;
	uint32_t generated;
	uint32_t bits; // of the prefix; 2^bits >= slot_count
	uint32_t slot_count;
	uint32_t member_count;
	uint32_t *entries;       // hash << bits | slot; in a prefix ascending by hash, then by slot
	uint32_t *starts;        // [2^bits + 1] where the room of each prefix starts in entries
	uint32_t *sizes;         // [2^bits] entries in each prefix; the rest of its room is free
	uint32_t *backends;      // [member_room] ids by owner
	struct ring_slot *slots; // [slot_room]
	uint32_t member_room;
	uint32_t slot_room;
	uint32_t distinct;    // points after the cut; valid with index_width
	uint32_t index_width; // of the v3 image; 0: not looked at yet
};

// Free places of each prefix, so that a change of one member moves a few entries instead of all. Rings of millions of
// points have none: there memory counts.
static inline uint32_t points_slack(uint64_t generated)
{
	return generated <= 1u << 21 ? 4 : 0;
}

// Bits of the prefix of entries: enough for the slots, and about 64 entries a prefix.
uint32_t points_bits(uint64_t generated, uint32_t slot_count);

// Allocates the arrays for counts that are set. Returns 0 or -ENOMEM; points_release() undoes it.
int points_allocate(struct ring_points *points);

// Frees the arrays, not the structure.
void points_release(struct ring_points *points);

// Fills points_slot_count() slots of a normalised specification, in member order.
void points_fill_slots(const struct chain_tables *tables, const struct ring_spec *spec,
	struct ring_slot *ret_slots);

// Takes over what is not the points: the digest and the hash seed of the specification.
void points_identify(struct ring_points *points, const struct ring_spec *spec);

// The slots that a specification takes.
uint32_t points_slot_count(const struct ring_spec *spec);

// What makes points: the loops and their tables.
struct points_maker {
	const struct ring_kernels *kernels;
	struct chain_tables tables;
};

// Makes all points of some slots, several chains at a time, and hands them to sink in blocks.
void points_generate(const struct points_maker *maker, const struct ring_slot *slots,
	uint32_t slot_count, points_sink *sink, void *context);

// Sorts the points of all slots into entries and starts. Returns 0 or -ENOMEM.
int points_sort(struct ring_points *points, const struct points_maker *maker);

// The same for points that crowd into few prefixes, as no chains do unless somebody looks for such addresses: slower,
// with 16 bytes a point of memory.
int points_sort_crowded(struct ring_points *points, const struct points_maker *maker);
