// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// name, least role, changes something, can be watched, handler
const struct server_verb verbs_table[] = {
	{"status", SERVER_VIEWER, false, true, verb_status},
	{"stats", SERVER_VIEWER, false, true, verb_stats},
	{"explain", SERVER_VIEWER, false, false, verb_explain},
	{"diff", SERVER_VIEWER, false, false, verb_diff},
	{"config.export", SERVER_VIEWER, false, false, verb_config_export},
	{"service.list", SERVER_VIEWER, false, false, verb_service_list},
	{"service.show", SERVER_VIEWER, false, false, verb_service_show},
	{"pool.list", SERVER_VIEWER, false, false, verb_pool_list},
	{"pool.show", SERVER_VIEWER, false, false, verb_pool_show},
	{"backend.list", SERVER_VIEWER, false, true, verb_backend_list},
	{"backend.show", SERVER_VIEWER, false, true, verb_backend_show},
	{"ring.list", SERVER_VIEWER, false, false, verb_ring_list},
	{"cutover.list", SERVER_VIEWER, false, true, verb_cutover_list},
	{"cutover.show", SERVER_VIEWER, false, true, verb_cutover_show},
	{"trace.read", SERVER_VIEWER, false, false, verb_trace_read},
	{"trace.start", SERVER_OPERATOR, true, false, verb_trace_start},
	{"trace.stop", SERVER_OPERATOR, true, false, verb_trace_stop},
	{"cutover.plan", SERVER_VIEWER, false, false, verb_cutover_plan},
	{"cutover.history", SERVER_VIEWER, false, false, verb_cutover_history},
	{"node.list", SERVER_VIEWER, false, true, verb_node_list},
	{"dc.list", SERVER_VIEWER, false, true, verb_dc_list},
	{"ring.verify", SERVER_VIEWER, false, false, verb_ring_verify},
	{"audit.list", SERVER_VIEWER, false, false, verb_audit_list},
	{"audit.verify", SERVER_VIEWER, false, false, verb_audit_verify},
	{"cutover.stage", SERVER_OPERATOR, true, false, verb_cutover_stage},
	{"cutover.start", SERVER_OPERATOR, true, false, verb_cutover_start},
	{"cutover.advance", SERVER_OPERATOR, true, false, verb_cutover_advance},
	{"cutover.pause", SERVER_OPERATOR, true, false, verb_cutover_pause},
	{"cutover.resume", SERVER_OPERATOR, true, false, verb_cutover_resume},
	{"cutover.override", SERVER_OPERATOR, true, false, verb_cutover_override},
	{"cutover.lock", SERVER_OPERATOR, true, false, verb_cutover_lock},
	{"cutover.unlock", SERVER_OPERATOR, true, false, verb_cutover_unlock},
	{"cutover.kill-switch", SERVER_OPERATOR, true, false, verb_cutover_kill_switch},
	{"backend.set", SERVER_OPERATOR, true, false, verb_backend_set},
	{"backend.drain", SERVER_OPERATOR, true, false, verb_backend_drain},
	{"cutover.set", SERVER_OPERATOR, true, false, verb_cutover_set},
	{"cutover.rollback", SERVER_OPERATOR, true, false, verb_cutover_rollback},
	{"backend.add", SERVER_ADMIN, true, false, verb_backend_add},
	{"backend.del", SERVER_ADMIN, true, false, verb_backend_del},
	{"cutover.retire", SERVER_ADMIN, true, false, verb_cutover_retire},
	{"cutover.discard", SERVER_ADMIN, true, false, verb_cutover_discard},
	{"apply", SERVER_ADMIN, true, false, verb_apply},
};

const unsigned verbs_count = sizeof(verbs_table) / sizeof(verbs_table[0]);

const struct stats_file *verbs_stats(struct verbs *verbs)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", node_config(verbs->node)->run_dir, IPC_STATS_NAME);
	return stats_file_refresh(&verbs->stats, path) == 0 ? &verbs->stats : NULL;
}

const struct fleet_cutovers *verbs_cutovers(struct verbs *verbs)
{
	if (verbs->fleet == NULL)
		return NULL;
	fleet_take(fleet_link_fleet(verbs->fleet));
	return fleet_cutovers(fleet_link_fleet(verbs->fleet));
}

struct node_request verbs_request(const struct server_call *call)
{
	const struct protocol_request *request = call->request;

