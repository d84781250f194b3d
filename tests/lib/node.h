// SPDX-License-Identifier: Apache-2.0
// A balancer in memory: pipeline, workers and a snapshot, without a port. For tests and benchmarks.
#pragma once

#include "dataplane/pipeline/pipeline.h"
#include "tests/lib/image.h"
#include "tests/lib/packet_builder.h"

#define NODE_WORKERS_MAX 4u

// The port's addresses and gateways; every neighbour of a node is at MAC_BACKEND once node_answer_neighbours() ran.
#define NODE_ADDRESS4 "192.0.2.10"
#define NODE_ADDRESS6 "2001:db8:1::10"
#define NODE_GATEWAY4 "192.0.2.1"
#define NODE_GATEWAY6 "2001:db8:1::1"

struct node_shape {
	uint32_t workers;      // 1
	uint32_t flow_entries; // a worker; 65536
	uint16_t mtu;          // 1500
	bool has_punt;
	bool no_gateway;
	const char *address4;  // NODE_ADDRESS4, its prefix is address4_bits
	uint8_t address4_bits; // 24
};

struct node {
	struct pipeline pipeline;
	struct pipeline_worker workers[NODE_WORKERS_MAX];
	struct forwarding *forwarding[NODE_WORKERS_MAX];
	void *image; // the last one loaded
	uint64_t image_bytes;
	void *stats;
	uint32_t now_s;
};

// Makes a node without a snapshot; its clock stands at 1,000,000 s.
void node_make(struct node *node, const struct node_shape *shape);
void node_free(struct node *node);

// Takes an image of image_build(), seals it, checks it and gives it to all workers. The image becomes the node's.
void node_load(struct node *node, void *image, uint64_t bytes);

// The same after building it; node->image can be changed and loaded again with node_reload().
void node_load_shape(struct node *node, const struct image_shape *shape);

// Loads the changed node->image with the next generation.
void node_reload(struct node *node);

// Sets the gate's word of a pool on all workers, as main does.
void node_set_threshold(struct node *node, uint32_t pool, uint64_t word);

// Moves the clock; no worker keeps house.
void node_advance(struct node *node, uint32_t seconds);

// Lets a worker keep house for a whole round of the sweep.
void node_housekeep(struct node *node, uint32_t worker);

// Answers every question to a neighbour that is due; returns how many.
unsigned node_answer_neighbours(struct node *node);

// Loads a frame into a packet, runs it as a burst of one, and books it. Free the packet with packet_unload().
void node_run(struct node *node, uint32_t worker, const struct frame *frame, struct packet *ret);

// The same for a burst; packets are loaded already and stay.
void node_run_burst(struct node *node, uint32_t worker, struct packet *packets, unsigned count);

uint64_t node_counter(const struct node *node, enum counter counter);
uint64_t node_drops(const struct node *node, enum drop_reason reason);

// rx - (forwarded + punted + answered + drops) of a worker; 0 always.
int64_t node_imbalance(const struct node *node, uint32_t worker);

struct snapshot_service *node_service(struct node *node, uint32_t id);
struct snapshot_backend *node_backend(struct node *node, uint32_t id);
