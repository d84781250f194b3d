// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/discovery.h"
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <stdlib.h>

static struct frame frame;

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t router_mac[6] = {2, 0, 0, 0, 0, 2};

static struct ip_addr address(const char *text)
{
	struct ip_addr ret = {.family = strchr(text, ':') ? ADDR_V6 : ADDR_V4};

	CU_ASSERT_EQUAL(inet_pton(ret.family == ADDR_V6 ? AF_INET6 : AF_INET, text, ret.bytes), 1);
	return ret;
}

static bool address_is(const struct ip_addr *addr, const char *text)
{
	struct ip_addr expected = address(text);

	return memcmp(addr, &expected, sizeof(expected)) == 0;
}

static struct discovery read_frame(void)
{
	struct packet packet;
	struct discovery ret;

	frame_finish(&frame);
	packet_load(&packet, &frame, 0, 0);
	parse_burst(&packet, 1);
	CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
	discovery_read(&packet, &ret);
	packet_unload(&packet);
	return ret;
}

static void arp_messages_are_read(void)
{
	FRAME_START(&frame, 0);
	FRAME_ARP(&frame, 0);
	struct discovery request = read_frame();

	CU_ASSERT(request.is_question && request.has_mac && !request.overrides);
	CU_ASSERT(address_is(&request.sender, "192.0.2.1"));
	CU_ASSERT(address_is(&request.target, "192.0.2.10"));
	CU_ASSERT_EQUAL(memcmp(request.mac, router_mac, 6), 0);

	FRAME_START(&frame, 0);
	FRAME_ARP(&frame, .operation = 2, .target_mac = MAC_BALANCER);
	struct discovery reply = read_frame();

	CU_ASSERT(!reply.is_question && reply.has_mac && reply.overrides && reply.is_solicited);
	CU_ASSERT(address_is(&reply.target, "192.0.2.1"));
	CU_ASSERT_EQUAL(memcmp(reply.mac, router_mac, 6), 0);

	FRAME_START(&frame, 0);
	FRAME_ARP(&frame, .sender = "0.0.0.0");
	struct discovery probe = read_frame();

	CU_ASSERT(probe.is_question);
	CU_ASSERT_EQUAL(probe.sender.family, ADDR_NONE);
	CU_ASSERT(address_is(&probe.target, "192.0.2.10"));

	FRAME_START(&frame, 0);
	FRAME_ARP(&frame, .target = "192.0.2.1");
	struct discovery gratuitous = read_frame();

	CU_ASSERT(!gratuitous.is_question && gratuitous.overrides && !gratuitous.is_solicited);
	CU_ASSERT(address_is(&gratuitous.target, "192.0.2.1"));

	// One bit in any byte makes an address.
	static const char *const senders[] = {
		"1.0.0.0", "10.0.0.0", "9.9.0.0", "9.0.9.0", "128.0.0.1"};

	for (unsigned i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
		FRAME_START(&frame, 0);
		FRAME_ARP(&frame, .sender = senders[i]);
		struct discovery seen = read_frame();

		CU_ASSERT(address_is(&seen.sender, senders[i]));
	}
}

static struct discovery read_nd(
	const char *source, const char *destination, const struct frame_nd *nd)
{
	FRAME_START(&frame, 0);
	FRAME_IP6(&frame, .source = source, .destination = destination, .hop_limit = 255);
	frame_nd(&frame, nd);
	return read_frame();
}

static void nd_messages_are_read(void)
{
	struct discovery seen =
		read_nd("2001:db8:1::1", "ff02::1:ff00:10", &(struct frame_nd){.option = 1});

	CU_ASSERT(seen.is_question && seen.has_mac);
	CU_ASSERT(address_is(&seen.sender, "2001:db8:1::1"));
	CU_ASSERT(address_is(&seen.target, "2001:db8:1::10"));
	CU_ASSERT_EQUAL(memcmp(seen.mac, router_mac, 6), 0);

	seen = read_nd("::", "ff02::1:ff00:10", &(struct frame_nd){0});
	CU_ASSERT(seen.is_question && !seen.has_mac);
	CU_ASSERT_EQUAL(seen.sender.family, ADDR_NONE);

	seen = read_nd("2001:db8:1::1", "2001:db8:1::10",
		&(struct frame_nd){
			.type = 136, .flags = 0x60000000, .target = "2001:db8:1::1", .option = 2});
	CU_ASSERT(!seen.is_question && seen.has_mac && seen.is_solicited && seen.overrides);
	CU_ASSERT(address_is(&seen.target, "2001:db8:1::1"));

	seen = read_nd("2001:db8:1::1", "ff02::1",
		&(struct frame_nd){.type = 136, .target = "2001:db8:1::1"});
	CU_ASSERT(!seen.is_question && !seen.has_mac && !seen.is_solicited && !seen.overrides);
}

