// SPDX-License-Identifier: Apache-2.0
// Parsing: the bytes of a frame become the fields of struct packet. Nothing in a packet is trusted: every length
// is checked against the bytes that are there before it is used, and each header has one function.
// Which RFC rules which check: docs/wire.md section 1.
#pragma once

#include "dataplane/packet/packet.h"

// What an IPv6 header chain may have in front of TCP, UDP or ICMPv6. RFC 8504 section 5.3 lets a node set such
// limits; real chains hold one or two headers of 8 to 40 bytes.
#define PARSE_IP6_EXTENSIONS_MAX      8u
#define PARSE_IP6_EXTENSION_BYTES_MAX 512u

// Longest connection ID of QUIC version 1 (RFC 9000 section 17.2).
#define PARSE_QUIC_ID_MAX 20u

// Parses a burst. Each packet leaves with one of these verdicts:
//	PACKET_PENDING	IPv4 or IPv6 whose headers are sound, or ARP (PACKET_ARP)
//	PACKET_PUNT	neither IP nor ARP: LLDP, LACP, STP and their like are the kernel's
//	PACKET_DROP	malformed; reason is of the stage "parse"
// Every field from flags to key is set, to zero where the packet has no such thing; bytes are not changed.
//
// key:	TCP, UDP: all five parts. Other protocols and later fragments: no ports.
//	PACKET_ICMP_ERROR: the quoted flow turned around, so that it reads client -> virtual address; key.protocol is
//	the quoted one and key.destination equals the destination of the error itself.
//	PACKET_ARP: sender and target IPv4 address (family ADDR_NONE in the packet, ADDR_V4 in the key).
//	PACKET_ND: the IPv6 addresses of the packet; the address that is asked for is in discovery_read().
// PACKET_FRAGMENT: fragments of one datagram share source, destination and fragment_id, and for IPv4 the protocol.
//	For IPv6 the protocol of a later fragment may differ from the first one's (RFC 8200 section 4.5): leave it out.
//	An IPv6 "atomic" fragment (offset 0, nothing follows) is no fragment (RFC 6946).
// PACKET_ICMP_ERROR, PACKET_ECHO and PACKET_ND are only set on whole packets whose ICMP checksum is right. TCP and
//	UDP checksums are not looked at: the backend checks them end to end.
// A TTL of 1 passes here, since a packet for ourselves may have it; encap_burst() drops it.
// count: 0..PACKET_BURST. Context: any. Cost: see docs/wire.md section 8.
void parse_burst(struct packet *packets, unsigned count);

// Finds the destination connection ID of a QUIC packet, for services with FLOW_AFFINITY_QUIC.
// packet: parsed, UDP, not PACKET_FRAGMENT_LATER.
// On success PACKET_QUIC_ID is set and connection_id_offset and connection_id_length say where the bytes are:
//	long header: exactly the ID (0..20 bytes). PACKET_QUIC_CLIENT_ID is set as well for Initial and 0-RTT packets
//	of QUIC versions 1 and 2: their ID was made up by the client and names no server (RFC 9000 section 7.2).
//	short header: the packet does not say how long the ID is (RFC 9000 section 17.3); the length is what there is,
//	at most PARSE_QUIC_ID_MAX, and the service has to know how many of these bytes it uses.
// Returns true when found; false when the datagram is no QUIC (fixed bit clear, cut, ID longer than 20 bytes).
// Source: RFC 8999 section 5, RFC 9000 section 17. What the bytes mean is the service's business.
bool parse_quic_id(struct packet *packet);
