// SPDX-License-Identifier: Apache-2.0
// The whole of dataplane/io in one process: real workers on their own cores, whose port is a pair of rings for each
// worker. The test is the wire: it puts frames in, takes frames out, and answers for the gateway.
#include "common/selection.h"
#include "dataplane/io/dataplane.h"
#include "dataplane/io/eal.h"
#include "dataplane/io/hugemem.h"
#include "dataplane/io/persist.h"
#include "dataplane/io/publish.h"
#include "tests/lib/image.h"
#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WORKERS   2
#define RING_SIZE 512
#define MAC_NEXT  "02:00:00:00:00:99"

static char run_dir[] = "/tmp/ringway-live-XXXXXX";
static struct options options;
static struct dataplane dataplane;
static struct rte_ring *to_worker[WORKERS], *from_worker[WORKERS];
static struct frame frame, expected;
static uint64_t generation;

static void pause_us(long us)
{
	const struct timespec pause = {.tv_nsec = us * 1000};

	nanosleep(&pause, NULL);
}

// Puts a frame on a worker's receive queue.
static void put(unsigned queue, const struct frame *what)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(dataplane.pools[0]);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)what->length), what->bytes, what->length);
	while (rte_ring_enqueue(to_worker[queue], mbuf) != 0)
		pause_us(20);
}

// Takes the next frame that a worker sent; waits for it for at most 5 s.
static struct rte_mbuf *take(unsigned queue)
{
	void *mbuf = NULL;

	for (unsigned i = 0; i < 250000 && rte_ring_dequeue(from_worker[queue], &mbuf) != 0; i++)
		pause_us(20);
	return mbuf;
}

static void drain(void)
{
	void *mbuf;

	for (unsigned q = 0; q < WORKERS; q++) {
		while (rte_ring_dequeue(from_worker[q], &mbuf) == 0)
			rte_pktmbuf_free(mbuf);
	}
}

static uint64_t counter(enum counter which)
{
	uint64_t sum = 0;

	for (uint32_t w = 0; w < WORKERS; w++)
		sum += __atomic_load_n(
			&stats_worker(dataplane.stats.header, w).counter[which], __ATOMIC_RELAXED);
	return sum;
}

static uint64_t dropped(enum drop_reason reason)
{
	uint64_t sum = 0;

	for (uint32_t w = 0; w < WORKERS; w++)
		sum += __atomic_load_n(
			&stats_worker(dataplane.stats.header, w).drop[reason], __ATOMIC_RELAXED);
	return sum;
}

// Waits until everything that was put in has been taken and booked, and checks the balance of each worker.
static void expect_balance(void)
{
	for (unsigned q = 0; q < WORKERS; q++) {
		struct stats_worker stats = stats_worker(dataplane.stats.header, q);
		uint64_t sum = 0;

		for (unsigned i = 0; i < 50000 && rte_ring_count(to_worker[q]) > 0; i++)
			pause_us(20);
		for (unsigned i = 0; i < 5000; i++) {
			sum = stats.counter[COUNTER_forwarded] + stats.counter[COUNTER_punted] +
				stats.counter[COUNTER_answered];
			for (unsigned d = 0; d < DROP_COUNT; d++)
				sum += __atomic_load_n(&stats.drop[d], __ATOMIC_RELAXED);
			if (sum ==
				__atomic_load_n(
					&stats.counter[COUNTER_rx_packets], __ATOMIC_RELAXED))
				break;
			pause_us(20);
		}
		CU_ASSERT_EQUAL(sum, stats.counter[COUNTER_rx_packets]);
	}
}

