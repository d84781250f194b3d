// SPDX-License-Identifier: Apache-2.0
// A cutover to another hash seed, in packets: who goes where, who stays, and what is counted. The expected backend is
// worked out here, from the bytes of the seeds.
#include "common/selection.h"

#include "dataplane/table/flow_table.h"
#include "tests/unit/dataplane/pipeline/flows.h"

#include <netinet/in.h>

static struct frame in;

static struct hash_seed seed_of(const struct snapshot *snapshot, uint32_t ring, bool own)
{
	uint8_t bytes[HASH_SEED_BYTES];

	memset(bytes, (int)(IMAGE_SEED + ring), sizeof(bytes));
	return own ? hash_seed_expand(bytes) : snapshot->hash_seed;
}

// The seeds of service 0's rings, which are rings 0 and 1.
struct seeds {
	struct hash_seed of_old;
	struct hash_seed of_new;
};

static struct seeds seeds_of(const struct snapshot *snapshot, uint8_t seeded)
{
	return (struct seeds){seed_of(snapshot, 0, seeded & IMAGE_SEEDED_OLD),
		seed_of(snapshot, 1, seeded & IMAGE_SEEDED_NEW)};
}

// Where a flow belongs whose rings see these two hashes.
static uint32_t expected(const struct snapshot *snapshot, uint32_t hash_old, uint32_t hash_new)
{
	const struct snapshot_pool *pool = &snapshot->pools[0];
	bool is_new = gate_uses_new(snapshot_threshold(pool), pool->gate.salt, hash_old);
	const struct ring *ring = &snapshot->rings[is_new];

	return ring_member(ring, ring_lookup(ring, is_new ? hash_new : hash_old));
}

static struct flow_key tcp_key(uint32_t flow)
{
	return (struct flow_key){.family = ADDR_V4,
		.protocol = IPPROTO_TCP,
		.source = {198, 51, (uint8_t)(flow >> 8), (uint8_t)flow},
		.destination = {203, 0, 113, 0},
		.source_port_be = htons((uint16_t)(1024 + (flow >> 16))),
		.destination_port_be = htons(IMAGE_PORT_TCP)};
}

static uint32_t expected_tcp(const struct snapshot *snapshot, uint8_t seeded, uint32_t flow)
{
	struct seeds seeds = seeds_of(snapshot, seeded);
	struct flow_key key = tcp_key(flow);

	return expected(snapshot, flow_ring_hash(flow_hash(&key, &seeds.of_old)),
		flow_ring_hash(flow_hash(&key, &seeds.of_new)));
}

// Whichever ring has a seed of its own: the next cutover begins where the last one ended.
static void new_flows_go_where_the_seed_of_their_ring_says(void)
{
	for (uint8_t seeded = 0; seeded < 4; seeded++) {
		struct node node;

		flows_node_seeded(&node, seeded);
		const struct snapshot *snapshot = &node.forwarding[0]->snapshot;

		for (uint32_t flow = 0; flow < 1000; flow++) {
			struct flow_key key = tcp_key(flow);
			struct ipc_explained why;

			node_set_threshold(&node, 0, gate_threshold(flow % 5 * GATE_SHARE_ALL / 4));
			pipeline_explain(
				&node.pipeline, node.forwarding[0], &key, node.now_s, &why);
			uint32_t backend = flows_tcp(&node, flow % 2, flow, FRAME_SYN);

			CU_ASSERT_EQUAL(backend, expected_tcp(snapshot, seeded, flow));
			CU_ASSERT_EQUAL(backend, why.backend);
			CU_ASSERT_EQUAL(backend, why.uses_new ? why.backend_new : why.backend_old);
		}
		flows_check_balance(&node);
		node_free(&node);
	}
}

