// SPDX-License-Identifier: Apache-2.0
// Cost of the pipeline in memory, without a device: nanoseconds of thread CPU time a packet, writing the frame not
// counted. devtools/bench measures the same over DPDK ports, beside testpmd.
#include "common/selection.h"
#include "tests/bench/bench.h"
#include "tests/lib/node.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS      512u // as many as a receive queue holds
#define BUFFER_BYTES 2048u
#define HEADROOM     128u
#define PACKETS      (1u << 20) // a round
#define ROUNDS       5u

struct bench {
	struct node node;
	uint8_t (*buffers)[BUFFER_BYTES];
	uint8_t template[128];
	unsigned length;
	unsigned source_offset; // of the four bytes that tell flows apart
	uint64_t random;
	uint8_t sink;
};

static void make_template(struct bench *bench, bool six, unsigned flags)
{
	struct frame *frame = malloc(sizeof(*frame));

	FRAME_START(frame);
	if (six)
		FRAME_IP6(frame, .source = "2001:db8:c::1", .destination = "2001:db8:cb::");
	else
		FRAME_IP4(frame, .source = "16.0.0.0", .destination = "203.0.113.0");
	FRAME_TCP(frame, .destination_port = IMAGE_PORT_TCP, .flags = flags);
	frame_finish(frame);
	memcpy(bench->template, frame->bytes, frame->length);
	bench->length = frame->length;
	bench->source_offset = six ? 14 + 8 + 12 : 14 + 12;
	free(frame);
}

// Writes flow number n into the template. The IPv4 header checksum follows (RFC 1624); TCP's is nobody's business.
static void write_flow(struct bench *bench, uint8_t *frame, uint32_t n, bool six)
{
	uint32_t source_be = htonl(0x10000000u + n);
	uint32_t sum;

	memcpy(frame, bench->template, sizeof(bench->template));
	memcpy(frame + bench->source_offset, &source_be, sizeof(source_be));
	if (six)
		return;
	sum = (uint32_t)(frame[24] << 8 | frame[25]);
	sum = (~sum & 0xffff) + (n >> 16) + (n & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	frame[24] = (uint8_t)(sum >> 8);
	frame[25] = (uint8_t)sum;
}

// Writes a whole receive queue of frames, before any of it is read: so the bytes have left the CPU's store buffer, as
// those of a device have. first UINT32_MAX: flows at random.
static void fill(struct bench *bench, uint32_t first, uint32_t flows, bool six)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		uint32_t n = first != UINT32_MAX ? first + i
						 : (uint32_t)(suite_random(&bench->random) % flows);

		write_flow(bench, bench->buffers[i] + HEADROOM, n, six);
	}
}

// What io does for a burst.
static void take(struct bench *bench, struct packet *packets, unsigned first)
{
	for (unsigned i = 0; i < PACKET_BURST; i++) {
		packets[i].data = bench->buffers[first + i] + HEADROOM;
		packets[i].length = bench->length < 60 ? 60 : bench->length;
		packets[i].headroom = HEADROOM;
		packets[i].tailroom = BUFFER_BYTES - HEADROOM - 128;
		packets[i].port_in = 0;
		packets[i].verdict = PACKET_PENDING;
	}
}

enum work {
	WORK_NONE,
	WORK_MACSWAP,
	WORK_PIPELINE
};

static void swap_macs(struct packet *packets)
{
	for (unsigned i = 0; i < PACKET_BURST; i++) {
		uint8_t mac[6];

		memcpy(mac, packets[i].data, 6);
		memcpy(packets[i].data, packets[i].data + 6, 6);
		memcpy(packets[i].data + 6, mac, 6);
	}
}

static void run_burst(struct bench *bench, enum work work, struct packet *packets)
{
	if (work == WORK_MACSWAP)
		swap_macs(packets);
	if (work == WORK_PIPELINE) {
		pipeline_burst(&bench->node.workers[0], packets, PACKET_BURST);
		pipeline_book_sent(&bench->node.workers[0], packets, PACKET_BURST);
	}
	bench->sink ^= packets[0].data[0];
}

static double round_ns(
	struct bench *bench, enum work work, uint32_t flows, bool new_flows, bool six)
{
	static uint32_t fresh = 1u << 24;
	struct packet packets[PACKET_BURST];
	uint64_t spent = bench_now_ns();

	for (unsigned done = 0; done < PACKETS; done += BUFFERS) {
		fill(bench, new_flows ? fresh : UINT32_MAX, flows, six);
		fresh += new_flows ? BUFFERS : 0;
		for (unsigned i = 0; i < BUFFERS; i += PACKET_BURST) {
			take(bench, packets, i);
			run_burst(bench, work, packets);
		}
	}
	return (double)(bench_now_ns() - spent) / PACKETS;
}

static double best_ns(struct bench *bench, enum work work, uint32_t flows, bool new_flows, bool six)
{
	double best = 1e9;

	for (unsigned i = 0; i < ROUNDS; i++) {
		double ns = round_ns(bench, work, flows, new_flows, six);

		best = ns < best ? ns : best;
	}
	return best;
}

static void learn_flows(struct bench *bench, uint32_t flows, bool six)
{
	struct packet packets[PACKET_BURST];

	// Each flow often enough to be established; the last states of young flows would be written otherwise.
	for (unsigned pass = 0; pass < 4; pass++) {
		for (uint32_t n = 0; n < flows; n += BUFFERS) {
			fill(bench, n, flows, six);
			for (unsigned i = 0; i < BUFFERS; i += PACKET_BURST) {
				take(bench, packets, i);
				run_burst(bench, WORK_PIPELINE, packets);
			}
		}
	}
}

