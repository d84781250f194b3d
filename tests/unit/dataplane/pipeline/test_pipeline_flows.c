// SPDX-License-Identifier: Apache-2.0
// What happens to flows: who keeps a backend, who gets another, and what is counted.
#include "common/selection.h"

#include "dataplane/table/flow_table.h"
#include "tests/unit/dataplane/pipeline/flows.h"

static void established_flow_leaves_in_its_tunnel_byte_for_byte(void)
{
	struct node node;
	static struct frame in, out;
	struct packet packet;
	char destination[16];

	flows_node(&node);
	flows_frame_tcp(&in, 7, FRAME_ACK);
	node_run(&node, 0, &in, &packet);
	CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
	CU_ASSERT_EQUAL(packet.port_out, 0);
	CU_ASSERT_EQUAL(packet.backend % 2, 0); // pool 0
	// 10.100.0.0/16 with the low 16 bits of the hash; backend b is 10.1.0.b+1.
	char source[16];

	snprintf(source, sizeof(source), "10.100.%u.%u", (unsigned)(packet.hash >> 8 & 255),
		(unsigned)(packet.hash & 255));
	snprintf(destination, sizeof(destination), "10.1.0.%u", packet.backend + 1);
	FRAME_START(&out, .destination = MAC_BACKEND, .source = MAC_BALANCER);
	FRAME_IP4(&out, .source = source, .destination = destination, .dont_fragment = true);
	FRAME_IP4(&out, .source = "198.51.0.7", .destination = SERVICE_ADDRESS, .ttl = 63);
	FRAME_TCP(
		&out, .source_port = 1024, .destination_port = IMAGE_PORT_TCP, .flags = FRAME_ACK);
	frame_finish(&out);
	CU_ASSERT_TRUE(packet_equals(&packet, &out));
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_forwarded), 1);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_forwarded_bytes), packet.length);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_rx_bytes), in.length);
	packet_unload(&packet);
	flows_check_balance(&node);
	node_free(&node);
}

static void new_flows_go_where_selection_says(void)
{
	struct node node;
	unsigned on_new = 0;

	flows_node(&node);
	node_set_threshold(&node, 0, gate_threshold(GATE_SHARE_ALL / 2));
	for (uint32_t flow = 0; flow < 1000; flow++) {
		struct flow_key key = {.family = ADDR_V4,
			.protocol = IPPROTO_TCP,
			.source = {198, 51, (uint8_t)(flow >> 8), (uint8_t)flow},
			.destination = {203, 0, 113, 0},
			.source_port_be = htons(1024),
			.destination_port_be = htons(IMAGE_PORT_TCP)};
		struct ipc_explained why;
		uint32_t backend;

		pipeline_explain(&node.pipeline, node.forwarding[0], &key, node.now_s, &why);
		CU_ASSERT_EQUAL(why.verdict, IPC_EXPLAIN_FORWARD);
		CU_ASSERT_EQUAL(why.in_table, 0);
		backend = flows_tcp(&node, 0, flow, FRAME_SYN);
		CU_ASSERT_EQUAL(backend, why.backend);
		CU_ASSERT_EQUAL(backend, why.uses_new ? why.backend_new : why.backend_old);
		on_new += why.uses_new;
		node_advance(&node, 5);
		pipeline_explain(&node.pipeline, node.forwarding[0], &key, node.now_s, &why);
		CU_ASSERT_EQUAL(why.in_table, 1);
		CU_ASSERT_EQUAL(why.table_backend, backend);
		CU_ASSERT_EQUAL(why.table_age_s, 5);
		CU_ASSERT_EQUAL(why.backend, backend);
	}
	CU_ASSERT(on_new > 400 && on_new < 600);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_new, on_new);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_old, 1000 - on_new);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].new_flows_new, on_new);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].new_flows_old, 1000 - on_new);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_syn), 1000);
	flows_check_balance(&node);
	node_free(&node);
}

