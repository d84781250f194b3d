// SPDX-License-Identifier: Apache-2.0
#include "control/cli/protocol.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	const char *text;
} answers[ANSWER_COUNT] = {
	[ANSWER_DONE] = {"done", "done, or nothing to do"},
	[ANSWER_FAILED] = {"failed", "failed"},
	[ANSWER_USAGE] = {"usage", "wrong command, option or argument"},
	[ANSWER_NOT_FOUND] = {"not_found", "nothing has this name"},
	[ANSWER_CONFLICT] = {"conflict", "stale generation, locked, or wrong state"},
	[ANSWER_PARTIAL] = {"partial", "some nodes did not answer; their names are on stderr"},
	[ANSWER_TIMEOUT] = {"timeout", "what was waited for did not happen in time"},
	[ANSWER_INVALID] = {"invalid", "invalid configuration"},
	[ANSWER_REFUSED] = {"refused", "refused by a guard or a limit"},
	[ANSWER_PERMISSION] = {"permission", "the caller's role does not allow this"},
	[ANSWER_DIFFERENT] = {"different", "differences found, only with --exit-code"},
};

const char *answer_name(enum answer answer)
{
	return answers[answer].name;
}

const char *answer_text(enum answer answer)
{
	return answers[answer].text;
}

enum answer answer_of_errno(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return ANSWER_DONE;
	case ENOENT:
		return ANSWER_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ANSWER_PERMISSION;
	case EBUSY:
	case EEXIST:
	case ESTALE:
		return ANSWER_CONFLICT;
	case ETIMEDOUT:
		return ANSWER_TIMEOUT;
	case EINVAL:
		return ANSWER_INVALID;
	case E2BIG:
	case ENOSPC:
	case EFBIG:
		return ANSWER_REFUSED;
	default:
		return ANSWER_FAILED;
	}
}

static int complain(char *ret_error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int complain(char *ret_error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ret_error, 256, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

// Copies an optional text field into a bounded buffer.
static int take_text(
	const json_t *object, const char *name, char *ret, size_t ret_bytes, char *ret_error)
{
	const json_t *value = json_object_get(object, name);

	ret[0] = '\0';
	if (value == NULL || json_is_null(value))
		return 0;
	if (!json_is_string(value))
		return complain(ret_error, "\"%s\" must be a string", name);
	// A NUL inside would hide the rest of the text from every later reader.
	if (strlen(json_string_value(value)) != json_string_length(value))
		return complain(ret_error, "\"%s\" holds a NUL character", name);
	if (json_string_length(value) >= ret_bytes)
		return complain(ret_error, "\"%s\" is longer than %zu bytes", name, ret_bytes - 1);
	memcpy(ret, json_string_value(value), json_string_length(value) + 1);
	return 0;
}

static int take_verb(const json_t *object, struct protocol_request *ret, char *ret_error)
{
	int error = take_text(object, "verb", ret->verb, sizeof(ret->verb), ret_error);

	if (error)
		return error;
	if (ret->verb[0] == '\0')
		return complain(ret_error, "\"verb\" is missing");
	for (const char *c = ret->verb; *c; c++) {
		if (strchr("abcdefghijklmnopqrstuvwxyz-.", *c) == NULL)
			return complain(ret_error, "\"verb\" may hold a-z, - and . only");
	}
	return 0;
}

static int take_scalars(const json_t *object, struct protocol_request *ret, char *ret_error)
{
	const json_t *generation = json_object_get(object, "generation");
	const json_t *dry_run = json_object_get(object, "dry_run");

	ret->generation = PROTOCOL_NO_GENERATION;
	if (generation != NULL && !json_is_null(generation)) {
		if (!json_is_integer(generation) || json_integer_value(generation) < 0)
			return complain(
				ret_error, "\"generation\" must be a whole number, 0 or more");
		ret->generation = (uint64_t)json_integer_value(generation);
	}
	if (dry_run != NULL && !json_is_boolean(dry_run))
		return complain(ret_error, "\"dry_run\" must be true or false");
	ret->dry_run = json_is_true(dry_run);
	return take_text(object, "reason", ret->reason, sizeof(ret->reason), ret_error);
}

static int take_args(json_t *object, struct protocol_request *ret, char *ret_error)
{
	json_t *args = json_object_get(object, "args");

	if (args == NULL || json_is_null(args)) {
		ret->args = json_object();
		return ret->args ? 0 : complain(ret_error, "out of memory");
	}
	if (!json_is_object(args))
		return complain(ret_error, "\"args\" must be an object");
	ret->args = json_incref(args);
	return 0;
}

int protocol_request_parse(
	const char *line, size_t length, struct protocol_request *ret, char ret_error[static 256])
{
	json_error_t reason;
	json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);
	int error = 0;

	memset(ret, 0, sizeof(*ret));
	if (object == NULL)
		return complain(
			ret_error, "no JSON: %.160s (byte %d)", reason.text, reason.position);
	if (!json_is_object(object)) {
		error = complain(ret_error, "a request is a JSON object");
		goto out;
	}
	const json_t *id = json_object_get(object, "id");

	if (json_is_integer(id))
		ret->id = json_integer_value(id);
	else if (id != NULL)
		error = complain(ret_error, "\"id\" must be a whole number");
	if (!error)
		error = take_verb(object, ret, ret_error);
	if (!error)
		error = take_scalars(object, ret, ret_error);
	if (!error)
		error = take_args(object, ret, ret_error);
out:
	json_decref(object);
	return error;
}

void protocol_request_clear(struct protocol_request *request)
{
	json_decref(request->args);
	request->args = NULL;
}

json_t *protocol_result(int64_t id, json_t *result, bool more)
{
	json_t *reply =
		json_pack("{s:I, s:b, s:o?}", "id", (json_int_t)id, "ok", 1, "result", result);

	if (reply != NULL && more)
		json_object_set_new(reply, "more", json_true());
	return reply;
}

json_t *protocol_error(int64_t id, enum answer answer, const char *message, json_t *details)
{
	return json_pack("{s:I, s:b, s:{s:i, s:s, s:s, s:o*}}", "id", (json_int_t)id, "ok", 0,
		"error", "code", (int)answer, "name", answer_name(answer), "message", message,
		"details", details);
}
