// SPDX-License-Identifier: Apache-2.0
// What everybody in the fleet says, and what that means: nodes, datacenters, rings, cutovers, the audit log.
#include "control/cutover/json.h"
#include "control/cutover/plan.h"
#include "control/daemon/verb_live.h"
#include "control/fleet/conductor.h"
#include "control/fleet/guards.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// All statements, read now. Returns NULL with the failure set.
static struct fleet_roster *roster_read(struct server_call *call)
{
	struct fleet_roster *roster = calloc(1, sizeof(*roster));
	struct cutover_facts *facts = calloc(1, sizeof(*facts));
	int rc = roster && facts ? fleet_look_at(call, NULL, roster, facts) : -ENOMEM;

	free(facts);
	if (rc == 0)
		return roster;
	free(roster);
	fleet_store_fail(call, rc, store_error(node_store(verbs_of(call)->node)));
	return NULL;
}

static void roster_free(struct fleet_roster *roster)
{
	fleet_roster_free(roster);
	free(roster);
}

static bool is_missing(const struct fleet_member *member)
{
	return member->status.time_ms + FLEET_MISSING_MS < fleet_wall_ms();
}

static const char *state_of(const struct fleet_member *member)
{
	if (is_missing(member))
		return "missing";
	return fleet_dataplane_name(member->status.dataplane);
}

static json_t *pool_row(const struct fleet_pool *pool)
{
	return json_pack("{s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "pool", pool->pool,
		"share_ppm", (json_int_t)pool->share, "revision", (json_int_t)pool->revision,
		"local", pool->local, "flows_old", (json_int_t)pool->flows_old, "flows_new",
		(json_int_t)pool->flows_new, "aborts_old", (json_int_t)pool->aborts_old,
		"aborts_new", (json_int_t)pool->aborts_new);
}

static json_t *node_row(const struct fleet_member *member)
{
	const struct fleet_status *status = &member->status;
	uint64_t now_ms = fleet_wall_ms();
	uint64_t age_ms = now_ms > status->time_ms ? now_ms - status->time_ms : 0;
	json_t *pools = json_array();
	char shares[128] = "";

	for (uint32_t i = 0; i < status->pool_count; i++) {
		char share[CUTOVER_SHARE_TEXT_BYTES];
		size_t length = strlen(shares);

		json_array_append_new(pools, pool_row(&status->pools[i]));
		if (!status->pools[i].has_new)
			continue; // no share of what has ended
		cutover_share_format(status->pools[i].share, share);
		snprintf(shares + length, sizeof(shares) - length, "%s%s=%s", length ? " " : "",
			status->pools[i].pool, share);
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:s, s:I, s:I, s:o}", "name",
		status->node, "datacenter", status->datacenter, "state", state_of(member), "age_ms",
		(json_int_t)age_ms, "generation", (json_int_t)status->generation, "kill_switch",
		status->kill_switch, "shares", shares, "text", status->text, "hugepage_bytes",
		(json_int_t)status->hugepage_bytes, "startup_ns", (json_int_t)status->startup_ns,
		"pools", pools);
}

void verb_node_list(struct server_call *call)
{
	struct fleet_roster *roster = roster_read(call);
	json_t *rows = json_array();

	for (uint32_t i = 0; roster != NULL && i < roster->count; i++)
		json_array_append_new(rows, node_row(roster->members[i]));
	if (roster == NULL) {
		json_decref(rows);
		return;
	}
	call->result = json_pack("{s:o}", "nodes", rows);
	roster_free(roster);
}

// --- datacenters -----------------------------------------------------------------------------------

// Counts of one datacenter, as a JSON object that is filled up row by row.
static json_t *datacenter_row(json_t *rows, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
			return row;
	}
	row = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "name", name, "nodes",
		0, "current", 0, "behind", 0, "absent", 0, "missing", 0, "flows_old", (json_int_t)0,
		"flows_new", (json_int_t)0, "generation_min", (json_int_t)INT64_MAX,
		"generation_max", (json_int_t)0);
	json_array_append_new(rows, row);
	return row;
}

static void add(json_t *row, const char *key, uint64_t value)
{
	json_int_t sum = json_integer_value(json_object_get(row, key)) + (json_int_t)value;

	json_object_set_new(row, key, json_integer(sum));
}

static void count_member(json_t *rows, const struct fleet_member *member)
{
	const struct fleet_status *status = &member->status;
	json_t *row = datacenter_row(rows, status->datacenter);
	json_int_t generation = (json_int_t)status->generation;

	add(row, "nodes", 1);
	add(row, state_of(member), 1);
	for (uint32_t i = 0; i < status->pool_count; i++) {
		add(row, "flows_old", status->pools[i].flows_old);
		add(row, "flows_new", status->pools[i].flows_new);
	}
	if (generation < json_integer_value(json_object_get(row, "generation_min")))
		json_object_set_new(row, "generation_min", json_integer(generation));
	if (generation > json_integer_value(json_object_get(row, "generation_max")))
		json_object_set_new(row, "generation_max", json_integer(generation));
}

