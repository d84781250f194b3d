// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
// Makes a veth link VLAN 100 of a trunk, on kernels that have no VLAN devices: what leaves gets the tag, what comes must
// have it. Anything untagged, or of another VLAN, is dropped, so that a test over the link proves the tags.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define VLAN    100
#define VLAN_ID 0x0fff

SEC("push")
int vlan_push(struct __sk_buff *skb)
{
	return bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), VLAN) == 0 ? TC_ACT_OK : TC_ACT_SHOT;
}

SEC("pop")
int vlan_pop(struct __sk_buff *skb)
{
	if (!skb->vlan_present || (skb->vlan_tci & VLAN_ID) != VLAN)
		return TC_ACT_SHOT;
	return bpf_skb_vlan_pop(skb) == 0 ? TC_ACT_OK : TC_ACT_SHOT;
}

char vlan_license[] SEC("license") = "Dual BSD/GPL";
