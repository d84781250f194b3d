// SPDX-License-Identifier: Apache-2.0
// Any frame that parses gets every answer that its flags allow; each reply must parse again, fit its buffer and be
// of the kind that was asked for. Input: two bytes that choose error, MTU and room, then the frame.
#include "dataplane/packet/answer.h"
#include "dataplane/packet/discovery.h"
#include "dataplane/packet/parse.h"

#include "tests/fuzz/packet_seal.h"
#include "tests/lib/packet_check.h"

#include <stdio.h>
#include <stdlib.h>

#define CONTROL_BYTES 2
#define FRAME_MAX     9000

// In the second byte: checksums are made right first.
#define SEAL 0x80

static void require(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void load(struct packet *packet, const uint8_t *data, size_t size, uint8_t control)
{
	static const uint8_t rooms[] = {0, 28, 48, 64};
	unsigned headroom = rooms[control & 3], tailroom = rooms[control >> 2 & 3];
	uint8_t *block = malloc(1 + headroom + size + tailroom);

	if (block == NULL)
		abort();
	memcpy(block + 1 + headroom, data, size);
	memset(packet, 0, sizeof(*packet));
	packet->handle = block;
	packet->data = block + 1 + headroom;
	packet->length = (uint32_t)size;
	packet->headroom = (uint16_t)headroom;
	packet->tailroom = (uint16_t)tailroom;
	packet->port_in = 5;
}

static uint32_t room(const struct packet *packet)
{
	return packet->headroom + packet->length + packet->tailroom;
}

// A reply goes from what was a destination, which the parser does not judge: its source may be a martian.
static void check_reply(struct packet *packet, uint32_t flags_wanted)
{
	require(packet->port_out == 5, "replies leave where the question came in");
	parse_burst(packet, 1);
	const char *rule = packet_broken_rule(packet);

	require(rule == NULL, rule);
	if (packet->verdict == PACKET_PENDING) {
		require((packet->flags & flags_wanted) == flags_wanted, "the reply is of its kind");
		return;
	}
	require(packet->verdict == PACKET_DROP, "replies are IP or ARP");
	require(packet->reason == DROP_ip_source_martian ||
			(packet->reason == DROP_icmp_inner && flags_wanted == PACKET_ICMP_ERROR) ||
			(packet->reason == DROP_arp_malformed && flags_wanted == PACKET_ARP),
		"replies are well-formed");
}

static void check_discovery(struct packet *packet)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	uint32_t kind = packet->flags & (PACKET_ARP | PACKET_ND);
	uint32_t before = room(packet);
	struct discovery question, answer;

	discovery_read(packet, &question);
	if (!question.is_question)
		return;
	answer_discovery(packet, mac);
	require(room(packet) == before, "no byte is lost");
	if (packet->verdict == PACKET_DROP) {
		require(packet->reason == DROP_no_buffer, "only room can be missing");
		return;
	}
	check_reply(packet, kind);
	if (packet->verdict != PACKET_PENDING)
		return;
	discovery_read(packet, &answer);
	require(!answer.is_question && answer.has_mac && memcmp(answer.mac, mac, 6) == 0,
		"the answer says our MAC address");
	require(memcmp(&answer.target, &question.target, sizeof(answer.target)) == 0,
		"the answer is about what was asked");
}

static void check_echo(struct packet *packet)
{
	uint32_t before = room(packet);

	answer_echo(packet);
	require(room(packet) == before, "no byte is lost");
	if (packet->verdict == PACKET_ANSWER)
		check_reply(packet, 0);
}

static void check_error(struct packet *packet, const uint8_t *control)
{
	uint32_t before = room(packet);
	bool sent = control[0] & 32 ? answer_too_big(packet, control[1] * 16u)
				    : answer_time_exceeded(packet);

	require(room(packet) == before, "no byte is lost");
	require(packet->verdict == (sent ? PACKET_DROP_REPLY : PACKET_DROP), "the verdict says it");
	if (!sent)
		return;
	require(packet->l3_length <= ANSWER_ERROR_BYTES6_MAX, "errors have a longest size");
	check_reply(packet, PACKET_ICMP_ERROR);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet packet;

	uint8_t frame[FRAME_MAX];

	if (size < CONTROL_BYTES || size > sizeof(frame))
		return 0;
	memcpy(frame, data, size);
	if (data[1] & SEAL)
		packet_seal(frame + CONTROL_BYTES, size - CONTROL_BYTES);
	load(&packet, frame + CONTROL_BYTES, size - CONTROL_BYTES, data[0]);
	parse_burst(&packet, 1);
	if (packet.verdict == PACKET_PENDING) {
		if (data[0] & 16 && packet.family != ADDR_NONE)
			check_error(&packet, data);
		else if (packet.flags & (PACKET_ARP | PACKET_ND))
			check_discovery(&packet);
		else if (packet.flags & PACKET_ECHO)
			check_echo(&packet);
	}
	free(packet.handle);
	return 0;
}
