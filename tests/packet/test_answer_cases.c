// SPDX-License-Identifier: Apache-2.0
// Answers: the question's bytes in, the whole reply out.
#include "dataplane/packet/answer.h"
#include "dataplane/packet/discovery.h"
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <stdio.h>

#define PORT_IN 3

static struct frame in, out;
static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};

static void load(struct packet *packet, unsigned headroom, unsigned tailroom)
{
	frame_finish(&in);
	frame_finish(&out);
	packet_load(packet, &in, headroom, tailroom);
	packet->port_in = PORT_IN;
	parse_burst(packet, 1);
	CU_ASSERT_EQUAL(packet->verdict, PACKET_PENDING);
}

// Ethernet frames have at least 60 bytes; what is added is zero.
static void pad(struct frame *frame)
{
	static const uint8_t zero[60];

	frame_finish(frame);
	frame->layer_count = 0;
	if (frame->length < 60)
		frame_payload(frame, zero, 60 - frame->length);
}

static void expect(const struct packet *packet, enum packet_verdict verdict, unsigned room)
{
	CU_ASSERT_EQUAL(packet->verdict, verdict);
	CU_ASSERT_EQUAL(packet->port_out, PORT_IN);
	CU_ASSERT(packet_equals(packet, &out));
	// No byte of the buffer is lost or won.
	CU_ASSERT_EQUAL(packet->headroom + packet->length + packet->tailroom, room);
}

static void start(struct frame *frame, unsigned vlan_count, bool is_reply)
{
	FRAME_START(frame, .destination = is_reply ? MAC_ROUTER : MAC_BALANCER,
		.source = is_reply ? MAC_BALANCER : MAC_ROUTER);
	if (vlan_count == 2)
		FRAME_VLAN(frame, .type = 0x88a8, .id = 7);
	if (vlan_count >= 1)
		FRAME_VLAN(frame, .id = 100);
}

static void answer_neighbour(unsigned tailroom)
{
	struct packet packet;
	struct discovery question;

	load(&packet, 0, tailroom);
	discovery_read(&packet, &question);
	CU_ASSERT(question.is_question);
	answer_discovery(&packet, our_mac);
	expect(&packet, PACKET_ANSWER, in.length + tailroom);
	packet_unload(&packet);
}

static void arp_request_is_answered(void)
{
	for (unsigned vlan_count = 0; vlan_count <= 2; vlan_count++) {
		start(&in, vlan_count, false);
		memset(in.bytes, 0xff, 6);
		FRAME_ARP(&in, 0);
		start(&out, vlan_count, true);
		FRAME_ARP(&out, .operation = 2, .sender_mac = MAC_BALANCER, .sender = "192.0.2.10",
			.target_mac = MAC_ROUTER, .target = "192.0.2.1");
		pad(&out);
		answer_neighbour(32);
	}
}

static void arp_probe_is_answered(void)
{
	start(&in, 0, false);
	FRAME_ARP(&in, .sender = "0.0.0.0");
	start(&out, 0, true);
	FRAME_ARP(&out, .operation = 2, .sender_mac = MAC_BALANCER, .sender = "192.0.2.10",
		.target_mac = MAC_ROUTER, .target = "0.0.0.0");
	pad(&out);
	answer_neighbour(32);
}

static void arp_padding_is_zeroed(void)
{
	start(&in, 0, false);
	FRAME_ARP(&in, 0);
	frame_fill(&in, 18, 0xaa);
	start(&out, 0, true);
	FRAME_ARP(&out, .operation = 2, .sender_mac = MAC_BALANCER, .sender = "192.0.2.10",
		.target_mac = MAC_ROUTER, .target = "192.0.2.1");
	pad(&out);
	answer_neighbour(0);
}

static void arp_reply_without_room_for_padding_is_short(void)
{
	for (unsigned tailroom = 0; tailroom < 18; tailroom++) {
		start(&in, 0, false);
		FRAME_ARP(&in, 0);
		start(&out, 0, true);
		FRAME_ARP(&out, .operation = 2, .sender_mac = MAC_BALANCER, .sender = "192.0.2.10",
			.target_mac = MAC_ROUTER, .target = "192.0.2.1");
		answer_neighbour(tailroom);
	}
}

