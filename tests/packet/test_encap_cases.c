// SPDX-License-Identifier: Apache-2.0
// Encapsulation: bytes in, whole frame out, compared byte for byte with one built header by header.
#include "dataplane/packet/encap.h"
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <stdio.h>

#define HASH \
	UINT64_C(0x0123456789abcdef) // its low half: address bits cdef, port bits 89ab, label bcdef

static struct frame in, out;
static struct snapshot_service service;
static struct encap_port port;
static struct ip_addr backend;
static struct encap_job job = {&service, &backend, &port};
static uint8_t port_out; // frames come in on port 0

static const uint8_t backend_mac[6] = {2, 0, 0, 0, 0, 3};
static const uint8_t balancer_mac[6] = {2, 0, 0, 0, 0, 1};

// What the outer source, port and label must be for HASH.
static const char *const outer_source4 = "10.255.205.239"; // 10.255.0.0/16, cdef
static const char *const outer_source6 = "2001:db8:ffff::89ab:cdef";
static const unsigned outer_port = 0xc000 | 0x09ab; // 89ab & 3fff
static const unsigned outer_label = 0xbcdef;

static void address_set(struct ip_addr *ret, const char *text)
{
	memset(ret, 0, sizeof(*ret));
	if (text == NULL)
		return;
	ret->family = strchr(text, ':') ? ADDR_V6 : ADDR_V4;
	CU_ASSERT_EQUAL_FATAL(
		inet_pton(ret->family == ADDR_V6 ? AF_INET6 : AF_INET, text, ret->bytes), 1);
}

static void setup(unsigned tunnel, unsigned outer)
{
	memset(&service, 0, sizeof(service));
	memset(&port, 0, sizeof(port));
	service.tunnel = (uint8_t)tunnel;
	service.gue_port_be = htons(6080);
	address_set(&service.source4, "10.255.0.0");
	service.source4_bits = 16;
	address_set(&service.source6, "2001:db8:ffff::");
	service.source6_bits = 48;
	address_set(&port.source4, "192.0.2.10");
	address_set(&port.source6, "2001:db8:1::10");
	address_set(&backend, outer == ADDR_V6 ? "2001:db8:b::1" : "10.0.0.11");
	port.mtu = 1600;
	port_out = 0;
}

// Parses in, encapsulates it, sets MAC addresses as the next-hop stage does.
static void run(struct packet *packet, unsigned headroom)
{
	packet_load(packet, &in, headroom, 0);
	parse_burst(packet, 1);
	CU_ASSERT_EQUAL(packet->verdict, PACKET_PENDING);
	packet->hash = HASH;
	packet->port_out = port_out;
	encap_burst(packet, &job, 1);
	if (packet->verdict == PACKET_PENDING)
		encap_set_macs(packet, backend_mac, balancer_mac);
}

struct shape {
	unsigned family;
	unsigned vlan_count;
	unsigned class;
	unsigned ttl;
	unsigned tcp_bytes;
};

static void write_link(struct frame *frame, const struct shape *shape, bool is_out)
{
	FRAME_START(frame, .destination = is_out ? MAC_BACKEND : MAC_BALANCER,
		.source = is_out ? MAC_BALANCER : MAC_ROUTER);
	if (shape->vlan_count == 2)
		FRAME_VLAN(frame, .type = 0x88a8, .id = 0x6007);
	if (shape->vlan_count >= 1)
		FRAME_VLAN(frame, .id = 0x2009);
}

static void write_inner(struct frame *frame, const struct shape *shape, unsigned ttl)
{
	if (shape->family == ADDR_V6)
		FRAME_IP6(frame, .hop_limit = ttl, .traffic_class = shape->class,
			.flow_label = 0x12345);
	else
		FRAME_IP4(
			frame, .ttl = ttl, .tos = shape->class, .id = 4711, .dont_fragment = true);
	FRAME_TCP(frame, .flags = FRAME_ACK);
	frame_fill(frame, shape->tcp_bytes, 1);
}

static void write_outer(
	struct frame *frame, const struct shape *shape, unsigned tunnel, unsigned outer)
{
	bool is_ip = tunnel == SNAPSHOT_TUNNEL_IPIP;

