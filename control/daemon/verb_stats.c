// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/verbs.h"

#include <time.h>

#define BURST 32u // packets that a worker takes at once

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static json_t *dataplane_json(struct verbs *verbs)
{
	static const char *const states[] = {[NODE_DATAPLANE_ABSENT] = "absent",
		[NODE_DATAPLANE_BEHIND] = "behind",
		[NODE_DATAPLANE_CURRENT] = "current"};
	const struct node_dataplane *dataplane = node_dataplane(verbs->node);
	const struct ipc_status *status = &dataplane->status;
	const struct stats_file *stats = verbs_stats(verbs);
	struct stats_reading reading;
	json_t *ret = json_pack("{s:s, s:s, s:I, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I}", "state",
		states[dataplane->state], "text", dataplane->text, "generation",
		(json_int_t)status->generation, "version", status->version, "workers",
		(int)status->worker_count, "ports", (int)status->port_count, "flow_entries",
		(json_int_t)status->flow_entries, "flows_kept", (json_int_t)status->flow_kept,
		"snapshot_bytes", (json_int_t)status->snapshot_bytes, "hugepage_bytes",
		(json_int_t)status->hugepage_bytes, "startup_ns", (json_int_t)status->startup_ns);

	if (ret != NULL && stats != NULL) {
		stats_file_read(stats, UINT32_MAX, &reading);
		if (reading.heartbeat_ns != 0)
			json_object_set_new(ret, "heartbeat_age_ns",
				json_integer((json_int_t)(now_ns() - reading.heartbeat_ns)));
	}
	return ret;
}

static json_t *store_json(const struct verbs *verbs)
{
	const struct config_store *config = &node_config(verbs->node)->store;
	struct fleet_state state;

	fleet_state(fleet_link_fleet(verbs->fleet), &state);
	json_t *ret = json_pack("{s:s, s:b, s:I}", "type",
		config->type == CONFIG_STORE_ETCD ? "etcd" : "file", "connected", state.connected,
		"silent_ns", (json_int_t)state.silent_ms * 1000000);

	if (ret != NULL && !state.connected && state.error[0] != '\0')
		json_object_set_new(ret, "text", json_string(state.error));
	return ret;
}

void verb_status(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct config_node *config = node_config(verbs->node);
	const struct document *document = node_document(verbs->node);
	uint32_t backends = 0;

	for (uint32_t i = 0; i < document->pools->pool_count; i++)
		backends += document->pools->pools[i].backend_count;
	call->result = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "node",
		config->node, "datacenter", config->datacenter, "uptime_ns",
		(json_int_t)(now_ns() - verbs->started_ns), "generation",
		(json_int_t)document->generation, "applied_generation",
		(json_int_t)document->applied_generation, "snapshot_generation",
		(json_int_t)document->snapshot_generation, "services",
		(int)document->pools->service_count, "pools", (int)document->pools->pool_count,
		"backends", (int)backends, "cutovers", (int)document->cutover_count, "connections",
		verbs->server ? (int)server_connection_count(verbs->server) : 0, "store",
		store_json(verbs), "dataplane", dataplane_json(verbs));
}

// workers: how many were read. Each may be in the middle of a burst, whose packets have no verdict yet.
static json_t *balance_json(const struct stats_reading *reading, uint32_t workers)
{
	const uint64_t *counter = reading->counter;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "rx_packets",
		(json_int_t)counter[COUNTER_rx_packets], "forwarded",
		(json_int_t)counter[COUNTER_forwarded], "punted",
		(json_int_t)counter[COUNTER_punted], "answered",
		(json_int_t)counter[COUNTER_answered], "dropped", (json_int_t)reading->drops,
		"difference", (json_int_t)reading->difference, "in_flight_max",
		(json_int_t)BURST * workers, "balanced", reading->difference == 0);
}

static json_t *counters_json(const struct stats_file *stats, const struct stats_reading *reading)
{
	json_t *rows = json_array();

	for (int i = 0; i < COUNTER_COUNT; i++) {
		if (stats->counter_place[i] != UINT32_MAX)
			json_array_append_new(rows,
				json_pack("{s:s, s:I, s:s}", "name", stats_counter_name(i), "count",
					(json_int_t)reading->counter[i], "text",
					stats_counter_text(i)));
	}
	return rows;
}

static json_t *drops_json(const struct stats_file *stats, uint32_t worker)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < stats->view.header->drop_count; i++)
		json_array_append_new(rows,
			json_pack("{s:s, s:s?, s:I, s:s?}", "name", stats_file_drop_name(stats, i),
				"stage", stats_file_drop_stage(stats, i), "packets",
				(json_int_t)stats_file_drop(stats, worker, i), "text",
				stats_file_drop_text(stats, i)));
	return rows;
}

static json_t *pools_json(struct verbs *verbs, const struct stats_file *stats)
{
	const struct config_pools *pools = node_document(verbs->node)->pools;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < pools->pool_count; i++) {
		const char *name = pools->pools[i].name;
		struct stats_pool sums;

		stats_file_pool(stats, verbs_id(verbs, DOCUMENT_POOL, "", name), &sums);
		json_array_append_new(rows,
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", name,
				"new_flows_old", (json_int_t)sums.new_flows_old, "new_flows_new",
				(json_int_t)sums.new_flows_new, "packets_old",
				(json_int_t)sums.packets_old, "packets_new",
				(json_int_t)sums.packets_new, "drops_old",
				(json_int_t)sums.drops_old, "drops_new", (json_int_t)sums.drops_new,
				"live_new", (json_int_t)sums.live_new));
	}
	return rows;
}

static json_t *workers_json(const struct stats_file *stats)
{
	json_t *rows = json_array();

	for (uint32_t w = 0; w < stats->view.header->worker_count; w++) {
		struct stats_reading reading;
		uint64_t *counter = reading.counter;

		stats_file_read(stats, w, &reading);
		json_array_append_new(rows,
			json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "worker", (int)w,
				"rx_packets", (json_int_t)counter[COUNTER_rx_packets], "forwarded",
				(json_int_t)counter[COUNTER_forwarded], "dropped",
				(json_int_t)reading.drops, "flow_hits",
				(json_int_t)counter[COUNTER_flow_hit], "bursts",
				(json_int_t)counter[COUNTER_bursts], "polls",
				(json_int_t)counter[COUNTER_polls], "busy_cycles",
				(json_int_t)counter[COUNTER_busy_cycles], "difference",
				(json_int_t)reading.difference));
	}
	return rows;
}

void verb_stats(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct stats_file *stats = verbs_stats(verbs);
	uint64_t worker = UINT32_MAX;
	struct stats_reading reading;

	if (stats == NULL) {
		server_fail(call, ANSWER_NOT_FOUND,
			"%s/%s: no stats file: ringway-dataplane has not run here yet",
			node_config(verbs->node)->run_dir, IPC_STATS_NAME);
		return;
	}
	if (stats->view.header->worker_count == 0 ||
		server_number_optional(call, "worker", 0, stats->view.header->worker_count - 1,
			&worker) != ANSWER_DONE)
		return;
	stats_file_read(stats, (uint32_t)worker, &reading);
	call->result = json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "time_ns",
		(json_int_t)now_ns(), "generation", (json_int_t)reading.generation, "tsc_hz",
		(json_int_t)stats->view.header->tsc_hz, "balance",
		balance_json(&reading, worker == UINT32_MAX ? stats->view.header->worker_count : 1),
		"counters", counters_json(stats, &reading), "drops",
		drops_json(stats, (uint32_t)worker), "pools", pools_json(verbs, stats), "workers",
		workers_json(stats));
}
