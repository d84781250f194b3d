// SPDX-License-Identifier: Apache-2.0
// What stands on the wire, byte for byte. Every struct is packed: headers lie at any address, and a packed
// field is loaded with plain moves where the CPU allows it. Fields named _be are in network byte order.
#pragma once

#include <stdint.h>

#define WIRE_PACKED __attribute__((packed))

#define WIRE_MAC_BYTES 6u
#define WIRE_ETHERNET_MIN \
	60u // shortest frame without its check sequence (IEEE 802.3 section 3.2.7)
#define WIRE_ETHERTYPE_IP4    0x0800u
#define WIRE_ETHERTYPE_ARP    0x0806u
#define WIRE_ETHERTYPE_IP6    0x86ddu
#define WIRE_ETHERTYPE_VLAN   0x8100u // IEEE 802.1Q customer tag
#define WIRE_ETHERTYPE_S_VLAN 0x88a8u // IEEE 802.1ad service tag

struct wire_ethernet {
	uint8_t destination[WIRE_MAC_BYTES];
	uint8_t source[WIRE_MAC_BYTES];
	uint16_t type_be;
} WIRE_PACKED;

// The type of a tag stands in the two bytes before it, so tag control and the next type come in pairs.
struct wire_vlan {
	uint16_t control_be;
	uint16_t type_be;
} WIRE_PACKED;

struct wire_arp {
	uint16_t hardware_be; // 1: Ethernet
	uint16_t protocol_be; // WIRE_ETHERTYPE_IP4
	uint8_t hardware_bytes;
	uint8_t protocol_bytes;
	uint16_t operation_be;
	uint8_t sender_mac[WIRE_MAC_BYTES];
	uint8_t sender[4];
	uint8_t target_mac[WIRE_MAC_BYTES];
	uint8_t target[4];
} WIRE_PACKED;

#define WIRE_ARP_REQUEST 1u
#define WIRE_ARP_REPLY   2u

// RFC 791 section 3.1.
struct wire_ip4 {
	uint8_t version_length; // 4 << 4 | header length in 32-bit words
	uint8_t tos;            // DSCP and ECN
	uint16_t total_length_be;
	uint16_t id_be;
	uint16_t fragment_be; // WIRE_IP4_DF, WIRE_IP4_MF, offset in 8-byte units
	uint8_t ttl;
	uint8_t protocol;
	uint16_t checksum_be;
	uint8_t source[4];
	uint8_t destination[4];
} WIRE_PACKED;

#define WIRE_IP4_DF          0x4000u
#define WIRE_IP4_MF          0x2000u
#define WIRE_IP4_OFFSET_MASK 0x1fffu
#define WIRE_IP4_MTU_MIN     68u   // RFC 791 section 3.2
#define WIRE_IP6_MTU_MIN     1280u // RFC 8200 section 5

// RFC 8200 section 3.
struct wire_ip6 {
	uint32_t version_class_label_be; // version 4 bits, traffic class 8, flow label 20
	uint16_t payload_length_be;
	uint8_t next_header;
	uint8_t hop_limit;
	uint8_t source[16];
	uint8_t destination[16];
} WIRE_PACKED;

// The part that hop-by-hop, routing, destination options and authentication headers have in common.
struct wire_ip6_extension {
	uint8_t next_header;
	uint8_t length; // 8-byte units beyond the first; authentication: 4-byte units minus 2
	uint8_t routing_type;
	uint8_t segments_left;
} WIRE_PACKED;

// RFC 8200 section 4.5.
struct wire_ip6_fragment {
	uint8_t next_header;
	uint8_t reserved;
	uint16_t offset_be; // offset in 8-byte units << 3 | reserved 2 bits | more fragments
	uint32_t id_be;
} WIRE_PACKED;

#define WIRE_IP6_MF          0x0001u
#define WIRE_IP6_OFFSET_MASK 0xfff8u

// Ports stand first in TCP, UDP and their kin.
struct wire_ports {
	uint16_t source_be;
	uint16_t destination_be;
} WIRE_PACKED;

// RFC 9293 section 3.1.
struct wire_tcp {
	uint16_t source_port_be;
	uint16_t destination_port_be;
	uint32_t sequence_be;
	uint32_t acknowledgment_be;
	uint8_t data_offset; // in 32-bit words << 4
	uint8_t flags;
	uint16_t window_be;
	uint16_t checksum_be;
	uint16_t urgent_be;
} WIRE_PACKED;

#define WIRE_TCP_FIN 0x01u
#define WIRE_TCP_SYN 0x02u
#define WIRE_TCP_RST 0x04u
#define WIRE_TCP_ACK 0x10u

// RFC 768.
struct wire_udp {
	uint16_t source_port_be;
	uint16_t destination_port_be;
	uint16_t length_be;
	uint16_t checksum_be;
} WIRE_PACKED;

// RFC 792 and RFC 4443 section 2.1: the same eight bytes in front of every message.
struct wire_icmp {
	uint8_t type;
	uint8_t code;
	uint16_t checksum_be;
	uint16_t word0_be; // echo: identifier. ICMP fragmentation needed: unused
	uint16_t word1_be; // echo: sequence. ICMP fragmentation needed: MTU (RFC 1191 section 4)
} WIRE_PACKED;

