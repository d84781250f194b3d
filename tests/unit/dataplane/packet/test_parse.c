// SPDX-License-Identifier: Apache-2.0
// What parse_burst() makes of good packets, field by field. Malformed ones: tests/packet/parse_cases.c.
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>

static struct frame frame;

static void parse(struct packet *packet)
{
	frame_finish(&frame);
	packet_load(packet, &frame, 0, 0);
	parse_burst(packet, 1);
}

static bool address_is(const uint8_t *bytes, const char *text)
{
	uint8_t expected[16] = {0};

	inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, expected);
	return memcmp(bytes, expected, sizeof(expected)) == 0;
}

static void tcp_over_ip4_sets_every_field(void)
{
	struct packet packet;

	FRAME_START(&frame, 0);
	FRAME_IP4(&frame, .dont_fragment = true);
	FRAME_TCP(&frame, .flags = FRAME_SYN, .options_bytes = 8);
	frame_fill(&frame, 10, 0);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
	CU_ASSERT_EQUAL(packet.flags, PACKET_SYN | PACKET_DONT_FRAGMENT);
	CU_ASSERT_EQUAL(packet.l3_offset, 14);
	CU_ASSERT_EQUAL(packet.l4_offset, 34);
	CU_ASSERT_EQUAL(packet.l3_length, 58);
	CU_ASSERT_EQUAL(packet.payload_offset, 62);
	CU_ASSERT_EQUAL(packet.family, ADDR_V4);
	CU_ASSERT_EQUAL(packet.vlan_count, 0);
	CU_ASSERT_EQUAL(packet.connection_id_length, 0);
	CU_ASSERT_EQUAL(packet.fragment_id, 0);
	CU_ASSERT(address_is(packet.key.source, "198.51.100.7"));
	CU_ASSERT(address_is(packet.key.destination, "203.0.113.10"));
	CU_ASSERT_EQUAL(packet.key.source_port_be, htons(40000));
	CU_ASSERT_EQUAL(packet.key.destination_port_be, htons(443));
	CU_ASSERT_EQUAL(packet.key.protocol, IPPROTO_TCP);
	CU_ASSERT_EQUAL(packet.key.family, ADDR_V4);
	CU_ASSERT_EQUAL(packet.key.reserved[0] | packet.key.reserved[1], 0);
	packet_unload(&packet);
}

static void udp_over_ip6_with_two_tags(void)
{
	struct packet packet;

	FRAME_START(&frame, 0);
	FRAME_VLAN(&frame, .type = 0x88a8, .id = 7);
	FRAME_VLAN(&frame, .id = 9);
	FRAME_IP6(&frame, 0);
	FRAME_UDP(&frame, .destination_port = 53);
	frame_fill(&frame, 5, 0);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
	CU_ASSERT_EQUAL(packet.vlan_count, 2);
	CU_ASSERT_EQUAL(packet.l3_offset, 22);
	CU_ASSERT_EQUAL(packet.l4_offset, 62);
	CU_ASSERT_EQUAL(packet.payload_offset, 70);
	CU_ASSERT_EQUAL(packet.l3_length, 53);
	CU_ASSERT_EQUAL(packet.family, ADDR_V6);
	CU_ASSERT(address_is(packet.key.source, "2001:db8:c::7"));
	CU_ASSERT(address_is(packet.key.destination, "2001:db8:5::10"));
	CU_ASSERT_EQUAL(packet.key.destination_port_be, htons(53));
	packet_unload(&packet);
}

static void tcp_flags_of_every_value(void)
{
	struct packet packet;

	for (unsigned flags = 0; flags < 256; flags++) {
		uint32_t expected = 0;

		// Said once more, the long way.
		if (flags & 0x01)
			expected |= PACKET_FIN;
		if (flags & 0x02 && !(flags & 0x10))
			expected |= PACKET_SYN;
		if (flags & 0x04)
			expected |= PACKET_RST;
		FRAME_START(&frame, 0);
		FRAME_IP4(&frame, 0);
		FRAME_TCP(&frame, .flags = flags);
		parse(&packet);
		CU_ASSERT_EQUAL(packet.flags, expected);
		packet_unload(&packet);
	}
}

