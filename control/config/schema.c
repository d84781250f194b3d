// SPDX-License-Identifier: Apache-2.0
#include "control/config/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct schema_field *schema_field_find(const struct schema_map *map, const char *name)
{
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

// Presets stand in the tables as text; a text that its own field refuses is a fault of the table.
static int preset_take(const struct schema_field *field, struct arena *arena, void *ret)
{
	struct schema_refusal refusal;
	int rc;

	if (field->preset == NULL) {
		static const char *const nothing = "";

		if (field->kind == SCHEMA_TEXT || field->kind == SCHEMA_NAME)
			memcpy(ret, &nothing, sizeof(nothing));
		return 0;
	}
	rc = schema_value_parse(field, field->preset, arena, ret, &refusal);
	if (rc == -EINVAL)
		abort();
	return rc;
}

int schema_init(const struct schema_map *map, struct arena *arena, void *ret)
{
	memset(ret, 0, map->size);
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		unsigned char *at = (unsigned char *)ret + f->offset;
		int rc = 0;

		if (f->flags & SCHEMA_LIST)
			continue;
		if (f->kind == SCHEMA_MAP)
			rc = schema_init(f->map, arena, at);
		else
			rc = preset_take(f, arena, at);
		if (rc < 0)
			return rc;
	}
	return 0;
}

bool schema_is_preset(const struct schema_field *field, const void *from)
{
	const unsigned char *at = (const unsigned char *)from + field->offset;
	char buffer[SCHEMA_TEXT_BYTES];
	uint32_t count;

	if (field->flags & SCHEMA_LIST) {
		schema_list(field, from, &count);
		return count == 0;
	}
	if (field->flags & SCHEMA_REQUIRED)
		return false;
	if (field->kind == SCHEMA_MAP) {
		for (const struct schema_field *f = field->map->fields; f->name != NULL; f++) {
			if (!schema_is_preset(f, at))
				return false;
		}
		return true;
	}
	if (field->flags & SCHEMA_OPTIONAL) {
		static const unsigned char zero[sizeof(uint64_t)];

		// Optional numbers are absent at zero, optional texts at "".
		if (schema_item_size(field) == sizeof(uint32_t))
			return memcmp(at, zero, sizeof(uint32_t)) == 0;
	}
	return strcmp(schema_value_format(field, at, buffer),
		       field->preset != NULL ? field->preset : "") == 0;
}

static int text_copy(const unsigned char *from, struct arena *arena, unsigned char *to)
{
	const char *text;
	char *copy;

	memcpy(&text, from, sizeof(text));
	if (text == NULL)
		text = "";
	copy = arena_text(arena, text, strlen(text));
	if (copy == NULL)
		return -ENOMEM;
	memcpy(to, &copy, sizeof(copy));
	return 0;
}

static int item_copy(const struct schema_field *field, struct arena *arena,
	const unsigned char *from, unsigned char *to)
{
	if (field->kind == SCHEMA_MAP)
		return schema_copy(field->map, arena, from, to);
	if (field->kind == SCHEMA_TEXT || field->kind == SCHEMA_NAME)
		return text_copy(from, arena, to);
	memcpy(to, from, schema_item_size(field));
	return 0;
}

static int list_copy(
	const struct schema_field *field, struct arena *arena, const void *from, unsigned char *to)
{
	size_t size = schema_item_size(field);
	unsigned char *items = NULL;
	uint32_t count, copied = 0;
	const unsigned char *source = schema_list(field, from, &count);

	// Appended one by one, so that the copy's array has the room that arena_append() expects.
	for (uint32_t i = 0; i < count; i++) {
		unsigned char *item = arena_append(arena, &items, &copied, size);
		int rc = item == NULL ? -ENOMEM : item_copy(field, arena, source + i * size, item);

		if (rc < 0)
			return rc;
	}
	memcpy(to + field->offset, &items, sizeof(items));
	memcpy(to + field->count_offset, &copied, sizeof(copied));
	return 0;
}

int schema_copy(const struct schema_map *map, struct arena *arena, const void *from, void *ret)
{
	memset(ret, 0, map->size);
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		int rc;

		if (f->flags & SCHEMA_LIST)
			rc = list_copy(f, arena, from, ret);
		else
			rc = item_copy(f, arena, (const unsigned char *)from + f->offset,
				(unsigned char *)ret + f->offset);
		if (rc < 0)
			return rc;
	}
	return 0;
}