static void add_shares(struct server_call *call, json_t *rows)
{
	const struct fleet_cutovers *cutovers =
		fleet_cutovers(fleet_link_fleet(verbs_of(call)->fleet));
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		json_t *shares = json_array();

		for (uint32_t c = 0; c < cutovers->count; c++) {
			const struct cutover *cutover = &cutovers->items[c]->cutover;
			enum threshold_cause cause;
			uint32_t share = cutover_share(cutover,
				json_string_value(json_object_get(row, "name")), false, &cause);

			json_array_append_new(shares,
				json_pack("{s:s, s:I, s:s}", "pool", cutover->spec.pool,
					"share_ppm", (json_int_t)share, "cause",
					threshold_cause_text(cause)));
		}
		json_object_set_new(row, "shares", shares);
	}
}

void verb_dc_list(struct server_call *call)
{
	struct fleet_roster *roster = roster_read(call);
	json_t *rows = json_array();

	for (uint32_t i = 0; roster != NULL && i < roster->count; i++)
		count_member(rows, roster->members[i]);
	if (roster == NULL) {
		json_decref(rows);
		return;
	}
	add_shares(call, rows);
	call->result = json_pack("{s:o}", "datacenters", rows);
	roster_free(roster);
}

// --- digests ---------------------------------------------------------------------------------------

static bool same_digest(bool has_a, const uint8_t *a, bool has_b, const uint8_t *b)
{
	return has_a == has_b && (!has_a || memcmp(a, b, RING_DIGEST_BYTES) == 0);
}

// Nodes of one generation must have built the same rings, bit for bit.
static void verify_member(json_t *rows, const struct fleet_status *right,
	const struct fleet_member *member, unsigned *ret_different)
{
	const struct fleet_status *status = &member->status;

	for (uint32_t i = 0; i < status->pool_count; i++) {
		const struct fleet_pool *pool = &status->pools[i];
		const struct fleet_pool *want = fleet_pool_find(right, pool->pool);
		const char *verdict = "same";

		if (is_missing(member))
			verdict = "missing";
		else if (want == NULL || status->generation != right->generation)
			verdict = "another generation";
		else if (!same_digest(pool->has_old, pool->old_digest, want->has_old,
				 want->old_digest) ||
			!same_digest(
				pool->has_new, pool->new_digest, want->has_new, want->new_digest))
			verdict = "different";
		*ret_different += strcmp(verdict, "different") == 0;
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s, s:I, s:s}", "node", status->node, "datacenter",
				status->datacenter, "pool", pool->pool, "generation",
				(json_int_t)status->generation, "digests", verdict));
	}
}

void verb_ring_verify(struct server_call *call)
{
	const struct fleet_status *right = fleet_link_status(verbs_of(call)->fleet);
	struct fleet_roster *roster = roster_read(call);
	json_t *rows = json_array();
	unsigned different = 0;

	for (uint32_t i = 0; roster != NULL && i < roster->count; i++)
		verify_member(rows, right, roster->members[i], &different);
	if (roster == NULL) {
		json_decref(rows);
		return;
	}
	call->result = json_pack("{s:b, s:i, s:o}", "equal", different == 0, "different_count",
		(int)different, "nodes", rows);
	roster_free(roster);
}

// --- cutovers --------------------------------------------------------------------------------------

static json_t *facts_json(const struct cutover *cutover, const struct cutover_facts *facts)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		const struct cutover_datacenter_facts *seen = &facts->datacenters[i];
		enum threshold_cause cause;
		const char *name = cutover->spec.datacenters[i];
		uint32_t share = cutover_share(cutover, name, false, &cause);

		json_array_append_new(rows,
			json_pack("{s:s, s:I, s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:i}", "name",
				name, "share_ppm", (json_int_t)share, "cause",
				threshold_cause_text(cause), "move_established",
				cutover_recalls(cutover, name), "nodes", seen->nodes, "prepared",
				seen->prepared, "applied", seen->applied, "missing", seen->missing,
				"refused", seen->refused, "mismatched", seen->mismatched));
	}
	return rows;
}

// What it would cost to go back now, where keys have a home: as the plan saw them move.
static void add_rollback_cost(json_t *object, const struct cutover *cutover)
{
	const struct cutover_spec *spec = &cutover->spec;
	uint64_t now_ms = fleet_wall_ms();
	uint64_t moved_ms = now_ms > cutover->state_ms ? now_ms - cutover->state_ms : 0;

	double churn = isnan(spec->churn_surge) ? 1 : spec->churn_surge;

	if (isnan(spec->hit_ratio) || churn <= 0)
		return;
	json_object_set_new(object, "rollback_surge_now",
		json_real(plan_rollback_surge((double)cutover_share_max(cutover) / GATE_SHARE_ALL,
			churn, spec->hit_ratio, moved_ms, spec->refill_ms)));
}