static void options_of_the_wrong_kind_and_group_macs_do_not_count(void)
{
	struct discovery seen =
		read_nd("2001:db8:1::1", "2001:db8:1::10", &(struct frame_nd){.option = 2});

	CU_ASSERT(!seen.has_mac);
	seen = read_nd("2001:db8:1::1", "2001:db8:1::10",
		&(struct frame_nd){.option = 1, .option_mac = "33:33:00:00:00:01"});
	CU_ASSERT(!seen.has_mac);
}

static void load_frame(struct packet *packet, const uint8_t *bytes, unsigned length)
{
	static struct frame copy;

	copy.length = length;
	memcpy(copy.bytes, bytes, length);
	packet_load(packet, &copy, 0, 0);
}

static void expect_written(const uint8_t *bytes, unsigned length)
{
	struct packet packet;
	static const uint8_t zero[60];

	frame_finish(&frame);
	frame.layer_count = 0;
	if (frame.length < 60)
		frame_payload(&frame, zero, 60 - frame.length);
	load_frame(&packet, bytes, length);
	CU_ASSERT(packet_equals(&packet, &frame));
	packet_unload(&packet);
}

static void arp_questions_are_written(void)
{
	struct discovery_message message = {
		.sender = address("192.0.2.10"),
		.target = address("192.0.2.1"),
		.mac = {2, 0, 0, 0, 0, 1},
	};
	uint8_t bytes[DISCOVERY_FRAME_MAX];

	FRAME_START(&frame, .destination = "ff:ff:ff:ff:ff:ff", .source = MAC_BALANCER);
	FRAME_ARP(
		&frame, .sender_mac = MAC_BALANCER, .sender = "192.0.2.10", .target = "192.0.2.1");
	expect_written(bytes, discovery_write_question(bytes, sizeof(bytes), &message));

	message.neighbour_mac = router_mac;
	FRAME_START(&frame, .destination = MAC_ROUTER, .source = MAC_BALANCER);
	FRAME_ARP(
		&frame, .sender_mac = MAC_BALANCER, .sender = "192.0.2.10", .target = "192.0.2.1");
	expect_written(bytes, discovery_write_question(bytes, sizeof(bytes), &message));
}

static void solicitations_are_written(void)
{
	struct discovery_message message = {
		.sender = address("2001:db8:1::10"),
		.target = address("2001:db8:1::aabb:ccdd"),
		.mac = {2, 0, 0, 0, 0, 1},
	};
	uint8_t bytes[DISCOVERY_FRAME_MAX];

	FRAME_START(&frame, .destination = "33:33:ff:bb:cc:dd", .source = MAC_BALANCER);
	FRAME_IP6(&frame, .source = "2001:db8:1::10", .destination = "ff02::1:ffbb:ccdd",
		.hop_limit = 255);
	FRAME_ND(
		&frame, .target = "2001:db8:1::aabb:ccdd", .option = 1, .option_mac = MAC_BALANCER);
	expect_written(bytes, discovery_write_question(bytes, sizeof(bytes), &message));

	message.neighbour_mac = router_mac;
	FRAME_START(&frame, .destination = MAC_ROUTER, .source = MAC_BALANCER);
	FRAME_IP6(&frame, .source = "2001:db8:1::10", .destination = "2001:db8:1::aabb:ccdd",
		.hop_limit = 255);
	FRAME_ND(
		&frame, .target = "2001:db8:1::aabb:ccdd", .option = 1, .option_mac = MAC_BALANCER);
	expect_written(bytes, discovery_write_question(bytes, sizeof(bytes), &message));
}

static void messages_of_a_tagged_link_have_its_tag(void)
{
	static const char *const ours[] = {"192.0.2.10", "2001:db8:1::10"};
	static const char *const theirs[] = {"192.0.2.1", "2001:db8:1::1"};

	for (unsigned i = 0; i < 2; i++) {
		struct discovery_message message = {.sender = address(ours[i]),
			.target = address(theirs[i]),
			.mac = {2, 0, 0, 0, 0, 1},
			.vlan = 4094};
		uint8_t bytes[DISCOVERY_FRAME_MAX];
		unsigned length = discovery_write_question(bytes, sizeof(bytes), &message);

		FRAME_START(&frame, .destination = i ? "33:33:ff:00:00:01" : "ff:ff:ff:ff:ff:ff",
			.source = MAC_BALANCER);
		FRAME_VLAN(&frame, .id = 4094);
		if (i == 0) {
			FRAME_ARP(&frame, .sender_mac = MAC_BALANCER, .sender = ours[0],
				.target = theirs[0]);
		} else {
			FRAME_IP6(&frame, .source = ours[1], .destination = "ff02::1:ff00:1",
				.hop_limit = 255);
			FRAME_ND(&frame, .target = theirs[1], .option = 1,
				.option_mac = MAC_BALANCER);
		}
		expect_written(bytes, length);
	}
}

