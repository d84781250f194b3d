/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
// What the BPF programs and user space agree on: map keys, map values, counters. Fixed widths, no unnamed
// padding, so that both compilers and every loader version see the same bytes. Addresses are in network byte order.
#pragma once

#include <linux/types.h>

// Names in the kernel (15 letters): a loader knows its own programs and maps by them.
#define DECAP_XDP_NAME "ringway_decap"
#define DECAP_TC_NAME  "ringway_tcdecap"
#define HC_ENCAP_NAME  "ringway_hcencap"
#define STEER_NAME     "ringway_steer"

#define DECAP_MAGIC        0x44575252u // "RRWD"
#define DECAP_VERSION      1u
#define DECAP_VIPS_MAX     4096u
#define DECAP_LOCALS_MAX   1024u
#define DECAP_GUE_PORT     6080u
#define DECAP_HEADER_BYTES 128u // Ethernet, two tags, IPv6, 8 option bytes, UDP, GUE, IPv6 are 122

enum decap_family {
	DECAP_V4 = 4,
	DECAP_V6 = 6,
};

enum decap_tunnel {
	DECAP_IPIP = 0, // RFC 2003, RFC 2473, RFC 4213
	DECAP_GUE = 1,  // draft-ietf-intarea-gue-09, variants 0 and 1
	DECAP_GRE = 2,  // RFC 2784
	DECAP_TUNNEL_COUNT,
};

// Counters in the order of the map. The first 12 are tunnel * 4 + (outer is IPv6) * 2 + (inner is IPv6).
#define DECAP_COUNTERS(COUNTER)                                                              \
	COUNTER(ipip_v4_in_v4, "IPIP removed, IPv4 in IPv4")                                 \
	COUNTER(ipip_v6_in_v4, "IPIP removed, IPv6 in IPv4")                                 \
	COUNTER(ipip_v4_in_v6, "IPIP removed, IPv4 in IPv6")                                 \
	COUNTER(ipip_v6_in_v6, "IPIP removed, IPv6 in IPv6")                                 \
	COUNTER(gue_v4_in_v4, "GUE removed, IPv4 in IPv4")                                   \
	COUNTER(gue_v6_in_v4, "GUE removed, IPv6 in IPv4")                                   \
	COUNTER(gue_v4_in_v6, "GUE removed, IPv4 in IPv6")                                   \
	COUNTER(gue_v6_in_v6, "GUE removed, IPv6 in IPv6")                                   \
	COUNTER(gre_v4_in_v4, "GRE removed, IPv4 in IPv4")                                   \
	COUNTER(gre_v6_in_v4, "GRE removed, IPv6 in IPv4")                                   \
	COUNTER(gre_v4_in_v6, "GRE removed, IPv4 in IPv6")                                   \
	COUNTER(gre_v6_in_v6, "GRE removed, IPv6 in IPv6")                                   \
	COUNTER(other, "passed: not one of our tunnels to this host")                        \
	COUNTER(not_vip, "passed: tunnel to this host, but not for a virtual address")       \
	COUNTER(not_local, "passed: the virtual address is not on this host, it would loop") \
	COUNTER(fragment, "passed: fragment of a tunnel packet")                             \
	COUNTER(unsupported, "passed: options, GUE or GRE fields that are not handled")      \
	COUNTER(malformed, "passed: cut, wrong length, checksum, version or hop limit")      \
	COUNTER(ecn_dropped, "dropped: congestion mark on a flow without ECN (RFC 6040)")    \
	COUNTER(failed, "dropped: the kernel could not move the packet")

#define DECAP_COUNTER_ENUM(name, text) DECAP_COUNTER_##name,
enum decap_counter {
	DECAP_COUNTERS(DECAP_COUNTER_ENUM) DECAP_COUNTER_COUNT,
};
#undef DECAP_COUNTER_ENUM

#define DECAP_COUNTER_TUNNELS DECAP_COUNTER_other // counters below count removed tunnels

struct decap_count {
	__u64 packets;
	__u64 bytes; // as they came
};

#define DECAP_FLAG_IPIP   (1u << DECAP_IPIP)
#define DECAP_FLAG_GUE    (1u << DECAP_GUE)
#define DECAP_FLAG_GRE    (1u << DECAP_GRE)
#define DECAP_FLAG_GUARD  (1u << 8) // ask the routing table whether the virtual address is here
#define DECAP_FLAG_CLSACT (1u << 9) // for the loader alone: attach made the clsact qdisc

// The one value of decap_config.
struct decap_config {
	__u32 magic;
	__u32 version;
	__u32 flags;
	__be16 gue_port;
	__u16 reserved;
};

// Key of decap_locals: the addresses that tunnels end at. IPv4 stands in the first four bytes, the rest is zero.
struct decap_address {
	__u8 bytes[16];
	__u8 family; // enum decap_family
	__u8 reserved[3];
};

#define DECAP_PREFIX_BASE_BITS 32u // the family in front of the address

// Key of decap_vips, a longest-prefix trie: the family is compared first, so it is part of the prefix.
struct decap_prefix {
	__u32 bits; // DECAP_PREFIX_BASE_BITS + prefix length
	__u8 family;
	__u8 reserved[3];
	__u8 bytes[16];
};

#define HC_ENCAP_MARKS_MAX 4096u

// Value of hc_tunnels, key is the socket mark: how to wrap packets of sockets with this mark.
struct hc_tunnel {
	__u8 type; // enum decap_tunnel
	__u8 family;
	__be16 gue_port;
	__u32 ifindex; // where the backend is reached; 0: the interface that the program is on
	__u8 source[16];
	__u8 destination[16]; // the backend
};

#define HC_COUNTERS(COUNTER)                                         \
	COUNTER(encapsulated, "wrapped and sent to the backend")     \
	COUNTER(unmarked, "passed: no tunnel for this mark")         \
	COUNTER(not_ip, "passed: marked, but neither IPv4 nor IPv6") \
	COUNTER(failed, "dropped: no room for the header")

#define HC_COUNTER_ENUM(name, text) HC_COUNTER_##name,
enum hc_counter {
	HC_COUNTERS(HC_COUNTER_ENUM) HC_COUNTER_COUNT,
};
#undef HC_COUNTER_ENUM

#define STEER_ADDRESSES_MAX 65536u
#define STEER_SOCKETS_MAX   64u

// Value of steer_addresses, key is struct decap_prefix: what an address is.
enum steer_kind {
	STEER_VIP = 1,  // a virtual address
	STEER_PORT = 2, // an address of the worker's port
};

#define STEER_COUNTERS(COUNTER)                                                           \
	COUNTER(vip, "to the worker: for a virtual address")                              \
	COUNTER(port, "to the worker: for an address of its port")                        \
	COUNTER(neighbour, "to the worker: ARP or neighbour discovery for its addresses") \
	COUNTER(kernel, "to the kernel: everything else")                                 \
	COUNTER(no_socket, "to the kernel: for the worker, but no AF_XDP socket on this queue")

#define STEER_COUNTER_ENUM(name, text) STEER_COUNTER_##name,
enum steer_counter {
	STEER_COUNTERS(STEER_COUNTER_ENUM) STEER_COUNTER_COUNT,
};
#undef STEER_COUNTER_ENUM
