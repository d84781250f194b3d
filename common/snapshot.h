// SPDX-License-Identifier: Apache-2.0
// The snapshot image: everything the dataplane needs to forward, in one flat block.
//
// Written by ringwayd into a sealed memfd, checked whole by the dataplane, then copied once for each worker.
// Offsets are from the start of the image; host byte order except where a field says _be.
//
//	snapshot_header | bindings | services | pools | backends | ring slots | ring images ...
//
// Services, pools and backends are indexed by id. Ids are given by ringwayd, stay with their object for its
// life and are not given again while a flow-table entry or a counter can still name them, so the tables
// have holes (flags without SNAPSHOT_USED).
#pragma once

#include "common/addr.h"
#include "common/gate.h"
#include "common/ring.h"

#define SNAPSHOT_MAGIC  UINT64_C(0x31304e5359574752) // "RGWYSN01"
#define SNAPSHOT_FORMAT UINT32_C(1)
#define SNAPSHOT_ALIGN  64u

#define SNAPSHOT_SERVICES_MAX 16384u
#define SNAPSHOT_POOLS_MAX    16384u
#define SNAPSHOT_BINDINGS_MAX 65536u
#define SNAPSHOT_BACKENDS_MAX (1u << 20) // the flow table stores 20 bits
#define SNAPSHOT_RINGS_MAX    1024u
#define SNAPSHOT_BYTES_MAX    (UINT64_C(1) << 40)

#define SNAPSHOT_USED    1u
#define SNAPSHOT_NO_RING UINT32_MAX

struct snapshot_section {
	uint64_t offset; // multiple of SNAPSHOT_ALIGN
	uint32_t count;
	uint32_t stride; // bytes of one element, as the writer saw it
};

enum snapshot_unknown {
	SNAPSHOT_UNKNOWN_PUNT = 0, // a packet for no service goes to the kernel
	SNAPSHOT_UNKNOWN_DROP = 1,
};

struct snapshot_header {
	uint64_t magic;
	uint32_t format;
	uint32_t header_bytes;
	uint64_t bytes;        // of the whole image
	uint64_t generation;   // only grows
	uint64_t checksum;     // snapshot_checksum() of the image, this field left out
	uint8_t id_space[16];  // which ids these are; a flow table of another id space is emptied
	uint8_t hash_seed[16]; // fleet-wide, see hash.h
	uint8_t unknown;       // enum snapshot_unknown
	uint8_t ring_seeds; // 1: some ring has a hash seed of its own; else 0, which programs that know of none take
	uint8_t reserved[6];
	struct snapshot_section bindings; // struct snapshot_binding
	struct snapshot_section services; // struct snapshot_service
	struct snapshot_section pools;    // struct snapshot_pool
	struct snapshot_section backends; // struct snapshot_backend
	struct snapshot_section rings;    // struct snapshot_ring
	uint8_t reserved2[96];
};

_Static_assert(sizeof(struct snapshot_header) == 256, "format 1");

// What a packet must carry to belong to a service. The most specific binding wins: (address, protocol, port),
// then (address, protocol, any port), then the longest prefix with the port, then with any port.
struct snapshot_binding {
	struct ip_addr address; // host bits beyond prefix_bits are zero
	uint8_t prefix_bits;    // 32 or 128: one address
	uint8_t protocol;       // IPPROTO_TCP or IPPROTO_UDP
	uint16_t port_be;       // 0: any port
	uint32_t service;       // id of a used service
	uint32_t reserved;
};

_Static_assert(sizeof(struct snapshot_binding) == 32, "format 1");

enum snapshot_tunnel {
	SNAPSHOT_TUNNEL_IPIP =
		0, // IPv4 or IPv6 in the backend's family (RFC 2003, RFC 2473, RFC 4213)
	SNAPSHOT_TUNNEL_GUE = 1, // GUE variant 0 in UDP (docs/wire.md)
	SNAPSHOT_TUNNEL_GRE = 2, // RFC 2784, no key, no checksum
	SNAPSHOT_TUNNEL_L2 = 3,  // only the destination MAC changes
	SNAPSHOT_TUNNEL_COUNT,
};

#define SNAPSHOT_SERVICE_STATELESS 2u // no flow table: every packet asks the ring

