// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
// Removes the tunnel header on a backend: outer IPv4 or IPv6 with IPIP, GUE or GRE in, the inner packet to the local
// stack. A packet is changed only when all of these hold, otherwise it passes as it came:
//
//	outer destination in decap_locals   the tunnel ends at this host
//	tunnel type switched on             decap_config
//	inner destination in decap_vips     somebody asked for it
//	inner destination is local          else the kernel would forward it, perhaps back to the balancer
//
// The same judgement serves XDP (the header is cut before an skb exists) and tc ingress (for devices whose XDP hook is
// taken).
#include "bpf/headers.bpf.h"

#include "bpf/bpf_shared.h"

#include <linux/pkt_cls.h>

// linux/bpf.h of Linux 6.3 names them; the tc program needs them only where the families differ.
#define ADJ_ROOM_DECAP_L3_IPV4 (1u << 7)
#define ADJ_ROOM_DECAP_L3_IPV6 (1u << 8)

#define GUE_CONTROL_OR_LENGTH 0x3f // not variant: control bit, length of optional fields
#define GUE_VARIANT(byte)     ((byte) >> 6)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decap_config);
} decap_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DECAP_LOCALS_MAX);
	__type(key, struct decap_address);
	__type(value, __u32);
} decap_locals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, DECAP_VIPS_MAX);
	__type(key, struct decap_prefix);
	__type(value, __u32);
} decap_vips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DECAP_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, struct decap_count);
} decap_counters SEC(".maps");

// What is known of a packet while the cursor moves through it.
struct tunnel {
	void *ctx;
	__u32 ifindex;
	__u32 left; // bytes behind the cursor that belong to the packet, by the lengths read so far
	__u32 strip; // bytes between the Ethernet header and the inner packet
	__u8 outer_ecn;
	__u8 protocol; // what the last header announced
	__u8 type;     // enum decap_tunnel
	__u8 outer_is_v6;
};

static __always_inline int is_local(__u8 family, const void *address)
{
	struct decap_address key = {.family = family};

	__builtin_memcpy(key.bytes, address, family == DECAP_V4 ? 4 : 16);
	return bpf_map_lookup_elem(&decap_locals, &key) != NULL;
}

static __always_inline int is_vip(__u8 family, const void *address)
{
	struct decap_prefix key = {.bits = DECAP_PREFIX_BASE_BITS + 128, .family = family};

	if (family == DECAP_V4)
		key.bits = DECAP_PREFIX_BASE_BITS + 32;
	__builtin_memcpy(key.bytes, address, family == DECAP_V4 ? 4 : 16);
	return bpf_map_lookup_elem(&decap_vips, &key) != NULL;
}

// Tells whether the kernel would send the inner packet on instead of keeping it. Then we were given a virtual address
// that is not (or no longer) ours; forwarded, it could come back to the balancer and here again.
static __always_inline int would_forward(const struct tunnel *tunnel, struct bpf_fib_lookup *query)
{
	long answer;

	query->ifindex = tunnel->ifindex;
	answer = bpf_fib_lookup(tunnel->ctx, query, sizeof(*query), 0);
	return answer == BPF_FIB_LKUP_RET_SUCCESS || answer == BPF_FIB_LKUP_RET_UNSUPP_LWT ||
		answer == BPF_FIB_LKUP_RET_NO_NEIGH || answer == BPF_FIB_LKUP_RET_FRAG_NEEDED;
}

// RFC 6040 section 4.2, figure 4. Returns the ECN bits of the packet that goes on, or -1 to drop it.
static __always_inline int ecn_decapsulate(__u8 outer, __u8 inner)
{
	enum {
		not_ect,
		ect1,
		ect0,
		ce
	};

	if (outer == ce)
		return inner == not_ect ? -1 : ce;
	if (outer == ect1 && inner == ect0)
		return ect1;
	return inner;
}

// Cuts the bytes that the packet claims behind the cursor. Returns 0 when it claims more than there are.
static __always_inline int claim(struct tunnel *tunnel, __u32 header_bytes, __u32 total_bytes)
{
	if (total_bytes < header_bytes || total_bytes > tunnel->left)
		return 0;
	tunnel->left = total_bytes - header_bytes;
	return 1;
}