static void fragments_of_a_datagram_share_id_and_addresses(void)
{
	struct packet first, later;

	for (unsigned six = 0; six < 2; six++) {
		FRAME_START(&frame, 0);
		if (six) {
			FRAME_IP6(&frame, 0);
			FRAME_FRAGMENT6(&frame, .id = 0xdeadbeef, .more = true);
		} else {
			FRAME_IP4(&frame, .id = 0xbeef, .more_fragments = true);
		}
		FRAME_UDP(&frame, .length_override = 100);
		frame_fill(&frame, 64, 0);
		parse(&first);
		FRAME_START(&frame, 0);
		if (six) {
			FRAME_IP6(&frame, 0);
			FRAME_FRAGMENT6(
				&frame, .id = 0xdeadbeef, .offset = 72, .next_header_override = 17);
		} else {
			FRAME_IP4(&frame, .id = 0xbeef, .fragment_offset = 72,
				.protocol_override = 17);
		}
		frame_fill(&frame, 20, 0);
		parse(&later);
		CU_ASSERT_EQUAL(first.fragment_id, six ? 0xdeadbeef : 0xbeef);
		CU_ASSERT_EQUAL(later.fragment_id, first.fragment_id);
		CU_ASSERT_EQUAL(memcmp(first.key.source, later.key.source, 32), 0);
		CU_ASSERT_EQUAL(later.key.protocol, first.key.protocol);
		CU_ASSERT_EQUAL(first.key.destination_port_be, htons(443));
		CU_ASSERT_EQUAL(later.key.destination_port_be, 0);
		CU_ASSERT_NOT_EQUAL(first.l4_offset, 0);
		CU_ASSERT_EQUAL(later.l4_offset, 0);
		CU_ASSERT_EQUAL(later.payload_offset, six ? 62 : 34);
		packet_unload(&first);
		packet_unload(&later);
	}
}

static void extension_headers_are_skipped_and_padding_is_not_counted(void)
{
	struct packet packet;

	FRAME_START(&frame, 0);
	FRAME_IP6(&frame, 0);
	FRAME_EXTENSION(&frame, .kind = 0, .units = 0);
	FRAME_EXTENSION(&frame, .kind = 43, .units = 2);
	FRAME_UDP(&frame, .destination_port = 53);
	frame_finish(&frame);
	frame.layer_count = 0;
	frame_fill(&frame, 9, 0xee);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.l4_offset, 14 + 40 + 8 + 24);
	CU_ASSERT_EQUAL(packet.l3_length, 40 + 8 + 24 + 8);
	CU_ASSERT_EQUAL(packet.key.protocol, IPPROTO_UDP);
	CU_ASSERT_EQUAL(packet.key.destination_port_be, htons(53));
	packet_unload(&packet);
}

static void longest_ip6_packet_that_we_count(void)
{
	struct packet packet;

	FRAME_START(&frame, 0);
	FRAME_IP6(&frame, 0);
	FRAME_UDP(&frame, 0);
	frame_fill(&frame, 65535 - 40 - 8, 0);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
	CU_ASSERT_EQUAL(packet.l3_length, 65535);
	packet_unload(&packet);
}

static void arp_gives_both_addresses_and_no_family(void)
{
	struct packet packet;

	FRAME_START(&frame, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(&frame, 0);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.family, ADDR_NONE);
	CU_ASSERT_EQUAL(packet.key.family, ADDR_V4);
	CU_ASSERT(address_is(packet.key.source, "192.0.2.1"));
	CU_ASSERT(address_is(packet.key.destination, "192.0.2.10"));
	CU_ASSERT_EQUAL(packet.l3_length, 28);
	packet_unload(&packet);
}

static void dropped_and_punted_packets_have_no_key(void)
{
	static const struct flow_key none;
	struct packet packet;

	FRAME_START(&frame, .type_override = 0x88cc);
	frame_fill(&frame, 46, 1);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_PUNT);
	CU_ASSERT_EQUAL(memcmp(&packet.key, &none, sizeof(none)), 0);
	packet_unload(&packet);
	FRAME_START(&frame, 0);
	FRAME_IP4(&frame, .bad_checksum = true);
	FRAME_UDP(&frame, 0);
	parse(&packet);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
	CU_ASSERT_EQUAL(memcmp(&packet.key, &none, sizeof(none)), 0);
	packet_unload(&packet);
}

static const struct test_case cases[] = {
	SUITE_CASE(tcp_over_ip4_sets_every_field),
	SUITE_CASE(udp_over_ip6_with_two_tags),
	SUITE_CASE(tcp_flags_of_every_value),
	SUITE_CASE(fragments_of_a_datagram_share_id_and_addresses),
	SUITE_CASE(extension_headers_are_skipped_and_padding_is_not_counted),
	SUITE_CASE(longest_ip6_packet_that_we_count),
	SUITE_CASE(arp_gives_both_addresses_and_no_family),
	SUITE_CASE(dropped_and_punted_packets_have_no_key),
};

int main(void)
{
	return SUITE_RUN("parse", cases);
}
