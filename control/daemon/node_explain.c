// SPDX-License-Identifier: Apache-2.0
// Where a flow goes, from the snapshot alone, with the functions that the dataplane runs.
#include "common/selection.h"
#include "control/daemon/node_private.h"

#include <string.h>

// The longest prefix wins; of two of one length, the one that names the port. The dataplane's table answers the
// same from hashes; a person who asks can wait for a walk.
static const struct snapshot_binding *binding_find(
	const struct snapshot *snapshot, const struct flow_key *key)
{
	const struct snapshot_binding *best = NULL;
	struct ip_addr address = {.family = key->family};
	unsigned best_rank = 0;

	memcpy(address.bytes, key->destination, sizeof(address.bytes));
	for (uint32_t i = 0; i < snapshot->binding_count; i++) {
		const struct snapshot_binding *b = &snapshot->bindings[i];
		unsigned rank = 2u * b->prefix_bits + (b->port_be != 0) + 1;

		if (b->protocol != key->protocol || b->address.family != key->family ||
			(b->port_be != 0 && b->port_be != key->destination_port_be) ||
			!addr_in_prefix(&address, &b->address, b->prefix_bits))
			continue;
		if (rank > best_rank) {
			best_rank = rank;
			best = b;
		}
	}
	return best;
}

static uint32_t ring_pick(const struct snapshot *snapshot, uint32_t index, uint32_t ring_hash)
{
	uint32_t owner;

	if (index == SNAPSHOT_NO_RING)
		return SELECTION_NO_BACKEND;
	owner = ring_lookup(&snapshot->rings[index], ring_hash);
	return owner == RING_NO_OWNER ? SELECTION_NO_BACKEND
				      : ring_member(&snapshot->rings[index], owner);
}

void node_explain(const struct node *node, const struct flow_key *key, struct ipc_explained *ret)
{
	const struct snapshot *snapshot = node->now.image.snapshot;
	const struct snapshot_binding *binding = binding_find(snapshot, key);
	const struct snapshot_service *service;
	struct selection selection;

	memset(ret, 0, sizeof(*ret));
	ret->generation = snapshot->header->generation;
	ret->flow_hash = flow_hash(key, &snapshot->hash_seed);
	ret->backend = ret->backend_old = ret->backend_new = SELECTION_NO_BACKEND;
	if (binding == NULL) {
		ret->verdict = IPC_EXPLAIN_NO_SERVICE;
		return;
	}
	service = &snapshot->services[binding->service];
	ret->service = binding->service;
	ret->ring_hash = selection_ring_hash(snapshot, service, key, ret->flow_hash, NULL, 0);
	selection_pick(snapshot, service, ret->ring_hash, &selection);
	ret->bucket = selection.bucket;
	ret->threshold = snapshot_threshold(&snapshot->pools[service->pool]);
	ret->uses_new = selection.uses_new;
	ret->backend = selection.backend;
	ret->backend_old = ring_pick(snapshot, service->ring_old, ret->ring_hash);
	ret->backend_new = ring_pick(snapshot, service->ring_new, ret->ring_hash);
	ret->verdict = selection.backend == SELECTION_NO_BACKEND ? IPC_EXPLAIN_NO_BACKEND
								 : IPC_EXPLAIN_FORWARD;
}
