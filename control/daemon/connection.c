// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES        65536u
#define PEER_GROUPS_MAX   256u
#define TIMER_ACCURACY_US 50000u

struct buffer {
	char *bytes;
	size_t used;
	size_t size;
};

struct connection {
	struct server *server;
	struct connection *previous;
	struct connection *next;
	int socket;
	sd_event_source *io;
	sd_event_source *timer; // line and idle timeout, or the next run of a watched verb
	struct buffer in;
	struct buffer out;
	size_t scanned; // bytes of in that hold no newline
	bool closing;   // closes once out is empty
	// Peer
	uid_t uid;
	gid_t gid;
	pid_t pid;
	enum server_role role;
	// A watched request, while there is one
	bool watching;
	const struct server_verb *verb;
	struct protocol_request watched;
};

static int buffer_reserve(struct buffer *buffer, size_t more)
{
	size_t size = buffer->size;
	char *bytes;

	if (size - buffer->used >= more)
		return 0;
	size = (buffer->used + more) * 2;
	bytes = realloc(buffer->bytes, size);
	if (bytes == NULL)
		return -ENOMEM;
	buffer->bytes = bytes;
	buffer->size = size;
	return 0;
}

static void buffer_drop(struct buffer *buffer, size_t count)
{
	buffer->used -= count;
	memmove(buffer->bytes, buffer->bytes + count, buffer->used);
	// A large configuration must not keep its memory for the life of an idle connection.
	if (buffer->used == 0 && buffer->size > 4 * READ_BYTES) {
		free(buffer->bytes);
		*buffer = (struct buffer){0};
	}
}

enum server_role connection_role(
	const struct server_options *options, uid_t uid, const gid_t *groups, unsigned group_count)
{
	enum server_role role = options->others;

	if (uid == 0 || uid == geteuid())
		return SERVER_ADMIN;
	for (unsigned i = 0; i < group_count; i++) {
		enum server_role given = SERVER_NOBODY;

		if (groups[i] == options->admins && groups[i] != SERVER_NO_GROUP)
			given = SERVER_ADMIN;
		else if (groups[i] == options->operators && groups[i] != SERVER_NO_GROUP)
			given = SERVER_OPERATOR;
		else if (groups[i] == options->viewer && groups[i] != SERVER_NO_GROUP)
			given = SERVER_VIEWER;
		if (given > role)
			role = given;
	}
	return role;
}

static int identify(struct connection *connection)
{
	gid_t groups[PEER_GROUPS_MAX + 1];
	socklen_t groups_bytes = PEER_GROUPS_MAX * sizeof(gid_t);
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	unsigned group_count = 1;

	if (getsockopt(connection->socket, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0)
		return -errno;
	connection->uid = peer.uid;
	connection->gid = peer.gid;
	connection->pid = peer.pid;
	groups[0] = peer.gid;
	// More groups than fit (ERANGE) counts as none beside the primary one: less, never more rights.
	if (getsockopt(connection->socket, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &groups_bytes) ==
		0)
		group_count += groups_bytes / sizeof(gid_t);
	connection->role =
		connection_role(&connection->server->options, peer.uid, groups, group_count);
	return 0;
}

static void arm(struct connection *connection, uint64_t ms)
{
	sd_event_source_set_time_relative(connection->timer, ms * 1000);
	sd_event_source_set_enabled(connection->timer, SD_EVENT_ONESHOT);
}

// Sets the timer that fits what the connection waits for.
static void rearm(struct connection *connection)
{
	if (connection->watching)
		arm(connection, SERVER_WATCH_MS);
	else
		arm(connection,
			connection->in.used ? SERVER_LINE_TIMEOUT_MS : SERVER_IDLE_TIMEOUT_MS);
}

static void want_events(struct connection *connection)
{
	uint32_t events = connection->out.used ? EPOLLOUT : 0;

	// While answers are unread, no more requests are taken: a peer that does not read cannot fill memory.
	if (!connection->closing && !connection->out.used)
		events |= EPOLLIN;
	sd_event_source_set_io_events(connection->io, events);
}

// Sends what the socket takes. Returns 0, or -errno when the peer is gone.
static int flush(struct connection *connection)
{
	size_t sent = 0;

	while (sent < connection->out.used) {
		ssize_t count = send(connection->socket, connection->out.bytes + sent,
			connection->out.used - sent, MSG_NOSIGNAL);

		if (count < 0 && errno == EAGAIN)
			break;
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count > 0)
			sent += (size_t)count;
	}
	if (sent > 0)
		buffer_drop(&connection->out, sent);
	return 0;
}