	return (struct node_request){
		.verb = request->verb,
		.reason = request->reason,
		.uid = call->uid,
		.gid = call->gid,
		.pid = call->pid,
		.generation =
			request->generation == PROTOCOL_NO_GENERATION ? 0 : request->generation,
		.dry_run = request->dry_run,
		.force = server_flag(call, "force"),
	};
}

static json_t *changes_json(const struct config_diff *diff)
{
	static const char *const kinds[] = {[CONFIG_ADDED] = "added",
		[CONFIG_REMOVED] = "removed",
		[CONFIG_CHANGED] = "changed"};
	json_t *rows = json_array();

	for (uint32_t i = 0; diff != NULL && i < diff->change_count; i++)
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s?, s:s?}", "kind", kinds[diff->changes[i].kind],
				"path", diff->changes[i].path, "before", diff->changes[i].before,
				"after", diff->changes[i].after));
	return rows;
}

static json_t *moves_json(const struct node_outcome *outcome)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < outcome->move_count; i++) {
		const struct node_move *move = &outcome->moves[i];

		json_array_append_new(rows,
			json_pack("{s:s, s:f, s:f, s:f, s:I, s:I}", "ring", move->ring,
				"moved_ratio", move->moved, "hottest_before", move->hottest_before,
				"hottest_after", move->hottest_after, "worker_bytes_before",
				(json_int_t)move->bytes_before, "worker_bytes_after",
				(json_int_t)move->bytes_after));
	}
	return rows;
}

void verbs_outcome(struct server_call *call, struct node_outcome *outcome)
{
	if (outcome->code != NODE_OK) {
		server_fail(call, (enum answer)outcome->code, "%s", outcome->text);
		if (outcome->dataplane[0] != '\0')
			server_detail(call, "dataplane: %s", outcome->dataplane);
	} else {
		call->result = json_pack("{s:b, s:b, s:b, s:b, s:I, s:I, s:s, s:s, s:o, s:o}",
			"changed", outcome->changed, "different", outcome->changed, "dry_run",
			call->request->dry_run, "in_use", outcome->in_use, "generation",
			(json_int_t)outcome->generation, "snapshot_generation",
			(json_int_t)outcome->snapshot, "text", outcome->text, "dataplane",
			outcome->dataplane, "changes", changes_json(outcome->diff), "moves",
			moves_json(outcome));
	}
	node_outcome_free(outcome);
}

void verbs_findings(struct server_call *call, const struct config_report *report)
{
	char *text = NULL, *save, *line;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return;
	config_report_print(report, out);
	fclose(out);
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
		server_detail(call, "%s", line);
	free(text);
}

enum answer verbs_pool(struct server_call *call, const struct config_pool **ret)
{
	const char *name = NULL;
	enum answer answer = server_text(call, "pool", &name);
	const struct config_pool *pool;

	if (answer != ANSWER_DONE)
		return answer;
	pool = config_pool_find(node_document(verbs_of(call)->node)->pools, name);
	if (pool == NULL)
		return server_fail(call, ANSWER_NOT_FOUND, "there is no pool %s", name);
	*ret = pool;
	return ANSWER_DONE;
}

void verbs_ring_shape_text(
	uint32_t version, uint32_t points, uint64_t seed_mark, char *ret, size_t ret_bytes)
{
	int used = snprintf(ret, ret_bytes, "%s x%u", config_ring_version_name(version), points);

	if (seed_mark != 0 && used > 0 && (size_t)used < ret_bytes)
		snprintf(ret + used, ret_bytes - (size_t)used, " seed %08x",
			(unsigned)(seed_mark >> 32));
}

void verbs_ring_text(const struct config_ring *ring, char *ret, size_t ret_bytes)
{
	verbs_ring_shape_text(
		ring->version, ring->points, hash_seed_mark(ring->hash_seed), ret, ret_bytes);
}

const char *verbs_name(const struct verbs *verbs, enum document_kind kind, uint32_t id)
{
	const struct document_id *found = document_id_name(node_document(verbs->node), kind, id);

	return found ? found->name : NULL;
}

uint32_t verbs_id(
	const struct verbs *verbs, enum document_kind kind, const char *pool, const char *name)
{
	const struct document_id *found =
		document_id_find(node_document(verbs->node), kind, pool, name);

	return found ? found->id : UINT32_MAX;
}
