// SPDX-License-Identifier: Apache-2.0
// The slow cases: neighbours, echo, the host's packets, ICMP errors, fragments, packets that do not fit.
#include "tests/unit/dataplane/pipeline/flows.h"

#include "dataplane/table/neighbour_table.h"

static struct frame in, out;

// Runs a frame on worker 0 of a node and checks its verdict and, for drops, the reason.
static void expect(struct node *node, const struct frame *frame, enum packet_verdict verdict,
	enum drop_reason reason)
{
	uint8_t seen;

	CU_ASSERT_EQUAL(flows_verdict(node, frame, &seen), verdict);
	if (verdict == PACKET_DROP || verdict == PACKET_DROP_REPLY)
		CU_ASSERT_EQUAL(seen, reason);
	flows_check_balance(node);
}

static void expect_answer(
	struct node *node, const struct frame *question, const struct frame *answer)
{
	struct packet packet;

	node_run(node, 0, question, &packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_ANSWER);
	CU_ASSERT_EQUAL(packet.port_out, 0);
	CU_ASSERT_TRUE(packet_equals(&packet, answer));
	packet_unload(&packet);
	flows_check_balance(node);
}

static void arp_question(const char *target)
{
	FRAME_START(&in, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(&in, .operation = 1, .sender_mac = MAC_ROUTER, .sender = NODE_GATEWAY4,
		.target = target);
	frame_finish(&in);
}

static void arp_for_our_address_is_answered(void)
{
	struct node node;

	flows_node(&node);
	arp_question(NODE_ADDRESS4);
	FRAME_START(&out, .destination = MAC_ROUTER, .source = MAC_BALANCER);
	FRAME_ARP(&out, .operation = 2, .sender_mac = MAC_BALANCER, .sender = NODE_ADDRESS4,
		.target_mac = MAC_ROUTER, .target = NODE_GATEWAY4);
	frame_finish(&out);
	struct packet packet;

	node_run(&node, 0, &in, &packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_ANSWER);
	CU_ASSERT(packet.length >= out.length);
	CU_ASSERT_EQUAL(memcmp(packet.data, out.bytes, out.length), 0);
	packet_unload(&packet);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_answered), 1);
	node_free(&node);
}

static void arp_for_strangers_and_virtual_addresses_elsewhere_is_not(void)
{
	struct node node;

	flows_node(&node);
	arp_question("192.0.2.77");
	expect(&node, &in, PACKET_DROP, DROP_not_for_us);
	// A virtual address that is not on this link is routed here; an answer would be a lie.
	arp_question(SERVICE_ADDRESS);
	expect(&node, &in, PACKET_DROP, DROP_not_for_us);
	node_free(&node);
}

static void arp_for_a_virtual_address_on_the_link_is_answered(void)
{
	struct node node;

	node_make(&node, &(struct node_shape){.address4 = "203.0.113.200"});
	node_load_shape(&node, &flows_shape);
	arp_question(SERVICE_ADDRESS);
	expect(&node, &in, PACKET_ANSWER, 0);
	arp_question("203.0.113.77");
	expect(&node, &in, PACKET_DROP, DROP_not_for_us);
	node_free(&node);
}