static void explain_says_what_the_table_says_when_the_gate_has_moved(void)
{
	struct node node;
	struct flow_key key = {.family = ADDR_V4,
		.protocol = IPPROTO_TCP,
		.source = {198, 51, 0, 9},
		.destination = {203, 0, 113, 0},
		.source_port_be = htons(1024),
		.destination_port_be = htons(IMAGE_PORT_TCP)};
	struct ipc_explained why;

	flows_node(&node);
	uint32_t backend = flows_establish(&node, 1, 9);

	node_set_threshold(&node, 0, GATE_ALWAYS);
	pipeline_explain(&node.pipeline, node.forwarding[0], &key, node.now_s, &why);
	CU_ASSERT_EQUAL(why.uses_new, 1);
	CU_ASSERT_NOT_EQUAL(
		why.backend_new, why.backend_old); // of 20 backends each; true of this flow
	CU_ASSERT_EQUAL(why.in_table, 1);
	CU_ASSERT_EQUAL(why.table_worker, 1);
	CU_ASSERT_EQUAL(why.backend, backend);
	node_backend(&node, backend)->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	pipeline_explain(&node.pipeline, node.forwarding[0], &key, node.now_s, &why);
	CU_ASSERT_EQUAL(why.table_backend, backend);
	CU_ASSERT_EQUAL(why.backend, why.backend_new);
	key.destination_port_be = htons(1);
	pipeline_explain(&node.pipeline, node.forwarding[0], &key, node.now_s, &why);
	CU_ASSERT_EQUAL(why.verdict, IPC_EXPLAIN_NO_SERVICE);
	node_free(&node);
}

static void packets_of_one_burst_see_what_the_one_before_changed(void)
{
	struct node node;
	static struct frame frames[2];
	struct packet packets[2];
	uint32_t backend;

	flows_node(&node);
	backend = flows_establish(&node, 0, 1);
	node_backend(&node, backend)->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	for (unsigned i = 0; i < 2; i++) {
		flows_frame_tcp(&frames[i], 1, FRAME_ACK);
		packet_load(&packets[i], &frames[i], 128, 128);
	}
	node_run_burst(&node, 0, packets, 2);
	// The owner of the test image's point is the down backend still, so both may go there; but once only.
	CU_ASSERT_EQUAL(packets[0].backend, packets[1].backend);
	packet_unload(&packets[0]);
	packet_unload(&packets[1]);
	node_backend(&node, backend)->state = SNAPSHOT_BACKEND_UP;
	node_reload(&node);
	// A FIN and the SYN of the next connection.
	flows_frame_tcp(&frames[0], 1, FRAME_FIN | FRAME_ACK);
	flows_frame_tcp(&frames[1], 1, FRAME_SYN);
	for (unsigned i = 0; i < 2; i++)
		packet_load(&packets[i], &frames[i], 128, 128);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	node_run_burst(&node, 0, packets, 2);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_new, 1);
	packet_unload(&packets[0]);
	packet_unload(&packets[1]);
	node_free(&node);
}

static void sweep_of_the_gate_moves_no_established_flow(void)
{
	enum {
		FLOWS = 500
	};
	struct node node;
	uint32_t backends[FLOWS], moved = 0;
	uint64_t packets_before;

	flows_node(&node);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		backends[flow] = flows_establish(&node, 0, flow);
	for (int step = 0; step <= 40; step++) {
		uint32_t share = (uint32_t)(step <= 20 ? step : 40 - step) * GATE_SHARE_ALL / 20;

		node_set_threshold(&node, 0, gate_threshold(share));
		for (uint32_t flow = 0; flow < FLOWS; flow++)
			moved += flows_tcp(&node, 0, flow, FRAME_ACK) != backends[flow];
		// New flows do follow the gate, else this test would show nothing.
		flows_tcp(&node, 0, (uint32_t)(1u << 16 | step), FRAME_SYN);
	}
	CU_ASSERT_EQUAL(moved, 0);
	packets_before = node.workers[0].stats.pools[0].packets_new;
	CU_ASSERT(packets_before > 10 && packets_before < 41);
	flows_check_balance(&node);
	node_free(&node);
}

