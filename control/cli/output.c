// SPDX-License-Identifier: Apache-2.0
#include "control/cli/output.h"

#include "control/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 24u
#define LABEL_BYTES 64u

static const char *const formats[OUTPUT_COUNT] = {"table", "wide", "json", "jsonl", "yaml", "name"};

int output_format_of(const char *name)
{
	for (int i = 0; i < OUTPUT_COUNT; i++) {
		if (strcmp(formats[i], name) == 0)
			return i;
	}
	return -1;
}

const char *output_format_name(enum output_format format)
{
	return formats[format];
}

static bool ends_with(const char *text, const char *end)
{
	size_t text_length = strlen(text), end_length = strlen(end);

	return text_length >= end_length && strcmp(text + text_length - end_length, end) == 0;
}

static int text_of_bytes(char **ret, double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	unsigned unit = 0;

	while (fabs(bytes) >= 1024 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	return asprintf(ret, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static int text_of_time(char **ret, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned unit = 0;

	while (fabs(ns) >= 1000 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	return asprintf(ret, unit ? "%.1f %s" : "%.0f %s", ns, units[unit]);
}

static int text_of_number(char **ret, const char *field, const json_t *value)
{
	double number = json_number_value(value);

	if (ends_with(field, "_bytes") || strcmp(field, "bytes") == 0)
		return text_of_bytes(ret, number);
	if (ends_with(field, "_ppm"))
		return asprintf(ret, "%.4g %%", number / 1e4);
	if (ends_with(field, "_share"))
		return asprintf(ret, "%.4g %%", number * 100);
	if (ends_with(field, "_ratio"))
		return asprintf(ret, "%.3fx", number);
	if (ends_with(field, "_ns"))
		return text_of_time(ret, number);
	if (json_is_integer(value))
		return asprintf(ret, "%lld", (long long)json_integer_value(value));
	return asprintf(ret, "%.4g", number);
}

const char *output_short(double value, char ret[static OUTPUT_SHORT_BYTES])
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	unsigned unit = 0, decimals;

	while (value >= 1000 && unit < 4) {
		value /= 1000;
		unit++;
	}
	if (unit == 0)
		decimals = value < 10 && value != floor(value) ? 1 : 0;
	else
		decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
	snprintf(ret, OUTPUT_SHORT_BYTES, "%.*f%s", (int)decimals, value, units[unit]);
	return ret;
}

// A list of plain values as "a,b"; of anything deeper, how many there are.
static int text_of_array(char **ret, const char *field, const json_t *value)
{
	const json_t *first = json_array_get(value, 0), *item;
	FILE *memory;
	size_t bytes, i;

	if (first == NULL)
		return asprintf(ret, "-");
	if (json_is_object(first) || json_is_array(first))
		return asprintf(ret, "%zu", json_array_size(value));
	memory = open_memstream(ret, &bytes);
	if (memory == NULL)
		return -1;
	json_array_foreach (value, i, item) {
		char *text = output_text(field, item, true);

		fprintf(memory, "%s%s", i ? "," : "", text ? text : "?");
		free(text);
	}
	return fclose(memory);
}

// A backend as one line: web-2 10.0.0.12 (up).
static int text_of_backend(char **ret, const json_t *value)
{
	const char *name = json_string_value(json_object_get(value, "name"));
	const char *state = json_string_value(json_object_get(value, "state"));

	return asprintf(ret, "%s%s%s%s%s%s", name ? name : "", name ? " " : "",
		json_string_value(json_object_get(value, "address")), state ? " (" : "",
		state ? state : "", state ? ")" : "");
}

static bool is_backend(const json_t *value)
{
	return json_is_object(value) && json_is_string(json_object_get(value, "address"));
}

char *output_text(const char *field, const json_t *value, bool wide)
{
	char *ret = NULL;
	int length = 0;

	if (json_is_string(value)) {
		bool digest = ends_with(field, "digest");

		length = asprintf(
			&ret, "%.*s", digest && !wide ? 12 : 4096, json_string_value(value));
	} else if (json_is_number(value)) {
		length = text_of_number(&ret, field, value);
	} else if (json_is_boolean(value)) {
		length = asprintf(&ret, "%s", json_is_true(value) ? "yes" : "no");
	} else if (json_is_array(value)) {
		length = text_of_array(&ret, field, value);
	} else if (is_backend(value)) {
		length = text_of_backend(&ret, value);
	} else if (json_is_object(value)) {
		length = asprintf(&ret, "{%zu}", json_object_size(value));
	} else {
		length = asprintf(&ret, "-");
	}
	return length < 0 ? NULL : ret;
}

// Follows a path such as "old.points" down from an object.
static const json_t *field_of(const json_t *row, const char *path)
{
	char part[64];

	while (row != NULL) {
		size_t length = strcspn(path, ".");

		if (path[length] == '\0')
			return json_object_get(row, path);
		snprintf(part, sizeof(part), "%.*s", (int)length, path);
		row = json_object_get(row, part);
		path += length + 1;
	}
	return NULL;
}

// A field's name for people: without its unit, in words.
static void label_of(const char *field, bool upper, char ret[LABEL_BYTES])
{
	static const char *const units[] = {"_bytes", "_share", "_ppm", "_ratio", "_ns"};
	size_t length = strlen(field);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ends_with(field, units[i])) {
			length -= strlen(units[i]);
			break;
		}
	}
	snprintf(ret, LABEL_BYTES, "%.*s", (int)length, field);
	for (char *c = ret; *c; c++) {
		if (*c == '_')
			*c = ' ';
		else if (upper)
			*c = (char)toupper((unsigned char)*c);
	}
}

// The columns that a run shows: those of the command, or one for each field of the first row.
static unsigned pick_columns(const struct cli_column *columns, const json_t *rows, bool wide,
	struct cli_column ret[COLUMNS_MAX])
{
	json_t *first = json_array_get(rows, 0), *value;
	unsigned count = 0;
	const char *key;

	if (columns != NULL) {
		for (; columns->heading != NULL && count < COLUMNS_MAX; columns++) {
			if (wide || !columns->wide)
				ret[count++] = *columns;
		}
		return count;
	}
	json_object_foreach (first, key, value) {
		if (count < COLUMNS_MAX)
			ret[count++] = (struct cli_column){key, key, false};
	}
	return count;
}

static bool column_is_numeric(const char *field, const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const json_t *value = field_of(row, field);

		if (value != NULL && !json_is_null(value))
			return json_is_number(value);
	}
	return false;
}

