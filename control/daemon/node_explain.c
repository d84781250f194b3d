// SPDX-License-Identifier: Apache-2.0
// Where a flow goes, from the snapshot alone, with the functions that the dataplane runs.
#include "control/cli/explain_snapshot.h"
#include "control/daemon/node_private.h"

void node_explain(const struct node *node, const struct flow_key *key, struct ipc_explained *ret)
{
	explain_snapshot(node->now.image.snapshot, key, ret);
}
