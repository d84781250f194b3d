// SPDX-License-Identifier: Apache-2.0
// The language between ringway and ringwayd: one JSON object a line on a Unix socket.
//
//	-> {"id":1,"verb":"backend.set","args":{...},"reason":"...","generation":418,"dry_run":false}
//	<- {"id":1,"ok":true,"result":{...}}
//	<- {"id":1,"ok":false,"error":{"code":4,"name":"conflict","message":"...","details":[...]}}
//
// A stream sends several replies with "more":true and ends with one that has none. Changes of this language only add
// fields; both sides ignore fields that they do not know.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_SOCKET_NAME    "ringwayd.sock"
#define PROTOCOL_RUN_DIR        "/run/ringway"
#define PROTOCOL_SCHEMA_VERSION 1
#define PROTOCOL_REQUEST_BYTES_MAX \
	(16u << 20) // pools files travel in requests: 65,535 backends take 6 MB
#define PROTOCOL_REPLY_BYTES_MAX  (256u << 20)
#define PROTOCOL_VERB_BYTES_MAX   64u
#define PROTOCOL_REASON_BYTES_MAX 1024u
#define PROTOCOL_NO_GENERATION    UINT64_MAX

// How a request or a run of ringway ended. The numbers are the exit codes of ringway and are stable.
enum answer {
	ANSWER_DONE = 0,
	ANSWER_FAILED = 1,
	ANSWER_USAGE = 2,
	ANSWER_NOT_FOUND = 3,
	ANSWER_CONFLICT = 4,
	ANSWER_PARTIAL = 5,
	ANSWER_TIMEOUT = 6,
	ANSWER_INVALID = 7,
	ANSWER_REFUSED = 8,
	ANSWER_PERMISSION = 9,
	ANSWER_DIFFERENT = 10,
	ANSWER_COUNT,
};

// The word for programs ("not_found") and the sentence for people. answer: below ANSWER_COUNT.
const char *answer_name(enum answer answer);
const char *answer_text(enum answer answer);

// The answer that fits an errno value (positive or negative): -ENOENT is not_found, -EACCES permission, ...
enum answer answer_of_errno(int error);

// A request as it arrived. Owns args; give it to protocol_request_clear().
struct protocol_request {
	int64_t id;
	char verb[PROTOCOL_VERB_BYTES_MAX];
	char reason[PROTOCOL_REASON_BYTES_MAX]; // empty: none
	uint64_t generation;                    // that the asker saw, or PROTOCOL_NO_GENERATION
	bool dry_run;
	json_t *args; // an object, never NULL
};

// Reads one request line.
// line: length bytes without the newline; need not end with NUL. Hostile input is expected.
// Returns 0; -EINVAL with a sentence in ret_error when it is no request, and ret->id is then the id that could be
// read, else 0. Nothing to clear on failure.
// Cost: bounded by length; nesting is limited by jansson to 2,048 levels.
int protocol_request_parse(
	const char *line, size_t length, struct protocol_request *ret, char ret_error[static 256]);

// Frees what a request owns.
void protocol_request_clear(struct protocol_request *request);

// Makes the objects of the language. Stolen references: result, details (both may be NULL).
// Return a new reference, or NULL without memory.
json_t *protocol_result(int64_t id, json_t *result, bool more);
json_t *protocol_error(int64_t id, enum answer answer, const char *message, json_t *details);