static void repeated_syn_stays_when_the_gate_moves(void)
{
	struct node node;

	flows_node(&node);
	for (uint32_t flow = 0; flow < 100; flow++) {
		node_set_threshold(&node, 0, GATE_NEVER);
		uint32_t backend = flows_tcp(&node, 0, flow, FRAME_SYN);

		node_set_threshold(&node, 0, GATE_ALWAYS);
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_SYN), backend);
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), backend);
	}
	node_free(&node);
}

static void flow_of_a_backend_that_went_down_picks_again(void)
{
	struct node node;
	uint32_t backend, other;

	flows_node(&node);
	backend = flows_establish(&node, 0, 1);
	// Owners in a published ring are resolved: down backends have no points. Here they keep them, so the pick may
	// be the same; the flow that went to a down backend must ask again all the same.
	node_backend(&node, backend)->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	other = flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_NOT_EQUAL(other, UINT32_MAX);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), 1);
	node_free(&node);
}

static void flow_of_a_draining_backend_stays(void)
{
	struct node node;
	uint32_t backend;

	flows_node(&node);
	backend = flows_establish(&node, 0, 1);
	node_backend(&node, backend)->state = SNAPSHOT_BACKEND_DRAIN;
	node_reload(&node);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, 1, FRAME_ACK), backend);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), 0);
	node_free(&node);
}

static void other_flows_keep_their_backend_when_one_goes(void)
{
	enum {
		FLOWS = 300
	};
	struct node node;
	uint32_t backends[FLOWS], asked_again = 0;

	flows_node(&node);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		backends[flow] = flows_establish(&node, 0, flow);
	node_backend(&node, backends[0])->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		uint32_t now = flows_tcp(&node, 0, flow, FRAME_ACK);

		asked_again += backends[flow] == backends[0];
		if (backends[flow] != backends[0])
			CU_ASSERT_EQUAL(now, backends[flow]);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), asked_again);
	node_free(&node);
}

static void closing_flow_and_its_successor(void)
{
	struct node node;
	uint32_t backend;

	flows_node(&node);
	backend = flows_establish(&node, 0, 1);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, 1, FRAME_FIN | FRAME_ACK), backend);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, 1, FRAME_ACK), backend);
	// The same ports again: a new flow, which the gate may send elsewhere.
	flows_tcp(&node, 0, 1, FRAME_SYN);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_new, 1);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].new_flows_old, 1);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_syn), 2);
	node_free(&node);
}

static void flow_is_forgotten_after_its_idle_time(void)
{
	struct node node;

	flows_node(&node);
	flows_establish(&node, 0, 1);
	flows_udp(&node, 0, 1);
	node_advance(&node, 61 + 1);
	flows_udp(&node, 0, 1);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_udp), 2);
	flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_non_syn), 0);
	node_advance(&node, 900 + 28);
	flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_non_syn), 1);
	node_free(&node);
}

static void two_packets_of_a_new_flow_in_one_burst_are_one_flow(void)
{
	struct node node;
	static struct frame frames[3];
	struct packet packets[3];

	flows_node(&node);
	flows_frame_tcp(&frames[0], 1, FRAME_SYN);
	flows_frame_tcp(&frames[1], 1, FRAME_ACK);
	flows_frame_tcp(&frames[2], 2, FRAME_SYN);
	for (unsigned i = 0; i < 3; i++)
		packet_load(&packets[i], &frames[i], 128, 128);
	node_run_burst(&node, 0, packets, 3);
	CU_ASSERT_EQUAL(packets[0].backend, packets[1].backend);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_insert), 2);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_hit), 1);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].new_flows_old, 2);
	uint64_t word = flow_table_peek(node.workers[0].flow_table, packets[1].hash, node.now_s);

	CU_ASSERT_EQUAL(flow_word_state(word), FLOW_STATE_FIRST);
	for (unsigned i = 0; i < 3; i++)
		packet_unload(&packets[i]);
	node_free(&node);
}