static json_t *next_text(const struct cutover *cutover)
{
	char share[CUTOVER_SHARE_TEXT_BYTES], text[160];
	const struct cutover_stage *stage = &cutover->spec.stages[cutover->stage];

	cutover_share_format(cutover_stage_next_share(stage, cutover->share), share);
	switch (cutover->state) {
	case CUTOVER_STAGED:
		snprintf(text, sizeof(text), "ringway cutover start %s", cutover->spec.pool);
		break;
	case CUTOVER_SHIFTING:
		snprintf(text, sizeof(text), "waits for nodes to take the share over");
		break;
	case CUTOVER_SOAKING:
		if (cutover->share < cutover_stage_last_share(stage))
			snprintf(text, sizeof(text),
				"nothing: %s comes by itself; ringway cutover pause %s holds it",
				share, cutover->spec.pool);
		else
			snprintf(text, sizeof(text),
				"nothing: the stage is over after this soak; ringway cutover pause %s holds it",
				cutover->spec.pool);
		break;
	case CUTOVER_GATED:
		snprintf(text, sizeof(text), "ringway cutover advance %s", cutover->spec.pool);
		break;
	case CUTOVER_PAUSED:
		snprintf(text, sizeof(text), "ringway cutover resume %s, or rollback",
			cutover->spec.pool);
		break;
	case CUTOVER_FULL:
		snprintf(text, sizeof(text), "ringway cutover retire %s", cutover->spec.pool);
		break;
	case CUTOVER_ROLLED_BACK:
		snprintf(text, sizeof(text), "ringway cutover discard %s", cutover->spec.pool);
		break;
	default:
		snprintf(text, sizeof(text), "nothing");
		break;
	}
	return json_string(text);
}

json_t *verb_fleet_cutover_json(struct server_call *call, const struct cutover *cutover)
{
	struct fleet_roster *roster = calloc(1, sizeof(*roster));
	struct cutover_facts *facts = calloc(1, sizeof(*facts));
	json_t *object = cutover_write(cutover);
	struct fleet_state state;

	if (roster == NULL || facts == NULL || object == NULL) {
		free(roster);
		free(facts);
		return object;
	}
	fleet_look_at(call, cutover, roster, facts);
	fleet_state(fleet_link_fleet(verbs_of(call)->fleet), &state);
	json_object_set_new(object, "name", json_string(cutover->spec.pool));
	json_object_set_new(object, "datacenters_now", facts_json(cutover, facts));
	json_object_set_new(
		object, "guards", fleet_guards_said(node_store(verbs_of(call)->node), cutover));
	json_object_set_new(object, "next", next_text(cutover));
	json_object_set_new(
		object, "stage_count", json_integer((json_int_t)cutover->spec.stage_count));
	json_object_set_new(
		object, "share_ppm", json_integer((json_int_t)cutover_share_max(cutover)));
	json_object_set_new(object, "store_connected", json_boolean(state.connected));
	json_object_set_new(object, "conductor_here", json_boolean(state.elected));
	add_rollback_cost(object, cutover);
	verb_live_add(call, object, cutover, roster, facts);
	roster_free(roster);
	free(facts);
	return object;
}

// --- audit log -------------------------------------------------------------------------------------

struct history {
	const char *pool; // NULL: everything
	json_t *rows;
};

static int history_take(
	void *context, uint64_t number, const char *entry, const uint8_t hash[STORE_HASH_BYTES])
{
	struct history *history = context;
	json_t *object = json_loads(entry, 0, NULL);
	const char *pool = json_string_value(json_object_get(object, "pool"));
	char text[17];

	if (object == NULL)
		return 0;
	if (history->pool != NULL && (pool == NULL || strcmp(pool, history->pool) != 0)) {
		json_decref(object);
		return 0;
	}
	snprintf(text, sizeof(text), "%02x%02x%02x%02x%02x%02x%02x%02x", hash[0], hash[1], hash[2],
		hash[3], hash[4], hash[5], hash[6], hash[7]);
	json_object_set_new(object, "number", json_integer((json_int_t)number));
	json_object_set_new(object, "hash", json_string(text));
	json_array_append_new(history->rows, object);
	return 0;
}

static void history_give(struct server_call *call, const char *pool, const char *key)
{
	struct store *store = node_store(verbs_of(call)->node);
	struct history history = {.pool = pool, .rows = json_array()};
	int rc = store_audit_list(store, 1, history_take, &history);

	if (rc < 0) {
		json_decref(history.rows);
		fleet_store_fail(call, rc, store_error(store));
		return;
	}
	call->result = json_pack("{s:o}", key, history.rows);
}

void verb_cutover_history(struct server_call *call)
{
	const char *pool;

	if (server_text(call, "pool", &pool) == ANSWER_DONE)
		history_give(call, pool, "events");
}

void verb_audit_list(struct server_call *call)
{
	history_give(call, NULL, "events");
}

void verb_audit_verify(struct server_call *call)
{
	struct store *store = node_store(verbs_of(call)->node);
	uint64_t count = 0, broken = 0;
	int rc = store_audit_verify(store, &count, &broken);

	if (rc < 0) {
		server_fail(call, ANSWER_FAILED, "%s", store_error(store));
		return;
	}
	call->result = json_pack("{s:b, s:I, s:s}", "whole", 1, "entries", (json_int_t)count,
		"text", "every entry follows from those before it");
}