static void write_advertisement(const char *destination, unsigned flags)
{
	FRAME_IP6(&out, .source = "2001:db8:1::10", .destination = destination, .hop_limit = 255);
	FRAME_ND(&out, .type = 136, .flags = flags, .option = 2, .option_mac = MAC_BALANCER);
}

static void solicitation_is_answered(void)
{
	for (unsigned vlan_count = 0; vlan_count <= 2; vlan_count++) {
		start(&in, vlan_count, false);
		memcpy(in.bytes, "\x33\x33\xff\x00\x00\x10", 6);
		FRAME_IP6(&in, .source = "2001:db8:1::1", .destination = "ff02::1:ff00:10",
			.hop_limit = 255, .traffic_class = 0xc0, .flow_label = 1);
		FRAME_ND(&in, .option = 1);
		start(&out, vlan_count, true);
		write_advertisement("2001:db8:1::1", 0x60000000);
		answer_neighbour(0);
	}
}

static void solicitation_goes_back_to_the_mac_in_its_option(void)
{
	start(&in, 0, false);
	FRAME_IP6(
		&in, .source = "2001:db8:1::1", .destination = "2001:db8:1::10", .hop_limit = 255);
	FRAME_ND(&in, .option = 1, .option_mac = MAC_BACKEND);
	FRAME_START(&out, .destination = MAC_BACKEND, .source = MAC_BALANCER);
	write_advertisement("2001:db8:1::1", 0x60000000);
	answer_neighbour(0);
}

static void solicitation_without_option_is_answered_if_the_reply_has_room(void)
{
	struct packet packet;

	start(&in, 0, false);
	FRAME_IP6(
		&in, .source = "2001:db8:1::1", .destination = "2001:db8:1::10", .hop_limit = 255);
	FRAME_ND(&in, 0);
	start(&out, 0, true);
	write_advertisement("2001:db8:1::1", 0x60000000);
	answer_neighbour(8);
	load(&packet, 64, 7);
	answer_discovery(&packet, our_mac);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
	CU_ASSERT_EQUAL(packet.reason, DROP_no_buffer);
	packet_unload(&packet);
}

static void duplicate_detection_is_answered_to_all_nodes(void)
{
	start(&in, 0, false);
	FRAME_IP6(&in, .source = "::", .destination = "ff02::1:ff00:10", .hop_limit = 255);
	FRAME_ND(&in, 0);
	FRAME_START(&out, .destination = "33:33:00:00:00:01", .source = MAC_BALANCER);
	write_advertisement("ff02::1", 0x20000000);
	answer_neighbour(8);
}

struct echo {
	unsigned vlan_count;
	unsigned payload;
	unsigned options_bytes;
	unsigned class;
	unsigned word0;
	unsigned word1;
	bool is_v6;
};

static void write_echo(struct frame *frame, const struct echo *echo, bool is_reply)
{
	const char *here = echo->is_v6 ? "2001:db8:5::10" : "203.0.113.10";
	const char *there = echo->is_v6 ? "2001:db8:c::7" : "198.51.100.7";
	unsigned options = is_reply ? 0 : echo->options_bytes;

	start(frame, echo->vlan_count, is_reply);
	if (echo->is_v6) {
		FRAME_IP6(frame, .source = is_reply ? here : there,
			.destination = is_reply ? there : here, .traffic_class = echo->class,
			.hop_limit = is_reply ? 64 : 3, .flow_label = is_reply ? 0 : 99);
		if (options)
			FRAME_EXTENSION(frame, .kind = 60, .units = options / 8 - 1);
		FRAME_ICMP6(frame, .type = is_reply ? 129 : 128, .word0 = echo->word0,
			.word1 = echo->word1);
	} else {
		FRAME_IP4(frame, .source = is_reply ? here : there,
			.destination = is_reply ? there : here, .tos = echo->class,
			.ttl = is_reply ? 64 : 3, .id = is_reply ? 0 : 77,
			.dont_fragment = is_reply, .options_bytes = options);
		FRAME_ICMP4(frame, .type = is_reply ? 0 : 8, .word0 = echo->word0,
			.word1 = echo->word1);
	}
	frame_fill(frame, echo->payload, 5);
}

