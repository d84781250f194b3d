// SPDX-License-Identifier: Apache-2.0
// Invariant 1: rx = forwarded + punted + answered + drops, for each worker, after every burst, whatever arrives and
// whatever changes meanwhile; and the tables stay sound.
#include "dataplane/table/flow_table.h"
#include "tests/lib/node.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
	struct node node;
	uint64_t random;
	struct frame frame;
};

static uint32_t dice(struct world *world, uint32_t sides)
{
	return (uint32_t)(suite_random(&world->random) % sides);
}

static void add_transport(struct world *world, bool six)
{
	static const unsigned ports[] = {IMAGE_PORT_TCP, IMAGE_PORT_UDP, 81};
	struct frame *frame = &world->frame;

	switch (dice(world, 6)) {
	case 0:
		if (six)
			FRAME_ICMP6(frame, .type = dice(world, 2) ? 128 : dice(world, 256));
		else
			FRAME_ICMP4(frame, .type = dice(world, 2) ? 8 : dice(world, 20));
		break;
	case 1:
		FRAME_UDP(frame, .source_port = 1 + dice(world, 200),
			.destination_port = ports[dice(world, 3)]);
		break;
	default:
		FRAME_TCP(frame, .source_port = 1 + dice(world, 200),
			.destination_port = ports[dice(world, 3)], .flags = dice(world, 32));
	}
	frame_fill(frame, dice(world, 8) ? dice(world, 64) : 1400 + dice(world, 200), 0);
}

static void build_ip(struct world *world)
{
	static const char *const destinations4[] = {
		"203.0.113.0", "203.0.113.1", "203.0.113.2", NODE_ADDRESS4, "192.0.2.99"};
	static const char *const destinations6[] = {
		"2001:db8:cb::", "2001:db8:cb::1", NODE_ADDRESS6, "2001:db8:9::9"};
	struct frame *frame = &world->frame;
	bool six = dice(world, 3) == 0;

	if (six)
		FRAME_IP6(frame, .destination = destinations6[dice(world, 4)],
			.hop_limit = 1 + dice(world, 64));
	else
		FRAME_IP4(frame, .destination = destinations4[dice(world, 5)],
			.ttl = 1 + dice(world, 64), .id = 1 + dice(world, 5),
			.dont_fragment = dice(world, 2), .more_fragments = dice(world, 10) == 0,
			.fragment_offset = dice(world, 10) ? 0 : 8 * dice(world, 100),
			.options_bytes = dice(world, 10) ? 0 : 4 * dice(world, 10));
	add_transport(world, six);
}

static void build(struct world *world)
{
	struct frame *frame = &world->frame;

	FRAME_START(frame);
	if (dice(world, 10) == 0)
		FRAME_VLAN(frame, .id = 7);
	switch (dice(world, 10)) {
	case 0:
		FRAME_ARP(frame, .operation = 1 + dice(world, 2), .sender_mac = MAC_ROUTER,
			.sender = NODE_GATEWAY4,
			.target = dice(world, 2) ? NODE_ADDRESS4 : "192.0.2.55");
		break;
	case 1:
		FRAME_IP6(frame, .source = NODE_GATEWAY6, .destination = NODE_ADDRESS6,
			.hop_limit = 255);
		FRAME_ND(frame, .type = 135 + dice(world, 2),
			.target = dice(world, 2) ? NODE_ADDRESS6 : NODE_GATEWAY6,
			.option = dice(world, 3), .option_mac = MAC_ROUTER);
		break;
	default:
		build_ip(world);
	}
	frame_finish(frame);
	// One frame of four is spoilt.
	for (uint32_t i = dice(world, 4) ? 0 : 1 + dice(world, 3); i > 0; i--)
		frame->bytes[dice(world, frame->length)] = (uint8_t)dice(world, 256);
}

static void change_something(struct world *world)
{
	static const uint8_t states[] = {SNAPSHOT_BACKEND_UP, SNAPSHOT_BACKEND_UP,
		SNAPSHOT_BACKEND_DRAIN, SNAPSHOT_BACKEND_DOWN};
	struct node *node = &world->node;
	struct snapshot_header *header = node->image;

	switch (dice(world, 5)) {
	case 0:
		node_set_threshold(node, dice(world, 2), gate_threshold(dice(world, 1000001)));
		break;
	case 1:
		node_backend(node, dice(world, 40))->state = states[dice(world, 4)];
		header->unknown = (uint8_t)dice(world, 2);
		node_service(node, 0)->tunnel = (uint8_t)dice(world, SNAPSHOT_TUNNEL_COUNT);
		node_service(node, 1)->affinity = (uint8_t)dice(world, FLOW_AFFINITY_COUNT);
		node_service(node, 1)->flags ^= SNAPSHOT_SERVICE_STATELESS;
		node_reload(node);
		break;
	case 2:
		node_advance(node, dice(world, 100));
		break;
	case 3:
		node_answer_neighbours(node);
		break;
	default:
		for (unsigned i = 0; i < 100; i++)
			pipeline_housekeep(&node->workers[dice(world, 2)]);
	}
}