	if (outer == ADDR_V6)
		FRAME_IP6(frame, .source = outer_source6, .destination = "2001:db8:b::1",
			.traffic_class = shape->class, .flow_label = outer_label);
	else
		FRAME_IP4(frame, .source = outer_source4, .destination = "10.0.0.11",
			.tos = shape->class, .dont_fragment = true);
	if (is_ip)
		return;
	if (tunnel == SNAPSHOT_TUNNEL_GRE) {
		frame_gre(frame, shape->family == ADDR_V6 ? 0x86dd : 0x0800);
		return;
	}
	FRAME_UDP(frame, .source_port = outer_port, .destination_port = 6080, .no_checksum = true);
	frame_gue(frame, shape->family == ADDR_V6 ? 41 : 4);
}

static void check(const struct shape *shape, unsigned tunnel, unsigned outer)
{
	struct packet packet;
	unsigned overhead = encap_overhead(tunnel, outer);

	setup(tunnel, outer);
	write_link(&in, shape, false);
	write_inner(&in, shape, shape->ttl);
	frame_finish(&in);
	// Padding that must not travel through the tunnel.
	frame_fill(&in, 7, 0xee);

	write_link(&out, shape, true);
	if (tunnel != SNAPSHOT_TUNNEL_L2)
		write_outer(&out, shape, tunnel, outer);
	write_inner(&out, shape, shape->ttl - 1);
	frame_finish(&out);

	run(&packet, overhead);
	bool good = packet.verdict == PACKET_PENDING && packet_equals(&packet, &out);

	if (!good)
		printf("# tunnel %u, outer %u, inner %u, %u tags\n", tunnel, outer, shape->family,
			shape->vlan_count);
	CU_ASSERT(good);
	CU_ASSERT_EQUAL(packet.headroom, 0);
	CU_ASSERT_EQUAL(packet.tailroom, 7);
	CU_ASSERT_EQUAL(packet.l3_length, out.length - packet.l3_offset);
	if (tunnel != SNAPSHOT_TUNNEL_L2) {
		CU_ASSERT_EQUAL(packet.l4_offset, 0);
		CU_ASSERT_EQUAL(packet.family, outer);
	}
	packet_unload(&packet);
}

static void check_all(const struct shape *shape)
{
	struct shape each = *shape;

	for (unsigned tunnel = 0; tunnel < SNAPSHOT_TUNNEL_COUNT; tunnel++) {
		for (unsigned mix = 0; mix < 4; mix++) {
			each.family = mix & 1 ? ADDR_V6 : ADDR_V4;
			check(&each, tunnel, mix & 2 ? ADDR_V6 : ADDR_V4);
		}
	}
}

static void every_tunnel_in_every_family_mix(void)
{
	check_all(&(struct shape){.ttl = 64, .tcp_bytes = 100});
}

static void vlan_tags_are_kept_outside_the_tunnel(void)
{
	check_all(&(struct shape){.ttl = 64, .tcp_bytes = 100, .vlan_count = 1});
	check_all(&(struct shape){.ttl = 64, .tcp_bytes = 100, .vlan_count = 2});
}

// A frame with some tags leaves by a port: what tags must be on it, as frame_vlan() arguments, outermost first.
static void check_tags(const struct shape *shape, unsigned tunnel, unsigned tag)
{
	struct packet packet;
	unsigned overhead = encap_overhead(tunnel, ADDR_V4);
	unsigned tags_in = 4 * shape->vlan_count, tags_out = tag ? 4 : 0;

	write_link(&in, shape, false);
	write_inner(&in, shape, 64);
	frame_finish(&in);
	write_link(&out, &(struct shape){0}, true);
	if (tag != 0)
		FRAME_VLAN(&out, .id = tag);
	if (tunnel != SNAPSHOT_TUNNEL_L2)
		write_outer(&out, shape, tunnel, ADDR_V4);
	write_inner(&out, shape, 63);
	frame_finish(&out);

	unsigned needed = overhead + tags_out > tags_in ? overhead + tags_out - tags_in : 0;

	run(&packet, needed);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
	CU_ASSERT(packet_equals(&packet, &out));
	CU_ASSERT_EQUAL(packet.headroom + packet.length, needed + in.length);
	CU_ASSERT_EQUAL(packet.l3_offset, 14 + tags_out);
	packet_unload(&packet);
	if (needed == 0)
		return;
	run(&packet, needed - 1);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
	CU_ASSERT_EQUAL(packet.reason, DROP_no_headroom);
	CU_ASSERT(packet_equals(&packet, &in));
	packet_unload(&packet);
}

static void tags_end_with_their_link(void)
{
	for (unsigned i = 0; i < SNAPSHOT_TUNNEL_COUNT * 3; i++) {
		setup(i / 3, ADDR_V4);
		port_out = 1;
		check_tags(&(struct shape){.family = ADDR_V4, .vlan_count = i % 3}, i / 3, 0);
	}
}