// Queues a reply. A reply that cannot be written as JSON (bytes that are no UTF-8) becomes an error that can.
static int queue(struct connection *connection, json_t *reply)
{
	char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
	size_t length;
	int error;

	json_decref(reply);
	if (text == NULL)
		text = strdup("{\"id\":0,\"ok\":false,\"error\":{\"code\":1,\"name\":\"failed\","
			      "\"message\":\"the answer could not be written\"}}");
	if (text == NULL)
		return -ENOMEM;
	length = strlen(text);
	error = length > PROTOCOL_REPLY_BYTES_MAX ? -EMSGSIZE
						  : buffer_reserve(&connection->out, length + 1);
	if (!error) {
		memcpy(connection->out.bytes + connection->out.used, text, length);
		connection->out.bytes[connection->out.used + length] = '\n';
		connection->out.used += length + 1;
	}
	free(text);
	return error;
}

static const struct server_verb *find_verb(const struct server *server, const char *name)
{
	for (unsigned i = 0; i < server->options.verb_count; i++) {
		if (strcmp(server->options.verbs[i].name, name) == 0)
			return &server->options.verbs[i];
	}
	return NULL;
}

static const char *role_name(enum server_role role)
{
	static const char *const names[] = {"nobody", "viewer", "operator", "admin"};

	return names[role];
}

// Runs a verb and queues its answer. more: another answer will follow.
static int run_verb(struct connection *connection, const struct server_verb *verb,
	const struct protocol_request *request, bool *more)
{
	struct server *server = connection->server;
	struct server_call call = {
		.request = request,
		.uid = connection->uid,
		.gid = connection->gid,
		.pid = connection->pid,
		.role = connection->role,
		.context = server->options.context,
	};

	if (connection->role < verb->role)
		server_fail(&call, ANSWER_PERMISSION,
			"%s needs the role %s; uid %u has the role %s", verb->name,
			role_name(verb->role), (unsigned)connection->uid,
			role_name(connection->role));
	else if (!verb->mutates && request->dry_run)
		server_fail(&call, ANSWER_USAGE, "%s changes nothing, so it takes no dry_run",
			verb->name);
	else
		verb->run(&call);
	server->counts[verb - server->options.verbs].answers[call.answer]++;
	if (call.answer != ANSWER_DONE) {
		*more = false;
		json_decref(call.result);
		if (call.message[0] == '\0')
			snprintf(
				call.message, sizeof(call.message), "%s", answer_text(call.answer));
		return queue(connection,
			protocol_error(request->id, call.answer, call.message, call.details));
	}
	json_decref(call.details);
	return queue(connection, protocol_result(request->id, call.result, *more));
}

// Answers one line.
static int take_request(struct connection *connection, const char *line, size_t length)
{
	struct server *server = connection->server;
	const struct server_verb *verb;
	struct protocol_request request;
	char text[256];
	bool more;
	int error;

	if (protocol_request_parse(line, length, &request, text) != 0) {
		server->malformed_count++;
		return queue(connection, protocol_error(request.id, ANSWER_USAGE, text, NULL));
	}
	verb = find_verb(server, request.verb);
	if (verb == NULL) {
		server->malformed_count++;
		snprintf(text, sizeof(text), "no such verb: %s", request.verb);
		error = queue(connection, protocol_error(request.id, ANSWER_USAGE, text, NULL));
		protocol_request_clear(&request);
		return error;
	}
	more = verb->streams && json_is_true(json_object_get(request.args, "watch"));
	error = run_verb(connection, verb, &request, &more);
	if (!error && more) {
		connection->watching = true;
		connection->verb = verb;
		connection->watched = request; // owned by the connection from here
		return 0;
	}
	protocol_request_clear(&request);
	return error;
}