static void check_echo(const struct echo *echo)
{
	struct packet packet;

	write_echo(&in, echo, false);
	write_echo(&out, echo, true);
	pad(&out);
	load(&packet, 0, 32);
	CU_ASSERT(packet.flags & PACKET_ECHO);
	answer_echo(&packet);
	expect(&packet, PACKET_ANSWER, in.length + 32);
	packet_unload(&packet);
}

static void echo_is_answered(void)
{
	for (unsigned payload = 0; payload < 70; payload++) {
		check_echo(&(struct echo){.payload = payload});
		check_echo(&(struct echo){.payload = payload, .is_v6 = true});
	}
	for (unsigned is_v6 = 0; is_v6 < 2; is_v6++) {
		check_echo(&(struct echo){.payload = 1400, .is_v6 = is_v6});
		check_echo(&(struct echo){.payload = 56, .is_v6 = is_v6, .class = 0xba});
		check_echo(&(struct echo){.payload = 56, .is_v6 = is_v6, .vlan_count = 1});
		check_echo(&(struct echo){.payload = 56, .is_v6 = is_v6, .vlan_count = 2});
	}
}

static void echo_reply_has_no_options(void)
{
	for (unsigned options = 8; options <= 40; options += 8) {
		for (unsigned is_v6 = 0; is_v6 < 2; is_v6++)
			check_echo(&(struct echo){.payload = 56,
				.options_bytes = options,
				.is_v6 = is_v6,
				.vlan_count = options % 3});
	}
}

static void echo_checksum_is_right_for_every_value(void)
{
	// Word 0, 0 without payload is the one message whose reply is all zero.
	for (unsigned word = 0; word <= UINT16_MAX; word++) {
		check_echo(&(struct echo){.word0 = word});
		check_echo(&(struct echo){.word0 = word, .is_v6 = true});
		check_echo(&(struct echo){.word0 = word, .word1 = 0xf7ff, .payload = 1});
		check_echo(&(struct echo){.word0 = word, .word1 = 0xf7ff, .is_v6 = true});
	}
}

static void echo_to_or_from_a_group_is_not_answered(void)
{
	static const struct {
		const char *mac_destination, *mac_source, *destination;
		bool is_v6;
	} rows[] = {
		{"ff:ff:ff:ff:ff:ff", MAC_ROUTER, "203.0.113.10", false},
		{MAC_BALANCER, "03:00:00:00:00:02", "203.0.113.10", false},
		{MAC_BALANCER, MAC_ROUTER, "224.0.0.1", false},
		{MAC_BALANCER, MAC_ROUTER, "255.255.255.255", false},
		{"33:33:00:00:00:01", MAC_ROUTER, "ff02::1", true},
		{MAC_BALANCER, MAC_ROUTER, "ff02::1", true},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct packet packet;

		FRAME_START(
			&in, .destination = rows[i].mac_destination, .source = rows[i].mac_source);
		if (rows[i].is_v6) {
			FRAME_IP6(&in, .destination = rows[i].destination);
			FRAME_ICMP6(&in, .type = 128);
		} else {
			FRAME_IP4(&in, .destination = rows[i].destination);
			FRAME_ICMP4(&in, .type = 8);
		}
		load(&packet, 0, 0);
		answer_echo(&packet);
		CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
		CU_ASSERT_EQUAL(packet.reason, DROP_not_for_us);
		CU_ASSERT(packet_equals(&packet, &in));
		packet_unload(&packet);
	}
}

struct quoted {
	unsigned vlan_count;
	unsigned payload;
	unsigned options_bytes;
	unsigned padding;
	bool is_v6;
	bool dont_fragment;
};

