// SPDX-License-Identifier: Apache-2.0
// The specification of a ring: what nodes agree on, and what a ring is built from. Pure: no files, no log.
#pragma once

#include "common/addr.h"
#include "common/ring.h"

#define RING_V1_POINTS         160u // a weight; fixed, as nginx has it
#define RING_POINTS_DEFAULT    16u  // a weight, for v2 and v3
#define RING_WEIGHT_MAX        1000000u
#define RING_SEED_TEXT_MAX     255u
#define RING_ERROR_BYTES       256u
#define RING_MEMBER_NAME_BYTES 64u

// What seeds the points of a member.
enum ring_seed {
	RING_SEED_ADDRESS =
		0, // canonical address text, 0x00, decimal port; without a port only the first two
	RING_SEED_NGINX = 1, // the text of an nginx `server` directive, as nginx cuts it
};

struct ring_spec_member {
	struct ip_addr address;
	uint16_t port;    // host byte order; 0: none. Part of the seed and of the order
	uint32_t weight;  // 1..RING_WEIGHT_MAX
	uint32_t backend; // id that the image stores; no part of the digest
	const char *name; // for errors; may be NULL. The caller's memory
	const char *
		text; // RING_SEED_NGINX: "10.0.0.1:80", "[2001:db8::1]", "unix:/run/x". The caller's memory
};

// Which points of its chain a member of a balanced v3 ring uses: bit b of mask stands for point base + b, the first
// point being 0. A member with a large share has several lanes. Chosen by ring_lanes_choose() (lanes.h); data that the
// nodes of a fleet share, so that none of them searches.
struct ring_lane {
	struct ip_addr address; // of its member
	uint16_t port;
	uint32_t weight; // of its member when it was chosen
	uint32_t base;   // a multiple of 64
	uint64_t mask;   // not 0
};

// Highest base of a lane. Points are made one after the other up to it.
#define RING_LANE_BASE_MAX (1u << 20)

struct ring_spec {
	enum ring_version version;
	enum ring_seed seed;
	uint32_t points; // a weight; 0: the version's default. v1 takes 160 alone
	// Under which keys are hashed for this ring; all zero: the fleet's. The points do not depend on it.
	uint8_t hash_seed[HASH_SEED_BYTES];
	// hash_seed_mark() of it: ring_spec_seed() sets both. Alone, with hash_seed zero, for a ring that is only compared
	// by somebody who does not know the secret.
	uint64_t seed_mark;
	uint32_t member_count;
	struct ring_spec_member *members; // the caller's array; ring_spec_normalise() sorts it
	// v3: if not empty, the points are those that the lanes name, in address order, then by base; every member has
	// at least one. points then counts for a member of mean weight. The caller's array.
	const struct ring_lane *lanes;
	uint32_t lane_count;
};

// Why a specification was refused: a sentence for people that names the member.
struct ring_error {
	char text[RING_ERROR_BYTES];
};

// Gives the ring a hash seed of its own, or with 16 zero bytes the fleet's.
void ring_spec_seed(struct ring_spec *spec, const uint8_t hash_seed[HASH_SEED_BYTES]);

// Checks a specification, fills the default of points, and puts the members in address order: IPv4 before IPv6,
// then by address, then by port, as numbers. The position in this order is the owner in the image.
// Refuses, with the members named: zero weight, too great a weight, no address, the same address and port twice,
// too many members, too many points, lanes that do not fit the members, a seed text that is missing or too long, twins (two seeds with one CRC-32
// share every point, so one would never get a flow), and a seed whose points all fall on one place.
// An empty specification is fine: its ring has no points.
// Returns 0; -EINVAL; -E2BIG for too many members or points; -ENOMEM.
int ring_spec_normalise(struct ring_spec *spec, struct ring_error *ret_error);

// The points of a normalised specification before equal hashes are cut to one.
uint64_t ring_spec_points(const struct ring_spec *spec);

// The digest of a normalised specification: XXH3-128 of version, seed, points, the members' addresses, ports,
// weights, texts and lanes, and of the mark of the ring's own hash seed. Two services of one pool whose digests are equal share one ring. Names and backend ids do not
// count, so nodes that number backends differently agree.
void ring_spec_digest(const struct ring_spec *spec, uint8_t ret[RING_DIGEST_BYTES]);

// Writes the digest as 32 hexadecimal digits and a NUL.
void ring_digest_format(
	const uint8_t digest[RING_DIGEST_BYTES], char ret[static 2 * RING_DIGEST_BYTES + 1]);

// Writes a member for people: its name if it has one, and its address.
void ring_spec_member_format(const struct ring_spec_member *member, char *ret, size_t bytes);
