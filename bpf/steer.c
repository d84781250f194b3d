// SPDX-License-Identifier: Apache-2.0
#include "bpf/steer.h"

#include "bpf/program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	MAP_ADDRESSES,
	MAP_COUNTERS,
	MAP_COUNT,
};

static int open_steer(int ifindex, struct program *ret)
{
	static const struct program_map maps[MAP_COUNT] = {
		[MAP_ADDRESSES] = {"steer_addresses", sizeof(struct decap_prefix), sizeof(__u32)},
		[MAP_COUNTERS] = {"steer_counters", sizeof(__u32), sizeof(__u64)},
	};
	__u32 id = 0;
	int error = bpf_xdp_query_id(ifindex, 0, &id);

	if (error != 0)
		return error;
	return id == 0 ? -ENOENT : program_open(id, STEER_NAME, maps, MAP_COUNT, ret);
}

int steer_program_id(int ifindex, __u32 *ret_id)
{
	struct program program;
	__u32 id = 0;
	int error = bpf_xdp_query_id(ifindex, 0, &id);

	if (error == 0)
		error = id == 0 ? -ENOENT : program_open(id, STEER_NAME, NULL, 0, &program);
	if (error != 0)
		return error;
	program_close(&program);
	*ret_id = id;
	return 0;
}

int steer_set_addresses(int ifindex, const struct steer_address *addresses, size_t count)
{
	struct decap_prefix *keys;
	struct program program;
	__u32 *kinds;
	int error;

	if (count > STEER_ADDRESSES_MAX)
		return -E2BIG;
	error = open_steer(ifindex, &program);
	if (error != 0)
		return error;
	keys = calloc(count + 1, sizeof(*keys));
	kinds = calloc(count + 1, sizeof(*kinds));
	if (keys == NULL || kinds == NULL) {
		error = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		keys[i] = addresses[i].prefix;
		kinds[i] = addresses[i].kind;
	}
	error = program_sync_map(program.map_fds[MAP_ADDRESSES], keys, kinds, count);
out:
	free(kinds);
	free(keys);
	program_close(&program);
	return error;
}

int steer_read_counters(int ifindex, __u64 ret[STEER_COUNTER_COUNT])
{
	struct program program;
	int error = open_steer(ifindex, &program);

	if (error != 0)
		return error;
	error = program_read_sums(program.map_fds[MAP_COUNTERS], STEER_COUNTER_COUNT, 1, ret);
	program_close(&program);
	return error;
}
