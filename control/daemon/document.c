// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/document.h"

#include "control/config/check.h"
#include "control/config/tables.h"
#include "control/daemon/ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define AT(type, member) .offset = offsetof(struct type, member)
#define LISTED(type, member, counter) \
	AT(type, member), .count_offset = offsetof(struct type, counter)
#define RANGE(least, most) .min = (least), .max = (most)
#define END                  \
	{                    \
		.name = NULL \
	}

#define IDS_MAX (SNAPSHOT_SERVICES_MAX + SNAPSHOT_POOLS_MAX + SNAPSHOT_BACKENDS_MAX)

static const struct schema_choice kinds[] = {
	{"service", DOCUMENT_SERVICE},
	{"pool", DOCUMENT_POOL},
	{"backend", DOCUMENT_BACKEND},
	{NULL, 0},
};

static const struct schema_field id_fields[] = {
	{"kind", SCHEMA_CHOICE, SCHEMA_REQUIRED, AT(document_id, kind), .choices = kinds},
	{"pool", SCHEMA_TEXT, 0, AT(document_id, pool)},
	{"name", SCHEMA_NAME, SCHEMA_REQUIRED, AT(document_id, name)},
	{"id", SCHEMA_NUMBER, SCHEMA_REQUIRED, AT(document_id, id),
		RANGE(0, SNAPSHOT_BACKENDS_MAX - 1)},
	{"freed", SCHEMA_NUMBER64, 0, AT(document_id, freed_s), RANGE(0, INT64_MAX), .preset = "0"},
	END,
};

static const struct schema_map id_table = {"id", sizeof(struct document_id), id_fields};

static const struct schema_choice established[] = {{"stay", 0}, {"move", 1}, {NULL, 0}};

static const struct schema_field cutover_fields[] = {
	{"pool", SCHEMA_NAME, SCHEMA_REQUIRED | SCHEMA_ID, AT(document_cutover, pool)},
	{"ring", SCHEMA_MAP, SCHEMA_REQUIRED, AT(document_cutover, ring),
		.map = &config_ring_table},
	{"backends", SCHEMA_MAP, SCHEMA_LIST, LISTED(document_cutover, backends, backend_count),
		.map = &config_backend_table, .items_max = CONFIG_BACKENDS_MAX},
	{"salt", SCHEMA_NUMBER, SCHEMA_REQUIRED, AT(document_cutover, salt), RANGE(0, UINT32_MAX)},
	{"share", SCHEMA_SHARE, SCHEMA_REQUIRED, AT(document_cutover, share),
		RANGE(0, GATE_SHARE_ALL)},
	{"sent_share", SCHEMA_SHARE, SCHEMA_REQUIRED, AT(document_cutover, sent_share),
		RANGE(0, GATE_SHARE_ALL)},
	{"established", SCHEMA_CHOICE, 0, AT(document_cutover, moves_established),
		.choices = established, .preset = "stay"},
	END,
};

static const struct schema_map cutover_table = {
	"cutover", sizeof(struct document_cutover), cutover_fields};

static const struct schema_choice sides[] = {{"old", 0}, {"new", 1}, {NULL, 0}};

static const struct schema_field lanes_fields[] = {
	{"pool", SCHEMA_NAME, SCHEMA_REQUIRED, AT(document_lanes, pool)},
	{"side", SCHEMA_CHOICE, SCHEMA_REQUIRED, AT(document_lanes, is_new), .choices = sides},
	{"tags", SCHEMA_NAME, SCHEMA_LIST, LISTED(document_lanes, tags, tag_count),
		.items_max = CONFIG_TAGS_MAX},
	{"points", SCHEMA_NUMBER, SCHEMA_REQUIRED, AT(document_lanes, points),
		RANGE(1, UINT32_MAX)},
	{"balance", SCHEMA_RATIO, SCHEMA_REQUIRED, AT(document_lanes, balance),
		RANGE(1, UINT32_MAX)},
	{"lanes", SCHEMA_TEXT, SCHEMA_LIST, LISTED(document_lanes, lanes, lane_count),
		.items_max = RING_MEMBERS_MAX},
	END,
};

