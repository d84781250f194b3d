// SPDX-License-Identifier: Apache-2.0
// What a worker keeps between bursts, and what its stages hand to each other within one. Private to this folder.
#pragma once

#include "dataplane/packet/encap.h"
#include "dataplane/pipeline/pipeline.h"
#include "dataplane/pipeline/rate_limit.h"
#include "dataplane/pipeline/trace_ring.h"
#include "dataplane/table/flow_table.h"
#include "dataplane/table/fragment_table.h"
#include "dataplane/table/service_table.h"

// Answers a second and worker, and how many at once: enough for every honest sender, too few for an amplifier.
#define PIPELINE_ECHO_RATE   1000u
#define PIPELINE_ERROR_RATE  1000u
#define PIPELINE_BURST_LIMIT 100u

// Both rings are asked for 1 of 2^3 new flows while a cutover is staged: a tenth of the cost of asking always, and
// 0.1 % of sampling error within a million new flows.
#define PIPELINE_SHADOW_SHIFT 3u

// A round over the flow table, and buckets that one call visits at most (10 to 20 us).
#define PIPELINE_SWEEP_NS          UINT64_C(4000000000)
#define PIPELINE_SWEEP_BUCKETS_MAX 1024u

// Look-ups in other workers' tables: a flood of unknown flows is worth so many a second, each flow that was found
// there PIPELINE_REMOTE_REWARD more, so that a change of the RSS table is followed at full speed.
#define PIPELINE_REMOTE_RATE   100000u
#define PIPELINE_REMOTE_MAX    8192u
#define PIPELINE_REMOTE_REWARD 64u

// Bytes of a QUIC connection ID that choose a backend: servers give IDs of one length, mostly this or more, and a short
// header does not say how long its ID is (RFC 9000 section 17.3).
#define PIPELINE_QUIC_ID_BYTES 8u

// One burst on its way. Arrays are indexed by the packet's place in the burst, lists hold such places.
struct burst {
	struct packet *packets;
	unsigned count;

	// hash: packets that may have a service by address, protocol and port
	unsigned candidate_count;
	uint8_t candidates[PACKET_BURST];
	const struct flow_key *keys[PACKET_BURST]; // by place in candidates

	// classify: packets of a service
	unsigned flow_count;
	uint8_t flows[PACKET_BURST];
	const struct snapshot_service *services[PACKET_BURST];

	// later fragments, which follow their first ones after selection
	unsigned late_count;
	uint8_t late[PACKET_BURST];

	// flow table
	unsigned stateful_count;
	uint8_t stateful[PACKET_BURST];
	struct flow_entry entries[PACKET_BURST]; // by place in stateful
	uint8_t events[PACKET_BURST];            // enum flow_event
	bool uses_new[PACKET_BURST];

	// to be selected: misses of the flow table, and packets of stateless services
	unsigned miss_count;
	uint8_t misses[PACKET_BURST];

	struct encap_job jobs[PACKET_BURST];
};

struct pipeline_scratch {
	struct fragment_table *fragments;
	uint64_t generation; // of the forwarding that the flow table was adopted for
	struct rate_limit echo_limit;
	struct rate_limit error_limit;
	struct rate_limit remote_limit;
	uint64_t sweep_ns;   // when the sweep was last brought up to date
	uint64_t sweep_live; // entries seen since the round began
	// The same by pool id, for those that were picked on the new ring; and how many pools were counted for.
	uint32_t sweep_live_new[SNAPSHOT_POOLS_MAX];
	uint32_t sweep_pool_count;
	struct encap_port encap_ports[PIPELINE_PORTS_MAX];
	struct burst burst;
	struct trace_ring traces;
};

// Counters are plain words of the stats file; one writer, so no atomics.
static inline void count(const struct pipeline_worker *worker, enum counter counter)
{
	worker->stats.counter[counter]++;
}

static inline void drop(struct packet *packet, enum drop_reason reason)
{
	packet->verdict = PACKET_DROP;
	packet->reason = (uint8_t)reason;
}

// Tells whether a flow of a service may go on with a backend: in use, of the service's pool, not down. A draining one
// keeps its flows.
static inline bool backend_serves(const struct forwarding *forwarding, uint32_t backend,
	const struct snapshot_service *service)
{
	if (backend >= forwarding->snapshot.backend_count)
		return false;
	const struct forwarding_backend *entry = &forwarding->backends[backend];

	return entry->pool == service->pool &&
		(entry->state == SNAPSHOT_BACKEND_UP || entry->state == SNAPSHOT_BACKEND_DRAIN);
}

