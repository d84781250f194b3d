// SPDX-License-Identifier: Apache-2.0
// Cost of a worker over a DPDK port: nanoseconds of thread CPU time a packet, beside the same device doing nothing
// (io) and swapping MAC addresses (macswap, as testpmd does it).
//
// On net_null0 a receive callback writes the frames, so that every mode pays the same for buffers and frames. They are
// made by arithmetic from a random flow number: the generator touches no memory but the frame.
// On net_pcap0 (infinite_rx=1) the frames come from a capture that "bench_device write FILE FLOWS" made, as they do for
// testpmd on the same device.
#include "dataplane/io/hugemem.h"
#include "dataplane/io/worker.h"
#include "dataplane/table/flow_table.h"
#include "dataplane/table/neighbour_table.h"
#include "tests/bench/bench.h"
#include "tests/lib/image.h"
#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFERS 16383u
#define PCAP_ROOM \
	(RTE_PKTMBUF_HEADROOM + 128u) // a capture of a million frames stays in its buffers
#define ENTRIES_MAX   (1u << 22)
#define CACHE         256u
#define ROUND_PACKETS (1u << 18)
#define ROUNDS        20u
#define FRAME_MIN     60u // 64 bytes on the wire, FCS included
#define FRESH_FLOWS   (1u << 24)

// What the callback writes.
struct generator {
	uint8_t frame[128];
	unsigned length;
	unsigned source_offset; // of the four bytes that tell flows apart
	bool six;
	bool in_order;
	uint32_t next;
	uint32_t flows;
	uint64_t random;
};

struct bench {
	struct generator generator;
	struct pipeline pipeline;
	struct port port;
	struct worker_shared shared;
	struct worker *worker;
	void *flow_memory;
	const char *device;
	unsigned rounds;
	struct forwarding *forwarding;
	struct rte_mempool *pool;
	void *image;
	struct snapshot *snapshot;
};

enum mode {
	MODE_IO,
	MODE_MACSWAP,
	MODE_WORKER,
	MODE_COUNT,
};

static struct bench bench;

static void die(const char *what)
{
	fprintf(stderr, "bench_device: %s\n", what);
	exit(1);
}

static void set_frame(struct generator *generator, bool six, unsigned flags)
{
	static struct frame frame;

	FRAME_START(&frame);
	if (six)
		FRAME_IP6(&frame, .source = "2001:db8:c::1", .destination = "2001:db8:cb::");
	else
		FRAME_IP4(&frame, .source = "16.0.0.0", .destination = "203.0.113.0");
	FRAME_TCP(&frame, .destination_port = IMAGE_PORT_TCP, .flags = flags);
	frame_finish(&frame);
	memset(generator->frame, 0, sizeof(generator->frame));
	memcpy(generator->frame, frame.bytes, frame.length);
	generator->length = frame.length < FRAME_MIN ? FRAME_MIN : frame.length;
	generator->source_offset = six ? 14 + 8 + 12 : 14 + 12;
	generator->six = six;
}

