// SPDX-License-Identifier: Apache-2.0
#include "control/config/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 512u
#define WORD_MAX   32u

struct binder {
	struct config_report *report;
	struct arena *arena;
	char path[PATH_BYTES];
	size_t path_length;
};

// Depth and key lengths are bounded, but a path that does not fit is cut, not overrun.
static size_t path_push_key(struct binder *b, const char *key)
{
	size_t before = b->path_length;
	int added =
		snprintf(b->path + before, PATH_BYTES - before, "%s%s", before > 0 ? "." : "", key);

	b->path_length =
		before + (size_t)added < PATH_BYTES ? before + (size_t)added : PATH_BYTES - 1;
	return before;
}

static size_t path_push_index(struct binder *b, uint32_t index)
{
	size_t before = b->path_length;
	int added = snprintf(b->path + before, PATH_BYTES - before, "[%u]", index);

	b->path_length =
		before + (size_t)added < PATH_BYTES ? before + (size_t)added : PATH_BYTES - 1;
	return before;
}

static void path_pop(struct binder *b, size_t before)
{
	b->path_length = before;
	b->path[before] = '\0';
}

static const char *kind_name(const struct tree_node *node)
{
	static const char *const names[] = {"a value", "a list", "a map"};

	return names[node->kind];
}

// Edit distance of two short words, for "did you mean".
static unsigned word_distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return UINT32_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[lb];
}

static void report_unknown_key(
	struct binder *b, const struct schema_map *map, const struct tree_node *child)
{
	const struct schema_field *nearest = NULL;
	unsigned least = 3; // farther words are no misspelling
	char hint[256];
	size_t used = 0;

	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		unsigned distance = word_distance(child->key, f->name);

		if (distance < least) {
			least = distance;
			nearest = f;
		}
	}
	if (nearest != NULL) {
		snprintf(hint, sizeof(hint), "did you mean `%s`?", nearest->name);
	} else {
		used = (size_t)snprintf(hint, sizeof(hint), "a %s has:", map->name);
		for (const struct schema_field *f = map->fields;
			f->name != NULL && used < sizeof(hint); f++)
			used += (size_t)snprintf(hint + used, sizeof(hint) - used, " %s", f->name);
	}
	config_report_add_key(b->report, CONFIG_UNKNOWN_KEY, child, hint);
}

static int bind_map(
	struct binder *b, const struct schema_map *map, const struct tree_node *node, void *ret);

static int bind_scalar(
	struct binder *b, const struct schema_field *field, const struct tree_node *node, void *ret)
{
	struct schema_refusal refusal;
	int rc;

	if (node->kind != TREE_SCALAR) {
		config_report_add(b->report, CONFIG_WRONG_KIND, b->path, NULL,
			"a value is expected, not %s", kind_name(node));
		return 0;
	}
	if (!node->quoted && (node->text[0] == '\0' || strcmp(node->text, "~") == 0)) {
		config_report_add(b->report, CONFIG_BAD_VALUE, b->path,
			"give it a value or remove the key", "has no value");
		return 0;
	}
	rc = schema_value_parse(field, node->text, b->arena, ret, &refusal);
	if (rc == -EINVAL)
		config_report_add(
			b->report, refusal.code, b->path, field->hint, "%s", refusal.text);
	return rc == -ENOMEM ? rc : 0;
}

static int bind_item(
	struct binder *b, const struct schema_field *field, const struct tree_node *node, void *ret)
{
	if (field->kind == SCHEMA_MAP)
		return bind_map(b, field->map, node, ret);
	return bind_scalar(b, field, node, ret);
}

// Items that are refused stay in the model, so that later checks can go on: texts are "" then, never NULL.
static void *item_append(
	struct binder *b, const struct schema_field *field, unsigned char **items, uint32_t *count)
{
	static const char *const nothing = "";
	void *item = arena_append(b->arena, items, count, schema_item_size(field));

	if (item != NULL && (field->kind == SCHEMA_TEXT || field->kind == SCHEMA_NAME))
		memcpy(item, &nothing, sizeof(nothing));
	return item;
}

