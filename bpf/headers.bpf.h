/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
// A cursor over packet bytes for BPF programs: every header is taken with one bounds check, in the form that
// the verifier understands, and never without it.
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define VLAN_TAGS_MAX        2
#define IPV4_FRAGMENT_MASK   0x3fff // more fragments, or an offset
#define IPV4_FRAGMENT_OFFSET 0x1fff
#define ECN_MASK             3u

struct cursor {
	void *at;
	void *end;
};

struct vlan_tag {
	__be16 control;
	__be16 type;
};

struct gre_header {
	__be16 flags; // RFC 2784: checksum present, and version; RFC 2890: key, sequence
	__be16 type;
};

// Variant 0, draft-ietf-intarea-gue-09 section 3.
struct gue_header {
	__u8 variant_control_length;
	__u8 protocol;
	__be16 flags;
};

// Takes a header of a constant size, or returns NULL at the end of the packet.
static __always_inline void *cursor_take(struct cursor *cursor, __u32 bytes)
{
	void *at = cursor->at;

	if (at + bytes > cursor->end)
		return NULL;
	cursor->at = at + bytes;
	return at;
}

static __always_inline int is_vlan(__be16 type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

// Takes Ethernet and up to two VLAN tags. Returns the Ethernet type behind them in network order, 0 when cut.
static __always_inline __be16 cursor_take_ethernet(struct cursor *cursor)
{
	struct ethhdr *ethernet = cursor_take(cursor, sizeof(*ethernet));
	__be16 type;

	if (ethernet == NULL)
		return 0;
	type = ethernet->h_proto;
#pragma unroll
	for (int i = 0; i < VLAN_TAGS_MAX; i++) {
		struct vlan_tag *tag;

		if (!is_vlan(type))
			break;
		tag = cursor_take(cursor, sizeof(*tag));
		if (tag == NULL)
			return 0;
		type = tag->type;
	}
	return type;
}

// The one's complement sum of an IPv4 header without options; 0xffff when its checksum is right.
static __always_inline __u32 ipv4_header_sum(const struct iphdr *ip)
{
	const __u16 *words = (const __u16 *)ip;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < (int)sizeof(*ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u8 ipv6_traffic_class(const struct ipv6hdr *ip)
{
	return (__u8)(ip->priority << 4 | ip->flow_lbl[0] >> 4);
}

// Sets the two ECN bits and repairs the checksum (RFC 1624).
static __always_inline void ipv4_set_ecn(struct iphdr *ip, __u8 ecn)
{
	__u32 before = *(__u16 *)ip, sum;

	ip->tos = (__u8)((ip->tos & ~ECN_MASK) | ecn);
	sum = (__u16)~ip->check + (__u16)~before + *(__u16 *)ip;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = (__u16)~sum;
}

static __always_inline void ipv6_set_ecn(struct ipv6hdr *ip, __u8 ecn)
{
	ip->flow_lbl[0] = (__u8)((ip->flow_lbl[0] & ~(ECN_MASK << 4)) | ecn << 4);
}
