// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/answer.h"

#include "dataplane/packet/discovery.h"
#include "dataplane/packet/header.h"

// DSCP of ICMP errors: internetwork control (RFC 1812 section 4.3.2.5).
#define ANSWER_ERROR_CLASS 0xc0u

static void drop(struct packet *packet, enum drop_reason reason)
{
	packet->verdict = PACKET_DROP;
	packet->reason = (uint8_t)reason;
}

// Sets how long the frame is, from its IP header on, and pads it to what Ethernet wants where there is room.
static void set_length(struct packet *packet, unsigned l3_length)
{
	uint32_t end = packet->length + packet->tailroom;
	uint32_t length = packet->l3_offset + l3_length;
	uint32_t padded = length < WIRE_ETHERNET_MIN ? WIRE_ETHERNET_MIN : length;

	if (padded <= end && padded > length) {
		memset(packet->data + length, 0, padded - length);
		length = padded;
	}
	packet->length = length;
	packet->tailroom = (uint16_t)(end - length);
	packet->l3_length = (uint16_t)l3_length;
}

// Moves the Ethernet header so that l3 follows it, turned around: back to where the frame came from.
static void turn_link(struct packet *packet, uint8_t *l3)
{
	uint8_t link[sizeof(struct wire_ethernet) + 2 * sizeof(struct wire_vlan)];
	uint8_t *data = l3 - packet->l3_offset;
	uint32_t moved = (uint32_t)(packet->data + packet->length - data);

	memcpy(link, packet->data, packet->l3_offset);
	memcpy(data, link + WIRE_MAC_BYTES, WIRE_MAC_BYTES);
	memcpy(data + WIRE_MAC_BYTES, link, WIRE_MAC_BYTES);
	memcpy(data + 12, link + 12, packet->l3_offset - 12u);
	packet->headroom = (uint16_t)(packet->headroom + (data - packet->data));
	packet->data = data;
	packet->length = moved;
}

// A frame that was sent to one station and says by which one.
static bool is_unicast_frame(const struct packet *packet)
{
	const struct wire_ethernet *ethernet = (const struct wire_ethernet *)packet->data;

	return !(ethernet->destination[0] & 1) && !(ethernet->source[0] & 1);
}

static bool is_unicast_destination(const struct packet *packet)
{
	const uint8_t *destination = packet->data + packet->l3_offset;

	if (packet->family == ADDR_V6)
		return ((const struct wire_ip6 *)destination)->destination[0] != 0xff;
	// 224/4 groups, 240/4 and the broadcast address.
	return ((const struct wire_ip4 *)destination)->destination[0] < 0xe0;
}

static void answer_arp(struct packet *packet, const uint8_t mac[WIRE_MAC_BYTES])
{
	struct wire_ethernet *ethernet = (struct wire_ethernet *)packet->data;
	struct wire_arp *arp = (struct wire_arp *)(packet->data + packet->l3_offset);
	uint8_t asked[sizeof(arp->target)];

	memcpy(asked, arp->target, sizeof(asked));
	memcpy(arp->target, arp->sender, sizeof(arp->target));
	memcpy(arp->target_mac, arp->sender_mac, sizeof(arp->target_mac));
	memcpy(arp->sender, asked, sizeof(arp->sender));
	memcpy(arp->sender_mac, mac, sizeof(arp->sender_mac));
	arp->operation_be = htobe16(WIRE_ARP_REPLY);
	memcpy(ethernet->destination, arp->target_mac, sizeof(ethernet->destination));
	memcpy(ethernet->source, mac, sizeof(ethernet->source));
	set_length(packet, sizeof(*arp));
}

// The advertisement that answers a solicitation, written over it.
static void write_advertisement(
	struct packet *packet, const struct discovery *question, const uint8_t mac[WIRE_MAC_BYTES])
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	bool is_probe = question->sender.family == ADDR_NONE;
	uint8_t *l3 = packet->data + packet->l3_offset;
	struct {
		struct wire_nd nd;
		struct wire_nd_option option;
	} WIRE_PACKED message = {
		.nd.type = WIRE_ICMP6_ADVERTISEMENT,
		.nd.flags_be = htobe32(WIRE_ND_OVERRIDE | (is_probe ? 0 : WIRE_ND_SOLICITED)),
		.option.type = WIRE_ND_OPTION_TARGET,
		.option.length = 1,
	};
	struct header header = {
		.source = question->target.bytes,
		.destination = is_probe ? all_nodes : question->sender.bytes,
		.payload = sizeof(message),
		.ttl = WIRE_ND_HOP_LIMIT,
		.protocol = WIRE_PROTO_ICMP6,
	};

	memcpy(message.nd.target, question->target.bytes, sizeof(message.nd.target));
	memcpy(message.option.mac, mac, sizeof(message.option.mac));
	header_write6(l3, &header);
	message.nd.checksum_be =
		header_icmp6_checksum((struct wire_ip6 *)l3, &message, sizeof(message));
	memcpy(l3 + sizeof(struct wire_ip6), &message, sizeof(message));
	set_length(packet, sizeof(struct wire_ip6) + sizeof(message));
}

