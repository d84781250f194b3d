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

static const struct test_case cases[] = {
	{"tcp_over_ip4_sets_every_field", tcp_over_ip4_sets_every_field},
	{"udp_over_ip6_with_two_tags", udp_over_ip6_with_two_tags},
};

int main(void)
{
	return SUITE_RUN("parse", cases);
}