static void flow_follows_a_change_of_the_rss_table(void)
{
	struct node node;

	flows_node(&node);
	for (uint32_t flow = 0; flow < 200; flow++) {
		node_set_threshold(&node, 0, GATE_NEVER);
		uint32_t backend = flows_establish(&node, 0, flow);

		node_set_threshold(&node, 0, GATE_ALWAYS);
		CU_ASSERT_EQUAL(flows_tcp(&node, 1, flow, FRAME_ACK), backend);
		CU_ASSERT_EQUAL(flows_tcp(&node, 1, flow, FRAME_ACK), backend);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_hit_other), 200);
	CU_ASSERT_EQUAL(node.workers[1].stats.counter[COUNTER_flow_hit], 200);
	CU_ASSERT_EQUAL(node.workers[1].stats.pools[0].packets_new, 0);
	flows_check_balance(&node);
	node_free(&node);
}

static void change_of_the_rss_table_is_followed_at_full_speed(void)
{
	enum {
		FLOWS = 12000
	};
	struct node node;

	// More flows than a flood may look up, all within one instant.
	flows_node(&node);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		flows_tcp(&node, 0, flow, FRAME_SYN);
		flows_tcp(&node, 0, flow, FRAME_ACK);
	}
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		flows_tcp(&node, 1, flow, FRAME_ACK);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_hit_other), FLOWS);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_non_syn), 0);
	node_free(&node);
}

static void syn_begins_a_flow_where_it_arrives(void)
{
	struct node node;

	flows_node(&node);
	flows_establish(&node, 0, 1);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	flows_tcp(&node, 1, 1, FRAME_SYN);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_hit_other), 0);
	CU_ASSERT_EQUAL(node.workers[1].stats.pools[0].new_flows_new, 1);
	node_free(&node);
}

static void sweep_that_was_held_up_catches_up_a_round(void)
{
	struct node node;

	flows_node(&node);
	flows_udp(&node, 0, 1);
	pipeline_housekeep(&node.workers[0]);
	node_advance(&node, 100);
	for (unsigned i = 0; i < 8; i++)
		pipeline_housekeep(&node.workers[0]);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_expired), 1);
	// And no more than a round, at most 1,024 of the 8,192 buckets at a time.
	flows_establish(&node, 0, 2);
	for (unsigned i = 0; i < 100; i++)
		pipeline_housekeep(&node.workers[0]);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_live), 0);
	node_free(&node);
}

static void flood_of_unknown_flows_does_not_search_all_tables_forever(void)
{
	struct node node;
	uint64_t found;

	flows_node(&node);
	flows_establish(&node, 0, 1);
	// A flood within one instant uses up what look-ups elsewhere are worth.
	for (uint32_t flow = 2; flow < 9000; flow++)
		flows_tcp(&node, 1, flow, FRAME_ACK);
	flows_tcp(&node, 1, 1, FRAME_ACK);
	found = node_counter(&node, COUNTER_flow_hit_other);
	CU_ASSERT_EQUAL(found, 0);
	flows_establish(&node, 0, 70000);
	node_advance(&node, 1);
	flows_tcp(&node, 1, 70000, FRAME_ACK);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_hit_other), 1);
	node_free(&node);
}

static void early_aborts_are_counted_for_their_ring(void)
{
	struct node node;
	struct stats_pool *pool;

	flows_node(&node);
	pool = &node.workers[0].stats.pools[0];
	flows_tcp(&node, 0, 1, FRAME_SYN);
	flows_tcp(&node, 0, 1, FRAME_RST);
	CU_ASSERT_EQUAL(pool->aborts_old, 1);
	flows_tcp(&node, 0, 2, FRAME_SYN);
	flows_tcp(&node, 0, 2, FRAME_SYN);
	flows_tcp(&node, 0, 2, FRAME_SYN);
	CU_ASSERT_EQUAL(pool->aborts_old, 2);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	flows_tcp(&node, 0, 3, FRAME_SYN);
	flows_tcp(&node, 0, 3, FRAME_ACK);
	flows_tcp(&node, 0, 3, FRAME_RST | FRAME_ACK);
	CU_ASSERT_EQUAL(pool->aborts_new, 1);
	flows_establish(&node, 0, 4);
	flows_tcp(&node, 0, 4, FRAME_RST | FRAME_ACK);
	CU_ASSERT_EQUAL(pool->aborts_new, 1);
	CU_ASSERT_EQUAL(pool->aborts_old, 2);
	node_free(&node);
}

