// SPDX-License-Identifier: Apache-2.0
// Writes the IP headers that are made here: outer ones and those of answers. Private to dataplane/packet.
#pragma once

#include "common/addr.h"
#include "dataplane/packet/checksum.h"
#include "dataplane/packet/wire.h"

// The fields that differ. source and destination: 4 or 16 bytes. label: IPv6 only, 20 bits.
struct header {
	const void *source;
	const void *destination;
	uint32_t label;
	unsigned payload; // bytes behind the header
	uint8_t class;    // DSCP and ECN
	uint8_t ttl;
	uint8_t protocol;
};

// DSCP and ECN of an IP header of either family.
static inline uint8_t header_class(const uint8_t *l3, unsigned family)
{
	if (family == ADDR_V6)
		return (uint8_t)(be32toh(((const struct wire_ip6 *)l3)->version_class_label_be) >>
			20);
	return ((const struct wire_ip4 *)l3)->tos;
}

// Every field is written: the memory holds remains of another header.
// DF is set and the identification zero: an atomic datagram, whose identification means nothing (RFC 6864
// section 4.1), so none has to be kept unique.
static inline void header_write4(uint8_t *at, const struct header *header)
{
	struct wire_ip4 ip = {
		.version_length = 0x45,
		.tos = header->class,
		.total_length_be = htobe16((uint16_t)(header->payload + sizeof(ip))),
		.fragment_be = htobe16(WIRE_IP4_DF),
		.ttl = header->ttl,
		.protocol = header->protocol,
	};

	memcpy(ip.source, header->source, sizeof(ip.source));
	memcpy(ip.destination, header->destination, sizeof(ip.destination));
	ip.checksum_be = checksum_finish(checksum_add(0, &ip, sizeof(ip)));
	memcpy(at, &ip, sizeof(ip));
}

static inline void header_write6(uint8_t *at, const struct header *header)
{
	struct wire_ip6 *ip = (struct wire_ip6 *)at;

	ip->version_class_label_be =
		htobe32(6u << 28 | (uint32_t)header->class << 20 | header->label);
	ip->payload_length_be = htobe16((uint16_t)header->payload);
	ip->next_header = header->protocol;
	ip->hop_limit = header->ttl;
	memcpy(ip->source, header->source, sizeof(ip->source));
	memcpy(ip->destination, header->destination, sizeof(ip->destination));
}

// The checksum field's value of an ICMPv6 message behind an IPv6 header that is written (RFC 4443 section 2.3).
static inline uint16_t header_icmp6_checksum(
	const struct wire_ip6 *ip, const void *icmp, unsigned length)
{
	uint64_t sum = checksum_add(0, ip->source, 2 * sizeof(ip->source));

	sum = checksum_pseudo6(sum, length, WIRE_PROTO_ICMP6);
	return checksum_finish(checksum_add(sum, icmp, length));
}
