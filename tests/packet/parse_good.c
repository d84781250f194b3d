// SPDX-License-Identifier: Apache-2.0
// Frames that pass the parser.
#include "tests/packet/parse_cases.h"

#define DF PACKET_DONT_FRAGMENT

static void ip4_tcp(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .flags = FRAME_ACK);
	frame_payload(f, "hello", 5);
}

static void ip4_tcp_syn(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .dont_fragment = true);
	FRAME_TCP(f, .flags = FRAME_SYN, .options_bytes = 20);
}

static void ip4_tcp_syn_ack(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .flags = FRAME_SYN | FRAME_ACK);
}

static void ip4_tcp_fin(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .flags = FRAME_FIN | FRAME_ACK);
}

static void ip4_tcp_rst(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .flags = FRAME_RST);
}

static void ip4_tcp_longest_header(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .options_bytes = 40);
	FRAME_TCP(f, .flags = FRAME_ACK, .options_bytes = 40);
}

static void ip4_udp(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_UDP(f, 0);
	frame_fill(f, 33, 0);
}

static void ip4_udp_trailing_bytes(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_UDP(f, .length_override = 12);
	frame_fill(f, 33, 0);
}

static void ip4_ttl_1(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .ttl = 1);
	FRAME_UDP(f, 0);
}

static void ip4_esp(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .protocol_override = 50);
	frame_fill(f, 40, 0);
}

static void ip4_no_payload(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .protocol_override = 50);
}

static void ip4_padded(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .flags = FRAME_ACK);
	frame_finish(f);
	f->layer_count = 0;
	frame_fill(f, 6, 0xee);
}

static void ip4_dhcp_discover(struct frame *f)
{
	FRAME_START(f, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_IP4(f, .source = "0.0.0.0", .destination = "255.255.255.255");
	FRAME_UDP(f, .source_port = 68, .destination_port = 67);
	frame_fill(f, 240, 0);
}

static void source4(struct frame *f, const char *source)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .source = source);
	FRAME_UDP(f, 0);
}

static void ip4_source_in_class_e(struct frame *f)
{
	source4(f, "240.0.0.1");
}

static void ip4_source_begins_like_broadcast(struct frame *f)
{
	source4(f, "255.1.2.3");
}

static void ip4_source_half_like_broadcast(struct frame *f)
{
	source4(f, "255.255.1.1");
}

static void ip4_source_almost_broadcast(struct frame *f)
{
	source4(f, "255.255.255.1");
}

static void ip4_fragment_first(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .id = 77, .more_fragments = true);
	FRAME_UDP(f, .length_override = 1200);
	frame_fill(f, 64, 0);
}

static void ip4_fragment_middle(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .id = 77, .more_fragments = true, .fragment_offset = 72,
		.protocol_override = 17);
	frame_fill(f, 72, 0);
}

static void ip4_fragment_last(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .id = 77, .fragment_offset = 144, .protocol_override = 17);
	frame_fill(f, 3, 0);
}

static void ip4_fragment_at_the_limit(struct frame *f)
{
	// 20 + 65,512 + 3 = 65,535
	FRAME_START(f, 0);
	FRAME_IP4(f, .fragment_offset = 65512, .protocol_override = 17);
	frame_fill(f, 3, 0);
}

static void ip4_tcp_fragment_behind_header(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .fragment_offset = 24, .protocol_override = 6);
	frame_fill(f, 8, 0);
}

static void ip4_echo(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_ICMP4(f, .type = 8, .word0 = 4711, .word1 = 1);
	frame_fill(f, 56, 0);
}

static void ip4_echo_reply(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_ICMP4(f, .type = 0, .bad_checksum = true);
}

static void ip4_echo_fragment(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .more_fragments = true);
	FRAME_ICMP4(f, .type = 8);
	frame_fill(f, 56, 0);
}

// What the client's router quotes: a packet from the virtual address to the client.
static void quote4(struct frame *f, unsigned type, unsigned code, unsigned word1)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .source = "192.0.2.99");
	FRAME_ICMP4(f, .type = type, .code = code, .word1 = word1);
	FRAME_IP4(
		f, .source = "203.0.113.10", .destination = "198.51.100.7", .dont_fragment = true);
}

