// SPDX-License-Identifier: Apache-2.0
// A client of ringway-dataplane's socket, for tests: says what it is told to, right or wrong.
#pragma once

#include "common/ipc.h"

#include <sys/types.h>

// Connects to <run_dir>/dataplane.sock; waits for it for at most 20 s. Returns a descriptor, or -errno.
int client_connect(const char *run_dir);

// A memfd that holds an image. seals: of fcntl(F_ADD_SEALS), 0 for none. Returns a descriptor; aborts on failure.
int client_memfd(const void *image, uint64_t bytes, int seals);

// The seals that the dataplane asks for.
int client_seals(void);

// Sends a message with count descriptors, as it is. Returns 0 or -errno.
int client_send(int fd, const void *message, size_t bytes, const int *descriptors, unsigned count);

// Waits for an answer, at most 20 s. Returns its length, 0 when the dataplane closed the connection, or -errno.
ssize_t client_receive(int fd, void *ret, size_t capacity);

// Fills in a header.
void client_header(struct ipc_header *ret, enum ipc_type type, size_t bytes);

// Whole exchanges. Return 0, or -errno when no answer of the right kind came.
int client_status(int fd, struct ipc_status *ret);
int client_load(int fd, const void *image, uint64_t bytes, struct ipc_result *ret);
int client_gate(int fd, uint64_t generation, const struct ipc_gate *gate, struct ipc_result *ret);