static bool answer_nd(struct packet *packet, const uint8_t mac[WIRE_MAC_BYTES])
{
	static const uint8_t all_nodes_mac[WIRE_MAC_BYTES] = {0x33, 0x33, 0, 0, 0, 1};
	struct wire_ethernet *ethernet = (struct wire_ethernet *)packet->data;
	struct discovery question;
	unsigned needed = packet->l3_offset +
		(unsigned)(sizeof(struct wire_ip6) + sizeof(struct wire_nd) +
			sizeof(struct wire_nd_option));

	if (packet->length + packet->tailroom < needed)
		return false;
	discovery_read(packet, &question);
	const uint8_t *back = question.has_mac ? question.mac : ethernet->source;

	// RFC 2464 section 7 maps ff02::1 to this group.
	if (question.sender.family == ADDR_NONE)
		back = all_nodes_mac;
	memmove(ethernet->destination, back, sizeof(ethernet->destination));
	memcpy(ethernet->source, mac, sizeof(ethernet->source));
	write_advertisement(packet, &question, mac);
	return true;
}

void answer_discovery(struct packet *packet, const uint8_t mac[static 6])
{
	if (packet->flags & PACKET_ARP) {
		answer_arp(packet, mac);
	} else if (!answer_nd(packet, mac)) {
		drop(packet, DROP_no_buffer);
		return;
	}
	packet->verdict = PACKET_ANSWER;
	packet->port_out = packet->port_in;
}

// Makes the request's ICMP header that of the reply.
static void turn_icmp(struct wire_icmp *icmp, unsigned length, bool is_v6)
{
	uint16_t was, is;

	memcpy(&was, icmp, sizeof(was));
	icmp->type = is_v6 ? WIRE_ICMP6_ECHO_REPLY : WIRE_ICMP_ECHO_REPLY;
	memcpy(&is, icmp, sizeof(is));
	// Swapping the addresses of the pseudo-header changes no sum.
	icmp->checksum_be = checksum_update(icmp->checksum_be, was, is);
	// Without a pseudo-header a reply may be all zero but for its checksum, which is then the other zero.
	if (icmp->checksum_be == 0 && !is_v6)
		icmp->checksum_be = checksum_finish(checksum_add(0, icmp, length));
}

void answer_echo(struct packet *packet)
{
	bool is_v6 = packet->family == ADDR_V6;
	unsigned header_bytes = is_v6 ? sizeof(struct wire_ip6) : sizeof(struct wire_ip4);
	const uint8_t *l3 = packet->data + packet->l3_offset;
	struct wire_icmp *icmp = (struct wire_icmp *)(packet->data + packet->l4_offset);
	unsigned length = packet->l3_offset + packet->l3_length - packet->l4_offset;
	struct header header = {
		.source = packet->key.destination,
		.destination = packet->key.source,
		.payload = length,
		.class = header_class(l3, packet->family),
		.ttl = ANSWER_TTL,
		.protocol = is_v6 ? WIRE_PROTO_ICMP6 : WIRE_PROTO_ICMP,
	};
	uint8_t *reply = (uint8_t *)icmp - header_bytes;

	if (!is_unicast_frame(packet) || !is_unicast_destination(packet)) {
		drop(packet, DROP_not_for_us);
		return;
	}
	turn_icmp(icmp, length, is_v6);
	turn_link(packet, reply);
	if (is_v6)
		header_write6(reply, &header);
	else
		header_write4(reply, &header);
	set_length(packet, header_bytes + length);
	packet->verdict = PACKET_ANSWER;
	packet->port_out = packet->port_in;
}

