// SPDX-License-Identifier: Apache-2.0
// Traces of selections. Whoever starts them holds a lease that each reading renews: a reader that is killed leaves no
// trace running.
#include "control/cli/flow_text.h"
#include "control/daemon/verbs.h"

#include "common/selection.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <time.h>

#define LEASE_US    UINT64_C(10000000)
#define ACCURACY_US 100000u
#define SHIFT_MAX   31

static int on_lease(sd_event_source *source, uint64_t usec, void *context)
{
	struct verbs *verbs = context;
	char text[NODE_TEXT_BYTES];

	(void)usec;
	// A dataplane that is gone traces nothing; there is nobody to tell.
	(void)node_trace_set(verbs->node, false, 0, text);
	verbs->trace_lease = sd_event_source_disable_unref(source);
	return 0;
}

static void renew(struct verbs *verbs)
{
	sd_event *event = NULL;

	if (verbs->trace_lease != NULL) {
		sd_event_source_set_time_relative(verbs->trace_lease, LEASE_US);
		sd_event_source_set_enabled(verbs->trace_lease, SD_EVENT_ONESHOT);
		return;
	}
	if (sd_event_default(&event) < 0)
		return;
	sd_event_add_time_relative(event, &verbs->trace_lease, CLOCK_MONOTONIC, LEASE_US,
		ACCURACY_US, on_lease, verbs);
	sd_event_unref(event);
}

static void set(struct server_call *call, bool enabled, unsigned shift)
{
	char text[NODE_TEXT_BYTES] = "";

	if (!call->request->dry_run &&
		node_trace_set(verbs_of(call)->node, enabled, shift, text) != 0) {
		server_fail(call, ANSWER_FAILED, "%s", text);
		return;
	}
	call->result = json_pack("{s:b, s:i}", "tracing", enabled, "shift", (int)shift);
}

void verb_trace_start(struct server_call *call)
{
	uint64_t shift = 0;

	if (server_number_optional(call, "shift", 0, SHIFT_MAX, &shift) != ANSWER_DONE)
		return;
	set(call, true, (unsigned)shift);
	if (call->answer == ANSWER_DONE && !call->request->dry_run)
		renew(verbs_of(call));
}

void verb_trace_stop(struct server_call *call)
{
	set(call, false, 0);
	if (!call->request->dry_run)
		verbs_of(call)->trace_lease =
			sd_event_source_disable_unref(verbs_of(call)->trace_lease);
}

static json_t *time_json(uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000u);
	char text[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%09uZ", text, (unsigned)(time_ns % 1000000000u));
}

static json_t *endpoint_json(const uint8_t *bytes, uint8_t family, uint16_t port_be)
{
	char text[FLOW_TEXT_ENDPOINT_BYTES];

	flow_text_format(bytes, family, port_be, text);
	return json_string(text);
}

static json_t *name_json(const struct verbs *verbs, enum document_kind kind, uint32_t id)
{
	const char *name = verbs_name(verbs, kind, id);

	return name ? json_string(name) : json_null();
}

static const char *name_at(const char *const *names, size_t count, size_t index)
{
	return index < count && names[index] != NULL ? names[index] : "unknown";
}

static json_t *trace_json(const struct verbs *verbs, const struct ipc_trace *trace)
{
	static const char *const tables[] = {[IPC_TRACE_MISS] = "miss",
		[IPC_TRACE_HIT_OTHER] = "hit_other_worker",
		[IPC_TRACE_STALE] = "stale_backend",
		[IPC_TRACE_RECALLED] = "recalled"};
	static const char *const entries[] = {[IPC_TRACE_NOT_STORED] = "not_stored",
		[IPC_TRACE_INSERTED] = "inserted",
		[IPC_TRACE_OVER_EXPIRED] = "over_expired",
		[IPC_TRACE_OVER_UNPROVEN] = "over_unproven",
		[IPC_TRACE_OVER_OLDEST] = "over_oldest",
		[IPC_TRACE_REFUSED] = "refused",
		[IPC_TRACE_REWRITTEN] = "rewritten"};
	const struct flow_key *key = &trace->key;

	return json_pack(
		"{s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o, s:s, s:s, s:i}",
		"time", time_json(trace->time_ns), "protocol",
		key->protocol == IPPROTO_TCP ? "tcp" : "udp", "source",
		endpoint_json(key->source, key->family, key->source_port_be), "destination",
		endpoint_json(key->destination, key->family, key->destination_port_be), "service",
		name_json(verbs, DOCUMENT_SERVICE, trace->service), "ring_hash",
		(json_int_t)trace->ring_hash, "new_ring_hash", (json_int_t)trace->ring_hash_new,
		"bucket", (json_int_t)trace->bucket, "threshold", (json_int_t)trace->threshold,
		"uses_new", trace->uses_new != 0, "old_ring_pick",
		name_json(verbs, DOCUMENT_BACKEND, trace->backend_old), "new_ring_pick",
		name_json(verbs, DOCUMENT_BACKEND, trace->backend_new), "backend",
		name_json(verbs, DOCUMENT_BACKEND, trace->backend), "table",
		name_at(tables, sizeof(tables) / sizeof(tables[0]), trace->table), "entry",
		name_at(entries, sizeof(entries) / sizeof(entries[0]), trace->entry), "worker",
		(int)trace->worker);
}

void verb_trace_read(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	struct ipc_traces *traces = calloc(1, sizeof(*traces));
	char text[NODE_TEXT_BYTES] = "";
	json_t *rows;

	if (traces == NULL || node_trace_read(verbs->node, traces, text) != 0) {
		server_fail(call, ANSWER_FAILED, "%s", traces ? text : "out of memory");
		free(traces);
		return;
	}
	// Only a lease that is held is renewed: reading alone starts nothing.
	if (verbs->trace_lease != NULL)
		renew(verbs);
	rows = json_array();
	for (uint32_t i = 0; i < traces->count; i++)
		json_array_append_new(rows, trace_json(verbs, &traces->traces[i]));
	call->result = json_pack("{s:I, s:o}", "lost", (json_int_t)traces->lost, "traces", rows);
	free(traces);
}
