// SPDX-License-Identifier: Apache-2.0
// The ring image: an immutable block of bytes that holds one built ring, and the lookup in it.
//
// Made by control/ring, read by the dataplane, explain and the tests. All offsets are from the start of
// the image, all integers are in host byte order (an image never leaves its machine; specifications do).
//
//	+----------------+---------------------+-------------------+--------------------------+
//	| ring_header    | points              | index (v3 only)   | members: u32 backend id  |
//	+----------------+---------------------+-------------------+--------------------------+
//
// v1 and v2 points: ring_point_v1, ring_point_v2, ascending by hash. v3 points: one u32 each, the hash
// without its top prefix_bits and, in the bits that this frees, the owner; the index says where each prefix
// starts (docs/ring.md section 2).
//
// An owner is a position in members, 0..member_count-1, in address order. Health is not membership: the
// points and the digests are those of the specification; the owners in an image that is published are
// already resolved to the next usable backend along the ring, so a lookup never walks.
#pragma once

#include "common/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC        UINT32_C(0x474e4952) // "RING"
#define RING_MEMBERS_MAX  65535u
#define RING_ALIGN        64u
#define RING_DIGEST_BYTES 16

// Points of one ring; 2,048 backends of weight 625 at 160 points are 205 million.
#define RING_POINTS_MAX (UINT32_C(1) << 28)

// Words behind the last v3 point: the point that wraps, then what a vector load may read and mask away.
#define RING_V3_PADDING 16u

// No owner: the ring has no points, or no usable backend.
#define RING_NO_OWNER UINT32_MAX

enum ring_version {
	RING_V1 = 1, // 160 points a weight, 8 bytes a point
	RING_V2 = 2, // points set by the operator, 6 bytes a point
	RING_V3 = 3, // prefix index and 4 bytes a point
};

struct ring_header {
	uint32_t magic;
	uint16_t version; // enum ring_version
	uint16_t reserved;
	uint64_t bytes;        // of the whole image, a multiple of RING_ALIGN
	uint32_t point_count;  // after equal hashes are cut to one
	uint32_t member_count; // <= RING_MEMBERS_MAX
	uint32_t usable_count; // members that may get new flows; 0: every lookup says RING_NO_OWNER
	uint32_t prefix_bits;  // v3: bits of the prefix index; else 0
	uint32_t points_offset;
	uint32_t index_offset; // v3; else 0
	uint32_t members_offset;
	uint32_t index_width; // v3: bytes of an index entry, 2 or (for lopsided points) 4; else 0
	uint8_t spec_digest[RING_DIGEST_BYTES]; // of the specification
	uint8_t points_digest
		[RING_DIGEST_BYTES]; // of seed_mark, if not 0, and the points before health
	uint8_t hash_seed
		[HASH_SEED_BYTES]; // under which keys are hashed for this ring; all zero: the fleet's
	uint64_t seed_mark; // hash_seed_mark() of it; all that a reader without the secret has
	uint8_t reserved3[24];
};

_Static_assert(sizeof(struct ring_header) == 128, "two cache lines; part of the ring image");

// A point as v1 stores it.
struct ring_point_v1 {
	uint32_t hash;
	uint32_t owner;
};

// A point as v2 stores it: six bytes, no padding, so hashes are read unaligned.
struct __attribute__((packed)) ring_point_v2 {
	uint32_t hash;
	uint16_t owner;
};

_Static_assert(sizeof(struct ring_point_v1) == 8, "v1: 8 bytes a point");
_Static_assert(sizeof(struct ring_point_v2) == 6, "v2: 6 bytes a point");

// A checked view of an image; points into it and owns nothing.
struct ring {
	const struct ring_header *header;
	const void *points;
	const void *index;
	const uint32_t *members;
};

// Checks an image and makes a view of it. Trusts nothing: every offset, count, owner and the order of the
// points is looked at, so a lookup in an opened ring never leaves the image.
// bytes: readable bytes at image. image: aligned to RING_ALIGN.
// Returns 0, or -EINVAL with *ret_reason set to a static sentence; then *ret is untouched.
// Cost: one pass over the points. Context: any thread, never a worker.
int ring_open(const void *image, size_t bytes, struct ring *ret, const char **ret_reason);

// Finds the owner of the first point whose hash is >= ring_hash, past the last point the first.
// Returns an owner in [0, member_count), or RING_NO_OWNER.
// Context: any; a worker inside an RCU reader section. Cost: v1, v2: log2(points) steps without a branch;
// v3: one index line and one or two point lines. Source: docs/ring.md section 2.
uint32_t ring_lookup(const struct ring *ring, uint32_t ring_hash);

// Brings the lines that ring_lookup() will need first into the cache.
void ring_prefetch(const struct ring *ring, uint32_t ring_hash);

// ring_lookup() for many hashes at once, interleaved so that their cache misses overlap.
// count: 1..32 (longer runs are cut by the caller).
void ring_lookup_burst(
	const struct ring *ring, const uint32_t *ring_hashes, unsigned count, uint32_t *ret_owners);

// The backend id behind an owner that a lookup returned.
static inline uint32_t ring_member(const struct ring *ring, uint32_t owner)
{
	return ring->members[owner];
}

// Fills prefix_bits, the offsets and bytes of a header whose version, point_count, member_count and (v3)
// index_width are set. Builder and ring_open() share it, so an image has exactly one shape.
// Returns 0; -EINVAL when a field is out of range; -EOVERFLOW when the image would pass 4 GiB.
int ring_layout(struct ring_header *header);

// Bytes that version needs for a ring of this size, the members included. Used to refuse before building.
uint64_t ring_image_bytes(enum ring_version version, uint64_t point_count, uint32_t member_count);
