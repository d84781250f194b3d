// SPDX-License-Identifier: Apache-2.0
// Health checks through the tunnel: puts hc_encap.bpf.c on tc egress of an interface and says which socket mark goes to
// which backend. The checker then sets SO_MARK and connects to the virtual address.
#pragma once

#include "bpf/bpf_shared.h"

// The program on an interface. All calls: any one thread.
struct hc_encap;

// Puts the program on an interface's egress, or takes over the one of an earlier process with its marks.
// Returns 0 and the handle; -EEXIST when somebody else's filter has our place; or what the kernel says.
int hc_encap_open(int ifindex, struct hc_encap **ret);

// Sends packets of sockets with a mark through a tunnel from now on; replaces the mark's earlier tunnel.
// mark: not 0. Returns 0 or -errno (-E2BIG: HC_ENCAP_MARKS_MAX marks are in use).
int hc_encap_set(struct hc_encap *encap, __u32 mark, const struct hc_tunnel *tunnel);

// Forgets a mark: its packets leave as they are. Returns 0, -ENOENT when it was not set.
int hc_encap_remove(struct hc_encap *encap, __u32 mark);

// Sums the counters over all CPUs.
int hc_encap_read_counters(const struct hc_encap *encap, struct decap_count ret[HC_COUNTER_COUNT]);

// Takes the program off the interface, with the clsact qdisc if that is empty then, and frees the handle. Accepts NULL.
int hc_encap_close(struct hc_encap *encap);
