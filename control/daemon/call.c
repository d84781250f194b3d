// SPDX-License-Identifier: Apache-2.0
// What verbs use to read their arguments and to fail.
#include "control/daemon/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum answer server_fail(struct server_call *call, enum answer answer, const char *format, ...)
{
	va_list arguments;

	call->answer = answer;
	va_start(arguments, format);
	vsnprintf(call->message, sizeof(call->message), format, arguments);
	va_end(arguments);
	return answer;
}

void server_detail(struct server_call *call, const char *format, ...)
{
	char text[SERVER_MESSAGE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (call->details == NULL)
		call->details = json_array();
	json_array_append_new(call->details, json_string(text));
}

enum answer server_text_optional(struct server_call *call, const char *name, const char **ret)
{
	const json_t *value = json_object_get(call->request->args, name);

	if (value == NULL || json_is_null(value))
		return ANSWER_DONE;
	if (!json_is_string(value) || json_string_length(value) == 0 ||
		strlen(json_string_value(value)) != json_string_length(value))
		return server_fail(call, ANSWER_USAGE, "\"%s\" must be a text", name);
	*ret = json_string_value(value);
	return ANSWER_DONE;
}

enum answer server_text(struct server_call *call, const char *name, const char **ret)
{
	const char *text = NULL;
	enum answer answer = server_text_optional(call, name, &text);

	if (answer == ANSWER_DONE && text == NULL)
		return server_fail(call, ANSWER_USAGE, "\"%s\" is missing", name);
	if (answer == ANSWER_DONE)
		*ret = text;
	return answer;
}

enum answer server_number_optional(
	struct server_call *call, const char *name, uint64_t low, uint64_t high, uint64_t *ret)
{
	const json_t *value = json_object_get(call->request->args, name);

	if (value == NULL || json_is_null(value))
		return ANSWER_DONE;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		(uint64_t)json_integer_value(value) < low ||
		(uint64_t)json_integer_value(value) > high)
		return server_fail(call, ANSWER_USAGE,
			"\"%s\" must be a whole number from %llu to %llu", name,
			(unsigned long long)low, (unsigned long long)high);
	*ret = (uint64_t)json_integer_value(value);
	return ANSWER_DONE;
}

bool server_flag(const struct server_call *call, const char *name)
{
	return json_is_true(json_object_get(call->request->args, name));
}