static void neighbour_is_asked_learnt_and_used(void)
{
	struct node node;
	struct pipeline_frame questions[8];
	unsigned count;

	node_make(&node, &(struct node_shape){.workers = 2});
	node_load_shape(&node, &flows_shape);
	CU_ASSERT_EQUAL(flows_tcp(&node, 0, 1, FRAME_SYN), UINT32_MAX);
	CU_ASSERT_EQUAL(node_drops(&node, DROP_no_neighbour), 1);
	count = pipeline_neighbour_frames(&node.pipeline, node.now_s, questions, 8);
	CU_ASSERT_EQUAL_FATAL(count, 1); // all backends are behind the IPv4 gateway
	FRAME_START(&out, .destination = "ff:ff:ff:ff:ff:ff", .source = MAC_BALANCER);
	FRAME_ARP(&out, .operation = 1, .sender_mac = MAC_BALANCER, .sender = NODE_ADDRESS4,
		.target = NODE_GATEWAY4);
	frame_finish(&out);
	CU_ASSERT_EQUAL(questions[0].port, 0);
	CU_ASSERT_EQUAL(memcmp(questions[0].bytes, out.bytes, out.length), 0);
	CU_ASSERT_EQUAL(pipeline_neighbour_frames(&node.pipeline, node.now_s, questions, 8), 0);
	// The answer arrives at another worker.
	FRAME_START(&in);
	FRAME_ARP(&in, .operation = 2, .sender_mac = MAC_ROUTER, .sender = NODE_GATEWAY4,
		.target_mac = MAC_BALANCER, .target = NODE_ADDRESS4);
	frame_finish(&in);
	struct packet packet;

	node_run(&node, 1, &in, &packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_CONSUME);
	packet_unload(&packet);
	CU_ASSERT_NOT_EQUAL(flows_tcp(&node, 0, 1, FRAME_SYN), UINT32_MAX);
	flows_check_balance(&node);
	node_free(&node);
}

static void backends_on_the_link_are_asked_themselves(void)
{
	struct node node;
	struct pipeline_frame questions[64];

	node_make(&node, &(struct node_shape){.address4 = "10.1.0.250", .no_gateway = true});
	node_load_shape(&node, &flows_shape);
	CU_ASSERT_EQUAL(pipeline_neighbour_frames(&node.pipeline, node.now_s, questions, 64), 40);
	node_advance(&node, 1);
	CU_ASSERT_EQUAL(node_answer_neighbours(&node), 40);
	CU_ASSERT_NOT_EQUAL(flows_tcp(&node, 0, 1, FRAME_SYN), UINT32_MAX);
	node_free(&node);
}

static void backend_without_a_way_is_a_named_drop(void)
{
	struct node node;

	node_make(&node, &(struct node_shape){.no_gateway = true});
	node_load_shape(&node, &flows_shape);
	CU_ASSERT_EQUAL(node_answer_neighbours(&node), 0);
	flows_frame_tcp(&in, 1, FRAME_SYN);
	expect(&node, &in, PACKET_DROP, DROP_no_route);
	node_free(&node);
}

static void l2_tunnel_needs_the_backend_on_the_link(void)
{
	struct node node;

	flows_node(&node);
	node_service(&node, 0)->tunnel = SNAPSHOT_TUNNEL_L2;
	node_reload(&node);
	flows_frame_tcp(&in, 1, FRAME_SYN);
	expect(&node, &in, PACKET_DROP, DROP_no_route);
	node_free(&node);

	node_make(&node, &(struct node_shape){.address4 = "10.1.0.250"});
	node_load_shape(&node, &flows_shape);
	node_service(&node, 0)->tunnel = SNAPSHOT_TUNNEL_L2;
	node_reload(&node);
	node_answer_neighbours(&node);
	struct packet packet;

	node_run(&node, 0, &in, &packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_FORWARD);
	FRAME_START(&out, .destination = MAC_BACKEND, .source = MAC_BALANCER);
	FRAME_IP4(&out, .source = "198.51.0.1", .destination = SERVICE_ADDRESS, .ttl = 63);
	FRAME_TCP(&out, .source_port = 1024, .destination_port = 80, .flags = FRAME_SYN);
	frame_finish(&out);
	CU_ASSERT_TRUE(packet_equals(&packet, &out));
	packet_unload(&packet);
	node_free(&node);
}

static void neighbour_solicitation_is_answered(void)
{
	struct node node;

	flows_node(&node);
	FRAME_START(&in, .destination = "33:33:ff:00:00:10");
	FRAME_IP6(&in, .source = NODE_GATEWAY6, .destination = "ff02::1:ff00:10", .hop_limit = 255);
	FRAME_ND(&in, .type = 135, .target = NODE_ADDRESS6, .option = 1, .option_mac = MAC_ROUTER);
	frame_finish(&in);
	FRAME_START(&out, .destination = MAC_ROUTER, .source = MAC_BALANCER);
	FRAME_IP6(&out, .source = NODE_ADDRESS6, .destination = NODE_GATEWAY6, .hop_limit = 255);
	FRAME_ND(&out, .type = 136, .flags = 0x60000000, .target = NODE_ADDRESS6, .option = 2,
		.option_mac = MAC_BALANCER);
	frame_finish(&out);
	expect_answer(&node, &in, &out);
	node_free(&node);
}