static __always_inline int is_tunnel(__u8 protocol, const struct cursor *cursor,
	const struct decap_config *config, struct tunnel *tunnel)
{
	const struct udphdr *udp = cursor->at;

	tunnel->protocol = protocol;
	switch (protocol) {
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
		tunnel->type = DECAP_IPIP;
		break;
	case IPPROTO_GRE:
		tunnel->type = DECAP_GRE;
		break;
	case IPPROTO_UDP:
		tunnel->type = DECAP_GUE;
		// The port comes before the address maps, so the host's own UDP traffic stays cheap.
		if ((void *)(udp + 1) > cursor->end || udp->dest != config->gue_port)
			return 0;
		break;
	default:
		return 0;
	}
	return (config->flags & 1u << tunnel->type) != 0;
}

// The three readers of outer headers return DECAP_COUNTER_COUNT to go on, else the counter that says why not.

static __always_inline int read_outer_v4(
	struct cursor *cursor, const struct decap_config *config, struct tunnel *tunnel)
{
	const struct iphdr *ip = cursor_take(cursor, sizeof(*ip));

	if (ip == NULL || ip->version != 4)
		return DECAP_COUNTER_other;
	// Later fragments have no ports, and options move them: such UDP is not known to be a tunnel.
	if (ip->protocol == IPPROTO_UDP &&
		(ip->ihl != 5 || ip->frag_off & bpf_htons(IPV4_FRAGMENT_OFFSET)))
		return DECAP_COUNTER_other;
	if (!is_tunnel(ip->protocol, cursor, config, tunnel) || !is_local(DECAP_V4, &ip->daddr))
		return DECAP_COUNTER_other;
	if (ip->ihl != 5)
		return ip->ihl < 5 ? DECAP_COUNTER_malformed : DECAP_COUNTER_unsupported;
	if (ip->frag_off & bpf_htons(IPV4_FRAGMENT_MASK))
		return DECAP_COUNTER_fragment;
	// The kernel checks the sum of the header that it sees, which is no longer this one.
	if (ipv4_header_sum(ip) != 0xffff || !claim(tunnel, sizeof(*ip), bpf_ntohs(ip->tot_len)))
		return DECAP_COUNTER_malformed;
	tunnel->strip = sizeof(*ip);
	tunnel->outer_ecn = ip->tos & ECN_MASK;
	return DECAP_COUNTER_COUNT;
}

static __always_inline int read_outer_v6(
	struct cursor *cursor, const struct decap_config *config, struct tunnel *tunnel)
{
	const struct ipv6hdr *ip = cursor_take(cursor, sizeof(*ip));
	const struct ipv6_opt_hdr *options;
	__u8 protocol;

	if (ip == NULL || ip->version != 6)
		return DECAP_COUNTER_other;
	protocol = ip->nexthdr;
	tunnel->strip = sizeof(*ip);
	// RFC 2473 section 4.1.1: Linux tunnels put an encapsulation limit, 8 bytes of destination options.
	if (protocol == IPPROTO_DSTOPTS) {
		options = cursor_take(cursor, 8);
		if (options == NULL || options->hdrlen != 0)
			return DECAP_COUNTER_other;
		protocol = options->nexthdr;
		tunnel->strip += 8;
	}
	if (!is_tunnel(protocol, cursor, config, tunnel) || !is_local(DECAP_V6, &ip->daddr))
		return DECAP_COUNTER_other;
	if (!claim(tunnel, tunnel->strip, sizeof(*ip) + bpf_ntohs(ip->payload_len)))
		return DECAP_COUNTER_malformed;
	tunnel->outer_is_v6 = 1;
	tunnel->outer_ecn = ipv6_traffic_class(ip) & ECN_MASK;
	return DECAP_COUNTER_COUNT;
}

