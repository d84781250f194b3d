// SPDX-License-Identifier: Apache-2.0
// Encapsulation: the packet gets an outer header that leads to its backend, or with the L2 tunnel just leaves for
// the backend's MAC address. Formats, and the RFC behind each field: docs/wire.md sections 2 to 5.
#pragma once

#include "common/snapshot.h"
#include "dataplane/packet/packet.h"
#include "dataplane/packet/wire.h"

// Hops an outer header may live: the default of RFC 1700. It says nothing about the inner one.
#define ENCAP_TTL 64u

// The outer source port of GUE lies in the dynamic range and carries 14 bits of the flow's hash.
#define ENCAP_GUE_SOURCE_PORT_BASE 0xc000u
#define ENCAP_GUE_SOURCE_PORT_MASK 0x3fffu

// The port that packets leave through.
struct encap_port {
	struct ip_addr
		source4; // outer source of services without a source prefix; family ADDR_NONE: none
	struct ip_addr source6;
	uint16_t mtu;  // of IP packets
	uint16_t vlan; // 1..4094: the tag of every frame that leaves; 0: see encap_burst()
};

// What becomes of one packet. Nothing is owned.
struct encap_job {
	const struct snapshot_service *service; // tunnel, gue_port_be, sources
	const struct ip_addr *destination;      // the backend; its family is the outer family
	const struct encap_port *port;
};

// Bytes that a tunnel adds to an IP packet: 0 for L2.
// tunnel: enum snapshot_tunnel. outer_family: ADDR_V4 or ADDR_V6.
unsigned encap_overhead(unsigned tunnel, unsigned outer_family);

// The largest IP packet that fits into the job's tunnel: what a too-big answer advertises. 0 when nothing fits.
unsigned encap_inner_mtu(const struct encap_job *job);

// Encapsulates the packets whose verdict is PACKET_PENDING; jobs[i] belongs to packets[i] and is read only then.
// packets: parsed, with port_out and hash set; the hash's low 32 bits are the entropy of source address, port and flow label.
// Afterwards data, length, headroom and tailroom are those of the new frame, padding is gone, family, l3_length and
// l4_offset (0) describe the outer header; both MAC addresses are undefined until encap_set_macs(). VLAN tags: the
// port's vlan and the incoming priority if it has one; else those of the frame where it leaves by the port it came in,
// and none elsewhere. The inner TTL or hop limit is one less: the balancer forwards (RFC 2003 section 3.1, RFC 2473
// section 3.1, RFC 1812 section 5.3.1), and only the inner TTL ends a loop of tunnels.
// On failure the verdict is PACKET_DROP and the packet's bytes are as they came, fit to be quoted:
//	ttl_expired	TTL or hop limit below 2	-> answer_time_exceeded()
//	too_big		does not fit into the MTU with its outer header; neither side of the tunnel fragments
//			-> answer_too_big(), with DF set or not
//	link_broadcast	the frame's destination MAC is a group (RFC 1812 section 5.3.4)
//	no_headroom	less room in front than encap_overhead(), and 4 bytes for a tag that was not there
//	no_source_address	neither service nor port has an address of the outer family
// Context: any. Cost: see docs/wire.md section 8.
void encap_burst(struct packet *packets, const struct encap_job *jobs, unsigned count);

// Writes both MAC addresses of a frame: the last thing that is done to a packet.
static inline void encap_set_macs(
	struct packet *packet, const uint8_t destination[static 6], const uint8_t source[static 6])
{
	struct wire_ethernet *ethernet = (struct wire_ethernet *)packet->data;

	memcpy(ethernet->destination, destination, WIRE_MAC_BYTES);
	memcpy(ethernet->source, source, WIRE_MAC_BYTES);
}
