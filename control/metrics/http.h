// SPDX-License-Identifier: Apache-2.0
// Serves metrics over HTTP on the thread of an sd-event loop: no lock, no thread, no call into the daemon from
// elsewhere. Nobody is asked for a password: listen on loopback or on a Unix socket.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct metrics_http;

// Makes the answer of one scrape.
// scope: value of ?scope=, or NULL. Returns a text that is freed with free(), and its length; NULL without memory.
typedef char *metrics_render(void *context, const char *scope, size_t *ret_length);

// Listens.
// address: "127.0.0.1:9142", "[::1]:9142" or "unix:/run/ringway/metrics.sock" (mode 0660).
// Returns 0; -EINVAL for an address that is none; or another -errno, such as -EADDRINUSE.
int metrics_http_create(sd_event *event, const char *address, metrics_render *render, void *context,
	struct metrics_http **ret);

// Closes. NULL is allowed.
void metrics_http_destroy(struct metrics_http *http);

// The port that is listened on, for tests that ask for port 0; 0 for a Unix socket.
unsigned metrics_http_port(const struct metrics_http *http);
