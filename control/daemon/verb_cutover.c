// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/verb_live.h"

#include "common/gate.h"

#include <string.h>

static const char *state_of(uint32_t share)
{
	return share == 0 ? "staged" : share == GATE_SHARE_ALL ? "full" : "shifting";
}

// A cutover, with what the dataplane counted on both sides since it started.
static json_t *cutover_json(struct verbs *verbs, const struct document_cutover *cutover)
{
	const struct config_pool *pool =
		config_pool_find(node_document(verbs->node)->pools, cutover->pool);
	const struct stats_file *stats = verbs_stats(verbs);
	uint32_t here = document_cutover_share(cutover);
	struct stats_pool sums = {0};
	char from[32] = "-", to[32];
	uint64_t flows;
	json_t *ret;

	if (pool != NULL)
		verbs_ring_text(&pool->ring, from, sizeof(from));
	verbs_ring_text(&cutover->ring, to, sizeof(to));
	if (stats != NULL)
		stats_file_pool(stats, verbs_id(verbs, DOCUMENT_POOL, "", cutover->pool), &sums);
	flows = sums.new_flows_old + sums.new_flows_new;
	ret = json_pack(
		"{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"name", cutover->pool, "from", from, "to", to, "state", state_of(cutover->share),
		"share_ppm", (json_int_t)cutover->share, "share_here_ppm", (json_int_t)here,
		"threshold", (json_int_t)gate_threshold(here), "dataplane",
		node_dataplane(verbs->node)->text, "new_flows_old", (json_int_t)sums.new_flows_old,
		"new_flows_new", (json_int_t)sums.new_flows_new, "packets_old",
		(json_int_t)sums.packets_old, "packets_new", (json_int_t)sums.packets_new,
		"aborts_old", (json_int_t)sums.aborts_old, "aborts_new",
		(json_int_t)sums.aborts_new, "drops_old", (json_int_t)sums.drops_old, "drops_new",
		(json_int_t)sums.drops_new);
	if (ret != NULL && flows > 0)
		json_object_set_new(ret, "new_flows_new_share",
			json_real((double)sums.new_flows_new / (double)flows));
	return ret;
}

static bool has_row(const json_t *rows, const char *pool)
{
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		if (strcmp(json_string_value(json_object_get(row, "name")), pool) == 0)
			return true;
	}
	return false;
}

// What the fleet says goes before what the document holds.
static void add_fleet_rows(struct server_call *call, json_t *rows)
{
	const struct fleet_cutovers *cutovers = verbs_cutovers(verbs_of(call));

	for (uint32_t i = 0; cutovers != NULL && i < cutovers->count; i++) {
		const struct cutover *cutover = &cutovers->items[i]->cutover;
		const char *state = cutover_state_name(cutover->state);
		json_int_t share = (json_int_t)cutover_share_max(cutover);
		json_t *row;
		size_t place;

		if (!has_row(rows, cutover->spec.pool))
			json_array_append_new(rows,
				json_pack("{s:s, s:s, s:I}", "name", cutover->spec.pool, "state",
					state, "share_ppm", share));
		json_array_foreach (rows, place, row) {
			if (strcmp(json_string_value(json_object_get(row, "name")),
				    cutover->spec.pool) != 0)
				continue;
			json_object_set_new(row, "state", json_string(state));
			json_object_set_new(row, "share_ppm", json_integer(share));
			json_object_set_new(row, "reason", json_string(cutover->reason));
		}
	}
}

void verb_cutover_list(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct document *document = node_document(verbs->node);
	json_t *rows = json_array();

	for (uint32_t i = 0; i < document->cutover_count; i++)
		json_array_append_new(rows, cutover_json(verbs, &document->cutovers[i]));
	add_fleet_rows(call, rows);
	call->result = json_pack("{s:o}", "cutovers", rows);
}

static const struct cutover *fleet_cutover_of(struct server_call *call, const char *pool)
{
	const struct fleet_cutovers *cutovers = verbs_cutovers(verbs_of(call));

	for (uint32_t i = 0; cutovers != NULL && i < cutovers->count; i++) {
		if (strcmp(cutovers->items[i]->cutover.spec.pool, pool) == 0)
			return &cutovers->items[i]->cutover;
	}
	return NULL;
}

void verb_cutover_show(struct server_call *call)
{
	const struct document_cutover *cutover;
	const struct config_pool *pool;
	const struct cutover *fleet;

	if (verbs_pool(call, &pool) != ANSWER_DONE)
		return;
	fleet = fleet_cutover_of(call, pool->name);
	if (fleet != NULL) {
		call->result = verb_fleet_cutover_json(call, fleet);
		return;
	}
	cutover = document_cutover_find(node_document(verbs_of(call)->node), pool->name);
	if (cutover == NULL) {
		server_fail(call, ANSWER_NOT_FOUND,
			"pool %s has no cutover; start one: ringway cutover set %s --to v2 --share 0%%",
			pool->name, pool->name);
		return;
	}
	call->result = cutover_json(verbs_of(call), cutover);
	verb_live_add_local(call, call->result, cutover);
}