struct snapshot_service {
	uint32_t flags;    // SNAPSHOT_USED, SNAPSHOT_SERVICE_*
	uint32_t pool;     // id of a used pool
	uint32_t ring_old; // index in rings
	uint32_t ring_new; // index in rings, or SNAPSHOT_NO_RING when no cutover is staged
	uint8_t affinity;  // enum flow_affinity
	uint8_t tunnel;    // enum snapshot_tunnel
	uint16_t gue_port_be;
	// The outer source for each outer family; host bits beyond source*_bits carry entropy for the receiver's
	// RSS. Family ADDR_NONE: the port's own address, no entropy.
	uint8_t source4_bits;
	uint8_t source6_bits;
	uint8_t reserved[2];
	struct ip_addr source4;
	struct ip_addr source6;
	// Idle times, seconds, 1..7200.
	uint16_t idle_syn_s;         // TCP that only showed SYNs
	uint16_t idle_established_s; // TCP
	uint16_t idle_closing_s;     // TCP after FIN or RST
	uint16_t idle_udp_s;
	uint8_t reserved2[56];
};

_Static_assert(sizeof(struct snapshot_service) == 128, "format 1");

struct snapshot_pool {
	uint32_t flags; // SNAPSHOT_USED
	uint32_t reserved;
	struct gate gate; // word 0 when no cutover is staged
	uint8_t reserved2[40];
};

_Static_assert(
	sizeof(struct snapshot_pool) == 64, "format 1: one line, since control writes the gate");

enum snapshot_backend_state {
	SNAPSHOT_BACKEND_FREE = 0, // the id names nothing: its flows pick again
	SNAPSHOT_BACKEND_UP = 1,
	SNAPSHOT_BACKEND_DRAIN = 2, // keeps its flows, gets no new ones
	SNAPSHOT_BACKEND_DOWN = 3,  // its flows pick again
};

struct snapshot_backend {
	struct ip_addr address;
	uint32_t pool;
	uint8_t state; // enum snapshot_backend_state
	uint8_t reserved[7];
};

_Static_assert(sizeof(struct snapshot_backend) == 32, "format 1: two a line");

// Where a ring image lies.
struct snapshot_ring {
	uint64_t offset; // multiple of RING_ALIGN
	uint64_t bytes;
};

// A checked view of an image. Owns nothing. 64 KiB for the rings: allocate it, do not put it on a stack.
struct snapshot {
	struct snapshot_header *header;
	const struct snapshot_binding *bindings;
	const struct snapshot_service *services;
	struct snapshot_pool *pools; // the gate's word is the one field that changes after opening
	const struct snapshot_backend *backends;
	uint32_t binding_count;
	uint32_t service_count;
	uint32_t pool_count;
	uint32_t backend_count;
	uint32_t ring_count;
	bool has_ring_seeds;        // of the header: without it no new flow looks at ring_seeds
	struct hash_seed hash_seed; // expanded from the header
	struct ring rings[SNAPSHOT_RINGS_MAX];
	struct hash_seed ring_seeds[SNAPSHOT_RINGS_MAX]; // each ring's own, or the fleet's
};

// Why an image was refused: a sentence for people that names the section, the element and the value.
struct snapshot_error {
	char text[192];
};

// The checksum of an image: XXH3 of the bytes behind the checksum field, seeded with XXH3 of those before it.
// bytes: at least those of the header.
uint64_t snapshot_checksum(const void *image, uint64_t bytes);

// Checks an image and makes a view of it: magic, format, checksum, every section, every id, index, enum and
// prefix, every ring (ring_open()), and that ring members are used backends of the service's pool.
// image: aligned to SNAPSHOT_ALIGN, writable (the gates). bytes: readable bytes at image.
// Returns 0; -EINVAL when the image is bad; -ENOTSUP when its format is newer. *ret_error says why; *ret is
// undefined on failure.
// Context: any thread, never a worker. Cost: one pass over the image.
int snapshot_open(
	void *image, uint64_t bytes, struct snapshot *ret, struct snapshot_error *ret_error);

// Makes a view of a copy of an image that snapshot_open() has accepted, without checking it again.
void snapshot_view(void *image, struct snapshot *ret);

// Reads and writes a gate's word while workers read it: one relaxed 64-bit access, no tearing. It pairs with itself
// alone: nothing else is published by it. word: gate_word_valid().
static inline uint64_t snapshot_gate(const struct snapshot_pool *pool)
{
	return __atomic_load_n(&pool->gate.word, __ATOMIC_RELAXED);
}

static inline void snapshot_gate_set(struct snapshot_pool *pool, uint64_t word)
{
	__atomic_store_n(&pool->gate.word, word, __ATOMIC_RELAXED);
}

// The threshold of a gate.
static inline uint64_t snapshot_threshold(const struct snapshot_pool *pool)
{
	return gate_word_threshold(snapshot_gate(pool));
}
