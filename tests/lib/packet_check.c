// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/packet_check.h"

#include <netinet/in.h>

static bool is_zero(const uint8_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

static const char *broken_key(const struct flow_key *key)
{
	if (key->reserved[0] != 0 || key->reserved[1] != 0)
		return "the key's padding is zero";
	if (key->family == ADDR_V4 &&
		(!is_zero(key->source + 4, 12) || !is_zero(key->destination + 4, 12)))
		return "an IPv4 key has zeros behind its addresses";
	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP &&
		(key->source_port_be != 0 || key->destination_port_be != 0))
		return "only TCP and UDP have ports";
	return NULL;
}

static const char *broken_ip(const struct packet *packet)
{
	unsigned header = packet->family == ADDR_V6 ? 40 : 20;
	unsigned end = packet->l3_offset + packet->l3_length;
	bool is_later = packet->flags & PACKET_FRAGMENT_LATER;

	if (packet->l3_length < header)
		return "an IP packet holds its header";
	if (is_later != (packet->l4_offset == 0))
		return "all but later fragments have an L4 offset";
	if (!is_later && packet->l4_offset < packet->l3_offset + header)
		return "L4 comes behind the IP header";
	if (packet->payload_offset < packet->l4_offset || packet->payload_offset > end)
		return "the payload lies behind L4 and inside the packet";
	if (is_later && !(packet->flags & PACKET_FRAGMENT))
		return "a later fragment is a fragment";
	if (packet->flags & PACKET_FRAGMENT &&
		packet->flags & (PACKET_ICMP_ERROR | PACKET_ECHO | PACKET_ND))
		return "fragments are neither answered nor read as ICMP";
	if (packet->key.family != packet->family)
		return "the key is of the packet's family";
	return NULL;
}

const char *packet_broken_rule(const struct packet *packet)
{
	if (packet->verdict == PACKET_DROP)
		return packet->reason < DROP_COUNT ? NULL : "a drop has a reason";
	if (packet->verdict != PACKET_PENDING && packet->verdict != PACKET_PUNT)
		return "parsing ends in pending, punt or drop";
	if (packet->l3_offset != 14 + 4 * packet->vlan_count || packet->vlan_count > 2)
		return "L3 comes behind Ethernet and its tags";
	if ((uint32_t)packet->l3_offset + packet->l3_length > packet->length)
		return "L3 ends inside the frame";
	if (packet->verdict == PACKET_PUNT)
		return NULL;
	if (packet->family != ADDR_NONE) {
		const char *rule = broken_ip(packet);

		if (rule != NULL)
			return rule;
	} else if (!(packet->flags & PACKET_ARP)) {
		return "what is pending is IP or ARP";
	}
	return broken_key(&packet->key);
}
