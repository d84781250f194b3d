// SPDX-License-Identifier: Apache-2.0
#include "bpf/hc_encap.h"

#include "bpf/hc_encap.skel.h"
#include "bpf/program.h"
#include "bpf/tc_hook.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#define TC_HANDLE   1
#define TC_PRIORITY 50

enum {
	MAP_TUNNELS,
	MAP_COUNTERS,
	MAP_COUNT,
};

static const struct program_map maps[MAP_COUNT] = {
	[MAP_TUNNELS] = {"hc_tunnels", sizeof(__u32), sizeof(struct hc_tunnel)},
	[MAP_COUNTERS] = {"hc_counters", sizeof(__u32), sizeof(struct decap_count)},
};

struct hc_encap {
	int ifindex;
	struct program program;
};

// Opens the program that is on the hook. Returns -ENOENT when there is none, -EEXIST when it is not ours.
static int open_present(struct hc_encap *encap)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = encap->ifindex, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, query, .handle = TC_HANDLE, .priority = TC_PRIORITY);
	int error;

	if (bpf_tc_query(&hook, &query) != 0)
		return -ENOENT;
	error = program_open(query.prog_id, HC_ENCAP_NAME, maps, MAP_COUNT, &encap->program);
	return error == -ENOENT ? -EEXIST : error;
}

static int attach_new(struct hc_encap *encap)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = encap->ifindex, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY);
	struct hc_encap_bpf *skeleton = hc_encap_bpf__open_and_load();
	int error;

	if (skeleton == NULL)
		return -errno;
	error = bpf_tc_hook_create(&hook);
	if (error == 0 || error == -EEXIST) {
		options.prog_fd = bpf_program__fd(skeleton->progs.ringway_hcencap);
		error = bpf_tc_attach(&hook, &options);
	}
	hc_encap_bpf__destroy(skeleton); // the hook holds the program, the program its maps
	return error != 0 ? error : open_present(encap);
}

int hc_encap_open(int ifindex, struct hc_encap **ret)
{
	struct hc_encap *encap = calloc(1, sizeof(*encap));
	int error;

	if (encap == NULL)
		return -ENOMEM;
	encap->ifindex = ifindex;
	error = open_present(encap);
	if (error == -ENOENT)
		error = attach_new(encap);
	if (error != 0) {
		free(encap);
		return error;
	}
	*ret = encap;
	return 0;
}

int hc_encap_set(struct hc_encap *encap, __u32 mark, const struct hc_tunnel *tunnel)
{
	if (mark == 0)
		return -EINVAL;
	return bpf_map_update_elem(encap->program.map_fds[MAP_TUNNELS], &mark, tunnel, BPF_ANY) == 0
		? 0
		: -errno;
}

int hc_encap_remove(struct hc_encap *encap, __u32 mark)
{
	return bpf_map_delete_elem(encap->program.map_fds[MAP_TUNNELS], &mark) == 0 ? 0 : -errno;
}

int hc_encap_read_counters(const struct hc_encap *encap, struct decap_count ret[HC_COUNTER_COUNT])
{
	return program_read_counters(encap->program.map_fds[MAP_COUNTERS], HC_COUNTER_COUNT, ret);
}

int hc_encap_close(struct hc_encap *encap)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY);
	int error;

	if (encap == NULL)
		return 0;
	hook.ifindex = encap->ifindex;
	error = bpf_tc_detach(&hook, &options);
	if (error == 0)
		error = tc_hook_remove_if_empty(encap->ifindex);
	program_close(&encap->program);
	free(encap);
	return error;
}