// Tells whether a flow is to pick again although its backend serves: it is on the new ring, and the pool's gate is at
// GATE_RECALL. word: of its entry.
static inline bool is_recalled(
	const struct forwarding *forwarding, uint64_t word, const struct snapshot_service *service)
{
	return __builtin_expect(
		       __atomic_load_n(&forwarding->recall_count, __ATOMIC_RELAXED) != 0, 0) &&
		flow_word_uses_new(word) &&
		snapshot_gate(&forwarding->snapshot.pools[service->pool]) == GATE_RECALL;
}

// Tells whether a flow may go on as its entry says.
static inline bool flow_goes_on(
	const struct forwarding *forwarding, uint64_t word, const struct snapshot_service *service)
{
	return backend_serves(forwarding, flow_word_backend(word), service) &&
		!is_recalled(forwarding, word, service);
}

static inline struct flow_idle service_idle(const struct snapshot_service *service)
{
	struct flow_idle idle = {
		.syn_s = service->idle_syn_s,
		.established_s = service->idle_established_s,
		.closing_s = service->idle_closing_s,
		.udp_s = service->idle_udp_s,
	};

	return idle;
}

// Tells whether a flow belongs to a sample of 1 in 2^shift, shift 0..31: the same flows on every node.
static inline bool is_sampled(uint64_t flow_hash_value, unsigned shift)
{
	return shift == 0 || (uint32_t)flow_hash_value >> (32 - shift) == 0;
}

// The slow cases (slow.c). Each sets the verdict, or leaves the packet pending with service and backend set.

// ARP and ND: answers questions for our addresses, learns what neighbours say.
void slow_discovery(struct pipeline_worker *worker, struct packet *packet);

// Everything for no service: echo, packets for the host, ports without a service.
void slow_no_service(struct pipeline_worker *worker, struct packet *packet);

// A later fragment: the way of its first one. Returns true when it is of a service.
bool slow_later_fragment(struct pipeline_worker *worker, struct burst *burst, unsigned place);

// Remembers where a first fragment goes.
void slow_first_fragment(
	struct pipeline_worker *worker, const struct packet *packet, bool uses_new);

// An ICMP error about a flow of this service: to the backend that owns the flow. Returns true when backend is set.
bool slow_icmp_error(struct pipeline_worker *worker, struct packet *packet,
	const struct snapshot_service *service);

// Answers a packet that encapsulation dropped, when its reason calls for an answer and the limit allows one.
void slow_encap_failure(
	struct pipeline_worker *worker, struct packet *packet, const struct encap_job *job);

// Selection (select.c).

// Picks for all packets of burst->misses, and stores their flows.
void select_burst(struct pipeline_worker *worker, struct burst *burst);

// Picks again for a flow that may not go on as its entry says. A flow that is recalled stays where it is while the old
// ring has nobody. Returns false when no backend serves; the packet is dropped.
bool select_again(struct pipeline_worker *worker, struct burst *burst, unsigned place,
	struct flow_entry *entry);

// Books an early abort of a flow.
void select_book_abort(struct pipeline_worker *worker, uint32_t pool, bool uses_new);

// Looks for a flow in the tables of the other workers. Returns its word or 0.
uint64_t select_peek_others(const struct pipeline_worker *worker, uint64_t hash);

// QUIC (quic.c).

// The bytes of a connection ID that choose a backend; length 0: the packet shows none that a server chose.
struct quic_id {
	const uint8_t *bytes;
	size_t length;
};

// The ID of a packet, for a service with FLOW_AFFINITY_QUIC; none for others.
struct quic_id quic_id_of(struct packet *packet, const struct snapshot_service *service);

// Takes the backend that a packet's connection ID is known to belong to, for a flow that is not known: a client that has
// moved. Returns false when it is not known either.
bool quic_follow(struct pipeline_worker *worker, struct burst *burst, unsigned place);

// Remembers that a packet's connection ID belongs to the backend of its flow.
void quic_learn(struct pipeline_worker *worker, struct burst *burst, unsigned place);
