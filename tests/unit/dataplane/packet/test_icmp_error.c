// SPDX-License-Identifier: Apache-2.0
// The key of an ICMP error is the key that the quoted flow's own packets have: that is how it finds its backend.
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <netinet/in.h>
#include <stdio.h>

static struct frame frame;

// What stands between the quoted IP header and its ports.
enum between {
	NOTHING,
	OPTIONS,
	FIRST_FRAGMENT,
	BETWEEN_COUNT,
};

struct error {
	unsigned type, code;
	enum between between;
	unsigned protocol;
	unsigned quoted_l4; // bytes quoted of TCP or UDP
	bool is_v6;
};

static struct flow_key parse(struct packet *packet)
{
	frame_finish(&frame);
	packet_load(packet, &frame, 0, 0);
	parse_burst(packet, 1);
	CU_ASSERT_EQUAL(packet->verdict, PACKET_PENDING);
	packet_unload(packet);
	return packet->key;
}

static struct flow_key key_of_flow(const struct error *error)
{
	struct packet packet;

	FRAME_START(&frame, 0);
	if (error->is_v6)
		FRAME_IP6(&frame, 0);
	else
		FRAME_IP4(&frame, 0);
	if (error->protocol == IPPROTO_TCP)
		FRAME_TCP(&frame, .source_port = 51234, .destination_port = 443);
	else
		FRAME_UDP(&frame, .source_port = 51234, .destination_port = 443);
	return parse(&packet);
}

static void write_quote(const struct error *error)
{
	uint8_t l4[64] = {443 >> 8, 443 & 255, 51234 >> 8, 51234 & 255};

	if (error->is_v6) {
		FRAME_IP6(&frame, .source = "2001:db8:5::10", .destination = "2001:db8:c::7",
			.hop_limit = 1);
		if (error->between == OPTIONS)
			FRAME_EXTENSION(&frame, .kind = 60, .units = 1);
		else if (error->between == FIRST_FRAGMENT)
			FRAME_FRAGMENT6(&frame, .id = 1, .more = true);
	} else {
		FRAME_IP4(&frame, .source = "203.0.113.10", .destination = "198.51.100.7", .ttl = 1,
			.options_bytes = error->between == OPTIONS ? 12 : 0,
			.more_fragments = error->between == FIRST_FRAGMENT);
	}
	frame.bytes[frame.protocol_offset] = (uint8_t)error->protocol;
	frame_payload(&frame, l4, error->quoted_l4);
}

static void check(const struct error *error)
{
	struct packet packet;
	struct flow_key expected = key_of_flow(error);

	FRAME_START(&frame, 0);
	if (error->is_v6) {
		FRAME_IP6(&frame, .source = "2001:db8:99::1");
		FRAME_ICMP6(&frame, .type = error->type, .code = error->code, .word1 = 1400);
	} else {
		FRAME_IP4(&frame, .source = "192.0.2.99");
		FRAME_ICMP4(&frame, .type = error->type, .code = error->code, .word1 = 1400);
	}
	write_quote(error);
	struct flow_key key = parse(&packet);

	if (memcmp(&key, &expected, sizeof(key)) != 0 || !(packet.flags & PACKET_ICMP_ERROR)) {
		printf("# type %u, code %u, between %u, protocol %u, IPv6 %u\n", error->type,
			error->code, error->between, error->protocol, error->is_v6);
		CU_FAIL("key");
	}
}

static void check_all_types(struct error error)
{
	static const unsigned types[2][4] = {{3, 11, 12, 3}, {1, 2, 3, 4}};

	for (unsigned i = 0; i < 4; i++) {
		for (unsigned code = 0; code <= 15; code++) {
			error.type = types[error.is_v6][i];
			error.code = code;
			check(&error);
		}
	}
}

static void errors_have_the_key_of_the_flow(void)
{
	for (unsigned is_v6 = 0; is_v6 < 2; is_v6++) {
		for (unsigned between = 0; between < BETWEEN_COUNT; between++) {
			check_all_types((struct error){.between = between,
				.protocol = IPPROTO_TCP,
				.quoted_l4 = 40,
				.is_v6 = is_v6});
			check_all_types((struct error){.between = between,
				.protocol = IPPROTO_UDP,
				.quoted_l4 = 40,
				.is_v6 = is_v6});
		}
	}
}

static void eight_quoted_bytes_are_enough(void)
{
	for (unsigned is_v6 = 0; is_v6 < 2; is_v6++) {
		for (unsigned between = 0; between < BETWEEN_COUNT; between++) {
			check(&(struct error){.type = is_v6 ? 2 : 3,
				.code = is_v6 ? 0 : 4,
				.between = between,
				.protocol = IPPROTO_TCP,
				.quoted_l4 = 8,
				.is_v6 = is_v6});
		}
	}
}

static void quotes_of_other_protocols_have_no_ports(void)
{
	struct packet packet;

	FRAME_START(&frame, 0);
	FRAME_IP4(&frame, .source = "192.0.2.99");
	FRAME_ICMP4(&frame, .type = 3, .code = 2);
	FRAME_IP4(&frame, .source = "203.0.113.10", .destination = "198.51.100.7",
		.protocol_override = 47);
	frame_fill(&frame, 8, 1);
	struct flow_key key = parse(&packet);

	CU_ASSERT_EQUAL(key.protocol, 47);
	CU_ASSERT_EQUAL(key.source_port_be, 0);
	CU_ASSERT_EQUAL(key.destination_port_be, 0);
}

static const struct test_case cases[] = {
	SUITE_CASE(errors_have_the_key_of_the_flow),
	SUITE_CASE(eight_quoted_bytes_are_enough),
	SUITE_CASE(quotes_of_other_protocols_have_no_ports),
};

int main(void)
{
	return SUITE_RUN("icmp error", cases);
}
