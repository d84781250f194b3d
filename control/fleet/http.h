// SPDX-License-Identifier: Apache-2.0
// What the conductor asks of others: Prometheus for a figure, a hook for a yes. Bounded in time and bytes.
#pragma once

#define HTTP_TIMEOUT_MS  3000u
#define HTTP_ERROR_BYTES 128u

// Runs an instant query. url: base of a Prometheus ("http://prometheus:9090").
// Returns 0 and the one value; -ENODATA: the query has no value, several, or one that is no number; -EPROTO: not an
// answer; -EIO: no answer. ret_error: a sentence for all but 0.
int http_query(const char *url, const char *query, double *ret, char *ret_error);

// Asks a hook with a POST of JSON. Returns 1 for an answer of 200 to 299, 0 for another, -EIO for none.
int http_confirm(const char *url, const char *body, char *ret_error);
