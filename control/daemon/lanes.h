// SPDX-License-Identifier: Apache-2.0
// The lanes of balanced v3 rings in the document: who has them, who needs new ones.
#pragma once

#include "control/config/pool_ring.h"
#include "control/daemon/document.h"

// One ring as its lanes are filed.
struct lanes_key {
	const char *pool;
	bool is_new; // the new ring of the pool's cutover
	const char **tags;
	uint32_t tag_count;
};

// Gives a v3 ring the lanes that the document has for it, or chooses some and files them.
//
// Lanes that fit stay as they are. They do not when members came, left or got another weight: then they are repaired,
// so that few keys move. Another tolerance repairs, too; another number of points chooses anew. A pool whose new ring
// has just become its only one takes over the new ring's lanes.
// ring: of pool_ring_spec(); any other version is left alone. config: the ring of the configuration.
// Returns 0; else what ring_lanes_choose() and ring_spec_normalise() return, with *ret_error.
int lanes_attach(struct document *document, const struct lanes_key *key,
	const struct config_ring *config, struct pool_ring *ring, struct ring_error *ret_error);

// Around a pass that attaches the lanes of every ring of a document: those that no ring attached are dropped.
void lanes_begin(struct document *document);
void lanes_end(struct document *document);
