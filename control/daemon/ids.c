// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/ids.h"

#include "control/config/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIND_COUNT 3u

static const uint32_t id_limits[KIND_COUNT] = {
	[DOCUMENT_SERVICE] = SNAPSHOT_SERVICES_MAX,
	[DOCUMENT_POOL] = SNAPSHOT_POOLS_MAX,
	[DOCUMENT_BACKEND] = SNAPSHOT_BACKENDS_MAX,
};

// By what it names: the order in which a document keeps its ids.
static int name_compare(const void *a, const void *b)
{
	const struct document_id *x = a, *y = b;
	int order = (x->kind > y->kind) - (x->kind < y->kind);

	if (order == 0)
		order = strcmp(x->pool, y->pool);
	return order != 0 ? order : strcmp(x->name, y->name);
}

static void ids_sort(struct document *document)
{
	if (document->id_count > 0)
		qsort(document->ids, document->id_count, sizeof(*document->ids), name_compare);
}

// One bit an id, for each kind.
struct id_maps {
	uint64_t *words[KIND_COUNT];
};

static int maps_create(struct id_maps *ret)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		ret->words[kind] = calloc(id_limits[kind] / 64, sizeof(uint64_t));
		if (ret->words[kind] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void maps_free(struct id_maps *maps)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		free(maps->words[kind]);
}

// Marks an id; returns whether it was marked already.
static bool maps_mark(struct id_maps *maps, enum document_kind kind, uint32_t id)
{
	uint64_t bit = UINT64_C(1) << (id % 64);
	uint64_t *word = &maps->words[kind][id / 64];
	bool was = (*word & bit) != 0;

	*word |= bit;
	return was;
}

// Lowest id that is not marked, from *cursor on.
static bool maps_take(
	struct id_maps *maps, enum document_kind kind, uint32_t *cursor, uint32_t *ret_id)
{
	while (*cursor < id_limits[kind]) {
		uint32_t id = (*cursor)++;

		if (!maps_mark(maps, kind, id)) {
			*ret_id = id;
			return true;
		}
	}
	return false;
}

// What must have an id, sorted; freed_s is used as "has one".
struct wanted {
	struct document_id *items;
	size_t count;
};

static void want(struct wanted *wanted, enum document_kind kind, const char *pool, const char *name)
{
	wanted->items[wanted->count++] =
		(struct document_id){.kind = kind, .pool = pool, .name = name};
}

// A backend may be on both rings of a cutover.
static void wanted_unique(struct wanted *wanted)
{
	size_t kept = 0;

	for (size_t i = 0; i < wanted->count; i++) {
		if (kept == 0 || name_compare(&wanted->items[kept - 1], &wanted->items[i]) != 0)
			wanted->items[kept++] = wanted->items[i];
	}
	wanted->count = kept;
}

static int wanted_gather(const struct document *document, struct wanted *ret)
{
	const struct config_pools *pools = document->pools;
	size_t room = (size_t)pools->service_count + pools->pool_count + 1;

	for (uint32_t i = 0; i < pools->pool_count; i++)
		room += pools->pools[i].backend_count;
	for (uint32_t i = 0; i < document->cutover_count; i++)
		room += document->cutovers[i].backend_count;
	ret->items = calloc(room, sizeof(*ret->items));
	if (ret->items == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < pools->service_count; i++)
		want(ret, DOCUMENT_SERVICE, "", pools->services[i].name);
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		const struct config_pool *pool = &pools->pools[i];

		want(ret, DOCUMENT_POOL, "", pool->name);
		for (uint32_t b = 0; b < pool->backend_count; b++)
			want(ret, DOCUMENT_BACKEND, pool->name, pool->backends[b].name);
	}
	for (uint32_t i = 0; i < document->cutover_count; i++) {
		const struct document_cutover *cutover = &document->cutovers[i];

		for (uint32_t b = 0; b < cutover->backend_count; b++)
			want(ret, DOCUMENT_BACKEND, cutover->pool, cutover->backends[b].name);
	}
	qsort(ret->items, ret->count, sizeof(*ret->items), name_compare);
	wanted_unique(ret);
	return 0;
}

