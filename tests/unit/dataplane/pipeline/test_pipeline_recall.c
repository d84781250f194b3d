// SPDX-License-Identifier: Apache-2.0
// Flows that a rollback takes back from the new ring (GATE_RECALL): which ones, where to, and what is counted.
#include "dataplane/table/flow_table.h"
#include "tests/unit/dataplane/pipeline/flows.h"

enum {
	FLOWS = 600
};

// What is known of a flow before the recall.
struct known {
	uint32_t backend;
	bool uses_new;
	uint32_t backend_old; // that the old ring names
};

static void explain(const struct node *node, uint32_t flow, struct ipc_explained *ret)
{
	struct flow_key key = {.family = ADDR_V4,
		.protocol = IPPROTO_TCP,
		.source = {198, 51, (uint8_t)(flow >> 8), (uint8_t)flow},
		.destination = {203, 0, 113, 0},
		.source_port_be = htons(1024),
		.destination_port_be = htons(IMAGE_PORT_TCP)};

	pipeline_explain(&node->pipeline, node->forwarding[0], &key, node->now_s, ret);
}

// Establishes flows 0..FLOWS-1 at a share of the new ring.
static void establish_all(struct node *node, uint32_t share, struct known *ret)
{
	node_set_threshold(node, 0, gate_threshold(share));
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		struct ipc_explained why;

		explain(node, flow, &why);
		ret[flow] = (struct known){
			flows_establish(node, 0, flow), why.uses_new != 0, why.backend_old};
		CU_ASSERT_EQUAL(
			ret[flow].backend, why.uses_new ? why.backend_new : why.backend_old);
	}
}

static void flows_of_the_new_ring_go_to_the_old_rings_owner_and_no_others(void)
{
	uint64_t random = suite_seed();
	struct known known[FLOWS];
	struct ipc_explained why;
	struct node node;
	unsigned moved = 0;

	flows_node(&node);
	establish_all(&node,
		GATE_SHARE_ALL / 4 + (uint32_t)(suite_random(&random) % (GATE_SHARE_ALL / 2)),
		known);
	node_set_threshold(&node, 0, GATE_NEVER);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), known[flow].backend);
	node_set_threshold(&node, 0, GATE_RECALL);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		uint32_t wanted =
			known[flow].uses_new ? known[flow].backend_old : known[flow].backend;

		explain(&node, flow, &why);
		CU_ASSERT_EQUAL(why.table_recalled, known[flow].uses_new);
		CU_ASSERT_EQUAL(why.table_backend, known[flow].backend);
		CU_ASSERT_EQUAL(why.backend, wanted);
		CU_ASSERT_EQUAL(why.threshold, GATE_NEVER);
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), wanted);
		explain(&node, flow, &why);
		CU_ASSERT_EQUAL(why.table_recalled, 0);
		moved += known[flow].uses_new && known[flow].backend != wanted;
	}
	CU_ASSERT(moved > FLOWS / 8 && moved < FLOWS);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), moved);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].recalled, moved);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), 0);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].drops_old, 0);
	// They are the old ring's now: nothing that the gate does moves them again.
	for (unsigned i = 0; i < 3; i++) {
		node_set_threshold(
			&node, 0, (const uint64_t[]){GATE_ALWAYS, GATE_RECALL, GATE_NEVER}[i]);
		for (uint32_t flow = 0; flow < FLOWS; flow++)
			CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK),
				known[flow].uses_new ? known[flow].backend_old
						     : known[flow].backend);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), moved);
	flows_check_balance(&node);
	node_free(&node);
}

static void new_flows_of_a_recalled_pool_take_the_old_ring(void)
{
	struct node node;

	flows_node(&node);
	node_set_threshold(&node, 0, GATE_RECALL);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		struct ipc_explained why;

		explain(&node, flow, &why);
		CU_ASSERT_EQUAL(why.uses_new, 0);
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_SYN), why.backend_old);
	}
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_old, FLOWS);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_new, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 0);
	node_free(&node);
}

// A flow for which the rings differ.
static uint32_t differing_flow(const struct node *node)
{
	struct ipc_explained why;

	for (uint32_t flow = 0;; flow++) {
		explain(node, flow, &why);
		if (why.backend_old != why.backend_new)
			return flow;
	}
}