static int fill_line(struct libscols_table *table, const json_t *row,
	const struct cli_column *columns, unsigned count, bool wide)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);

	if (line == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		char *text = output_text(columns[i].field, field_of(row, columns[i].field), wide);

		// The line owns the text from here.
		if (text == NULL || scols_line_refer_data(line, i, text)) {
			free(text);
			return -ENOMEM;
		}
	}
	return 0;
}

static int print_table(FILE *out, const struct cli_column *columns, const json_t *rows, bool wide)
{
	struct cli_column picked[COLUMNS_MAX];
	unsigned count = pick_columns(columns, rows, wide, picked);
	struct libscols_table *table = scols_new_table();
	const json_t *row;
	int error = 0;
	size_t i;

	if (table == NULL)
		return -ENOMEM;
	scols_table_set_stream(table, out);
	// Lines are never cut to the terminal: a cut number is a wrong number.
	scols_table_enable_maxout(table, 0);
	scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
	for (unsigned c = 0; c < count && !error; c++) {
		int flags = column_is_numeric(picked[c].field, rows) ? SCOLS_FL_RIGHT : 0;
		const char *heading = picked[c].heading;
		char label[LABEL_BYTES];

		if (columns == NULL) {
			label_of(picked[c].field, true, label);
			heading = label;
		}
		if (scols_table_new_column(table, heading, 0, flags) == NULL)
			error = -ENOMEM;
	}
	json_array_foreach (rows, i, row) {
		if (!error)
			error = fill_line(table, row, picked, count, wide);
	}
	if (!error && count > 0)
		error = scols_print_table(table);
	scols_unref_table(table);
	return error;
}

