// SPDX-License-Identifier: Apache-2.0
#include "control/config/config.h"

#include "control/config/check.h"
#include "control/config/diff.h"
#include "control/config/edit.h"
#include "control/config/reader.h"
#include "control/config/tables.h"
#include "control/config/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void config_pools_free(struct config_pools *pools)
{
	if (pools != NULL)
		arena_free(pools->arena);
}

void config_node_free(struct config_node *node)
{
	if (node != NULL)
		arena_free(node->arena);
}

struct config_pools *config_pools_copy(const struct config_pools *pools)
{
	struct arena *arena = arena_create();
	struct config_pools *copy;

	if (arena == NULL)
		return NULL;
	copy = arena_take(arena, sizeof(*copy));
	if (copy == NULL || schema_copy(&config_pools_table, arena, pools, copy) < 0) {
		arena_free(arena);
		return NULL;
	}
	copy->arena = arena;
	return copy;
}

struct config_pool *config_pool_find(const struct config_pools *pools, const char *name)
{
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		if (strcmp(pools->pools[i].name, name) == 0)
			return &pools->pools[i];
	}
	return NULL;
}

struct config_service *config_service_find(const struct config_pools *pools, const char *name)
{
	for (uint32_t i = 0; i < pools->service_count; i++) {
		if (strcmp(pools->services[i].name, name) == 0)
			return &pools->services[i];
	}
	return NULL;
}

struct config_backend *config_backend_find(const struct config_pool *pool, const char *name)
{
	for (uint32_t i = 0; i < pool->backend_count; i++) {
		if (strcmp(pool->backends[i].name, name) == 0)
			return &pool->backends[i];
	}
	return NULL;
}

// Both lists are sorted, so one walk over each decides.
bool config_backend_eligible(
	const struct config_backend *backend, const struct config_service *service)
{
	uint32_t tag = 0;

	for (uint32_t i = 0; i < service->require_count; i++) {
		while (tag < backend->tag_count &&
			strcmp(backend->tags[tag], service->requires[i]) < 0)
			tag++;
		if (tag == backend->tag_count ||
			strcmp(backend->tags[tag], service->requires[i]) != 0)
			return false;
	}
	return true;
}

const char *config_backend_state_name(enum config_backend_state state)
{
	return schema_choice_name(config_backend_states, state);
}

const char *config_ring_version_name(uint32_t version)
{
	return schema_choice_name(config_ring_versions, version);
}

const char *config_affinity_name(uint32_t affinity)
{
	return schema_choice_name(config_affinities, affinity);
}

const char *config_tunnel_name(uint32_t tunnel)
{
	return schema_choice_name(config_tunnels, tunnel);
}

const char *config_protocol_name(uint32_t protocol)
{
	return schema_choice_name(config_protocols, protocol);
}

int config_pools_write(
	const struct config_pools *pools, enum config_format format, bool full, FILE *out)
{
	struct schema_style style = {.json = format == CONFIG_JSON, .full = full};

	return schema_write(&config_pools_table, pools, style, out);
}

int config_node_write(
	const struct config_node *node, enum config_format format, bool full, FILE *out)
{
	struct schema_style style = {.json = format == CONFIG_JSON, .full = full};

	return schema_write(&config_node_table, node, style, out);
}

// Compares two structs, either of which may be missing.
static struct config_diff *diff_of(
	const struct schema_map *map, const void *before, const void *after)
{
	struct arena *arena = arena_create();
	struct config_diff *diff;
	void *nothing;

	if (arena == NULL)
		return NULL;
	diff = arena_take(arena, sizeof(*diff));
	nothing = arena_take(arena, map->size);
	if (diff == NULL || nothing == NULL || schema_init(map, arena, nothing) < 0) {
		arena_free(arena);
		return NULL;
	}
	diff->arena = arena;
	if (schema_diff(map, before != NULL ? before : nothing, after != NULL ? after : nothing,
		    diff) < 0) {
		arena_free(arena);
		return NULL;
	}
	return diff;
}

struct config_diff *config_pools_diff(
	const struct config_pools *before, const struct config_pools *after)
{
	return diff_of(&config_pools_table, before, after);
}

struct config_diff *config_node_diff(
	const struct config_node *before, const struct config_node *after)
{
	return diff_of(&config_node_table, before, after);
}

void config_diff_free(struct config_diff *diff)
{
	if (diff != NULL)
		arena_free(diff->arena);
}

// Copies a backend into the memory of pools.
static int backend_take(
	struct config_pools *pools, const struct config_backend *from, struct config_backend *ret)
{
	struct config_backend copy = {0};
	int rc = schema_copy(&config_backend_table, pools->arena, from, &copy);

	if (rc == 0)
		*ret = copy;
	return rc;
}

int config_backend_add(
	struct config_pools *pools, const char *pool_name, const struct config_backend *backend)
{
	struct config_pool *pool = config_pool_find(pools, pool_name);
	struct config_backend copy = {0};
	struct config_backend *added;

	if (pool == NULL)
		return -ENOENT;
	if (config_backend_find(pool, backend->name) != NULL)
		return -EEXIST;
	if (backend_take(pools, backend, &copy) < 0)
		return -ENOMEM;
	added = arena_append(pools->arena, &pool->backends, &pool->backend_count, sizeof(*added));
	if (added == NULL)
		return -ENOMEM;
	*added = copy;
	return 0;
}

int config_backend_edit(struct config_pools *pools, const char *pool_name, uint32_t mask,
	const struct config_backend *backend, const char **ret_missing)
{
	struct config_pool *pool = config_pool_find(pools, pool_name);
	struct config_backend *target =
		pool == NULL ? NULL : config_backend_find(pool, backend->name);
	struct config_backend copy = {0};

	if (target == NULL) {
		*ret_missing = pool == NULL ? "pool" : "backend";
		return -ENOENT;
	}
	if (backend_take(pools, backend, &copy) < 0)
		return -ENOMEM;
	if (mask & CONFIG_EDIT_WEIGHT)
		target->weight = copy.weight;
	if (mask & CONFIG_EDIT_STATE)
		target->state = copy.state;
	if (mask & CONFIG_EDIT_TAGS) {
		target->tags = copy.tags;
		target->tag_count = copy.tag_count;
	}
	return 0;
}

int config_backend_remove(struct config_pools *pools, const char *pool_name, const char *backend,
	const char **ret_missing)
{
	struct config_pool *pool = config_pool_find(pools, pool_name);
	struct config_backend *target = pool == NULL ? NULL : config_backend_find(pool, backend);
	size_t after;

	if (target == NULL) {
		*ret_missing = pool == NULL ? "pool" : "backend";
		return -ENOENT;
	}
	after = (size_t)(pool->backends + pool->backend_count - (target + 1));
	memmove(target, target + 1, after * sizeof(*target));
	pool->backend_count--;
	return 0;
}