// An image in memory of its own from mmap(), as it would come over the socket.
static void *make_image(const struct image_shape *shape, uint64_t *ret_bytes)
{
	uint8_t *image = image_build(shape, ret_bytes), *mapped;
	struct snapshot_header *header = (struct snapshot_header *)image;
	struct snapshot_service *services =
		(struct snapshot_service *)(image + header->services.offset);

	// The port's own address as outer source, so that the outer header does not depend on the flow.
	for (uint32_t i = 0; i < shape->pool_count; i++) {
		memset(&services[i].source4, 0, sizeof(services[i].source4));
		services[i].source4_bits = 0;
	}
	image_seal(image);
	mapped = mmap(NULL, *ret_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(mapped, image, *ret_bytes);
	free(image);
	return mapped;
}

static void publish_next(void)
{
	struct image_shape shape = {.generation = ++generation,
		.pool_count = 2,
		.backend_count = 20,
		.points = 50,
		.staged = true};
	struct snapshot_error error = {.text = ""};
	uint64_t bytes;
	void *image = make_image(&shape, &bytes);

	CU_ASSERT_EQUAL(publish_image(&dataplane, image, bytes, &error), 0);
	CU_ASSERT_STRING_EQUAL(error.text, "");
}

// A TCP packet of client to the first service.
static void build_tcp(struct frame *ret, unsigned client, unsigned port, unsigned flags)
{
	char source[16];

	snprintf(source, sizeof(source), "198.51.%u.%u", client / 256 % 256, client % 256);
	FRAME_START(ret);
	FRAME_IP4(ret, .source = source, .destination = "203.0.113.0", .id = client);
	FRAME_TCP(ret, .source_port = port, .destination_port = IMAGE_PORT_TCP, .flags = flags);
	frame_finish(ret);
}

static void build_syn(struct frame *ret, unsigned client, unsigned port)
{
	build_tcp(ret, client, port, FRAME_SYN);
}

static struct flow_key key_of(unsigned client, unsigned port)
{
	struct flow_key key = {.source = {198, 51, (uint8_t)(client / 256), (uint8_t)client},
		.destination = {203, 0, 113, 0},
		.source_port_be = htons((uint16_t)port),
		.destination_port_be = htons(IMAGE_PORT_TCP),
		.protocol = IPPROTO_TCP,
		.family = ADDR_V4};

	return key;
}

// The backend that the snapshot in use picks for a new flow.
static struct selection pick(unsigned client, unsigned port)
{
	const struct snapshot *snapshot = dataplane.publication.snapshot;
	struct flow_key key = key_of(client, port);
	struct selection ret;

	selection_pick(snapshot, &snapshot->services[0],
		selection_ring_hash(snapshot, &snapshot->services[0], &key,
			flow_hash(&key, &snapshot->hash_seed), NULL, 0),
		&ret);
	return ret;
}

// What the packet must look like on its way to a backend.
static void build_expected_tcp(unsigned client, unsigned port, uint32_t backend, unsigned flags)
{
	char source[16], destination[16];
	const uint8_t *mac = dataplane.pipeline.ports[0].mac;
	char mac_text[18];

	snprintf(mac_text, sizeof(mac_text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1],
		mac[2], mac[3], mac[4], mac[5]);
	snprintf(source, sizeof(source), "198.51.%u.%u", client / 256 % 256, client % 256);
	snprintf(destination, sizeof(destination), "10.1.0.%u", backend + 1);
	FRAME_START(&expected, .destination = MAC_NEXT, .source = mac_text);
	FRAME_IP4(&expected, .source = "192.0.2.10", .destination = destination,
		.dont_fragment = true);
	FRAME_IP4(
		&expected, .source = source, .destination = "203.0.113.0", .id = client, .ttl = 63);
	FRAME_TCP(
		&expected, .source_port = port, .destination_port = IMAGE_PORT_TCP, .flags = flags);
	frame_finish(&expected);
}

static bool equals(const struct rte_mbuf *mbuf, const struct frame *what)
{
	return mbuf->data_len == what->length &&
		memcmp(rte_pktmbuf_mtod(mbuf, void *), what->bytes, what->length) == 0;
}

// Sends a packet of a flow and checks that it comes out on its way to backend.
static void expect_way(unsigned client, unsigned port, unsigned flags, uint32_t backend)
{
	struct rte_mbuf *mbuf;

	build_tcp(&frame, client, port, flags);
	build_expected_tcp(client, port, backend, flags);
	put(client % WORKERS, &frame);
	mbuf = take(client % WORKERS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
	CU_ASSERT_TRUE_FATAL(equals(mbuf, &expected));
	rte_pktmbuf_free(mbuf);
}

// The gateway answers when it is asked.
static void gateway_answers_the_question(void)
{
	const uint8_t *mac = dataplane.pipeline.ports[0].mac;
	bool asked = false;

	for (unsigned i = 0; i < 100 && !asked; i++) {
		struct rte_mbuf *mbuf;

		dataplane_tick(&dataplane);
		while (!asked && (mbuf = take(0)) != NULL) {
			const uint8_t *bytes = rte_pktmbuf_mtod(mbuf, const uint8_t *);

			// ARP (0806) request (1) for 192.0.2.1; the announcements before it are for our own.
			asked = mbuf->data_len >= 42 && bytes[12] == 8 && bytes[13] == 6 &&
				bytes[21] == 1 && memcmp(bytes + 38, "\300\000\002\001", 4) == 0 &&
				memcmp(bytes + 6, mac, 6) == 0;
			rte_pktmbuf_free(mbuf);
		}
	}
	CU_ASSERT_FATAL(asked);
	FRAME_START(&frame, .source = MAC_NEXT);
	FRAME_ARP(&frame, .operation = 2, .sender_mac = MAC_NEXT, .sender = "192.0.2.1",
		.target_mac = MAC_BALANCER, .target = "192.0.2.10");
	frame_finish(&frame);
	put(1, &frame);
	for (unsigned i = 0; i < 50000 && counter(COUNTER_answered) == 0; i++)
		pause_us(20);
	CU_ASSERT_EQUAL(counter(COUNTER_answered), 1);
	CU_ASSERT(counter(COUNTER_generated) > 0);
	drain();
}

// First: before any snapshot, and then the way of a packet, byte by byte.
static void without_a_snapshot_packets_are_dropped_by_name(void)
{
	build_syn(&frame, 1, 1000);
	put(0, &frame);
	for (unsigned i = 0; i < 50000 && counter(COUNTER_rx_packets) == 0; i++)
		pause_us(20);
	expect_balance();
	CU_ASSERT_EQUAL(counter(COUNTER_rx_packets), 1);
	CU_ASSERT_EQUAL(counter(COUNTER_forwarded), 0);
	drain();
}

static void each_queue_forwards_byte_by_byte_on_its_own(void)
{
	publish_next();
	gateway_answers_the_question();
	for (unsigned i = 0; i < 200; i++)
		expect_way(i, 2000, FRAME_SYN, pick(i, 2000).backend);
	expect_balance();
	for (uint32_t w = 0; w < WORKERS; w++)
		CU_ASSERT_EQUAL(
			stats_worker(dataplane.stats.header, w).counter[COUNTER_forwarded], 100);
}

static void a_gate_sends_new_flows_to_the_new_ring_and_moves_no_old_one(void)
{
	struct ipc_gates *gates = calloc(1, sizeof(*gates));
	uint32_t before[200];
	struct snapshot_error error;
	unsigned moved = 0;

	for (unsigned i = 0; i < 200; i++)
		before[i] = pick(i, 2000).backend;
	gates->generation = generation;
	gates->count = 1;
	gates->gates[0] = (struct ipc_gate){0, 0x5a170000u, GATE_ALWAYS};
	CU_ASSERT_EQUAL(publish_gates(&dataplane, gates, &error), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct selection now = pick(i, 2001);

		// Known flows of the test before stay; the same clients' new flows follow the gate.
		expect_way(i, 2000, FRAME_SYN, before[i]);
		expect_way(i, 2001, FRAME_SYN, now.backend);
		CU_ASSERT_TRUE(now.uses_new);
		moved += pick(i, 2000).backend != before[i];
	}
	CU_ASSERT(moved > 100); // or the test would show nothing
	gates->gates[0].word = GATE_NEVER;
	CU_ASSERT_EQUAL(publish_gates(&dataplane, gates, &error), 0);
	CU_ASSERT_EQUAL(stats_worker(dataplane.stats.header, 0).pools[0].new_flows_new, 100);
	expect_balance();
	free(gates);
}

// Snapshots are swapped while packets flow: every packet comes out, and the memory of the old ones comes back.
static void publishing_under_traffic_loses_no_packet_and_no_memory(void)
{
	uint64_t held = hugemem_held(), forwarded = counter(COUNTER_forwarded), sent = 0, seen = 0;
	void *mbuf;

	for (unsigned round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 16; i++) {
			build_syn(&frame, i, 3000 + round);
			put(i % WORKERS, &frame);
			sent++;
		}
		if (round % 10 == 0)
			publish_next();
		for (unsigned q = 0; q < WORKERS; q++) {
			while (rte_ring_dequeue(from_worker[q], &mbuf) == 0) {
				rte_pktmbuf_free(mbuf);
				seen++;
			}
		}
	}
	expect_balance();
	for (unsigned q = 0; q < WORKERS; q++) {
		while (rte_ring_dequeue(from_worker[q], &mbuf) == 0) {
			rte_pktmbuf_free(mbuf);
			seen++;
		}
	}
	CU_ASSERT_EQUAL(seen, sent);
	CU_ASSERT_EQUAL(counter(COUNTER_forwarded) - forwarded, sent);
	CU_ASSERT_EQUAL(hugemem_held(), held);
	CU_ASSERT_EQUAL(dataplane.stats.header->generation, generation);
}

static void a_refused_image_leaves_traffic_and_memory_alone(void)
{
	struct image_shape shape = {.generation = generation + 1,
		.pool_count = 2,
		.backend_count = 20,
		.points = 50,
		.staged = true};
	uint64_t held = hugemem_held(), bytes;
	struct snapshot_error error = {.text = ""};
	uint8_t *image = make_image(&shape, &bytes);

	image[bytes - 1] ^= 1;
	CU_ASSERT_EQUAL(publish_image(&dataplane, image, bytes, &error), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "checksum"));
	CU_ASSERT_EQUAL(hugemem_held(), held);
	CU_ASSERT_EQUAL(dataplane.publication.snapshot->header->generation, generation);
	expect_way(8, 9000, FRAME_SYN, pick(8, 9000).backend);
	munmap(image, bytes);
}

