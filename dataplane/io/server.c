// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/server.h"

#include "dataplane/io/answer.h"
#include "dataplane/io/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Messages that one wake-up serves, so that a busy client cannot keep main from its housekeeping.
#define MESSAGES_MAX 64

// Descriptors that a message may bring before the kernel cuts them: one is wanted, more are seen and refused.
#define DESCRIPTORS_MAX 4

struct server {
	struct dataplane *dataplane;
	int epoll;
	int listener;
	uint32_t client_count;
	int clients[SERVER_CLIENTS_MAX];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	union {
		struct ipc_header header;
		uint8_t bytes[IPC_MESSAGE_BYTES_MAX +
			1]; // one more, so that a longer message shows
	} request;
	union answer answer;
};

static int watch(struct server *server, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int listen_on(struct server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int result;

	memcpy(address.sun_path, server->path, sizeof(address.sun_path));
	unlink(server->path);
	// The mode must be right from the first moment, so it is the mask that sets it.
	mask = umask(0177);
	result = bind(server->listener, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (result != 0 || listen(server->listener, SERVER_CLIENTS_MAX) != 0)
		return -errno;
	return watch(server, server->listener);
}

static int open_all(struct server *server, const char *run_dir)
{
	if ((size_t)snprintf(server->path, sizeof(server->path), "%s/" IPC_SOCKET_NAME, run_dir) >=
		sizeof(server->path))
		return -ENAMETOOLONG;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		return -errno;
	server->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listener < 0)
		return -errno;
	return listen_on(server);
}

int server_open(struct server **ret, struct dataplane *dataplane)
{
	struct server *server = calloc(1, sizeof(*server));
	int result;

	if (server == NULL)
		return -ENOMEM;
	server->dataplane = dataplane;
	server->epoll = -1;
	server->listener = -1;
	result = open_all(server, dataplane->options->run_dir);
	if (result != 0) {
		server_close(server);
		return result;
	}
	*ret = server;
	return 0;
}

int server_fd(const struct server *server)
{
	return server->epoll;
}

static void drop_client(struct server *server, int fd)
{
	for (uint32_t i = 0; i < server->client_count; i++) {
		if (server->clients[i] == fd) {
			server->clients[i] = server->clients[--server->client_count];
			close(fd); // leaves the epoll set as well
			return;
		}
	}
}

// Root, or whom the run directory belongs to; that may have changed since start (--user).
static bool may_talk(const struct server *server, uid_t uid)
{
	struct stat info;

	return uid == 0 ||
		(stat(server->dataplane->options->run_dir, &info) == 0 && uid == info.st_uid);
}

static void accept_client(struct server *server)
{
	int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t length = sizeof(peer);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
		!may_talk(server, peer.uid)) {
		log_warning("socket: uid %u may not talk to the dataplane", peer.uid);
		close(fd);
		return;
	}
	if (server->client_count == SERVER_CLIENTS_MAX || watch(server, fd) != 0) {
		log_warning("socket: more than %u clients", SERVER_CLIENTS_MAX);
		close(fd);
		return;
	}
	server->clients[server->client_count++] = fd;
}

// Takes the descriptors out of a message. Returns the one that came, -1 for none, -EPROTO (all closed) for more.
static int take_descriptor(struct msghdr *message)
{
	int found[DESCRIPTORS_MAX], count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
		part = CMSG_NXTHDR(message, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int) && count < DESCRIPTORS_MAX; i++)
			memcpy(&found[count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
	}
	if (count <= 1 && !(message->msg_flags & MSG_CTRUNC))
		return count == 1 ? found[0] : -1;
	while (count > 0)
		close(found[--count]);
	return -EPROTO;
}

// Reads one message. Returns its length with *ret_descriptor; 0 at the end, -EAGAIN when there is none yet, or -errno.
static ssize_t receive(struct server *server, int fd, int *ret_descriptor)
{
	char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	struct iovec part = {&server->request, sizeof(server->request)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int descriptor;

	if (length < 0)
		return -errno;
	descriptor = take_descriptor(&message);
	if (descriptor == -EPROTO)
		return -EPROTO;
	*ret_descriptor = descriptor;
	return length;
}

// Serves one message. Returns 0, -EAGAIN when there is none, else the connection is to be closed.
static int serve_message(struct server *server, int fd)
{
	int descriptor = -1, result;
	ssize_t length = receive(server, fd, &descriptor);

	if (length <= 0)
		return length < 0 ? (int)length : -ECONNRESET;
	result = ipc_check(&server->request, (size_t)length);
	if (result == 0)
		result = answer_request(
			server->dataplane, &server->request.header, descriptor, &server->answer);
	if (descriptor >= 0)
		close(descriptor);
	if (result != 0) {
		log_warning(
			"socket: a message of %zd bytes is refused: %s", length, strerror(-result));
		return result;
	}
	// A client that does not read its answers loses its connection, not our time.
	if (send(fd, &server->answer, server->answer.header.length, MSG_DONTWAIT | MSG_NOSIGNAL) <
		0)
		return -ECONNRESET;
	return 0;
}

static void serve_client(struct server *server, int fd)
{
	for (int i = 0; i < MESSAGES_MAX; i++) {
		int result = serve_message(server, fd);

		if (result == -EAGAIN || result == -EINTR)
			return;
		if (result != 0) {
			drop_client(server, fd);
			return;
		}
	}
}

void server_serve(struct server *server)
{
	struct epoll_event events[SERVER_CLIENTS_MAX + 1];
	int count = epoll_wait(server->epoll, events, SERVER_CLIENTS_MAX + 1, 0);

	for (int i = 0; i < count; i++) {
		if (events[i].data.fd == server->listener)
			accept_client(server);
		else
			serve_client(server, events[i].data.fd);
	}
}

void server_close(struct server *server)
{
	if (server == NULL)
		return;
	while (server->client_count > 0)
		drop_client(server, server->clients[0]);
	if (server->listener >= 0) {
		close(server->listener);
		unlink(server->path);
	}
	if (server->epoll >= 0)
		close(server->epoll);
	free(server);
}
