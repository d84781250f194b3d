// SPDX-License-Identifier: Apache-2.0
// The rings that a document needs: one for each pool, set of required tags and side of a cutover; shared where the
// specification is the same, and taken over from the set before where nothing changed.
#pragma once

#include "control/config/pool_ring.h"
#include "control/daemon/document.h"

#define RINGS_ERROR_BYTES 512u

// A built ring, before health. Shared by sets; never changed.
struct rings_image {
	unsigned holders;
	uint8_t digest[RING_DIGEST_BYTES]; // of the specification
	enum ring_version version;
	uint32_t member_count;
	uint32_t *backends; // id of each owner; what else must be equal to take an image over
	uint64_t build_ns;
	size_t bytes;
	void *bytes_at; // the unresolved image
};

struct rings_ring {
	const char *pool; // of the document
	bool is_new;      // the new ring of the pool's cutover
	const char **tags;
	uint32_t tag_count;
	uint32_t service_count; // that use it
	uint64_t v1_bytes;
	uint8_t digest[RING_DIGEST_BYTES];
	struct pool_ring spec; // empty once built
	struct rings_image *image;
};

// Which rings a service uses: indexes, SNAPSHOT_NO_RING for none.
struct rings_service {
	uint32_t ring_old;
	uint32_t ring_new;
};

struct rings {
	struct rings_ring *items;
	uint32_t count;
	struct rings_service *services; // by position in document->pools.services
	uint64_t bytes;                 // of all images, known before they are built
	uint32_t built;                 // by rings_build(), the others were taken over
};

// Works out the rings of a document: specifications, digests and sizes, nothing is built.
// document: with ids assigned; must outlive the set. Balanced rings that have no lanes in it, or whose members changed,
// get some (lanes.h).
// Returns 0; -EINVAL for a ring that breaks a rule, -E2BIG for too many rings or points, -ENOMEM; ret_error says why.
int rings_plan(
	struct document *document, struct rings **ret, char ret_error[static RINGS_ERROR_BYTES]);

// Builds the rings of a plan, or takes them over from previous (may be NULL). Returns 0 or -ENOMEM.
int rings_build(struct rings *rings, const struct rings *previous);

void rings_free(struct rings *rings);
