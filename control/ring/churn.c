// SPDX-License-Identifier: Apache-2.0
#include "control/ring/churn.h"

#include "control/ring/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The owners of a ring in the order of their backends, each as backend << 32 | owner. For free(); NULL without memory.
static uint64_t *owners_sorted(const struct ring *ring)
{
	uint32_t count = ring->header->member_count;
	uint64_t *keys = malloc(2 * sizeof(*keys) * ((size_t)count + 1));

	if (keys == NULL)
		return NULL;
	for (uint32_t owner = 0; owner < count; owner++)
		keys[owner] = (uint64_t)ring_member(ring, owner) << 32 | owner;
	sort_u64(keys, keys + count, count);
	return keys;
}

int ring_shares_in(const struct ring *a, const struct ring *b, uint64_t *ret_arcs)
{
	uint32_t count_a = a->header->member_count, count_b = b->header->member_count, j = 0;
	uint64_t *arcs = malloc(sizeof(*arcs) * ((size_t)count_b + 1));
	uint64_t *owners_a = owners_sorted(a), *owners_b = owners_sorted(b);
	int rc = -ENOMEM;

	if (arcs != NULL && owners_a != NULL && owners_b != NULL) {
		ring_shares(b, arcs);
		for (uint32_t i = 0; i < count_a; i++) {
			uint64_t backend = owners_a[i] >> 32;

			while (j < count_b && owners_b[j] >> 32 < backend)
				j++;
			ret_arcs[(uint32_t)owners_a[i]] =
				j < count_b && owners_b[j] >> 32 == backend
				? arcs[(uint32_t)owners_b[j]]
				: 0;
		}
		rc = 0;
	}
	free(arcs);
	free(owners_a);
	free(owners_b);
	return rc;
}

// Hashes of an arc whose keys are elsewhere in the other ring, where their backend has `there` hashes.
static uint64_t arc_moved(uint64_t arc, uint64_t there)
{
	return (uint64_t)(((unsigned __int128)arc * (RING_CIRCLE - there) + RING_CIRCLE / 2) >> 32);
}

// What leaves each owner of ring a for ring b under another seed. *ret_stays: 2^64 times the part that stays.
static int moved_from(const struct ring *a, const struct ring *b, uint64_t *ret_lost,
	unsigned __int128 *ret_stays)
{
	uint32_t count = a->header->member_count;
	uint64_t *arcs = malloc(sizeof(*arcs) * ((size_t)count + 1));
	uint64_t *there = malloc(sizeof(*there) * ((size_t)count + 1));
	int rc = arcs == NULL || there == NULL ? -ENOMEM : ring_shares_in(a, b, there);

	*ret_stays = 0;
	if (rc == 0)
		ring_shares(a, arcs);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		*ret_stays += (unsigned __int128)arcs[i] * there[i];
		if (ret_lost != NULL)
			ret_lost[i] = arc_moved(arcs[i], there[i]);
	}
	free(arcs);
	free(there);
	return rc;
}

static bool is_without_owners(const struct ring *ring)
{
	return ring->header->point_count == 0 || ring->header->usable_count == 0;
}

int ring_moved(const struct ring *a, const struct ring *b, uint64_t *ret_moved, uint64_t *ret_lost,
	uint64_t *ret_gained)
{
	unsigned __int128 stays;
	int rc;

	// Without owners on both sides there is nothing to hash: the arcs say so.
	if (ring_same_seed(a, b) || (is_without_owners(a) && is_without_owners(b))) {
		*ret_moved = ring_churn(a, b, ret_lost, ret_gained);
		return 0;
	}
	rc = moved_from(a, b, ret_lost, &stays);
	if (rc == 0 && ret_gained != NULL)
		rc = moved_from(b, a, ret_gained, &stays);
	if (rc == 0)
		*ret_moved = RING_CIRCLE - (uint64_t)((stays + RING_CIRCLE / 2) >> 32);
	return rc;
}

// The backend behind a hash; RING_NO_OWNER when there is none.
static uint32_t backend_of(const struct ring *ring, uint32_t hash)
{
	uint32_t owner = ring_lookup(ring, hash);

	return owner == RING_NO_OWNER ? owner : ring_member(ring, owner);
}

double ring_chance_moved(
	const struct ring *a, const struct ring *b, const uint64_t *there, uint32_t ring_hash)
{
	uint32_t owner;

	if (ring_same_seed(a, b))
		return backend_of(a, ring_hash) != backend_of(b, ring_hash);
	owner = ring_lookup(a, ring_hash);
	return owner == RING_NO_OWNER ? 1 : 1 - (double)there[owner] / (double)RING_CIRCLE;
}
