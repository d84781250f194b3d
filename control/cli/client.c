// SPDX-License-Identifier: Apache-2.0
#include "control/cli/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES 65536u

int client_open(const char *path, struct client *ret)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int error;

	*ret = (struct client){.socket = -1};
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	ret->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret->socket < 0)
		return -errno;
	if (connect(ret->socket, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	error = -errno;
	client_close(ret);
	return error;
}

int client_send(struct client *client, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t sent = 0, length;
	int error = 0;

	if (text == NULL)
		return -ENOMEM;
	length = strlen(text);
	text[length++] = '\n'; // takes the place of the NUL: what is sent has a length
	while (sent < length && !error) {
		ssize_t count = send(client->socket, text + sent, length - sent, MSG_NOSIGNAL);

		if (count >= 0)
			sent += (size_t)count;
		else if (errno != EINTR)
			error = -errno;
	}
	free(text);
	return error;
}

// Takes the first line out of the buffer. Returns false when no whole line is there.
static bool take_line(struct client *client, json_t **ret)
{
	char *end = client->used ? memchr(client->buffer, '\n', client->used) : NULL;
	size_t length;

	if (end == NULL)
		return false;
	length = (size_t)(end - client->buffer);
	*ret = json_loadb(client->buffer, length, 0, NULL);
	client->used -= length + 1;
	memmove(client->buffer, end + 1, client->used);
	return true;
}

static int read_more(struct client *client, int timeout_ms)
{
	struct pollfd waiting = {.fd = client->socket, .events = POLLIN};

	if (client->bytes - client->used < READ_BYTES) {
		size_t bytes = client->bytes * 2 + READ_BYTES;

		if (client->used > PROTOCOL_REPLY_BYTES_MAX)
			return -EMSGSIZE;
		char *buffer = realloc(client->buffer, bytes);

		if (buffer == NULL)
			return -ENOMEM;
		client->buffer = buffer;
		client->bytes = bytes;
	}
	int ready = poll(&waiting, 1, timeout_ms);

	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (ready == 0)
		return -ETIMEDOUT;
	ssize_t count = recv(client->socket, client->buffer + client->used, READ_BYTES, 0);

	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	if (count == 0)
		return -ECONNRESET;
	client->used += (size_t)count;
	return 0;
}

int client_receive(struct client *client, int timeout_ms, json_t **ret)
{
	json_t *reply = NULL;
	int error = 0;

	while (!take_line(client, &reply)) {
		error = read_more(client, timeout_ms);
		if (error)
			return error;
	}
	if (!json_is_object(reply) || !json_is_boolean(json_object_get(reply, "ok"))) {
		json_decref(reply);
		return -EPROTO;
	}
	*ret = reply;
	return 0;
}

void client_close(struct client *client)
{
	if (client->socket >= 0)
		close(client->socket);
	free(client->buffer);
	*client = (struct client){.socket = -1};
}
