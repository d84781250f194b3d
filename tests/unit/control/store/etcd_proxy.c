// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/control/store/etcd_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int dial(unsigned short port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

// Passes bytes both ways until one side ends. Returns whether an answer was lost on purpose.
static bool pass(int client, int server, const char *words, bool lost)
{
	struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
	bool lose = false;
	char bytes[65536];

	for (;;) {
		poll(fds, 2, -1);
		bool from_client = (fds[0].revents & (POLLIN | POLLHUP)) != 0;
		ssize_t length = read(from_client ? client : server, bytes, sizeof(bytes) - 1);

		if (length <= 0)
			return false;
		bytes[length] = '\0';
		if (from_client && !lost && strstr(bytes, words) != NULL)
			lose = true;
		if (!from_client && lose)
			return true;
		if (write(from_client ? server : client, bytes, (size_t)length) != length)
			return false;
	}
}

static void run(int listener, unsigned short port, const char *words, const char *then)
{
	bool lost = false;

	for (;;) {
		int client = accept(listener, NULL, NULL), server = dial(port);

		if (client >= 0 && server >= 0 && pass(client, server, words, lost)) {
			lost = true;
			if (then != NULL && system(then) != 0)
				_exit(1);
		}
		close(client);
		close(server);
	}
}

int etcd_proxy_start(
	struct etcd_proxy *proxy, unsigned short port, const char *words, const char *then)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 8) != 0 ||
		getsockname(listener, (struct sockaddr *)&address, &length) != 0)
		return -1;
	snprintf(proxy->url, sizeof(proxy->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
	fflush(stdout);
	proxy->pid = fork();
	if (proxy->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		run(listener, port, words, then);
	}
	close(listener);
	return proxy->pid > 0 ? 0 : -1;
}

void etcd_proxy_stop(struct etcd_proxy *proxy)
{
	kill(proxy->pid, SIGKILL);
	waitpid(proxy->pid, NULL, 0);
}
