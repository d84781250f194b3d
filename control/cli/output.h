// SPDX-License-Identifier: Apache-2.0
// How a result is written: tables for people, JSON and YAML for programs. Data goes to one stream, messages never do.
//
// A field's name ends with its unit, and people see it in that unit: _bytes as 12.3 KiB, _ppm (millionths) and
// _share (of 1) as a percentage, _ratio as 2.32x, _ns as 3.4 ms. Programs see the plain number.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum output_format {
	OUTPUT_TABLE,
	OUTPUT_WIDE,
	OUTPUT_JSON,
	OUTPUT_JSONL,
	OUTPUT_YAML,
	OUTPUT_NAME,
	OUTPUT_COUNT,
};

struct cli_column;

// How a result of one command is laid out.
struct output_shape {
	const char *rows;                 // field that holds the rows, or NULL
	const struct cli_column *columns; // for the rows, or NULL: all their fields
};

// Returns the format of this name, or -1.
int output_format_of(const char *name);

// The name of a format, for messages and completion.
const char *output_format_name(enum output_format format);

// Writes a result. In JSON and YAML the object gets a schema_version first.
// Returns 0, or -EIO when the stream failed, or -ENOMEM.
int output_result(
	FILE *out, enum output_format format, const struct output_shape *shape, json_t *result);

// Writes an object or an array as YAML 1.1 block text.
int output_yaml(FILE *out, const json_t *value);

// Writes a rate or count in at most seven characters: 0.4, 999, 12.3k, 4.56M. Returns ret.
#define OUTPUT_SHORT_BYTES 16
const char *output_short(double value, char ret[static OUTPUT_SHORT_BYTES]);

// Writes a value for people, in the unit that its field's name ends with.
// Returns the text in a buffer that the caller frees, or NULL without memory.
char *output_text(const char *field, const json_t *value, bool wide);