// The packet that is quoted, up to length bytes of it.
static void write_quoted(struct frame *frame, const struct quoted *quoted)
{
	if (quoted->is_v6)
		FRAME_IP6(frame, .hop_limit = 9, .flow_label = 0x54321, .traffic_class = 1);
	else
		FRAME_IP4(frame, .ttl = 9, .id = 99, .tos = 2,
			.dont_fragment = quoted->dont_fragment,
			.options_bytes = quoted->options_bytes);
	FRAME_TCP(frame, .flags = FRAME_ACK);
	frame_fill(frame, quoted->payload, 1);
}

static void write_error(const struct quoted *quoted, const struct frame_icmp *icmp)
{
	unsigned l3 = 14 + 4 * quoted->vlan_count;
	unsigned longest = quoted->is_v6 ? 1232 : 548;
	unsigned length = in.length - l3 - quoted->padding;

	start(&out, quoted->vlan_count, true);
	if (quoted->is_v6) {
		FRAME_IP6(&out, .source = "2001:db8:5::10", .destination = "2001:db8:c::7",
			.traffic_class = 0xc0);
		frame_icmp6(&out, icmp);
	} else {
		FRAME_IP4(&out, .source = "203.0.113.10", .destination = "198.51.100.7",
			.tos = 0xc0, .dont_fragment = true);
		frame_icmp4(&out, icmp);
	}
	frame_payload(&out, in.bytes + l3, length < longest ? length : longest);
	pad(&out);
}

static void check_error(const struct quoted *quoted, unsigned mtu)
{
	struct packet packet;
	struct frame_icmp icmp = {.word1 = mtu};

	if (quoted->is_v6)
		icmp.type = mtu ? 2 : 3;
	else
		icmp.type = mtu ? 3 : 11;
	icmp.code = !quoted->is_v6 && mtu ? 4 : 0;
	start(&in, quoted->vlan_count, false);
	write_quoted(&in, quoted);
	frame_finish(&in);
	in.layer_count = 0;
	frame_fill(&in, quoted->padding, 0xee);
	write_error(quoted, &icmp);
	load(&packet, quoted->is_v6 ? 48 : 28, 0);
	CU_ASSERT(mtu ? answer_too_big(&packet, mtu) : answer_time_exceeded(&packet));
	CU_ASSERT_EQUAL(packet.reason, mtu ? DROP_too_big : DROP_ttl_expired);
	expect(&packet, PACKET_DROP_REPLY, in.length + (quoted->is_v6 ? 48 : 28));
	packet_unload(&packet);
}

static void errors_quote_what_came(void)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned mtu = i & 1 ? 1448 : 0;
		bool is_v6 = i & 2;
		const struct quoted shapes[] = {
			{.payload = 0},
			{.payload = 1, .padding = 5},
			{.payload = 1460, .dont_fragment = true},
			{.payload = 1460, .dont_fragment = false},
			{.payload = 100, .vlan_count = 1},
			{.payload = 8000, .vlan_count = 2},
			{.payload = 100, .options_bytes = 40},
		};

		for (unsigned n = 0; n < sizeof(shapes) / sizeof(shapes[0]); n++) {
			struct quoted shape = shapes[n];

			shape.is_v6 = is_v6;
			check_error(&shape, mtu);
		}
	}
}

static void quotes_end_at_the_longest_error(void)
{
	// Around 548 and 1,232 bytes of quote.
	for (unsigned payload = 500; payload < 516; payload++)
		check_error(&(struct quoted){.payload = payload}, 1400);
	for (unsigned payload = 1165; payload < 1180; payload++)
		check_error(&(struct quoted){.payload = payload, .is_v6 = true}, 1400);
}

static void every_mtu_is_advertised_as_it_is(void)
{
	for (unsigned mtu = 68; mtu < 10000; mtu += 7)
		check_error(&(struct quoted){.payload = 1460}, mtu);
	for (unsigned mtu = 1280; mtu < 10000; mtu += 7)
		check_error(&(struct quoted){.payload = 1460, .is_v6 = true}, mtu);
}

