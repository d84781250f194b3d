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

static inline uint32_t header_load(const void *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline void header_store(void *at, uint32_t word)
{
	memcpy(at, &word, sizeof(word));
}

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
// Words are built in registers and stored one by one. An array of them, copied, is stored in small pieces and loaded
// in large ones, which no store buffer forwards: GUE took 16.4 ns a packet so, and 9.7 this way
// (tests/bench/bench_packet.c).
static inline void header_write4(uint8_t *at, const struct header *header)
{
	uint32_t first = htobe32(0x45u << 24 | (uint32_t)header->class << 16 |
		(header->payload + (uint32_t)sizeof(struct wire_ip4)));
	uint32_t third = htobe32((uint32_t)header->ttl << 24 | (uint32_t)header->protocol << 16);
	uint32_t source = header_load(header->source);
	uint32_t destination = header_load(header->destination);
	uint64_t sum = (uint64_t)first + htobe32(WIRE_IP4_DF) + third + source + destination;

	header_store(at, first);
	header_store(at + 4, htobe32(WIRE_IP4_DF));
	header_store(at + 8, third | htobe32(be16toh(checksum_finish(sum))));
	header_store(at + 12, source);
	header_store(at + 16, destination);
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