static void port_of_a_vlan_tags_every_frame_and_keeps_its_priority(void)
{
	// Priorities of the frames that come: none, 0x2 of tag 0x2009, 0x6 of tag 0x6007 outside.
	static const unsigned priorities[3] = {0, 0x2000, 0x6000};

	for (unsigned i = 0; i < SNAPSHOT_TUNNEL_COUNT * 6; i++) {
		unsigned vlan_count = i / 2 % 3;

		setup(i / 6, ADDR_V4);
		port_out = i % 2;
		port.vlan = 4094;
		check_tags(&(struct shape){.family = ADDR_V4, .vlan_count = vlan_count}, i / 6,
			priorities[vlan_count] | 4094);
	}
}

static void shortest_and_odd_packets(void)
{
	check_all(&(struct shape){.ttl = 64, .tcp_bytes = 0});
	check_all(&(struct shape){.ttl = 64, .tcp_bytes = 1});
	check_all(&(struct shape){.ttl = 64, .tcp_bytes = 3});
}

static void all_dscp_and_ecn_values_are_copied_outwards(void)
{
	for (unsigned class = 0; class < 256; class ++)
		check_all(&(struct shape){.ttl = 64, .tcp_bytes = 2, .class = class});
}

static void inner_ttl_falls_by_one_for_every_value(void)
{
	for (unsigned ttl = 2; ttl < 256; ttl++)
		check_all(&(struct shape){.ttl = ttl, .tcp_bytes = 2});
}

static void inner_checksum_is_right_for_every_value(void)
{
	struct packet packet;

	setup(SNAPSHOT_TUNNEL_L2, ADDR_V4);
	// The identification walks the header's checksum through all values it can have.
	for (unsigned id = 0; id <= UINT16_MAX; id++) {
		for (unsigned ttl = 63; ttl <= 64; ttl++) {
			struct frame *frame = ttl == 64 ? &in : &out;

			FRAME_START(frame, .destination = ttl == 64 ? MAC_BALANCER : MAC_BACKEND,
				.source = ttl == 64 ? MAC_ROUTER : MAC_BALANCER);
			FRAME_IP4(frame, .ttl = ttl, .id = id);
			FRAME_UDP(frame, 0);
			frame_finish(frame);
		}
		run(&packet, 0);
		if (packet.verdict != PACKET_PENDING || !packet_equals(&packet, &out)) {
			printf("# identification %u\n", id);
			CU_FAIL("checksum");
		}
		packet_unload(&packet);
	}
}

static void outer_checksum_is_right_for_every_value(void)
{
	struct packet packet;

	setup(SNAPSHOT_TUNNEL_IPIP, ADDR_V4);
	// Sixteen host bits of entropy walk the outer checksum through its values.
	FRAME_START(&in, 0);
	FRAME_IP4(&in, 0);
	FRAME_UDP(&in, 0);
	frame_finish(&in);
	for (unsigned host = 0; host <= UINT16_MAX; host++) {
		char source[16];

		snprintf(source, sizeof(source), "10.255.%u.%u", host >> 8, host & 255);
		FRAME_START(&out, .destination = MAC_BACKEND, .source = MAC_BALANCER);
		FRAME_IP4(
			&out, .source = source, .destination = "10.0.0.11", .dont_fragment = true);
		FRAME_IP4(&out, .ttl = 63);
		FRAME_UDP(&out, 0);
		frame_finish(&out);
		packet_load(&packet, &in, 20, 0);
		parse_burst(&packet, 1);
		packet.hash = host;
		packet.port_out = 0;
		encap_burst(&packet, &job, 1);
		encap_set_macs(&packet, backend_mac, balancer_mac);
		if (!packet_equals(&packet, &out))
			CU_FAIL("checksum");
		packet_unload(&packet);
	}
}