static void refuse(const char *what, unsigned mtu, unsigned headroom)
{
	struct packet packet;
	bool sent;

	load(&packet, headroom, 0);
	sent = answer_too_big(&packet, mtu);
	if (sent)
		printf("# answered: %s\n", what);
	CU_ASSERT(!sent);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
	CU_ASSERT_EQUAL(packet.reason, DROP_too_big_silent);
	CU_ASSERT(packet_equals(&packet, &in));
	packet_unload(&packet);

	load(&packet, headroom, 0);
	if (mtu >= 1280) {
		CU_ASSERT(!answer_time_exceeded(&packet));
		CU_ASSERT_EQUAL(packet.reason, DROP_ttl_expired);
		CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
	}
	packet_unload(&packet);
}

static void mtu_below_the_minimum_is_not_advertised(void)
{
	start(&in, 0, false);
	write_quoted(&in, &(struct quoted){.payload = 100});
	refuse("67", 67, 64);
	start(&in, 0, false);
	write_quoted(&in, &(struct quoted){.payload = 100, .is_v6 = true});
	refuse("1279", 1279, 64);
}

static void error_without_headroom_is_not_sent(void)
{
	start(&in, 0, false);
	write_quoted(&in, &(struct quoted){.payload = 100});
	refuse("27", 1400, 27);
	start(&in, 0, false);
	write_quoted(&in, &(struct quoted){.payload = 100, .is_v6 = true});
	refuse("47", 1400, 47);
}

static void refuse4(const char *what, const struct frame_ethernet *link, const struct frame_ip4 *ip)
{
	frame_start(&in, link);
	frame_ip4(&in, ip);
	if (ip->fragment_offset == 0)
		FRAME_UDP(&in, 0);
	else
		frame_fill(&in, 40, 0);
	refuse(what, 1400, 64);
}

static void no_error_about_groups_fragments_and_strangers(void)
{
	refuse4("broadcast frame", &(struct frame_ethernet){.destination = "ff:ff:ff:ff:ff:ff"},
		&(struct frame_ip4){0});
	refuse4("multicast frame", &(struct frame_ethernet){.destination = "01:00:5e:00:00:01"},
		&(struct frame_ip4){0});
	refuse4("frame from a group", &(struct frame_ethernet){.source = "03:00:00:00:00:01"},
		&(struct frame_ip4){0});
	refuse4("multicast", &(struct frame_ethernet){0},
		&(struct frame_ip4){.destination = "239.1.2.3"});
	refuse4("broadcast", &(struct frame_ethernet){0},
		&(struct frame_ip4){.destination = "255.255.255.255"});
	refuse4("source without an address", &(struct frame_ethernet){0},
		&(struct frame_ip4){.source = "0.0.0.0", .destination = "255.255.255.255"});
	refuse4("source in class E", &(struct frame_ethernet){0},
		&(struct frame_ip4){.source = "240.0.0.1"});
	refuse4("later fragment", &(struct frame_ethernet){0},
		&(struct frame_ip4){.fragment_offset = 64, .protocol_override = 17});
	FRAME_START(&in, 0);
	FRAME_IP6(&in, .destination = "ff05::1");
	FRAME_UDP(&in, 0);
	refuse("IPv6 multicast", 1400, 64);
	FRAME_START(&in, 0);
	FRAME_IP6(&in, 0);
	FRAME_FRAGMENT6(&in, .offset = 64, .next_header_override = 17);
	frame_fill(&in, 40, 0);
	refuse("IPv6 later fragment", 1400, 64);
}