static void sweep_to_another_seed_moves_no_established_flow(void)
{
	enum {
		FLOWS = 500
	};
	struct node node;
	uint32_t backends[FLOWS], moved = 0;

	flows_node_seeded(&node, IMAGE_SEEDED_NEW);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		backends[flow] = flows_establish(&node, 0, flow);
	for (uint32_t step = 0; step <= 40; step++) {
		uint32_t share = (step <= 20 ? step : 40 - step) * GATE_SHARE_ALL / 20;

		node_set_threshold(&node, 0, gate_threshold(share));
		for (uint32_t flow = 0; flow < FLOWS; flow++)
			moved += flows_tcp(&node, step % 2, flow, FRAME_ACK) != backends[flow];
		// New flows do follow the gate, else this test would show nothing.
		flows_tcp(&node, 0, 1u << 16 | step, FRAME_SYN);
	}
	CU_ASSERT_EQUAL(moved, 0);
	CU_ASSERT(node.workers[0].stats.pools[0].packets_new > 10);
	flows_check_balance(&node);
	node_free(&node);
}

// Only the seed differs, the points are one: old and new agree where chance makes them, on 1 of 20 flows.
static void shadow_comparison_gives_each_ring_its_hash(void)
{
	struct node node;
	uint64_t same, different;

	flows_node_seeded(&node, IMAGE_SEEDED_NEW);
	node_service(&node, 0)->ring_new = 0;
	node_reload(&node);
	for (uint32_t flow = 0; flow < 2000; flow++)
		flows_tcp(&node, 0, flow, FRAME_SYN);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_shadow_different), 0);
	node_free(&node);

	flows_node_seeded(&node, IMAGE_SEEDED_NEW);
	const struct snapshot *snapshot = &node.forwarding[0]->snapshot;
	struct seeds seeds = seeds_of(snapshot, IMAGE_SEEDED_NEW);
	uint64_t expect_same = 0;

	for (uint32_t flow = 0; flow < 8000; flow++) {
		struct flow_key key = tcp_key(flow);
		uint64_t whole = flow_hash(&key, &seeds.of_old);
		uint32_t on_old = ring_lookup(&snapshot->rings[0], flow_ring_hash(whole));
		uint32_t on_new = ring_lookup(
			&snapshot->rings[1], flow_ring_hash(flow_hash(&key, &seeds.of_new)));

		// The sample is chosen by the fleet's hash: 1 of 8.
		expect_same += (uint32_t)whole >> 29 == 0 && on_old == on_new;
		flows_tcp(&node, 0, flow, FRAME_SYN);
	}
	same = node_counter(&node, COUNTER_shadow_same);
	different = node_counter(&node, COUNTER_shadow_different);
	CU_ASSERT_EQUAL(same, expect_same);
	CU_ASSERT(different > 10 * same);
	node_free(&node);
}

// A QUIC packet with the ID that a server chose, from some port.
static uint32_t quic(struct node *node, unsigned port, unsigned connection)
{
	uint8_t bytes[64] = {0x40, 0xaa, (uint8_t)connection, 1, 2, 3, 4, 5, 6};
	struct packet packet;
	uint32_t backend;

	FRAME_START(&in);
	FRAME_IP4(&in, .destination = SERVICE_ADDRESS);
	FRAME_UDP(&in, .source_port = port, .destination_port = IMAGE_PORT_UDP);
	frame_payload(&in, bytes, sizeof(bytes));
	frame_finish(&in);
	node_run(node, 0, &in, &packet);
	CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
	backend = packet.backend;
	packet_unload(&packet);
	return backend;
}