// The packet of a recalled flow is the one that the flow would have sent had it never been on the new ring.
static void recalled_packet_is_the_old_rings_byte_for_byte(void)
{
	static struct frame in;
	struct packet packets[2];
	struct node nodes[2];

	for (unsigned i = 0; i < 2; i++) {
		flows_node(&nodes[i]);
		uint32_t flow = differing_flow(&nodes[i]);

		node_set_threshold(&nodes[i], 0, i == 0 ? GATE_NEVER : GATE_ALWAYS);
		flows_establish(&nodes[i], 0, flow);
		node_set_threshold(&nodes[i], 0, i == 0 ? GATE_NEVER : GATE_RECALL);
		flows_frame_tcp(&in, flow, FRAME_ACK);
		node_run(&nodes[i], 0, &in, &packets[i]);
		CU_ASSERT_EQUAL(packets[i].verdict, PACKET_FORWARD);
	}
	CU_ASSERT_EQUAL(node_counter(&nodes[1], COUNTER_flow_recalled), 1);
	CU_ASSERT_EQUAL_FATAL(packets[0].length, packets[1].length);
	CU_ASSERT_EQUAL(memcmp(packets[0].data, packets[1].data, packets[0].length), 0);
	for (unsigned i = 0; i < 2; i++) {
		packet_unload(&packets[i]);
		node_free(&nodes[i]);
	}
}

static void any_packet_takes_a_flow_back_and_its_state_stays(void)
{
	static const unsigned flags[] = {FRAME_SYN, FRAME_ACK, FRAME_FIN | FRAME_ACK, FRAME_RST};
	static const enum flow_state states[] = {FLOW_STATE_ESTABLISHED, FLOW_STATE_ESTABLISHED,
		FLOW_STATE_CLOSING, FLOW_STATE_CLOSING};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct ipc_explained why;
		struct node node;

		flows_node(&node);
		uint32_t flow = differing_flow(&node);

		node_set_threshold(&node, 0, GATE_ALWAYS);
		flows_establish(&node, 0, flow);
		node_set_threshold(&node, 0, GATE_RECALL);
		explain(&node, flow, &why);
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, flags[i]), why.backend_old);
		uint64_t word =
			flow_table_peek(node.workers[0].flow_table, why.flow_hash, node.now_s);

		CU_ASSERT_EQUAL(flow_word_state(word), states[i]);
		CU_ASSERT_FALSE(flow_word_uses_new(word));
		node_free(&node);
	}
}

static void packets_of_one_burst_move_their_flow_once(void)
{
	static struct frame frame;
	struct packet packets[4];
	struct node node;

	flows_node(&node);
	uint32_t flow = differing_flow(&node);

	node_set_threshold(&node, 0, GATE_ALWAYS);
	uint32_t backend = flows_establish(&node, 0, flow);

	node_set_threshold(&node, 0, GATE_RECALL);
	flows_frame_tcp(&frame, flow, FRAME_ACK);
	for (unsigned i = 0; i < 4; i++)
		packet_load(&packets[i], &frame, 128, 128);
	node_run_burst(&node, 0, packets, 4);
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_NOT_EQUAL(packets[i].backend, backend);
		CU_ASSERT_EQUAL(packets[i].backend, packets[0].backend);
		packet_unload(&packets[i]);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 1);
	node_free(&node);
}

// A flow whose packets come to another worker from now on.
static void flow_that_another_worker_knows_is_recalled_too(void)
{
	struct known known[FLOWS];
	struct node node;
	unsigned moved = 0;

	flows_node(&node);
	establish_all(&node, GATE_SHARE_ALL / 2, known);
	node_set_threshold(&node, 0, GATE_RECALL);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		uint32_t wanted =
			known[flow].uses_new ? known[flow].backend_old : known[flow].backend;

		CU_ASSERT_EQUAL(flows_tcp(&node, 1, flow, FRAME_ACK), wanted);
		CU_ASSERT_EQUAL(flows_tcp(&node, 1, flow, FRAME_ACK), wanted);
		moved += known[flow].backend != wanted;
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_hit_other), FLOWS);
	CU_ASSERT_EQUAL(node.workers[1].stats.counter[COUNTER_flow_recalled], moved);
	CU_ASSERT_EQUAL(node.workers[1].stats.pools[0].packets_new, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_non_syn), 0);
	flows_check_balance(&node);
	node_free(&node);
}