// Writes a flow into a frame; the IPv4 header checksum follows its source address (RFC 1624).
static void write_frame(const struct generator *generator, uint8_t *frame, uint32_t flow)
{
	uint32_t source_be = htonl(0x10000000u + flow), sum;

	memcpy(frame, generator->frame, 64);
	if (generator->length > 64)
		memcpy(frame + 64, generator->frame + 64, 16);
	memcpy(frame + generator->source_offset, &source_be, sizeof(source_be));
	if (generator->six)
		return;
	sum = (uint32_t)(frame[24] << 8 | frame[25]);
	sum = (~sum & 0xffff) + (flow >> 16) + (flow & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	frame[24] = (uint8_t)(sum >> 8);
	frame[25] = (uint8_t)sum;
}

static uint16_t write_frames(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count,
	uint16_t capacity, void *argument)
{
	struct generator *generator = argument;

	(void)port;
	(void)queue;
	(void)capacity;
	for (uint16_t i = 0; i < count; i++) {
		uint32_t flow = generator->in_order
			? generator->next++
			: (uint32_t)(((suite_random(&generator->random) >> 32) *
					     generator->flows) >>
				  32);

		write_frame(generator, rte_pktmbuf_mtod(mbufs[i], uint8_t *), flow);
		mbufs[i]->data_len = (uint16_t)generator->length;
		mbufs[i]->pkt_len = generator->length;
	}
	return count;
}

static bool is_capture(void)
{
	return strncmp(bench.device, "net_pcap", 8) == 0;
}

static void open_device(uint32_t flows)
{
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	int result = rte_eth_dev_get_port_by_name(bench.device, &bench.port.id);

	bench.pool = rte_pktmbuf_pool_create("bench", is_capture() ? BUFFERS + flows : BUFFERS,
		CACHE, 0, is_capture() ? PCAP_ROOM : RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (result != 0 || bench.pool == NULL)
		die("no device or no buffers");
	result = rte_eth_dev_configure(bench.port.id, 1, 1, &conf);
	if (result == 0)
		result = rte_eth_rx_queue_setup(bench.port.id, 0, 512, 0, NULL, bench.pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(bench.port.id, 0, 512, 0, NULL);
	if (result == 0)
		result = rte_eth_dev_start(bench.port.id);
	if (result == 0 && !is_capture() &&
		rte_eth_add_rx_callback(bench.port.id, 0, write_frames, &bench.generator) == NULL)
		result = -1;
	if (result != 0)
		die("the device does not start");
	bench.port.punt_id = PORT_NO_PUNT;
	bench.port.rx_queues = 1;
	bench.port.tx_queues = 1;
}

static void make_pipeline(void)
{
	struct pipeline_port *port = &bench.pipeline.ports[0];
	uint64_t bytes = neighbour_table_footprint(64);

	memcpy(port->mac, (uint8_t[]){2, 0, 0, 0, 0, 1}, 6);
	port->mtu = 1500;
	port->address_count = 1;
	port->addresses[0].prefix_bits = 24;
	addr_parse("192.0.2.10", &port->addresses[0].address);
	addr_parse("192.0.2.1", &port->gateway4);
	bench.pipeline.port_count = 1;
	bench.pipeline.worker_count = 1;
	bench.pipeline.neighbours = neighbour_table_format(hugemem_alloc(bytes, -1), 64);
	if (pipeline_init(&bench.pipeline) != 0)
		die("pipeline");
}

static void make_worker(void)
{
	static const struct stats_geometry geometry = {
		.worker_count = 1, .service_count = 64, .pool_count = 64, .backend_count = 4096};
	void *stats = hugemem_alloc(stats_footprint(&geometry), -1);
	struct stats_worker counters;

	bench.flow_memory = hugemem_alloc(flow_table_footprint(ENTRIES_MAX), -1);
	bench.worker = hugemem_alloc(sizeof(*bench.worker), -1);
	stats_format(stats, &geometry);
	counters = stats_worker(stats, 0);
	pipeline_worker_init(&bench.worker->pipeline, &bench.pipeline, 0,
		flow_table_format(bench.flow_memory, ENTRIES_MAX, 1000000), &counters,
		hugemem_alloc(pipeline_worker_footprint(), -1));
	bench.shared.ports = &bench.port;
	bench.shared.port_count = 1;
	bench.shared.now_s = 1000000;
	bench.shared.tsc_hz = rte_get_tsc_hz();
	bench.shared.qsbr = aligned_alloc(64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(1), 64));
	rte_rcu_qsbr_init(bench.shared.qsbr, 1);
	rte_rcu_qsbr_thread_register(bench.shared.qsbr, 0);
	rte_rcu_qsbr_thread_online(bench.shared.qsbr, 0);
	bench.shared.mailbox = rte_ring_create("mailbox", 64, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	bench.worker->shared = &bench.shared;
	bench.worker->ns_per_tsc32 =
		(uint64_t)(((unsigned __int128)1000000000u << 32) / bench.shared.tsc_hz);
	worker_assign_queues(bench.worker, 1);
}

static void load(uint32_t backends, uint32_t points, uint8_t tunnel)
{
	static uint64_t generation;
	struct image_shape shape = {.generation = ++generation,
		.pool_count = 1,
		.backend_count = backends,
		.points = points,
		.tunnel = tunnel};
	struct snapshot_error error;
	struct neighbour_answer gateway = {.mac = {2, 0, 0, 0, 0, 9}, .overrides = true};
	uint64_t bytes;

	bench.image = image_build(&shape, &bytes);
	bench.snapshot = malloc(sizeof(*bench.snapshot));
	if (snapshot_open(bench.image, bytes, bench.snapshot, &error) != 0)
		die(error.text);
	if (forwarding_build(hugemem_alloc(forwarding_footprint(bench.snapshot), -1),
		    bench.snapshot, &bench.pipeline, &bench.forwarding) != 0)
		die("forwarding");
	bench.worker->published = bench.forwarding;
	addr_parse("192.0.2.1", &gateway.address);
	if (!neighbour_table_learn(bench.pipeline.neighbours, &gateway, 1000000))
		die("nobody waits for the gateway");
}

static void swap_macs(struct rte_mbuf **mbufs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct rte_ether_hdr *ethernet = rte_pktmbuf_mtod(mbufs[i], struct rte_ether_hdr *);
		struct rte_ether_addr mac = ethernet->dst_addr;

		if (i + 1 < count)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 1], void *));
		ethernet->dst_addr = ethernet->src_addr;
		ethernet->src_addr = mac;
	}
}