// A packet of 1,000 bytes in each tunnel: the MTU that just lets it through, and one byte less.
static void mtu_is_exact_for_every_tunnel(void)
{
	static const unsigned overheads[SNAPSHOT_TUNNEL_COUNT][2] = {
		[SNAPSHOT_TUNNEL_IPIP] = {20, 40},
		[SNAPSHOT_TUNNEL_GUE] = {32, 52},
		[SNAPSHOT_TUNNEL_GRE] = {24, 44},
		[SNAPSHOT_TUNNEL_L2] = {0, 0},
	};

	for (unsigned i = 0; i < SNAPSHOT_TUNNEL_COUNT * 4; i++) {
		unsigned tunnel = i / 4, is_outer6 = i / 2 % 2, is_inner6 = i % 2;
		struct packet packet;

		for (unsigned less = 0; less < 2; less++) {
			setup(tunnel, is_outer6 ? ADDR_V6 : ADDR_V4);
			port.mtu = (uint16_t)(1000 + overheads[tunnel][is_outer6] - less);
			write_link(&in, &(struct shape){0}, false);
			write_inner(&in,
				&(struct shape){.family = is_inner6 ? ADDR_V6 : ADDR_V4,
					.tcp_bytes = is_inner6 ? 940 : 960},
				64);
			frame_finish(&in);
			run(&packet, 64);
			CU_ASSERT_EQUAL(encap_inner_mtu(&job), 1000 - less);
			CU_ASSERT_EQUAL(packet.verdict, less ? PACKET_DROP : PACKET_PENDING);
			if (less) {
				CU_ASSERT_EQUAL(packet.reason, DROP_too_big);
				CU_ASSERT(packet_equals(&packet, &in));
			}
			packet_unload(&packet);
		}
	}
}

static void expect_refusal(enum drop_reason reason, unsigned headroom)
{
	struct packet packet;

	run(&packet, headroom);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_DROP);
	CU_ASSERT_EQUAL(packet.reason, reason);
	CU_ASSERT(packet_equals(&packet, &in));
	packet_unload(&packet);
}

static void ttl_1_is_dropped_and_not_touched(void)
{
	for (unsigned family = ADDR_V4; family <= ADDR_V6; family += 2) {
		for (unsigned tunnel = 0; tunnel < SNAPSHOT_TUNNEL_COUNT; tunnel++) {
			setup(tunnel, ADDR_V4);
			write_link(&in, &(struct shape){0}, false);
			write_inner(&in, &(struct shape){.family = family}, 1);
			frame_finish(&in);
			expect_refusal(DROP_ttl_expired, 64);
		}
	}
}

static void frames_to_a_group_are_not_forwarded(void)
{
	static const char *const groups[] = {"ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"};

	for (unsigned i = 0; i < 2 * SNAPSHOT_TUNNEL_COUNT; i++) {
		setup(i / 2, ADDR_V4);
		FRAME_START(&in, .destination = groups[i % 2]);
		write_inner(&in, &(struct shape){.family = ADDR_V4}, 64);
		frame_finish(&in);
		expect_refusal(DROP_link_broadcast, 64);
	}
}

static void headroom_one_byte_short_is_dropped(void)
{
	for (unsigned outer = ADDR_V4; outer <= ADDR_V6; outer += 2) {
		for (unsigned tunnel = 0; tunnel < SNAPSHOT_TUNNEL_L2; tunnel++) {
			setup(tunnel, outer);
			write_link(&in, &(struct shape){0}, false);
			write_inner(&in, &(struct shape){.family = ADDR_V4}, 64);
			frame_finish(&in);
			expect_refusal(DROP_no_headroom, encap_overhead(tunnel, outer) - 1);
		}
	}
}

static void source_comes_from_service_then_port_then_nowhere(void)
{
	struct packet packet;

	for (unsigned outer = ADDR_V4; outer <= ADDR_V6; outer += 2) {
		setup(SNAPSHOT_TUNNEL_IPIP, outer);
		memset(&service.source4, 0, sizeof(service.source4));
		memset(&service.source6, 0, sizeof(service.source6));
		write_link(&in, &(struct shape){0}, false);
		write_inner(&in, &(struct shape){.family = ADDR_V4}, 64);
		frame_finish(&in);
		run(&packet, 64);
		CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
		// No entropy in the port's own address.
		const uint8_t *source = packet.data + 14 + (outer == ADDR_V6 ? 8 : 12);

		CU_ASSERT_EQUAL(
			memcmp(source, outer == ADDR_V6 ? port.source6.bytes : port.source4.bytes,
				outer == ADDR_V6 ? 16 : 4),
			0);
		packet_unload(&packet);
		memset(&port.source4, 0, sizeof(port.source4));
		memset(&port.source6, 0, sizeof(port.source6));
		expect_refusal(DROP_no_source_address, 64);
	}
}