static void echo(const char *destination)
{
	FRAME_START(&in);
	FRAME_IP4(&in, .source = "198.51.100.7", .destination = destination);
	FRAME_ICMP4(&in, .type = 8, .word0 = 77, .word1 = 1);
	frame_payload(&in, "ringway!ringway!ringway!", 24);
	frame_finish(&in);
}

static void echo_for_virtual_and_own_addresses_is_answered(void)
{
	struct node node;

	flows_node(&node);
	echo(SERVICE_ADDRESS);
	FRAME_START(&out, .destination = MAC_ROUTER, .source = MAC_BALANCER);
	FRAME_IP4(&out, .source = SERVICE_ADDRESS, .destination = "198.51.100.7",
		.dont_fragment = true);
	FRAME_ICMP4(&out, .type = 0, .word0 = 77, .word1 = 1);
	frame_payload(&out, "ringway!ringway!ringway!", 24);
	frame_finish(&out);
	expect_answer(&node, &in, &out);
	echo(NODE_ADDRESS4);
	expect(&node, &in, PACKET_ANSWER, 0);
	echo("203.0.113.99");
	expect(&node, &in, PACKET_DROP, DROP_not_for_us);
	node_free(&node);
}

static void flood_of_echo_requests_is_limited(void)
{
	struct node node;

	flows_node(&node);
	echo(SERVICE_ADDRESS);
	for (unsigned i = 0; i < 300; i++) {
		uint8_t reason;

		flows_verdict(&node, &in, &reason);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_answered), 100);
	CU_ASSERT_EQUAL(node_drops(&node, DROP_echo_rate), 200);
	node_advance(&node, 1);
	expect(&node, &in, PACKET_ANSWER, 0);
	node_free(&node);
}

static void node_without_a_snapshot_answers_for_itself(void)
{
	struct node node;

	node_make(&node, &(struct node_shape){.has_punt = true});
	arp_question(NODE_ADDRESS4);
	expect(&node, &in, PACKET_ANSWER, 0);
	echo(NODE_ADDRESS4);
	expect(&node, &in, PACKET_ANSWER, 0);
	echo(SERVICE_ADDRESS);
	expect(&node, &in, PACKET_PUNT, 0);
	flows_frame_tcp(&in, 1, FRAME_SYN);
	expect(&node, &in, PACKET_PUNT, 0);
	pipeline_housekeep(&node.workers[0]);
	node_free(&node);
}

static void packets_for_the_host_and_for_nobody(void)
{
	struct node node;
	static const struct {
		const char *destination;
		unsigned port;
		enum packet_verdict with_punt, without;
		enum drop_reason with_reason, without_reason;
		uint8_t unknown;
	} cases[] = {
		{NODE_ADDRESS4, 179, PACKET_PUNT, PACKET_DROP, 0, DROP_no_punt,
			SNAPSHOT_UNKNOWN_DROP},
		{NODE_ADDRESS4, 179, PACKET_PUNT, PACKET_DROP, 0, DROP_no_punt,
			SNAPSHOT_UNKNOWN_PUNT},
		{SERVICE_ADDRESS, 81, PACKET_DROP, PACKET_DROP, DROP_no_service, DROP_no_service,
			SNAPSHOT_UNKNOWN_PUNT},
		{"192.0.2.200", 80, PACKET_DROP, PACKET_DROP, DROP_not_for_us, DROP_not_for_us,
			SNAPSHOT_UNKNOWN_DROP},
		{"192.0.2.200", 80, PACKET_PUNT, PACKET_DROP, 0, DROP_no_punt,
			SNAPSHOT_UNKNOWN_PUNT},
	};

	for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		bool has_punt = i & 1;

		node_make(&node, &(struct node_shape){.has_punt = has_punt});
		node_load_shape(&node, &flows_shape);
		((struct snapshot_header *)node.image)->unknown = cases[i / 2].unknown;
		node_reload(&node);
		FRAME_START(&in);
		FRAME_IP4(&in, .destination = cases[i / 2].destination);
		FRAME_TCP(&in, .destination_port = cases[i / 2].port, .flags = FRAME_SYN);
		frame_finish(&in);
		expect(&node, &in, has_punt ? cases[i / 2].with_punt : cases[i / 2].without,
			has_punt ? cases[i / 2].with_reason : cases[i / 2].without_reason);
		// LLDP is the kernel's.
		FRAME_START(&in, .destination = "01:80:c2:00:00:0e", .type_override = 0x88cc);
		frame_fill(&in, 50, 0);
		frame_finish(&in);
		expect(&node, &in, has_punt ? PACKET_PUNT : PACKET_DROP, DROP_no_punt);
		node_free(&node);
	}
}

