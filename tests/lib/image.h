// SPDX-License-Identifier: Apache-2.0
// Small snapshot images for tests: valid as they come, so that a test can spoil one field and seal again.
#pragma once

#include "common/snapshot.h"

// What an image holds. Pool i is served by service i on IMAGE_ADDRESS4 + i (and IMAGE_ADDRESS6 + i), TCP port 80 and
// UDP port 443; backend b belongs to pool b % pool_count and has the address 10.1.0.0 + b + 1, or 2001:db8:b::b + 1.
// Ring 2i is the pool's old one and ring 2i + 1 its new one; their points differ.
struct image_shape {
	uint64_t generation;
	uint32_t pool_count;
	uint32_t backend_count;
	uint32_t points; // of a backend on a ring
	bool backends6;  // backends have IPv6 addresses
	bool staged;     // services name the new ring too
	uint8_t seeded;  // IMAGE_SEEDED_*: rings with a hash seed of their own
	uint8_t tunnel;  // enum snapshot_tunnel
};

// The first service address of each family: 203.0.113.0 and 2001:db8:cb::.
#define IMAGE_ADDRESS4 UINT32_C(0xcb007100)
#define IMAGE_PORT_TCP 80
#define IMAGE_PORT_UDP 443

// Ring i with a hash seed has IMAGE_SEED + i in each byte of it.
#define IMAGE_SEEDED_OLD 1u
#define IMAGE_SEEDED_NEW 2u
#define IMAGE_SEED       0xa0u

// Builds an image. Returns memory for free(), aligned to SNAPSHOT_ALIGN; aborts when there is none.
void *image_build(const struct image_shape *shape, uint64_t *ret_bytes);

// Writes the checksum after a test has changed something.
void image_seal(void *image);