static void quic_connection_ids_are_hashed_under_the_seed_of_the_ring(void)
{
	struct node node;

	flows_node_seeded(&node, IMAGE_SEEDED_NEW);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_QUIC;
	node_reload(&node);
	const struct snapshot *snapshot = &node.forwarding[0]->snapshot;
	struct seeds seeds = seeds_of(snapshot, IMAGE_SEEDED_NEW);

	for (unsigned connection = 0; connection < 200; connection++) {
		uint8_t id[8] = {0xaa, (uint8_t)connection, 1, 2, 3, 4, 5, 6};

		node_set_threshold(&node, 0, connection % 3 * (GATE_ALWAYS / 2));
		uint32_t backend = quic(&node, 2000 + connection, connection);

		CU_ASSERT_EQUAL(backend,
			expected(snapshot,
				flow_ring_hash(hash_bytes(id, sizeof(id), &seeds.of_old)),
				flow_ring_hash(hash_bytes(id, sizeof(id), &seeds.of_new))));
		// It stays when gate and address change.
		node_set_threshold(&node, 0, GATE_ALWAYS - connection % 2 * GATE_ALWAYS);
		CU_ASSERT_EQUAL(quic(&node, 3000 + connection, connection), backend);
	}
	flows_check_balance(&node);
	node_free(&node);
}

// An ICMP error about a flow of another node finds the owner that every node's rings name.
static void icmp_error_finds_the_owner_under_the_seed_of_the_ring(void)
{
	struct node node;

	flows_node_seeded(&node, IMAGE_SEEDED_OLD | IMAGE_SEEDED_NEW);
	const struct snapshot *snapshot = &node.forwarding[0]->snapshot;

	for (uint32_t flow = 0; flow < 200; flow++) {
		struct packet packet;

		node_set_threshold(&node, 0, flow % 3 * (GATE_ALWAYS / 2));
		flows_frame_icmp_error(&in, flow, IMAGE_PORT_TCP);
		node_run(&node, 0, &in, &packet);
		CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
		CU_ASSERT_EQUAL(packet.backend,
			expected_tcp(snapshot, IMAGE_SEEDED_OLD | IMAGE_SEEDED_NEW, flow));
		packet_unload(&packet);
	}
	flows_check_balance(&node);
	node_free(&node);
}

// A rollback that takes established flows back finds the old ring's owner under the old ring's seed, whichever seeds there are.
static void recalled_flows_go_to_their_owner_under_the_old_seed(void)
{
	for (uint8_t seeded = 0; seeded < 4; seeded++) {
		struct node node;
		flows_node_seeded(&node, seeded);
		const struct snapshot *snapshot = &node.forwarding[0]->snapshot;

		node_set_threshold(&node, 0, GATE_ALWAYS);
		for (uint32_t flow = 0; flow < 300; flow++)
			CU_ASSERT_EQUAL(flows_establish(&node, 0, flow),
				expected_tcp(snapshot, seeded, flow));
		node_set_threshold(&node, 0, GATE_RECALL);
		for (uint32_t flow = 0; flow < 300; flow++) {
			struct seeds seeds = seeds_of(snapshot, seeded);
			struct flow_key key = tcp_key(flow);
			uint32_t hash = flow_ring_hash(flow_hash(&key, &seeds.of_old));
			const struct ring *ring = &snapshot->rings[0];

			CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK),
				ring_member(ring, ring_lookup(ring, hash)));
		}
		CU_ASSERT(node_counter(&node, COUNTER_flow_recalled) > 200);
		flows_check_balance(&node);
		node_free(&node);
	}
}

int main(void)
{
	static const struct test_case cases[] = {
		{"new_flows_go_where_the_seed_of_their_ring_says",
			new_flows_go_where_the_seed_of_their_ring_says},
		{"sweep_to_another_seed_moves_no_established_flow",
			sweep_to_another_seed_moves_no_established_flow},
		{"shadow_comparison_gives_each_ring_its_hash",
			shadow_comparison_gives_each_ring_its_hash},
		{"quic_connection_ids_are_hashed_under_the_seed_of_the_ring",
			quic_connection_ids_are_hashed_under_the_seed_of_the_ring},
		{"icmp_error_finds_the_owner_under_the_seed_of_the_ring",
			icmp_error_finds_the_owner_under_the_seed_of_the_ring},
		{"recalled_flows_go_to_their_owner_under_the_old_seed",
			recalled_flows_go_to_their_owner_under_the_old_seed},
	};

	return SUITE_RUN("pipeline seeds", cases);
}
