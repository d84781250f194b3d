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
// The checksum is summed from the words on their way: summing the header where it was just put together makes loads
// wait for narrower stores, which cost 5 of 14 ns a packet.
static inline void header_write4(uint8_t *at, const struct header *header)
{
	struct wire_ip4 *ip = (struct wire_ip4 *)at;
	uint32_t total = (uint16_t)(header->payload + sizeof(*ip));
	uint32_t words[5] = {
		htobe32(0x45u << 24 | (uint32_t)header->class << 16 | total),
		htobe32(WIRE_IP4_DF),
		htobe32((uint32_t)header->ttl << 24 | (uint32_t)header->protocol << 16),
	};
	uint64_t sum = (uint64_t)words[0] + words[1] + words[2];

	memcpy(&words[3], header->source, sizeof(words[3]));
	memcpy(&words[4], header->destination, sizeof(words[4]));
	sum += (uint64_t)words[3] + words[4];
	memcpy(at, words, sizeof(words));
	ip->checksum_be = checksum_finish(sum);
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