// A cutover under way, its gate half open.
enum cutover {
	CUTOVER_NONE,
	CUTOVER_RINGS, // two rings under the fleet's hash seed
	CUTOVER_SEEDS, // the new one under a seed of its own
};

static void run(uint32_t backends, uint32_t flows, bool six, bool new_flows, enum cutover cutover)
{
	static const char *const cutovers[] = {"", ", two rings", ", two seeds"};
	struct bench bench = {.random = 1};
	struct image_shape shape = {.generation = 1,
		.pool_count = 1,
		.backend_count = backends,
		.points = 160,
		.staged = cutover != CUTOVER_NONE,
		.seeded = cutover == CUTOVER_SEEDS ? IMAGE_SEEDED_NEW : 0,
		.tunnel = SNAPSHOT_TUNNEL_IPIP};
	double empty, pipeline, swap;
	uint64_t hits, packets;
	char what[32];

	snprintf(what, sizeof(what), "%s%s", new_flows ? "new" : "established", cutovers[cutover]);

	node_make(&bench.node, &(struct node_shape){.flow_entries = 2097152});
	node_load_shape(&bench.node, &shape);
	node_answer_neighbours(&bench.node);
	node_set_threshold(&bench.node, 0, GATE_ALWAYS / 2);
	bench.buffers = aligned_alloc(64, BUFFERS * sizeof(*bench.buffers));
	memset(bench.buffers, 0, BUFFERS * sizeof(*bench.buffers));
	make_template(&bench, six, new_flows ? FRAME_SYN : FRAME_ACK);
	learn_flows(&bench, flows, six);
	hits = node_counter(&bench.node, COUNTER_flow_hit);
	packets = node_counter(&bench.node, COUNTER_rx_packets);
	empty = best_ns(&bench, WORK_NONE, flows, new_flows, six);
	swap = best_ns(&bench, WORK_MACSWAP, flows, new_flows, six) - empty;
	pipeline = best_ns(&bench, WORK_PIPELINE, flows, new_flows, six) - empty;
	hits = node_counter(&bench.node, COUNTER_flow_hit) - hits;
	packets = node_counter(&bench.node, COUNTER_rx_packets) - packets;
	printf("IPv%c %5u backends %8u flows %-14s %6.1f ns/packet   macswap %4.1f ns   fill %4.1f ns   "
	       "hit %5.1f %%   forwarded %5.1f %%\n",
		six ? '6' : '4', backends, flows, what, pipeline, swap, empty,
		100.0 * (double)hits / (double)packets,
		100.0 * (double)node_counter(&bench.node, COUNTER_forwarded) /
			(double)node_counter(&bench.node, COUNTER_rx_packets));
	fflush(stdout);
	free(bench.buffers);
	node_free(&bench.node);
}

#define KEYS 1024u

// Nanoseconds that gate and rings take to see a flow, the best of the rounds.
static double see_ns(const struct snapshot *snapshot, bool six)
{
	static struct flow_key keys[KEYS];
	uint64_t wholes[KEYS];
	double best = 1e9;
	volatile uint32_t sink = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		keys[i] = (struct flow_key){.family = six ? ADDR_V6 : ADDR_V4,
			.source = {16, (uint8_t)(i >> 8), (uint8_t)i}};
		wholes[i] = flow_hash(&keys[i], &snapshot->hash_seed);
	}
	for (unsigned round = 0; round < 200; round++) {
		uint64_t spent = bench_now_ns();

		for (uint32_t i = 0; i < 16 * KEYS; i++) {
			struct selection_hash hash = selection_ring_hash(snapshot,
				&snapshot->services[0], &keys[i % KEYS], wholes[i % KEYS], NULL, 0);

			sink = sink ^ hash.ring_old ^ hash.ring_new;
		}
		double ns = (double)(bench_now_ns() - spent) / (16 * KEYS);

		best = ns < best ? ns : best;
	}
	return best;
}

static void run_seeds(void)
{
	static const char *const names[] = {
		"no ring", "the old ring", "the new ring", "both rings"};

	for (uint8_t seeded = 0; seeded < 4; seeded++) {
		struct image_shape shape = {.generation = 1,
			.pool_count = 1,
			.backend_count = 16,
			.points = 16,
			.staged = true,
			.seeded = seeded};
		struct node node;

		node_make(&node, &(struct node_shape){.flow_entries = 1024});
		node_load_shape(&node, &shape);
		printf("what gate and rings see of a new flow, %-12s with a hash seed of its own: "
		       "IPv4 %4.1f ns   IPv6 %4.1f ns\n",
			names[seeded], see_ns(&node.forwarding[0]->snapshot, false),
			see_ns(&node.forwarding[0]->snapshot, true));
		node_free(&node);
	}
}

int main(int argc, char **argv)
{
	static const uint32_t flow_counts[] = {32, 1024, 102400, 1048576};

	if (argc >= 3) {
		run((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]), false, argc > 3,
			CUTOVER_NONE);
		return 0;
	}
	for (unsigned i = 0; i < 4; i++)
		run(2048, flow_counts[i], false, false, CUTOVER_NONE);
	run(100, 1048576, false, false, CUTOVER_NONE);
	run(2048, 1048576, true, false, CUTOVER_NONE);
	run(2048, 32, false, true, CUTOVER_NONE);
	run(2048, 32, true, true, CUTOVER_NONE);
	run(2048, 32, false, true, CUTOVER_RINGS);
	run(2048, 32, false, true, CUTOVER_SEEDS);
	run_seeds();
	return 0;
}