static void no_error_about_icmp_but_an_echo_request(void)
{
	static const uint8_t types4[] = {0, 3, 4, 5, 11, 12, 13, 14};
	static const uint8_t types6[] = {1, 2, 3, 4, 5, 127, 129, 137};
	struct packet packet;

	for (unsigned i = 0; i < sizeof(types4); i++) {
		FRAME_START(&in, 0);
		FRAME_IP4(&in, .source = "192.0.2.99");
		FRAME_ICMP4(&in, .type = types4[i]);
		FRAME_IP4(&in, .source = "203.0.113.10", .destination = "198.51.100.7");
		FRAME_TCP(&in, 0);
		refuse("ICMP", 1400, 64);
		FRAME_START(&in, 0);
		FRAME_IP6(&in, .source = "2001:db8:99::1");
		FRAME_ICMP6(&in, .type = types6[i]);
		FRAME_IP6(&in, .source = "2001:db8:5::10", .destination = "2001:db8:c::7");
		FRAME_TCP(&in, 0);
		refuse("ICMPv6", 1400, 64);
	}
	write_echo(&in, &(struct echo){.payload = 1400}, false);
	load(&packet, 64, 0);
	CU_ASSERT(answer_too_big(&packet, 1400));
	packet_unload(&packet);
}

static void first_fragments_are_answered(void)
{
	struct packet packet;

	FRAME_START(&in, 0);
	FRAME_IP4(&in, .more_fragments = true);
	FRAME_UDP(&in, .length_override = 3000);
	frame_fill(&in, 1464, 0);
	load(&packet, 64, 0);
	CU_ASSERT(answer_too_big(&packet, 1400));
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP_REPLY);
	packet_unload(&packet);
}

static void our_error_parses_as_an_error_about_the_flow(void)
{
	for (unsigned is_v6 = 0; is_v6 < 2; is_v6++) {
		struct packet packet;
		struct flow_key key;

		start(&in, 0, false);
		write_quoted(&in, &(struct quoted){.payload = 1400, .is_v6 = is_v6});
		load(&packet, 64, 0);
		key = packet.key;
		CU_ASSERT(answer_too_big(&packet, 1300));
		// The client sees it so: an error that quotes its own packet, hence its flow turned around.
		parse_burst(&packet, 1);
		CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
		CU_ASSERT(packet.flags & PACKET_ICMP_ERROR);
		CU_ASSERT_EQUAL(packet.key.source_port_be, key.destination_port_be);
		CU_ASSERT_EQUAL(packet.key.destination_port_be, key.source_port_be);
		CU_ASSERT_EQUAL(memcmp(packet.key.source, key.destination, 16), 0);
		CU_ASSERT_EQUAL(memcmp(packet.key.destination, key.source, 16), 0);
		packet_unload(&packet);
	}
}

static const struct test_case cases[] = {
	SUITE_CASE(arp_request_is_answered),
	SUITE_CASE(arp_probe_is_answered),
	SUITE_CASE(arp_padding_is_zeroed),
	SUITE_CASE(arp_reply_without_room_for_padding_is_short),
	SUITE_CASE(solicitation_is_answered),
	SUITE_CASE(solicitation_goes_back_to_the_mac_in_its_option),
	SUITE_CASE(solicitation_without_option_is_answered_if_the_reply_has_room),
	SUITE_CASE(duplicate_detection_is_answered_to_all_nodes),
	SUITE_CASE(echo_is_answered),
	SUITE_CASE(echo_reply_has_no_options),
	SUITE_CASE(echo_checksum_is_right_for_every_value),
	SUITE_CASE(echo_to_or_from_a_group_is_not_answered),
	SUITE_CASE(errors_quote_what_came),
	SUITE_CASE(quotes_end_at_the_longest_error),
	SUITE_CASE(every_mtu_is_advertised_as_it_is),
	SUITE_CASE(mtu_below_the_minimum_is_not_advertised),
	SUITE_CASE(error_without_headroom_is_not_sent),
	SUITE_CASE(no_error_about_groups_fragments_and_strangers),
	SUITE_CASE(no_error_about_icmp_but_an_echo_request),
	SUITE_CASE(first_fragments_are_answered),
	SUITE_CASE(our_error_parses_as_an_error_about_the_flow),
};

int main(void)
{
	return SUITE_RUN("answer", cases);
}
