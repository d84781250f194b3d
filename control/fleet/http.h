// SPDX-License-Identifier: Apache-2.0
// What the conductor asks of others: Prometheus for a figure, a hook for a yes. Bounded in time and bytes.
#pragma once

#define HTTP_TIMEOUT_MS  3000u
#define HTTP_ERROR_BYTES 128u

// Runs an instant query. url: base of a Prometheus ("http://prometheus:9090").
// Returns 0 and the one value; -ENODATA: the query has no value, several, or one that is no number; -EPROTO: not an
// answer; -EIO: no answer. ret_error: a sentence for all but 0.
int http_query(const char *url, const char *query, double *ret, char *ret_error);

// Sends JSON with a POST. Returns the status of the answer, or -EIO and a sentence when there is none.
int http_post(const char *url, const char *body, char *ret_error);
