// SPDX-License-Identifier: Apache-2.0
// The client side of common/ipc.h: one exchange with ringway-dataplane at a time.
#pragma once

#include "common/ipc.h"

#define DATAPLANE_ERROR_BYTES 512u

struct dataplane {
	int fd;
	uint32_t request;
	int wait_ms;
	char error[DATAPLANE_ERROR_BYTES]; // of the last call that failed: a sentence for people
};

// Connects. wait_ms: longest time of each exchange.
// Returns 0; -ENOTCONN when nobody listens, or another -errno.
int dataplane_connect(const char *run_dir, int wait_ms, struct dataplane *ret);
void dataplane_close(struct dataplane *dataplane);

// Sends a request and reads the reply of the type that belongs to it.
// request: its header's type and length are set; magic, version and number are filled in. fd: descriptor, or -1.
// Returns 0; -EPROTO for an answer that is none, -ETIMEDOUT, or another -errno.
int dataplane_call(struct dataplane *dataplane, struct ipc_header *request, int fd,
	struct ipc_header *ret_reply, size_t reply_bytes);

int dataplane_status(struct dataplane *dataplane, struct ipc_status *ret);

// Loads the sealed memfd. Returns 0 once all workers use it; the negative of the reason when it was refused.
// ret_text (IPC_TEXT_BYTES): what the dataplane said.
int dataplane_load(
	struct dataplane *dataplane, int fd, uint64_t bytes, uint64_t generation, char *ret_text);

// Sets all gates of a snapshot that are not as they should be. snapshot: with the wanted thresholds.
int dataplane_gates(struct dataplane *dataplane, const struct snapshot *snapshot, char *ret_text);

int dataplane_explain(
	struct dataplane *dataplane, const struct flow_key *key, struct ipc_explained *ret);