static void flow_that_only_showed_a_syn_is_an_abort_after_a_round(void)
{
	struct node node;
	struct stats_pool *pool;

	flows_node(&node);
	pool = &node.workers[0].stats.pools[0];
	flows_establish(&node, 0, 1);
	flows_tcp(&node, 0, 2, FRAME_SYN);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	flows_tcp(&node, 0, 3, FRAME_SYN);
	node_housekeep(&node, 0);
	CU_ASSERT_EQUAL(pool->aborts_old + pool->aborts_new, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_live), 3);
	node_housekeep(&node, 0);
	CU_ASSERT_EQUAL(pool->aborts_old, 1);
	CU_ASSERT_EQUAL(pool->aborts_new, 1);
	node_housekeep(&node, 0);
	CU_ASSERT_EQUAL(pool->aborts_old, 1);
	CU_ASSERT_EQUAL(pool->aborts_new, 1);
	// 30 s after the SYNs their entries are gone.
	for (unsigned i = 0; i < 6; i++)
		node_housekeep(&node, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_live), 1);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_expired), 2);
	node_free(&node);
}

static void shadow_comparison_samples_new_flows_of_a_staged_pool(void)
{
	struct node node;
	uint64_t same, different;

	flows_node(&node);
	for (uint32_t flow = 0; flow < 4000; flow++)
		flows_tcp(&node, 0, flow, FRAME_SYN);
	same = node_counter(&node, COUNTER_shadow_same);
	different = node_counter(&node, COUNTER_shadow_different);
	CU_ASSERT(same + different > 400 && same + different < 600); // 1 of 8
	CU_ASSERT(different > 10 * same); // two rings of 20 agree on 1 of 20
	CU_ASSERT(same > 0);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].shadow_same, same);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].shadow_different, different);
	node_free(&node);
}

static void traces_sample_the_same_flows_on_every_node(void)
{
	struct node a, b;
	static struct ipc_trace traces_a[2048], traces_b[2048];
	uint64_t lost;
	unsigned count_a, count_b;

	flows_node(&a);
	flows_node(&b);
	pipeline_trace_set(&a.pipeline, true, 4);
	pipeline_trace_set(&b.pipeline, true, 4);
	a.pipeline.realtime_offset_ns = 500;
	node_set_threshold(&b, 0, GATE_ALWAYS);
	for (uint32_t flow = 0; flow < 4000; flow++) {
		flows_tcp(&a, 0, flow, FRAME_SYN);
		flows_tcp(&b, 1, flow, FRAME_SYN);
	}
	count_a = pipeline_trace_read(&a.workers[0], traces_a, 2048, &lost);
	CU_ASSERT_EQUAL(lost, 0);
	count_b = pipeline_trace_read(&b.workers[1], traces_b, 2048, &lost);
	CU_ASSERT_EQUAL_FATAL(count_a, count_b);
	CU_ASSERT(count_a > 180 && count_a < 320);
	for (unsigned i = 0; i < count_a; i++) {
		CU_ASSERT_EQUAL(
			memcmp(&traces_a[i].key, &traces_b[i].key, sizeof(struct flow_key)), 0);
		CU_ASSERT_EQUAL(traces_a[i].backend, traces_b[i].backend_old);
		CU_ASSERT_EQUAL(traces_b[i].backend, traces_a[i].backend_new);
		CU_ASSERT_EQUAL(traces_b[i].uses_new, 1);
		CU_ASSERT_EQUAL(traces_b[i].worker, 1);
		CU_ASSERT_EQUAL(traces_b[i].table, IPC_TRACE_MISS);
		CU_ASSERT_EQUAL(traces_b[i].entry, IPC_TRACE_INSERTED);
		CU_ASSERT_EQUAL(traces_a[i].time_ns, a.workers[0].now_ns + 500);
	}
	CU_ASSERT_EQUAL(pipeline_trace_read(&a.workers[0], traces_a, 2048, &lost), 0);
	pipeline_trace_set(&a.pipeline, false, 0);
	flows_tcp(&a, 0, 5000, FRAME_SYN);
	CU_ASSERT_EQUAL(pipeline_trace_read(&a.workers[0], traces_a, 2048, &lost), 0);
	node_free(&a);
	node_free(&b);
}

