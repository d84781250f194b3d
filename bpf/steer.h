// SPDX-License-Identifier: Apache-2.0
// Tells the steering program that DPDK's net_af_xdp put on an interface (xdp_prog=xdp_steer.bpf.o) which addresses are the
// dataplane's. DPDK does not hand out the program's maps, so it is found through the interface.
#pragma once

#include "bpf/bpf_shared.h"

#include <stddef.h>

struct steer_address {
	struct decap_prefix prefix;
	__u32 kind; // enum steer_kind
};

// Makes the program on an interface steer exactly these addresses. New ones are steered before old ones are let go.
// Returns 0; -ENOENT when the steering program is not on the interface (yet); -E2BIG when there are more than
// STEER_ADDRESSES_MAX; or what the kernel says.
int steer_set_addresses(int ifindex, const struct steer_address *addresses, size_t count);

// The id of the steering program on an interface, which changes when the dataplane restarts.
// Returns 0, -ENOENT when another program or none is there, or what the kernel says.
int steer_program_id(int ifindex, __u32 *ret_id);

// Sums the program's counters over all CPUs. Errors as above.
int steer_read_counters(int ifindex, __u64 ret[STEER_COUNTER_COUNT]);