#define WIRE_ICMP_ECHO_REPLY        0u
#define WIRE_ICMP_UNREACHABLE       3u
#define WIRE_ICMP_ECHO_REQUEST      8u
#define WIRE_ICMP_TIME_EXCEEDED     11u
#define WIRE_ICMP_PARAMETER_PROBLEM 12u
#define WIRE_ICMP_FRAG_NEEDED       4u // code of WIRE_ICMP_UNREACHABLE

#define WIRE_ICMP6_UNREACHABLE       1u
#define WIRE_ICMP6_TOO_BIG           2u
#define WIRE_ICMP6_TIME_EXCEEDED     3u
#define WIRE_ICMP6_PARAMETER_PROBLEM 4u
#define WIRE_ICMP6_ECHO_REQUEST      128u
#define WIRE_ICMP6_ECHO_REPLY        129u
#define WIRE_ICMP6_SOLICITATION      135u
#define WIRE_ICMP6_ADVERTISEMENT     136u

// Neighbour solicitation and advertisement, RFC 4861 sections 4.3 and 4.4. Options follow.
struct wire_nd {
	uint8_t type;
	uint8_t code;
	uint16_t checksum_be;
	uint32_t flags_be; // WIRE_ND_*, advertisements only
	uint8_t target[16];
} WIRE_PACKED;

// A link-layer address option, RFC 4861 section 4.6.1.
struct wire_nd_option {
	uint8_t type;
	uint8_t length; // 8-byte units, this header included
	uint8_t mac[WIRE_MAC_BYTES];
} WIRE_PACKED;

// What a report of one group stands on the wire as: hop-by-hop options with a router alert (RFC 2711), the report and its
// record (RFC 3810 sections 5.2 and 5.2.4).
struct wire_mld_report {
	uint8_t next_header;
	uint8_t options_units;
	uint8_t alert[4];
	uint8_t padding[2];
	uint8_t type;
	uint8_t code;
	uint16_t checksum_be;
	uint16_t reserved_be;
	uint16_t record_count_be;
	uint8_t record_type;
	uint8_t auxiliary_words;
	uint16_t source_count_be;
	uint8_t group[16];
} WIRE_PACKED;

#define WIRE_ICMP6_MLD2_REPORT 143u
#define WIRE_MLD2_TO_EXCLUDE   4u // without sources: a join

#define WIRE_ND_ROUTER        0x80000000u
#define WIRE_ND_SOLICITED     0x40000000u
#define WIRE_ND_OVERRIDE      0x20000000u
#define WIRE_ND_OPTION_SOURCE 1u
#define WIRE_ND_OPTION_TARGET 2u
#define WIRE_ND_HOP_LIMIT     255u

// RFC 2784 section 2.1, neither checksum nor key.
struct wire_gre {
	uint16_t flags_be;
	uint16_t protocol_be; // Ethernet type of the packet inside
} WIRE_PACKED;

// Generic UDP encapsulation, variant 0 (draft-ietf-intarea-gue section 3): no options, no control message.
struct wire_gue {
	uint8_t variant_length; // variant 2 bits, control 1 bit, header length 5 bits: all zero
	uint8_t protocol;       // IP protocol number of the packet inside: 4 or 41
	uint16_t flags_be;
} WIRE_PACKED;

// Protocol numbers, named here so that no libc header is needed on the hot path.
#define WIRE_PROTO_HOP_BY_HOP     0u
#define WIRE_PROTO_ICMP           1u
#define WIRE_PROTO_IP4            4u
#define WIRE_PROTO_TCP            6u
#define WIRE_PROTO_UDP            17u
#define WIRE_PROTO_IP6            41u
#define WIRE_PROTO_ROUTING        43u
#define WIRE_PROTO_FRAGMENT       44u
#define WIRE_PROTO_GRE            47u
#define WIRE_PROTO_AUTHENTICATION 51u
#define WIRE_PROTO_ICMP6          58u
#define WIRE_PROTO_DESTINATION    60u

_Static_assert(sizeof(struct wire_ethernet) == 14, "IEEE 802.3");
_Static_assert(sizeof(struct wire_vlan) == 4, "IEEE 802.1Q");
_Static_assert(sizeof(struct wire_arp) == 28, "RFC 826");
_Static_assert(sizeof(struct wire_ip4) == 20, "RFC 791");
_Static_assert(sizeof(struct wire_ip6) == 40, "RFC 8200");
_Static_assert(sizeof(struct wire_ip6_extension) == 4, "RFC 8200");
_Static_assert(sizeof(struct wire_ip6_fragment) == 8, "RFC 8200");
_Static_assert(sizeof(struct wire_tcp) == 20, "RFC 9293");
_Static_assert(sizeof(struct wire_udp) == 8, "RFC 768");
_Static_assert(sizeof(struct wire_icmp) == 8, "RFC 792");
_Static_assert(sizeof(struct wire_nd) == 24, "RFC 4861");
_Static_assert(sizeof(struct wire_mld_report) == 36, "RFC 3810");
_Static_assert(sizeof(struct wire_nd_option) == 8, "RFC 4861");
_Static_assert(sizeof(struct wire_gre) == 4, "RFC 2784");
_Static_assert(sizeof(struct wire_gue) == 4, "GUE variant 0");
