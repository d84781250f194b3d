// SPDX-License-Identifier: Apache-2.0
// What a rollback with --move-established would move, added up over nodes: what their flow tables hold, and how much of
// it may get another backend.
#pragma once

#include <jansson.h>
#include <stdint.h>

struct established {
	uint64_t
		live_new; // entries that the new ring picked, as each node's last sweep counted them
	uint64_t sampled;      // new flows for which both rings were asked (shadow selections)
	uint64_t different;    // those of them for which the rings differ
	uint32_t node_count;   // that were counted
	uint32_t silent_count; // nodes that gave no figure
};

// One node's counters of a pool, by the names of struct stats_pool.
struct established_node {
	uint64_t live_new;
	uint64_t shadow_same;
	uint64_t shadow_different;
};

void established_add(struct established *established, const struct established_node *node);

// Writes it: a new reference. "moving" is an estimate: live_new times the part of the sample that differs; null, as
// "differ_ratio", when nothing was sampled.
json_t *established_write(const struct established *established);