static void ip4_frag_needed_eight_bytes_of_tcp(struct frame *f)
{
	static const uint8_t ports[8] = {0x01, 0xbb, 0x9c, 0x40, 0, 0, 0, 1};

	quote4(f, 3, 4, 1400);
	f->bytes[f->protocol_offset] = 6;
	frame_payload(f, ports, sizeof(ports));
}

static void ip4_port_unreachable_udp(struct frame *f)
{
	quote4(f, 3, 3, 0);
	FRAME_UDP(f, .source_port = 443, .destination_port = 40000);
	frame_fill(f, 20, 0);
}

static void ip4_time_exceeded(struct frame *f)
{
	quote4(f, 11, 0, 0);
	FRAME_TCP(f, .source_port = 443, .destination_port = 40000);
}

static void ip4_parameter_problem(struct frame *f)
{
	quote4(f, 12, 0, 0);
	FRAME_TCP(f, .source_port = 443, .destination_port = 40000);
}

static void ip4_redirect_is_plain(struct frame *f)
{
	quote4(f, 5, 0, 0);
	FRAME_TCP(f, .source_port = 443, .destination_port = 40000);
}

static void ip4_quote_of_an_icmp_message(struct frame *f)
{
	quote4(f, 3, 1, 0);
	FRAME_ICMP4(f, .type = 0);
}

static void vlan_ip4(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_VLAN(f, .id = 100);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .flags = FRAME_ACK);
}

static void qinq_ip6(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_VLAN(f, .type = 0x88a8, .id = 7);
	FRAME_VLAN(f, .id = 100);
	FRAME_IP6(f, 0);
	FRAME_TCP(f, .flags = FRAME_ACK);
}

static void arp_request(struct frame *f)
{
	FRAME_START(f, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(f, 0);
}

static void arp_reply(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_ARP(f, .operation = 2, .target_mac = MAC_BALANCER);
}

static void arp_probe(struct frame *f)
{
	FRAME_START(f, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(f, .sender = "0.0.0.0");
}

static void ip6_tcp(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_TCP(f, .flags = FRAME_ACK);
	frame_payload(f, "hello", 5);
}

static void ip6_udp(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_UDP(f, 0);
	frame_fill(f, 9, 0);
}

static void ip6_every_extension(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 0, .units = 0);
	FRAME_EXTENSION(f, .kind = 60, .units = 1);
	FRAME_EXTENSION(f, .kind = 43, .units = 2);
	FRAME_EXTENSION(f, .kind = 51, .units = 4);
	FRAME_EXTENSION(f, .kind = 60, .units = 0);
	FRAME_TCP(f, .flags = FRAME_SYN);
}

static void ip6_most_extensions(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	for (unsigned i = 0; i < 8; i++)
		FRAME_EXTENSION(f, .kind = 60, .units = 7);
	FRAME_UDP(f, 0);
}

static void ip6_no_next_header(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .next_header_override = 59);
	frame_fill(f, 8, 0);
}

static void ip6_empty(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .next_header_override = 59);
}

static void ip6_atomic_fragment(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .id = 5);
	FRAME_UDP(f, 0);
}

static void ip6_fragment_first(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .id = 0xdeadbeef, .more = true);
	FRAME_UDP(f, .length_override = 1200);
	frame_fill(f, 64, 0);
}

static void ip6_fragment_last(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .id = 0xdeadbeef, .offset = 72, .next_header_override = 17);
	frame_fill(f, 13, 0);
}

static void ip6_fragment_behind_options(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 0, .units = 0);
	FRAME_FRAGMENT6(f, .id = 9, .offset = 72, .next_header_override = 60);
	frame_fill(f, 13, 0);
}

static void ip6_fragment_at_the_limit(struct frame *f)
{
	// 65,528 + 7 = 65,535
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .offset = 65528, .next_header_override = 17);
	frame_fill(f, 7, 0);
}

static void ip6_options_and_nothing_else(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 60, .units = 0);
}

static void ip6_echo(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_ICMP6(f, .type = 128, .word0 = 4711, .word1 = 1);
	frame_fill(f, 57, 0);
}

