// SPDX-License-Identifier: Apache-2.0
// The rings of a pool before and after a cutover, pair by pair, measured for its plan.
//
// A pair is what one service asks now and what it would ask: services with the same two rings are one pair. Subsets that
// are one ring today and two tomorrow, or the other way about, are two pairs; a subset that stays as it is has one ring twice.
#pragma once

#include "control/cutover/plan.h"
#include "control/daemon/node.h"

#include <jansson.h>

struct plan_pair {
	const struct node_ring *before;
	const struct node_ring *after;
};

struct plan_pairs {
	struct plan_pair items[SNAPSHOT_RINGS_MAX];
	struct plan_ring rings[SNAPSHOT_RINGS_MAX]; // measured
	uint32_t count;
	// Of one worker's copies of the pool's rings; a ring that stands in several pairs counts once.
	uint64_t bytes_now;
	uint64_t bytes_during;
	uint64_t bytes_after;
};

// Measures the rings of the pool. traffic: sampled flows as [hash, weight, hash, weight, ...], or NULL. ret: zeroed; its
// rings are good as long as the preview.
// Returns 0, or -E2BIG when there are more pairs than room.
// Cost: a pass over both rings' points for each pair.
int plan_pairs_measure(const struct node_preview *preview, const char *pool, const json_t *traffic,
	struct plan_pairs *ret);

// What `cutover plan --json` says of each pair, and of the memory of all rings. workers: of this node.
json_t *plan_pairs_rings(
	const struct plan_pairs *pairs, const struct node_preview *preview, uint32_t workers);
json_t *plan_pairs_memory(const struct plan_pairs *pairs, uint32_t workers);
