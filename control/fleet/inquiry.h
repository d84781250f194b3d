// SPDX-License-Identifier: Apache-2.0
// A question to somebody else (http.h) that the asker does not wait for: it runs in a thread of its own, so that a server
// that hangs holds nothing up.
#pragma once

#include "control/fleet/http.h"

#include <stdbool.h>

struct inquiry;

struct inquiry_answer {
	int result;   // of http_query() or http_post()
	double value; // of a query that has one
	char error[HTTP_ERROR_BYTES];
};

// Begin a question; the texts are copied. Return NULL when memory or threads are short.
struct inquiry *inquiry_query(const char *url, const char *query);
struct inquiry *inquiry_post(const char *url, const char *body);

// Whether the answer is there, which it is after HTTP_TIMEOUT_MS at the latest; then *ret has it and the inquiry is over
// and freed.
bool inquiry_end(struct inquiry *inquiry, struct inquiry_answer *ret);

// The same, and waits for the answer.
void inquiry_wait(struct inquiry *inquiry, struct inquiry_answer *ret);
