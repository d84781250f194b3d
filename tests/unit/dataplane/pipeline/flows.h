// SPDX-License-Identifier: Apache-2.0
// What the tests of the pipeline share: packets of numbered flows, run one at a time.
#pragma once

#include "tests/lib/node.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define SERVICE_ADDRESS "203.0.113.0"

static const struct image_shape flows_shape = {.generation = 1,
	.pool_count = 2,
	.backend_count = 40,
	.points = 64,
	.staged = true,
	.tunnel = SNAPSHOT_TUNNEL_IPIP};

// A node with two workers, two pools of 20 backends, both rings staged, and every neighbour known.
// seeded: IMAGE_SEEDED_*, sides whose rings have a hash seed of their own.
static inline void flows_node_seeded(struct node *node, uint8_t seeded)
{
	struct image_shape shape = flows_shape;

	shape.seeded = seeded;
	node_make(node, &(struct node_shape){.workers = 2, .flow_entries = 65536});
	node_load_shape(node, &shape);
	node_answer_neighbours(node);
}

static inline void flows_node(struct node *node)
{
	flows_node_seeded(node, 0);
}

static inline void flows_frame_tcp(struct frame *frame, uint32_t flow, unsigned flags)
{
	char source[16];

	snprintf(source, sizeof(source), "198.51.%u.%u", flow >> 8 & 255, flow & 255);
	FRAME_START(frame);
	FRAME_IP4(frame, .source = source, .destination = SERVICE_ADDRESS);
	FRAME_TCP(frame, .source_port = 1024 + (flow >> 16), .destination_port = IMAGE_PORT_TCP,
		.flags = flags);
	frame_finish(frame);
}

static inline void flows_frame_udp(struct frame *frame, uint32_t flow)
{
	FRAME_START(frame);
	FRAME_IP4(frame, .destination = SERVICE_ADDRESS);
	FRAME_UDP(frame, .source_port = 1024 + flow, .destination_port = IMAGE_PORT_UDP);
	frame_payload(frame, "0123456789", 10);
	frame_finish(frame);
}

// A router's "fragmentation needed" about a packet that a backend sent from the virtual address to the client of a TCP flow.
// quoted_port: the service's, or another one to quote a flow of nobody.
static inline void flows_frame_icmp_error(struct frame *frame, uint32_t flow, unsigned quoted_port)
{
	char client[16];

	snprintf(client, sizeof(client), "198.51.%u.%u", flow >> 8 & 255, flow & 255);
	FRAME_START(frame);
	FRAME_IP4(frame, .source = "192.0.2.254", .destination = SERVICE_ADDRESS);
	FRAME_ICMP4(frame, .type = 3, .code = 4, .word1 = 1400);
	FRAME_IP4(frame, .source = SERVICE_ADDRESS, .destination = client);
	FRAME_TCP(frame, .source_port = quoted_port, .destination_port = 1024, .flags = FRAME_ACK);
	frame_finish(frame);
}

// Runs one TCP packet of a flow; returns the backend it went to, or UINT32_MAX.
static inline uint32_t flows_tcp(struct node *node, uint32_t worker, uint32_t flow, unsigned flags)
{
	static struct frame frame;
	struct packet packet;
	uint32_t backend;

	flows_frame_tcp(&frame, flow, flags);
	node_run(node, worker, &frame, &packet);
	backend = packet.verdict == PACKET_FORWARD ? packet.backend : UINT32_MAX;
	packet_unload(&packet);
	return backend;
}

static inline uint32_t flows_udp(struct node *node, uint32_t worker, uint32_t flow)
{
	static struct frame frame;
	struct packet packet;
	uint32_t backend;

	flows_frame_udp(&frame, flow);
	node_run(node, worker, &frame, &packet);
	backend = packet.verdict == PACKET_FORWARD ? packet.backend : UINT32_MAX;
	packet_unload(&packet);
	return backend;
}

// SYN, then the packets that make a flow established.
static inline uint32_t flows_establish(struct node *node, uint32_t worker, uint32_t flow)
{
	uint32_t backend = flows_tcp(node, worker, flow, FRAME_SYN);

	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(flows_tcp(node, worker, flow, FRAME_ACK), backend);
	return backend;
}

// Runs a frame and returns its verdict, booked; the packet's reason in *ret_reason.
static inline enum packet_verdict flows_verdict(
	struct node *node, const struct frame *frame, uint8_t *ret_reason)
{
	struct packet packet;
	enum packet_verdict verdict;

	node_run(node, 0, frame, &packet);
	verdict = (enum packet_verdict)packet.verdict;
	*ret_reason = packet.reason;
	packet_unload(&packet);
	return verdict;
}

static inline void flows_check_balance(const struct node *node)
{
	for (uint32_t i = 0; i < node->pipeline.worker_count; i++)
		CU_ASSERT_EQUAL(node_imbalance(node, i), 0);
}
