// SPDX-License-Identifier: Apache-2.0
// Neighbour messages: ARP (RFC 826, RFC 5227) and the neighbour solicitations and advertisements of RFC 4861. Reading
// what a packet says, and writing questions and announcements; answer.h answers questions.
#pragma once

#include "dataplane/packet/packet.h"
#include "dataplane/packet/wire.h"

// Room for any message: Ethernet, a tag, IPv6, hop-by-hop options, membership report.
#define DISCOVERY_FRAME_MAX 96u

// What a message says.
struct discovery {
	// question: who has target? answer: target is at mac.
	struct ip_addr
		sender; // ADDR_NONE: a probe, its sender has no address yet (RFC 5227, RFC 4862)
	struct ip_addr target;
	uint8_t mac[WIRE_MAC_BYTES]; // question: the sender's. answer: the target's
	bool has_mac;                // a solicitation or advertisement may lack it
	bool is_question;
	bool is_solicited; // an answer that somebody asked for
	bool overrides;    // an answer that replaces another MAC address (RFC 4861 section 7.2.5)
};

// Reads a parsed packet with PACKET_ARP or PACKET_ND. Never fails: parse_burst() has checked it.
// An ARP request for the sender's own address (gratuitous) reads as an answer that overrides: it announces.
void discovery_read(const struct packet *packet, struct discovery *ret);

// A message to write. sender and target are of one family.
struct discovery_message {
	struct ip_addr sender;       // our address on the link
	struct ip_addr target;       // the neighbour; for an announcement: not read
	uint8_t mac[WIRE_MAC_BYTES]; // ours
	// A question to one neighbour that is known and may have gone (RFC 4861 section 7.3.1), or NULL: to all that
	// may be it (ARP: broadcast; ND: the solicited-node group, RFC 4291 section 2.7.1).
	const uint8_t *neighbour_mac;
	uint16_t vlan; // 1..4094: the link's tag; 0: untagged
};

// Writes an ARP request or a neighbour solicitation.
// Returns the frame's length, padded to WIRE_ETHERNET_MIN; 0 when capacity is too small or family is ADDR_NONE.
unsigned discovery_write_question(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message);

// Writes a gratuitous ARP request (RFC 5227 section 3) or an unsolicited advertisement (RFC 4861 section 7.2.6) for
// the sender's own address. Returns as discovery_write_question().
unsigned discovery_write_announcement(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message);

// How often membership reports are sent: within the query interval of RFC 3810 section 9.2, so that no switch forgets
// us, whether somebody on the link asks or not.
#define DISCOVERY_MEMBERSHIP_S 60u

// Writes the MLDv2 report (RFC 3810 section 5.2) that joins the solicited-node group of the sender's own IPv6 address.
// RFC 4861 section 7.2.1 asks for it: a switch that snoops sends solicitations only to those who joined.
// The source is the unspecified address, since the sender may have no link-local one; switches must take it (RFC 3590).
// Returns as discovery_write_question(); 0 for IPv4 as well.
unsigned discovery_write_membership(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message);