// One burst of testpmd's loop.
static unsigned poll_plain(bool swap)
{
	struct rte_mbuf *mbufs[PACKET_BURST];
	uint16_t count = rte_eth_rx_burst(bench.port.id, 0, mbufs, PACKET_BURST);

	if (swap)
		swap_macs(mbufs, count);
	rte_eth_tx_burst(bench.port.id, 0, mbufs, count);
	return count;
}

static double round_ns(enum mode mode, uint32_t packets)
{
	uint64_t begin = bench_now_ns();
	uint32_t done = 0;

	while (done < packets)
		done += mode == MODE_WORKER ? worker_poll(bench.worker)
					    : poll_plain(mode == MODE_MACSWAP);
	return (double)(bench_now_ns() - begin) / done;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

// The modes take turns, so that a neighbour who slows the CPU down slows all of them. ret: the best round of each.
// Returns worker / macswap, the median of the rounds.
static double measure(double ret[static MODE_COUNT])
{
	double ratios[ROUNDS], ns[MODE_COUNT];

	for (unsigned mode = 0; mode < MODE_COUNT; mode++)
		ret[mode] = 1e9;
	for (unsigned i = 0; i < bench.rounds; i++) {
		for (unsigned mode = 0; mode < MODE_COUNT; mode++) {
			ns[mode] = round_ns((enum mode)mode, ROUND_PACKETS);
			ret[mode] = ns[mode] < ret[mode] ? ns[mode] : ret[mode];
		}
		ratios[i] = ns[MODE_WORKER] / ns[MODE_MACSWAP];
	}
	qsort(ratios, bench.rounds, sizeof(ratios[0]), compare_doubles);
	return ratios[bench.rounds / 2];
}

// Each flow often enough to be established: the states of young flows would be written otherwise.
static void establish(uint32_t flows)
{
	bench.generator.in_order = true;
	for (unsigned pass = 0; pass < 4; pass++) {
		bench.generator.next = 0;
		round_ns(MODE_WORKER, (flows + PACKET_BURST - 1) / PACKET_BURST * PACKET_BURST);
	}
	bench.generator.in_order = false;
}

static uint64_t count_of(enum counter counter)
{
	return bench.worker->pipeline.stats.counter[counter];
}

// entries: of the flow table. Four for each flow hold all; with two, 0.8 % of the flows find their bucket full of
// established ones and ask the ring, packet by packet.
static void run(uint32_t backends, uint32_t flows, uint32_t entries, bool six, bool fresh)
{
	static uint32_t next_fresh = FRESH_FLOWS;
	double ns[MODE_COUNT], ratio;
	uint64_t hits, packets, forwarded;

	// No flows of the run before.
	flow_table_format(bench.flow_memory, entries, 1000000);
	bench.generator.flows = flows;
	set_frame(&bench.generator, six, FRAME_ACK);
	if (!fresh)
		establish(flows);
	set_frame(&bench.generator, six, fresh ? FRAME_SYN : FRAME_ACK);
	bench.generator.in_order = fresh;
	bench.generator.next = next_fresh;
	hits = count_of(COUNTER_flow_hit);
	packets = count_of(COUNTER_rx_packets);
	forwarded = count_of(COUNTER_forwarded);
	ratio = measure(ns);
	packets = count_of(COUNTER_rx_packets) - packets;
	next_fresh = bench.generator.next;
	printf("IPv%c %8u %8u %8u %-11s %6.1f %6.1f %7.1f %6.1f %7.0f %6.1f %7.2f\n",
		six ? '6' : '4', backends, flows, entries, fresh ? "new" : "established",
		ns[MODE_IO], ns[MODE_MACSWAP], ns[MODE_WORKER], 1000 / ns[MODE_WORKER],
		(ns[MODE_WORKER] - ns[MODE_IO]) * (double)bench.shared.tsc_hz / 1e9,
		100.0 * (double)(count_of(COUNTER_flow_hit) - hits) / (double)packets, ratio);
	if (count_of(COUNTER_forwarded) - forwarded != packets)
		die("not every packet was forwarded");
	fflush(stdout);
}

// Writes a capture with one frame for each flow, in random order.
static int write_capture(const char *path, uint32_t flows)
{
	static const uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	struct generator generator = {.random = 1};
	uint32_t *order = malloc(flows * sizeof(*order));
	FILE *file = fopen(path, "wb");

	if (file == NULL || order == NULL)
		die(path);
	set_frame(&generator, false, FRAME_ACK);
	for (uint32_t i = 0; i < flows; i++) {
		uint32_t other = (uint32_t)(suite_random(&generator.random) % (i + 1));

		order[i] = order[other];
		order[other] = i;
	}
	fwrite(header, sizeof(header), 1, file);
	for (uint32_t i = 0; i < flows; i++) {
		uint32_t record[4] = {1, i, generator.length, generator.length};
		uint8_t frame[128];

		write_frame(&generator, frame, order[i]);
		fwrite(record, sizeof(record), 1, file);
		fwrite(frame, generator.length, 1, file);
	}
	free(order);
	return fclose(file) == 0 ? 0 : 1;
}

// One line, for profilers and captures: BACKENDS FLOWS [6] [new]
static void run_one(int argc, char **argv)
{
	uint32_t flows = (uint32_t)atoi(argv[2]);
	bool six = false, fresh = false;

	for (int i = 3; i < argc; i++) {
		six = six || strcmp(argv[i], "6") == 0;
		fresh = fresh || strcmp(argv[i], "new") == 0;
	}
	load((uint32_t)atoi(argv[1]), 160, SNAPSHOT_TUNNEL_IPIP);
	run((uint32_t)atoi(argv[1]), flows, ENTRIES_MAX, six, fresh);
}

static void run_all(void)
{
	static const uint32_t backend_counts[] = {100, 2048};
	static const uint32_t flow_counts[] = {1, 1024, 102400, 1048576};

	for (unsigned b = 0; b < 2; b++) {
		load(backend_counts[b], 160, SNAPSHOT_TUNNEL_IPIP);
		for (unsigned six = 0; six < 2; six++) {
			for (unsigned f = 0; f < 4; f++)
				run(backend_counts[b], flow_counts[f], ENTRIES_MAX, six, false);
			run(backend_counts[b], 1048576, ENTRIES_MAX / 2, six, false);
			run(backend_counts[b], 1048576, ENTRIES_MAX, six, true);
		}
	}
}

// bench_device write FILE FLOWS | EAL arguments -- DEVICE [BACKENDS FLOWS [6] [new]]
int main(int argc, char **argv)
{
	const char *rounds = getenv("BENCH_ROUNDS"); // 1 for callgrind
	int taken;

	if (argc == 4 && strcmp(argv[1], "write") == 0)
		return write_capture(argv[2], (uint32_t)atoi(argv[3]));
	taken = rte_eal_init(argc, argv);
	if (taken < 0 || argc - taken < 2)
		die("EAL, or no device");
	argc -= taken + 1;
	argv += taken + 1;
	bench.device = argv[0];
	bench.rounds =
		rounds != NULL && atoi(rounds) < (int)ROUNDS ? (unsigned)atoi(rounds) : ROUNDS;
	hugemem_use_huge(hugemem_available() >= (UINT64_C(64) << 20));
	open_device(argc >= 3 ? (uint32_t)atoi(argv[2]) : 0);
	make_pipeline();
	make_worker();
	printf("%4s %8s %8s %8s %-11s %6s %6s %7s %6s %7s %6s %7s\n", "", "backends", "flows",
		"entries", "", "io", "swap", "worker", "Mpps", "cycles", "hit %", "x swap");
	if (argc >= 3)
		run_one(argc, argv);
	else
		run_all();
	return 0;
}
