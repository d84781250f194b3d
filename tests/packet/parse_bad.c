// SPDX-License-Identifier: Apache-2.0
// Frames that the parser drops. Each is a good frame with one thing wrong.
#include "tests/packet/parse_cases.h"

static void runt(struct frame *f)
{
	FRAME_START(f, .type_override = 0x0800);
	f->length = 13;
}

static void runt_inside_a_tag(struct frame *f)
{
	FRAME_START(f, .type_override = 0x8100);
	frame_fill(f, 3, 0);
}

static void three_tags(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_VLAN(f, .id = 1);
	FRAME_VLAN(f, .id = 2);
	FRAME_VLAN(f, .id = 3);
	FRAME_IP4(f, 0);
	FRAME_UDP(f, 0);
}

static void ip4_header_cut(struct frame *f)
{
	FRAME_START(f, .type_override = 0x0800);
	frame_fill(f, 19, 0x45);
}

static void ip6_header_cut(struct frame *f)
{
	FRAME_START(f, .type_override = 0x86dd);
	frame_fill(f, 39, 0x60);
}

static void ip6_behind_ip4_type(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .version_override = 6);
	FRAME_UDP(f, 0);
}

static void ip4_behind_ip6_type(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .version_override = 4);
	FRAME_UDP(f, 0);
}

static void ip4_header_below_20(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .header_words_override = 4);
	FRAME_UDP(f, 0);
}

static void ip4_header_beyond_frame(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .header_words_override = 15);
	FRAME_UDP(f, 0);
}

static void ip4_wrong_checksum(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .bad_checksum = true);
	FRAME_UDP(f, 0);
}

static void ip4_wrong_checksum_in_options(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .options_bytes = 4);
	FRAME_UDP(f, 0);
	frame_finish(f);
	f->layer_count = 0;
	f->bytes[14 + 20] ^= 1;
}

static void ip4_total_beyond_frame(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .total_length_override = 29);
	FRAME_UDP(f, 0);
}

static void ip4_total_below_header(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .total_length_override = 23, .options_bytes = 4);
	FRAME_UDP(f, 0);
}

static void ip6_payload_beyond_frame(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .payload_length_override = 9);
	FRAME_UDP(f, 0);
}

static void ip6_longer_than_we_count(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .payload_length_override = 65496);
	FRAME_UDP(f, 0);
	frame_fill(f, 65500, 0);
}

static void too_many_extensions(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	for (unsigned i = 0; i < 9; i++)
		FRAME_EXTENSION(f, .kind = 60, .units = 0);
	FRAME_UDP(f, 0);
}

static void too_long_extensions(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 60, .units = 64);
	FRAME_UDP(f, 0);
}

static void extension_beyond_packet(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 60, .units = 2, .bytes = 8);
	FRAME_UDP(f, 0);
}

static void extension_cut(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .next_header_override = 60);
	frame_fill(f, 7, 0);
}

static void hop_by_hop_not_first(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 60, .units = 0);
	FRAME_EXTENSION(f, .kind = 0, .units = 0);
	FRAME_UDP(f, 0);
}

static void routing_header_with_segments_left(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 43, .units = 2, .body = {0, 1});
	FRAME_UDP(f, 0);
}

static void authentication_header_of_odd_size(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_EXTENSION(f, .kind = 51, .units = 3);
	FRAME_UDP(f, 0);
}

static void two_fragment_headers(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .id = 1);
	FRAME_FRAGMENT6(f, .id = 1);
	FRAME_UDP(f, 0);
}

static void source4(struct frame *f, const char *source)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .source = source);
	FRAME_UDP(f, 0);
}

static void source6(struct frame *f, const char *source)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = source);
	FRAME_UDP(f, 0);
}

static void source_multicast(struct frame *f)
{
	source4(f, "224.0.0.1");
}

static void source_multicast_last(struct frame *f)
{
	source4(f, "239.255.255.255");
}

static void source_loopback(struct frame *f)
{
	source4(f, "127.0.0.1");
}

static void source_broadcast(struct frame *f)
{
	source4(f, "255.255.255.255");
}

static void source_unspecified(struct frame *f)
{
	source4(f, "0.0.0.0");
}

static void source_this_network(struct frame *f)
{
	source4(f, "0.1.2.3");
}

static void source_is_destination(struct frame *f)
{
	source4(f, "203.0.113.10");
}