static void a_full_transmit_queue_is_a_counted_drop(void)
{
	uint64_t full = dropped(DROP_tx_full);
	unsigned in = 0, out = 0;
	void *mbuf;

	drain();
	for (unsigned i = 0; i < 2 * RING_SIZE; i++) {
		build_syn(&frame, i, 5000);
		put(0, &frame);
		in++;
	}
	expect_balance();
	while (rte_ring_dequeue(from_worker[0], &mbuf) == 0) {
		rte_pktmbuf_free(mbuf);
		out++;
	}
	CU_ASSERT(out < in);
	CU_ASSERT_EQUAL(dropped(DROP_tx_full) - full, in - out);
}

// Nothing that passes through is kept or freed twice: with all rings empty the pool has what it had.
static void every_buffer_comes_back(void)
{
	drain();
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(dataplane.pools[0]), 0);
}

static void garbage_is_dropped_and_balanced(void)
{
	uint64_t state = suite_seed();

	for (unsigned i = 0; i < 3000; i++) {
		build_syn(&frame, i, 6000);
		for (unsigned n = suite_random(&state) % 8; n > 0; n--)
			frame.bytes[suite_random(&state) % frame.length] =
				(uint8_t)suite_random(&state);
		frame.length -= (unsigned)(suite_random(&state) % frame.length);
		put(i % WORKERS, &frame);
		drain();
	}
	expect_balance();
	drain();
}

