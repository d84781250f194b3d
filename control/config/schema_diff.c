// SPDX-License-Identifier: Apache-2.0
#include "control/config/diff.h"
#include "control/config/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 512u

struct differ {
	struct config_diff *diff;
	char path[PATH_BYTES];
	size_t path_length;
};

static size_t path_push(struct differ *d, const char *part)
{
	size_t before = d->path_length;
	int added = snprintf(
		d->path + before, PATH_BYTES - before, "%s%s", before > 0 ? "." : "", part);

	d->path_length =
		before + (size_t)added < PATH_BYTES ? before + (size_t)added : PATH_BYTES - 1;
	return before;
}

static void path_pop(struct differ *d, size_t before)
{
	d->path_length = before;
	d->path[before] = '\0';
}

static const char *text_keep(struct differ *d, const char *text)
{
	return text == NULL ? NULL : arena_text(d->diff->arena, text, strlen(text));
}

static int change_add(
	struct differ *d, enum config_change_kind kind, const char *before, const char *after)
{
	struct config_diff *diff = d->diff;
	struct config_change *change =
		arena_append(diff->arena, &diff->changes, &diff->change_count, sizeof(*change));

	if (change == NULL)
		return -ENOMEM;
	change->kind = kind;
	change->path = text_keep(d, d->path);
	change->before = text_keep(d, before);
	change->after = text_keep(d, after);
	if (change->path == NULL || (before != NULL) != (change->before != NULL) ||
		(after != NULL) != (change->after != NULL))
		return -ENOMEM;
	return 0;
}

// The value of a field as one line of text, to be freed.
static char *field_text(const struct schema_field *field, const void *from)
{
	struct schema_field only[2] = {*field, {0}};
	struct schema_map map = {.name = "", .fields = only};
	struct schema_style style = {.json = true, .full = true};
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (out == NULL)
		return NULL;
	only[0].flags |= SCHEMA_REQUIRED; // written whatever it is
	only[0].flags &= ~SCHEMA_OPTIONAL;
	schema_write(&map, from, style, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

// Cuts {"key": value}\n to value.
static char *value_of(char *text)
{
	char *colon = strchr(text, ':');

	text[strlen(text) - 2] = '\0';
	return colon + 2;
}

static bool scalar_equal(
	const struct schema_field *field, const unsigned char *a, const unsigned char *b)
{
	const char *text_a, *text_b;

	if (field->kind != SCHEMA_TEXT && field->kind != SCHEMA_NAME)
		return memcmp(a, b, schema_item_size(field)) == 0;
	memcpy(&text_a, a, sizeof(text_a));
	memcpy(&text_b, b, sizeof(text_b));
	return strcmp(text_a, text_b) == 0;
}

// Most fields are equal, and making texts costs a hundred times more than looking.
static bool field_equal(const struct schema_field *field, const void *before, const void *after)
{
	size_t size = schema_item_size(field);
	const unsigned char *a = before, *b = after;
	uint32_t count = 1, count_b = 1;

	if (field->kind == SCHEMA_MAP)
		return false;
	if (field->flags & SCHEMA_LIST) {
		a = schema_list(field, before, &count);
		b = schema_list(field, after, &count_b);
	} else {
		a += field->offset;
		b += field->offset;
	}
	if (count != count_b)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!scalar_equal(field, a + i * size, b + i * size))
			return false;
	}
	return true;
}

static int field_diff(
	struct differ *d, const struct schema_field *field, const void *before, const void *after)
{
	char *a, *b;
	int rc = -ENOMEM;

	if (field_equal(field, before, after))
		return 0;
	if (field->flags & SCHEMA_SECRET)
		return change_add(d, CONFIG_CHANGED, "\"(not shown)\"", "\"(not shown)\"");
	a = field_text(field, before);
	b = field_text(field, after);
	if (a != NULL && b != NULL)
		rc = strcmp(a, b) == 0 ? 0
				       : change_add(d, CONFIG_CHANGED, value_of(a), value_of(b));
	free(a);
	free(b);
	return rc;
}

