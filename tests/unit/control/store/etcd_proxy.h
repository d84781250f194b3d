// SPDX-License-Identifier: Apache-2.0
// A connection to etcd that loses an answer: the request is done, nobody hears of it.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct etcd_proxy {
	char url[64];
	pid_t pid;
};

// Starts a process between a client and the member that listens on 127.0.0.1:port, without TLS. Of the first request
// that has `words` in it the answer is lost; `then`, a command for the shell or NULL, runs before the client sees the
// connection end. Returns 0 or -1.
int etcd_proxy_start(
	struct etcd_proxy *proxy, unsigned short port, const char *words, const char *then);
void etcd_proxy_stop(struct etcd_proxy *proxy);
