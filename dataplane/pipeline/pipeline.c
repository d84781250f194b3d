// SPDX-License-Identifier: Apache-2.0
// The stages of a burst, in order. Rare packets leave the way early, for slow.c; new flows are picked in select.c.
#include "dataplane/pipeline/pipeline.h"

#include "dataplane/packet/parse.h"
#include "dataplane/pipeline/pipeline_state.h"
#include "dataplane/table/neighbour_table.h"

#include <netinet/in.h>

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
	if (packet->flags & (PACKET_ARP | PACKET_FRAGMENT_LATER))
		return false;
	return packet->key.protocol == IPPROTO_TCP || packet->key.protocol == IPPROTO_UDP;
}

// Gives each packet its service; what has none, or needs no service, is settled here.
static void classify(struct pipeline_worker *worker, struct burst *burst)
{
	const struct forwarding *forwarding = worker->forwarding;
	const struct flow_key *keys[PACKET_BURST];
	uint32_t found[PACKET_BURST];
	uint8_t places[PACKET_BURST];
	unsigned count = 0;

	for (unsigned i = 0; i < burst->count; i++) {
		struct packet *packet = &burst->packets[i];

		packet->service = SERVICE_NONE;
		if (packet->verdict == PACKET_PUNT && !worker->pipeline->has_punt)
			drop(packet, DROP_no_punt);
		if (packet->verdict != PACKET_PENDING)
			continue;
		if (packet->flags & (PACKET_ARP | PACKET_ND)) {
			slow_discovery(worker, packet);
		} else if (packet->flags & PACKET_FRAGMENT_LATER) {
			if (slow_later_fragment(worker, burst, i))
				burst->flows[burst->flow_count++] = (uint8_t)i;
		} else if (forwarding != NULL && is_classifiable(packet)) {
			keys[count] = &packet->key;
			places[count++] = (uint8_t)i;
		} else {
			slow_no_service(worker, packet);
		}
	}
	if (count == 0)
		return;
	service_table_find_burst(forwarding->services, keys, count, found);
	for (unsigned n = 0; n < count; n++) {
		struct packet *packet = &burst->packets[places[n]];

		packet->service = found[n];
		if (found[n] == SERVICE_NONE) {
			slow_no_service(worker, packet);
			continue;
		}
		burst->services[places[n]] = &forwarding->snapshot.services[found[n]];
		burst->flows[burst->flow_count++] = places[n];
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

// Hashes the keys, and sorts the packets: flow table, ring alone, ICMP error.
static void hash(struct pipeline_worker *worker, struct burst *burst)
{
	const struct hash_seed *seed = &worker->forwarding->snapshot.hash_seed;

	for (unsigned n = 0; n < burst->flow_count; n++) {
		unsigned i = burst->flows[n];
		struct packet *packet = &burst->packets[i];

		packet->hash = flow_hash(&packet->key, seed);
		if (packet->flags & PACKET_FRAGMENT_LATER)
			continue;
		burst->uses_new[i] = false;
		burst->events[i] = (uint8_t)event_of(packet);
		if (packet->flags & PACKET_ICMP_ERROR)
			slow_icmp_error(worker, packet, burst->services[i]);
		else if (burst->services[i]->flags & SNAPSHOT_SERVICE_STATELESS)
			burst->misses[burst->miss_count++] = (uint8_t)i;
		else
			burst->stateful[burst->stateful_count++] = (uint8_t)i;
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
	if (backend_serves(worker->forwarding, flow_word_backend(entry->word), service)) {
		packet->backend = flow_word_backend(entry->word);
		burst->uses_new[place] = flow_word_uses_new(entry->word);
	} else if (!select_again(worker, burst, place, entry)) {
		return true;
	}
	if (flow_table_advance(worker->flow_table, entry, event, &idle))
		select_book_abort(worker, service->pool, burst->uses_new[place]);
	return true;
}

static void look_up(struct pipeline_worker *worker, struct burst *burst)
{
	uint64_t hashes[PACKET_BURST];

	for (unsigned n = 0; n < burst->stateful_count; n++)
		hashes[n] = burst->packets[burst->stateful[n]].hash;
	flow_table_find_burst(worker->flow_table, hashes, burst->stateful_count, burst->entries);
	for (unsigned n = 0; n < burst->stateful_count; n++) {
		if (!follow(worker, burst, burst->stateful[n], &burst->entries[n]))
			burst->misses[burst->miss_count++] = burst->stateful[n];
	}
}

// Books what was chosen, by packets and bytes as they came, and prepares encapsulation.
static void account(struct pipeline_worker *worker, struct burst *burst)
{
	const struct forwarding *forwarding = worker->forwarding;

	for (unsigned n = 0; n < burst->flow_count; n++) {
		unsigned i = burst->flows[n];
		struct packet *packet = &burst->packets[i];
		const struct snapshot_service *service = burst->services[i];
		struct stats_service *of_service = &worker->stats.services[packet->service];
		struct stats_pool *of_pool = &worker->stats.pools[service->pool];

		of_service->packets++;
		of_service->bytes += packet->length;
		if (packet->verdict != PACKET_PENDING)
			continue;
		const struct forwarding_backend *backend = &forwarding->backends[packet->backend];
		struct stats_backend *of_backend = &worker->stats.backends[packet->backend];

		of_backend->packets++;
		of_backend->bytes += packet->length;
		of_pool->packets_old += !burst->uses_new[i];
		of_pool->packets_new += burst->uses_new[i];
		if ((packet->flags & (PACKET_FRAGMENT | PACKET_FRAGMENT_LATER)) == PACKET_FRAGMENT)
			slow_first_fragment(worker, packet, burst->uses_new[i]);
		packet->next_hop = backend->next_hop;
		packet->port_out = backend->port;
		burst->jobs[i] = (struct encap_job){.service = service,
			.destination = &backend->address,
			.port = &worker->scratch->encap_ports[backend->port]};
		if (backend->next_hop == PIPELINE_NO_ROUTE ||
			(service->tunnel == SNAPSHOT_TUNNEL_L2 && !backend->on_link))
			drop(packet, DROP_no_route);
		else
			__builtin_prefetch(neighbour_table_words(worker->pipeline->neighbours) +
				backend->next_hop);
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
	burst->flow_count = 0;
	burst->stateful_count = 0;
	burst->miss_count = 0;
	begin(worker, packets, count);
	parse_burst(packets, count);
	classify(worker, burst);
	if (burst->flow_count == 0)
		return;
	hash(worker, burst);
	look_up(worker, burst);
	if (burst->miss_count > 0)
		select_burst(worker, burst);
	account(worker, burst);
	encapsulate(worker, burst);
	next_hop(worker, burst);
}