static void source6_multicast(struct frame *f)
{
	source6(f, "ff02::1");
}

static void source6_loopback(struct frame *f)
{
	source6(f, "::1");
}

static void source6_unspecified(struct frame *f)
{
	source6(f, "::");
}

static void source6_mapped(struct frame *f)
{
	source6(f, "::ffff:198.51.100.7");
}

static void source6_is_destination(struct frame *f)
{
	source6(f, "2001:db8:5::10");
}

static void ip4_ttl_0(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .ttl_zero = true);
	FRAME_UDP(f, 0);
}

static void ip6_hop_limit_0(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .hop_limit_zero = true);
	FRAME_UDP(f, 0);
}

static void ip4_tcp_cut(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .protocol_override = 6);
	frame_fill(f, 19, 0);
}

static void ip6_tcp_cut(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .next_header_override = 6);
	frame_fill(f, 19, 0);
}

static void ip4_udp_cut(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .protocol_override = 17);
	frame_fill(f, 7, 0);
}

static void ip4_icmp_cut(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .protocol_override = 1);
	frame_fill(f, 7, 8);
}

static void ip6_icmp_cut(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .next_header_override = 58);
	frame_fill(f, 7, 128);
}

static void ip4_tiny_first_fragment(struct frame *f)
{
	// RFC 1858 section 3: the flags come in the second fragment.
	FRAME_START(f, 0);
	FRAME_IP4(f, .protocol_override = 6, .more_fragments = true);
	frame_fill(f, 8, 0);
}

static void ip6_first_fragment_without_its_headers(struct frame *f)
{
	// RFC 7112 section 5.
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .id = 1, .more = true);
	FRAME_EXTENSION(f, .kind = 60, .units = 1, .bytes = 8);
}

static void tcp_offset_below_20(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_TCP(f, .header_words_override = 4);
}

static void tcp_offset_beyond_packet(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_TCP(f, .header_words_override = 6);
}

static void udp_length_below_8(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_UDP(f, .length_override = 7);
}

static void udp_length_zero(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_UDP(f, .length_zero = true);
}

static void udp_length_beyond_packet(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_UDP(f, .length_override = 9);
}

static void udp_first_fragment_length_below_8(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .more_fragments = true);
	FRAME_UDP(f, .length_override = 7);
}

static void echo_wrong_checksum(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, 0);
	FRAME_ICMP4(f, .type = 8, .bad_checksum = true);
}

static void echo6_wrong_checksum(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_ICMP6(f, .type = 128, .bad_checksum = true);
}

static void start_quote4(struct frame *f, bool bad_checksum)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .source = "192.0.2.99");
	FRAME_ICMP4(f, .type = 3, .code = 4, .word1 = 1400, .bad_checksum = bad_checksum);
}

static void start_quote6(struct frame *f, bool bad_checksum)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = "2001:db8:99::1");
	FRAME_ICMP6(f, .type = 2, .word1 = 1400, .bad_checksum = bad_checksum);
}

static void icmp_error_wrong_checksum(struct frame *f)
{
	start_quote4(f, true);
	FRAME_IP4(f, .source = "203.0.113.10", .destination = "198.51.100.7");
	FRAME_TCP(f, 0);
}

static void icmp6_error_wrong_checksum(struct frame *f)
{
	start_quote6(f, true);
	FRAME_IP6(f, .source = "2001:db8:5::10", .destination = "2001:db8:c::7");
	FRAME_TCP(f, 0);
}

static void quote_empty(struct frame *f)
{
	start_quote4(f, false);
}

static void quote_of_seven_bytes(struct frame *f)
{
	start_quote4(f, false);
	FRAME_IP4(
		f, .source = "203.0.113.10", .destination = "198.51.100.7", .protocol_override = 6);
	frame_fill(f, 7, 0);
}

static void quote_shorter_than_its_options(struct frame *f)
{
	start_quote4(f, false);
	FRAME_IP4(f, .source = "203.0.113.10", .destination = "198.51.100.7",
		.protocol_override = 6, .header_words_override = 15);
	frame_fill(f, 20, 0);
}

static void quote_header_below_20(struct frame *f)
{
	start_quote4(f, false);
	FRAME_IP4(f, .source = "203.0.113.10", .destination = "198.51.100.7",
		.header_words_override = 4);
	FRAME_TCP(f, 0);
}

