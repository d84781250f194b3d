// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/checksum.h"
#include "dataplane/packet/step.h"
#include "dataplane/packet/wire.h"

// Makes the key of the flow that a quote names. It was sent by the backend to the client, so it is turned around.
// ports: NULL for protocols without.
static void quote_key(
	struct flow_key *key, const uint8_t *client, unsigned bytes, const struct wire_ports *ports)
{
	memset(key->source, 0, sizeof(key->source));
	memcpy(key->source, client, bytes);
	key->source_port_be = ports ? ports->destination_be : 0;
	key->destination_port_be = ports ? ports->source_be : 0;
}

static bool has_ports(unsigned protocol)
{
	return protocol == WIRE_PROTO_TCP || protocol == WIRE_PROTO_UDP;
}

unsigned icmp4_quote_parse(struct packet *packet, unsigned inner, unsigned end)
{
	const struct wire_ip4 *ip = (const struct wire_ip4 *)(packet->data + inner);

	if (end - inner < sizeof(*ip) || ip->version_length >> 4 != 4)
		return DROP_icmp_inner;
	unsigned header = (ip->version_length & 0xfu) * 4;

	// RFC 792 grants the header and eight bytes, which hold both ports of TCP and UDP. Neither the total length
	// nor the checksum of the quote is looked at: some routers quote them in host order or after a change.
	if (header < sizeof(*ip) || end - inner < header + 8)
		return DROP_icmp_inner;
	if (ip->fragment_be & htobe16(WIRE_IP4_OFFSET_MASK))
		return DROP_icmp_inner;
	// An error about a packet that its target cannot have sent is forged (RFC 5927 section 4.1).
	if (memcmp(ip->source, packet->key.destination, sizeof(ip->source)) != 0)
		return DROP_icmp_inner;
	const struct wire_ports *ports = (const struct wire_ports *)((const uint8_t *)ip + header);

	packet->key.protocol = ip->protocol;
	quote_key(&packet->key, ip->destination, sizeof(ip->destination),
		has_ports(ip->protocol) ? ports : NULL);
	return PARSE_FINE;
}

unsigned icmp6_quote_parse(struct packet *packet, unsigned inner, unsigned end)
{
	const struct wire_ip6 *ip = (const struct wire_ip6 *)(packet->data + inner);
	struct ip6_chain chain;

	if (end - inner < sizeof(*ip) || be32toh(ip->version_class_label_be) >> 28 != 6)
		return DROP_icmp_inner;
	if (ip6_chain_walk((const uint8_t *)ip, end - inner, &chain) != PARSE_FINE)
		return DROP_icmp_inner;
	if (end - inner < chain.offset + 8u)
		return DROP_icmp_inner;
	if (be16toh(chain.fragment_offset_be) & WIRE_IP6_OFFSET_MASK)
		return DROP_icmp_inner;
	if (memcmp(ip->source, packet->key.destination, sizeof(ip->source)) != 0)
		return DROP_icmp_inner;
	const struct wire_ports *ports =
		(const struct wire_ports *)((const uint8_t *)ip + chain.offset);

	packet->key.protocol = chain.protocol;
	quote_key(&packet->key, ip->destination, sizeof(ip->destination),
		has_ports(chain.protocol) ? ports : NULL);
	return PARSE_FINE;
}

// Redirect (5) and source quench (4, RFC 6633) are errors that no flow's owner needs to see: they stay plain ICMP.
static bool is_routed_error4(unsigned type)
{
	return type == WIRE_ICMP_UNREACHABLE || type == WIRE_ICMP_TIME_EXCEEDED ||
		type == WIRE_ICMP_PARAMETER_PROBLEM;
}

unsigned icmp4_parse(struct packet *packet, unsigned end)
{
	const struct wire_icmp *icmp = (const struct wire_icmp *)(packet->data + packet->l4_offset);
	unsigned available = end - packet->l4_offset;

	if (available < sizeof(*icmp))
		return DROP_l4_truncated;
	packet->payload_offset = (uint16_t)(packet->l4_offset + sizeof(*icmp));
	bool is_echo = icmp->type == WIRE_ICMP_ECHO_REQUEST && icmp->code == 0;

	// A piece of a message cannot be verified.
	if (packet->flags & PACKET_FRAGMENT || !(is_echo || is_routed_error4(icmp->type)))
		return PARSE_FINE;
	if (!checksum_is_right(checksum_add(0, icmp, available)))
		return DROP_icmp_checksum;
	if (is_echo) {
		packet->flags |= PACKET_ECHO;
		return PARSE_FINE;
	}
	packet->flags |= PACKET_ICMP_ERROR;
	return icmp4_quote_parse(packet, packet->payload_offset, end);
}

static bool is_nd(unsigned type)
{
	return type == WIRE_ICMP6_SOLICITATION || type == WIRE_ICMP6_ADVERTISEMENT;
}

static bool is_routed_error6(unsigned type)
{
	return type >= WIRE_ICMP6_UNREACHABLE && type <= WIRE_ICMP6_PARAMETER_PROBLEM;
}

static bool checksum6_is_right(const struct packet *packet, unsigned available)
{
	const struct wire_ip6 *ip = (const struct wire_ip6 *)(packet->data + packet->l3_offset);
	uint64_t sum = checksum_add(0, ip->source, 2 * sizeof(ip->source));

	sum = checksum_pseudo6(sum, available, WIRE_PROTO_ICMP6);
	return checksum_is_right(checksum_add(sum, packet->data + packet->l4_offset, available));
}

unsigned icmp6_parse(struct packet *packet, unsigned end)
{
	const struct wire_icmp *icmp = (const struct wire_icmp *)(packet->data + packet->l4_offset);
	unsigned available = end - packet->l4_offset;

	if (available < sizeof(*icmp))
		return DROP_l4_truncated;
	packet->payload_offset = (uint16_t)(packet->l4_offset + sizeof(*icmp));
	bool is_echo = icmp->type == WIRE_ICMP6_ECHO_REQUEST && icmp->code == 0;

	// RFC 6980: neighbour discovery in fragments is not believed.
	if (packet->flags & PACKET_FRAGMENT)
		return is_nd(icmp->type) ? DROP_nd_malformed : PARSE_FINE;
	if (!is_echo && !is_nd(icmp->type) && !is_routed_error6(icmp->type))
		return PARSE_FINE;
	if (!checksum6_is_right(packet, available))
		return is_nd(icmp->type) ? DROP_nd_malformed : DROP_icmp_checksum;
	if (is_nd(icmp->type))
		return nd_parse(packet, end);
	if (is_echo) {
		packet->flags |= PACKET_ECHO;
		return PARSE_FINE;
	}
	packet->flags |= PACKET_ICMP_ERROR;
	return icmp6_quote_parse(packet, packet->payload_offset, end);
}
