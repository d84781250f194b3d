// SPDX-License-Identifier: Apache-2.0
// Traces of selections: switched on and read through the dataplane's socket; nothing of them is kept here.
#include "control/daemon/node_private.h"

#include <errno.h>
#include <stdio.h>

int node_trace_set(struct node *node, bool enabled, unsigned shift, char *ret_text)
{
	struct ipc_trace_set request = {
		.header = {.type = IPC_TRACE_SET, .length = sizeof(request)},
		.enabled = enabled,
		.shift = shift,
	};
	struct dataplane dataplane;
	struct ipc_result reply;
	int rc = dataplane_connect(node->config->run_dir, NODE_DATAPLANE_WAIT_MS, &dataplane);

	if (rc == 0)
		rc = dataplane_call(&dataplane, &request.header, -1, &reply.header, sizeof(reply));
	if (rc == 0 && reply.result != 0) {
		rc = -(int)reply.result;
		snprintf(ret_text, NODE_TEXT_BYTES, "%.*s", (int)sizeof(reply.text), reply.text);
	} else if (rc < 0) {
		snprintf(ret_text, NODE_TEXT_BYTES, "%s", dataplane.error);
	}
	dataplane_close(&dataplane);
	return rc;
}

int node_trace_read(struct node *node, struct ipc_traces *ret, char *ret_text)
{
	struct ipc_header request = {.type = IPC_TRACE_READ, .length = sizeof(request)};
	struct dataplane dataplane;
	int rc = dataplane_connect(node->config->run_dir, NODE_DATAPLANE_WAIT_MS, &dataplane);

	if (rc == 0)
		rc = dataplane_call(&dataplane, &request, -1, &ret->header, sizeof(*ret));
	if (rc < 0)
		snprintf(ret_text, NODE_TEXT_BYTES, "%s", dataplane.error);
	dataplane_close(&dataplane);
	return rc;
}
