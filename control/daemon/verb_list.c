// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/verbs.h"

#include <string.h>

static json_t *texts(const char *const *items, uint32_t count)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(items[i]));
	return list;
}

static json_t *numbers(const uint32_t *items, uint32_t count)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, json_integer(items[i]));
	return list;
}

// "203.0.113.10", or a prefix with its length.
static void prefix_text(const struct config_prefix *prefix, char ret[ADDR_TEXT_BYTES + 4])
{
	size_t length = addr_format(&prefix->address, ret);
	uint32_t all = prefix->address.family == ADDR_V4 ? 32 : 128;

	if (prefix->bits != all)
		snprintf(ret + length, ADDR_TEXT_BYTES + 4 - length, "/%u", prefix->bits);
}

static json_t *service_json(struct verbs *verbs, const struct config_service *service)
{
	const struct stats_file *stats = verbs_stats(verbs);
	uint32_t id = verbs_id(verbs, DOCUMENT_SERVICE, "", service->name);
	struct stats_service sums = {0};
	char address[ADDR_TEXT_BYTES + 4];

	prefix_text(&service->address, address);
	if (stats != NULL)
		stats_file_service(stats, id, &sums);
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}",
		"name", service->name, "address", address, "protocol",
		config_protocol_name(service->protocol), "ports",
		numbers(service->ports, service->port_count), "pool", service->pool, "requires",
		texts(service->requires, service->require_count), "affinity",
		config_affinity_name(service->affinity), "tunnel",
		config_tunnel_name(service->tunnel.type), "state",
		service->state == CONFIG_STATE_NONE ? "none" : "flows", "id", (json_int_t)id,
		"packets", (json_int_t)sums.packets, "bytes", (json_int_t)sums.bytes, "new_flows",
		(json_int_t)(sums.new_flows_old + sums.new_flows_new), "drops",
		(json_int_t)sums.drops);
}

void verb_service_list(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct config_pools *pools = node_document(verbs->node)->pools;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < pools->service_count; i++)
		json_array_append_new(rows, service_json(verbs, &pools->services[i]));
	call->result = json_pack("{s:o}", "services", rows);
}

void verb_service_show(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct config_service *service;
	const char *name = NULL;

	if (server_text(call, "service", &name) != ANSWER_DONE)
		return;
	service = config_service_find(node_document(verbs->node)->pools, name);
	if (service == NULL) {
		server_fail(call, ANSWER_NOT_FOUND, "there is no service %s", name);
		return;
	}
	call->result = service_json(verbs, service);
}

static json_t *pool_json(struct verbs *verbs, const struct config_pool *pool)
{
	const struct document *document = node_document(verbs->node);
	const struct document_cutover *cutover = document_cutover_find(document, pool->name);
	const struct stats_file *stats = verbs_stats(verbs);
	uint32_t id = verbs_id(verbs, DOCUMENT_POOL, "", pool->name);
	struct stats_pool sums = {0};
	uint32_t states[3] = {0};
	char ring[32], new_ring[32];

	for (uint32_t i = 0; i < pool->backend_count; i++)
		states[pool->backends[i].state]++;
	if (stats != NULL)
		stats_file_pool(stats, id, &sums);
	verbs_ring_text(&pool->ring, ring, sizeof(ring));
	if (cutover != NULL)
		verbs_ring_text(&cutover->ring, new_ring, sizeof(new_ring));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s?, s:o, s:I, s:I, s:I, s:I}", "name",
		pool->name, "ring", ring, "backends", (int)pool->backend_count, "up",
		(int)states[CONFIG_BACKEND_UP], "drain", (int)states[CONFIG_BACKEND_DRAIN], "down",
		(int)states[CONFIG_BACKEND_DOWN], "new_ring", cutover ? new_ring : NULL,
		"new_share_ppm", cutover ? json_integer(cutover->share) : json_null(), "id",
		(json_int_t)id, "new_flows", (json_int_t)(sums.new_flows_old + sums.new_flows_new),
		"packets", (json_int_t)(sums.packets_old + sums.packets_new), "drops",
		(json_int_t)(sums.drops_old + sums.drops_new));
}

static json_t *backend_json(
	struct verbs *verbs, const struct config_pool *pool, const struct config_backend *backend)
{
	const struct stats_file *stats = verbs_stats(verbs);
	uint32_t id = verbs_id(verbs, DOCUMENT_BACKEND, pool->name, backend->name);
	struct stats_backend sums = {0};
	char address[ADDR_TEXT_BYTES];

	addr_format(&backend->address, address);
	if (stats != NULL)
		stats_file_backend(stats, id, &sums);
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:o, s:I, s:I, s:I, s:I}", "pool",
		pool->name, "name", backend->name, "address", address, "port", (int)backend->port,
		"weight", (int)backend->weight, "state", config_backend_state_name(backend->state),
		"tags", texts(backend->tags, backend->tag_count), "id", (json_int_t)id, "new_flows",
		(json_int_t)sums.new_flows, "packets", (json_int_t)sums.packets, "bytes",
		(json_int_t)sums.bytes);
}

static void add_backends(struct verbs *verbs, const struct config_pool *pool, json_t *rows)
{
	for (uint32_t i = 0; i < pool->backend_count; i++)
		json_array_append_new(rows, backend_json(verbs, pool, &pool->backends[i]));
}

void verb_pool_list(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct config_pools *pools = node_document(verbs->node)->pools;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < pools->pool_count; i++)
		json_array_append_new(rows, pool_json(verbs, &pools->pools[i]));
	call->result = json_pack("{s:o}", "pools", rows);
}

void verb_pool_show(struct server_call *call)
{
	const struct config_pool *pool;
	json_t *rows;

	if (verbs_pool(call, &pool) != ANSWER_DONE)
		return;
	rows = json_array();
	add_backends(verbs_of(call), pool, rows);
	call->result = pool_json(verbs_of(call), pool);
	json_object_set_new(call->result, "members", rows);
}

// All backends, or those of one pool.
void verb_backend_list(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const struct config_pools *pools = node_document(verbs->node)->pools;
	const struct config_pool *only = NULL;
	json_t *rows;

	if (json_object_get(call->request->args, "pool") != NULL &&
		verbs_pool(call, &only) != ANSWER_DONE)
		return;
	rows = json_array();
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		if (only == NULL || only == &pools->pools[i])
			add_backends(verbs, &pools->pools[i], rows);
	}
	call->result = json_pack("{s:o}", "backends", rows);
}

void verb_backend_show(struct server_call *call)
{
	const struct config_backend *backend;
	const struct config_pool *pool;
	const char *name = NULL;

	if (verbs_pool(call, &pool) != ANSWER_DONE ||
		server_text(call, "backend", &name) != ANSWER_DONE)
		return;
	backend = config_backend_find(pool, name);
	if (backend == NULL) {
		server_fail(call, ANSWER_NOT_FOUND, "pool %s has no backend %s", pool->name, name);
		return;
	}
	call->result = backend_json(verbs_of(call), pool, backend);
}
