// SPDX-License-Identifier: Apache-2.0
// The stages of a burst, in order. Rare packets leave the way early, for slow.c; new flows are picked in select.c.
#include "dataplane/pipeline/pipeline.h"

#include "dataplane/packet/parse.h"
#include "dataplane/pipeline/pipeline_state.h"
#include "dataplane/table/neighbour_table.h"

#include <netinet/in.h>

// Packets that are parsed before their buckets are asked for: the requests are spread over the work of parsing
// instead of stalling together, 0.5 to 1 ns a packet at a million flows.
#define PIPELINE_STRIDE 8u

// Once a burst: the clock, and the flow table's identity when the configuration changed.
static void begin(struct pipeline_worker *worker, const struct packet *packets, unsigned count)
{
	struct pipeline_scratch *scratch = worker->scratch;
	const struct forwarding *forwarding = worker->forwarding;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += packets[i].length;
	worker->stats.counter[COUNTER_rx_packets] += count;
	worker->stats.counter[COUNTER_rx_bytes] += bytes;
	flow_table_tick(worker->flow_table, worker->now_s);
	if (forwarding != NULL && forwarding->generation != scratch->generation) {
		struct flow_identity identity;

		memcpy(identity.id_space, forwarding->snapshot.header->id_space,
			sizeof(identity.id_space));
		memcpy(identity.hash_seed, forwarding->snapshot.header->hash_seed,
			sizeof(identity.hash_seed));
		flow_table_adopt(worker->flow_table, &identity);
		scratch->generation = forwarding->generation;
	}
}

// Tells whether (address, protocol, port) can name a service. ICMP errors are looked up by the flow they quote.
static bool is_classifiable(const struct packet *packet)
{
	return (packet->flags & (PACKET_ARP | PACKET_ND | PACKET_FRAGMENT_LATER)) == 0 &&
		(packet->key.protocol == IPPROTO_TCP || packet->key.protocol == IPPROTO_UDP);
}

// Packets that belong to no service by their ports: settled here. Later fragments wait for their first one, which is mostly
// in the same burst.
static void classify_rest(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	struct packet *packet = &burst->packets[place];

	if (packet->verdict == PACKET_PUNT && !worker->pipeline->has_punt)
		drop(packet, DROP_no_punt);
	if (packet->verdict != PACKET_PENDING)
		return;
	if (packet->flags & (PACKET_ARP | PACKET_ND))
		slow_discovery(worker, packet);
	else if (!(packet->flags & PACKET_FRAGMENT_LATER))
		slow_no_service(worker, packet);
	else
		burst->late[burst->late_count++] = (uint8_t)place;
}

// Hashes the keys of packets that may have a service, and asks for their buckets of the flow table: services are looked
// up in the meantime. That order saves 4 ns a packet at a million flows.
static void hash(struct pipeline_worker *worker, struct burst *burst, unsigned first, unsigned past)
{
	const struct forwarding *forwarding = worker->forwarding;

	for (unsigned i = first; i < past; i++) {
		struct packet *packet = &burst->packets[i];

		packet->service = SERVICE_NONE;
		if (packet->verdict != PACKET_PENDING || forwarding == NULL ||
			!is_classifiable(packet)) {
			classify_rest(worker, burst, i);
			continue;
		}
		packet->hash = flow_hash(&packet->key, &forwarding->snapshot.hash_seed);
		flow_table_prefetch(worker->flow_table, packet->hash);
		burst->keys[burst->candidate_count] = &packet->key;
		burst->candidates[burst->candidate_count++] = (uint8_t)i;
	}
}

static enum flow_event event_of(const struct packet *packet)
{
	if (packet->key.protocol == IPPROTO_UDP)
		return FLOW_EVENT_UDP;
	if ((packet->flags & (PACKET_SYN | PACKET_FIN | PACKET_RST)) == 0)
		return FLOW_EVENT_DATA;
	if (packet->flags & PACKET_RST)
		return FLOW_EVENT_RST;
	return packet->flags & PACKET_SYN ? FLOW_EVENT_SYN : FLOW_EVENT_FIN;
}

