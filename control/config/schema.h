// SPDX-License-Identifier: Apache-2.0
// The descriptor tables: one row for every key. Reader, writer, diff, copy and the reference are all driven by them,
// so a key is added in one place.
#pragma once

#include "control/config/arena.h"
#include "control/config/report.h"
#include "control/config/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// What a value is, and the C type that it is stored in.
enum schema_kind {
	SCHEMA_TEXT, // const char *: free text without control characters
	SCHEMA_NAME, // const char *: letters, digits, '.', '_', '-'; begins with a letter or digit
	SCHEMA_NUMBER,   // uint32_t
	SCHEMA_NUMBER64, // uint64_t
	SCHEMA_SECONDS,  // uint32_t: 90, 90s, 15m, 2h
	SCHEMA_RATIO,    // uint32_t millionths: 0.01
	SCHEMA_SHARE,    // uint32_t millionths: 10%, 0.0001%
	SCHEMA_CHOICE,   // uint32_t or an enum: one word of a list
	SCHEMA_ADDRESS,  // struct ip_addr
	SCHEMA_PREFIX,   // struct config_prefix: address, or address/bits without host bits
	SCHEMA_LINK,     // struct config_prefix: address/bits with host bits
	SCHEMA_KEY16,    // uint8_t[16]: 32 hexadecimal digits
	SCHEMA_MAP,      // a struct of its own table
	SCHEMA_KIND_COUNT,
};

#define SCHEMA_REQUIRED 1u  // the key must stand in the file
#define SCHEMA_LIST     2u  // a pointer and a count
#define SCHEMA_ID       4u  // the key by which an item of a list is known
#define SCHEMA_SORTED   8u  // list of text: kept sorted, duplicates refused
#define SCHEMA_RESTART  16u // a change needs a restart of ringwayd or the dataplane
#define SCHEMA_SECRET   64u // not shown: left out of texts for people, and of differences
#define SCHEMA_OPTIONAL 32u // no default: all zero when absent, and then not written

struct schema_choice {
	const char *name;
	uint32_t value;
};

struct schema_field {
	const char *name;
	enum schema_kind kind;
	uint32_t flags;
	size_t offset;       // in the struct of the table
	size_t count_offset; // SCHEMA_LIST
	uint64_t min;        // numbers: range in the stored unit
	uint64_t max;
	uint32_t items_max; // SCHEMA_LIST
	const struct schema_map *map;
	const struct schema_choice *choices; // ends with a NULL name
	const char *preset;                  // default, as it would stand in the file; NULL: none
	const char *unit;
	const char *hint; // the way out of a bad value
	const char *text; // meaning, for people
};

struct schema_map {
	const char *name; // of the thing, for messages: "backend"
	size_t size;
	const struct schema_field *fields; // ends with a NULL name
};

// --- one value (values.c) -----------------------------------------------------------------------

// Why a value was refused.
struct schema_refusal {
	enum config_code code;
	char text[200];
};

// Bytes that an item of this field takes in its struct or array.
size_t schema_item_size(const struct schema_field *field);

// Reads one scalar into *ret (schema_item_size() bytes). Strings go to the arena.
// Returns 0, -EINVAL with *ret_refusal, or -ENOMEM.
int schema_value_parse(const struct schema_field *field, const char *text, struct arena *arena,
	void *ret, struct schema_refusal *ret_refusal);

#define SCHEMA_TEXT_BYTES 4224u

// Writes one scalar as it stands in a file, unquoted. Returns buffer, or the value itself when it is a text.
const char *schema_value_format(
	const struct schema_field *field, const void *value, char buffer[static SCHEMA_TEXT_BYTES]);

// Tells whether text can stand in YAML without quotes and means the same to every reader of YAML.
bool schema_text_is_plain(const char *text);

// --- whole structs ------------------------------------------------------------------------------

// Fills a struct with its defaults. Returns 0 or -ENOMEM.
int schema_init(const struct schema_map *map, struct arena *arena, void *ret);

// Reads a tree into a struct; findings go to the report. Returns 0, -EINVAL or -ENOMEM.
int schema_read(const struct schema_map *map, const struct tree_node *node,
	struct config_report *report, struct arena *arena, void *ret);

// Copies a struct deeply. ret: zeroed or not. Returns 0 or -ENOMEM.
int schema_copy(const struct schema_map *map, struct arena *arena, const void *from, void *ret);

struct schema_style {
	bool json;
	bool full;    // also what stands at its default
	bool secrets; // also what is not shown to people
};

// Writes a struct. Returns 0 or -EIO.
int schema_write(
	const struct schema_map *map, const void *from, struct schema_style style, FILE *out);

// Tells whether a field's value is its default (absent lists and optional values count as such).
bool schema_is_preset(const struct schema_field *field, const void *from);

struct config_diff;

// Adds the differences of two structs of one table. Returns 0 or -ENOMEM.
int schema_diff(const struct schema_map *map, const void *before, const void *after,
	struct config_diff *diff);

// The field of a table by name, or NULL.
const struct schema_field *schema_field_find(const struct schema_map *map, const char *name);

// The name of a choice, or "?".
const char *schema_choice_name(const struct schema_choice *choices, uint32_t value);

// Reads an item's list: pointer and count.
static inline const unsigned char *schema_list(
	const struct schema_field *field, const void *from, uint32_t *ret_count)
{
	const unsigned char *base = from, *items;

	__builtin_memcpy(ret_count, base + field->count_offset, sizeof(*ret_count));
	__builtin_memcpy(&items, base + field->offset, sizeof(items));
	return items;
}
