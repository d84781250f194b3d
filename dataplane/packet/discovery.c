// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/discovery.h"

#include "dataplane/packet/checksum.h"
#include "dataplane/packet/step.h"

static bool is_zero(const uint8_t *bytes, unsigned count)
{
	uint8_t any = 0;

	for (unsigned i = 0; i < count; i++)
		any |= bytes[i];
	return any == 0;
}

static void set_address(struct ip_addr *ret, const uint8_t *bytes, enum addr_family family)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->bytes, bytes, family == ADDR_V4 ? 4 : 16);
	ret->family = (uint8_t)family;
}

// Finds a link-layer address option of Ethernet's size. end: behind the options.
// ret_mac: untouched when there is none. Returns false when an option is malformed.
static bool find_option(
	const uint8_t *options, const uint8_t *end, unsigned type, const uint8_t **ret_mac)
{
	while (end - options >= 2) {
		unsigned size = options[1] * 8u;

		// RFC 4861 section 4.6: a length of 0 makes the whole packet void.
		if (size == 0 || size > (size_t)(end - options))
			return false;
		if (options[0] == type && size == sizeof(struct wire_nd_option))
			*ret_mac = ((const struct wire_nd_option *)options)->mac;
		options += size;
	}
	return options == end;
}

static const uint8_t *solicited_node_prefix(void)
{
	static const uint8_t prefix[13] = {0xff, 0x02, [11] = 0x01, [12] = 0xff};

	return prefix;
}

unsigned nd_parse(struct packet *packet, unsigned end)
{
	const struct wire_ip6 *ip = (const struct wire_ip6 *)(packet->data + packet->l3_offset);
	const struct wire_nd *nd = (const struct wire_nd *)(packet->data + packet->l4_offset);
	const uint8_t *source_mac = NULL;
	bool is_question = nd->type == WIRE_ICMP6_SOLICITATION;

	// RFC 4861 sections 7.1.1 and 7.1.2: hop limit 255 proves that it comes from the link. No extension header
	// belongs here either (RFC 6980 forbids the fragment header).
	if (end - packet->l4_offset < sizeof(*nd) || nd->code != 0 ||
		ip->hop_limit != WIRE_ND_HOP_LIMIT ||
		packet->l4_offset != packet->l3_offset + sizeof(*ip) || nd->target[0] == 0xff)
		return DROP_nd_malformed;
	if (!find_option((const uint8_t *)(nd + 1), packet->data + end, WIRE_ND_OPTION_SOURCE,
		    &source_mac))
		return DROP_nd_malformed;
	if (is_question && is_zero(ip->source, sizeof(ip->source)) &&
		(source_mac != NULL || memcmp(ip->destination, solicited_node_prefix(), 13) != 0))
		return DROP_nd_malformed;
	if (!is_question && ip->destination[0] == 0xff && nd->flags_be & htobe32(WIRE_ND_SOLICITED))
		return DROP_nd_malformed;
	packet->flags |= PACKET_ND;
	return PARSE_FINE;
}

static void read_arp(const struct packet *packet, struct discovery *ret)
{
	const struct wire_arp *arp = (const struct wire_arp *)(packet->data + packet->l3_offset);
	bool is_gratuitous = memcmp(arp->sender, arp->target, sizeof(arp->sender)) == 0;

	ret->is_question = be16toh(arp->operation_be) == WIRE_ARP_REQUEST && !is_gratuitous;
	ret->is_solicited = !ret->is_question && !is_gratuitous;
	ret->overrides = !ret->is_question;
	ret->has_mac = true;
	memcpy(ret->mac, arp->sender_mac, sizeof(ret->mac));
	if (!is_zero(arp->sender, sizeof(arp->sender)))
		set_address(&ret->sender, arp->sender, ADDR_V4);
	// A reply is about its sender.
	set_address(&ret->target, ret->is_question ? arp->target : arp->sender, ADDR_V4);
}

static void read_nd(const struct packet *packet, struct discovery *ret)
{
	const struct wire_nd *nd = (const struct wire_nd *)(packet->data + packet->l4_offset);
	const uint8_t *end = packet->data + packet->l3_offset + packet->l3_length;
	const uint8_t *mac = NULL;

	ret->is_question = nd->type == WIRE_ICMP6_SOLICITATION;
	ret->is_solicited = !ret->is_question && nd->flags_be & htobe32(WIRE_ND_SOLICITED);
	ret->overrides = !ret->is_question && nd->flags_be & htobe32(WIRE_ND_OVERRIDE);
	if (!is_zero(packet->key.source, sizeof(packet->key.source)))
		set_address(&ret->sender, packet->key.source, ADDR_V6);
	set_address(&ret->target, nd->target, ADDR_V6);
	find_option((const uint8_t *)(nd + 1), end,
		ret->is_question ? WIRE_ND_OPTION_SOURCE : WIRE_ND_OPTION_TARGET, &mac);
	ret->has_mac = mac != NULL && !(mac[0] & 1);
	if (ret->has_mac)
		memcpy(ret->mac, mac, sizeof(ret->mac));
}

void discovery_read(const struct packet *packet, struct discovery *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (packet->flags & PACKET_ARP)
		read_arp(packet, ret);
	else
		read_nd(packet, ret);
}