// A packet of a service: to the flow table, to the ring alone, or after its flow.
static void sort(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service =
		&worker->forwarding->snapshot.services[packet->service];

	burst->services[place] = service;
	burst->events[place] = (uint8_t)event_of(packet);
	burst->uses_new[place] = false;
	burst->flows[burst->flow_count++] = (uint8_t)place;
	if (packet->flags & PACKET_ICMP_ERROR)
		slow_icmp_error(worker, packet, service);
	else if (service->flags & SNAPSHOT_SERVICE_STATELESS)
		burst->misses[burst->miss_count++] = (uint8_t)place;
	else
		burst->stateful[burst->stateful_count++] = (uint8_t)place;
}

// Gives each packet its service.
static void classify(struct pipeline_worker *worker, struct burst *burst)
{
	uint32_t found[PACKET_BURST];

	if (burst->candidate_count == 0)
		return;
	service_table_find_burst(
		worker->forwarding->services, burst->keys, burst->candidate_count, found);
	for (unsigned n = 0; n < burst->candidate_count; n++) {
		struct packet *packet = &burst->packets[burst->candidates[n]];

		packet->service = found[n];
		if (found[n] != SERVICE_NONE)
			sort(worker, burst, burst->candidates[n]);
		else
			slow_no_service(worker, packet);
	}
}

// Takes the backend that a flow has. Returns false when the flow must be selected for.
static bool follow(struct pipeline_worker *worker, struct burst *burst, unsigned place,
	struct flow_entry *entry)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];
	enum flow_event event = (enum flow_event)burst->events[place];
	struct flow_idle idle = service_idle(service);

	if (entry->slot == NULL)
		return false;
	flow_table_reload(entry);
	if (flow_word_restarts(entry->word, event))
		return false;
	count(worker, COUNTER_flow_hit);
	if (flow_goes_on(worker->forwarding, entry->word, service)) {
		packet->backend = flow_word_backend(entry->word);
		burst->uses_new[place] = flow_word_uses_new(entry->word);
	} else if (!select_again(worker, burst, place, entry)) {
		return true;
	}
	if (flow_table_is_settled(worker->flow_table, entry->word, event, &idle))
		return true;
	if (flow_table_advance(worker->flow_table, entry, event, &idle))
		select_book_abort(worker, service->pool, burst->uses_new[place]);
	if (service->affinity == FLOW_AFFINITY_QUIC)
		quic_learn(worker, burst, place);
	return true;
}

// Asks for a backend's record and its counters, one loop before they are needed. With 2,048 backends both are
// random lines of the second-level cache. The address may lie beyond the arrays; a prefetch does not mind.
static void prefetch_backend(const struct pipeline_worker *worker, uint64_t word)
{
	uint32_t backend = flow_word_backend(word);

	__builtin_prefetch(&worker->forwarding->backends[backend], 0, 3);
	__builtin_prefetch(&worker->stats.backends[backend], 1, 3);
}

static void look_up(struct pipeline_worker *worker, struct burst *burst)
{
	uint64_t hashes[PACKET_BURST];

	for (unsigned n = 0; n < burst->stateful_count; n++)
		hashes[n] = burst->packets[burst->stateful[n]].hash;
	flow_table_find_burst(worker->flow_table, hashes, burst->stateful_count, burst->entries);
	for (unsigned n = 0; n < burst->stateful_count; n++)
		prefetch_backend(worker, burst->entries[n].word);
	for (unsigned n = 0; n < burst->stateful_count; n++) {
		if (!follow(worker, burst, burst->stateful[n], &burst->entries[n]))
			burst->misses[burst->miss_count++] = burst->stateful[n];
	}
}

// Later fragments go the way of their first ones, once those of this burst have theirs.
static void follow_first_fragments(struct pipeline_worker *worker, struct burst *burst)
{
	for (unsigned n = 0; n < burst->flow_count; n++) {
		const struct packet *packet = &burst->packets[burst->flows[n]];

		if (packet->flags & PACKET_FRAGMENT && packet->verdict == PACKET_PENDING)
			slow_first_fragment(worker, packet, burst->uses_new[burst->flows[n]]);
	}
	for (unsigned n = 0; n < burst->late_count; n++) {
		if (slow_later_fragment(worker, burst, burst->late[n]))
			burst->flows[burst->flow_count++] = burst->late[n];
	}
}

