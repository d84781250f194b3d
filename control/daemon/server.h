// SPDX-License-Identifier: Apache-2.0
// The socket of ringwayd: the line language of control/cli/protocol.h on a Unix stream socket, in one sd-event loop.
//
// What a peer may do follows from who it is (SO_PEERCRED and its groups), never from what it says. Everything that
// it sends is bounded: line length, connections, the time of a half line, unread answers. A bad line is answered
// with its fault; the connection stays.
// Context: all functions on the thread of the event loop.
#pragma once

#include "control/cli/protocol.h"

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#define SERVER_NO_GROUP        ((gid_t)-1)
#define SERVER_CONNECTIONS_MAX 64u
#define SERVER_MESSAGE_BYTES   512u
#define SERVER_WATCH_MS        1000u
#define SERVER_LINE_TIMEOUT_MS 10000u  // from the first byte of a line to its newline
#define SERVER_IDLE_TIMEOUT_MS 300000u // without a request

enum server_role {
	SERVER_NOBODY,
	SERVER_VIEWER,   // reads
	SERVER_OPERATOR, // weights, drains, shares, rollback
	SERVER_ADMIN,    // whole configurations, what cannot be undone
};

// One request while its verb runs. The verb leaves its result or its failure here.
struct server_call {
	const struct protocol_request *request;
	uid_t uid;
	gid_t gid;
	pid_t pid;
	enum server_role role;
	void *context; // server_options.context
	// The answer. result is owned by the call; with an answer other than ANSWER_DONE it is left out.
	enum answer answer;
	json_t *result;
	json_t *details; // array of strings, or NULL
	char message[SERVER_MESSAGE_BYTES];
};

struct server_verb {
	const char *name;
	enum server_role role; // the least that may call it
	bool mutates;          // takes reason, generation and dry_run
	bool streams; // takes args.watch: runs again each SERVER_WATCH_MS until the peer goes
	void (*run)(struct server_call *call);
};

struct server_options {
	const char *path;
	mode_t mode; // of the socket, usually 0660
	gid_t group; // of the socket, or SERVER_NO_GROUP
	gid_t viewer; // groups that give a role, or SERVER_NO_GROUP; root and the daemon's own user are admins
	gid_t operators;
	gid_t admins;
	enum server_role others; // of everybody else whom the mode lets connect
	const struct server_verb *verbs;
	unsigned verb_count;
	void *context;
	unsigned connections_max;   // 0: SERVER_CONNECTIONS_MAX
	uint32_t request_bytes_max; // 0: PROTOCOL_REQUEST_BYTES_MAX
};

struct server;

// Listens. A socket that nobody listens on is replaced; a live one is refused (-EADDRINUSE).
// options: copied; verbs and context must outlive the server.
// Returns 0 or -errno.
int server_create(sd_event *event, const struct server_options *options, struct server **ret);

// Closes all connections and removes the socket. NULL is allowed.
void server_destroy(struct server *server);

// Requests of a verb that ended with an answer, since the start. verb: index in options.verbs.
uint64_t server_request_count(const struct server *server, unsigned verb, enum answer answer);

// Requests that named no verb or were none.
uint64_t server_malformed_count(const struct server *server);

unsigned server_connection_count(const struct server *server);

// Sets the failure of a call, for `return server_fail(...)` in void functions' helpers. Returns answer.
__attribute__((format(printf, 3, 4))) enum answer server_fail(
	struct server_call *call, enum answer answer, const char *format, ...);

// Adds a line to the details of a failure.
__attribute__((format(printf, 2, 3))) void server_detail(
	struct server_call *call, const char *format, ...);

// Reads arguments of a call. Each returns ANSWER_DONE, or ANSWER_USAGE with the failure set.
// Optional ones leave *ret alone when the argument is not given.
enum answer server_text(struct server_call *call, const char *name, const char **ret);
enum answer server_text_optional(struct server_call *call, const char *name, const char **ret);
enum answer server_number_optional(
	struct server_call *call, const char *name, uint64_t low, uint64_t high, uint64_t *ret);
bool server_flag(const struct server_call *call, const char *name);
