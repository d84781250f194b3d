// SPDX-License-Identifier: Apache-2.0
#include "control/config/reader.h"

#include "control/config/check.h"
#include "control/config/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Reads the report's source into a struct of a table.
// The tree stays in the report: later findings get their places from it.
static int text_read(
	const struct schema_map *map, struct config_report *report, struct arena *arena, void *ret)
{
	struct tree_mark start = {1, 1, 1};
	int rc;

	if (report->source_length > CONFIG_BYTES_MAX) {
		config_report_add_at(
			report, CONFIG_LIMIT, &start, NULL, "the file is larger than 32 MiB");
		return -EINVAL;
	}
	rc = tree_read(report->source, report->source_length, report, &report->tree);
	if (rc < 0)
		return rc;
	return schema_read(map, report->tree->root, report, arena, ret);
}

void config_ring_complete(struct config_ring *ring)
{
	if (ring->points == 0)
		ring->points = ring->version == RING_V1 ? CONFIG_V1_POINTS : CONFIG_POINTS_DEFAULT;
	if (ring->balance == 0 && ring->version == RING_V3)
		ring->balance = CONFIG_BALANCE_DEFAULT;
}

int config_pools_read(struct config_report *report, struct config_pools **ret)
{
	struct arena *arena = arena_create();
	struct config_pools *pools = arena == NULL ? NULL : arena_take(arena, sizeof(*pools));
	int rc = pools == NULL ? -ENOMEM : text_read(&config_pools_table, report, arena, pools);

	// What the schema refused stands at its default, so references are checked in the same pass.
	if (rc == 0 || (rc == -EINVAL && report->tree != NULL)) {
		pools->arena = arena;
		for (uint32_t i = 0; i < pools->pool_count; i++)
			config_ring_complete(&pools->pools[i].ring);
		rc = config_pools_check(pools, report);
	}
	config_report_sort(report);
	if (rc < 0) {
		arena_free(arena);
		return rc;
	}
	*ret = pools;
	return 0;
}

int config_node_read(struct config_report *report, struct config_node **ret)
{
	struct arena *arena = arena_create();
	struct config_node *node = arena == NULL ? NULL : arena_take(arena, sizeof(*node));
	int rc = node == NULL ? -ENOMEM : text_read(&config_node_table, report, arena, node);

	if (rc == 0 || (rc == -EINVAL && report->tree != NULL)) {
		node->arena = arena;
		rc = config_node_check(node, report);
	}
	config_report_sort(report);
	if (rc < 0) {
		arena_free(arena);
		return rc;
	}
	*ret = node;
	return 0;
}

int config_file_load(const char *path, char **ret_text, size_t *ret_length)
{
	FILE *file = fopen(path, "re");
	size_t room = 65536, length = 0;
	char *text = NULL;
	int rc = -ENOMEM;

	if (file == NULL)
		return -errno;
	for (;;) {
		char *larger = realloc(text, room + 1);

		if (larger == NULL)
			break;
		text = larger;
		length += fread(text + length, 1, room - length, file);
		if (length < room || length > CONFIG_BYTES_MAX) {
			rc = ferror(file) ? -EIO : length > CONFIG_BYTES_MAX ? -EFBIG : 0;
			break;
		}
		room *= 2;
	}
	fclose(file);
	if (rc < 0) {
		free(text);
		return rc;
	}
	text[length] = '\0';
	*ret_text = text;
	*ret_length = length;
	return 0;
}
