// SPDX-License-Identifier: Apache-2.0
// The committed document: all that ringwayd knows for good, as one text in the store.
//
// Configuration, the ids that name its parts in the dataplane, and the cutovers that are under way. Each commit
// makes a new generation of it; nothing else decides what the dataplane does.
#pragma once

#include "control/config/config.h"
#include "control/config/report.h"

enum document_kind {
	DOCUMENT_SERVICE,
	DOCUMENT_POOL,
	DOCUMENT_BACKEND,
};

// An id and what it names. Freed ids stay in quarantine until no flow-table entry can still name them.
struct document_id {
	enum document_kind kind;
	const char *pool; // backends: their pool; else ""
	const char *name;
	uint32_t id;
	uint64_t freed_s; // CLOCK_REALTIME when it left the configuration; 0: in use
};

// A staged move of one pool to another ring. The pool's own section is the old ring.
struct document_cutover {
	const char *pool;
	struct config_ring ring; // of the new ring
	// Members of the new ring when they are to change too; none: the pool's own.
	struct config_backend *backends;
	uint32_t backend_count;
	uint32_t salt;       // of the gate; fixed for the life of the cutover
	uint32_t share;      // of flows on the new ring, millionths
	uint32_t sent_share; // share that the newest snapshot was made with
	// 1: a rollback said that established flows of the new ring come back, too (GATE_RECALL at share 0).
	uint32_t moves_established;
	// What this node uses instead of share, when a fleet's cutover says so. Not part of the document's text.
	bool has_node_share;
	bool node_moves_established;
	uint32_t node_share;
};

// The share that this node uses.
static inline uint32_t document_cutover_share(const struct document_cutover *cutover)
{
	return cutover->has_node_share ? cutover->node_share : cutover->share;
}

// The word of this node's gate.
static inline uint64_t document_cutover_gate(const struct document_cutover *cutover)
{
	return gate_word(document_cutover_share(cutover),
		cutover->has_node_share ? cutover->node_moves_established
					: cutover->moves_established != 0);
}

// The points of a balanced v3 ring: part of its specification, so that no node searches for them again and the next ring
// starts from the last one. Kept by lanes.c.
struct document_lanes {
	const char *pool;
	uint32_t is_new;   // the new ring of the pool's cutover
	const char **tags; // that its members have been chosen by
	uint32_t tag_count;
	uint32_t points;    // of config_ring, when they were chosen
	uint32_t balance;   // of config_ring, when they were chosen
	const char **lanes; // one text each, see lanes.c
	uint32_t lane_count;
	bool attached; // to a ring, in this pass of lanes_begin(); not part of the text
};

struct document {
	struct arena *arena;
	uint64_t generation;         // of this document; 0: never committed
	uint64_t applied_generation; // of the last whole file that was applied
	uint64_t
		snapshot_generation; // of the newest snapshot: grows when more than thresholds changed
	uint8_t id_space[16];
	uint8_t hash_seed[16];
	struct config_pools config; // its memory is the document's arena
	struct config_pools *pools; // == &config
	struct document_id *ids;    // sorted by kind, pool, name

	uint32_t id_count;
	struct document_cutover *cutovers;
	uint32_t cutover_count;
	struct document_lanes *balanced;
	uint32_t balanced_count;
};

// Makes the document of a node that has none yet: no pools, a random hash seed and id space.
// Returns 0, -ENOMEM or the -errno of getrandom(2).
int document_create(struct document **ret);

void document_free(struct document *document);

// A deep copy, or NULL when memory is short.
struct document *document_copy(const struct document *document);

// Text (JSON) of a document and back. document_read() trusts nothing: findings go to the report.
// Return 0 or -errno; *ret_text is the caller's, to be freed.
int document_write(const struct document *document, char **ret_text, size_t *ret_length);
int document_read(struct config_report *report, struct document **ret);

// Gives ids to all that has none, frees those of what is gone, and takes freed ones again whose quarantine is over.
// now_s: CLOCK_REALTIME. Returns 0, -ENOMEM, or -ENOSPC when all ids of a kind are in use or in quarantine.
int document_ids_assign(struct document *document, uint64_t now_s);

// Looks an id up by name, or the other way round. pool: backends only, else "".
// Returns the entry, NULL when there is none. Freed entries are not found by name.
const struct document_id *document_id_find(const struct document *document, enum document_kind kind,
	const char *pool, const char *name);
const struct document_id *document_id_name(
	const struct document *document, enum document_kind kind, uint32_t id);

// Puts a copy of a configuration in the place of the document's. Returns 0 or -ENOMEM (the document is spoilt).
int document_config_set(struct document *document, const struct config_pools *pools);

// A pool's cutover, or NULL. document_cutover_add() makes an empty one; NULL when memory is short.
struct document_cutover *document_cutover_add(struct document *document, const char *pool);
void document_cutover_remove(struct document *document, struct document_cutover *cutover);
// Gives the new ring of a cutover members of its own: a deep copy. Returns 0 or -ENOMEM.
int document_cutover_members_set(struct document *document, struct document_cutover *cutover,
	const struct config_backend *backends, uint32_t count);

struct document_cutover *document_cutover_find(const struct document *document, const char *pool);
