// SPDX-License-Identifier: Apache-2.0
// The flow key: the canonical bytes of a flow, and their hash.
#pragma once

#include "common/addr.h"
#include "common/hash.h"

// Which part of the flow key the ring hashes; set for a service. The gate uses the same hash, so no key
// lives on two backends in a cutover because gate and ring saw different things.
enum flow_affinity {
	FLOW_AFFINITY_FLOW = 0,        // all of it
	FLOW_AFFINITY_CLIENT = 1,      // the source address
	FLOW_AFFINITY_DESTINATION = 2, // the destination address
	FLOW_AFFINITY_QUIC = 3,        // the connection ID where the packet has one, else all
	FLOW_AFFINITY_COUNT,
};

// One direction of a flow, client to virtual address. All bytes count, so the padding is zero.
// IPv4 addresses stand in the first four bytes, the other twelve are zero.
// For protocols without ports both ports are zero.
struct flow_key {
	uint8_t source[16];
	uint8_t destination[16];
	uint16_t source_port_be;
	uint16_t destination_port_be;
	uint8_t protocol; // IPPROTO_*
	uint8_t family;   // enum addr_family
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct flow_key) == 40, "five 64-bit words, hashed whole");

static inline uint64_t flow_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

static inline uint32_t flow_half(const uint8_t *bytes)
{
	uint32_t half;

	memcpy(&half, bytes, sizeof(half));
	return le32toh(half);
}

// Hashes a flow key.
// Returns 64 bits: the high 32 are the ring hash (flow_ring_hash()), the low 32 index and tag the flow
// table, so a table that holds one backend's flows still fills evenly.
// Cost: two multiplications for IPv4, four for IPv6. Golden values: tests/unit/common/test_flow.c.
static inline uint64_t flow_hash(const struct flow_key *key, const struct hash_seed *seed)
{
	uint64_t tail = flow_word((const uint8_t *)&key->source_port_be);

	if (key->family == ADDR_V4) {
		uint64_t pair = (uint64_t)flow_half(key->source) |
			(uint64_t)flow_half(key->destination) << 32;

		return hash_fold64(
			hash_fold64(pair ^ seed->word[0], tail ^ seed->word[1]) ^ seed->word[2],
			seed->word[3] | 1);
	}
	uint64_t source = hash_fold64(
		flow_word(key->source) ^ seed->word[0], flow_word(key->source + 8) ^ seed->word[1]);
	uint64_t destination = hash_fold64(flow_word(key->destination) ^ seed->word[2],
		flow_word(key->destination + 8) ^ seed->word[3]);

	return hash_fold64(hash_fold64(source ^ tail, destination ^ seed->word[1]) ^ seed->word[2],
		seed->word[3] | 1);
}

// The part of a flow hash that goes to the gate and the ring.
static inline uint32_t flow_ring_hash(uint64_t flow_hash_value)
{
	return (uint32_t)(flow_hash_value >> 32);
}

// Copies the part of the key that the affinity hashes; the rest becomes zero.
// FLOW_AFFINITY_QUIC copies all: the caller that has a connection ID uses hash_bytes() over it instead.
static inline struct flow_key flow_key_project(
	const struct flow_key *key, enum flow_affinity affinity)
{
	struct flow_key ret;

	if (affinity == FLOW_AFFINITY_FLOW || affinity == FLOW_AFFINITY_QUIC)
		return *key;
	memset(&ret, 0, sizeof(ret));
	ret.family = key->family;
	if (affinity == FLOW_AFFINITY_CLIENT)
		memcpy(ret.source, key->source, sizeof(ret.source));
	else
		memcpy(ret.destination, key->destination, sizeof(ret.destination));
	return ret;
}