// Answers all whole lines. One that is too long is answered, and the connection closes after it: where the next
// request would start is not known.
static int take_lines(struct connection *connection)
{
	int error = 0;

	while (!error && !connection->watching && connection->in.used > connection->scanned) {
		char *start = connection->in.bytes;
		char *end = memchr(start + connection->scanned, '\n',
			connection->in.used - connection->scanned);

		if (end == NULL) {
			connection->scanned = connection->in.used;
			if (connection->in.used <= connection->server->options.request_bytes_max)
				break;
			connection->closing = true;
			return queue(connection,
				protocol_error(
					0, ANSWER_USAGE, "the request line is too long", NULL));
		}
		connection->scanned = 0;
		error = take_request(connection, start, (size_t)(end - start));
		buffer_drop(&connection->in, (size_t)(end - start) + 1);
	}
	return error;
}

// Reads once. Returns 0, or -errno when the peer is gone.
static int receive(struct connection *connection)
{
	ssize_t count;
	int error = buffer_reserve(&connection->in, READ_BYTES);

	if (error)
		return error;
	count = recv(connection->socket, connection->in.bytes + connection->in.used, READ_BYTES, 0);
	if (count == 0)
		return -ECONNRESET;
	if (count < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	// While a verb is watched the peer has nothing to say; what it sends is dropped.
	if (connection->watching)
		return 0;
	bool first = connection->in.used == 0;

	connection->in.used += (size_t)count;
	error = take_lines(connection);
	// The clock of a half line starts with its first byte and is not set back by later ones.
	if (first || connection->in.used == 0 || connection->watching)
		rearm(connection);
	return error;
}

static int on_io(sd_event_source *source, int socket, uint32_t events, void *context)
{
	struct connection *connection = context;
	int error = 0;

	(void)source;
	(void)socket;
	if (events & (EPOLLERR | EPOLLHUP))
		error = events & EPOLLIN ? 0 : -ECONNRESET;
	if (!error && (events & EPOLLIN))
		error = receive(connection);
	if (!error)
		error = flush(connection);
	// Lines that waited behind unread answers.
	if (!error && !connection->out.used && !connection->closing && connection->in.used) {
		error = take_lines(connection);
		if (!error)
			error = flush(connection);
	}
	if (error || (connection->closing && !connection->out.used))
		connection_destroy(connection);
	else
		want_events(connection);
	return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct connection *connection = context;
	bool more = true;
	int error = 0;

	(void)source;
	(void)usec;
	if (!connection->watching) {
		connection_destroy(connection);
		return 0;
	}
	// A watcher that does not read misses runs instead of piling them up.
	if (connection->out.used == 0)
		error = run_verb(connection, connection->verb, &connection->watched, &more);
	if (!error)
		error = flush(connection);
	if (!more) {
		connection->watching = false;
		protocol_request_clear(&connection->watched);
	}
	if (error) {
		connection_destroy(connection);
		return 0;
	}
	rearm(connection);
	want_events(connection);
	return 0;
}

int connection_create(struct server *server, int socket)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	int error;

	if (connection == NULL)
		return -ENOMEM;
	connection->server = server;
	connection->socket = socket;
	error = identify(connection);
	if (!error)
		error = sd_event_add_io(
			server->event, &connection->io, socket, EPOLLIN, on_io, connection);
	if (error >= 0)
		error = sd_event_add_time_relative(server->event, &connection->timer,
			CLOCK_MONOTONIC, SERVER_IDLE_TIMEOUT_MS * UINT64_C(1000), TIMER_ACCURACY_US,
			on_time, connection);
	if (error < 0) {
		sd_event_source_disable_unref(connection->io);
		free(connection);
		return error;
	}
	connection->next = server->connections;
	if (connection->next != NULL)
		connection->next->previous = connection;
	server->connections = connection;
	server->connection_count++;
	return 0;
}

void connection_destroy(struct connection *connection)
{
	struct server *server = connection->server;

	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	server->connection_count--;
	sd_event_source_disable_unref(connection->io);
	sd_event_source_disable_unref(connection->timer);
	close(connection->socket);
	if (connection->watching)
		protocol_request_clear(&connection->watched);
	free(connection->in.bytes);
	free(connection->out.bytes);
	free(connection);
}