static void traces_tell_what_the_flow_table_said(void)
{
	struct node node;
	struct ipc_trace traces[8];
	uint64_t lost;

	flows_node(&node);
	flows_establish(&node, 0, 1);
	pipeline_trace_set(&node.pipeline, true, 0);
	// A flow that its own worker knows needs no backend, so there is nothing to trace.
	flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_EQUAL(pipeline_trace_read(&node.workers[0], traces, 8, &lost), 0);
	node_set_threshold(&node, 0, GATE_ALWAYS);
	flows_tcp(&node, 1, 1, FRAME_ACK);
	CU_ASSERT_EQUAL_FATAL(pipeline_trace_read(&node.workers[1], traces, 8, &lost), 1);
	CU_ASSERT_EQUAL(traces[0].table, IPC_TRACE_HIT_OTHER);
	CU_ASSERT_EQUAL(traces[0].entry, IPC_TRACE_INSERTED);
	// The gate says new by now, and the flow stays where it was.
	CU_ASSERT_EQUAL(traces[0].uses_new, 1);
	CU_ASSERT_EQUAL(traces[0].backend, traces[0].backend_old);
	node_backend(&node, traces[0].backend)->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_EQUAL_FATAL(pipeline_trace_read(&node.workers[0], traces, 8, &lost), 1);
	CU_ASSERT_EQUAL(traces[0].table, IPC_TRACE_STALE);
	CU_ASSERT_EQUAL(traces[0].entry, IPC_TRACE_REWRITTEN);
	CU_ASSERT_EQUAL(traces[0].backend,
		traces[0].uses_new ? traces[0].backend_new : traces[0].backend_old);
	node_free(&node);
}

static void traces_that_nobody_reads_are_lost_and_counted(void)
{
	struct node node;
	struct ipc_trace traces[100];
	uint64_t lost;

	flows_node(&node);
	pipeline_trace_set(&node.pipeline, true, 0);
	for (uint32_t flow = 0; flow < 1500; flow++)
		flows_tcp(&node, 0, flow, FRAME_SYN);
	CU_ASSERT_EQUAL(pipeline_trace_read(&node.workers[0], traces, 100, &lost), 100);
	CU_ASSERT_EQUAL(lost, 1500 - 1024);
	CU_ASSERT_EQUAL(traces[0].key.source[3], 0);
	CU_ASSERT_EQUAL(traces[99].key.source[3], 99);
	CU_ASSERT_EQUAL(pipeline_trace_read(&node.workers[0], traces, 100, &lost), 100);
	CU_ASSERT_EQUAL(lost, 0);
	node_free(&node);
}

static void stateless_service_asks_the_ring_every_time(void)
{
	struct node node;
	unsigned moved = 0;

	flows_node(&node);
	node_service(&node, 0)->flags |= SNAPSHOT_SERVICE_STATELESS;
	node_reload(&node);
	for (uint32_t flow = 0; flow < 100; flow++) {
		node_set_threshold(&node, 0, GATE_NEVER);
		uint32_t backend = flows_tcp(&node, 0, flow, FRAME_SYN);

		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), backend);
		node_set_threshold(&node, 0, GATE_ALWAYS);
		moved += flows_tcp(&node, 0, flow, FRAME_ACK) != backend;
	}
	CU_ASSERT(moved > 80);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_stateless), 300);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_insert), 0);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].new_flows_old, 100);
	flows_check_balance(&node);
	node_free(&node);
}

static void client_affinity_gives_all_flows_of_a_client_one_backend(void)
{
	struct node node;
	uint32_t backend;

	flows_node(&node);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_CLIENT;
	node_reload(&node);
	backend = flows_tcp(&node, 0, 5, FRAME_SYN);
	for (uint32_t port = 1; port < 50; port++)
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, port << 16 | 5, FRAME_SYN), backend);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_insert), 50);
	node_free(&node);
}

