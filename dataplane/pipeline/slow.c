// SPDX-License-Identifier: Apache-2.0
// The slow cases: neighbours, echo, packets for the host, ICMP errors, fragments, packets that do not fit.
#include "common/selection.h"

#include "dataplane/packet/answer.h"
#include "dataplane/packet/discovery.h"
#include "dataplane/pipeline/pipeline_state.h"
#include "dataplane/table/neighbour_table.h"

static bool same_address(const struct ip_addr *address, const uint8_t bytes[16], uint8_t family)
{
	return address->family == family && memcmp(address->bytes, bytes, 16) == 0;
}

// Tells whether an address is one of a port's own.
static bool is_of_port(const struct pipeline_port *port, const uint8_t bytes[16], uint8_t family)
{
	for (unsigned i = 0; i < port->address_count; i++) {
		if (same_address(&port->addresses[i].address, bytes, family))
			return true;
	}
	return false;
}

static bool is_own(const struct pipeline *pipeline, const uint8_t bytes[16], uint8_t family)
{
	for (uint32_t i = 0; i < pipeline->port_count; i++) {
		if (is_of_port(&pipeline->ports[i], bytes, family))
			return true;
	}
	return false;
}

static bool is_virtual(
	const struct pipeline_worker *worker, const uint8_t bytes[16], uint8_t family)
{
	return worker->forwarding != NULL &&
		service_table_has_address(worker->forwarding->services, bytes, family);
}

static void punt(struct pipeline_worker *worker, struct packet *packet)
{
	if (worker->pipeline->has_punt)
		packet->verdict = PACKET_PUNT;
	else
		drop(packet, DROP_no_punt);
}

// Tells whether a question on this port is ours to answer: a port's own address, or a virtual one that lies on the
// port's link. Virtual addresses elsewhere are routed to us; an answer for them would be a lie on this link.
static bool answers_for(const struct pipeline_worker *worker, const struct pipeline_port *port,
	const struct ip_addr *target)
{
	if (is_of_port(port, target->bytes, target->family))
		return true;
	if (!is_virtual(worker, target->bytes, target->family))
		return false;
	for (unsigned i = 0; i < port->address_count; i++) {
		const struct pipeline_address *own = &port->addresses[i];

		if (own->address.family == target->family &&
			addr_in_prefix(target, &own->address, own->prefix_bits))
			return true;
	}
	return false;
}

static void learn(struct pipeline_worker *worker, const struct packet *packet,
	const struct discovery *message)
{
	struct neighbour_answer answer = {.port = packet->port_in,
		// RFC 826 "merge": a question tells its sender's address too. RFC 4861 section 7.2.3 likewise.
		.address = message->is_question ? message->sender : message->target,
		.overrides = message->is_question || message->overrides};

	if (!message->has_mac || answer.address.family == ADDR_NONE)
		return;
	memcpy(answer.mac, message->mac, sizeof(answer.mac));
	neighbour_table_learn(worker->pipeline->neighbours, &answer, worker->now_s);
}

void slow_discovery(struct pipeline_worker *worker, struct packet *packet)
{
	const struct pipeline_port *port = &worker->pipeline->ports[packet->port_in];
	struct discovery message;

	discovery_read(packet, &message);
	learn(worker, packet, &message);
	if (message.is_question && answers_for(worker, port, &message.target)) {
		answer_discovery(packet, port->mac);
	} else if (worker->pipeline->has_punt) {
		packet->verdict = PACKET_PUNT; // the kernel keeps its own table
	} else if (message.is_question) {
		drop(packet, DROP_not_for_us);
	} else {
		packet->verdict = PACKET_CONSUME;
	}
}

static void echo(struct pipeline_worker *worker, struct packet *packet)
{
	if (rate_limit_take(&worker->scratch->echo_limit, worker->now_ns))
		answer_echo(packet);
	else
		drop(packet, DROP_echo_rate);
}

void slow_no_service(struct pipeline_worker *worker, struct packet *packet)
{
	const struct forwarding *forwarding = worker->forwarding;
	const uint8_t *destination = packet->key.destination;
	uint8_t family = packet->key.family;
	bool is_own_address = is_own(worker->pipeline, destination, family);
	bool is_virtual_address = is_virtual(worker, destination, family);

	if ((packet->flags & PACKET_ECHO) && (is_own_address || is_virtual_address))
		echo(worker, packet);
	else if (is_virtual_address)
		drop(packet,
			packet->flags & PACKET_ICMP_ERROR ? DROP_icmp_unrelated : DROP_no_service);
	else if (is_own_address || forwarding == NULL ||
		forwarding->snapshot.header->unknown == SNAPSHOT_UNKNOWN_PUNT)
		punt(worker, packet);
	else
		drop(packet, DROP_not_for_us);
}

