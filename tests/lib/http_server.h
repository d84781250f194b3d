// SPDX-License-Identifier: Apache-2.0
// A web server for tests: says one thing to everybody, or nothing.
#pragma once

#include <stddef.h>

struct http_server;

// Listens on a free port of 127.0.0.1; aborts when it cannot. Connections are taken but not answered until it is told
// what to say.
struct http_server *http_server_start(void);
void http_server_stop(struct http_server *server);

const char *http_server_url(const struct http_server *server);

// From now on answers each request with this status and body; status 0: takes it and never answers.
void http_server_say(struct http_server *server, unsigned status, const char *body);

// The same for requests whose first line has a text in it.
void http_server_say_about(
	struct http_server *server, const char *part, unsigned status, const char *body);

// The last request: its first line, and its body. At most bytes with the NUL each.
void http_server_asked(struct http_server *server, char *ret_line, char *ret_body, size_t bytes);