static void prefix_lengths_bound_the_entropy(void)
{
	static const struct {
		unsigned bits4, bits6;
		const char *source4, *source6;
	} rows[] = {
		{32, 128, "10.255.0.0", "2001:db8:ffff::"},
		{31, 127, "10.255.0.1", "2001:db8:ffff::1"},
		{24, 120, "10.255.0.239", "2001:db8:ffff::ef"},
		{16, 112, "10.255.205.239", "2001:db8:ffff::cdef"},
		{8, 97, "10.171.205.239", "2001:db8:ffff::9ab:cdef"},
		{8, 64, "10.171.205.239", "2001:db8:ffff::89ab:cdef"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]) * 2; i++) {
		bool is6 = i % 2;
		struct packet packet;
		struct ip_addr expected;

		setup(SNAPSHOT_TUNNEL_IPIP, is6 ? ADDR_V6 : ADDR_V4);
		service.source4_bits = (uint8_t)rows[i / 2].bits4;
		service.source6_bits = (uint8_t)rows[i / 2].bits6;
		address_set(&expected, is6 ? rows[i / 2].source6 : rows[i / 2].source4);
		write_link(&in, &(struct shape){0}, false);
		write_inner(&in, &(struct shape){.family = ADDR_V4}, 64);
		frame_finish(&in);
		run(&packet, 64);
		CU_ASSERT_EQUAL(
			memcmp(packet.data + 14 + (is6 ? 8 : 12), expected.bytes, is6 ? 16 : 4), 0);
		packet_unload(&packet);
	}
}

static void flow_label_is_never_zero(void)
{
	struct packet packet;

	setup(SNAPSHOT_TUNNEL_IPIP, ADDR_V6);
	write_link(&in, &(struct shape){0}, false);
	write_inner(&in, &(struct shape){.family = ADDR_V4}, 64);
	frame_finish(&in);
	packet_load(&packet, &in, 64, 0);
	parse_burst(&packet, 1);
	packet.hash = UINT64_C(0xffffffff00100000);
	packet.port_out = 0;
	encap_burst(&packet, &job, 1);
	CU_ASSERT_EQUAL(packet.data[15] & 0xf, 0);
	CU_ASSERT_EQUAL(packet.data[16], 0);
	CU_ASSERT_EQUAL(packet.data[17], 1);
	packet_unload(&packet);
}

static void packets_with_a_verdict_are_left_alone(void)
{
	struct packet packets[3];
	struct encap_job jobs[3] = {[1] = job};

	setup(SNAPSHOT_TUNNEL_GUE, ADDR_V4);
	write_link(&in, &(struct shape){0}, false);
	write_inner(&in, &(struct shape){.family = ADDR_V4}, 64);
	frame_finish(&in);
	for (unsigned i = 0; i < 3; i++)
		packet_load(&packets[i], &in, 64, 0);
	parse_burst(packets, 3);
	packets[1].port_out = 0;
	packets[0].verdict = PACKET_PUNT;
	packets[2].verdict = PACKET_DROP;
	encap_burst(packets, jobs, 3);
	CU_ASSERT(packet_equals(&packets[0], &in));
	CU_ASSERT(packet_equals(&packets[2], &in));
	CU_ASSERT_EQUAL(packets[1].length, in.length + 32);
	for (unsigned i = 0; i < 3; i++)
		packet_unload(&packets[i]);
}

static const struct test_case cases[] = {
	SUITE_CASE(every_tunnel_in_every_family_mix),
	SUITE_CASE(vlan_tags_are_kept_outside_the_tunnel),
	SUITE_CASE(tags_end_with_their_link),
	SUITE_CASE(port_of_a_vlan_tags_every_frame_and_keeps_its_priority),
	SUITE_CASE(shortest_and_odd_packets),
	SUITE_CASE(all_dscp_and_ecn_values_are_copied_outwards),
	SUITE_CASE(inner_ttl_falls_by_one_for_every_value),
	SUITE_CASE(inner_checksum_is_right_for_every_value),
	SUITE_CASE(outer_checksum_is_right_for_every_value),
	SUITE_CASE(mtu_is_exact_for_every_tunnel),
	SUITE_CASE(ttl_1_is_dropped_and_not_touched),
	SUITE_CASE(frames_to_a_group_are_not_forwarded),
	SUITE_CASE(headroom_one_byte_short_is_dropped),
	SUITE_CASE(source_comes_from_service_then_port_then_nowhere),
	SUITE_CASE(prefix_lengths_bound_the_entropy),
	SUITE_CASE(flow_label_is_never_zero),
	SUITE_CASE(packets_with_a_verdict_are_left_alone),
};

int main(void)
{
	return SUITE_RUN("encap", cases);
}
