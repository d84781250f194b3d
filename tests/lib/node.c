// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/node.h"

#include "dataplane/table/flow_table.h"
#include "dataplane/table/neighbour_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

#define NEIGHBOURS 8192u

static const struct stats_geometry geometry = {
	.worker_count = NODE_WORKERS_MAX,
	.service_count = 64,
	.pool_count = 64,
	.backend_count = 65536,
};

#define HUGE_PAGE (UINT64_C(2) << 20)

// Large blocks stand in huge pages if the kernel has some, as in a live dataplane.
static void *allocate(uint64_t align, uint64_t bytes)
{
	void *ret;

	if (bytes >= HUGE_PAGE)
		align = HUGE_PAGE;
	bytes = (bytes + align - 1) / align * align;
	ret = aligned_alloc(align, bytes);
	CHECK(ret != NULL);
	if (align == HUGE_PAGE)
		madvise(ret, bytes, MADV_HUGEPAGE);
	memset(ret, 0, bytes);
	return ret;
}

static void add_address(struct pipeline_port *port, const char *text, uint8_t bits)
{
	struct pipeline_address *address = &port->addresses[port->address_count++];

	CHECK(addr_parse(text, &address->address) == 0);
	address->prefix_bits = bits;
}

static void make_port(struct pipeline_port *port, const struct node_shape *shape)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}; // MAC_BALANCER

	memcpy(port->mac, mac, sizeof(mac));
	port->mtu = shape->mtu ? shape->mtu : 1500;
	add_address(port, shape->address4 ? shape->address4 : NODE_ADDRESS4,
		shape->address4_bits ? shape->address4_bits : 24);
	add_address(port, NODE_ADDRESS6, 64);
	if (shape->no_gateway)
		return;
	CHECK(addr_parse(NODE_GATEWAY4, &port->gateway4) == 0);
	CHECK(addr_parse(NODE_GATEWAY6, &port->gateway6) == 0);
}

void node_make(struct node *node, const struct node_shape *shape)
{
	uint32_t entries = shape->flow_entries ? shape->flow_entries : 65536;
	struct pipeline *pipeline = &node->pipeline;

	memset(node, 0, sizeof(*node));
	node->now_s = 1000000;
	pipeline->worker_count = shape->workers ? shape->workers : 1;
	pipeline->port_count = 1;
	pipeline->has_punt = shape->has_punt;
	make_port(&pipeline->ports[0], shape);
	pipeline->neighbours = neighbour_table_format(
		allocate(NEIGHBOUR_TABLE_ALIGN, neighbour_table_footprint(NEIGHBOURS)), NEIGHBOURS);
	CHECK(pipeline_init(pipeline) == 0);
	node->stats = allocate(STATS_LINE, stats_footprint(&geometry));
	stats_format(node->stats, &geometry);
	for (uint32_t i = 0; i < pipeline->worker_count; i++) {
		struct stats_worker stats = stats_worker(node->stats, i);
		void *table = allocate(FLOW_TABLE_ALIGN, flow_table_footprint(entries));

		pipeline_worker_init(&node->workers[i], pipeline, i,
			flow_table_format(table, entries, node->now_s), &stats,
			allocate(PIPELINE_ALIGN, pipeline_worker_footprint()));
	}
	node_advance(node, 0);
}

void node_free(struct node *node)
{
	for (uint32_t i = 0; i < node->pipeline.worker_count; i++) {
		free(node->forwarding[i]);
		free(node->pipeline.flow_tables[i]);
		free(node->workers[i].scratch);
	}
	free(node->pipeline.neighbours);
	free(node->stats);
	free(node->image);
}

static void publish(struct node *node)
{
	struct snapshot *snapshot = malloc(sizeof(*snapshot));
	struct snapshot_error error;

	image_seal(node->image);
	if (snapshot_open(node->image, node->image_bytes, snapshot, &error) != 0) {
		fprintf(stderr, "snapshot: %s\n", error.text);
		abort();
	}
	for (uint32_t i = 0; i < node->pipeline.worker_count; i++) {
		struct forwarding *old = node->forwarding[i];

		CHECK(forwarding_build(allocate(SNAPSHOT_ALIGN, forwarding_footprint(snapshot)),
			      snapshot, &node->pipeline, &node->forwarding[i]) == 0);
		node->workers[i].forwarding = node->forwarding[i];
		free(old);
	}
	free(snapshot);
}