static int open_port_and_dataplane(const char *name, char *error)
{
	if (rte_eth_from_rings(name, to_worker, WORKERS, from_worker, WORKERS, 0) < 0)
		return -1;
	return dataplane_open(&dataplane, &options, 0, error);
}

// Everything is closed and opened again in the same run directory, as the next process would find it. A gate that
// would send every flow elsewhere shows that it is the flow table that keeps them.
static void flows_snapshot_and_gates_are_there_after_a_restart(void)
{
	struct ipc_gates *gates = calloc(1, sizeof(*gates));
	struct snapshot_error refused;
	uint32_t before[200];
	char error[DATAPLANE_ERROR_BYTES] = "";

	for (unsigned i = 0; i < 200; i++) {
		before[i] = pick(i, 7000).backend;
		expect_way(i, 7000, FRAME_SYN, before[i]);
		// Proven, so that no flood of the tests before or after evicts it.
		for (unsigned n = 0; n < 3; n++)
			expect_way(i, 7000, FRAME_ACK, before[i]);
	}
	CU_ASSERT_EQUAL(persist_snapshot(&dataplane), 0);
	gates->generation = generation;
	gates->count = 1;
	gates->gates[0] = (struct ipc_gate){0, 0x5a170000u, GATE_ALWAYS};
	CU_ASSERT_EQUAL(publish_gates(&dataplane, gates, &refused), 0);
	CU_ASSERT_EQUAL(persist_gates(&dataplane), 0);
	free(gates);
	dataplane_close(&dataplane);
	CU_ASSERT_EQUAL(hugemem_held(), 0);

	options.ports[0].device = "net_ring_again";
	CU_ASSERT_EQUAL_FATAL(open_port_and_dataplane("again", error), 0);
	CU_ASSERT_EQUAL(dataplane.stats.header->generation, generation);
	CU_ASSERT_EQUAL(snapshot_threshold(&dataplane.publication.snapshot->pools[0]), GATE_ALWAYS);
	CU_ASSERT(dataplane.flows[0].kept >= 100);
	CU_ASSERT(dataplane.flows[1].kept >= 100);
	gateway_answers_the_question();
	for (unsigned i = 0; i < 200; i++)
		expect_way(i, 7000, FRAME_ACK, before[i]);
	CU_ASSERT_EQUAL(counter(COUNTER_flow_hit), 200);
}

