// SPDX-License-Identifier: Apache-2.0
// One HTTP health check through the tunnel, with the project's own loader: marks a socket, wraps its packets for one
// backend, asks the virtual address, prints the answer's body.
//
//	hc_probe INTERFACE ipip|gue|gre SOURCE BACKEND VIRTUAL-ADDRESS PORT
//
// Exit codes: 0 answered, 1 not, 2 usage.
#include "bpf/hc_encap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MARK 0x5257u

static int parse(const char *text, __u8 ret[16])
{
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;

	memset(ret, 0, 16);
	if (inet_pton(family, text, ret) != 1) {
		fprintf(stderr, "hc_probe: no address: %s\n", text);
		exit(2);
	}
	return family;
}

static int parse_type(const char *text)
{
	static const char *const names[] = {"ipip", "gue", "gre"};

	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	fprintf(stderr, "hc_probe: no tunnel: %s\n", text);
	exit(2);
}

// Connects a marked socket. Returns it, or -errno.
static int connect_marked(const char *address, int port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const struct timeval patience = {.tv_sec = 5};
	const unsigned mark = MARK;
	__u8 bytes[16];
	int family = parse(address, bytes);
	int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (client < 0)
		return -errno;
	memcpy(&v6.sin6_addr, bytes, 16);
	memcpy(&v4.sin_addr, bytes, 4);
	if (setsockopt(client, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) != 0 ||
		setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
		setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
		error = -1;
	else if (family == AF_INET)
		error = connect(client, (const struct sockaddr *)&v4, sizeof(v4));
	else
		error = connect(client, (const struct sockaddr *)&v6, sizeof(v6));
	if (error == 0)
		return client;
	error = -errno;
	close(client);
	return error;
}

static int check(const char *address, int port)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	char reply[4096];
	size_t length = 0;
	ssize_t taken;
	const char *body;
	int client = connect_marked(address, port);

	if (client < 0) {
		fprintf(stderr, "hc_probe: connect: %s\n", strerror(-client));
		return 1;
	}
	if (send(client, request, sizeof(request) - 1, 0) < 0)
		fprintf(stderr, "hc_probe: send: %s\n", strerror(errno));
	while (length < sizeof(reply) - 1 &&
		(taken = recv(client, reply + length, sizeof(reply) - 1 - length, 0)) > 0)
		length += (size_t)taken;
	close(client);
	reply[length] = '\0';
	body = strstr(reply, "\r\n\r\n");
	if (strncmp(reply, "HTTP/1.1 200", 12) != 0 || body == NULL) {
		fprintf(stderr, "hc_probe: no answer\n");
		return 1;
	}
	fputs(body + 4, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct hc_tunnel tunnel = {.gue_port = htons(DECAP_GUE_PORT)};
	struct hc_encap *encap;
	int error, result;

	if (argc != 7) {
		fprintf(stderr,
			"usage: hc_probe INTERFACE ipip|gue|gre SOURCE BACKEND "
			"VIRTUAL-ADDRESS PORT\n");
		return 2;
	}
	tunnel.type = (__u8)parse_type(argv[2]);
	parse(argv[3], tunnel.source);
	tunnel.family = parse(argv[4], tunnel.destination) == AF_INET6 ? DECAP_V6 : DECAP_V4;
	error = hc_encap_open((int)if_nametoindex(argv[1]), &encap);
	if (error == 0)
		error = hc_encap_set(encap, MARK, &tunnel);
	if (error != 0) {
		fprintf(stderr, "hc_probe: %s: %s\n", argv[1], strerror(-error));
		return 1;
	}
	result = check(argv[5], atoi(argv[6]));
	error = hc_encap_close(encap);
	if (error != 0) {
		fprintf(stderr, "hc_probe: cannot detach: %s\n", strerror(-error));
		return 1;
	}
	return result;
}