void node_load(struct node *node, void *image, uint64_t bytes)
{
	free(node->image);
	node->image = image;
	node->image_bytes = bytes;
	publish(node);
}

void node_load_shape(struct node *node, const struct image_shape *shape)
{
	uint64_t bytes;
	void *image = image_build(shape, &bytes);

	node_load(node, image, bytes);
}

void node_reload(struct node *node)
{
	((struct snapshot_header *)node->image)->generation++;
	publish(node);
}

void node_set_threshold(struct node *node, uint32_t pool, uint64_t word)
{
	for (uint32_t i = 0; i < node->pipeline.worker_count; i++)
		forwarding_gate_set(node->forwarding[i], pool, word);
}

void node_advance(struct node *node, uint32_t seconds)
{
	node->now_s += seconds;
	for (uint32_t i = 0; i < node->pipeline.worker_count; i++) {
		node->workers[i].now_s = node->now_s;
		node->workers[i].now_ns = node->now_s * UINT64_C(1000000000);
	}
}

void node_housekeep(struct node *node, uint32_t worker)
{
	struct pipeline_worker *who = &node->workers[worker];

	pipeline_housekeep(who);
	for (unsigned i = 0; i < 4100; i++) {
		who->now_ns += 1000000;
		who->now_s = (uint32_t)(who->now_ns / 1000000000);
		pipeline_housekeep(who);
	}
	node->now_s = who->now_s;
	node_advance(node, 0);
}

unsigned node_answer_neighbours(struct node *node)
{
	struct neighbour_request request;
	unsigned count = 0;

	while (neighbour_table_due(node->pipeline.neighbours, node->now_s, &request, 1) == 1) {
		struct neighbour_answer answer = {.port = request.port,
			.address = request.address,
			.overrides = true,
			.mac = {2, 0, 0, 0, 0, 3}}; // MAC_BACKEND

		CHECK(neighbour_table_learn(node->pipeline.neighbours, &answer, node->now_s));
		count++;
	}
	return count;
}

void node_run_burst(struct node *node, uint32_t worker, struct packet *packets, unsigned count)
{
	pipeline_burst(&node->workers[worker], packets, count);
	for (unsigned i = 0; i < count; i++)
		CHECK(packets[i].verdict != PACKET_PENDING);
	pipeline_book_sent(&node->workers[worker], packets, count);
}

void node_run(struct node *node, uint32_t worker, const struct frame *frame, struct packet *ret)
{
	packet_load(ret, frame, 128, 128);
	node_run_burst(node, worker, ret, 1);
}

uint64_t node_counter(const struct node *node, enum counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < node->pipeline.worker_count; i++)
		sum += node->workers[i].stats.counter[counter];
	return sum;
}

uint64_t node_drops(const struct node *node, enum drop_reason reason)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < node->pipeline.worker_count; i++)
		sum += node->workers[i].stats.drop[reason];
	return sum;
}

int64_t node_imbalance(const struct node *node, uint32_t worker)
{
	const struct stats_worker *stats = &node->workers[worker].stats;
	uint64_t sum = stats->counter[COUNTER_forwarded] + stats->counter[COUNTER_punted] +
		stats->counter[COUNTER_answered];

	for (unsigned i = 0; i < DROP_COUNT; i++)
		sum += stats->drop[i];
	return (int64_t)(stats->counter[COUNTER_rx_packets] - sum);
}

static void *element(struct node *node, const struct snapshot_section *section, uint32_t id)
{
	CHECK(id < section->count);
	return (char *)node->image + section->offset + (uint64_t)id * section->stride;
}

struct snapshot_service *node_service(struct node *node, uint32_t id)
{
	return element(node, &((struct snapshot_header *)node->image)->services, id);
}

struct snapshot_backend *node_backend(struct node *node, uint32_t id)
{
	return element(node, &((struct snapshot_header *)node->image)->backends, id);
}