static void icmp_error_reaches_the_backend_that_owns_the_flow(void)
{
	struct node node;
	struct packet packet;
	unsigned elsewhere = 0;

	flows_node(&node);
	for (uint32_t flow = 0; flow < 50; flow++) {
		node_set_threshold(&node, 0, GATE_NEVER);
		uint32_t backend = flows_establish(&node, 0, flow);

		node_set_threshold(&node, 0, GATE_ALWAYS);
		flows_frame_icmp_error(&in, flow, 80);
		// RSS brings it to any worker; the rings alone would often say another backend by now.
		for (uint32_t worker = 0; worker < 2; worker++) {
			node_run(&node, worker, &in, &packet);
			CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
			CU_ASSERT_EQUAL(packet.backend, backend);
			packet_unload(&packet);
		}
		flows_frame_icmp_error(
			&in, flow + 1000, 80); // a flow of another node: the ring says who
		node_run(&node, 0, &in, &packet);
		elsewhere += packet.verdict == PACKET_FORWARD;
		packet_unload(&packet);
	}
	CU_ASSERT_EQUAL(elsewhere, 50);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_icmp_routed), 150);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_insert), 50);
	flows_check_balance(&node);
	node_free(&node);
}

static void icmp_error_about_nothing_balanced_is_dropped_by_name(void)
{
	struct node node;

	flows_node(&node);
	flows_frame_icmp_error(&in, 1, 81);
	expect(&node, &in, PACKET_DROP, DROP_icmp_unrelated);
	node_free(&node);
}

static void fragment(uint32_t id, unsigned offset, bool more)
{
	FRAME_START(&in);
	FRAME_IP4(&in, .destination = SERVICE_ADDRESS, .id = id, .fragment_offset = offset,
		.more_fragments = more, .protocol_override = 17);
	if (offset == 0)
		FRAME_UDP(&in, .source_port = 5000 + id, .destination_port = IMAGE_PORT_UDP,
			.length_override = 2000);
	frame_fill(&in, 800, 1);
	frame_finish(&in);
}

static void later_fragments_follow_the_first_on_any_worker(void)
{
	struct node node;
	struct packet packet;

	flows_node(&node);
	for (uint32_t id = 1; id <= 50; id++) {
		uint32_t backend;

		fragment(id, 0, true);
		node_run(&node, id % 2, &in, &packet);
		CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
		backend = packet.backend;
		packet_unload(&packet);
		for (uint32_t worker = 0; worker < 2; worker++) {
			fragment(id, 808, worker == 0);
			node_run(&node, worker, &in, &packet);
			CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
			CU_ASSERT_EQUAL(packet.backend, backend);
			packet_unload(&packet);
		}
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_fragment_routed), 100);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].packets +
			node.workers[1].stats.services[0].packets,
		150);
	fragment(99, 808, true);
	expect(&node, &in, PACKET_DROP, DROP_fragment_unknown);
	node_free(&node);
}

