// SPDX-License-Identifier: Apache-2.0
// QUIC connections that change their address (RFC 9000 section 9). The connection ID that the server chose is entered in
// the flow table beside the flow, so that it leads to the same backend from any address, whatever the rings say by then.
// Only services with FLOW_AFFINITY_QUIC pay for it: one entry more a connection, one look-up more about once a second.
#include "dataplane/packet/parse.h"
#include "dataplane/pipeline/pipeline_state.h"

// Finds the ID of a packet. An ID that the client made up names no server (RFC 9000 section 7.2).
static bool find_id(
	struct packet *packet, const struct snapshot_service *service, struct quic_id *ret)
{
	if (service->affinity != FLOW_AFFINITY_QUIC || !parse_quic_id(packet) ||
		(packet->flags & PACKET_QUIC_CLIENT_ID) || packet->connection_id_length == 0)
		return false;
	ret->bytes = packet->data + packet->connection_id_offset;
	ret->length = packet->connection_id_length < PIPELINE_QUIC_ID_BYTES
		? packet->connection_id_length
		: PIPELINE_QUIC_ID_BYTES;
	return true;
}

struct quic_id quic_id_of(struct packet *packet, const struct snapshot_service *service)
{
	struct quic_id id = {NULL, 0};

	find_id(packet, service, &id);
	return id;
}

static uint64_t id_hash(const struct pipeline_worker *worker, const struct quic_id *id)
{
	return hash_bytes(id->bytes, id->length, &worker->forwarding->snapshot.hash_seed);
}

bool quic_follow(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];
	struct flow_idle idle = service_idle(service);
	struct flow_choice choice;
	struct flow_entry entry;
	struct quic_id id;
	uint64_t word;

	if (!find_id(packet, service, &id))
		return false;
	word = flow_table_peek(
		worker->flow_table, id_hash(worker, &id), worker->flow_table->clock_s);
	if (word == 0)
		word = select_peek_others(worker, id_hash(worker, &id));
	if (word == 0 || !flow_goes_on(worker->forwarding, word, service))
		return false;
	choice.backend = packet->backend = flow_word_backend(word);
	choice.uses_new = burst->uses_new[place] = flow_word_uses_new(word);
	flow_table_insert(worker->flow_table, packet->hash, FLOW_EVENT_UDP, &choice, &idle, &entry);
	count(worker, COUNTER_quic_routed);
	return true;
}

void quic_learn(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];
	struct flow_choice choice = {
		.backend = packet->backend, .uses_new = burst->uses_new[place]};
	struct flow_idle idle = service_idle(service);
	struct flow_entry entry;
	struct quic_id id;

	if (!find_id(packet, service, &id))
		return;
	if (flow_table_insert(worker->flow_table, id_hash(worker, &id), FLOW_EVENT_UDP, &choice,
		    &idle, &entry) != FLOW_INSERT_FOUND)
		return;
	// The flow is the authority: it may have been rerouted since.
	if (flow_word_backend(entry.word) != choice.backend)
		flow_table_reroute(&entry, &choice);
	flow_table_advance(worker->flow_table, &entry, FLOW_EVENT_UDP, &idle);
}
