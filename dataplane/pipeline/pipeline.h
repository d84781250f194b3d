// SPDX-License-Identifier: Apache-2.0
// The pipeline: a burst of packets in, a verdict for each out. Read this first.
//
//	parse -> hash -> classify -> flow table -> select -> encap -> next hop
//
// Each stage is one function over the whole burst, so that memory is prefetched for all packets before it is needed
// for the first. Nothing here allocates, locks, logs, or makes a system call.
//
// The life of a worker, as io and replay drive it:
//
//	pipeline_init()                  once, after ports are set
//	pipeline_worker_init()           once a worker
//	forwarding_build()               main, for each worker and snapshot
//	loop: pipeline_burst()           with forwarding, now_s and now_ns set
//	      ... send, and set the verdict of what could not be sent ...
//	      pipeline_book_sent()
//	      pipeline_housekeep()       now and then, also when idle
#pragma once

#include "common/ipc.h"
#include "common/snapshot.h"
#include "common/stats.h"
#include "dataplane/packet/packet.h"

#include <stdbool.h>
#include <stddef.h>

#define PIPELINE_PORTS_MAX     16u
#define PIPELINE_ADDRESSES_MAX 16u
#define PIPELINE_WORKERS_MAX   STATS_WORKERS_MAX
#define PIPELINE_ALIGN         4096u

// Next hop of a backend that no port leads to.
#define PIPELINE_NO_ROUTE UINT32_MAX

struct flow_table;
struct fragment_table;
struct service_table;
struct neighbour_table;

// An address of a port, with the prefix that is on its link.
struct pipeline_address {
	struct ip_addr address;
	uint8_t prefix_bits;
};

// A port as the pipeline sees it. Set by main before workers start; read-only after.
struct pipeline_port {
	uint8_t mac[6];
	uint16_t mtu;  // of IP packets
	uint16_t vlan; // 1..4094: the link is tagged; 0: frames leave as they came, or untagged
	uint8_t address_count;
	struct pipeline_address addresses[PIPELINE_ADDRESSES_MAX];
	struct ip_addr gateway4; // family ADDR_NONE: none
	struct ip_addr gateway6;
};

// A backend as workers read it: half a cache line. Health and pool are checked for each packet of a known flow.
struct forwarding_backend {
	struct ip_addr address;
	uint32_t pool;
	uint32_t next_hop; // slot in the neighbour table, or PIPELINE_NO_ROUTE
	uint8_t state;     // enum snapshot_backend_state
	uint8_t port;      // that next_hop is on
	uint8_t on_link;   // next_hop is the backend itself: the L2 tunnel may be used
	uint8_t reserved;
};

_Static_assert(sizeof(struct forwarding_backend) == 32, "two a line");

// What a worker forwards by: one published version of the configuration. Built by main from an image that
// snapshot_open() accepted, in one block of the worker's own memory; freed after a grace period.
struct forwarding {
	const struct service_table *services;      // bindings, built for look-up
	const struct forwarding_backend *backends; // [snapshot.backend_count]
	uint64_t generation;
	uint64_t bytes; // of the block
	// Pools whose gate is at GATE_RECALL: main rw (forwarding_gate_set()), the worker ro. In the line of the pointers
	// above, so that a packet of a known flow learns for nothing that no pool is.
	uint32_t recall_count;
	uint32_t reserved;
	struct snapshot snapshot; // view of this worker's copy of the image
};

_Static_assert(offsetof(struct forwarding, snapshot) <= 64, "one line");

// Shared by all workers of a process.
struct pipeline {
	// main, before the workers start
	uint32_t worker_count;
	uint32_t port_count;
	struct pipeline_port ports[PIPELINE_PORTS_MAX];
	struct neighbour_table *neighbours;
	// A worker writes its own, and may read the others'.
	struct flow_table *flow_tables[PIPELINE_WORKERS_MAX];
	struct fragment_table
		*fragment_tables[PIPELINE_WORKERS_MAX]; // set by pipeline_worker_init()
	bool has_punt;                                  // a kernel port exists
	// main, at any time; workers read it once a burst (relaxed)
	uint32_t trace_sample;      // pipeline_trace_set()
	int64_t realtime_offset_ns; // CLOCK_REALTIME minus the clock of now_ns, for traces
};

// One worker. Everything in it is that worker's own, except what it points to.
struct pipeline_worker {
	struct pipeline *pipeline;
	const struct forwarding
		*forwarding; // set by io for each burst, inside an RCU reader section
	struct flow_table *flow_table;
	struct stats_worker stats;
	uint32_t index; // 0..worker_count-1
	// Set by io once a burst. now_s must go on over a restart of the process, since the flow table does
	// (CLOCK_BOOTTIME); now_ns may be any clock that does not go back.
	uint32_t now_s;
	uint64_t now_ns;
	struct pipeline_scratch
		*scratch; // fragment table, rate limits, traces; see pipeline_state.h
};

// Checks the ports and completes what follows from them. Set worker_count, ports, neighbours and has_punt before.
// Returns 0 or -EINVAL: no worker, no port, more than the limits, or an MTU below 68.
int pipeline_init(struct pipeline *pipeline);