// The usual case of a sender: all fragments of a datagram arrive at once; and the network may have turned them round.
static void later_fragments_follow_a_first_one_of_the_same_burst(void)
{
	static const unsigned offsets[][3] = {{0, 808, 1608}, {808, 0, 1608}, {1608, 808, 0}};
	struct node node;

	flows_node(&node);
	for (uint32_t order = 0; order < 3; order++) {
		struct packet packets[3];

		for (unsigned i = 0; i < 3; i++) {
			fragment(70 + order, offsets[order][i], offsets[order][i] != 1608);
			packet_load(&packets[i], &in, PACKET_HEADROOM_MIN, 64);
		}
		node_run_burst(&node, 0, packets, 3);
		for (unsigned i = 0; i < 3; i++) {
			CU_ASSERT_EQUAL(packets[i].verdict, PACKET_FORWARD);
			CU_ASSERT_EQUAL(packets[i].backend, packets[0].backend);
			packet_unload(&packets[i]);
		}
		flows_check_balance(&node);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_fragment_routed), 6);
	CU_ASSERT_EQUAL(node_drops(&node, DROP_fragment_unknown), 0);
	node_free(&node);
}

static void later_fragments_of_a_backend_that_left_are_dropped(void)
{
	struct node node;
	struct packet packet;

	flows_node(&node);
	fragment(1, 0, true);
	node_run(&node, 0, &in, &packet);
	node_backend(&node, packet.backend)->state = SNAPSHOT_BACKEND_DOWN;
	packet_unload(&packet);
	node_reload(&node);
	fragment(1, 808, false);
	expect(&node, &in, PACKET_DROP, DROP_stale_flow_backend);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].drops, 1);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].packets, 2);
	node_free(&node);
}

static void big(unsigned payload)
{
	FRAME_START(&in);
	FRAME_IP4(&in, .destination = SERVICE_ADDRESS, .dont_fragment = true);
	FRAME_TCP(&in, .destination_port = IMAGE_PORT_TCP, .flags = FRAME_ACK);
	frame_fill(&in, payload, 0);
	frame_finish(&in);
}

static void packet_too_big_for_the_tunnel_is_answered_up_to_a_rate(void)
{
	struct node node;
	struct packet packet;

	flows_node(&node);
	big(1500 - 20 - 40);
	expect(&node, &in, PACKET_FORWARD, 0);
	big(1500 - 20 - 40 + 1);
	node_run(&node, 0, &in, &packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP_REPLY);
	CU_ASSERT_EQUAL(packet.reason, DROP_too_big);
	CU_ASSERT_EQUAL(packet.data[14 + 20], 3);
	CU_ASSERT_EQUAL(packet.data[14 + 21], 4);
	CU_ASSERT_EQUAL(packet.data[14 + 26] << 8 | packet.data[14 + 27], 1480);
	packet_unload(&packet);
	for (unsigned i = 0; i < 200; i++) {
		uint8_t reason;

		flows_verdict(&node, &in, &reason);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_generated), 100);
	CU_ASSERT_EQUAL(node_drops(&node, DROP_too_big), 100);
	CU_ASSERT_EQUAL(node_drops(&node, DROP_too_big_silent), 101);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].drops, 201);
	flows_check_balance(&node);
	node_free(&node);
}

static void packet_at_the_end_of_its_life_is_told(void)
{
	struct node node;
	struct packet packet;

	flows_node(&node);
	FRAME_START(&in);
	FRAME_IP4(&in, .destination = SERVICE_ADDRESS, .ttl = 1);
	FRAME_TCP(&in, .destination_port = IMAGE_PORT_TCP, .flags = FRAME_ACK);
	frame_finish(&in);
	node_run(&node, 0, &in, &packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP_REPLY);
	CU_ASSERT_EQUAL(packet.reason, DROP_ttl_expired);
	CU_ASSERT_EQUAL(packet.data[14 + 20], 11);
	packet_unload(&packet);
	flows_check_balance(&node);
	node_free(&node);
}