static const struct test_case cases[] = {
	{"without_a_snapshot_packets_are_dropped_by_name",
		without_a_snapshot_packets_are_dropped_by_name},
	{"each_queue_forwards_byte_by_byte_on_its_own",
		each_queue_forwards_byte_by_byte_on_its_own},
	{"a_gate_sends_new_flows_to_the_new_ring_and_moves_no_old_one",
		a_gate_sends_new_flows_to_the_new_ring_and_moves_no_old_one},
	{"publishing_under_traffic_loses_no_packet_and_no_memory",
		publishing_under_traffic_loses_no_packet_and_no_memory},
	{"a_refused_image_leaves_traffic_and_memory_alone",
		a_refused_image_leaves_traffic_and_memory_alone},
	{"a_full_transmit_queue_is_a_counted_drop", a_full_transmit_queue_is_a_counted_drop},
	{"garbage_is_dropped_and_balanced", garbage_is_dropped_and_balanced},
	{"every_buffer_comes_back", every_buffer_comes_back},
	{"flows_snapshot_and_gates_are_there_after_a_restart",
		flows_snapshot_and_gates_are_there_after_a_restart},
};

// Ports need rings, rings need EAL, so EAL comes up without a port.
static int open_all(void)
{
	char workers[] = "0,1";
	char *argv[] = {"live", "--run-dir", run_dir, "--main", "0", "--workers", workers,
		"--flow-entries", "4096", "--idle-sleep", "--eal", "--no-huge", "--eal",
		"--no-shconf", "--eal", "-m128", "--port", "net_ring_wire", "--mtu", "1500",
		"--address", "192.0.2.10/24", "--gateway", "192.0.2.1"};
	char error[OPTIONS_ERROR_SIZE] = "";
	uint32_t ports;

	if (options_parse((int)RTE_DIM(argv), argv, &options, error) != OPTIONS_RUN)
		goto err;
	ports = options.port_count;
	options.port_count = 0;
	if (eal_start(&options, error) != 0)
		goto err;
	options.port_count = ports;
	for (unsigned q = 0; q < WORKERS; q++) {
		char name[32];

		snprintf(name, sizeof(name), "to_%u", q);
		to_worker[q] = rte_ring_create(name, RING_SIZE, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
		snprintf(name, sizeof(name), "from_%u", q);
		from_worker[q] = rte_ring_create(name, RING_SIZE, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	}
	if (open_port_and_dataplane("wire", error) == 0)
		return 0;
err:
	printf("# %s\n", error);
	return -1;
}

static void remove_files(void)
{
	static const char *const names[] = {
		"stats", "flows.0", "flows.1", "snapshot.img", "gates.img"};
	char path[128];

	for (size_t i = 0; i < RTE_DIM(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", run_dir, names[i]);
		unlink(path);
	}
	rmdir(run_dir);
}

int main(void)
{
	int status = 1;

	if (mkdtemp(run_dir) == NULL)
		return 1;
	chmod(run_dir, 0755);
	if (open_all() == 0)
		status = SUITE_RUN("live", cases);
	dataplane_close(&dataplane);
	eal_stop();
	remove_files();
	return status;
}
