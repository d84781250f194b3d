// SPDX-License-Identifier: Apache-2.0
// The CLI's end of the socket of ringwayd.
#pragma once

#include "control/cli/protocol.h"

struct client {
	int socket;
	char *buffer; // what arrived and was not taken yet
	size_t used;
	size_t bytes;
};

// Connects. Returns 0, or -errno of connect(); -ENAMETOOLONG when the path fits no socket address.
int client_open(const char *path, struct client *ret);

// Sends a request as one line. Returns 0 or -errno.
int client_send(struct client *client, const json_t *request);

// Waits for one reply. timeout_ms: for each wait, -1 for ever.
// Returns 0 with a new reference in *ret; -ETIMEDOUT; -ECONNRESET when ringwayd closed; -EPROTO when the line is no
// reply; -EMSGSIZE beyond PROTOCOL_REPLY_BYTES_MAX.
int client_receive(struct client *client, int timeout_ms, json_t **ret);

// Closes; harmless after a failed client_open().
void client_close(struct client *client);
