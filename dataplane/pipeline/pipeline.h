// SPDX-License-Identifier: Apache-2.0
// The pipeline: a burst of packets in, a verdict for each out. Read this first.
//
//	parse -> classify -> hash -> flow table -> select -> encap -> next hop
//
// Each stage is one function over the whole burst, so that memory is prefetched for all packets before it is needed
// for the first. Nothing here allocates, locks, logs, or makes a system call.
#pragma once

#include "common/snapshot.h"
#include "common/stats.h"
#include "dataplane/packet/packet.h"

#include <stdbool.h>

#define PIPELINE_PORTS_MAX     16u
#define PIPELINE_ADDRESSES_MAX 16u
#define PIPELINE_WORKERS_MAX   STATS_WORKERS_MAX

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
	uint16_t mtu; // of IP packets
	uint8_t address_count;
	struct pipeline_address addresses[PIPELINE_ADDRESSES_MAX];
	struct ip_addr gateway4; // family ADDR_NONE: none
	struct ip_addr gateway6;
};

// What a worker forwards by: one published version of the configuration. Built by main from an image that
// snapshot_open() accepted, in one block of the worker's own memory; freed after a grace period.
struct forwarding {
	struct snapshot snapshot;            // view of this worker's copy of the image
	struct service_table *service_table; // bindings, built for look-up
	uint32_t *backend_next_hop;          // [backend_count]: index in the neighbour table
};

// Shared by all workers of a process.
struct pipeline {
	uint32_t worker_count;
	uint32_t port_count;
	struct pipeline_port ports[PIPELINE_PORTS_MAX];
	struct neighbour_table *neighbours;
	struct flow_table *flow_tables
		[PIPELINE_WORKERS_MAX]; // a worker writes its own, and may read the others'
	bool has_punt;                  // a kernel port exists
};

// One worker. Everything in it is that worker's own, except what it points to.
struct pipeline_worker {
	const struct pipeline *pipeline;
	const struct forwarding
		*forwarding; // set by io for each burst, inside an RCU reader section
	struct flow_table *flow_table;
	struct fragment_table *fragments;
	struct stats_worker stats;
	uint32_t index;  // 0..worker_count-1
	uint32_t now_s;  // seconds, monotonic across a restart of the process (flow-table ages)
	uint64_t now_ns; // set by io once a burst
	// rate limits, the trace ring and scratch: pipeline's own, see pipeline.c
	struct pipeline_scratch *scratch;
};

// Runs one burst. On return every packet has a verdict other than PACKET_PENDING, and the counters of rx, drops and
// answers are booked; forwarded, punted and tx drops are booked by io when it knows (pipeline_book_sent()).
// count: 1..PACKET_BURST. Context: the worker's own core.
void pipeline_burst(struct pipeline_worker *worker, struct packet *packets, unsigned count);
