// SPDX-License-Identifier: Apache-2.0
// Bursts of any frames through the whole pipeline of a balancer with two workers, tables and a snapshot. Whatever came:
// every packet has a final verdict, the counters balance, what is sent parses as what it should be, nothing else
// has moved. Input: records of a control byte, two bytes of length (little endian) and a frame.
#include "dataplane/packet/parse.h"
#include "dataplane/table/flow_table.h"

#include "tests/fuzz/packet_seal.h"
#include "tests/lib/node.h"
#include "tests/lib/packet_check.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAME_MAX 2000u
#define HEADROOM  128u
#define TAILROOM  64u
#define FLOWS     256u

#define WORKER      0x01u // which one takes the burst; that of its first record counts
#define SEAL        0x02u // checksums are made right first
#define FLUSH       0x04u // the burst ends behind this record
#define CLOCK_SHIFT 3     // two bits: seconds that go by behind the burst
#define THRESHOLD   0x20u // the gate stands half open for the burst, else it is shut
#define PUNT        0x80u // in the first record: there is a kernel port

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct node node;
	struct packet packets[PACKET_BURST];
	unsigned count;
	uint8_t control; // of the burst's first record
};

static void require(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

// Four services on the addresses of the packet cases: TCP and UDP, each over IPv4 and IPv6, any port.
static void load_snapshot(struct node *node)
{
	static const uint8_t virtual4[4] = {203, 0, 113, 10};
	static const uint8_t virtual6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 5, [15] = 0x10};
	uint64_t bytes;
	uint8_t *image = image_build(&(struct image_shape){.generation = 1,
					     .pool_count = 4,
					     .backend_count = 16,
					     .points = 4,
					     .staged = true,
					     .seeded = IMAGE_SEEDED_NEW},
		&bytes);
	struct snapshot_header *header = (struct snapshot_header *)image;
	struct snapshot_binding *bindings =
		(struct snapshot_binding *)(image + header->bindings.offset);
	struct snapshot_service *services =
		(struct snapshot_service *)(image + header->services.offset);

	for (uint32_t i = 0; i < 4; i++) {
		struct snapshot_binding *binding = &bindings[i * 4];

		memset(&binding->address, 0, sizeof(binding->address));
		binding->address.family = i < 2 ? ADDR_V4 : ADDR_V6;
		memcpy(binding->address.bytes, i < 2 ? virtual4 : virtual6, i < 2 ? 4 : 16);
		binding->prefix_bits = i < 2 ? 32 : 128;
		binding->protocol = i % 2 ? IPPROTO_UDP : IPPROTO_TCP;
		binding->port_be = 0;
		services[i].tunnel = (uint8_t)(i % SNAPSHOT_TUNNEL_L2);
	}
	services[1].affinity = FLOW_AFFINITY_QUIC;
	services[2].flags |= SNAPSHOT_SERVICE_STATELESS;
	services[3].affinity = FLOW_AFFINITY_QUIC;
	node_load(node, image, bytes);
}

static void load_packet(struct packet *packet, const uint8_t *frame, unsigned length, bool seal)
{
	// Exactly as long as it says on either side: what a sanitizer may see.
	uint8_t *block = malloc(HEADROOM + length + TAILROOM);

	require(block != NULL, "memory");
	memcpy(block + HEADROOM, frame, length);
	if (seal)
		packet_seal(block + HEADROOM, length);
	memset(packet, 0xcc, sizeof(*packet));
	packet->handle = block;
	packet->data = block + HEADROOM;
	packet->length = length;
	packet->headroom = HEADROOM;
	packet->tailroom = TAILROOM;
	packet->port_in = 0;
}

