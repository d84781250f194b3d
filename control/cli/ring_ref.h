// SPDX-License-Identifier: Apache-2.0
// A ring that the operator names on the command line, built here from the configuration it comes from.
//
//	[FILE:]POOL[+TAG,...][@VERSION[:POINTS]]
//
//	web                        the ring of pool web, as the node has it
//	web@new                    the new ring of its cutover
//	pools.yaml:web             the same from a file; no daemon is asked
//	pools.yaml:web@v2:16       what it would be as v2 with 16 points a weight
//	pools.yaml:web+nvme,eu     the subset ring of the backends with both tags
#pragma once

#include "control/cli/cli.h"
#include "control/config/pool_ring.h"

struct ring_ref {
	char *name; // as the operator wrote it
	struct config_pools *pools;
	const struct config_pool *pool; // in pools
	struct config_ring shape;
	// Nodes tell no seeds, only this mark of the ring's (0: the fleet's); rings are compared by it. A file that leaves
	// the seed out means what the node has.
	uint64_t seed_mark;
	bool seed_is_left_out;
	struct pool_ring ring;
	json_t *balanced; // lanes of the node's v3 rings, when the node was asked
	void *image;
	struct ring view;
	uint64_t build_ns;
	uint64_t generated; // points before equal hashes are cut
};

// Reads a reference and builds its ring.
// file: from -f, taken when the text names no file; NULL: the node is asked.
// Returns ANSWER_DONE with a ring that ring_ref_free() frees, or a failure that was said.
enum answer ring_ref_open(
	struct cli *cli, const char *text, const char *file, struct ring_ref *ret);

void ring_ref_free(struct ring_ref *ref);

// The weights of the owners, for ring_balance_measure(). ret: member_count words.
void ring_ref_weights(const struct ring_ref *ref, uint32_t *ret);

// ring show -f, ring diff.
enum answer ring_show_run(struct cli *cli);
enum answer ring_diff_run(struct cli *cli);
