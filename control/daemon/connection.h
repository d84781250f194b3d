// SPDX-License-Identifier: Apache-2.0
// One peer of the server, and what the server itself holds. For server.c and connection.c alone.
#pragma once

#include "control/daemon/server.h"

struct server_counts {
	uint64_t answers[ANSWER_COUNT];
};

struct server {
	sd_event *event;
	sd_event_source *source;
	int socket;
	bool bound; // the path is ours to remove
	struct server_options options;
	struct connection *connections; // a list, newest first
	unsigned connection_count;
	struct server_counts *counts; // for each verb
	uint64_t malformed_count;
};

// Takes an accepted socket over. Returns 0 or -errno; on failure the socket is still the caller's.
int connection_create(struct server *server, int socket);

// Closes a connection and forgets it.
void connection_destroy(struct connection *connection);

// The role of a peer: its own user, then the strongest of its groups that gives one.
// groups: group_count of them, the primary one included.
enum server_role connection_role(
	const struct server_options *options, uid_t uid, const gid_t *groups, unsigned group_count);