// Two packets of one burst, both unknown here: one flow moves.
static void burst_of_a_flow_that_another_worker_knows_is_counted_once(void)
{
	static struct frame frame;
	struct packet packets[2];
	struct node node;

	flows_node(&node);
	uint32_t flow = differing_flow(&node);

	node_set_threshold(&node, 0, GATE_ALWAYS);
	uint32_t backend = flows_establish(&node, 0, flow);

	node_set_threshold(&node, 0, GATE_RECALL);
	flows_frame_tcp(&frame, flow, FRAME_ACK);
	for (unsigned i = 0; i < 2; i++)
		packet_load(&packets[i], &frame, 128, 128);
	node_run_burst(&node, 1, packets, 2);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_NOT_EQUAL(packets[i].backend, backend);
		CU_ASSERT_EQUAL(packets[i].backend, packets[0].backend);
		packet_unload(&packets[i]);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 1);
	node_free(&node);
}

static void recall_of_another_pool_moves_nothing(void)
{
	struct known known[FLOWS];
	struct node node;

	flows_node(&node);
	establish_all(&node, GATE_SHARE_ALL, known);
	node_set_threshold(&node, 1, GATE_RECALL);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), known[flow].backend);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 0);
	node_free(&node);
}

static void trace_of_a_recalled_flow_says_so(void)
{
	struct ipc_trace traces[4];
	struct node node;
	uint64_t lost;

	flows_node(&node);
	uint32_t flow = differing_flow(&node);

	node_set_threshold(&node, 0, GATE_ALWAYS);
	flows_establish(&node, 0, flow);
	pipeline_trace_set(&node.pipeline, true, 0);
	node_set_threshold(&node, 0, GATE_RECALL);
	flows_tcp(&node, 0, flow, FRAME_ACK);
	flows_tcp(&node, 0, flow, FRAME_ACK);
	CU_ASSERT_EQUAL_FATAL(pipeline_trace_read(&node.workers[0], traces, 4, &lost), 1);
	CU_ASSERT_EQUAL(traces[0].table, IPC_TRACE_RECALLED);
	CU_ASSERT_EQUAL(traces[0].entry, IPC_TRACE_REWRITTEN);
	CU_ASSERT_EQUAL(traces[0].backend, traces[0].backend_old);
	CU_ASSERT_EQUAL(traces[0].threshold, GATE_NEVER);
	node_free(&node);
}

// A backend that serves is better than none.
static void recalled_flow_stays_while_the_old_ring_has_nobody(void)
{
	struct snapshot_header *header;
	struct snapshot_ring *rings;
	struct ring_header *old_ring;
	struct node node;
	uint32_t backend;

	flows_node(&node);
	uint32_t flow = differing_flow(&node);

	node_set_threshold(&node, 0, GATE_ALWAYS);
	backend = flows_establish(&node, 0, flow);
	header = node.image;
	rings = (struct snapshot_ring *)((char *)node.image + header->rings.offset);
	old_ring = (struct ring_header *)((char *)node.image + rings[0].offset);
	uint32_t usable = old_ring->usable_count;

	old_ring->usable_count = 0;
	node_reload(&node);
	node_set_threshold(&node, 0, GATE_RECALL);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), backend);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 0);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].drops_old, 0);
	old_ring->usable_count = usable;
	node_reload(&node);
	node_set_threshold(&node, 0, GATE_RECALL);
	CU_ASSERT_NOT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), backend);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 1);
	flows_check_balance(&node);
	node_free(&node);
}