static const struct schema_map lanes_table = {
	"balanced ring", sizeof(struct document_lanes), lanes_fields};

static const struct schema_field document_fields[] = {
	{"generation", SCHEMA_NUMBER64, SCHEMA_REQUIRED, AT(document, generation),
		RANGE(0, INT64_MAX)},
	{"applied", SCHEMA_NUMBER64, SCHEMA_REQUIRED, AT(document, applied_generation),
		RANGE(0, INT64_MAX)},
	{"snapshot", SCHEMA_NUMBER64, SCHEMA_REQUIRED, AT(document, snapshot_generation),
		RANGE(0, INT64_MAX)},
	{"id_space", SCHEMA_KEY16, SCHEMA_REQUIRED, AT(document, id_space)},
	{"hash_seed", SCHEMA_KEY16, SCHEMA_REQUIRED, AT(document, hash_seed)},
	{"config", SCHEMA_MAP, SCHEMA_REQUIRED, AT(document, config), .map = &config_pools_table},
	{"ids", SCHEMA_MAP, SCHEMA_LIST, LISTED(document, ids, id_count), .map = &id_table,
		.items_max = IDS_MAX},
	{"cutovers", SCHEMA_MAP, SCHEMA_LIST, LISTED(document, cutovers, cutover_count),
		.map = &cutover_table, .items_max = CONFIG_POOLS_MAX},
	{"balanced", SCHEMA_MAP, SCHEMA_LIST, LISTED(document, balanced, balanced_count),
		.map = &lanes_table, .items_max = SNAPSHOT_RINGS_MAX},
	END,
};

static const struct schema_map document_table = {
	"document", sizeof(struct document), document_fields};

static struct document *document_make(struct arena **ret_arena)
{
	struct arena *arena = arena_create();
	struct document *document = arena == NULL ? NULL : arena_take(arena, sizeof(*document));

	if (document == NULL)
		arena_free(arena);
	*ret_arena = arena;
	return document;
}

static void document_own(struct document *document, struct arena *arena)
{
	document->arena = arena;
	document->config.arena = arena;
	document->pools = &document->config;
}

int document_create(struct document **ret)
{
	struct arena *arena;
	struct document *document = document_make(&arena);
	uint8_t keys[32];

	if (document == NULL)
		return -ENOMEM;
	if (schema_init(&document_table, arena, document) < 0) {
		arena_free(arena);
		return -ENOMEM;
	}
	document_own(document, arena);
	if (getrandom(keys, sizeof(keys), 0) != (ssize_t)sizeof(keys)) {
		int rc = -errno;

		arena_free(arena);
		return rc;
	}
	memcpy(document->id_space, keys, 16);
	memcpy(document->hash_seed, keys + 16, 16);
	*ret = document;
	return 0;
}

void document_free(struct document *document)
{
	if (document != NULL)
		arena_free(document->arena);
}

struct document *document_copy(const struct document *document)
{
	struct arena *arena;
	struct document *copy = document_make(&arena);

	if (copy == NULL)
		return NULL;
	if (schema_copy(&document_table, arena, document, copy) < 0) {
		arena_free(arena);
		return NULL;
	}
	document_own(copy, arena);
	return copy;
}

int document_config_set(struct document *document, const struct config_pools *pools)
{
	int rc = schema_copy(&config_pools_table, document->arena, pools, &document->config);

	document->config.arena = document->arena;
	return rc;
}

int document_write(const struct document *document, char **ret_text, size_t *ret_length)
{
	struct schema_style style = {.json = true, .full = true, .secrets = true};
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int rc;

	if (out == NULL)
		return -ENOMEM;
	rc = schema_write(&document_table, document, style, out);
	if (fclose(out) != 0)
		rc = -ENOMEM;
	if (rc < 0) {
		free(text);
		return rc;
	}
	*ret_text = text;
	*ret_length = length;
	return 0;
}

static int cutover_compare(const void *a, const void *b)
{
	return strcmp(((const struct document_cutover *)a)->pool,
		((const struct document_cutover *)b)->pool);
}