static void announcements_are_written_and_read_as_such(void)
{
	static const char *const ours[] = {"192.0.2.10", "2001:db8:1::10"};

	for (unsigned i = 0; i < 2; i++) {
		struct discovery_message message = {
			.sender = address(ours[i]), .mac = {2, 0, 0, 0, 0, 1}};
		uint8_t bytes[DISCOVERY_FRAME_MAX];
		unsigned length = discovery_write_announcement(bytes, sizeof(bytes), &message);
		struct packet packet;
		struct discovery seen;

		load_frame(&packet, bytes, length);
		parse_burst(&packet, 1);
		CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
		discovery_read(&packet, &seen);
		CU_ASSERT(!seen.is_question && seen.overrides && seen.has_mac);
		CU_ASSERT(address_is(&seen.target, ours[i]));
		CU_ASSERT_EQUAL(memcmp(seen.mac, our_mac, 6), 0);
		packet_unload(&packet);
	}
}

static void membership_of_the_solicited_node_group_is_reported(void)
{
	// Reserved, one record; to exclude mode, no sources; the group.
	static const uint8_t record[] = {
		4, 0, 0, 0, 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xbb, 0xcc, 0xdd};

	for (unsigned vlan = 0; vlan <= 100; vlan += 100) {
		struct discovery_message message = {.sender = address("2001:db8:1::aabb:ccdd"),
			.mac = {2, 0, 0, 0, 0, 1},
			.vlan = (uint16_t)vlan};
		uint8_t bytes[DISCOVERY_FRAME_MAX];
		unsigned length = discovery_write_membership(bytes, sizeof(bytes), &message);

		FRAME_START(&frame, .destination = "33:33:00:00:00:16", .source = MAC_BALANCER);
		if (vlan != 0)
			FRAME_VLAN(&frame, .id = vlan);
		FRAME_IP6(&frame, .source = "::", .destination = "ff02::16", .hop_limit = 1);
		FRAME_EXTENSION(&frame, .kind = 0, .units = 0, .body = {5, 2, 0, 0, 1, 0});
		FRAME_ICMP6(&frame, .type = 143, .word1 = 1);
		frame_payload(&frame, record, sizeof(record));
		expect_written(bytes, length);
		CU_ASSERT_EQUAL(discovery_write_membership(bytes, length, &message), length);
		CU_ASSERT_EQUAL(discovery_write_membership(bytes, length - 1, &message), 0);
		message.sender = address("192.0.2.10");
		CU_ASSERT_EQUAL(discovery_write_membership(bytes, sizeof(bytes), &message), 0);
	}
}

static void what_cannot_be_written_is_not(void)
{
	struct discovery_message message = {
		.sender = address("192.0.2.10"), .target = address("192.0.2.1")};
	uint8_t *bytes = malloc(59);

	CU_ASSERT_EQUAL(discovery_write_question(bytes, 59, &message), 0);
	CU_ASSERT_EQUAL(discovery_write_announcement(bytes, 59, &message), 0);
	free(bytes);
	bytes = malloc(60);
	CU_ASSERT_EQUAL(discovery_write_question(bytes, 60, &message), 60);
	free(bytes);
	bytes = malloc(DISCOVERY_FRAME_MAX);
	message.target = address("2001:db8::1");
	CU_ASSERT_EQUAL(discovery_write_question(bytes, DISCOVERY_FRAME_MAX, &message), 0);
	memset(&message, 0, sizeof(message));
	CU_ASSERT_EQUAL(discovery_write_question(bytes, DISCOVERY_FRAME_MAX, &message), 0);
	CU_ASSERT_EQUAL(discovery_write_announcement(bytes, DISCOVERY_FRAME_MAX, &message), 0);
	free(bytes);
}

static const struct test_case cases[] = {
	SUITE_CASE(arp_messages_are_read),
	SUITE_CASE(nd_messages_are_read),
	SUITE_CASE(options_of_the_wrong_kind_and_group_macs_do_not_count),
	SUITE_CASE(arp_questions_are_written),
	SUITE_CASE(solicitations_are_written),
	SUITE_CASE(messages_of_a_tagged_link_have_its_tag),
	SUITE_CASE(announcements_are_written_and_read_as_such),
	SUITE_CASE(membership_of_the_solicited_node_group_is_reported),
	SUITE_CASE(what_cannot_be_written_is_not),
};

int main(void)
{
	return SUITE_RUN("discovery", cases);
}
