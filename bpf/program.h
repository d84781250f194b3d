// SPDX-License-Identifier: Apache-2.0
// Programs and maps that are in the kernel already, found by id and name: what the loaders share.
#pragma once

#include "bpf/bpf_shared.h"

#include <stddef.h>

#define PROGRAM_MAPS_MAX 4u

// A map that a program of ours must have, and the sizes that say that it is of this format.
struct program_map {
	const char *name;
	__u32 key_bytes;
	__u32 value_bytes;
};

struct program {
	int fd;
	int map_fds[PROGRAM_MAPS_MAX];
	unsigned char tag[8]; // of its code
};

// Opens a program by id, if it has this name and all of these maps.
// map_count: 0..PROGRAM_MAPS_MAX. Returns 0, -ENOENT when it is another program, or what the kernel says.
int program_open(__u32 id, const char *name, const struct program_map *maps, size_t map_count,
	struct program *ret);

// Closes all descriptors of an opened program.
void program_close(struct program *program);

// Reads the keys of a hash or trie; ret_keys has room for max of them. Returns how many were read.
size_t program_read_keys(int map_fd, void *ret_keys, size_t max);

// Makes a hash or trie hold exactly these keys. New ones are put in before old ones go, so that no wanted key is
// ever missing. values: one 32-bit value a key, or NULL for 1 each.
// Returns 0 or -errno; then the map holds some of both.
int program_sync_map(int map_fd, const void *keys, const __u32 *values, size_t count);

// Sums a per-CPU array over all CPUs: `words` 64-bit words a value, `count` values into ret[count * words].
int program_read_sums(int map_fd, __u32 count, size_t words, __u64 *ret);

// The same for an array of counts.
static inline int program_read_counters(int map_fd, __u32 count, struct decap_count *ret)
{
	return program_read_sums(map_fd, count, sizeof(*ret) / sizeof(__u64), (__u64 *)ret);
}
