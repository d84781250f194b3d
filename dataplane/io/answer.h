// SPDX-License-Identifier: Apache-2.0
// What each message of ringwayd does. Messages come here checked for shape by ipc_check().
#pragma once

#include "dataplane/io/dataplane.h"

// Room for the longest answer.
union answer {
	struct ipc_header header;
	struct ipc_result result;
	struct ipc_status status;
	struct ipc_explained explained;
	struct ipc_traces traces;
};

// Carries out a request and writes its answer, complete with header.
// descriptor: that came with the message, -1 for none; stays the caller's.
// Returns 0, or -EPROTO when the message may not be answered: close the connection.
int answer_request(struct dataplane *dataplane, const struct ipc_header *request, int descriptor,
	union answer *ret);