static void run_burst(struct world *world)
{
	struct packet packets[PACKET_BURST];
	unsigned count = 1 + dice(world, PACKET_BURST);
	uint32_t worker = dice(world, 2);

	for (unsigned i = 0; i < count; i++) {
		build(world);
		if (dice(world, 20) == 0)
			packet_load_cut(
				&packets[i], &world->frame, dice(world, world->frame.length));
		else
			packet_load(&packets[i], &world->frame, dice(world, 10) ? 128 : 20, 128);
	}
	node_run_burst(&world->node, worker, packets, count);
	for (unsigned i = 0; i < count; i++)
		packet_unload(&packets[i]);
	CU_ASSERT_EQUAL_FATAL(node_imbalance(&world->node, worker), 0);
}

static void check_sums(const struct node *node)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct stats_worker *stats = &node->workers[i].stats;
		uint64_t of_services = 0, of_pools = 0, of_backends = 0;

		for (unsigned n = 0; n < 2; n++) {
			of_services += stats->services[n].packets - stats->services[n].drops;
			of_pools += stats->pools[n].packets_old + stats->pools[n].packets_new;
		}
		for (unsigned n = 0; n < 40; n++)
			of_backends += stats->backends[n].packets;
		CU_ASSERT_EQUAL(of_pools, of_backends);
		CU_ASSERT_EQUAL(of_services, stats->counter[COUNTER_forwarded]);
		CU_ASSERT(of_backends >= stats->counter[COUNTER_forwarded]);
	}
}

static void every_packet_is_accounted_for_once(bool has_punt)
{
	static const struct image_shape shape = {.generation = 1,
		.pool_count = 2,
		.backend_count = 40,
		.points = 16,
		.staged = true};
	struct world *world = calloc(1, sizeof(*world));
	uint64_t seen = 0;

	world->random = suite_seed() + has_punt;
	node_make(&world->node,
		&(struct node_shape){.workers = 2, .flow_entries = 64, .has_punt = has_punt});
	for (unsigned i = 0; i < 20000; i++) {
		if (i == 50)
			node_load_shape(&world->node, &shape);
		if (i > 50 && dice(world, 4) == 0)
			change_something(world);
		run_burst(world);
	}
	check_sums(&world->node);
	// The test is worth something only if packets took every way.
	for (unsigned i = 0; i < DROP_COUNT; i++)
		seen += node_drops(&world->node, (enum drop_reason)i) > 0;
	printf("# %lu of %u drop reasons, forwarded %lu, answered %lu, punted %lu, rerouted %lu\n",
		(unsigned long)seen, DROP_COUNT,
		(unsigned long)node_counter(&world->node, COUNTER_forwarded),
		(unsigned long)node_counter(&world->node, COUNTER_answered),
		(unsigned long)node_counter(&world->node, COUNTER_punted),
		(unsigned long)node_counter(&world->node, COUNTER_flow_rerouted));
	CU_ASSERT(seen > 15);
	CU_ASSERT(node_counter(&world->node, COUNTER_forwarded) > 1000);
	CU_ASSERT(node_counter(&world->node, COUNTER_answered) > 100);
	CU_ASSERT_EQUAL(node_counter(&world->node, COUNTER_punted) > 0, has_punt);
	CU_ASSERT(node_counter(&world->node, COUNTER_flow_hit_other) > 0);
	node_free(&world->node);
	free(world);
}

static void every_packet_is_accounted_for_with_a_kernel_port(void)
{
	every_packet_is_accounted_for_once(true);
}

static void every_packet_is_accounted_for_without_a_kernel_port(void)
{
	every_packet_is_accounted_for_once(false);
}

static const struct test_case cases[] = {
	{"every_packet_is_accounted_for_with_a_kernel_port",
		every_packet_is_accounted_for_with_a_kernel_port},
	{"every_packet_is_accounted_for_without_a_kernel_port",
		every_packet_is_accounted_for_without_a_kernel_port},
};

int main(void)
{
	return SUITE_RUN("balance", cases);
}