static int text_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int number_compare(const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static void items_sort(
	struct binder *b, const struct schema_field *field, unsigned char *items, uint32_t count)
{
	int (*compare)(const void *, const void *) =
		field->kind == SCHEMA_NUMBER ? number_compare : text_compare;
	size_t size = schema_item_size(field);
	char buffer[SCHEMA_TEXT_BYTES];

	if (count == 0)
		return;
	qsort(items, count, size, compare);
	for (uint32_t i = 1; i < count; i++) {
		const unsigned char *item = items + i * size;
		const char *text = schema_value_format(field, item, buffer);

		// Refused items stand as "" or 0 and have been reported.
		if (compare(item - size, item) == 0 && strcmp(text, "") != 0 &&
			strcmp(text, "0") != 0)
			config_report_add(b->report, CONFIG_DUPLICATE_NAME, b->path, NULL,
				"%s is given twice", text);
	}
}

static int bind_list(struct binder *b, const struct schema_field *field,
	const struct tree_node *node, unsigned char *base)
{
	unsigned char *items = NULL;
	uint32_t count = 0;

	if (node->kind != TREE_LIST) {
		config_report_add(b->report, CONFIG_WRONG_KIND, b->path,
			"write [] for none, [a, b] or one line with - for each",
			"a list is expected, not %s", kind_name(node));
		return 0;
	}
	if (node->count > field->items_max) {
		config_report_add(b->report, CONFIG_LIMIT, b->path, NULL,
			"has %u items; at most %u are taken", node->count, field->items_max);
		return 0;
	}
	for (const struct tree_node *child = node->first; child != NULL; child = child->next) {
		size_t before = path_push_index(b, count);
		void *item = item_append(b, field, &items, &count);
		int rc = item == NULL ? -ENOMEM : bind_item(b, field, child, item);

		path_pop(b, before);
		if (rc < 0)
			return rc;
	}
	if (field->flags & SCHEMA_SORTED)
		items_sort(b, field, items, count);
	memcpy(base + field->offset, &items, sizeof(items));
	memcpy(base + field->count_offset, &count, sizeof(count));
	return 0;
}

static int bind_field(struct binder *b, const struct schema_field *field,
	const struct tree_node *node, unsigned char *base)
{
	if (field->flags & SCHEMA_LIST)
		return bind_list(b, field, node, base);
	return bind_item(b, field, node, base + field->offset);
}

static void report_missing(struct binder *b, const struct schema_map *map, uint64_t seen)
{
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		if ((f->flags & SCHEMA_REQUIRED) && !(seen >> (f - map->fields) & 1))
			config_report_add(b->report, CONFIG_MISSING_KEY, b->path, f->text,
				"%s without `%s`", map->name, f->name);
	}
}

static int bind_map(
	struct binder *b, const struct schema_map *map, const struct tree_node *node, void *ret)
{
	uint64_t seen = 0; // no table has more than 64 rows
	int rc = schema_init(map, b->arena, ret);

	if (rc < 0)
		return rc;
	if (node->kind != TREE_MAP) {
		config_report_add(b->report, CONFIG_WRONG_KIND, b->path, NULL,
			"a %s (a map of keys) is expected, not %s", map->name, kind_name(node));
		return 0;
	}
	for (const struct tree_node *child = node->first; child != NULL; child = child->next) {
		const struct schema_field *field = schema_field_find(map, child->key);
		size_t before = path_push_key(b, child->key);
		uint64_t bit = field == NULL ? 0 : UINT64_C(1) << (field - map->fields);

		if (field == NULL)
			report_unknown_key(b, map, child);
		else if (seen & bit)
			config_report_add_key(b->report, CONFIG_DUPLICATE_KEY, child, NULL);
		else
			rc = bind_field(b, field, child, ret);
		seen |= bit;
		path_pop(b, before);
		if (rc < 0)
			return rc;
	}
	report_missing(b, map, seen);
	return 0;
}

int schema_read(const struct schema_map *map, const struct tree_node *node,
	struct config_report *report, struct arena *arena, void *ret)
{
	struct binder b = {.report = report, .arena = arena};
	int rc = bind_map(&b, map, node, ret);

	if (rc < 0)
		return rc;
	return report->error_count > 0 ? -EINVAL : 0;
}