static void cutovers_check(struct document *document, struct config_report *report)
{
	if (document->cutover_count > 0)
		qsort(document->cutovers, document->cutover_count, sizeof(*document->cutovers),
			cutover_compare);
	for (uint32_t i = 0; i < document->cutover_count; i++) {
		struct document_cutover *cutover = &document->cutovers[i];

		config_ring_complete(&cutover->ring);
		config_ring_check(&cutover->ring, report, "cutovers.ring");
		if (config_pool_find(&document->config, cutover->pool) == NULL)
			config_report_add(report, CONFIG_UNKNOWN_NAME, "cutovers", NULL,
				"there is no pool \"%s\"", cutover->pool);
		if (i > 0 && strcmp(cutover[-1].pool, cutover->pool) == 0)
			config_report_add(report, CONFIG_DUPLICATE_NAME, "cutovers", NULL,
				"pool \"%s\" has two cutovers", cutover->pool);
	}
}

static int document_check(struct document *document, struct config_report *report)
{
	int rc;

	for (uint32_t i = 0; i < document->config.pool_count; i++)
		config_ring_complete(&document->config.pools[i].ring);
	rc = config_pools_check(&document->config, report);
	if (rc == -ENOMEM)
		return rc;
	cutovers_check(document, report);
	ids_check(document, report);
	return report->error_count > 0 ? -EINVAL : 0;
}

int document_read(struct config_report *report, struct document **ret)
{
	struct arena *arena;
	struct document *document = document_make(&arena);
	int rc;

	if (document == NULL)
		return -ENOMEM;
	rc = tree_read(report->source, report->source_length, report, &report->tree);
	if (rc == 0)
		rc = schema_read(&document_table, report->tree->root, report, arena, document);
	if (rc == 0) {
		document_own(document, arena);
		rc = document_check(document, report);
	}
	if (rc < 0) {
		arena_free(arena);
		return rc;
	}
	*ret = document;
	return 0;
}

struct document_cutover *document_cutover_find(const struct document *document, const char *pool)
{
	for (uint32_t i = 0; i < document->cutover_count; i++) {
		if (strcmp(document->cutovers[i].pool, pool) == 0)
			return &document->cutovers[i];
	}
	return NULL;
}

struct document_cutover *document_cutover_add(struct document *document, const char *pool)
{
	struct document_cutover *cutover = arena_append(
		document->arena, &document->cutovers, &document->cutover_count, sizeof(*cutover));

	if (cutover == NULL)
		return NULL;
	cutover->pool = arena_text(document->arena, pool, strlen(pool));
	if (cutover->pool == NULL) {
		document->cutover_count--;
		return NULL;
	}
	return cutover;
}

void document_cutover_remove(struct document *document, struct document_cutover *cutover)
{
	size_t after = (size_t)(document->cutovers + document->cutover_count - (cutover + 1));

	memmove(cutover, cutover + 1, after * sizeof(*cutover));
	document->cutover_count--;
}

int document_cutover_members_set(struct document *document, struct document_cutover *cutover,
	const struct config_backend *backends, uint32_t count)
{
	struct arena *arena = document->arena;
	struct config_backend *copy = arena_take(arena, (count + 1u) * sizeof(*copy));

	for (uint32_t i = 0; copy != NULL && i < count; i++) {
		const struct config_backend *from = &backends[i];

		copy[i] = *from;
		copy[i].name = arena_text(arena, from->name, strlen(from->name));
		copy[i].tags = arena_take(arena, (from->tag_count + 1u) * sizeof(*copy[i].tags));
		copy[i].server = arena_text(arena, from->server ? from->server : "",
			from->server ? strlen(from->server) : 0);
		if (copy[i].name == NULL || copy[i].tags == NULL || copy[i].server == NULL)
			return -ENOMEM;
		for (uint32_t t = 0; t < from->tag_count; t++) {
			copy[i].tags[t] = arena_text(arena, from->tags[t], strlen(from->tags[t]));
			if (copy[i].tags[t] == NULL)
				return -ENOMEM;
		}
	}
	if (copy == NULL)
		return -ENOMEM;
	cutover->backends = copy;
	cutover->backend_count = count;
	return 0;
}