static void ip6_echo_behind_options(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 0, .units = 0);
	FRAME_ICMP6(f, .type = 128);
}

static void quote6(struct frame *f, unsigned type, unsigned word1)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = "2001:db8:99::1");
	FRAME_ICMP6(f, .type = type, .word1 = word1);
	FRAME_IP6(f, .source = "2001:db8:5::10", .destination = "2001:db8:c::7");
}

static void ip6_too_big(struct frame *f)
{
	quote6(f, 2, 1400);
	FRAME_TCP(f, .source_port = 443, .destination_port = 40000);
	frame_fill(f, 99, 0);
}

static void ip6_unreachable_behind_options(struct frame *f)
{
	quote6(f, 1, 0);
	FRAME_EXTENSION(f, .kind = 60, .units = 0);
	FRAME_UDP(f, .source_port = 443, .destination_port = 40000);
}

static void ip6_time_exceeded_first_fragment(struct frame *f)
{
	quote6(f, 3, 0);
	FRAME_FRAGMENT6(f, .id = 1, .more = true);
	FRAME_UDP(f, .source_port = 443, .destination_port = 40000);
}

static void ip6_parameter_problem(struct frame *f)
{
	quote6(f, 4, 0);
	FRAME_UDP(f, .source_port = 443, .destination_port = 40000);
}

static void ip6_mld_report(struct frame *f)
{
	FRAME_START(f, .destination = "33:33:00:00:00:16");
	FRAME_IP6(f, .source = "::", .destination = "ff02::16", .hop_limit = 1);
	FRAME_EXTENSION(f, .kind = 0, .units = 0, .body = {5, 2});
	FRAME_ICMP6(f, .type = 143);
	frame_fill(f, 20, 0);
}

static void nd_solicitation(struct frame *f)
{
	FRAME_START(f, .destination = "33:33:ff:00:00:10");
	FRAME_IP6(f, .source = "2001:db8:1::1", .destination = "ff02::1:ff00:10", .hop_limit = 255);
	FRAME_ND(f, .option = 1);
}

static void nd_solicitation_unicast(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = "2001:db8:1::1", .destination = "2001:db8:1::10", .hop_limit = 255);
	FRAME_ND(f, 0);
}

static void nd_duplicate_detection(struct frame *f)
{
	FRAME_START(f, .destination = "33:33:ff:00:00:10");
	FRAME_IP6(f, .source = "::", .destination = "ff02::1:ff00:10", .hop_limit = 255);
	FRAME_ND(f, 0);
}

static void nd_advertisement(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = "2001:db8:1::1", .destination = "2001:db8:1::10", .hop_limit = 255);
	FRAME_ND(f, .type = 136, .flags = 0x60000000, .target = "2001:db8:1::1", .option = 2);
}

static void nd_advertisement_unsolicited(struct frame *f)
{
	FRAME_START(f, .destination = "33:33:00:00:00:01");
	FRAME_IP6(f, .source = "2001:db8:1::1", .destination = "ff02::1", .hop_limit = 255);
	FRAME_ND(f, .type = 136, .flags = 0x20000000, .target = "2001:db8:1::1", .option = 2);
}

static void lldp(struct frame *f)
{
	FRAME_START(f, .destination = "01:80:c2:00:00:0e", .type_override = 0x88cc);
	frame_fill(f, 46, 0);
}

static void spanning_tree(struct frame *f)
{
	// IEEE 802.3: a length instead of a type.
	FRAME_START(f, .destination = "01:80:c2:00:00:00", .type_override = 38);
	frame_fill(f, 46, 0);
}

static void lldp_without_content(struct frame *f)
{
	FRAME_START(f, .type_override = 0x88cc);
}

static void tagged_lldp_without_content(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_VLAN(f, .id = 7);
	frame_finish(f);
	f->bytes[f->type_offset] = 0x88;
	f->bytes[f->type_offset + 1] = 0xcc;
}

#define GOOD(build, flags)                              \
	{                                               \
#build, build, PACKET_PENDING, 0, flags \
	}
#define PUNT(build)                              \
	{                                        \
#build, build, PACKET_PUNT, 0, 0 \
	}