// Names a datagram: the flow hash, with the fragment id where ports would stand. The protocol of a later IPv6
// fragment may differ from the first one's (RFC 8200 section 4.5), so it is left out there.
static uint64_t fragment_hash(const struct pipeline_worker *worker, const struct packet *packet)
{
	struct flow_key key = packet->key;

	memcpy(&key.source_port_be, &packet->fragment_id, sizeof(packet->fragment_id));
	if (key.family == ADDR_V6)
		key.protocol = 0;
	return flow_hash(&key, &worker->forwarding->snapshot.hash_seed);
}

// Looks in this worker's table, then in the others': the kernel's and most NICs' fan-out sends the fragments of one
// datagram to one queue, but not all do.
static bool find_first_fragment(
	const struct pipeline_worker *worker, uint64_t hash, struct fragment_choice *ret)
{
	const struct pipeline *pipeline = worker->pipeline;

	if (fragment_table_find(worker->scratch->fragments, hash, worker->now_s, ret))
		return true;
	for (uint32_t i = 0; i < pipeline->worker_count; i++) {
		if (i != worker->index && pipeline->fragment_tables[i] != NULL &&
			fragment_table_find(pipeline->fragment_tables[i], hash, worker->now_s, ret))
			return true;
	}
	return false;
}

bool slow_later_fragment(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	const struct forwarding *forwarding = worker->forwarding;
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service;
	struct fragment_choice choice;

	if (!is_virtual(worker, packet->key.destination, packet->key.family)) {
		slow_no_service(worker, packet);
		return false;
	}
	packet->hash = fragment_hash(worker, packet);
	if (!find_first_fragment(worker, packet->hash, &choice) ||
		choice.service >= forwarding->snapshot.service_count ||
		!(forwarding->snapshot.services[choice.service].flags & SNAPSHOT_USED)) {
		drop(packet, DROP_fragment_unknown);
		return false;
	}
	service = &forwarding->snapshot.services[choice.service];
	burst->services[place] = service;
	burst->uses_new[place] = choice.uses_new;
	packet->service = choice.service;
	packet->backend = choice.backend;
	if (backend_serves(forwarding, choice.backend, service))
		count(worker, COUNTER_fragment_routed);
	else
		drop(packet, DROP_stale_flow_backend);
	return true;
}

void slow_first_fragment(struct pipeline_worker *worker, const struct packet *packet, bool uses_new)
{
	struct fragment_choice choice = {
		.service = packet->service, .backend = packet->backend, .uses_new = uses_new};

	fragment_table_store(
		worker->scratch->fragments, fragment_hash(worker, packet), &choice, worker->now_s);
}

bool slow_icmp_error(struct pipeline_worker *worker, struct packet *packet,
	const struct snapshot_service *service)
{
	const struct snapshot *snapshot = &worker->forwarding->snapshot;
	struct selection selection;
	uint64_t word =
		flow_table_peek(worker->flow_table, packet->hash, worker->flow_table->clock_s);

	// The router that sent the error is another source, so RSS has brought it to any worker.
	if (word == 0)
		word = select_peek_others(worker, packet->hash);
	if (word != 0 && flow_goes_on(worker->forwarding, word, service)) {
		packet->backend = flow_word_backend(word);
	} else {
		// Another node of the fleet may have the flow; every node's rings name the same owner.
		selection_pick(snapshot, service,
			selection_ring_hash(snapshot, service, &packet->key, packet->hash, NULL, 0),
			&selection);
		packet->backend = selection.backend;
	}
	if (packet->backend == SELECTION_NO_BACKEND) {
		drop(packet, DROP_all_unusable);
		return false;
	}
	count(worker, COUNTER_icmp_routed);
	return true;
}

void slow_encap_failure(
	struct pipeline_worker *worker, struct packet *packet, const struct encap_job *job)
{
	struct rate_limit *limit = &worker->scratch->error_limit;

	if (packet->verdict != PACKET_DROP)
		return;
	if (packet->reason == DROP_too_big) {
		if (!rate_limit_take(limit, worker->now_ns))
			packet->reason = DROP_too_big_silent;
		else if (!answer_too_big(packet, encap_inner_mtu(job)))
			rate_limit_add(limit, 1);
	} else if (packet->reason == DROP_ttl_expired && answer_error_allowed(packet) &&
		rate_limit_take(limit, worker->now_ns)) {
		answer_time_exceeded(packet);
	}
}