static void quote_of_other_version(struct frame *f)
{
	start_quote4(f, false);
	FRAME_IP4(
		f, .source = "203.0.113.10", .destination = "198.51.100.7", .version_override = 6);
	FRAME_TCP(f, 0);
}

static void quote_of_later_fragment(struct frame *f)
{
	start_quote4(f, false);
	FRAME_IP4(f, .source = "203.0.113.10", .destination = "198.51.100.7", .fragment_offset = 64,
		.protocol_override = 6);
	frame_fill(f, 20, 0);
}

static void quote_not_from_the_error_s_target(struct frame *f)
{
	start_quote4(f, false);
	FRAME_IP4(f, .source = "203.0.113.11", .destination = "198.51.100.7");
	FRAME_TCP(f, 0);
}

static void quote6_empty(struct frame *f)
{
	start_quote6(f, false);
}

static void quote6_of_seven_bytes(struct frame *f)
{
	start_quote6(f, false);
	FRAME_IP6(f, .source = "2001:db8:5::10", .destination = "2001:db8:c::7",
		.next_header_override = 6);
	frame_fill(f, 7, 0);
}

static void quote6_of_other_version(struct frame *f)
{
	start_quote6(f, false);
	FRAME_IP6(f, .source = "2001:db8:5::10", .destination = "2001:db8:c::7",
		.version_override = 4);
	FRAME_TCP(f, 0);
}

static void quote6_of_broken_chain(struct frame *f)
{
	start_quote6(f, false);
	FRAME_IP6(f, .source = "2001:db8:5::10", .destination = "2001:db8:c::7");
	FRAME_EXTENSION(f, .kind = 60, .units = 20, .bytes = 8);
}

static void quote6_of_later_fragment(struct frame *f)
{
	start_quote6(f, false);
	FRAME_IP6(f, .source = "2001:db8:5::10", .destination = "2001:db8:c::7");
	FRAME_FRAGMENT6(f, .offset = 64, .next_header_override = 6);
	frame_fill(f, 20, 0);
}

static void quote6_not_from_the_error_s_target(struct frame *f)
{
	start_quote6(f, false);
	FRAME_IP6(f, .source = "2001:db8:5::11", .destination = "2001:db8:c::7");
	FRAME_TCP(f, 0);
}

static void arp_patched(struct frame *f, unsigned offset, uint8_t value)
{
	FRAME_START(f, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(f, 0);
	f->bytes[14 + offset] = value;
}

static void arp_cut(struct frame *f)
{
	arp_patched(f, 0, 0);
	f->length--;
}

static void arp_not_ethernet(struct frame *f)
{
	arp_patched(f, 1, 6);
}

static void arp_not_ip4(struct frame *f)
{
	arp_patched(f, 2, 0x86);
}

static void arp_long_hardware_address(struct frame *f)
{
	arp_patched(f, 4, 8);
}

static void arp_long_protocol_address(struct frame *f)
{
	arp_patched(f, 5, 16);
}

static void arp_reverse_request(struct frame *f)
{
	arp_patched(f, 7, 3);
}

static void arp_from_group_mac(struct frame *f)
{
	arp_patched(f, 8, 0x03);
}

static void arp_from_multicast_address(struct frame *f)
{
	arp_patched(f, 14, 0xe0);
}

struct nd_shape {
	const char *source;
	const char *destination;
	unsigned hop_limit;
	struct frame_nd nd;
};

static void nd(struct frame *f, const struct nd_shape *shape)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = shape->source ? shape->source : "2001:db8:1::1",
		.destination = shape->destination ? shape->destination : "ff02::1:ff00:10",
		.hop_limit = shape->hop_limit ? shape->hop_limit : 255);
	frame_nd(f, &shape->nd);
}

#define ND(f, ...) nd(f, &(struct nd_shape){__VA_ARGS__})

static void nd_hop_limit_254(struct frame *f)
{
	ND(f, .hop_limit = 254);
}

static void nd_wrong_checksum(struct frame *f)
{
	ND(f, .nd = {.bad_checksum = true});
}

static void nd_code_1(struct frame *f)
{
	ND(f, .nd = {.code = 1});
}

static void nd_multicast_target(struct frame *f)
{
	ND(f, .nd = {.target = "ff02::1"});
}