// The ring that "to", "points" and "balance" describe; the seed stays the pool's.
static enum answer read_ring(
	struct server_call *call, const struct config_pool *pool, struct node_cutover *ret)
{
	const json_t *balance = json_object_get(call->request->args, "balance");
	const char *to = NULL;
	uint64_t points = 0;

	if (server_text_optional(call, "to", &to) != ANSWER_DONE ||
		server_number_optional(call, "points", 1, RING_POINTS_MAX, &points) != ANSWER_DONE)
		return call->answer;
	if (balance != NULL &&
		(!json_is_number(balance) || !(json_number_value(balance) > 0) ||
			json_number_value(balance) > 1))
		return server_fail(
			call, ANSWER_USAGE, "\"balance\" must be a number above 0, up to 1");
	if (to == NULL && (points != 0 || balance != NULL))
		return server_fail(call, ANSWER_USAGE, "points and balance go with --to");
	if (to == NULL)
		return ANSWER_DONE;
	ret->has_ring = true;
	ret->ring = pool->ring;
	ret->ring.version = 0;
	for (uint32_t version = RING_V1; version <= RING_V3; version++) {
		if (strcmp(to, config_ring_version_name(version)) == 0)
			ret->ring.version = version;
	}
	if (ret->ring.version == 0)
		return server_fail(
			call, ANSWER_USAGE, "\"%s\" is no ring version: v1, v2 or v3", to);
	if (ret->ring.version == RING_V1 && points != 0 && points != 160)
		return server_fail(call, ANSWER_USAGE, "v1 always has 160 points a weight");
	if (ret->ring.version != RING_V3 && balance != NULL)
		return server_fail(call, ANSWER_USAGE, "only v3 has a balance");
	ret->ring.points = points              ? (uint32_t)points
		: ret->ring.version == RING_V1 ? 160
					       : CONFIG_POINTS_DEFAULT;
	ret->ring.balance =
		balance != NULL ? (uint32_t)(json_number_value(balance) * 1e6 + 0.5) : 0;
	return ANSWER_DONE;
}

// The node's own switches go by the cutovers that there are: they look at once, not at the next tick.
static void answer(struct server_call *call, struct node_outcome *outcome)
{
	verbs_outcome(call, outcome);
	if (verbs_of(call)->fleet != NULL)
		fleet_link_refresh(verbs_of(call)->fleet);
}

void verb_cutover_set(struct server_call *call)
{
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	struct node_cutover cutover = {0};
	const struct config_pool *pool;
	uint64_t share = UINT64_MAX;

	if (fleet_takes(call, CUTOVER_SET))
		return;
	if (verbs_pool(call, &pool) != ANSWER_DONE ||
		server_number_optional(call, "share_ppm", 0, GATE_SHARE_ALL, &share) !=
			ANSWER_DONE ||
		read_ring(call, pool, &cutover) != ANSWER_DONE)
		return;
	cutover.pool = pool->name;
	if (share != UINT64_MAX) {
		cutover.has_share = true;
		cutover.share = (uint32_t)share;
	}
	if (!cutover.has_ring && !cutover.has_share) {
		server_fail(call, ANSWER_USAGE,
			"nothing to set: name a ring (--to v2 --points 16), a share (--share 10%%), or "
			"both");
		return;
	}
	node_cutover_set(verbs_of(call)->node, &request, &cutover, &outcome);
	answer(call, &outcome);
}

// Asks for nothing but the pool: no generation, no lock stands in the way back.
void verb_cutover_rollback(struct server_call *call)
{
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	const char *pool = NULL;

	if (fleet_takes(call, CUTOVER_ROLLBACK))
		return;
	if (server_text(call, "pool", &pool) != ANSWER_DONE)
		return;
	node_cutover_rollback(verbs_of(call)->node, &request, pool,
		server_flag(call, "move_established"), &outcome);
	answer(call, &outcome);
	fleet_add_established_here(call, pool);
}

void verb_cutover_retire(struct server_call *call)
{
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	const char *pool = NULL;

	if (fleet_takes(call, CUTOVER_RETIRE))
		return;
	if (server_text(call, "pool", &pool) != ANSWER_DONE)
		return;
	node_cutover_retire(verbs_of(call)->node, &request, pool, &outcome);
	answer(call, &outcome);
}

void verb_cutover_discard(struct server_call *call)
{
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	const char *pool = NULL;

	if (fleet_takes(call, CUTOVER_DISCARD))
		return;
	if (server_text(call, "pool", &pool) != ANSWER_DONE)
		return;
	node_cutover_discard(verbs_of(call)->node, &request, pool, &outcome);
	answer(call, &outcome);
}
