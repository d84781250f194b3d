// SPDX-License-Identifier: Apache-2.0
// Any frame: parsed, looked at for a connection ID, and if it passed, encapsulated; what comes out must parse again
// and hold what went in. Input: two bytes that choose tunnel, families and headroom, then the frame.
#include "dataplane/packet/encap.h"
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

static void load(struct packet *packet, const uint8_t *data, size_t size, unsigned headroom)
{
	uint8_t *block = malloc(headroom + size + 1);

	if (block == NULL)
		abort();
	// The one byte more is in front, where only an address in the middle of nowhere would look.
	memcpy(block + 1 + headroom, data, size);
	memset(packet, 0, sizeof(*packet));
	packet->handle = block;
	packet->data = block + 1 + headroom;
	packet->length = (uint32_t)size;
	packet->headroom = (uint16_t)headroom;
}

static void check_quic(struct packet *packet)
{
	unsigned end = packet->l3_offset + packet->l3_length;

	if (packet->key.protocol != WIRE_PROTO_UDP ||
		packet->flags & (PACKET_FRAGMENT_LATER | PACKET_ICMP_ERROR))
		return;
	if (!parse_quic_id(packet))
		return;
	require(packet->connection_id_offset + packet->connection_id_length <= end,
		"a connection ID lies inside the packet");
	require(packet->connection_id_length <= PARSE_QUIC_ID_MAX, "an ID has at most 20 bytes");
}

// Compares what is inside the tunnel with the packet that came, but for TTL and header checksum.
static void check_inside(
	const struct packet *packet, const uint8_t *original, unsigned length, unsigned family)
{
	const uint8_t *inner = packet->data + packet->length - length;
	unsigned ttl = family == ADDR_V6 ? 7 : 8;

	for (unsigned i = 0; i < length; i++) {
		if (i == ttl)
			require(inner[i] == original[i] - 1, "the inner TTL falls by one");
		else if (family == ADDR_V6 || (i != 10 && i != 11))
			require(inner[i] == original[i], "the inner packet is not changed");
	}
}

static void check_encap(struct packet *packet, const uint8_t *frame, const uint8_t *control)
{
	// A prefix of 8 bits or more, so that no entropy makes a martian of 10.255.0.0.
	struct snapshot_service service = {.tunnel = control[0] & 3,
		.gue_port_be = 0xc017,
		.source4 = {.family = ADDR_V4, .bytes = {10, 255}},
		.source4_bits = (uint8_t)(8 + (control[1] & 31))};
	struct encap_port port = {.source4 = {.family = ADDR_V4, .bytes = {192, 0, 2, 10}},
		.source6 = {.family = control[0] & 8 ? ADDR_V6 : ADDR_NONE, .bytes = {0x20, 1, 13}},
		.mtu = control[0] & 16 ? 100 : 65535};
	struct ip_addr backend = {
		.family = control[0] & 4 ? ADDR_V6 : ADDR_V4, .bytes = {10, 0, 0, 11}};
	struct encap_job job = {&service, &backend, &port};
	unsigned offset = packet->l3_offset, length = packet->l3_length, family = packet->family;
	uint32_t room = packet->headroom + packet->length + packet->tailroom;

	packet->hash = (uint64_t)control[1] * UINT64_C(0x9e3779b97f4a7c15);
	encap_burst(packet, &job, 1);
	require(packet->headroom + packet->length + packet->tailroom == room, "no byte is lost");
	if (packet->verdict == PACKET_DROP) {
		require(memcmp(packet->data, frame, packet->length) == 0,
			"a refused packet is as it came");
		return;
	}
	require(packet->verdict == PACKET_PENDING, "encapsulation ends in pending or drop");
	check_inside(packet, frame + offset, length, family);

	static const uint8_t mac[6] = {2};

	encap_set_macs(packet, mac, mac);
	parse_burst(packet, 1);
	if (service.tunnel == SNAPSHOT_TUNNEL_L2)
		return;
	require(packet->verdict == PACKET_PENDING, "the outer packet parses");
	require(packet->l3_offset + packet->l3_length == packet->length, "no padding is left");
	require(packet->l3_length == length + encap_overhead(service.tunnel, backend.family),
		"the overhead is what encap_overhead() says");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t headrooms[] = {0, 20, 32, 64};
	uint8_t frame[FRAME_MAX];
	struct packet packet;

	if (size < CONTROL_BYTES || size > sizeof(frame))
		return 0;
	memcpy(frame, data, size);
	if (data[1] & SEAL)
		packet_seal(frame + CONTROL_BYTES, size - CONTROL_BYTES);
	load(&packet, frame + CONTROL_BYTES, size - CONTROL_BYTES, headrooms[data[0] >> 6]);
	parse_burst(&packet, 1);
	const char *rule = packet_broken_rule(&packet);

	require(rule == NULL, rule);
	require(memcmp(packet.data, frame + CONTROL_BYTES, packet.length) == 0,
		"parsing changes no byte");
	if (packet.verdict == PACKET_PENDING && packet.family != ADDR_NONE) {
		check_quic(&packet);
		check_encap(&packet, frame + CONTROL_BYTES, data);
	}
	free(packet.handle);
	return 0;
}