const struct parse_case parse_good_cases[] = {
	GOOD(ip4_tcp, 0),
	GOOD(ip4_tcp_syn, PACKET_SYN | DF),
	GOOD(ip4_tcp_syn_ack, 0),
	GOOD(ip4_tcp_fin, PACKET_FIN),
	GOOD(ip4_tcp_rst, PACKET_RST),
	GOOD(ip4_tcp_longest_header, 0),
	GOOD(ip4_udp, 0),
	GOOD(ip4_udp_trailing_bytes, 0),
	GOOD(ip4_ttl_1, 0),
	GOOD(ip4_esp, 0),
	GOOD(ip4_no_payload, 0),
	GOOD(ip4_padded, 0),
	GOOD(ip4_dhcp_discover, 0),
	GOOD(ip4_source_in_class_e, 0),
	GOOD(ip4_source_begins_like_broadcast, 0),
	GOOD(ip4_source_half_like_broadcast, 0),
	GOOD(ip4_source_almost_broadcast, 0),
	GOOD(ip4_fragment_first, PACKET_FRAGMENT),
	GOOD(ip4_fragment_middle, PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip4_fragment_last, PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip4_fragment_at_the_limit, PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip4_tcp_fragment_behind_header, PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip4_echo, PACKET_ECHO),
	GOOD(ip4_echo_reply, 0),
	GOOD(ip4_echo_fragment, PACKET_FRAGMENT),
	GOOD(ip4_frag_needed_eight_bytes_of_tcp, PACKET_ICMP_ERROR),
	GOOD(ip4_port_unreachable_udp, PACKET_ICMP_ERROR),
	GOOD(ip4_time_exceeded, PACKET_ICMP_ERROR),
	GOOD(ip4_parameter_problem, PACKET_ICMP_ERROR),
	GOOD(ip4_redirect_is_plain, 0),
	GOOD(ip4_quote_of_an_icmp_message, PACKET_ICMP_ERROR),
	GOOD(vlan_ip4, 0),
	GOOD(qinq_ip6, DF),
	GOOD(arp_request, PACKET_ARP),
	GOOD(arp_reply, PACKET_ARP),
	GOOD(arp_probe, PACKET_ARP),
	GOOD(ip6_tcp, DF),
	GOOD(ip6_udp, DF),
	GOOD(ip6_every_extension, DF | PACKET_SYN),
	GOOD(ip6_most_extensions, DF),
	GOOD(ip6_no_next_header, DF),
	GOOD(ip6_empty, DF),
	GOOD(ip6_atomic_fragment, DF),
	GOOD(ip6_fragment_first, DF | PACKET_FRAGMENT),
	GOOD(ip6_fragment_last, DF | PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip6_fragment_behind_options, DF | PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip6_fragment_at_the_limit, DF | PACKET_FRAGMENT | PACKET_FRAGMENT_LATER),
	GOOD(ip6_options_and_nothing_else, DF),
	GOOD(ip6_echo, DF | PACKET_ECHO),
	GOOD(ip6_echo_behind_options, DF | PACKET_ECHO),
	GOOD(ip6_too_big, DF | PACKET_ICMP_ERROR),
	GOOD(ip6_unreachable_behind_options, DF | PACKET_ICMP_ERROR),
	GOOD(ip6_time_exceeded_first_fragment, DF | PACKET_ICMP_ERROR),
	GOOD(ip6_parameter_problem, DF | PACKET_ICMP_ERROR),
	GOOD(ip6_mld_report, DF),
	GOOD(nd_solicitation, DF | PACKET_ND),
	GOOD(nd_solicitation_unicast, DF | PACKET_ND),
	GOOD(nd_duplicate_detection, DF | PACKET_ND),
	GOOD(nd_advertisement, DF | PACKET_ND),
	GOOD(nd_advertisement_unsolicited, DF | PACKET_ND),
	PUNT(lldp),
	PUNT(spanning_tree),
	PUNT(lldp_without_content),
	PUNT(tagged_lldp_without_content),
};

const unsigned parse_good_count = sizeof(parse_good_cases) / sizeof(parse_good_cases[0]);
