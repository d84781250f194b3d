// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/dataplane.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// How fast a dataplane takes an image at the least.
#define LOAD_BYTES_PER_MS (UINT64_C(32) << 10)

__attribute__((format(printf, 3, 4))) static int fail(
	struct dataplane *dataplane, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(dataplane->error, sizeof(dataplane->error), format, args);
	va_end(args);
	return code;
}

int dataplane_connect(const char *run_dir, int wait_ms, struct dataplane *ret)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length;

	*ret = (struct dataplane){.fd = -1, .wait_ms = wait_ms};
	length = snprintf(
		address.sun_path, sizeof(address.sun_path), "%s/%s", run_dir, IPC_SOCKET_NAME);
	if (length < 0 || (size_t)length >= sizeof(address.sun_path))
		return fail(ret, -ENAMETOOLONG, "the path %s/%s is too long for a socket", run_dir,
			IPC_SOCKET_NAME);
	ret->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ret->fd < 0)
		return fail(ret, -errno, "socket: %s", strerror(errno));
	if (connect(ret->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	if (errno == ENOENT || errno == ECONNREFUSED)
		fail(ret, -ENOTCONN, "ringway-dataplane does not run (nobody listens on %s)",
			address.sun_path);
	else
		fail(ret, -errno, "cannot reach ringway-dataplane on %s: %s", address.sun_path,
			strerror(errno));
	dataplane_close(ret);
	return -ENOTCONN;
}

void dataplane_close(struct dataplane *dataplane)
{
	if (dataplane->fd >= 0)
		close(dataplane->fd);
	dataplane->fd = -1;
}

static int wait_for(struct dataplane *dataplane, short events)
{
	struct pollfd poll_fd = {.fd = dataplane->fd, .events = events};
	int ready;

	do {
		ready = poll(&poll_fd, 1, dataplane->wait_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return fail(dataplane, -ETIMEDOUT, "ringway-dataplane did not answer in %d ms",
			dataplane->wait_ms);
	return ready < 0 ? fail(dataplane, -errno, "poll: %s", strerror(errno)) : 0;
}

static int message_send(struct dataplane *dataplane, const struct ipc_header *request, int fd)
{
	struct iovec vector = {.iov_base = (void *)request, .iov_len = request->length};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	int rc = wait_for(dataplane, POLLOUT);

	if (rc < 0)
		return rc;
	if (fd >= 0) {
		struct cmsghdr *part;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	}
	if (sendmsg(dataplane->fd, &message, MSG_NOSIGNAL) < 0)
		return fail(dataplane, -errno, "ringway-dataplane hung up: %s", strerror(errno));
	return 0;
}

// Which reply belongs to a request.
static uint16_t reply_type(uint16_t request)
{
	switch (request) {
	case IPC_STATUS:
		return IPC_REPLY_STATUS;
	case IPC_EXPLAIN:
		return IPC_REPLY_EXPLAIN;
	case IPC_TRACE_READ:
		return IPC_REPLY_TRACES;
	default:
		return IPC_REPLY_RESULT;
	}
}

// Takes a reply that arrived: the one that belongs to the request, or a result that says why not.
static int reply_take(struct dataplane *dataplane, const struct ipc_header *request,
	const struct ipc_header *reply, struct ipc_header *ret, size_t bytes)
{
	const struct ipc_result *result = (const void *)reply;

	if (reply->request != request->request)
		return fail(dataplane, -EPROTO, "ringway-dataplane answered another request");
	if (reply->type == reply_type(request->type) && reply->length <= bytes) {
		memcpy(ret, reply, reply->length);
		return 0;
	}
	if (reply->type == IPC_REPLY_RESULT && result->result != 0)
		return fail(dataplane, -(int)result->result, "ringway-dataplane: %.*s",
			(int)sizeof(result->text), result->text);
	return fail(dataplane, -EPROTO, "ringway-dataplane answered something else");
}

int dataplane_call(struct dataplane *dataplane, struct ipc_header *request, int fd,
	struct ipc_header *ret_reply, size_t reply_bytes)
{
	struct ipc_header *reply;
	ssize_t length;
	int rc;

	request->magic = IPC_MAGIC;
	request->version = IPC_VERSION;
	request->request = ++dataplane->request;
	rc = message_send(dataplane, request, fd);
	if (rc == 0)
		rc = wait_for(dataplane, POLLIN);
	if (rc < 0)
		return rc;
	reply = malloc(IPC_MESSAGE_BYTES_MAX);
	if (reply == NULL)
		return fail(dataplane, -ENOMEM, "out of memory");
	length = recv(dataplane->fd, reply, IPC_MESSAGE_BYTES_MAX, MSG_TRUNC);
	if (length <= 0)
		rc = fail(dataplane, -ECONNRESET, "ringway-dataplane hung up");
	else if ((size_t)length > IPC_MESSAGE_BYTES_MAX || ipc_check(reply, (size_t)length) < 0)
		rc = fail(dataplane, -EPROTO, "ringway-dataplane answers in another language");
	else
		rc = reply_take(dataplane, request, reply, ret_reply, reply_bytes);
	free(reply);
	return rc;
}

int dataplane_status(struct dataplane *dataplane, struct ipc_status *ret)
{
	struct ipc_header request = {.type = IPC_STATUS, .length = sizeof(request)};
	struct ipc_status reply;
	int rc = dataplane_call(dataplane, &request, -1, &reply.header, sizeof(reply));

	if (rc == 0)
		*ret = reply;
	return rc;
}

// Requests that are answered with a result.
static int result_call(
	struct dataplane *dataplane, struct ipc_header *request, int fd, char *ret_text)
{
	struct ipc_result reply;
	int rc = dataplane_call(dataplane, request, fd, &reply.header, sizeof(reply));

	if (rc < 0)
		return rc;
	reply.text[sizeof(reply.text) - 1] = '\0';
	snprintf(ret_text, IPC_TEXT_BYTES, "%s", reply.text);
	if (reply.result != 0)
		return fail(
			dataplane, -(int)reply.result, "ringway-dataplane refused: %s", reply.text);
	return 0;
}

int dataplane_load(
	struct dataplane *dataplane, int fd, uint64_t bytes, uint64_t generation, char *ret_text)
{
	struct ipc_load request = {
		.header = {.type = IPC_LOAD_SNAPSHOT, .length = sizeof(request)},
		.bytes = bytes,
		.generation = generation,
	};
	int wait_ms = dataplane->wait_ms, rc;

	// Checking an image and copying it for each worker takes 10 ms a MiB on a busy machine; a gigabyte of v1 rings is
	// no reason to call the dataplane absent.
	dataplane->wait_ms += (int)(bytes / LOAD_BYTES_PER_MS);
	rc = result_call(dataplane, &request.header, fd, ret_text);
	dataplane->wait_ms = wait_ms;
	return rc;
}

static int gates_send(struct dataplane *dataplane, struct ipc_gates *request, char *ret_text)
{
	request->header.type = IPC_SET_GATES;
	request->header.length = (uint32_t)(offsetof(struct ipc_gates, gates) +
		request->count * sizeof(struct ipc_gate));
	return result_call(dataplane, &request->header, -1, ret_text);
}

int dataplane_gates(struct dataplane *dataplane, const struct snapshot *snapshot, char *ret_text)
{
	struct ipc_gates *request = calloc(1, sizeof(*request));
	int rc = 0;

	if (request == NULL)
		return fail(dataplane, -ENOMEM, "out of memory");
	request->generation = snapshot->header->generation;
	for (uint32_t i = 0; i < snapshot->pool_count && rc == 0; i++) {
		const struct snapshot_pool *pool = &snapshot->pools[i];

		// Pools without a cutover have no salt, and their gate never changes.
		if (!(pool->flags & SNAPSHOT_USED) || pool->gate.salt == 0)
			continue;
		request->gates[request->count++] = (struct ipc_gate){
			.pool = i,
			.salt = pool->gate.salt,
			.word = snapshot_gate(pool),
		};
		if (request->count == IPC_GATES_MAX) {
			rc = gates_send(dataplane, request, ret_text);
			request->count = 0;
		}
	}
	if (rc == 0 && request->count > 0)
		rc = gates_send(dataplane, request, ret_text);
	free(request);
	return rc;
}

int dataplane_explain(
	struct dataplane *dataplane, const struct flow_key *key, struct ipc_explained *ret)
{
	struct ipc_explain request = {
		.header = {.type = IPC_EXPLAIN, .length = sizeof(request)}, .key = *key};
	struct ipc_explained reply;
	int rc = dataplane_call(dataplane, &request.header, -1, &reply.header, sizeof(reply));

	if (rc == 0)
		*ret = reply;
	return rc;
}
