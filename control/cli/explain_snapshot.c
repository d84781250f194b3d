// SPDX-License-Identifier: Apache-2.0
#include "control/cli/explain_snapshot.h"

#include "common/selection.h"

// The longest prefix wins; of two of one length, the one that names the port. The dataplane's table answers the same
// from hashes; a person who asks can wait for a walk.
static const struct snapshot_binding *find_binding(
	const struct snapshot *snapshot, const struct flow_key *key)
{
	const struct snapshot_binding *best = NULL;
	struct ip_addr address = {.family = key->family};
	unsigned best_rank = 0;

	memcpy(address.bytes, key->destination, sizeof(address.bytes));
	for (uint32_t i = 0; i < snapshot->binding_count; i++) {
		const struct snapshot_binding *binding = &snapshot->bindings[i];
		unsigned rank = 2u * binding->prefix_bits + (binding->port_be != 0) + 1;

		if (rank <= best_rank || binding->protocol != key->protocol ||
			binding->address.family != key->family ||
			(binding->port_be != 0 && binding->port_be != key->destination_port_be) ||
			!addr_in_prefix(&address, &binding->address, binding->prefix_bits))
			continue;
		best_rank = rank;
		best = binding;
	}
	return best;
}

void explain_snapshot(
	const struct snapshot *snapshot, const struct flow_key *key, struct ipc_explained *ret)
{
	const struct snapshot_binding *binding = find_binding(snapshot, key);
	const struct snapshot_service *service;
	struct selection selection;

	*ret = (struct ipc_explained){
		.verdict = IPC_EXPLAIN_NO_SERVICE,
		.flow_hash = flow_hash(key, &snapshot->hash_seed),
		.backend = SELECTION_NO_BACKEND,
		.backend_old = SELECTION_NO_BACKEND,
		.backend_new = SELECTION_NO_BACKEND,
		.generation = snapshot->header->generation,
	};
	if (binding == NULL)
		return;
	service = &snapshot->services[binding->service];
	ret->service = binding->service;
	selection_pick(snapshot, service,
		selection_ring_hash(snapshot, service, key, ret->flow_hash, NULL, 0), &selection);
	ret->ring_hash = selection.hash.ring_old;
	ret->ring_hash_new = selection.hash.ring_new;
	ret->bucket = selection.bucket;
	ret->threshold = snapshot_threshold(&snapshot->pools[service->pool]);
	ret->uses_new = selection.uses_new;
	ret->backend = selection.backend;
	selection_pick_both(
		snapshot, service, selection.hash, &ret->backend_old, &ret->backend_new);
	ret->verdict = selection.backend == SELECTION_NO_BACKEND ? IPC_EXPLAIN_NO_BACKEND
								 : IPC_EXPLAIN_FORWARD;
}

const char *explain_why(const struct ipc_explained *explained)
{
	if (explained->verdict == IPC_EXPLAIN_NO_SERVICE)
		return "no service has this address, protocol and port";
	if (explained->verdict == IPC_EXPLAIN_NO_BACKEND)
		return "no backend of the ring may get new flows";
	if (explained->table_recalled)
		return "the flow table has this flow from the new ring, and a rollback moves those: "
		       "it picks again";
	if (explained->in_table && explained->table_backend == explained->backend)
		return "the flow table has this flow, so it keeps its backend";
	if (explained->in_table)
		return "the flow table has this flow, but its backend is gone or down: it picks again";
	if (explained->uses_new)
		return "new flow; its bucket is below the threshold: the new ring picks";
	if (explained->threshold > 0)
		return "new flow; its bucket is not below the threshold: the old ring picks";
	return "new flow; no part of the flows takes a new ring: the old ring picks";
}

const char *explain_verdict_name(uint32_t verdict)
{
	static const char *const names[] = {[IPC_EXPLAIN_FORWARD] = "forward",
		[IPC_EXPLAIN_NO_SERVICE] = "no_service",
		[IPC_EXPLAIN_NO_BACKEND] = "no_backend"};

	return verdict <= IPC_EXPLAIN_NO_BACKEND ? names[verdict] : "unknown";
}

const char *explain_state_name(uint8_t state)
{
	static const char *const names[] = {[SNAPSHOT_BACKEND_FREE] = "free",
		[SNAPSHOT_BACKEND_UP] = "up",
		[SNAPSHOT_BACKEND_DRAIN] = "drain",
		[SNAPSHOT_BACKEND_DOWN] = "down"};

	return state <= SNAPSHOT_BACKEND_DOWN ? names[state] : "unknown";
}