static void nd_option_of_length_0(struct frame *f)
{
	ND(f, .nd = {.option = 1});
	f->bytes[14 + 40 + 24 + 1] = 0;
}

static void nd_option_beyond_packet(struct frame *f)
{
	ND(f, .nd = {.option = 1});
	f->bytes[14 + 40 + 24 + 1] = 2;
}

static void nd_half_an_option(struct frame *f)
{
	ND(f, .nd = {.option = 1});
	frame_fill(f, 1, 1);
}

static void nd_cut(struct frame *f)
{
	ND(f, 0);
	f->length -= 4;
}

static void nd_probe_with_source_option(struct frame *f)
{
	ND(f, .source = "::", .nd = {.option = 1});
}

static void nd_probe_to_all_nodes(struct frame *f)
{
	ND(f, .source = "::", .destination = "ff02::1");
}

static void nd_solicited_advertisement_to_all_nodes(struct frame *f)
{
	ND(f, .destination = "ff02::1", .nd = {.type = 136, .flags = 0x40000000});
}

static void nd_behind_extension(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = "2001:db8:1::1", .hop_limit = 255);
	FRAME_EXTENSION(f, .kind = 60, .units = 0);
	FRAME_ND(f, 0);
}

static void nd_fragment(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, .source = "2001:db8:1::1", .hop_limit = 255);
	FRAME_FRAGMENT6(f, .more = true);
	FRAME_ND(f, 0);
}

static void ip4_fragment_of_odd_length(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .more_fragments = true, .fragment_offset = 64, .protocol_override = 17);
	frame_fill(f, 9, 0);
}

static void ip4_fragment_of_nothing(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .more_fragments = true, .fragment_offset = 64, .protocol_override = 17);
}

static void ip4_fragment_beyond_64k(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .fragment_offset = 65512, .protocol_override = 17);
	frame_fill(f, 4, 0);
}

static void ip4_fragment_inside_tcp_header(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP4(f, .fragment_offset = 8, .protocol_override = 6);
	frame_fill(f, 40, 0);
}

static void ip6_fragment_of_odd_length(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .offset = 64, .more = true, .next_header_override = 17);
	frame_fill(f, 9, 0);
}

static void ip6_fragment_beyond_64k(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .offset = 65528, .next_header_override = 17);
	frame_fill(f, 8, 0);
}

static void ip6_fragment_inside_tcp_header(struct frame *f)
{
	FRAME_START(f, 0);
	FRAME_IP6(f, 0);
	FRAME_FRAGMENT6(f, .offset = 16, .next_header_override = 6);
	frame_fill(f, 40, 0);
}

#define BAD(build, reason)                                   \
	{                                                    \
#build, build, PACKET_DROP, DROP_##reason, 0 \
	}

