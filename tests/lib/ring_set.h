// SPDX-License-Identifier: Apache-2.0
// Rings for tests and benchmarks: specifications that own their memory, and images built from them.
#pragma once

#include "control/ring/build.h"
#include "control/ring/writer.h"

// A specification with room for its members and their texts.
struct ring_set {
	struct ring_spec spec;
	char (*texts)[RING_SEED_TEXT_MAX + 1]; // [member_count], for RING_SEED_NGINX
};

// Allocates member_count members of weight 1 whose backend id is their position; aborts without memory.
void ring_set_init(
	struct ring_set *set, enum ring_version version, uint32_t points, uint32_t member_count);
void ring_set_free(struct ring_set *set);

// Reads "10.0.0.1:80", "[::1]:80", "10.0.0.1" or "::1" into a member. Returns 0 or -EINVAL.
int ring_set_address(struct ring_set *set, uint32_t member, const char *text);

// Fills members with the addresses base, base + 1, ... (IPv4, host byte order) and one port (0: none).
void ring_set_sequence(struct ring_set *set, uint32_t base, uint16_t port);

// An image with its view.
struct ring_built {
	void *image;
	size_t bytes;
	struct ring ring;
};

// Normalises and builds a specification and opens the image. Returns 0 or -errno, with a reason printed as a TAP
// comment.
int ring_built_make(struct ring_set *set, struct ring_built *ret);
void ring_built_free(struct ring_built *built);

// Makes an image of any points (ascending, all hashes different); the member of owner i has backend id i.
int ring_built_from_points(enum ring_version version, uint32_t member_count,
	const struct writer_point *points, uint32_t count, struct ring_built *ret);
