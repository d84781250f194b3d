// SPDX-License-Identifier: Apache-2.0
// Answers: the packet's own buffer becomes the reply, which leaves by the port and VLAN it came from, for the MAC
// address it came from. No route is looked up: who sent the question can carry the answer.
// Rate limits are the caller's: every answer is a packet that a stranger can ask for.
// Of what parse_burst() found, only l3_offset and l3_length are true of the answer.
#pragma once

#include "dataplane/packet/packet.h"

// Hop limit of an answer.
#define ANSWER_TTL 64u

// Longest ICMP error, its IP header included: RFC 1812 section 4.3.2.3, RFC 4443 section 2.4 (c).
#define ANSWER_ERROR_BYTES4_MAX 576u
#define ANSWER_ERROR_BYTES6_MAX 1280u

// Answers an ARP request or a neighbour solicitation with a MAC address.
// packet: parsed, PACKET_ARP or PACKET_ND, and discovery_read() said that it is a question for an address of ours.
// A solicitation from the unspecified address is answered to all nodes, as RFC 4861 section 7.2.4 asks.
// Sets the verdict: PACKET_ANSWER and port_out; or PACKET_DROP, no_buffer when the longer reply has no room.
void answer_discovery(struct packet *packet, const uint8_t mac[static 6]);

// Answers an ICMP or ICMPv6 echo request (RFC 1122 section 3.2.2.6, RFC 4443 section 4.2).
// packet: parsed, PACKET_ECHO, for an address that is ours. IPv4 options and IPv6 extension headers are left out
// of the reply: a source route in it must not steer our packets.
// Sets the verdict PACKET_ANSWER and port_out; or PACKET_DROP, not_for_us when the destination is multicast or
// broadcast, or the frame was sent to a group.
void answer_echo(struct packet *packet);

// Turns a packet that does not fit its tunnel into ICMP "fragmentation needed" (RFC 1191 section 4) or ICMPv6 "packet
// too big" (RFC 4443 section 3.2), from the address that the packet was sent to.
// packet: bytes as they came (encap_burst() drops it with too_big). mtu: encap_inner_mtu().
// Returns true with verdict PACKET_DROP_REPLY, reason too_big, port_out set; false, packet untouched but for
// verdict PACKET_DROP and reason too_big_silent, when the RFCs forbid to answer (answer_error_allowed()), when mtu
// is below what the sender can use (68; IPv6: 1280), or when there is no headroom.
bool answer_too_big(struct packet *packet, unsigned mtu);

// The same for "time exceeded in transit", code 0 (RFC 1812 section 5.3.1, RFC 4443 section 3.3).
// Returns true with verdict PACKET_DROP_REPLY; false with verdict PACKET_DROP; the reason is ttl_expired both times.
bool answer_time_exceeded(struct packet *packet);

// Tells whether an ICMP error may be sent about a packet: not about ICMP other than an echo request, not about a
// later fragment, not for what was sent to a group or broadcast (IP or Ethernet), not to a source that is no
// single host. RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e).
bool answer_error_allowed(const struct packet *packet);