static void quic_follows_the_connection_id_of_the_server(void)
{
	struct node node;
	static const uint8_t short_header[] = {0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
		15, 16, 17, 18, 19, 20, 21, 22, 23};
	uint32_t first = UINT32_MAX;

	flows_node(&node);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_QUIC;
	node_reload(&node);
	for (uint32_t port = 1; port <= 40; port++) {
		struct packet packet;

		FRAME_START(&in);
		FRAME_IP4(&in, .destination = SERVICE_ADDRESS);
		FRAME_UDP(&in, .source_port = 2000 + port, .destination_port = IMAGE_PORT_UDP);
		frame_payload(&in, short_header, sizeof(short_header));
		frame_finish(&in);
		node_run(&node, 0, &in, &packet);
		CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
		first = first == UINT32_MAX ? packet.backend : first;
		CU_ASSERT_EQUAL(packet.backend, first);
		packet_unload(&packet);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_quic_routed), 40);
	node_free(&node);
}

// A QUIC packet of a connection from a port: the client's first one, or one with the server's ID (RFC 9000 section 17).
static uint32_t quic(
	struct node *node, uint32_t worker, unsigned port, unsigned connection, bool first)
{
	uint8_t bytes[64] = {0x40, 0xaa, (uint8_t)connection, 1, 2, 3, 4, 5, 6};
	static const uint8_t initial[] = {0xc0, 0, 0, 0, 1, 8, 9, 8, 7, 6, 5, 4, 3, 2, 0, 0};
	struct packet packet;
	uint32_t backend;

	if (first)
		memcpy(bytes, initial, sizeof(initial));
	FRAME_START(&in);
	FRAME_IP4(&in, .destination = SERVICE_ADDRESS);
	FRAME_UDP(&in, .source_port = port, .destination_port = IMAGE_PORT_UDP);
	frame_payload(&in, bytes, sizeof(bytes));
	frame_finish(&in);
	node_run(node, worker, &in, &packet);
	CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_FORWARD);
	backend = packet.backend;
	packet_unload(&packet);
	return backend;
}

static void quic_connection_that_moves_keeps_its_backend_through_a_cutover(void)
{
	struct node node;

	flows_node(&node);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_QUIC;
	node_reload(&node);
	for (unsigned connection = 0; connection < 60; connection++) {
		node_set_threshold(&node, 0, GATE_NEVER);
		uint32_t backend = quic(&node, 0, 2000 + connection, connection, true);

		CU_ASSERT_EQUAL(quic(&node, 0, 2000 + connection, connection, false), backend);
		node_set_threshold(&node, 0, GATE_ALWAYS);
		CU_ASSERT_EQUAL(quic(&node, 0, 3000 + connection, connection, false), backend);
		// And at a worker that has never seen it.
		CU_ASSERT_EQUAL(quic(&node, 1, 4000 + connection, connection, false), backend);
		CU_ASSERT_EQUAL(quic(&node, 1, 4000 + connection, connection, false), backend);
	}
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_quic_routed), 120);
	flows_check_balance(&node);
	node_free(&node);
}

// The ID leads a client that has moved to where its connection is to go, recalled or not.
static void quic_connection_that_is_recalled_and_moves_has_one_backend(void)
{
	struct node node;
	unsigned moved = 0;

	flows_node(&node);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_QUIC;
	node_reload(&node);
	for (unsigned connection = 0; connection < 60; connection++) {
		node_set_threshold(&node, 0, GATE_ALWAYS);
		uint32_t before = quic(&node, 0, 2000 + connection, connection, true);

		CU_ASSERT_EQUAL(quic(&node, 0, 2000 + connection, connection, false), before);
		node_set_threshold(&node, 0, GATE_RECALL);
		uint32_t after = quic(&node, 0, 2000 + connection, connection, false);

		moved += before != after;
		CU_ASSERT_EQUAL(quic(&node, 0, 3000 + connection, connection, false), after);
		CU_ASSERT_EQUAL(quic(&node, 1, 4000 + connection, connection, false), after);
	}
	CU_ASSERT(moved > 40); // two rings of 20 agree on 1 of 20
	flows_check_balance(&node);
	node_free(&node);
}

