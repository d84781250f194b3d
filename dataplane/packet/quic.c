// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse.h"

#include "dataplane/packet/wire.h"

#define QUIC_LONG_HEADER 0x80u
#define QUIC_FIXED_BIT   0x40u

// Bytes of a long header in front of the connection ID: first byte, version, length (RFC 8999 section 5.1).
#define QUIC_LONG_BYTES 6u

#define QUIC_VERSION_1 0x00000001u
#define QUIC_VERSION_2 0x6b3343cfu // RFC 9369

// Initial and 0-RTT carry an ID that the client chose. Version 2 numbers the types one higher
// (RFC 9000 section 17.2, RFC 9369 section 3.2). Version negotiation and unknown versions: not known.
static bool is_client_id(uint32_t version, unsigned first)
{
	unsigned type = first >> 4 & 3;

	if (version == QUIC_VERSION_2)
		return type == 1 || type == 2;
	return version == QUIC_VERSION_1 && (type == 0 || type == 1);
}

static bool find_long(struct packet *packet, const uint8_t *bytes, unsigned available)
{
	uint32_t version_be;

	if (available < QUIC_LONG_BYTES)
		return false;
	unsigned length = bytes[QUIC_LONG_BYTES - 1];

	if (length > PARSE_QUIC_ID_MAX || length > available - QUIC_LONG_BYTES)
		return false;
	memcpy(&version_be, bytes + 1, sizeof(version_be));
	if (is_client_id(be32toh(version_be), bytes[0]))
		packet->flags |= PACKET_QUIC_CLIENT_ID;
	packet->connection_id_offset = (uint16_t)(packet->payload_offset + QUIC_LONG_BYTES);
	packet->connection_id_length = (uint8_t)length;
	return true;
}

bool parse_quic_id(struct packet *packet)
{
	const struct wire_udp *udp = (const struct wire_udp *)(packet->data + packet->l4_offset);
	const uint8_t *bytes = packet->data + packet->payload_offset;
	unsigned available = packet->l3_offset + packet->l3_length - packet->payload_offset;
	unsigned claimed = be16toh(udp->length_be) - (unsigned)sizeof(*udp);

	if (available > claimed)
		available = claimed;
	// RFC 9000 section 17.2: packets without the fixed bit are none of version 1.
	if (available < 1 || !(bytes[0] & QUIC_FIXED_BIT))
		return false;
	if (bytes[0] & QUIC_LONG_HEADER) {
		if (!find_long(packet, bytes, available))
			return false;
	} else {
		unsigned length = available - 1;

		packet->connection_id_offset = (uint16_t)(packet->payload_offset + 1);
		packet->connection_id_length =
			(uint8_t)(length < PARSE_QUIC_ID_MAX ? length : PARSE_QUIC_ID_MAX);
	}
	packet->flags |= PACKET_QUIC_ID;
	return true;
}