// One step of print_fields(): a field and its value, objects indented below their name.
static int print_field(FILE *out, const char *key, const json_t *value, int depth, bool wide)
{
	char label[LABEL_BYTES];
	const char *inner_key;
	json_t *inner;
	int error = 0;

	label_of(key, false, label);
	if (json_is_object(value) && !is_backend(value) && depth < 4) {
		fprintf(out, "%*s%s:\n", depth * 2, "", label);
		json_object_foreach ((json_t *)value, inner_key, inner) {
			if (!error)
				error = print_field(out, inner_key, inner, depth + 1, wide);
		}
		return error;
	}
	if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
		fprintf(out, "%*s%s:\n", depth * 2, "", label);
		return print_table(out, NULL, value, wide);
	}
	char *text = output_text(key, value, wide);

	if (text == NULL)
		return -ENOMEM;
	fprintf(out, "%*s%-*s %s\n", depth * 2, "", 24 - depth * 2, label, text);
	free(text);
	return 0;
}

// What is not rows: one field a line, under each other.
static int print_fields(
	FILE *out, const struct output_shape *shape, const json_t *result, bool wide)
{
	const char *key;
	json_t *value;
	int error = 0;

	json_object_foreach ((json_t *)result, key, value) {
		if (error || strcmp(key, "schema_version") == 0)
			continue;
		if (shape->rows != NULL && strcmp(key, shape->rows) == 0)
			error = print_table(out, shape->columns, value, wide);
		else
			error = print_field(out, key, value, 0, wide);
	}
	return error;
}

static int print_names(FILE *out, const struct output_shape *shape, const json_t *result)
{
	const json_t *rows = shape->rows ? json_object_get(result, shape->rows) : NULL;
	const json_t *row;
	size_t i;

	if (rows == NULL) {
		const char *name = json_string_value(json_object_get(result, "name"));

		return name == NULL || fprintf(out, "%s\n", name) > 0 ? 0 : -EIO;
	}
	json_array_foreach (rows, i, row) {
		const char *name = json_string_value(json_object_get(row, "name"));

		if (name != NULL)
			fprintf(out, "%s\n", name);
	}
	return 0;
}

static int print_json_lines(FILE *out, const struct output_shape *shape, const json_t *result)
{
	const json_t *rows = shape->rows ? json_object_get(result, shape->rows) : NULL;
	const json_t *row;
	size_t i;

	if (rows == NULL) {
		json_dumpf(result, out, JSON_COMPACT);
		fputc('\n', out);
		return 0;
	}
	json_array_foreach (rows, i, row) {
		json_dumpf(row, out, JSON_COMPACT);
		fputc('\n', out);
	}
	return 0;
}

// The result with its schema_version in front.
static json_t *with_schema(json_t *result)
{
	json_t *ret = json_pack("{s:i}", "schema_version", PROTOCOL_SCHEMA_VERSION);

	if (ret != NULL && json_object_update(ret, result) != 0) {
		json_decref(ret);
		return NULL;
	}
	return ret;
}

// A list of which the rest of the result says nothing that the table does not: only the table is printed.
static bool is_plain_list(const struct output_shape *shape, const json_t *result)
{
	return shape->rows != NULL && shape->columns != NULL &&
		json_is_array(json_object_get(result, shape->rows));
}

static int print_for_people(
	FILE *out, const struct output_shape *shape, const json_t *result, bool wide)
{
	const json_t *total = json_object_get(result, "total");
	int error;

	if (!is_plain_list(shape, result))
		return print_fields(out, shape, result, wide);
	error = print_table(out, shape->columns, json_object_get(result, shape->rows), wide);
	if (error || total == NULL)
		return error;
	fputc('\n', out);
	return print_field(out, "total", total, 0, wide);
}

int output_result(
	FILE *out, enum output_format format, const struct output_shape *shape, json_t *result)
{
	json_t *full = with_schema(result);
	int error = 0;

	if (full == NULL)
		return -ENOMEM;
	switch (format) {
	case OUTPUT_JSON:
		error = json_dumpf(full, out, JSON_INDENT(2)) ? -EIO : 0;
		fputc('\n', out);
		break;
	case OUTPUT_JSONL:
		error = print_json_lines(out, shape, full);
		break;
	case OUTPUT_YAML:
		error = output_yaml(out, full);
		break;
	case OUTPUT_NAME:
		error = print_names(out, shape, full);
		break;
	default:
		error = print_for_people(out, shape, full, format == OUTPUT_WIDE);
		break;
	}
	json_decref(full);
	if (!error && (fflush(out) || ferror(out)))
		error = -EIO;
	return error;
}