// Everything in the configuration must have its id: the snapshot writer relies on it.
static void named_check(const struct document *document, struct config_report *report)
{
	struct wanted wanted = {0};

	if (wanted_gather(document, &wanted) < 0)
		config_report_add(report, CONFIG_LIMIT, "ids", NULL, "out of memory");
	for (size_t i = 0; i < wanted.count; i++) {
		const struct document_id *item = &wanted.items[i];

		if (document_id_find(document, item->kind, item->pool, item->name) == NULL)
			config_report_add(report, CONFIG_MISSING_KEY, "ids", NULL,
				"\"%s\" has no id", item->name);
	}
	free(wanted.items);
}

void ids_check(struct document *document, struct config_report *report)
{
	struct id_maps maps = {0};

	ids_sort(document);
	if (maps_create(&maps) < 0) {
		config_report_add(report, CONFIG_LIMIT, "ids", NULL, "out of memory");
		maps_free(&maps);
		return;
	}
	for (uint32_t i = 0; i < document->id_count; i++) {
		const struct document_id *entry = &document->ids[i];

		if (entry->id >= id_limits[entry->kind])
			config_report_add(report, CONFIG_LIMIT, "ids", NULL,
				"id %u of \"%s\" is beyond %u", entry->id, entry->name,
				id_limits[entry->kind] - 1);
		else if (maps_mark(&maps, entry->kind, entry->id))
			config_report_add(report, CONFIG_DUPLICATE_NAME, "ids", NULL,
				"id %u is given twice", entry->id);
		if (i > 0 && name_compare(entry - 1, entry) == 0)
			config_report_add(report, CONFIG_DUPLICATE_NAME, "ids", NULL,
				"\"%s\" has two ids", entry->name);
	}
	maps_free(&maps);
	named_check(document, report);
}

// Keeps the ids of what is still there, starts the rest of what is gone, drops those that have rested enough.
static void ids_settle(
	struct document *document, struct wanted *wanted, struct id_maps *maps, uint64_t now_s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < document->id_count; i++) {
		struct document_id entry = document->ids[i];
		struct document_id *met = bsearch(
			&entry, wanted->items, wanted->count, sizeof(*wanted->items), name_compare);

		if (met != NULL) {
			met->freed_s = 1;
			entry.freed_s = 0;
		} else if (entry.freed_s == 0) {
			entry.freed_s = now_s;
		} else if (now_s >= entry.freed_s + IDS_QUARANTINE_S) {
			continue;
		}
		maps_mark(maps, entry.kind, entry.id);
		document->ids[kept++] = entry;
	}
	document->id_count = kept;
}

static int ids_give(struct document *document, struct wanted *wanted, struct id_maps *maps)
{
	uint32_t cursors[KIND_COUNT] = {0};

	for (size_t i = 0; i < wanted->count; i++) {
		const struct document_id *item = &wanted->items[i];
		struct document_id *entry;

		if (item->freed_s != 0)
			continue;
		entry = arena_append(
			document->arena, &document->ids, &document->id_count, sizeof(*entry));
		if (entry == NULL)
			return -ENOMEM;
		entry->kind = item->kind;
		entry->pool = arena_text(document->arena, item->pool, strlen(item->pool));
		entry->name = arena_text(document->arena, item->name, strlen(item->name));
		if (entry->pool == NULL || entry->name == NULL)
			return -ENOMEM;
		if (!maps_take(maps, item->kind, &cursors[item->kind], &entry->id))
			return -ENOSPC;
	}
	return 0;
}

int document_ids_assign(struct document *document, uint64_t now_s)
{
	struct wanted wanted = {0};
	struct id_maps maps = {0};
	int rc = wanted_gather(document, &wanted);

	if (rc == 0)
		rc = maps_create(&maps);
	if (rc == 0) {
		ids_settle(document, &wanted, &maps, now_s);
		rc = ids_give(document, &wanted, &maps);
		ids_sort(document);
	}
	maps_free(&maps);
	free(wanted.items);
	return rc;
}

const struct document_id *document_id_find(const struct document *document, enum document_kind kind,
	const char *pool, const char *name)
{
	struct document_id wanted = {.kind = kind, .pool = pool, .name = name};
	const struct document_id *entry = document->id_count == 0
		? NULL
		: bsearch(&wanted, document->ids, document->id_count, sizeof(*document->ids),
			  name_compare);

	return entry != NULL && entry->freed_s == 0 ? entry : NULL;
}

const struct document_id *document_id_name(
	const struct document *document, enum document_kind kind, uint32_t id)
{
	for (uint32_t i = 0; i < document->id_count; i++) {
		if (document->ids[i].kind == kind && document->ids[i].id == id)
			return &document->ids[i];
	}
	return NULL;
}
