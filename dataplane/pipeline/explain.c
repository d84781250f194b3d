// SPDX-License-Identifier: Apache-2.0
// What main asks of the pipeline: explanations, traces, questions to neighbours.
#include "common/selection.h"

#include "dataplane/packet/discovery.h"
#include "dataplane/pipeline/pipeline_state.h"
#include "dataplane/table/neighbour_table.h"

void pipeline_trace_set(struct pipeline *pipeline, bool enabled, unsigned shift)
{
	uint32_t sample = enabled ? (shift > 31 ? 31 : shift) + 1 : 0;

	__atomic_store_n(&pipeline->trace_sample, sample, __ATOMIC_RELAXED);
}

unsigned pipeline_trace_read(struct pipeline_worker *worker, struct ipc_trace *ret,
	unsigned capacity, uint64_t *ret_lost)
{
	return trace_ring_pop(&worker->scratch->traces, ret, capacity, ret_lost);
}

// Enters what the flow tables say, and whose backend it is that packets get.
static void explain_table(const struct pipeline *pipeline, const struct forwarding *forwarding,
	uint32_t now_s, struct ipc_explained *ret)
{
	const struct snapshot_service *service = &forwarding->snapshot.services[ret->service];
	struct flow_idle idle = service_idle(service);

	for (uint32_t i = 0; i < pipeline->worker_count && !ret->in_table; i++) {
		uint64_t word;

		if (pipeline->flow_tables[i] == NULL)
			continue;
		word = flow_table_peek(pipeline->flow_tables[i], ret->flow_hash, now_s);
		if (word == 0)
			continue;
		uint32_t idle_s = flow_idle_s(flow_word_state(word), &idle);
		uint32_t life_s = idle_s + flow_word_granule_s(idle_s);
		uint32_t remaining_s = flow_word_remaining_s(word, now_s);

		ret->in_table = 1;
		ret->table_worker = i;
		ret->table_backend = flow_word_backend(word);
		ret->table_age_s = life_s > remaining_s ? life_s - remaining_s : 0;
		ret->table_recalled = is_recalled(forwarding, word, service);
		if (flow_goes_on(forwarding, word, service))
			ret->backend = ret->table_backend;
	}
}

void pipeline_explain(const struct pipeline *pipeline, const struct forwarding *forwarding,
	const struct flow_key *key, uint32_t now_s, struct ipc_explained *ret)
{
	const struct snapshot *snapshot = &forwarding->snapshot;
	struct ipc_header header = ret->header;
	const struct snapshot_service *service;
	struct selection selection;

	*ret = (struct ipc_explained){.header = header,
		.verdict = IPC_EXPLAIN_NO_SERVICE,
		.service = service_table_find(forwarding->services, key),
		.backend_old = SELECTION_NO_BACKEND,
		.backend_new = SELECTION_NO_BACKEND,
		.backend = SELECTION_NO_BACKEND,
		.flow_hash = flow_hash(key, &snapshot->hash_seed),
		.generation = forwarding->generation};
	if (ret->service == SERVICE_NONE)
		return;
	service = &snapshot->services[ret->service];
	selection_pick(snapshot, service,
		selection_ring_hash(snapshot, service, key, ret->flow_hash, NULL, 0), &selection);
	ret->ring_hash = selection.hash.ring_old;
	ret->ring_hash_new = selection.hash.ring_new;
	ret->bucket = selection.bucket;
	ret->uses_new = selection.uses_new;
	ret->threshold = snapshot_threshold(&snapshot->pools[service->pool]);
	selection_pick_both(
		snapshot, service, selection.hash, &ret->backend_old, &ret->backend_new);
	ret->backend = selection.backend;
	if (!(service->flags & SNAPSHOT_SERVICE_STATELESS))
		explain_table(pipeline, forwarding, now_s, ret);
	ret->verdict =
		ret->backend == SELECTION_NO_BACKEND ? IPC_EXPLAIN_NO_BACKEND : IPC_EXPLAIN_FORWARD;
}

// The port's own address to ask from: on the neighbour's link if there is one, else any of the family.
static const struct ip_addr *sender_for(
	const struct pipeline_port *port, const struct ip_addr *neighbour)
{
	const struct ip_addr *any = NULL;

	for (unsigned i = 0; i < port->address_count; i++) {
		const struct pipeline_address *own = &port->addresses[i];

		if (own->address.family != neighbour->family)
			continue;
		if (addr_in_prefix(neighbour, &own->address, own->prefix_bits))
			return &own->address;
		any = &own->address;
	}
	return any;
}

unsigned pipeline_neighbour_frames(
	struct pipeline *pipeline, uint32_t now_s, struct pipeline_frame *ret, unsigned capacity)
{
	struct neighbour_request request;
	unsigned count = 0;

	while (count < capacity &&
		neighbour_table_due(pipeline->neighbours, now_s, &request, 1) == 1) {
		const struct pipeline_port *port = &pipeline->ports[request.port];
		const struct ip_addr *sender = sender_for(port, &request.address);
		struct discovery_message message = {.target = request.address, .vlan = port->vlan};

		// Without an address of the family nobody could answer us.
		if (sender == NULL)
			continue;
		message.sender = *sender;
		memcpy(message.mac, port->mac, sizeof(message.mac));
		message.neighbour_mac = request.known ? request.mac : NULL;
		ret[count].port = request.port;
		ret[count].length = (uint16_t)discovery_write_question(
			ret[count].bytes, sizeof(ret[count].bytes), &message);
		count += ret[count].length > 0;
	}
	return count;
}

// What a port says about its address number index, counted over all ports. Returns false when there is none.
static bool own_message(const struct pipeline *pipeline, unsigned index,
	struct discovery_message *ret, uint8_t *ret_port)
{
	for (uint32_t i = 0; i < pipeline->port_count; i++) {
		const struct pipeline_port *port = &pipeline->ports[i];

		if (index >= port->address_count) {
			index -= port->address_count;
			continue;
		}
		*ret = (struct discovery_message){
			.sender = port->addresses[index].address, .vlan = port->vlan};
		memcpy(ret->mac, port->mac, sizeof(ret->mac));
		*ret_port = (uint8_t)i;
		return true;
	}
	return false;
}

bool pipeline_announcement_frame(
	const struct pipeline *pipeline, unsigned index, struct pipeline_frame *ret)
{
	struct discovery_message message;

	if (!own_message(pipeline, index, &message, &ret->port))
		return false;
	ret->length =
		(uint16_t)discovery_write_announcement(ret->bytes, sizeof(ret->bytes), &message);
	return true;
}

bool pipeline_membership_frame(
	const struct pipeline *pipeline, unsigned index, struct pipeline_frame *ret)
{
	struct discovery_message message;

	if (!own_message(pipeline, index, &message, &ret->port))
		return false;
	ret->length =
		(uint16_t)discovery_write_membership(ret->bytes, sizeof(ret->bytes), &message);
	return true;
}
