// SPDX-License-Identifier: Apache-2.0
// From a pool of the configuration to the specification of one of its rings. Shared by ringwayd and ringway, so that
// a simulation, a diff and the dataplane speak of the same ring.
#pragma once

#include "control/config/config.h"
#include "control/ring/spec.h"

// A ring's specification with all that it points to. Free it with pool_ring_free().
struct pool_ring {
	struct ring_spec spec;   // normalised: members in address order, spec.members[owner]
	char *texts;             // seeds of RING_SEED_NGINX
	struct ring_lane *lanes; // of a balanced v3 ring
};

// Makes and checks the specification of a pool's ring.
// ring: the pool's own, or the new one of a cutover. tags: sorted; only backends that have all of them are members.
// A member's backend id is its position in pool->backends; its name is the backend's, whose memory is borrowed.
// Administrative state is no part of a ring: drained and downed backends are members.
// Returns 0; or what ring_spec_normalise() returns, with *ret_error, and nothing to free.
int pool_ring_spec(const struct config_pool *pool, const struct config_ring *ring,
	const char *const *tags, uint32_t tag_count, struct pool_ring *ret,
	struct ring_error *ret_error);

// Gives a v3 ring its lanes (lanes.h) and checks them. lanes: from malloc(); the ring's from now on, also on failure.
// Returns as ring_spec_normalise().
int pool_ring_lanes_set(struct pool_ring *ring, struct ring_lane *lanes, uint32_t count,
	struct ring_error *ret_error);

// Chooses the lanes of a v3 ring anew, as ringwayd does for a ring that it never had; other rings stay as they are.
// balance: of the configuration, millionths. Returns as pool_ring_lanes_set().
int pool_ring_balance(struct pool_ring *ring, uint32_t balance, struct ring_error *ret_error);

void pool_ring_free(struct pool_ring *ring);
