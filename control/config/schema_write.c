// SPDX-License-Identifier: Apache-2.0
#include "control/config/schema.h"

#include <errno.h>
#include <string.h>

#define INDENT 2

struct emitter {
	FILE *out;
	struct schema_style style;
};

static void emit_quoted(struct emitter *e, const char *text)
{
	fputc('"', e->out);
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', e->out);
		fputc(*p, e->out);
	}
	fputc('"', e->out);
}

static bool kind_is_number(enum schema_kind kind)
{
	return kind == SCHEMA_NUMBER || kind == SCHEMA_NUMBER64 || kind == SCHEMA_SECONDS ||
		kind == SCHEMA_RATIO;
}

static bool text_is_ipv4(const char *text)
{
	return strspn(text, "0123456789./") == strlen(text) && strchr(text, '.') != NULL;
}

static void emit_scalar(struct emitter *e, const struct schema_field *field, const void *value)
{
	char buffer[SCHEMA_TEXT_BYTES];
	const char *text = schema_value_format(field, value, buffer);
	bool address = field->kind == SCHEMA_ADDRESS || field->kind == SCHEMA_PREFIX ||
		field->kind == SCHEMA_LINK;
	bool plain = kind_is_number(field->kind);

	if (!plain && !e->style.json)
		plain = schema_text_is_plain(text) || field->kind == SCHEMA_SHARE ||
			(address && text_is_ipv4(text));
	if (plain)
		fputs(text, e->out);
	else
		emit_quoted(e, text);
}

static bool field_is_written(
	const struct emitter *e, const struct schema_field *field, const void *from)
{
	bool preset = schema_is_preset(field, from);

	if ((field->flags & SCHEMA_SECRET) && !e->style.secrets)
		return false;
	if (!preset)
		return true;
	// Absent optional keys and empty lists have no text of their own.
	if (field->flags & SCHEMA_OPTIONAL)
		return false;
	return e->style.full;
}

static void emit_flow_map(struct emitter *e, const struct schema_map *map, const void *from);

static void emit_flow_value(struct emitter *e, const struct schema_field *field, const void *from)
{
	const unsigned char *base = from;
	const unsigned char *items;
	uint32_t count;

	if (!(field->flags & SCHEMA_LIST)) {
		if (field->kind == SCHEMA_MAP)
			emit_flow_map(e, field->map, base + field->offset);
		else
			emit_scalar(e, field, base + field->offset);
		return;
	}
	items = schema_list(field, from, &count);
	fputc('[', e->out);
	for (uint32_t i = 0; i < count; i++) {
		const void *item = items + i * schema_item_size(field);

		if (i > 0)
			fputs(", ", e->out);
		if (field->kind == SCHEMA_MAP)
			emit_flow_map(e, field->map, item);
		else
			emit_scalar(e, field, item);
	}
	fputc(']', e->out);
}

static void emit_key(struct emitter *e, const struct schema_field *field)
{
	fprintf(e->out, e->style.json ? "\"%s\":" : "%s:", field->name);
}

static void emit_flow_map(struct emitter *e, const struct schema_map *map, const void *from)
{
	bool first = true;

	fputc('{', e->out);
	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		if (!field_is_written(e, f, from))
			continue;
		if (!first)
			fputs(", ", e->out);
		first = false;
		emit_key(e, f);
		fputc(' ', e->out);
		emit_flow_value(e, f, from);
	}
	fputc('}', e->out);
}

// A struct without lists of structs fits one line, as people write backends.
static bool map_is_short(const struct schema_map *map)
{
	unsigned fields = 0;

	for (const struct schema_field *f = map->fields; f->name != NULL; f++, fields++) {
		if (f->kind == SCHEMA_MAP)
			return false;
	}
	return fields <= 8;
}

static void emit_block_map(
	struct emitter *e, const struct schema_map *map, const void *from, unsigned indent);

static void emit_block_list(
	struct emitter *e, const struct schema_field *field, const void *from, unsigned indent)
{
	uint32_t count;
	const unsigned char *items = schema_list(field, from, &count);

	fputc('\n', e->out);
	for (uint32_t i = 0; i < count; i++) {
		const void *item = items + i * schema_item_size(field);

		fprintf(e->out, "%*s- ", (int)indent, "");
		if (map_is_short(field->map)) {
			emit_flow_map(e, field->map, item);
			fputc('\n', e->out);
		} else {
			emit_block_map(e, field->map, item, indent + INDENT);
		}
	}
}

static void emit_block_value(
	struct emitter *e, const struct schema_field *field, const void *from, unsigned indent)
{
	bool list = (field->flags & SCHEMA_LIST) != 0;

	if (list && field->kind == SCHEMA_MAP && !schema_is_preset(field, from)) {
		emit_block_list(e, field, from, indent + INDENT);
	} else if (!list && field->kind == SCHEMA_MAP && !map_is_short(field->map)) {
		fprintf(e->out, "\n%*s", (int)indent + INDENT, "");
		emit_block_map(e, field->map, (const unsigned char *)from + field->offset,
			indent + INDENT);
	} else {
		fputc(' ', e->out);
		emit_flow_value(e, field, from);
		fputc('\n', e->out);
	}
}

// The caller has already indented the first line.
static void emit_block_map(
	struct emitter *e, const struct schema_map *map, const void *from, unsigned indent)
{
	bool first = true;

	for (const struct schema_field *f = map->fields; f->name != NULL; f++) {
		if (!field_is_written(e, f, from))
			continue;
		if (!first)
			fprintf(e->out, "%*s", (int)indent, "");
		first = false;
		emit_key(e, f);
		emit_block_value(e, f, from, indent);
	}
	if (first)
		fputs("{}\n", e->out);
}

int schema_write(
	const struct schema_map *map, const void *from, struct schema_style style, FILE *out)
{
	struct emitter e = {.out = out, .style = style};

	if (style.json) {
		emit_flow_map(&e, map, from);
		fputc('\n', out);
	} else {
		emit_block_map(&e, map, from, 0);
	}
	return ferror(out) ? -EIO : 0;
}
