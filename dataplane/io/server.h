// SPDX-License-Identifier: Apache-2.0
// The socket on which ringwayd talks to the dataplane (common/ipc.h). Served by main alone; no worker is ever asked.
#pragma once

#include "dataplane/io/dataplane.h"

#define SERVER_CLIENTS_MAX 16u

struct server;

// Opens <run_dir>/dataplane.sock, mode 0600. An old socket is replaced: the run directory is locked, so it is dead.
// Returns 0 or -errno.
int server_open(struct server **ret, struct dataplane *dataplane);

// A descriptor that is readable when there is something to do, for poll().
int server_fd(const struct server *server);

// Accepts, reads and answers what is there, without waiting. A peer that is neither root nor the owner of the run
// directory is turned away; a message of a wrong length, kind or number of descriptors closes its connection.
void server_serve(struct server *server);

// Closes all connections and removes the socket. NULL is allowed.
void server_close(struct server *server);
