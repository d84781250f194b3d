// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse.h"

#include "dataplane/packet/checksum.h"
#include "dataplane/packet/step.h"
#include "dataplane/packet/wire.h"

// The fields that parsing owns lie side by side, so that one memset clears them.
#define PARSE_FIELDS_BEGIN offsetof(struct packet, flags)
#define PARSE_FIELDS_END   offsetof(struct packet, hash)

static bool is_multicast4(const uint8_t address[4])
{
	return (address[0] & 0xf0) == 0xe0;
}

static bool is_broadcast4(const uint8_t address[4])
{
	return (address[0] & address[1] & address[2] & address[3]) == 0xff;
}

// RFC 1122 section 3.2.1.3: what may not be a source. 0.0.0.0 may while a host looks for its address, so it passes
// when it talks to a group or to everybody (DHCP, IGMP). 240/4 passes: people number machines with it.
static bool is_martian4(const struct wire_ip4 *ip)
{
	static const uint8_t unspecified[4];
	const uint8_t *source = ip->source;

	// One branch for nearly everybody.
	if (source[0] != 0 && source[0] != 127 && source[0] < 0xe0)
		return false;
	if (source[0] == 0) {
		return memcmp(source, unspecified, sizeof(unspecified)) != 0 ||
			!(is_multicast4(ip->destination) || is_broadcast4(ip->destination));
	}
	return source[0] == 127 || is_multicast4(source) || is_broadcast4(source);
}

// The same for IPv6: RFC 4291 sections 2.5.2, 2.5.3, 2.5.5.2 and 2.7.
static bool is_martian6(const struct wire_ip6 *ip)
{
	static const uint8_t unspecified[16];
	static const uint8_t loopback[16] = {[15] = 1};
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(ip->source, unspecified, sizeof(unspecified)) == 0)
		return ip->destination[0] != 0xff;
	return ip->source[0] == 0xff || memcmp(ip->source, loopback, sizeof(loopback)) == 0 ||
		memcmp(ip->source, mapped, sizeof(mapped)) == 0;
}

// TCP's FIN, SYN, RST, PSH and ACK bits as our flags; SYN counts where no ACK stands beside it. A table, since the
// tests and shifts that it replaces are 20 instructions of every TCP packet's 150.
#define TCP_FLAGS(bits)                                                                    \
	(((bits)&WIRE_TCP_FIN ? PACKET_FIN : 0) | ((bits)&WIRE_TCP_RST ? PACKET_RST : 0) | \
		(((bits) & (WIRE_TCP_SYN | WIRE_TCP_ACK)) == WIRE_TCP_SYN ? PACKET_SYN : 0))
#define TCP_FLAGS4(bits) \
	TCP_FLAGS(bits), TCP_FLAGS((bits) + 1), TCP_FLAGS((bits) + 2), TCP_FLAGS((bits) + 3)

static const uint8_t tcp_flags[32] = {TCP_FLAGS4(0), TCP_FLAGS4(4), TCP_FLAGS4(8), TCP_FLAGS4(12),
	TCP_FLAGS4(16), TCP_FLAGS4(20), TCP_FLAGS4(24), TCP_FLAGS4(28)};

static inline unsigned parse_tcp(struct packet *packet, unsigned end)
{
	const struct wire_tcp *tcp = (const struct wire_tcp *)(packet->data + packet->l4_offset);
	unsigned available = end - packet->l4_offset;

	if (available < sizeof(*tcp))
		return DROP_l4_truncated;
	unsigned header = (tcp->data_offset >> 4) * 4u;

	if (header < sizeof(*tcp) || header > available)
		return DROP_tcp_header_length;
	packet->key.source_port_be = tcp->source_port_be;
	packet->key.destination_port_be = tcp->destination_port_be;
	packet->payload_offset = (uint16_t)(packet->l4_offset + header);
	packet->flags |= tcp_flags[tcp->flags % sizeof(tcp_flags)];
	return PARSE_FINE;
}

static inline unsigned parse_udp(struct packet *packet, unsigned end)
{
	const struct wire_udp *udp = (const struct wire_udp *)(packet->data + packet->l4_offset);
	unsigned available = end - packet->l4_offset;

	if (available < sizeof(*udp))
		return DROP_l4_truncated;
	unsigned length = be16toh(udp->length_be);

	// The length of a fragmented datagram reaches beyond its first fragment.
	if (length < sizeof(*udp) || (length > available && !(packet->flags & PACKET_FRAGMENT)))
		return DROP_udp_length;
	packet->key.source_port_be = udp->source_port_be;
	packet->key.destination_port_be = udp->destination_port_be;
	packet->payload_offset = (uint16_t)(packet->l4_offset + sizeof(*udp));
	return PARSE_FINE;
}

// Everything above IP but TCP and UDP.
static unsigned parse_other(struct packet *packet, unsigned end)
{
	if (packet->key.protocol == WIRE_PROTO_ICMP && packet->family == ADDR_V4)
		return icmp4_parse(packet, end);
	if (packet->key.protocol == WIRE_PROTO_ICMP6 && packet->family == ADDR_V6)
		return icmp6_parse(packet, end);
	packet->payload_offset = packet->l4_offset;
	return PARSE_FINE;
}

