// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
// Sends health checks the way of the data. A checker connects to the virtual address from a socket with a mark
// (SO_MARK); this program, on tc egress, finds the backend and tunnel of the mark, puts the same header in front
// that the dataplane would, and hands the packet to the neighbour layer. So a check sees what a client sees: a
// backend whose tunnel or virtual address is missing fails it.
#include "bpf/headers.bpf.h"

#include "bpf/bpf_shared.h"

#include <linux/pkt_cls.h>

#define OUTER_HOP_LIMIT 64
#define GUE_SOURCE_PORT 0xc000 // the dataplane's entropy takes the 14 bits below

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HC_ENCAP_MARKS_MAX);
	__type(key, __u32);
	__type(value, struct hc_tunnel);
} hc_tunnels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HC_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, struct decap_count);
} hc_counters SEC(".maps");

// The largest header, laid out front to back; smaller ones are stored in pieces.
struct udp_gue {
	struct udphdr udp;
	struct gue_header gue;
};

static __always_inline void book(__u32 counter, __u32 bytes)
{
	struct decap_count *count = bpf_map_lookup_elem(&hc_counters, &counter);

	if (count == NULL)
		return;
	count->packets++;
	count->bytes += bytes;
}

static __always_inline __u32 tunnel_header_bytes(__u8 type)
{
	if (type == DECAP_GUE)
		return sizeof(struct udp_gue);
	return type == DECAP_GRE ? sizeof(struct gre_header) : 0;
}

static __always_inline __u8 outer_protocol(__u8 type, int inner_is_v6)
{
	if (type == DECAP_GUE)
		return IPPROTO_UDP;
	if (type == DECAP_GRE)
		return IPPROTO_GRE;
	return inner_is_v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
}

static __always_inline __u64 room_flags(const struct hc_tunnel *tunnel)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;

	flags |= tunnel->family == DECAP_V6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6
					    : BPF_F_ADJ_ROOM_ENCAP_L3_IPV4;
	if (tunnel->type == DECAP_GUE)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	if (tunnel->type == DECAP_GRE)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L4_GRE;
	return flags;
}

static __always_inline long store_outer_v4(struct __sk_buff *skb, const struct hc_tunnel *tunnel,
	__u8 protocol, __u32 packet_bytes, __u8 tos)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = tos, // RFC 6040 section 4.1, normal mode: ECN is copied, and here the DSCP too
		.tot_len = bpf_htons((__u16)packet_bytes),
		.frag_off = bpf_htons(0x4000),
		.ttl = OUTER_HOP_LIMIT,
		.protocol = protocol,
	};

	__builtin_memcpy(&ip.saddr, tunnel->source, sizeof(ip.saddr));
	__builtin_memcpy(&ip.daddr, tunnel->destination, sizeof(ip.daddr));
	ip.check = (__u16)~ipv4_header_sum(&ip);
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip), 0);
}

static __always_inline long store_outer_v6(struct __sk_buff *skb, const struct hc_tunnel *tunnel,
	__u8 protocol, __u32 payload_bytes, __u8 traffic_class)
{
	struct ipv6hdr ip = {
		.version = 6,
		.priority = traffic_class >> 4,
		.flow_lbl = {(__u8)(traffic_class << 4), 0, 0},
		.payload_len = bpf_htons((__u16)payload_bytes),
		.nexthdr = protocol,
		.hop_limit = OUTER_HOP_LIMIT,
	};

	__builtin_memcpy(&ip.saddr, tunnel->source, sizeof(ip.saddr));
	__builtin_memcpy(&ip.daddr, tunnel->destination, sizeof(ip.daddr));
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &ip, sizeof(ip), 0);
}

static __always_inline long store_tunnel_header(struct __sk_buff *skb,
	const struct hc_tunnel *tunnel, __u32 offset, __u32 inner_bytes, int inner_is_v6)
{
	struct udp_gue udp_gue = {
		.udp = {.source = bpf_htons(GUE_SOURCE_PORT | (skb->mark & 0x3fff)),
			.dest = tunnel->gue_port,
			.len = bpf_htons((__u16)(sizeof(udp_gue) + inner_bytes))},
		.gue = {.protocol = inner_is_v6 ? IPPROTO_IPV6 : IPPROTO_IPIP},
	};
	struct gre_header gre = {.type = inner_is_v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP)};

	if (tunnel->type == DECAP_GUE)
		return bpf_skb_store_bytes(skb, offset, &udp_gue, sizeof(udp_gue), 0);
	if (tunnel->type == DECAP_GRE)
		return bpf_skb_store_bytes(skb, offset, &gre, sizeof(gre), 0);
	return 0;
}

// Wraps a packet whose IP header starts behind the Ethernet header. Returns 0, or -1 when there is no room.
static __always_inline int wrap(
	struct __sk_buff *skb, const struct hc_tunnel *tunnel, int inner_is_v6)
{
	__u32 inner_bytes = skb->len - (__u32)sizeof(struct ethhdr);
	__u32 tunnel_bytes = tunnel_header_bytes(tunnel->type);
	__u32 ip_bytes = tunnel->family == DECAP_V6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	__u8 protocol = outer_protocol(tunnel->type, inner_is_v6), first[2], traffic_class;
	__be16 type = tunnel->family == DECAP_V6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	long error;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), first, sizeof(first)) != 0)
		return -1;
	traffic_class = inner_is_v6 ? (__u8)(first[0] << 4 | first[1] >> 4) : first[1];
	if (bpf_skb_adjust_room(
		    skb, (int)(ip_bytes + tunnel_bytes), BPF_ADJ_ROOM_MAC, room_flags(tunnel)) != 0)
		return -1;
	if (tunnel->family == DECAP_V6)
		error = store_outer_v6(
			skb, tunnel, protocol, tunnel_bytes + inner_bytes, traffic_class);
	else
		error = store_outer_v4(skb, tunnel, protocol, ip_bytes + tunnel_bytes + inner_bytes,
			traffic_class);
	if (error != 0 ||
		store_tunnel_header(skb, tunnel, (__u32)sizeof(struct ethhdr) + ip_bytes,
			inner_bytes, inner_is_v6) != 0)
		return -1;
	return (int)bpf_skb_store_bytes(
		skb, __builtin_offsetof(struct ethhdr, h_proto), &type, sizeof(type), 0);
}

SEC("tc")
int ringway_hcencap(struct __sk_buff *skb)
{
	__u32 mark = skb->mark, bytes = skb->len;
	const struct hc_tunnel *tunnel;

	// Other traffic leaves here.
	if (mark == 0)
		return TC_ACT_UNSPEC;
	tunnel = bpf_map_lookup_elem(&hc_tunnels, &mark);
	if (tunnel == NULL) {
		book(HC_COUNTER_unmarked, bytes);
		return TC_ACT_UNSPEC;
	}
	if (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6)) {
		book(HC_COUNTER_not_ip, bytes);
		return TC_ACT_UNSPEC;
	}
	if (wrap(skb, tunnel, skb->protocol == bpf_htons(ETH_P_IPV6)) != 0) {
		book(HC_COUNTER_failed, bytes);
		return TC_ACT_SHOT;
	}
	book(HC_COUNTER_encapsulated, bytes);
	// The packet meets tc egress again on its way out, perhaps on this interface: it is wrapped once.
	skb->mark = 0;
	return (int)bpf_redirect_neigh(
		tunnel->ifindex ? tunnel->ifindex : skb->ifindex, NULL, 0, 0);
}

char program_license[] SEC("license") = "GPL";
