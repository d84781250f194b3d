// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <stdio.h>

static struct frame frame;

// A QUIC datagram over one of the families. Returns what parse_quic_id() did; the ID is read from packet.
static bool find(struct packet *packet, const void *datagram, unsigned length, bool is_v6)
{
	FRAME_START(&frame, 0);
	if (is_v6)
		FRAME_IP6(&frame, 0);
	else
		FRAME_IP4(&frame, 0);
	FRAME_UDP(&frame, 0);
	frame_payload(&frame, datagram, length);
	frame_finish(&frame);
	packet_load(packet, &frame, 0, 0);
	parse_burst(packet, 1);
	CU_ASSERT_EQUAL(packet->verdict, PACKET_PENDING);
	CU_ASSERT(!(packet->flags & PACKET_QUIC_ID));
	return parse_quic_id(packet);
}

static unsigned long_header(uint8_t *datagram, uint8_t first, uint32_t version, unsigned id_length)
{
	datagram[0] = first;
	for (unsigned i = 0; i < 4; i++)
		datagram[1 + i] = (uint8_t)(version >> (24 - 8 * i));
	datagram[5] = (uint8_t)id_length;
	for (unsigned i = 0; i < id_length; i++)
		datagram[6 + i] = (uint8_t)(0xa0 + i);
	return 6 + id_length;
}

static bool id_is(const struct packet *packet, const void *bytes, unsigned length)
{
	return packet->flags & PACKET_QUIC_ID && packet->connection_id_length == length &&
		memcmp(packet->data + packet->connection_id_offset, bytes, length) == 0;
}

static void long_headers_give_exactly_the_id(void)
{
	uint8_t datagram[64];
	struct packet packet;

	for (unsigned id_length = 0; id_length <= 20; id_length++) {
		for (unsigned is_v6 = 0; is_v6 < 2; is_v6++) {
			unsigned length = long_header(datagram, 0xe0, 1, id_length);

			CU_ASSERT(find(&packet, datagram, length, is_v6));
			CU_ASSERT(id_is(&packet, datagram + 6, id_length));
			packet_unload(&packet);
		}
	}
}

static void ids_that_the_client_chose_are_marked(void)
{
	static const struct {
		uint32_t version;
		uint8_t first;
		bool is_client_id;
	} rows[] = {
		{1, 0xc0, true},           // Initial
		{1, 0xd0, true},           // 0-RTT
		{1, 0xe0, false},          // Handshake
		{1, 0xf0, false},          // Retry
		{0x6b3343cf, 0xd0, true},  // version 2: Initial
		{0x6b3343cf, 0xe0, true},  // 0-RTT
		{0x6b3343cf, 0xf0, false}, // Handshake
		{0x6b3343cf, 0xc0, false}, // Retry
		{0, 0xc0, false},          // version negotiation
		{0x1a2a3a4a, 0xc0, false}, // unknown
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t datagram[64];
		struct packet packet;
		unsigned length = long_header(datagram, rows[i].first, rows[i].version, 8);

		CU_ASSERT(find(&packet, datagram, length, false));
		CU_ASSERT_EQUAL(!!(packet.flags & PACKET_QUIC_CLIENT_ID), rows[i].is_client_id);
		packet_unload(&packet);
	}
}

static void short_headers_give_what_there_is(void)
{
	uint8_t datagram[64] = {0x43, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct packet packet;

	for (unsigned length = 1; length <= sizeof(datagram); length++) {
		CU_ASSERT(find(&packet, datagram, length, length & 1));
		CU_ASSERT(id_is(&packet, datagram + 1, length - 1 < 20 ? length - 1 : 20));
		CU_ASSERT(!(packet.flags & PACKET_QUIC_CLIENT_ID));
		packet_unload(&packet);
	}
}

static void refuse(const void *datagram, unsigned length)
{
	struct packet packet;

	CU_ASSERT(!find(&packet, datagram, length, false));
	CU_ASSERT(!(packet.flags & (PACKET_QUIC_ID | PACKET_QUIC_CLIENT_ID)));
	CU_ASSERT_EQUAL(packet.connection_id_length, 0);
	packet_unload(&packet);
}

static void what_is_no_quic_has_no_id(void)
{
	uint8_t datagram[64] = {0};

	refuse(datagram, 0);
	refuse(datagram, sizeof(datagram)); // fixed bit clear
	datagram[0] = 0x80;
	refuse(datagram, sizeof(datagram)); // fixed bit clear in a long header
	long_header(datagram, 0xc0, 1, 21);
	refuse(datagram, sizeof(datagram)); // longer than version 1 allows
}

static void cut_long_headers_have_no_id(void)
{
	uint8_t datagram[64];
	unsigned whole = long_header(datagram, 0xc0, 1, 20);

	for (unsigned length = 0; length < whole; length++)
		refuse(datagram, length);
}

static void bytes_behind_the_udp_length_are_not_read(void)
{
	uint8_t datagram[26];
	struct packet packet;

	long_header(datagram, 0xc0, 1, 20);
	FRAME_START(&frame, 0);
	FRAME_IP4(&frame, 0);
	FRAME_UDP(&frame, .length_override = 8 + 25);
	frame_payload(&frame, datagram, sizeof(datagram));
	frame_finish(&frame);
	packet_load(&packet, &frame, 0, 0);
	parse_burst(&packet, 1);
	CU_ASSERT(!parse_quic_id(&packet));
	packet_unload(&packet);
}

static void id_cut_by_the_end_of_a_first_fragment_is_not_read(void)
{
	uint8_t datagram[24];
	struct packet packet;

	// The UDP length reaches beyond the fragment; the ID would, too.
	long_header(datagram, 0xc0, 1, 18);
	for (unsigned length = 24; length >= 8; length -= 8) {
		FRAME_START(&frame, 0);
		FRAME_IP4(&frame, .more_fragments = true);
		FRAME_UDP(&frame, .length_override = 1200);
		frame_payload(&frame, datagram, length);
		frame_finish(&frame);
		packet_load(&packet, &frame, 0, 0);
		parse_burst(&packet, 1);
		CU_ASSERT_EQUAL(packet.verdict, PACKET_PENDING);
		CU_ASSERT_EQUAL(parse_quic_id(&packet), length == 24);
		packet_unload(&packet);
	}
}

static const struct test_case cases[] = {
	SUITE_CASE(long_headers_give_exactly_the_id),
	SUITE_CASE(ids_that_the_client_chose_are_marked),
	SUITE_CASE(short_headers_give_what_there_is),
	SUITE_CASE(what_is_no_quic_has_no_id),
	SUITE_CASE(cut_long_headers_have_no_id),
	SUITE_CASE(id_cut_by_the_end_of_a_first_fragment_is_not_read),
	SUITE_CASE(bytes_behind_the_udp_length_are_not_read),
};

int main(void)
{
	return SUITE_RUN("quic", cases);
}