// Everything above IP. The key's addresses, family and protocol are set.
static inline unsigned parse_l4(struct packet *packet)
{
	unsigned end = packet->l3_offset + packet->l3_length;

	if (packet->key.protocol == WIRE_PROTO_TCP)
		return parse_tcp(packet, end);
	if (packet->key.protocol == WIRE_PROTO_UDP)
		return parse_udp(packet, end);
	return parse_other(packet, end);
}

// A fragment's place in its datagram: offset and size in bytes, what follows.
// RFC 1858 and RFC 3128: a fragment that begins inside the TCP header can only be meant to overwrite flags.
static bool fragment_is_sound(
	const struct packet *packet, unsigned offset, unsigned size, bool more)
{
	if (more && (size == 0 || size % 8 != 0))
		return false;
	if (offset + size > UINT16_MAX)
		return false;
	return offset == 0 || offset >= sizeof(struct wire_tcp) ||
		packet->key.protocol != WIRE_PROTO_TCP;
}

// What follows the IP header of a sound fragment: only the first one has ports.
static unsigned parse_fragment_payload(struct packet *packet, unsigned offset)
{
	if (offset == 0)
		return parse_l4(packet);
	packet->flags |= PACKET_FRAGMENT_LATER;
	packet->payload_offset = packet->l4_offset;
	packet->l4_offset = 0;
	return PARSE_FINE;
}

static unsigned parse_fragment4(struct packet *packet, const struct wire_ip4 *ip, unsigned header)
{
	unsigned word = be16toh(ip->fragment_be);
	unsigned offset = (word & WIRE_IP4_OFFSET_MASK) * 8;

	packet->flags |= PACKET_FRAGMENT;
	packet->fragment_id = be16toh(ip->id_be);
	// The whole datagram, its header included, has at most 65,535 bytes (RFC 791 section 3.1).
	if (offset + packet->l3_length > UINT16_MAX ||
		!fragment_is_sound(packet, offset, packet->l3_length - header, word & WIRE_IP4_MF))
		return DROP_fragment_bounds;
	return parse_fragment_payload(packet, offset);
}

static unsigned parse_ip4(struct packet *packet)
{
	const struct wire_ip4 *ip = (const struct wire_ip4 *)(packet->data + packet->l3_offset);
	unsigned available = packet->length - packet->l3_offset;

	if (available < sizeof(*ip))
		return DROP_ip_truncated;
	if (ip->version_length >> 4 != 4)
		return DROP_ip_version;
	unsigned header = (ip->version_length & 0xfu) * 4;
	unsigned total = be16toh(ip->total_length_be);

	if (header < sizeof(*ip) || header > available)
		return DROP_ip_header_length;
	if (total < header || total > available)
		return DROP_ip_total_length;
	uint64_t sum = checksum_ip4(ip);

	if (header > sizeof(*ip))
		sum = checksum_add(sum, ip + 1, header - sizeof(*ip));
	if (!checksum_is_right(sum))
		return DROP_ip_checksum;
	if (ip->ttl == 0)
		return DROP_ttl_expired;
	if (is_martian4(ip) || memcmp(ip->source, ip->destination, sizeof(ip->source)) == 0)
		return DROP_ip_source_martian;

	packet->family = ADDR_V4;
	packet->l3_length = (uint16_t)total;
	packet->l4_offset = (uint16_t)(packet->l3_offset + header);
	memcpy(packet->key.source, ip->source, sizeof(ip->source));
	memcpy(packet->key.destination, ip->destination, sizeof(ip->destination));
	packet->key.protocol = ip->protocol;
	packet->key.family = ADDR_V4;
	packet->flags |= ip->fragment_be & htobe16(WIRE_IP4_DF) ? PACKET_DONT_FRAGMENT : 0;
	if (ip->fragment_be & htobe16(WIRE_IP4_MF | WIRE_IP4_OFFSET_MASK))
		return parse_fragment4(packet, ip, header);
	return parse_l4(packet);
}

// The extension headers of a packet whose first next header is no transport.
static unsigned parse_chain6(struct packet *packet, const struct wire_ip6 *ip)
{
	struct ip6_chain chain;
	unsigned reason = ip6_chain_walk((const uint8_t *)ip, packet->l3_length, &chain);

	if (reason != PARSE_FINE)
		return reason;
	packet->key.protocol = chain.protocol;
	packet->l4_offset = (uint16_t)(packet->l3_offset + chain.offset);

	unsigned word = be16toh(chain.fragment_offset_be);
	unsigned offset = word & WIRE_IP6_OFFSET_MASK;
	bool more = word & WIRE_IP6_MF;

	// RFC 6946: a fragment header on a whole packet, a relic of translators, makes it no fragment.
	if (!chain.has_fragment || (offset == 0 && !more))
		return parse_l4(packet);
	packet->flags |= PACKET_FRAGMENT;
	packet->fragment_id = chain.fragment_id;
	if (!fragment_is_sound(packet, offset, packet->l3_length - chain.fragment_data, more))
		return DROP_fragment_bounds;
	return parse_fragment_payload(packet, offset);
}