static __always_inline int read_gue(struct cursor *cursor, struct tunnel *tunnel)
{
	const struct udphdr *udp = cursor_take(cursor, sizeof(*udp));
	const struct gue_header *gue = cursor->at;

	// The UDP checksum is not verified: zero is allowed in both families (RFC 6935, RFC 6936), and the inner
	// packet carries its own.
	if (udp == NULL || !claim(tunnel, sizeof(*udp), bpf_ntohs(udp->len)) ||
		(void *)(gue + 1) > cursor->end || tunnel->left < sizeof(*gue))
		return DECAP_COUNTER_malformed;
	tunnel->strip += sizeof(*udp);
	// Variant 1: the IP header follows, its version number is the variant.
	if (GUE_VARIANT(gue->variant_control_length) == 1) {
		tunnel->protocol =
			gue->variant_control_length >> 4 == 4 ? IPPROTO_IPIP : IPPROTO_IPV6;
		return DECAP_COUNTER_COUNT;
	}
	if (GUE_VARIANT(gue->variant_control_length) != 0 ||
		gue->variant_control_length & GUE_CONTROL_OR_LENGTH || gue->flags != 0)
		return DECAP_COUNTER_unsupported;
	tunnel->protocol = gue->protocol;
	cursor_take(cursor, sizeof(*gue));
	tunnel->left -= sizeof(*gue);
	tunnel->strip += sizeof(*gue);
	return DECAP_COUNTER_COUNT;
}

static __always_inline int read_gre(struct cursor *cursor, struct tunnel *tunnel)
{
	const struct gre_header *gre = cursor_take(cursor, sizeof(*gre));

	if (gre == NULL || tunnel->left < sizeof(*gre))
		return DECAP_COUNTER_malformed;
	if (gre->flags != 0)
		return DECAP_COUNTER_unsupported;
	if (gre->type == bpf_htons(ETH_P_IP))
		tunnel->protocol = IPPROTO_IPIP;
	else if (gre->type == bpf_htons(ETH_P_IPV6))
		tunnel->protocol = IPPROTO_IPV6;
	else
		return DECAP_COUNTER_unsupported;
	tunnel->left -= sizeof(*gre);
	tunnel->strip += sizeof(*gre);
	return DECAP_COUNTER_COUNT;
}

// The readers of inner headers mark congestion in place and return the final counter.

static __always_inline int read_inner_v4(
	struct cursor *cursor, const struct decap_config *config, struct tunnel *tunnel)
{
	struct iphdr *ip = cursor_take(cursor, sizeof(*ip));
	struct bpf_fib_lookup query = {.family = 2 /* AF_INET */};
	int ecn;

	if (ip == NULL || ip->version != 4 || ip->ihl < 5 || ip->ttl == 0 ||
		!claim(tunnel, ip->ihl * 4u, bpf_ntohs(ip->tot_len)))
		return DECAP_COUNTER_malformed;
	if (!is_vip(DECAP_V4, &ip->daddr))
		return DECAP_COUNTER_not_vip;
	query.ipv4_src = ip->saddr;
	query.ipv4_dst = ip->daddr;
	if (config->flags & DECAP_FLAG_GUARD && would_forward(tunnel, &query))
		return DECAP_COUNTER_not_local;
	ecn = ecn_decapsulate(tunnel->outer_ecn, ip->tos & ECN_MASK);
	if (ecn < 0)
		return DECAP_COUNTER_ecn_dropped;
	if (ecn != (int)(ip->tos & ECN_MASK))
		ipv4_set_ecn(ip, (__u8)ecn);
	return tunnel->type * 4 + tunnel->outer_is_v6 * 2;
}

static __always_inline int read_inner_v6(
	struct cursor *cursor, const struct decap_config *config, struct tunnel *tunnel)
{
	struct ipv6hdr *ip = cursor_take(cursor, sizeof(*ip));
	struct bpf_fib_lookup query = {.family = 10 /* AF_INET6 */};
	__u8 inner_ecn;
	int ecn;