// What leaves must be a packet again, whole and without a byte behind it.
static void check_sent(const struct packet *packet)
{
	struct packet copy = *packet;

	require(packet->port_out == 0, "there is one port");
	require(packet->headroom + packet->length + packet->tailroom >= packet->length, "room");
	parse_burst(&copy, 1);
	const char *rule = packet_broken_rule(&copy);

	require(rule == NULL, rule);
	// Replies to questions for an own or virtual address have it as source, which is no martian.
	require(copy.verdict == PACKET_PENDING ||
			(copy.verdict == PACKET_DROP && copy.reason == DROP_icmp_inner),
		"what is sent parses");
	if (packet->verdict == PACKET_FORWARD) {
		require(copy.l3_offset + copy.l3_length == copy.length, "no padding in a tunnel");
		require(copy.l3_length <= 1500, "what is forwarded fits the MTU");
		require(copy.key.protocol == IPPROTO_UDP || copy.key.protocol == IPPROTO_GRE ||
				copy.key.protocol == IPPROTO_IPIP ||
				copy.key.protocol == IPPROTO_IPV6,
			"what is forwarded is in a tunnel");
	}
}

static void check_packet(const struct packet *packet)
{
	switch (packet->verdict) {
	case PACKET_FORWARD:
	case PACKET_ANSWER:
	case PACKET_DROP_REPLY:
		check_sent(packet);
		break;
	case PACKET_DROP:
		require(packet->reason < DROP_COUNT, "a drop has a reason");
		break;
	default:
		require(packet->verdict == PACKET_PUNT || packet->verdict == PACKET_CONSUME,
			"every packet has a final verdict");
	}
}

static void flush(struct run *run)
{
	static const uint32_t seconds[] = {0, 1, 61, 1000};
	uint32_t worker = run->control & WORKER;

	if (run->count == 0)
		return;
	for (uint32_t pool = 0; pool < 4; pool++)
		node_set_threshold(
			&run->node, pool, run->control & THRESHOLD ? GATE_ALWAYS / 2 : GATE_NEVER);
	node_run_burst(&run->node, worker, run->packets, run->count);
	for (unsigned i = 0; i < run->count; i++) {
		check_packet(&run->packets[i]);
		free(run->packets[i].handle);
	}
	require(node_imbalance(&run->node, worker) == 0, "the counters balance");
	run->count = 0;
	node_answer_neighbours(&run->node);
	node_advance(&run->node, seconds[run->control >> CLOCK_SHIFT & 3]);
}

static void take_record(struct run *run, uint8_t control, const uint8_t *frame, unsigned length)
{
	if (run->count == 0)
		run->control = control;
	load_packet(&run->packets[run->count++], frame, length, control & SEAL);
	if (control & FLUSH || run->count == PACKET_BURST)
		flush(run);
}

// Empties what packets fill. The node itself is made once, since its counters alone are megabytes; neighbours and
// clock go on, which no packet can tell.
static void reset(struct run *run, bool has_punt)
{
	struct node *node = &run->node;

	run->count = 0;
	if (node->image == NULL) {
		node_make(node, &(struct node_shape){.workers = 2, .flow_entries = FLOWS});
		load_snapshot(node);
		node_answer_neighbours(node);
	}
	node->pipeline.has_punt = has_punt;
	for (uint32_t i = 0; i < 2; i++) {
		struct pipeline_worker *worker = &node->workers[i];
		struct stats_worker stats = worker->stats;

		pipeline_worker_init(worker, &node->pipeline, i,
			flow_table_format(worker->flow_table, FLOWS, node->now_s), &stats,
			worker->scratch);
		worker->forwarding = node->forwarding[i];
	}
	node_advance(node, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run;
	size_t at = 0;

	reset(&run, size > 0 && data[0] & PUNT);
	while (size - at >= 3) {
		size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
		size_t left = size - at - 3;

		length = length < left ? length : left;
		length = length < FRAME_MAX ? length : FRAME_MAX;
		take_record(&run, data[at], data + at + 3, (unsigned)length);
		at += 3 + length;
	}
	flush(&run);
	return 0;
}