// A snapshot brings the word with it, as after a restart; and saying it twice is the same as once.
static void recall_comes_with_a_snapshot_and_ends_with_the_word(void)
{
	struct snapshot_pool *pools;
	struct ipc_explained why;
	struct node node;

	flows_node(&node);
	uint32_t flow = differing_flow(&node);

	node_set_threshold(&node, 0, GATE_ALWAYS);
	flows_establish(&node, 0, flow);
	pools = (struct snapshot_pool *)((char *)node.image +
		((struct snapshot_header *)node.image)->pools.offset);
	pools[0].gate.word = GATE_RECALL;
	node_reload(&node);
	CU_ASSERT_EQUAL(node.forwarding[0]->recall_count, 1);
	explain(&node, flow, &why);
	CU_ASSERT_EQUAL(why.table_recalled, 1);
	node_set_threshold(&node, 0, GATE_RECALL);
	node_set_threshold(&node, 1, GATE_RECALL);
	CU_ASSERT_EQUAL(node.forwarding[0]->recall_count, 2);
	node_set_threshold(&node, 0, GATE_NEVER);
	node_set_threshold(&node, 1, GATE_ALWAYS);
	CU_ASSERT_EQUAL(node.forwarding[0]->recall_count, 0);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), why.backend_new);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_recalled), 0);
	node_free(&node);
}

// A round may end within a call; the one after it is of now.
static void sweep_whole_rounds(struct node *node)
{
	node_housekeep(node, 0);
	node_housekeep(node, 0);
}

static void live_flows_of_the_new_ring_are_counted_by_pool(void)
{
	struct known known[FLOWS];
	const struct stats_pool *pools;
	struct node node;
	unsigned on_new = 0;

	flows_node(&node);
	pools = node.workers[0].stats.pools;
	establish_all(&node, GATE_SHARE_ALL / 2, known);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		on_new += known[flow].uses_new;
	sweep_whole_rounds(&node);
	CU_ASSERT(on_new > 0);
	CU_ASSERT_EQUAL(pools[0].live_new, on_new);
	CU_ASSERT_EQUAL(pools[1].live_new, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_live), FLOWS);
	node_set_threshold(&node, 0, GATE_RECALL);
	for (uint32_t flow = 0; flow < FLOWS / 2; flow++) {
		flows_tcp(&node, 0, flow, FRAME_ACK);
		on_new -= known[flow].uses_new;
	}
	sweep_whole_rounds(&node);
	CU_ASSERT_EQUAL(pools[0].live_new, on_new);
	for (uint32_t flow = FLOWS / 2; flow < FLOWS; flow++)
		flows_tcp(&node, 0, flow, FRAME_ACK);
	sweep_whole_rounds(&node);
	CU_ASSERT_EQUAL(pools[0].live_new, 0);
	node_free(&node);
}

static const struct test_case cases[] = {
	{"flows_of_the_new_ring_go_to_the_old_rings_owner_and_no_others",
		flows_of_the_new_ring_go_to_the_old_rings_owner_and_no_others},
	{"new_flows_of_a_recalled_pool_take_the_old_ring",
		new_flows_of_a_recalled_pool_take_the_old_ring},
	{"recalled_packet_is_the_old_rings_byte_for_byte",
		recalled_packet_is_the_old_rings_byte_for_byte},
	{"any_packet_takes_a_flow_back_and_its_state_stays",
		any_packet_takes_a_flow_back_and_its_state_stays},
	{"packets_of_one_burst_move_their_flow_once", packets_of_one_burst_move_their_flow_once},
	{"flow_that_another_worker_knows_is_recalled_too",
		flow_that_another_worker_knows_is_recalled_too},
	{"burst_of_a_flow_that_another_worker_knows_is_counted_once",
		burst_of_a_flow_that_another_worker_knows_is_counted_once},
	{"recall_of_another_pool_moves_nothing", recall_of_another_pool_moves_nothing},
	{"trace_of_a_recalled_flow_says_so", trace_of_a_recalled_flow_says_so},
	{"recalled_flow_stays_while_the_old_ring_has_nobody",
		recalled_flow_stays_while_the_old_ring_has_nobody},
	{"recall_comes_with_a_snapshot_and_ends_with_the_word",
		recall_comes_with_a_snapshot_and_ends_with_the_word},
	{"live_flows_of_the_new_ring_are_counted_by_pool",
		live_flows_of_the_new_ring_are_counted_by_pool},
};

int main(void)
{
	return SUITE_RUN("pipeline_recall", cases);
}