static char *item_text(const struct schema_map *map, const void *item)
{
	struct schema_style style = {.json = true};
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (out == NULL)
		return NULL;
	schema_write(map, item, style, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static int item_change(struct differ *d, const struct schema_map *map, const void *item, bool added)
{
	char *text = item_text(map, item);
	int rc = text == NULL ? -ENOMEM
		: added       ? change_add(d, CONFIG_ADDED, NULL, text)
			      : change_add(d, CONFIG_REMOVED, text, NULL);

	free(text);
	return rc;
}

// Items of a list by their names, sorted for search.
struct named {
	const char *name;
	const unsigned char *item;
	bool met;
};

static const struct schema_field *id_field(const struct schema_map *map)
{
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		if (f->flags & SCHEMA_ID)
			return f;
	}
	return NULL;
}

static const char *item_name(const struct schema_field *id, const unsigned char *item)
{
	const char *name;

	memcpy(&name, item + id->offset, sizeof(name));
	return name;
}

static int named_compare(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *names_sort(
	const struct schema_field *field, const unsigned char *items, uint32_t count)
{
	const struct schema_field *id = id_field(field->map);
	struct named *names = calloc((size_t)count + 1, sizeof(*names));

	if (names == NULL)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		names[i].item = items + i * field->map->size;
		names[i].name = item_name(id, names[i].item);
	}
	qsort(names, count, sizeof(*names), named_compare);
	return names;
}

static int map_diff(
	struct differ *d, const struct schema_map *map, const void *before, const void *after);

static int items_diff(struct differ *d, const struct schema_field *field, struct named *names,
	uint32_t name_count, const void *after)
{
	const struct schema_field *id = id_field(field->map);
	uint32_t count;
	const unsigned char *items = schema_list(field, after, &count);
	int rc = 0;

	for (uint32_t i = 0; i < count && rc == 0; i++) {
		const unsigned char *item = items + i * field->map->size;
		struct named wanted = {.name = item_name(id, item)};
		struct named *old =
			bsearch(&wanted, names, name_count, sizeof(*names), named_compare);
		size_t at = path_push(d, wanted.name);

		if (old == NULL) {
			rc = item_change(d, field->map, item, true);
		} else {
			old->met = true;
			rc = map_diff(d, field->map, old->item, item);
		}
		path_pop(d, at);
	}
	return rc;
}

static int list_diff(
	struct differ *d, const struct schema_field *field, const void *before, const void *after)
{
	uint32_t count;
	const unsigned char *items = schema_list(field, before, &count);
	struct named *names;
	int rc;

	if (field->kind != SCHEMA_MAP || id_field(field->map) == NULL)
		return field_diff(d, field, before, after);
	names = names_sort(field, items, count);
	if (names == NULL)
		return -ENOMEM;
	rc = items_diff(d, field, names, count, after);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		size_t at = path_push(d, names[i].name);

		if (!names[i].met)
			rc = item_change(d, field->map, names[i].item, false);
		path_pop(d, at);
	}
	free(names);
	return rc;
}

static int map_diff(
	struct differ *d, const struct schema_map *map, const void *before, const void *after)
{
	int rc = 0;

	for (const struct schema_field *f = map->fields; f->name != NULL && rc == 0; f++) {
		size_t at = path_push(d, f->name);

		if (f->flags & SCHEMA_LIST)
			rc = list_diff(d, f, before, after);
		else if (f->kind == SCHEMA_MAP)
			rc = map_diff(d, f->map, (const unsigned char *)before + f->offset,
				(const unsigned char *)after + f->offset);
		else
			rc = field_diff(d, f, before, after);
		path_pop(d, at);
	}
	return rc;
}

int schema_diff(const struct schema_map *map, const void *before, const void *after,
	struct config_diff *diff)
{
	struct differ d = {.diff = diff};

	return map_diff(&d, map, before, after);
}
