// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
// Shares a NIC between the dataplane (AF_XDP) and the kernel: what is for a virtual address or an address of the
// dataplane's port goes to the AF_XDP socket of its queue, all else to the kernel as if nothing were there.
//
// DPDK's net_af_xdp loads it (xdp_prog=xdp_steer.bpf.o), attaches it, and puts its sockets into xsks_map; the map's
// name is DPDK's rule. steer_addresses is filled by whoever knows the addresses (bpf/steer.h).
#include "bpf/headers.bpf.h"

#include "bpf/bpf_shared.h"

#define ARP_HARDWARE_ETHERNET         1   // <linux/if_arp.h> does not compile for BPF
#define ICMPV6_NEIGHBOUR_SOLICITATION 135 // RFC 4861 section 4.3

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, STEER_SOCKETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, STEER_ADDRESSES_MAX);
	__type(key, struct decap_prefix);
	__type(value, __u32);
} steer_addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} steer_counters SEC(".maps");

// RFC 826 with Ethernet and IPv4.
struct arp_ipv4 {
	__be16 hardware_type;
	__be16 protocol_type;
	__u8 hardware_bytes;
	__u8 protocol_bytes;
	__be16 operation;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
};

// RFC 4861 section 4.3.
struct neighbour_solicitation {
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 reserved;
	__u8 target[16];
};

// What an address is to us: enum steer_kind, or 0.
static __always_inline __u32 kind_of(__u8 family, const void *address)
{
	struct decap_prefix key = {.bits = DECAP_PREFIX_BASE_BITS + 128, .family = family};
	const __u32 *kind;

	if (family == DECAP_V4)
		key.bits = DECAP_PREFIX_BASE_BITS + 32;
	__builtin_memcpy(key.bytes, address, family == DECAP_V4 ? 4 : 16);
	kind = bpf_map_lookup_elem(&steer_addresses, &key);
	return kind ? *kind : 0;
}

static __always_inline __u32 counter_of(__u32 kind)
{
	if (kind == STEER_VIP)
		return STEER_COUNTER_vip;
	return kind == STEER_PORT ? STEER_COUNTER_port : STEER_COUNTER_kernel;
}

static __always_inline __u32 judge_arp(struct cursor *cursor)
{
	const struct arp_ipv4 *arp = cursor_take(cursor, sizeof(*arp));

	if (arp == NULL || arp->hardware_type != bpf_htons(ARP_HARDWARE_ETHERNET) ||
		arp->protocol_type != bpf_htons(ETH_P_IP))
		return STEER_COUNTER_kernel;
	// Requests for our addresses, and replies to our own requests.
	return kind_of(DECAP_V4, arp->target) ? STEER_COUNTER_neighbour : STEER_COUNTER_kernel;
}

static __always_inline __u32 judge_v6(struct cursor *cursor)
{
	const struct ipv6hdr *ip = cursor_take(cursor, sizeof(*ip));
	const struct neighbour_solicitation *solicitation;
	__u32 kind;

	if (ip == NULL)
		return STEER_COUNTER_kernel;
	kind = kind_of(DECAP_V6, &ip->daddr);
	if (kind != 0)
		return counter_of(kind);
	// A solicitation goes to a multicast group; its target says whom it asks for.
	if (ip->nexthdr != IPPROTO_ICMPV6 || ip->daddr.s6_addr[0] != 0xff)
		return STEER_COUNTER_kernel;
	solicitation = cursor_take(cursor, sizeof(*solicitation));
	if (solicitation == NULL || solicitation->type != ICMPV6_NEIGHBOUR_SOLICITATION)
		return STEER_COUNTER_kernel;
	return kind_of(DECAP_V6, solicitation->target) ? STEER_COUNTER_neighbour
						       : STEER_COUNTER_kernel;
}

static __always_inline __u32 judge(struct cursor *cursor)
{
	__be16 type = cursor_take_ethernet(cursor);
	const struct iphdr *ip;

	if (type == bpf_htons(ETH_P_ARP))
		return judge_arp(cursor);
	if (type == bpf_htons(ETH_P_IPV6))
		return judge_v6(cursor);
	if (type != bpf_htons(ETH_P_IP))
		return STEER_COUNTER_kernel;
	ip = cursor_take(cursor, sizeof(*ip));
	return ip ? counter_of(kind_of(DECAP_V4, &ip->daddr)) : STEER_COUNTER_kernel;
}

SEC("xdp")
int ringway_steer(struct xdp_md *ctx)
{
	struct cursor cursor = {(void *)(long)ctx->data, (void *)(long)ctx->data_end};
	__u32 queue = ctx->rx_queue_index, counter = judge(&cursor);
	int steered = counter != STEER_COUNTER_kernel;
	__u64 *count;

	if (steered && bpf_map_lookup_elem(&xsks_map, &queue) == NULL) {
		counter = STEER_COUNTER_no_socket;
		steered = 0;
	}
	count = bpf_map_lookup_elem(&steer_counters, &counter);
	if (count != NULL)
		(*count)++;
	return steered ? (int)bpf_redirect_map(&xsks_map, queue, XDP_PASS) : XDP_PASS;
}

char program_license[] SEC("license") = "GPL";
