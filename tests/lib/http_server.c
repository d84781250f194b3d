// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES 8192
#define HELD_MAX      64

struct http_server {
	pthread_t thread;
	pthread_mutex_t mutex; // of all below but the descriptors
	struct said {
		char part[64];
		unsigned status;
		char body[REQUEST_BYTES];
	} usual, special; // special.part: "" when nothing is special
	char request[REQUEST_BYTES];
	int listener;
	int end; // eventfd
	int held[HELD_MAX];
	unsigned held_count;
	char url[64];
};

// Reads head and body; the body is as long as Content-Length says.
static void read_request(int peer, char *ret)
{
	size_t length = 0;

	for (;;) {
		ssize_t got = recv(peer, ret + length, REQUEST_BYTES - 1 - length, 0);

		if (got <= 0)
			break;
		length += (size_t)got;
		ret[length] = '\0';
		const char *body = strstr(ret, "\r\n\r\n"),
			   *wanted = strstr(ret, "Content-Length: ");
		size_t rest = wanted ? strtoul(wanted + 16, NULL, 10) : 0;

		if (body != NULL && strlen(body + 4) >= rest)
			break;
	}
	ret[length] = '\0';
}

static void serve(struct http_server *server, int peer)
{
	char request[REQUEST_BYTES], answer[REQUEST_BYTES + 128];
	int length;

	read_request(peer, request);
	pthread_mutex_lock(&server->mutex);
	memcpy(server->request, request, sizeof(request));
	request[strcspn(request, "\r")] = '\0';
	const struct said *said =
		server->special.part[0] != '\0' && strstr(request, server->special.part) != NULL
		? &server->special
		: &server->usual;
	bool silent = said->status == 0;

	length = snprintf(answer, sizeof(answer),
		"HTTP/1.1 %u Said\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
		said->status, strlen(said->body), said->body);
	pthread_mutex_unlock(&server->mutex);
	if (silent && server->held_count < HELD_MAX) {
		server->held[server->held_count++] = peer;
		return;
	}
	if (!silent && send(peer, answer, (size_t)length, MSG_NOSIGNAL) != length)
		printf("# the asker went away\n");
	close(peer);
}

static void *run(void *context)
{
	struct http_server *server = context;
	struct pollfd polls[] = {
		{.fd = server->end, .events = POLLIN}, {.fd = server->listener, .events = POLLIN}};

	while (poll(polls, 2, -1) > 0 && polls[0].revents == 0) {
		int peer = accept(server->listener, NULL, NULL);

		if (peer >= 0)
			serve(server, peer);
	}
	return NULL;
}

struct http_server *http_server_start(void)
{
	struct http_server *server = calloc(1, sizeof(*server));
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	if (server == NULL)
		abort();
	pthread_mutex_init(&server->mutex, NULL);
	server->end = eventfd(0, EFD_CLOEXEC);
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server->end < 0 || server->listener < 0 ||
		bind(server->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(server->listener, 16) != 0 ||
		getsockname(server->listener, (struct sockaddr *)&address, &length) != 0 ||
		pthread_create(&server->thread, NULL, run, server) != 0)
		abort();
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
	return server;
}

void http_server_stop(struct http_server *server)
{
	uint64_t one = 1;

	if (write(server->end, &one, sizeof(one)) != sizeof(one))
		abort();
	pthread_join(server->thread, NULL);
	for (unsigned i = 0; i < server->held_count; i++)
		close(server->held[i]);
	close(server->listener);
	close(server->end);
	pthread_mutex_destroy(&server->mutex);
	free(server);
}

const char *http_server_url(const struct http_server *server)
{
	return server->url;
}

void http_server_say(struct http_server *server, unsigned status, const char *body)
{
	pthread_mutex_lock(&server->mutex);
	server->usual.status = status;
	snprintf(server->usual.body, sizeof(server->usual.body), "%s", body);
	pthread_mutex_unlock(&server->mutex);
}

void http_server_say_about(
	struct http_server *server, const char *part, unsigned status, const char *body)
{
	pthread_mutex_lock(&server->mutex);
	server->special.status = status;
	snprintf(server->special.part, sizeof(server->special.part), "%s", part);
	snprintf(server->special.body, sizeof(server->special.body), "%s", body);
	pthread_mutex_unlock(&server->mutex);
}

void http_server_asked(struct http_server *server, char *ret_line, char *ret_body, size_t bytes)
{
	pthread_mutex_lock(&server->mutex);
	const char *body = strstr(server->request, "\r\n\r\n");

	snprintf(ret_line, bytes, "%.*s", (int)strcspn(server->request, "\r"), server->request);
	snprintf(ret_body, bytes, "%s", body ? body + 4 : "");
	pthread_mutex_unlock(&server->mutex);
}
