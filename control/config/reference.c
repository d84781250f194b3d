// SPDX-License-Identifier: Apache-2.0
#include "control/config/tables.h"
#include "control/config/writer.h"

#include <string.h>

static const char *type_name(const struct schema_field *field)
{
	static const char *const names[SCHEMA_KIND_COUNT] = {
		[SCHEMA_TEXT] = "text",
		[SCHEMA_NAME] = "name",
		[SCHEMA_NUMBER] = "number",
		[SCHEMA_NUMBER64] = "number",
		[SCHEMA_SECONDS] = "time",
		[SCHEMA_RATIO] = "decimal",
		[SCHEMA_SHARE] = "percentage",
		[SCHEMA_CHOICE] = "word",
		[SCHEMA_ADDRESS] = "address",
		[SCHEMA_PREFIX] = "address or prefix",
		[SCHEMA_LINK] = "address/bits",
		[SCHEMA_KEY16] = "32 hex digits",
		[SCHEMA_MAP] = "map",
	};

	return names[field->kind];
}

static void range_write(const struct schema_field *field, FILE *out)
{
	double scale = field->kind == SCHEMA_SHARE ? 1e4 : field->kind == SCHEMA_RATIO ? 1e6 : 1;

	if (field->kind == SCHEMA_CHOICE) {
		for (const struct schema_choice *c = field->choices; c->name != NULL; c++)
			fprintf(out, "%s`%s`", c == field->choices ? "" : " ", c->name);
	} else if (field->max > 0) {
		fprintf(out, "%.10g–%.10g", (double)field->min / scale, (double)field->max / scale);
		if (field->unit != NULL)
			fprintf(out, " %s", field->unit);
	}
	if (field->flags & SCHEMA_LIST)
		fprintf(out, "%sat most %u",
			field->max > 0 || field->kind == SCHEMA_CHOICE ? "; " : "",
			field->items_max);
}

static void row_write(const struct schema_field *field, const char *path, FILE *out)
{
	fprintf(out, "| `%s` | %s%s | ", path, field->flags & SCHEMA_LIST ? "list of " : "",
		type_name(field));
	range_write(field, out);
	if (field->flags & SCHEMA_REQUIRED)
		fprintf(out, " | required");
	else if (field->preset != NULL && !(field->flags & SCHEMA_OPTIONAL))
		fprintf(out, " | `%s`", field->preset);
	else
		fprintf(out, " | ");
	fprintf(out, " | %s | %s |\n", field->flags & SCHEMA_RESTART ? "restart" : "live",
		field->text);
}

static void map_write(const struct schema_map *map, const char *prefix, FILE *out)
{
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		char path[256];

		snprintf(path, sizeof(path), "%s%s%s", prefix, f->name,
			f->flags & SCHEMA_LIST && f->kind == SCHEMA_MAP ? "[]" : "");
		row_write(f, path, out);
		if (f->kind == SCHEMA_MAP) {
			strncat(path, ".", sizeof(path) - strlen(path) - 1);
			map_write(f->map, path, out);
		}
	}
}

static void table_write(const char *file, const struct schema_map *map, FILE *out)
{
	fprintf(out, "## %s\n\n", file);
	fputs("| key | type | range | default | change | meaning |\n", out);
	fputs("|---|---|---|---|---|---|\n", out);
	map_write(map, "", out);
	fputc('\n', out);
}

void config_reference_write(FILE *out)
{
	table_write("pools.yaml", &config_pools_table, out);
	table_write("node.yaml", &config_node_table, out);
}