static unsigned parse_ip6(struct packet *packet)
{
	const struct wire_ip6 *ip = (const struct wire_ip6 *)(packet->data + packet->l3_offset);
	unsigned available = packet->length - packet->l3_offset;

	if (available < sizeof(*ip))
		return DROP_ip_truncated;
	if (be32toh(ip->version_class_label_be) >> 28 != 6)
		return DROP_ip_version;
	unsigned total = be16toh(ip->payload_length_be) + (unsigned)sizeof(*ip);

	// l3_length has 16 bits; no link carries the 40 bytes that this gives away.
	if (total > available || total > UINT16_MAX)
		return DROP_ip_total_length;
	if (ip->hop_limit == 0)
		return DROP_ttl_expired;
	if (is_martian6(ip) || memcmp(ip->source, ip->destination, sizeof(ip->source)) == 0)
		return DROP_ip_source_martian;

	packet->family = ADDR_V6;
	packet->flags |= PACKET_DONT_FRAGMENT; // RFC 8200 section 5: nobody on the way fragments
	packet->l3_length = (uint16_t)total;
	packet->l4_offset = (uint16_t)(packet->l3_offset + sizeof(*ip));
	memcpy(packet->key.source, ip->source, sizeof(ip->source));
	memcpy(packet->key.destination, ip->destination, sizeof(ip->destination));
	packet->key.protocol = ip->next_header;
	packet->key.family = ADDR_V6;
	if (ip->next_header == WIRE_PROTO_TCP || ip->next_header == WIRE_PROTO_UDP)
		return parse_l4(packet);
	return parse_chain6(packet, ip);
}

// RFC 826: Ethernet and IPv4, a request or a reply, from the station that the frame says.
static unsigned parse_arp(struct packet *packet)
{
	const struct wire_arp *arp = (const struct wire_arp *)(packet->data + packet->l3_offset);

	if (packet->length - packet->l3_offset < sizeof(*arp))
		return DROP_arp_malformed;
	unsigned operation = be16toh(arp->operation_be);

	if (be16toh(arp->hardware_be) != 1 || be16toh(arp->protocol_be) != WIRE_ETHERTYPE_IP4 ||
		arp->hardware_bytes != WIRE_MAC_BYTES ||
		arp->protocol_bytes != sizeof(arp->sender) ||
		(operation != WIRE_ARP_REQUEST && operation != WIRE_ARP_REPLY))
		return DROP_arp_malformed;
	// A group address binds no host: it would make us send unicast to many.
	if (arp->sender_mac[0] & 1 || is_multicast4(arp->sender) || is_broadcast4(arp->sender))
		return DROP_arp_malformed;
	packet->flags |= PACKET_ARP;
	packet->l3_length = sizeof(*arp);
	packet->key.family = ADDR_V4;
	memcpy(packet->key.source, arp->sender, sizeof(arp->sender));
	memcpy(packet->key.destination, arp->target, sizeof(arp->target));
	return PARSE_FINE;
}

static uint16_t type_at(const struct packet *packet, unsigned offset)
{
	uint16_t type_be;

	memcpy(&type_be, packet->data + offset, sizeof(type_be));
	return be16toh(type_be);
}

static inline bool is_tag(unsigned type)
{
	return type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_S_VLAN;
}

// Ethernet and its tags. On success l3_offset points behind the last type field.
static unsigned parse_ethernet(struct packet *packet, unsigned *ret_type)
{
	unsigned offset = sizeof(struct wire_ethernet);

	if (packet->length < offset)
		return DROP_runt;
	unsigned type = type_at(packet, offset - 2);

	while (is_tag(type)) {
		if (packet->vlan_count == 2)
			return DROP_vlan_depth;
		if (packet->length - offset < sizeof(struct wire_vlan))
			return DROP_runt;
		packet->vlan_count++;
		offset += (unsigned)sizeof(struct wire_vlan);
		type = type_at(packet, offset - 2);
	}
	packet->l3_offset = (uint16_t)offset;
	*ret_type = type;
	return PARSE_FINE;
}

static void parse_packet(struct packet *packet)
{
	unsigned type = 0;

	memset((uint8_t *)packet + PARSE_FIELDS_BEGIN, 0, PARSE_FIELDS_END - PARSE_FIELDS_BEGIN);
	packet->verdict = PACKET_PENDING;
	packet->reason = 0;

	unsigned reason = parse_ethernet(packet, &type);

	if (reason == PARSE_FINE) {
		if (type == WIRE_ETHERTYPE_IP4)
			reason = parse_ip4(packet);
		else if (type == WIRE_ETHERTYPE_IP6)
			reason = parse_ip6(packet);
		else if (type == WIRE_ETHERTYPE_ARP)
			reason = parse_arp(packet);
		else
			packet->verdict = PACKET_PUNT;
	}
	if (reason != PARSE_FINE) {
		packet->verdict = PACKET_DROP;
		packet->reason = (uint8_t)reason;
	}
}

void parse_burst(struct packet *packets, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		parse_packet(&packets[i]);
}
