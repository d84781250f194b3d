// SPDX-License-Identifier: Apache-2.0
#include "bpf/program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAP_IDS_MAX 16

// Keeps a map in its place if the program must have it, else closes it.
static void keep_map(
	struct program *program, int fd, const struct program_map *maps, size_t map_count)
{
	struct bpf_map_info info = {};
	__u32 bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &bytes) != 0)
		map_count = 0;
	for (size_t i = 0; i < map_count; i++) {
		if (strcmp(info.name, maps[i].name) == 0 && info.key_size == maps[i].key_bytes &&
			info.value_size == maps[i].value_bytes && program->map_fds[i] < 0) {
			program->map_fds[i] = fd;
			return;
		}
	}
	close(fd);
}

static int open_maps(
	struct program *program, const char *name, const struct program_map *maps, size_t map_count)
{
	__u32 ids[MAP_IDS_MAX], bytes = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {
		.nr_map_ids = MAP_IDS_MAX,
		.map_ids = (__u64)(unsigned long)ids,
	};

	if (bpf_obj_get_info_by_fd(program->fd, &info, &bytes) != 0)
		return -errno;
	if (strcmp(info.name, name) != 0 || info.nr_map_ids > MAP_IDS_MAX)
		return -ENOENT;
	memcpy(program->tag, info.tag, sizeof(program->tag));
	for (__u32 i = 0; i < info.nr_map_ids; i++) {
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd >= 0)
			keep_map(program, fd, maps, map_count);
	}
	for (size_t i = 0; i < map_count; i++)
		if (program->map_fds[i] < 0)
			return -ENOENT;
	return 0;
}

int program_open(__u32 id, const char *name, const struct program_map *maps, size_t map_count,
	struct program *ret)
{
	struct program program = {.fd = bpf_prog_get_fd_by_id(id)};
	int error;

	if (program.fd < 0)
		return -errno;
	for (size_t i = 0; i < PROGRAM_MAPS_MAX; i++)
		program.map_fds[i] = -1;
	error = open_maps(&program, name, maps, map_count);
	if (error != 0)
		program_close(&program);
	else
		*ret = program;
	return error;
}

void program_close(struct program *program)
{
	for (size_t i = 0; i < PROGRAM_MAPS_MAX; i++)
		if (program->map_fds[i] >= 0)
			close(program->map_fds[i]);
	if (program->fd >= 0)
		close(program->fd);
}

static __u32 key_bytes_of(int map_fd, __u32 *ret_max)
{
	struct bpf_map_info info = {};
	__u32 bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(map_fd, &info, &bytes) != 0)
		return 0;
	*ret_max = info.max_entries;
	return info.key_size;
}

size_t program_read_keys(int map_fd, void *ret_keys, size_t max)
{
	__u32 entries_max = 0, key_bytes = key_bytes_of(map_fd, &entries_max);
	const void *previous = NULL;
	char *next = ret_keys;
	size_t count = 0;

	while (count < max && bpf_map_get_next_key(map_fd, previous, next) == 0) {
		previous = next;
		next += key_bytes;
		count++;
	}
	return count;
}

static int compare_keys(const void *a, const void *b, void *key_bytes)
{
	return memcmp(a, b, *(const __u32 *)key_bytes);
}

// Tells whether sorted keys hold a key: maps can have 65,536, so it is a binary search.
static bool has_key(const char *sorted, size_t count, __u32 key_bytes, const void *key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = memcmp(key, sorted + middle * key_bytes, key_bytes);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

// Takes out of a map what is not among the sorted keys.
static int drop_others(int map_fd, const char *sorted, size_t count, __u32 key_bytes, __u32 max)
{
	char *present = calloc(max, key_bytes);
	size_t present_count;
	int error = 0;

	if (present == NULL)
		return -ENOMEM;
	present_count = program_read_keys(map_fd, present, max);
	for (size_t i = 0; i < present_count && error == 0; i++)
		if (!has_key(sorted, count, key_bytes, present + i * key_bytes) &&
			bpf_map_delete_elem(map_fd, present + i * key_bytes) != 0)
			error = -errno;
	free(present);
	return error;
}

int program_sync_map(int map_fd, const void *keys, const __u32 *values, size_t count)
{
	__u32 max = 0, key_bytes = key_bytes_of(map_fd, &max);
	const __u32 one = 1;
	char *sorted;
	int error = 0;

	if (key_bytes == 0)
		return -errno;
	if (count > max)
		return -E2BIG;
	sorted = calloc(count + 1, key_bytes);
	if (sorted == NULL)
		return -ENOMEM;
	memcpy(sorted, keys, count * key_bytes);
	qsort_r(sorted, count, key_bytes, compare_keys, &key_bytes);
	for (size_t i = 0; i < count && error == 0; i++)
		if (bpf_map_update_elem(map_fd, (const char *)keys + i * key_bytes,
			    values ? &values[i] : &one, BPF_ANY) != 0)
			error = -errno;
	if (error == 0)
		error = drop_others(map_fd, sorted, count, key_bytes, max);
	free(sorted);
	return error;
}

int program_read_sums(int map_fd, __u32 count, size_t words, __u64 *ret)
{
	int cpu_count = libbpf_num_possible_cpus();
	__u64 *values;
	int error = 0;

	if (cpu_count < 0)
		return cpu_count;
	values = calloc((size_t)cpu_count * words, sizeof(*values));
	if (values == NULL)
		return -ENOMEM;
	memset(ret, 0, count * words * sizeof(*ret));
	for (__u32 i = 0; i < count && error == 0; i++, ret += words) {
		if (bpf_map_lookup_elem(map_fd, &i, values) != 0)
			error = -errno;
		for (size_t j = 0; j < (size_t)cpu_count * words && error == 0; j++)
			ret[j % words] += values[j];
	}
	free(values);
	return error;
}