static void quic_id_is_kept_as_long_as_its_flow_is_busy(void)
{
	struct node node;
	uint32_t backend;

	flows_node(&node);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_QUIC;
	node_reload(&node);
	backend = quic(&node, 0, 2000, 1, true);
	for (unsigned i = 0; i < 40; i++) {
		node_advance(&node, 10); // the idle time is 60 s
		CU_ASSERT_EQUAL(quic(&node, 0, 2000, 1, false), backend);
	}
	node_set_threshold(&node, 0, GATE_ALWAYS);
	CU_ASSERT_EQUAL(quic(&node, 0, 3000, 1, false), backend);
	// A backend that goes down loses the connection by either name.
	node_backend(&node, backend)->state = SNAPSHOT_BACKEND_DOWN;
	node_reload(&node);
	quic(&node, 0, 3000, 1, false);
	quic(&node, 0, 3001, 1, false);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_flow_rerouted), 1);
	node_free(&node);
}

static void quic_id_follows_its_flow_to_another_backend(void)
{
	struct node node;

	flows_node(&node);
	node_service(&node, 0)->affinity = FLOW_AFFINITY_QUIC;
	node_reload(&node);
	for (unsigned connection = 0; connection < 20; connection++) {
		node_set_threshold(&node, 0, GATE_NEVER);
		uint32_t backend = quic(&node, 0, 2000 + connection, connection, true);

		quic(&node, 0, 2000 + connection, connection, false);
		node_backend(&node, backend)->state = SNAPSHOT_BACKEND_DOWN;
		node_reload(&node);
		node_advance(&node, 2);
		uint32_t other = quic(&node, 0, 2000 + connection, connection, false);

		node_backend(&node, backend)->state = SNAPSHOT_BACKEND_UP;
		node_reload(&node);
		node_set_threshold(&node, 0, GATE_ALWAYS);
		CU_ASSERT_EQUAL(quic(&node, 0, 3000 + connection, connection, false), other);
	}
	node_free(&node);
}

static void advertisement_that_does_not_override_replaces_nothing(void)
{
	struct node node;
	struct neighbour_view view;
	uint32_t slot = 0;

	node_make(&node, &(struct node_shape){.workers = 1});
	node_load_shape(&node,
		&(struct image_shape){.generation = 1,
			.pool_count = 1,
			.backend_count = 2,
			.points = 4,
			.backends6 = true});
	for (unsigned flags = 0; flags <= 1; flags++) {
		for (unsigned i = 0; i < 2; i++) {
			FRAME_START(&in);
			FRAME_IP6(&in, .source = NODE_GATEWAY6, .destination = NODE_ADDRESS6,
				.hop_limit = 255);
			FRAME_ND(&in, .type = 136, .flags = flags ? 0x60000000 : 0x40000000,
				.target = NODE_GATEWAY6, .option = 2,
				.option_mac = i == 0 ? MAC_ROUTER : MAC_BACKEND);
			frame_finish(&in);
			expect(&node, &in, PACKET_CONSUME, 0);
		}
		CU_ASSERT_TRUE(
			neighbour_table_view(node.pipeline.neighbours, slot, node.now_s, &view));
		CU_ASSERT_EQUAL(view.mac[5], flags ? 3 : 2);
	}
	node_free(&node);
}

static void announcements_name_every_address_once(void)
{
	struct node node;
	struct pipeline_frame frame;

	flows_node(&node);
	CU_ASSERT_TRUE(pipeline_announcement_frame(&node.pipeline, 0, &frame));
	CU_ASSERT_EQUAL(frame.bytes[12] << 8 | frame.bytes[13], 0x0806);
	CU_ASSERT_TRUE(pipeline_announcement_frame(&node.pipeline, 1, &frame));
	CU_ASSERT_EQUAL(frame.bytes[12] << 8 | frame.bytes[13], 0x86dd);
	CU_ASSERT_FALSE(pipeline_announcement_frame(&node.pipeline, 2, &frame));
	node_free(&node);
}

