// SPDX-License-Identifier: Apache-2.0
#include "bpf/tc_hook.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

// Looks at one datagram of a dump. Returns 1 at its end, 0 to read on, or -errno.
static int read_dump(const void *buffer, size_t length, bool *ret_found)
{
	const struct nlmsghdr *message = buffer;

	for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
		const struct tcmsg *filter = NLMSG_DATA(message);

		if (message->nlmsg_type == NLMSG_DONE)
			return 1;
		if (message->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(message))->error ?: 1;
		// The head of a chain has no handle; a filter has.
		if (message->nlmsg_type == RTM_NEWTFILTER && filter->tcm_handle != 0)
			*ret_found = true;
	}
	return 0;
}

// Tells whether a hook holds filters. libbpf can ask for one filter but cannot list them.
static int hook_has_filters(int netlink, int ifindex, uint32_t parent, bool *ret_found)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg filter;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_GETTFILTER,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = parent},
		.filter = {.tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_parent = parent},
	};
	char buffer[32768] __attribute__((aligned(8)));
	int state = 0;

	if (send(netlink, &request, sizeof(request), 0) < 0)
		return -errno;
	while (state == 0) {
		ssize_t length = recv(netlink, buffer, sizeof(buffer), 0);

		if (length <= 0)
			return length == 0 ? -EIO : -errno;
		state = read_dump(buffer, (size_t)length, ret_found);
	}
	return state < 0 ? state : 0;
}

static int find_filters(int ifindex, bool *ret_found)
{
	static const uint16_t hooks[] = {TC_H_MIN_INGRESS, TC_H_MIN_EGRESS};
	const struct timeval patience = {.tv_sec = 5};
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int error = 0;

	if (netlink < 0)
		return -errno;
	if (setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
		error = -errno;
	for (unsigned i = 0; i < 2 && error == 0; i++)
		error = hook_has_filters(
			netlink, ifindex, TC_H_MAKE(TC_H_CLSACT, hooks[i]), ret_found);
	close(netlink);
	return error;
}

int tc_hook_remove_if_empty(int ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
		.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	bool found = false;
	int error = find_filters(ifindex, &found);

	if (error != 0 || found)
		return error;
	return bpf_tc_hook_destroy(&hook);
}