bool answer_error_allowed(const struct packet *packet)
{
	if (packet->family == ADDR_NONE || packet->flags & PACKET_FRAGMENT_LATER)
		return false;
	if (!is_unicast_frame(packet) || !is_unicast_destination(packet))
		return false;
	// The parser lets class E pass (RFC 1112 section 4), and an unspecified source only on its way to a group.
	const struct wire_ip4 *ip = (const struct wire_ip4 *)(packet->data + packet->l3_offset);

	if (packet->family == ADDR_V4 && ip->source[0] >= 0xf0)
		return false;
	// The key of an ICMP error has the protocol that it quotes.
	if (packet->flags & PACKET_ICMP_ERROR)
		return false;
	bool is_icmp = packet->key.protocol ==
		(packet->family == ADDR_V6 ? WIRE_PROTO_ICMP6 : WIRE_PROTO_ICMP);

	return !is_icmp || packet->flags & PACKET_ECHO;
}

// What an ICMP error says. word1: the MTU, or 0.
struct error {
	uint8_t type;
	uint8_t code;
	uint16_t word1;
};

static void write_error4(uint8_t *l3, const struct header *header, const struct error *error)
{
	struct wire_icmp *icmp = (struct wire_icmp *)(l3 + sizeof(struct wire_ip4));

	*icmp = (struct wire_icmp){
		.type = error->type, .code = error->code, .word1_be = htobe16(error->word1)};
	header_write4(l3, header);
	icmp->checksum_be = checksum_finish(checksum_add(0, icmp, header->payload));
}

static void write_error6(uint8_t *l3, const struct header *header, const struct error *error)
{
	struct wire_icmp *icmp = (struct wire_icmp *)(l3 + sizeof(struct wire_ip6));

	*icmp = (struct wire_icmp){
		.type = error->type, .code = error->code, .word1_be = htobe16(error->word1)};
	header_write6(l3, header);
	icmp->checksum_be = header_icmp6_checksum((struct wire_ip6 *)l3, icmp, header->payload);
}

// Puts an error in front of the packet, which becomes its quote. Returns false, bytes untouched, if it may not be
// sent or has no room.
static bool answer_error(struct packet *packet, const struct error *error)
{
	bool is_v6 = packet->family == ADDR_V6;
	unsigned ip_bytes = is_v6 ? sizeof(struct wire_ip6) : sizeof(struct wire_ip4);
	unsigned added = ip_bytes + (unsigned)sizeof(struct wire_icmp);
	unsigned longest = is_v6 ? ANSWER_ERROR_BYTES6_MAX : ANSWER_ERROR_BYTES4_MAX;
	unsigned quote = packet->l3_length < longest - added ? packet->l3_length : longest - added;

	if (!answer_error_allowed(packet) || packet->headroom < added)
		return false;
	struct header header = {
		.source = packet->key.destination,
		.destination = packet->key.source,
		.payload = (unsigned)sizeof(struct wire_icmp) + quote,
		.class = ANSWER_ERROR_CLASS,
		.ttl = ANSWER_TTL,
		.protocol = is_v6 ? WIRE_PROTO_ICMP6 : WIRE_PROTO_ICMP,
	};
	uint8_t *l3 = packet->data + packet->l3_offset - added;

	turn_link(packet, l3);
	if (is_v6)
		write_error6(l3, &header, error);
	else
		write_error4(l3, &header, error);
	set_length(packet, added + quote);
	packet->verdict = PACKET_DROP_REPLY;
	packet->port_out = packet->port_in;
	return true;
}

bool answer_too_big(struct packet *packet, unsigned mtu)
{
	bool is_v6 = packet->family == ADDR_V6;
	struct error error = {
		.type = is_v6 ? WIRE_ICMP6_TOO_BIG : WIRE_ICMP_UNREACHABLE,
		.code = is_v6 ? 0 : WIRE_ICMP_FRAG_NEEDED,
		.word1 = (uint16_t)(mtu < UINT16_MAX ? mtu : UINT16_MAX),
	};

	if (mtu < (is_v6 ? WIRE_IP6_MTU_MIN : WIRE_IP4_MTU_MIN) || !answer_error(packet, &error)) {
		drop(packet, DROP_too_big_silent);
		return false;
	}
	packet->reason = DROP_too_big;
	return true;
}

bool answer_time_exceeded(struct packet *packet)
{
	struct error error = {
		.type = packet->family == ADDR_V6 ? WIRE_ICMP6_TIME_EXCEEDED
						  : WIRE_ICMP_TIME_EXCEEDED,
	};

	if (!answer_error(packet, &error)) {
		drop(packet, DROP_ttl_expired);
		return false;
	}
	packet->reason = DROP_ttl_expired;
	return true;
}