static void ring_without_usable_backends_drops_new_flows_by_name(void)
{
	struct node node;
	static struct frame frame;
	uint8_t reason;
	struct snapshot_ring *rings;
	struct snapshot_header *header;

	flows_node(&node);
	flows_establish(&node, 0, 1);
	header = node.image;
	rings = (struct snapshot_ring *)((char *)node.image + header->rings.offset);
	((struct ring_header *)((char *)node.image + rings[0].offset))->usable_count = 0;
	node_reload(&node);
	flows_frame_tcp(&frame, 2, FRAME_SYN);
	CU_ASSERT_EQUAL(flows_verdict(&node, &frame, &reason), PACKET_DROP);
	CU_ASSERT_EQUAL(reason, DROP_all_unusable);
	CU_ASSERT_EQUAL(node.workers[0].stats.pools[0].drops_old, 1);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].drops, 1);
	CU_ASSERT_NOT_EQUAL(flows_tcp(&node, 0, 1, FRAME_ACK), UINT32_MAX);
	for (uint32_t i = 0; i < 40; i++)
		node_backend(&node, i)->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	flows_frame_tcp(&frame, 1, FRAME_ACK);
	CU_ASSERT_EQUAL(flows_verdict(&node, &frame, &reason), PACKET_DROP);
	CU_ASSERT_EQUAL(reason, DROP_stale_flow_backend);
	flows_check_balance(&node);
	node_free(&node);
}

static void ring_without_points_drops_by_name(void)
{
	struct node node;
	static struct frame frame;
	uint8_t reason;

	node_make(&node, &(struct node_shape){.workers = 1});
	node_load_shape(
		&node, &(struct image_shape){.generation = 1, .pool_count = 1, .points = 1});
	flows_frame_tcp(&frame, 1, FRAME_SYN);
	CU_ASSERT_EQUAL(flows_verdict(&node, &frame, &reason), PACKET_DROP);
	CU_ASSERT_EQUAL(reason, DROP_ring_empty);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].drops, 1);
	flows_check_balance(&node);
	node_free(&node);
}

static void snapshot_of_another_id_space_empties_the_table(void)
{
	struct node node;

	flows_node(&node);
	flows_establish(&node, 0, 1);
	node_reload(&node);
	flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_non_syn), 0);
	((struct snapshot_header *)node.image)->id_space[0] ^= 1;
	node_reload(&node);
	flows_tcp(&node, 0, 1, FRAME_ACK);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_miss_non_syn), 1);
	node_free(&node);
}

static void backend_of_another_pool_is_not_taken(void)
{
	struct node node;
	struct flow_entry entry;
	struct flow_choice choice = {.backend = 1}; // of pool 1
	struct flow_idle idle = {30, 900, 30, 60};
	static struct frame frame;
	struct packet packet;

	flows_node(&node);
	flows_frame_tcp(&frame, 1, FRAME_ACK);
	node_run(&node, 0, &frame, &packet);
	uint64_t hash = packet.hash;

	packet_unload(&packet);
	// As a false hit would: the entry names a backend of another pool.
	flow_table_insert(
		node.workers[0].flow_table, hash, FLOW_EVENT_DATA, &choice, &idle, &entry);
	flow_table_reroute(&entry, &choice);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, 1, FRAME_ACK) % 2, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), 1);
	choice.backend = 0xfffff; // beyond the backends of the snapshot
	flow_table_reroute(&entry, &choice);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, 1, FRAME_ACK) % 2, 0);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), 2);
	node_free(&node);
}

static void syn_flood_leaves_established_flows_and_keeps_forwarding(void)
{
	enum {
		FLOWS = 200
	};
	struct node node;
	uint32_t backends[FLOWS];

	node_make(&node, &(struct node_shape){.flow_entries = 1024});
	node_load_shape(&node, &flows_shape);
	node_answer_neighbours(&node);
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		backends[flow] = flows_establish(&node, 0, flow);
	for (uint32_t flow = 0; flow < 10 * 1024; flow++)
		CU_ASSERT_NOT_EQUAL(flows_tcp(&node, 0, 1000 + flow, FRAME_SYN), UINT32_MAX);
	node_set_threshold(&node, 0, GATE_ALWAYS); // who lost his entry would move now
	for (uint32_t flow = 0; flow < FLOWS; flow++)
		CU_ASSERT_EQUAL(flows_tcp(&node, 0, flow, FRAME_ACK), backends[flow]);
	CU_ASSERT(node_counter(&node, COUNTER_flow_evict_unconfirmed) > 8000);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_evict_oldest), 0);
	flows_check_balance(&node);
	node_free(&node);
}

