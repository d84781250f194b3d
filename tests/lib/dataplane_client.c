// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/dataplane_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000

int client_connect(const char *run_dir)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" IPC_SOCKET_NAME, run_dir);
	for (int waited = 0; waited < WAIT_MS; waited += 5) {
		if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
			return fd;
		nanosleep(&pause, NULL);
	}
	close(fd);
	return -ETIMEDOUT;
}

int client_seals(void)
{
	return F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
}

int client_memfd(const void *image, uint64_t bytes, int seals)
{
	int fd = memfd_create("image", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes ||
		(seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
		abort();
	return fd;
}

int client_send(int fd, const void *message, size_t bytes, const int *descriptors, unsigned count)
{
	char control[CMSG_SPACE(16 * sizeof(int))] = {0};
	struct iovec part = {(void *)(uintptr_t)message, bytes};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0) {
		struct cmsghdr *rights;

		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -errno;
}

ssize_t client_receive(int fd, void *ret, size_t capacity)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	ssize_t length;

	if (poll(&wait, 1, WAIT_MS) != 1)
		return -ETIMEDOUT;
	length = recv(fd, ret, capacity, 0);
	// A peer that closes with our message unread resets the connection.
	return length < 0 && errno != ECONNRESET ? -errno : length < 0 ? 0 : length;
}

void client_header(struct ipc_header *ret, enum ipc_type type, size_t bytes)
{
	static uint32_t request;

	*ret = (struct ipc_header){.magic = IPC_MAGIC,
		.version = IPC_VERSION,
		.type = (uint16_t)type,
		.length = (uint32_t)bytes,
		.request = ++request};
}

static int exchange(
	int fd, const struct ipc_header *request, int descriptor, void *ret, size_t bytes)
{
	struct ipc_header header;
	int result = client_send(fd, request, request->length, &descriptor, descriptor >= 0);

	if (result != 0)
		return result;
	if (client_receive(fd, ret, bytes) != (ssize_t)bytes || ipc_check(ret, bytes) != 0)
		return -EPROTO;
	memcpy(&header, ret, sizeof(header));
	return header.request == request->request ? 0 : -EPROTO;
}

int client_status(int fd, struct ipc_status *ret)
{
	struct ipc_header request;

	client_header(&request, IPC_STATUS, sizeof(request));
	return exchange(fd, &request, -1, ret, sizeof(*ret));
}

int client_load(int fd, const void *image, uint64_t bytes, struct ipc_result *ret)
{
	const struct snapshot_header *header = image;
	struct ipc_load request = {.bytes = bytes, .generation = header->generation};
	int descriptor = client_memfd(image, bytes, client_seals()), result;

	client_header(&request.header, IPC_LOAD_SNAPSHOT, sizeof(request));
	result = exchange(fd, &request.header, descriptor, ret, sizeof(*ret));
	close(descriptor);
	return result;
}

int client_gate(int fd, uint64_t generation, const struct ipc_gate *gate, struct ipc_result *ret)
{
	struct ipc_gates request;

	memset(&request, 0, offsetof(struct ipc_gates, gates));
	client_header(
		&request.header, IPC_SET_GATES, offsetof(struct ipc_gates, gates) + sizeof(*gate));
	request.generation = generation;
	request.count = 1;
	request.gates[0] = *gate;
	return exchange(fd, &request.header, -1, ret, sizeof(*ret));
}