static void verdicts_that_io_changed_are_booked_as_changed(void)
{
	struct node node;
	struct packet packets[2];

	flows_node(&node);
	flows_frame_tcp(&in, 1, FRAME_SYN);
	packet_load(&packets[0], &in, 128, 128);
	packet_load(&packets[1], &in, 128, 128);
	pipeline_burst(&node.workers[0], packets, 2);
	CU_ASSERT_EQUAL(packets[1].verdict, PACKET_FORWARD);
	packets[1].verdict = PACKET_DROP;
	packets[1].reason = DROP_tx_full;
	pipeline_book_sent(&node.workers[0], packets, 2);
	CU_ASSERT_EQUAL(node_counter(&node, COUNTER_forwarded), 1);
	CU_ASSERT_EQUAL(node_drops(&node, DROP_tx_full), 1);
	CU_ASSERT_EQUAL(node.workers[0].stats.services[0].drops, 1);
	flows_check_balance(&node);
	packet_unload(&packets[0]);
	packet_unload(&packets[1]);
	node_free(&node);
}

static const struct test_case cases[] = {
	{"arp_for_our_address_is_answered", arp_for_our_address_is_answered},
	{"arp_for_strangers_and_virtual_addresses_elsewhere_is_not",
		arp_for_strangers_and_virtual_addresses_elsewhere_is_not},
	{"arp_for_a_virtual_address_on_the_link_is_answered",
		arp_for_a_virtual_address_on_the_link_is_answered},
	{"neighbour_is_asked_learnt_and_used", neighbour_is_asked_learnt_and_used},
	{"backends_on_the_link_are_asked_themselves", backends_on_the_link_are_asked_themselves},
	{"backend_without_a_way_is_a_named_drop", backend_without_a_way_is_a_named_drop},
	{"l2_tunnel_needs_the_backend_on_the_link", l2_tunnel_needs_the_backend_on_the_link},
	{"neighbour_solicitation_is_answered", neighbour_solicitation_is_answered},
	{"echo_for_virtual_and_own_addresses_is_answered",
		echo_for_virtual_and_own_addresses_is_answered},
	{"flood_of_echo_requests_is_limited", flood_of_echo_requests_is_limited},
	{"node_without_a_snapshot_answers_for_itself", node_without_a_snapshot_answers_for_itself},
	{"packets_for_the_host_and_for_nobody", packets_for_the_host_and_for_nobody},
	{"icmp_error_reaches_the_backend_that_owns_the_flow",
		icmp_error_reaches_the_backend_that_owns_the_flow},
	{"icmp_error_about_nothing_balanced_is_dropped_by_name",
		icmp_error_about_nothing_balanced_is_dropped_by_name},
	{"later_fragments_follow_the_first_on_any_worker",
		later_fragments_follow_the_first_on_any_worker},
	{"later_fragments_follow_a_first_one_of_the_same_burst",
		later_fragments_follow_a_first_one_of_the_same_burst},
	{"later_fragments_of_a_backend_that_left_are_dropped",
		later_fragments_of_a_backend_that_left_are_dropped},
	{"packet_too_big_for_the_tunnel_is_answered_up_to_a_rate",
		packet_too_big_for_the_tunnel_is_answered_up_to_a_rate},
	{"packet_at_the_end_of_its_life_is_told", packet_at_the_end_of_its_life_is_told},
	{"quic_follows_the_connection_id_of_the_server",
		quic_follows_the_connection_id_of_the_server},
	{"quic_connection_that_moves_keeps_its_backend_through_a_cutover",
		quic_connection_that_moves_keeps_its_backend_through_a_cutover},
	{"quic_connection_that_is_recalled_and_moves_has_one_backend",
		quic_connection_that_is_recalled_and_moves_has_one_backend},
	{"quic_id_is_kept_as_long_as_its_flow_is_busy",
		quic_id_is_kept_as_long_as_its_flow_is_busy},
	{"quic_id_follows_its_flow_to_another_backend",
		quic_id_follows_its_flow_to_another_backend},
	{"advertisement_that_does_not_override_replaces_nothing",
		advertisement_that_does_not_override_replaces_nothing},
	{"announcements_name_every_address_once", announcements_name_every_address_once},
	{"verdicts_that_io_changed_are_booked_as_changed",
		verdicts_that_io_changed_are_booked_as_changed},
};

int main(void)
{
	return SUITE_RUN("pipeline_slow", cases);
}
