// SPDX-License-Identifier: Apache-2.0
// Any bytes as a ring image: refused with a sentence, or lookups, walks, shares and health stay inside and agree.
#include "common/ring_v3.h"
#include "control/ring/build.h"
#include "control/ring/walk.h"

#include <stdlib.h>
#include <string.h>

#define HASHES 32u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool fact)
{
	if (!fact)
		abort();
}

// Hashes around points, and spread over the circle.
static void pick_hashes(const struct ring *ring, uint32_t ret[HASHES])
{
	struct ring_cursor cursor;
	struct ring_walk_point point = {0};

	ring_cursor_first(&cursor, ring);
	for (unsigned i = 0; i < HASHES; i++) {
		ret[i] = i * 0x08421084u;
		if (i % 2 == 0 && ring_cursor_next(&cursor, &point))
			ret[i] = point.hash - 1 + i / 2 % 3;
	}
}

static void look_up(const struct ring *ring)
{
	uint32_t hashes[HASHES], owners[HASHES], twin_owners[HASHES];

	pick_hashes(ring, hashes);
	ring_lookup_burst(ring, hashes, HASHES, owners);
	for (unsigned i = 0; i < HASHES; i++) {
		ring_prefetch(ring, hashes[i]);
		must(ring_lookup(ring, hashes[i]) == owners[i]);
		must(owners[i] == RING_NO_OWNER || owners[i] < ring->header->member_count);
		if (owners[i] != RING_NO_OWNER)
			(void)ring_member(ring, owners[i]);
	}
	for (int twin = 0; twin < RING_V3_TWIN_COUNT; twin++) {
		if (ring->header->version != RING_V3 || owners[0] == RING_NO_OWNER ||
			!ring_v3_twin_runs(twin))
			continue;
		ring_v3_burst(twin, ring, hashes, HASHES, twin_owners);
		must(memcmp(owners, twin_owners, sizeof(owners)) == 0);
	}
}

static void walk(const struct ring *ring)
{
	uint64_t *arcs = calloc(ring->header->member_count + 1, sizeof(*arcs)), sum = 0;
	uint32_t order[8];

	if (arcs == NULL)
		return;
	ring_shares(ring, arcs);
	for (uint32_t i = 0; i < ring->header->member_count; i++)
		sum += arcs[i];
	must(sum == 0 || sum == RING_CIRCLE);
	must(ring_churn(ring, ring, NULL, NULL) == 0);
	must(ring_failover_order(ring, 0x12345678, order, 8) <= 8);
	free(arcs);
}

// Every other member goes down; the image must still be one.
static void lose_members(void *image, size_t size)
{
	uint64_t *usable = calloc(RING_MEMBERS_MAX / 64 + 1, sizeof(*usable));
	const char *reason;
	struct ring ring;

	if (usable == NULL)
		return;
	memset(usable, 0x55, (RING_MEMBERS_MAX / 64 + 1) * sizeof(*usable));
	ring_resolve(image, usable);
	must(ring_open(image, size, &ring, &reason) == 0);
	look_up(&ring);
	free(usable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	// The allocation ends where an image ends, which is at a whole line, so a sanitizer sees the first byte beyond.
	size_t room = (size + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
	void *image = aligned_alloc(RING_ALIGN, room > 0 ? room : RING_ALIGN);
	const char *reason = NULL;
	struct ring ring;

	if (image == NULL)
		return 0;
	memcpy(image, data, size);
	if (ring_open(image, size, &ring, &reason) == 0) {
		look_up(&ring);
		walk(&ring);
		lose_members(image, size);
	} else {
		must(reason != NULL && reason[0] != '\0');
	}
	free(image);
	return 0;
}
