// SPDX-License-Identifier: Apache-2.0
#include "control/cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <yaml.h>

static int write_out(void *context, unsigned char *bytes, size_t count)
{
	return fwrite(bytes, 1, count, context) == count;
}

// Hands an event to the emitter, which frees it.
static int emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
	return made && yaml_emitter_emit(emitter, event) ? 0 : -EIO;
}

static int emit_scalar(yaml_emitter_t *emitter, const char *text, bool quoted)
{
	yaml_scalar_style_t style =
		quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
	yaml_event_t event;

	return emit(emitter, &event,
		yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
			(int)strlen(text), !quoted, 1, style));
}

// Strings are quoted whenever a YAML 1.1 reader could take them for another type ("no", "22:22", "1e3").
static bool needs_quotes(const char *text)
{
	static const char *const words[] = {
		"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ""};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(words[i], text) == 0)
			return true;
	}
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == 0 ||
		strpbrk(text, ":#{}[],&*!|>'\"%@`\\\n\t") != NULL;
}

static int emit_value(yaml_emitter_t *emitter, const json_t *value);

static int emit_array(yaml_emitter_t *emitter, const json_t *value)
{
	yaml_event_t event;
	const json_t *item;
	size_t i;
	int error = emit(emitter, &event,
		yaml_sequence_start_event_initialize(
			&event, NULL, NULL, 1, YAML_ANY_SEQUENCE_STYLE));

	json_array_foreach (value, i, item) {
		if (!error)
			error = emit_value(emitter, item);
	}
	return error ? error : emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static int emit_object(yaml_emitter_t *emitter, const json_t *value)
{
	yaml_event_t event;
	const char *key;
	json_t *item;
	int error = emit(emitter, &event,
		yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE));

	json_object_foreach ((json_t *)value, key, item) {
		if (!error)
			error = emit_scalar(emitter, key, needs_quotes(key));
		if (!error)
			error = emit_value(emitter, item);
	}
	return error ? error : emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static int emit_value(yaml_emitter_t *emitter, const json_t *value)
{
	char number[32];

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return emit_object(emitter, value);
	case JSON_ARRAY:
		return emit_array(emitter, value);
	case JSON_STRING:
		return emit_scalar(
			emitter, json_string_value(value), needs_quotes(json_string_value(value)));
	case JSON_INTEGER:
		snprintf(
			number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return emit_scalar(emitter, number, false);
	case JSON_REAL:
		snprintf(number, sizeof(number), "%.12g", json_real_value(value));
		return emit_scalar(emitter, number, false);
	case JSON_TRUE:
		return emit_scalar(emitter, "true", false);
	case JSON_FALSE:
		return emit_scalar(emitter, "false", false);
	default:
		return emit_scalar(emitter, "null", false);
	}
}

int output_yaml(FILE *out, const json_t *value)
{
	yaml_emitter_t emitter;
	yaml_event_t event;
	int error;

	if (!yaml_emitter_initialize(&emitter))
		return -ENOMEM;
	yaml_emitter_set_output(&emitter, write_out, out);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, -1);
	error = emit(
		&emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	if (!error)
		error = emit(&emitter, &event,
			yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
	if (!error)
		error = emit_value(&emitter, value);
	if (!error)
		error = emit(&emitter, &event, yaml_document_end_event_initialize(&event, 1));
	if (!error)
		error = emit(&emitter, &event, yaml_stream_end_event_initialize(&event));
	yaml_emitter_delete(&emitter);
	return error;
}