const struct parse_case parse_bad_cases[] = {
	BAD(runt, runt),
	BAD(runt_inside_a_tag, runt),
	BAD(three_tags, vlan_depth),
	BAD(ip4_header_cut, ip_truncated),
	BAD(ip6_header_cut, ip_truncated),
	BAD(ip6_behind_ip4_type, ip_version),
	BAD(ip4_behind_ip6_type, ip_version),
	BAD(ip4_header_below_20, ip_header_length),
	BAD(ip4_header_beyond_frame, ip_header_length),
	BAD(ip4_wrong_checksum, ip_checksum),
	BAD(ip4_wrong_checksum_in_options, ip_checksum),
	BAD(ip4_total_beyond_frame, ip_total_length),
	BAD(ip4_total_below_header, ip_total_length),
	BAD(ip6_payload_beyond_frame, ip_total_length),
	BAD(ip6_longer_than_we_count, ip_total_length),
	BAD(too_many_extensions, ip6_extension_chain),
	BAD(too_long_extensions, ip6_extension_chain),
	BAD(extension_beyond_packet, ip6_extension_chain),
	BAD(extension_cut, ip6_extension_chain),
	BAD(hop_by_hop_not_first, ip6_extension_chain),
	BAD(routing_header_with_segments_left, ip6_extension_chain),
	BAD(authentication_header_of_odd_size, ip6_extension_chain),
	BAD(two_fragment_headers, ip6_extension_chain),
	BAD(ip6_first_fragment_without_its_headers, ip6_extension_chain),
	BAD(source_multicast, ip_source_martian),
	BAD(source_multicast_last, ip_source_martian),
	BAD(source_loopback, ip_source_martian),
	BAD(source_broadcast, ip_source_martian),
	BAD(source_unspecified, ip_source_martian),
	BAD(source_this_network, ip_source_martian),
	BAD(source_is_destination, ip_source_martian),
	BAD(source6_multicast, ip_source_martian),
	BAD(source6_loopback, ip_source_martian),
	BAD(source6_unspecified, ip_source_martian),
	BAD(source6_mapped, ip_source_martian),
	BAD(source6_is_destination, ip_source_martian),
	BAD(ip4_ttl_0, ttl_expired),
	BAD(ip6_hop_limit_0, ttl_expired),
	BAD(ip4_tcp_cut, l4_truncated),
	BAD(ip6_tcp_cut, l4_truncated),
	BAD(ip4_udp_cut, l4_truncated),
	BAD(ip4_icmp_cut, l4_truncated),
	BAD(ip6_icmp_cut, l4_truncated),
	BAD(ip4_tiny_first_fragment, l4_truncated),
	BAD(tcp_offset_below_20, tcp_header_length),
	BAD(tcp_offset_beyond_packet, tcp_header_length),
	BAD(udp_length_below_8, udp_length),
	BAD(udp_length_zero, udp_length),
	BAD(udp_length_beyond_packet, udp_length),
	BAD(udp_first_fragment_length_below_8, udp_length),
	BAD(echo_wrong_checksum, icmp_checksum),
	BAD(echo6_wrong_checksum, icmp_checksum),
	BAD(icmp_error_wrong_checksum, icmp_checksum),
	BAD(icmp6_error_wrong_checksum, icmp_checksum),
	BAD(quote_empty, icmp_inner),
	BAD(quote_of_seven_bytes, icmp_inner),
	BAD(quote_shorter_than_its_options, icmp_inner),
	BAD(quote_header_below_20, icmp_inner),
	BAD(quote_of_other_version, icmp_inner),
	BAD(quote_of_later_fragment, icmp_inner),
	BAD(quote_not_from_the_error_s_target, icmp_inner),
	BAD(quote6_empty, icmp_inner),
	BAD(quote6_of_seven_bytes, icmp_inner),
	BAD(quote6_of_other_version, icmp_inner),
	BAD(quote6_of_broken_chain, icmp_inner),
	BAD(quote6_of_later_fragment, icmp_inner),
	BAD(quote6_not_from_the_error_s_target, icmp_inner),
	BAD(arp_cut, arp_malformed),
	BAD(arp_not_ethernet, arp_malformed),
	BAD(arp_not_ip4, arp_malformed),
	BAD(arp_long_hardware_address, arp_malformed),
	BAD(arp_long_protocol_address, arp_malformed),
	BAD(arp_reverse_request, arp_malformed),
	BAD(arp_from_group_mac, arp_malformed),
	BAD(arp_from_multicast_address, arp_malformed),
	BAD(nd_hop_limit_254, nd_malformed),
	BAD(nd_wrong_checksum, nd_malformed),
	BAD(nd_code_1, nd_malformed),
	BAD(nd_multicast_target, nd_malformed),
	BAD(nd_option_of_length_0, nd_malformed),
	BAD(nd_option_beyond_packet, nd_malformed),
	BAD(nd_half_an_option, nd_malformed),
	BAD(nd_cut, nd_malformed),
	BAD(nd_probe_with_source_option, nd_malformed),
	BAD(nd_probe_to_all_nodes, nd_malformed),
	BAD(nd_solicited_advertisement_to_all_nodes, nd_malformed),
	BAD(nd_behind_extension, nd_malformed),
	BAD(nd_fragment, nd_malformed),
	BAD(ip4_fragment_of_odd_length, fragment_bounds),
	BAD(ip4_fragment_of_nothing, fragment_bounds),
	BAD(ip4_fragment_beyond_64k, fragment_bounds),
	BAD(ip4_fragment_inside_tcp_header, fragment_bounds),
	BAD(ip6_fragment_of_odd_length, fragment_bounds),
	BAD(ip6_fragment_beyond_64k, fragment_bounds),
	BAD(ip6_fragment_inside_tcp_header, fragment_bounds),
};

const unsigned parse_bad_count = sizeof(parse_bad_cases) / sizeof(parse_bad_cases[0]);