static const struct test_case cases[] = {
	{"established_flow_leaves_in_its_tunnel_byte_for_byte",
		established_flow_leaves_in_its_tunnel_byte_for_byte},
	{"new_flows_go_where_selection_says", new_flows_go_where_selection_says},
	{"sweep_of_the_gate_moves_no_established_flow",
		sweep_of_the_gate_moves_no_established_flow},
	{"repeated_syn_stays_when_the_gate_moves", repeated_syn_stays_when_the_gate_moves},
	{"flow_of_a_backend_that_went_down_picks_again",
		flow_of_a_backend_that_went_down_picks_again},
	{"flow_of_a_draining_backend_stays", flow_of_a_draining_backend_stays},
	{"other_flows_keep_their_backend_when_one_goes",
		other_flows_keep_their_backend_when_one_goes},
	{"closing_flow_and_its_successor", closing_flow_and_its_successor},
	{"flow_is_forgotten_after_its_idle_time", flow_is_forgotten_after_its_idle_time},
	{"two_packets_of_a_new_flow_in_one_burst_are_one_flow",
		two_packets_of_a_new_flow_in_one_burst_are_one_flow},
	{"flow_follows_a_change_of_the_rss_table", flow_follows_a_change_of_the_rss_table},
	{"flood_of_unknown_flows_does_not_search_all_tables_forever",
		flood_of_unknown_flows_does_not_search_all_tables_forever},
	{"explain_says_what_the_table_says_when_the_gate_has_moved",
		explain_says_what_the_table_says_when_the_gate_has_moved},
	{"packets_of_one_burst_see_what_the_one_before_changed",
		packets_of_one_burst_see_what_the_one_before_changed},
	{"change_of_the_rss_table_is_followed_at_full_speed",
		change_of_the_rss_table_is_followed_at_full_speed},
	{"syn_begins_a_flow_where_it_arrives", syn_begins_a_flow_where_it_arrives},
	{"sweep_that_was_held_up_catches_up_a_round", sweep_that_was_held_up_catches_up_a_round},
	{"early_aborts_are_counted_for_their_ring", early_aborts_are_counted_for_their_ring},
	{"flow_that_only_showed_a_syn_is_an_abort_after_a_round",
		flow_that_only_showed_a_syn_is_an_abort_after_a_round},
	{"shadow_comparison_samples_new_flows_of_a_staged_pool",
		shadow_comparison_samples_new_flows_of_a_staged_pool},
	{"traces_sample_the_same_flows_on_every_node", traces_sample_the_same_flows_on_every_node},
	{"traces_tell_what_the_flow_table_said", traces_tell_what_the_flow_table_said},
	{"traces_that_nobody_reads_are_lost_and_counted",
		traces_that_nobody_reads_are_lost_and_counted},
	{"stateless_service_asks_the_ring_every_time", stateless_service_asks_the_ring_every_time},
	{"client_affinity_gives_all_flows_of_a_client_one_backend",
		client_affinity_gives_all_flows_of_a_client_one_backend},
	{"ring_without_usable_backends_drops_new_flows_by_name",
		ring_without_usable_backends_drops_new_flows_by_name},
	{"ring_without_points_drops_by_name", ring_without_points_drops_by_name},
	{"snapshot_of_another_id_space_empties_the_table",
		snapshot_of_another_id_space_empties_the_table},
	{"backend_of_another_pool_is_not_taken", backend_of_another_pool_is_not_taken},
	{"syn_flood_leaves_established_flows_and_keeps_forwarding",
		syn_flood_leaves_established_flows_and_keeps_forwarding},
};

int main(void)
{
	return SUITE_RUN("pipeline_flows", cases);
}
