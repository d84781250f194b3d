// SPDX-License-Identifier: Apache-2.0
// The steps of parsing, one function a header. Private to dataplane/packet.
//
// Each step gets a packet whose earlier headers are sound and returns PARSE_FINE or the reason to drop it.
#pragma once

#include "dataplane/packet/packet.h"

#define PARSE_FINE ((unsigned)DROP_COUNT)

// What a chain of IPv6 extension headers leads to.
struct ip6_chain {
	uint16_t offset;  // of the upper layer, or of a later fragment's data, from the IPv6 header
	uint8_t protocol; // of the upper layer; of a later fragment: what its fragment header names
	bool has_fragment; // a fragment header, atomic or not
	uint16_t fragment_offset_be;
	uint16_t fragment_data; // offset of the fragmentable part, from the IPv6 header
	uint32_t fragment_id;
};

// Walks the extension headers of an IPv6 packet: bounded in number and bytes, each one inside length.
// bytes: an IPv6 header and what follows; length >= 40.
// Returns PARSE_FINE or DROP_ip6_extension_chain. Stops behind the header of a later fragment, since what follows
// is the middle of something.
unsigned ip6_chain_walk(const uint8_t *bytes, unsigned length, struct ip6_chain *ret);

// ICMP and ICMPv6: echo, errors (with the packet they quote), neighbour discovery. l4_offset is set; end: offset
// behind the IP payload.
unsigned icmp4_parse(struct packet *packet, unsigned end);
unsigned icmp6_parse(struct packet *packet, unsigned end);

// Reads the packet that an ICMP error quotes and makes the key of its flow, as the client sends it.
// inner: offset of the quoted IP header; end: offset behind the quote.
// Returns PARSE_FINE, or DROP_icmp_inner when the quote is too short to name a flow, is malformed, is a later
// fragment, or was not sent from the address that the error was sent to.
unsigned icmp4_quote_parse(struct packet *packet, unsigned inner, unsigned end);
unsigned icmp6_quote_parse(struct packet *packet, unsigned inner, unsigned end);

// Neighbour solicitation or advertisement, checksum already verified (RFC 4861 section 7.1).
unsigned nd_parse(struct packet *packet, unsigned end);