// Books what was chosen, by packets and bytes as they came.
static void account(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	const struct packet *packet = &burst->packets[place];
	struct stats_service *of_service = &worker->stats.services[packet->service];
	struct stats_pool *of_pool = &worker->stats.pools[burst->services[place]->pool];
	struct stats_backend *of_backend = &worker->stats.backends[packet->backend];

	of_service->packets++;
	of_service->bytes += packet->length;
	if (packet->verdict != PACKET_PENDING)
		return;
	of_backend->packets++;
	of_backend->bytes += packet->length;
	of_pool->packets_old += !burst->uses_new[place];
	of_pool->packets_new += burst->uses_new[place];
}

// Counts, and finds for each packet the way to its backend.
static void route(struct pipeline_worker *worker, struct burst *burst)
{
	const struct forwarding *forwarding = worker->forwarding;

	for (unsigned n = 0; n < burst->flow_count; n++) {
		unsigned i = burst->flows[n];
		struct packet *packet = &burst->packets[i];

		account(worker, burst, i);
		if (packet->verdict != PACKET_PENDING)
			continue;
		const struct forwarding_backend *backend = &forwarding->backends[packet->backend];

		if ((packet->flags & (PACKET_FRAGMENT | PACKET_FRAGMENT_LATER)) == PACKET_FRAGMENT)
			slow_first_fragment(worker, packet, burst->uses_new[i]);
		packet->next_hop = backend->next_hop;
		packet->port_out = backend->port;
		burst->jobs[i] = (struct encap_job){.service = burst->services[i],
			.destination = &backend->address,
			.port = &worker->scratch->encap_ports[backend->port]};
		if (backend->next_hop == PIPELINE_NO_ROUTE ||
			(burst->services[i]->tunnel == SNAPSHOT_TUNNEL_L2 && !backend->on_link))
			drop(packet, DROP_no_route);
	}
}

static void encapsulate(struct pipeline_worker *worker, struct burst *burst)
{
	encap_burst(burst->packets, burst->jobs, burst->count);
	for (unsigned n = 0; n < burst->flow_count; n++) {
		struct packet *packet = &burst->packets[burst->flows[n]];

		if (packet->verdict != PACKET_PENDING)
			slow_encap_failure(worker, packet, &burst->jobs[burst->flows[n]]);
	}
}

// The last stage: MAC addresses.
static void next_hop(struct pipeline_worker *worker, struct burst *burst)
{
	const uint64_t *words = neighbour_table_words(worker->pipeline->neighbours);

	for (unsigned n = 0; n < burst->flow_count; n++) {
		struct packet *packet = &burst->packets[burst->flows[n]];

		if (packet->verdict != PACKET_PENDING)
			continue;
		uint64_t mac = htole64(neighbour_word(words, packet->next_hop));

		if (mac == 0) {
			drop(packet, DROP_no_neighbour);
			continue;
		}
		encap_set_macs(packet, (const uint8_t *)&mac,
			worker->pipeline->ports[packet->port_out].mac);
		packet->verdict = PACKET_FORWARD;
	}
}

void pipeline_burst(struct pipeline_worker *worker, struct packet *packets, unsigned count)
{
	struct burst *burst = &worker->scratch->burst;

	burst->packets = packets;
	burst->count = count;
	burst->candidate_count = 0;
	burst->flow_count = 0;
	burst->late_count = 0;
	burst->stateful_count = 0;
	burst->miss_count = 0;
	begin(worker, packets, count);
	for (unsigned first = 0; first < count; first += PIPELINE_STRIDE) {
		unsigned past = first + PIPELINE_STRIDE < count ? first + PIPELINE_STRIDE : count;

		parse_burst(packets + first, past - first);
		hash(worker, burst, first, past);
	}
	classify(worker, burst);
	if (burst->flow_count + burst->late_count == 0)
		return;
	look_up(worker, burst);
	if (burst->miss_count > 0)
		select_burst(worker, burst);
	if (burst->late_count > 0)
		follow_first_fragments(worker, burst);
	route(worker, burst);
	encapsulate(worker, burst);
	next_hop(worker, burst);
}
