// SPDX-License-Identifier: Apache-2.0
#include "control/cli/explain_snapshot.h"
#include "control/cli/flow_text.h"
#include "control/daemon/verbs.h"

#include "common/selection.h"

#include <errno.h>
#include <string.h>

// A backend that an id names, as JSON: name, pool, address and state; null for none.
static json_t *backend_json(const struct verbs *verbs, uint32_t id)
{
	const struct snapshot *snapshot = node_snapshot(verbs->node);
	const struct document_id *named =
		document_id_name(node_document(verbs->node), DOCUMENT_BACKEND, id);
	char address[ADDR_TEXT_BYTES];

	if (snapshot == NULL || id >= snapshot->backend_count)
		return json_null();
	addr_format(&snapshot->backends[id].address, address);
	return json_pack("{s:s?, s:s, s:s, s:I}", "name", named ? named->name : NULL, "address",
		address, "state", explain_state_name(snapshot->backends[id].state), "id",
		(json_int_t)id);
}

// What was live and what was computed here from the snapshot: the flow table is only in the dataplane.
static json_t *explained_json(
	const struct verbs *verbs, const struct ipc_explained *explained, bool live)
{
	bool matched = explained->verdict != IPC_EXPLAIN_NO_SERVICE;
	json_t *ret = json_pack("{s:s, s:s, s:I}", "verdict",
		explain_verdict_name(explained->verdict), "source", live ? "dataplane" : "snapshot",
		"generation", (json_int_t)explained->generation);

	if (ret == NULL || !matched) {
		json_object_set_new(ret, "why", json_string(explain_why(explained)));
		return ret;
	}
	json_object_set_new(ret, "service",
		json_string(verbs_name(verbs, DOCUMENT_SERVICE, explained->service)));
	json_object_set_new(ret, "flow_hash",
		json_sprintf("0x%016llx", (unsigned long long)explained->flow_hash));
	json_object_set_new(ret, "ring_hash", json_integer(explained->ring_hash));
	json_object_set_new(ret, "new_ring_hash", json_integer(explained->ring_hash_new));
	json_object_set_new(ret, "bucket", json_integer(explained->bucket));
	json_object_set_new(ret, "threshold", json_integer((json_int_t)explained->threshold));
	json_object_set_new(ret, "uses_new", json_boolean(explained->uses_new));
	json_object_set_new(ret, "old_ring_pick", backend_json(verbs, explained->backend_old));
	json_object_set_new(ret, "new_ring_pick", backend_json(verbs, explained->backend_new));
	if (live)
		json_object_set_new(ret, "flow_table",
			explained->in_table ? json_pack("{s:i, s:o, s:i}", "worker",
						      (int)explained->table_worker, "backend",
						      backend_json(verbs, explained->table_backend),
						      "age_s", (int)explained->table_age_s)
					    : json_string("no entry"));
	json_object_set_new(ret, "backend", backend_json(verbs, explained->backend));
	json_object_set_new(ret, "why", json_string(explain_why(explained)));
	return ret;
}

void verb_explain(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const char *protocol = NULL, *source = NULL, *destination = NULL;
	struct ipc_explained explained = {0};
	struct flow_key key;
	char error[256];
	bool live;

	if (server_text(call, "protocol", &protocol) != ANSWER_DONE ||
		server_text(call, "source", &source) != ANSWER_DONE ||
		server_text(call, "destination", &destination) != ANSWER_DONE)
		return;
	if (flow_text_parse(protocol, source, destination, &key, error) != 0) {
		server_fail(call, ANSWER_USAGE, "%s", error);
		return;
	}
	live = node_explain_live(verbs->node, &key, &explained) == 0;
	if (!live)
		node_explain(verbs->node, &key, &explained);
	call->result = explained_json(verbs, &explained, live);
}