	if (ip == NULL || ip->version != 6 || ip->hop_limit == 0 ||
		!claim(tunnel, sizeof(*ip), sizeof(*ip) + bpf_ntohs(ip->payload_len)))
		return DECAP_COUNTER_malformed;
	if (!is_vip(DECAP_V6, &ip->daddr))
		return DECAP_COUNTER_not_vip;
	__builtin_memcpy(query.ipv6_src, &ip->saddr, sizeof(query.ipv6_src));
	__builtin_memcpy(query.ipv6_dst, &ip->daddr, sizeof(query.ipv6_dst));
	if (config->flags & DECAP_FLAG_GUARD && would_forward(tunnel, &query))
		return DECAP_COUNTER_not_local;
	inner_ecn = ipv6_traffic_class(ip) & ECN_MASK;
	ecn = ecn_decapsulate(tunnel->outer_ecn, inner_ecn);
	if (ecn < 0)
		return DECAP_COUNTER_ecn_dropped;
	if (ecn != inner_ecn)
		ipv6_set_ecn(ip, (__u8)ecn);
	return tunnel->type * 4 + tunnel->outer_is_v6 * 2 + 1;
}

// Decides what happens to a packet, and sets the ECN bits of one that will be decapsulated.
// type: Ethernet type at the cursor. Returns an enum decap_counter; below DECAP_COUNTER_TUNNELS: cut tunnel->strip bytes.
static __always_inline int judge(struct cursor *cursor, __be16 type,
	const struct decap_config *config, struct tunnel *tunnel)
{
	int outcome = DECAP_COUNTER_other;

	if (type == bpf_htons(ETH_P_IP))
		outcome = read_outer_v4(cursor, config, tunnel);
	else if (type == bpf_htons(ETH_P_IPV6))
		outcome = read_outer_v6(cursor, config, tunnel);
	if (outcome != DECAP_COUNTER_COUNT)
		return outcome;
	if (tunnel->type == DECAP_GUE)
		outcome = read_gue(cursor, tunnel);
	else if (tunnel->type == DECAP_GRE)
		outcome = read_gre(cursor, tunnel);
	if (outcome != DECAP_COUNTER_COUNT)
		return outcome;
	if (tunnel->protocol == IPPROTO_IPIP)
		return read_inner_v4(cursor, config, tunnel);
	if (tunnel->protocol == IPPROTO_IPV6)
		return read_inner_v6(cursor, config, tunnel);
	return DECAP_COUNTER_unsupported;
}

static __always_inline void book(__u32 counter, __u32 bytes)
{
	struct decap_count *count = bpf_map_lookup_elem(&decap_counters, &counter);

	if (count == NULL)
		return;
	count->packets++;
	count->bytes += bytes;
}

// Moves Ethernet header and tags over the tunnel header. l2_bytes: 14, 18 or 22.
static __always_inline int cut_tunnel(
	struct xdp_md *ctx, __u32 l2_bytes, __u32 strip, __be16 inner_type)
{
	struct {
		struct ethhdr ethernet;
		struct vlan_tag tags[VLAN_TAGS_MAX];
	} __attribute__((packed)) saved = {};
	struct cursor cursor;
	struct vlan_tag *tag;
	struct ethhdr *ethernet;
	void *type;

	if (bpf_xdp_load_bytes(ctx, 0, &saved.ethernet, sizeof(saved.ethernet)) != 0)
		return -1;
	if (l2_bytes > sizeof(saved.ethernet) &&
		bpf_xdp_load_bytes(ctx, 14, &saved.tags[0], sizeof(*tag)) != 0)
		return -1;
	if (l2_bytes > sizeof(saved.ethernet) + sizeof(*tag) &&
		bpf_xdp_load_bytes(ctx, 18, &saved.tags[1], sizeof(*tag)) != 0)
		return -1;
	if (bpf_xdp_adjust_head(ctx, (int)strip) != 0)
		return -1;
	cursor.at = (void *)(long)ctx->data;
	cursor.end = (void *)(long)ctx->data_end;
	ethernet = cursor_take(&cursor, sizeof(*ethernet));
	if (ethernet == NULL)
		return -1;
	__builtin_memcpy(ethernet, &saved.ethernet, sizeof(*ethernet));
	type = (void *)ethernet + __builtin_offsetof(struct ethhdr, h_proto);
#pragma unroll
	for (int i = 0; i < VLAN_TAGS_MAX; i++) {
		if (l2_bytes <= sizeof(*ethernet) + i * sizeof(*tag))
			break;
		tag = cursor_take(&cursor, sizeof(*tag));
		if (tag == NULL)
			return -1;
		*tag = saved.tags[i];
		type = &tag->type;
	}
	__builtin_memcpy(type, &inner_type, sizeof(inner_type));
	return 0;
}