// Bytes of a worker's own memory besides its flow table: some 700 KiB.
uint64_t pipeline_worker_footprint(void);

// Makes a worker. memory: pipeline_worker_footprint() bytes at PIPELINE_ALIGN, on the worker's NUMA node.
// flow_table: formatted or taken over. stats: of stats_worker(). Enters both tables into pipeline.
void pipeline_worker_init(struct pipeline_worker *worker, struct pipeline *pipeline, uint32_t index,
	struct flow_table *flow_table, const struct stats_worker *stats, void *memory);

// Bytes of the block that one worker needs for a snapshot: the image, the service table, the backends.
uint64_t forwarding_footprint(const struct snapshot *snapshot);

// Builds a worker's block: copies the image, makes the tables, and finds the next hop of every backend: the backend
// itself when its address is on the link of a port, else the gateway of its family on the first port that has one.
// memory: forwarding_footprint() bytes at SNAPSHOT_ALIGN. snapshot: of snapshot_open(); its service, pool and backend
// counts must not exceed those of the stats file, whose slots they index.
// Returns 0 with *ret in memory, or -ENOSPC when the neighbour table has no slot left; then memory may be freed.
// Slots are marked with the snapshot's generation: neighbour_table_collect(neighbours, generation) after the grace
// period frees those that no backend needs any more. Context: main.
int forwarding_build(void *memory, const struct snapshot *snapshot, struct pipeline *pipeline,
	struct forwarding **ret);

// Sets a gate in a worker's copy while it runs: one relaxed store of the word. pool: in use. word: gate_word_valid().
// Context: main.
void forwarding_gate_set(struct forwarding *forwarding, uint32_t pool, uint64_t word);

// Runs one burst. On return every packet has a verdict other than PACKET_PENDING; rx, flow, service, pool and backend
// counters are booked, verdicts are not.
// worker->forwarding NULL: no snapshot yet; ARP, ND and echo of the ports' own addresses are answered.
// count: 1..PACKET_BURST. Context: the worker's own core.
void pipeline_burst(struct pipeline_worker *worker, struct packet *packets, unsigned count);

// Books the verdicts of a burst, once, when io has sent it: forwarded, punted, answered, generated, and every drop. So
// rx = forwarded + punted + answered + drops holds whatever happens in between.
// io has turned PACKET_FORWARD into PACKET_DROP with tx_full where the queue was full; PACKET_PUNT into PACKET_DROP with
// punt_full; PACKET_ANSWER into PACKET_DROP with tx_full; PACKET_DROP_REPLY into PACKET_DROP, reason kept.
// packets: as pipeline_burst() left them, lengths included. Context: the worker's own core, same forwarding.
void pipeline_book_sent(
	struct pipeline_worker *worker, const struct packet *packets, unsigned count);

// Sweeps a part of the flow table, so that deadlines never wrap and half-open flows are noticed. now_s, now_ns and
// forwarding as for a burst. Call it after every poll, busy or idle: a round takes 4 s, and a call visits at most 1,024
// buckets (10 to 20 us; below 10 ns when none is due).
void pipeline_housekeep(struct pipeline_worker *worker);

// Frames of main's own: questions to neighbours.
struct pipeline_frame {
	uint8_t port;
	uint16_t length;
	uint8_t bytes[96];
};

// Writes the ARP requests and neighbour solicitations that are due. now_s: as for workers.
// Returns how many, at most capacity. io sends them and counts them as generated. Call it every 100 ms or so.
// Context: main.
unsigned pipeline_neighbour_frames(
	struct pipeline *pipeline, uint32_t now_s, struct pipeline_frame *ret, unsigned capacity);

// Writes gratuitous ARP requests and unsolicited advertisements for each address of each port; send them at start.
// index: 0, 1, 2 ... Returns false when there is no such address. Context: main.
bool pipeline_announcement_frame(
	const struct pipeline *pipeline, unsigned index, struct pipeline_frame *ret);

// Writes the report that joins the group in which neighbours ask for an IPv6 address, for each such address of each port;
// send them at start and every DISCOVERY_MEMBERSHIP_S. index: 0, 1, 2 ... over all addresses; *ret has length 0 for an
// IPv4 address. Returns false when there is no such address. Context: main.
bool pipeline_membership_frame(
	const struct pipeline *pipeline, unsigned index, struct pipeline_frame *ret);

// Turns selection traces on (1 of 2^shift new flows by flow hash, shift 0..31) or off. Context: main.
void pipeline_trace_set(struct pipeline *pipeline, bool enabled, unsigned shift);

// Takes the oldest traces of a worker. Returns how many, at most capacity; *ret_lost: traces that found no room since
// the last call. Context: main, one reader.
unsigned pipeline_trace_read(struct pipeline_worker *worker, struct ipc_trace *ret,
	unsigned capacity, uint64_t *ret_lost);

// Answers what a flow's packets get now, and why. forwarding: of any worker, kept alive by the caller.
// ret: everything but its header is filled in. Context: main.
void pipeline_explain(const struct pipeline *pipeline, const struct forwarding *forwarding,
	const struct flow_key *key, uint32_t now_s, struct ipc_explained *ret);
