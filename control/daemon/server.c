// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/server.h"

#include "control/daemon/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Requests that wait in the kernel while 64 connections are served.
#define BACKLOG 32

// Says why a peer is not served, and closes its socket.
static int refuse(int socket, const char *message)
{
	json_t *reply = protocol_error(0, ANSWER_FAILED, message, NULL);
	char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

	if (text != NULL) {
		// Best effort: the peer may not read, and we do not wait for it.
		send(socket, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
		send(socket, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	free(text);
	json_decref(reply);
	close(socket);
	return 0;
}

static int accept_one(sd_event_source *source, int socket, uint32_t events, void *context)
{
	struct server *server = context;
	int peer = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)source;
	(void)events;
	if (peer < 0)
		return 0; // gone again, or out of descriptors: the next wake-up tries again
	if (server->connection_count >= server->options.connections_max)
		return refuse(peer, "too many connections; try again later");
	if (connection_create(server, peer) != 0)
		return refuse(peer, "out of memory");
	return 0;
}

// Tells whether somebody listens on a socket path.
static bool is_live(const struct sockaddr_un *address)
{
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool live;

	if (probe < 0)
		return false;
	live = connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		errno == EAGAIN;
	close(probe);
	return live;
}

static int bind_socket(struct server *server, const struct sockaddr_un *address)
{
	const struct server_options *options = &server->options;
	struct stat info;

	if (lstat(options->path, &info) == 0) {
		if (!S_ISSOCK(info.st_mode))
			return -EEXIST;
		if (is_live(address))
			return -EADDRINUSE;
		if (unlink(options->path) != 0)
			return -errno;
	}
	// Nobody connects between bind and chmod: the socket does not listen yet.
	if (bind(server->socket, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return -errno;
	server->bound = true;
	if (options->group != SERVER_NO_GROUP &&
		chown(options->path, (uid_t)-1, options->group) != 0)
		return -errno;
	if (chmod(options->path, options->mode) != 0 || listen(server->socket, BACKLOG) != 0)
		return -errno;
	return 0;
}

static int open_socket(struct server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(server->options.path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, server->options.path, strlen(server->options.path) + 1);
	server->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->socket < 0)
		return -errno;
	return bind_socket(server, &address);
}

static int copy_options(struct server *server, const struct server_options *options)
{
	server->options = *options;
	if (server->options.connections_max == 0)
		server->options.connections_max = SERVER_CONNECTIONS_MAX;
	if (server->options.request_bytes_max == 0)
		server->options.request_bytes_max = PROTOCOL_REQUEST_BYTES_MAX;
	server->options.path = strdup(options->path);
	server->counts = calloc(options->verb_count, sizeof(server->counts[0]));
	return server->options.path && server->counts ? 0 : -ENOMEM;
}

int server_create(sd_event *event, const struct server_options *options, struct server **ret)
{
	struct server *server = calloc(1, sizeof(*server));
	int error;

	if (server == NULL)
		return -ENOMEM;
	server->socket = -1;
	server->event = sd_event_ref(event);
	error = copy_options(server, options);
	if (!error)
		error = open_socket(server);
	if (!error)
		error = sd_event_add_io(
			event, &server->source, server->socket, EPOLLIN, accept_one, server);
	if (error < 0) {
		server_destroy(server);
		return error;
	}
	*ret = server;
	return 0;
}

void server_destroy(struct server *server)
{
	if (server == NULL)
		return;
	while (server->connections != NULL)
		connection_destroy(server->connections);
	sd_event_source_disable_unref(server->source);
	if (server->socket >= 0)
		close(server->socket);
	if (server->bound)
		unlink(server->options.path);
	sd_event_unref(server->event);
	free((char *)server->options.path);
	free(server->counts);
	free(server);
}

uint64_t server_request_count(const struct server *server, unsigned verb, enum answer answer)
{
	return server->counts[verb].answers[answer];
}

uint64_t server_malformed_count(const struct server *server)
{
	return server->malformed_count;
}

unsigned server_connection_count(const struct server *server)
{
	return server->connection_count;
}