static __always_inline __be16 ethernet_type(int counter)
{
	return counter & 1 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
}

SEC("xdp.frags")
int ringway_decap(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	struct cursor cursor = {data, (void *)(long)ctx->data_end};
	struct tunnel tunnel = {.ctx = ctx, .ifindex = ctx->ingress_ifindex};
	__u32 zero = 0, frame_bytes = (__u32)bpf_xdp_get_buff_len(ctx), l2_bytes;
	const struct decap_config *config = bpf_map_lookup_elem(&decap_config, &zero);
	__be16 type = cursor_take_ethernet(&cursor);
	int counter;

	if (config == NULL)
		return XDP_PASS;
	l2_bytes = (__u32)(cursor.at - data);
	tunnel.left = frame_bytes - l2_bytes;
	counter = judge(&cursor, type, config, &tunnel);
	if (counter < DECAP_COUNTER_TUNNELS &&
		cut_tunnel(ctx, l2_bytes, tunnel.strip, ethernet_type(counter)) != 0)
		counter = DECAP_COUNTER_failed;
	book((__u32)counter, frame_bytes);
	return counter == DECAP_COUNTER_ecn_dropped || counter == DECAP_COUNTER_failed ? XDP_DROP
										       : XDP_PASS;
}

static __always_inline int cut_tunnel_tc(struct __sk_buff *skb, struct tunnel *tunnel, int counter)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;
	__u8 inner_is_v6 = counter & 1;
	__be16 type = ethernet_type(counter);

	if (inner_is_v6 != tunnel->outer_is_v6)
		flags |= inner_is_v6 ? ADJ_ROOM_DECAP_L3_IPV6 : ADJ_ROOM_DECAP_L3_IPV4;
	if (bpf_skb_adjust_room(skb, -(int)tunnel->strip, BPF_ADJ_ROOM_MAC, flags) != 0)
		return -1;
	// The hash was of the outer flow.
	bpf_set_hash_invalid(skb);
	return (int)bpf_skb_store_bytes(
		skb, __builtin_offsetof(struct ethhdr, h_proto), &type, sizeof(type), 0);
}

SEC("tc")
int ringway_tcdecap(struct __sk_buff *skb)
{
	struct tunnel tunnel = {.ctx = skb, .ifindex = skb->ifindex};
	__u32 zero = 0, bytes = skb->len, wanted = DECAP_HEADER_BYTES;
	const struct decap_config *config = bpf_map_lookup_elem(&decap_config, &zero);
	struct cursor cursor;
	struct ethhdr *ethernet;
	int counter = DECAP_COUNTER_other;

	if (config == NULL)
		return TC_ACT_UNSPEC;
	if (wanted > bytes)
		wanted = bytes;
	// Headers may lie in fragments of the skb.
	if (skb->data_end - skb->data < wanted)
		bpf_skb_pull_data(skb, wanted);
	cursor.at = (void *)(long)skb->data;
	cursor.end = (void *)(long)skb->data_end;
	// The kernel took the outermost tag off before tc; a second one is left to it.
	ethernet = cursor_take(&cursor, sizeof(*ethernet));
	if (ethernet != NULL) {
		tunnel.left = bytes - sizeof(*ethernet);
		counter = judge(&cursor, ethernet->h_proto, config, &tunnel);
	}
	if (counter < DECAP_COUNTER_TUNNELS && cut_tunnel_tc(skb, &tunnel, counter) != 0)
		counter = DECAP_COUNTER_failed;
	book((__u32)counter, bytes);
	if (counter == DECAP_COUNTER_ecn_dropped || counter == DECAP_COUNTER_failed)
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}

char program_license[] SEC("license") = "GPL";
