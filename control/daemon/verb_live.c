// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/verb_live.h"

#include "control/cutover/waits.h"
#include "control/fleet/live.h"
#include "control/ring/churn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void set_number(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

// --- what moves ------------------------------------------------------------------------------------

static struct cutover_ring shape_of(const struct config_ring *ring)
{
	return (struct cutover_ring){.version = (enum ring_version)ring->version,
		.points = ring->points,
		.seed_mark = hash_seed_mark(ring->hash_seed)};
}

static void set_ring(json_t *object, const char *key, const struct cutover_ring *ring)
{
	char text[64];

	verbs_ring_shape_text(ring->version, ring->points, ring->seed_mark, text, sizeof(text));
	json_object_set_new(object, key, json_string(text));
}

static const struct config_backend *backend_find(
	const struct config_backend *backends, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(backends[i].name, name) == 0)
			return &backends[i];
	}
	return NULL;
}

// How the new ring's members differ from the pool's. Absent when they are the pool's own.
static void add_members(
	json_t *object, const struct config_pool *pool, const struct document_cutover *cutover)
{
	uint32_t added = 0, changed = 0, kept = 0;

	if (cutover->backend_count == 0)
		return;
	for (uint32_t i = 0; i < cutover->backend_count; i++) {
		const struct config_backend *after = &cutover->backends[i];
		const struct config_backend *before =
			backend_find(pool->backends, pool->backend_count, after->name);

		added += before == NULL;
		kept += before != NULL;
		changed += before != NULL && before->weight != after->weight;
	}
	json_object_set_new(object, "members",
		json_pack("{s:I, s:I, s:I}", "added", (json_int_t)added, "removed",
			(json_int_t)(pool->backend_count - kept), "reweighted",
			(json_int_t)changed));
}

// The churn of two rings, worked out once: it takes milliseconds for large ones, and people watch for hours.
static double churn_of(struct verbs *verbs, const struct ring *before, const struct ring *after)
{
	struct verbs_churn *place;
	uint64_t moved = RING_CIRCLE; // without memory the worst is said

	for (unsigned i = 0; i < VERBS_CHURNS_MAX; i++) {
		const struct verbs_churn *known = &verbs->churns[i];

		if (memcmp(known->before, before->header->points_digest, RING_DIGEST_BYTES) == 0 &&
			memcmp(known->after, after->header->points_digest, RING_DIGEST_BYTES) == 0)
			return known->churn;
	}
	place = &verbs->churns[verbs->churn_next++ % VERBS_CHURNS_MAX];
	memcpy(place->before, before->header->points_digest, RING_DIGEST_BYTES);
	memcpy(place->after, after->header->points_digest, RING_DIGEST_BYTES);
	ring_moved(before, after, &moved, NULL, NULL);
	place->churn = (double)moved / (double)RING_CIRCLE;
	return place->churn;
}

// The churn of the subset that moves most, as the plan has it. Absent when only one ring is there.
static void add_churn(struct verbs *verbs, json_t *object, const char *pool)
{
	const struct config_pools *pools = node_document(verbs->node)->pools;
	const struct node_ring *before, *after;
	double most = -1;

	for (uint32_t i = 0; i < pools->service_count; i++) {
		if (strcmp(pools->services[i].pool, pool) != 0)
			continue;
		node_service_rings(verbs->node, i, &before, &after);
		if (after != NULL)
			most = fmax(most, churn_of(verbs, before->ring, after->ring));
	}
	if (most >= 0)
		json_object_set_new(object, "churn", json_real(most));
}

// --- what flows do -----------------------------------------------------------------------------------

static void add_rows(json_t *rows, const struct cutover *cutover, const struct fleet_roster *roster)
{
	struct fleet_live *lives = calloc(cutover->spec.datacenter_count + 1u, sizeof(*lives));
	json_t *row;
	size_t i;

	if (lives == NULL)
		return;
	for (uint32_t m = 0; m < roster->count; m++) {
		const struct fleet_status *status = &roster->members[m]->status;
		const struct fleet_pool *pool = fleet_pool_find(status, cutover->spec.pool);
		int index = cutover_datacenter_find(&cutover->spec, status->datacenter);

		if (pool != NULL && index >= 0 &&
			status->time_ms + FLEET_MISSING_MS >= fleet_wall_ms())
			fleet_live_add(&lives[index], status, pool);
	}
	json_array_foreach (rows, i, row) {
		if (i < cutover->spec.datacenter_count)
			json_object_set_new(row, "live", fleet_live_write(&lives[i]));
	}
	free(lives);
}

void verb_live_add(struct server_call *call, json_t *object, const struct cutover *cutover,
	const struct fleet_roster *roster, const struct cutover_facts *facts)
{
	struct verbs *verbs = verbs_of(call);
	const struct document *document = node_document(verbs->node);
	const struct config_pool *pool = config_pool_find(document->pools, cutover->spec.pool);
	const struct document_cutover *rings = document_cutover_find(document, cutover->spec.pool);
	struct cutover_ring from = cutover->spec.from, to = cutover->spec.to;
	char waits[CUTOVER_REASON_BYTES];
	uint64_t now_ms = fleet_wall_ms(), left_ms;
	bool staged = pool != NULL && rings != NULL && rings->salt == cutover->spec.salt;

	set_number(object, "now_ms", now_ms);
	if (staged) {
		from = shape_of(&pool->ring);
		to = shape_of(&rings->ring);
		add_members(object, pool, rings);
	}
	set_ring(object, "from", &from);
	set_ring(object, "to", &to);
	add_churn(verbs, object, cutover->spec.pool);
	cutover_waits(cutover, facts, now_ms, waits, &left_ms);
	json_object_set_new(object, "waits_for", json_string(waits));
	set_number(object, "left_ms", left_ms);
	add_rows(json_object_get(object, "datacenters_now"), cutover, roster);
}

void verb_live_add_local(
	struct server_call *call, json_t *object, const struct document_cutover *cutover)
{
	struct verbs *verbs = verbs_of(call);
	const struct config_pool *pool =
		config_pool_find(node_document(verbs->node)->pools, cutover->pool);
	struct fleet_live live = {0};

	set_number(object, "now_ms", fleet_wall_ms());
	if (pool != NULL)
		add_members(object, pool, cutover);
	add_churn(verbs, object, cutover->pool);
	if (verbs->fleet != NULL)
		fleet_link_live(verbs->fleet, cutover, &live);
	json_object_set_new(object, "datacenters_now",
		json_pack("[{s:s, s:I, s:s, s:b, s:i, s:o}]", "name",
			node_config(verbs->node)->datacenter, "share_ppm",
			(json_int_t)cutover->share, "cause", "set by hand", "move_established",
			cutover->moves_established != 0, "nodes", 1, "live",
			fleet_live_write(&live)));
}
