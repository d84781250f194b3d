// SPDX-License-Identifier: Apache-2.0
// Reads the dataplane's stats file the way any monitoring program would, without asking a process, and prints it as JSON.
//
//	stats_read FILE
//
// {"generation", "hugepage_bytes", "snapshot_bytes", "workers": [{"balanced", "counters", "drops"}], "balanced",
//  "counters", "drops", "pools": {id: {...}}, "backends": {id: {...}}}
//
// "balanced" is the first invariant: rx_packets = forwarded + punted + answered + all drops, for each worker. Workers write
// while we read, so ask when traffic is quiet.
#include "common/stats.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static void add(json_t *object, const char *name, uint64_t value)
{
	json_int_t sum = json_integer_value(json_object_get(object, name));

	json_object_set_new(object, name, json_integer(sum + (json_int_t)value));
}

static const char *name_of(const struct stats *stats, uint32_t i)
{
	return stats->names[i];
}

static void add_counters(
	json_t *object, const struct stats *stats, const struct stats_worker *worker)
{
	for (uint32_t i = 0; i < stats->header->counter_count; i++)
		add(object, name_of(stats, i), worker->counter[i]);
}

static void add_drops(json_t *object, const struct stats *stats, const struct stats_worker *worker)
{
	for (uint32_t i = 0; i < stats->header->drop_count; i++)
		add(object, name_of(stats, stats->header->counter_count + i), worker->drop[i]);
}

static bool is_balanced(const json_t *counters, const json_t *drops)
{
	json_int_t out = json_integer_value(json_object_get(counters, "forwarded")) +
		json_integer_value(json_object_get(counters, "punted")) +
		json_integer_value(json_object_get(counters, "answered"));
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)drops, name, value)
		out += json_integer_value(value);
	return out == json_integer_value(json_object_get(counters, "rx_packets"));
}

// Ids that were never counted are left out.
static void add_pools(json_t *pools, uint32_t count, const struct stats_worker *worker)
{
	for (uint32_t id = 0; id < count; id++) {
		const struct stats_pool *pool = &worker->pools[id];
		char key[12];
		json_t *object;

		if (pool->packets_old + pool->packets_new == 0)
			continue;
		snprintf(key, sizeof(key), "%u", id);
		object = json_object_get(pools, key);
		if (object == NULL) {
			object = json_object();
			json_object_set_new(pools, key, object);
		}
		add(object, "new_flows_old", pool->new_flows_old);
		add(object, "new_flows_new", pool->new_flows_new);
		add(object, "packets_old", pool->packets_old);
		add(object, "packets_new", pool->packets_new);
		add(object, "live_new", pool->live_new);
	}
}

static void add_backends(json_t *backends, uint32_t count, const struct stats_worker *worker)
{
	for (uint32_t id = 0; id < count; id++) {
		const struct stats_backend *backend = &worker->backends[id];
		char key[12];
		json_t *object;

		if (backend->packets == 0)
			continue;
		snprintf(key, sizeof(key), "%u", id);
		object = json_object_get(backends, key);
		if (object == NULL) {
			object = json_object();
			json_object_set_new(backends, key, object);
		}
		add(object, "packets", backend->packets);
		add(object, "new_flows", backend->new_flows);
	}
}

static json_t *describe(const void *memory, const struct stats *stats)
{
	const struct stats_header *header = stats->header;
	json_t *workers = json_array(), *counters = json_object(), *drops = json_object();
	json_t *pools = json_object(), *backends = json_object();
	bool balanced = true;

	for (uint32_t i = 0; i < header->worker_count; i++) {
		struct stats_worker worker = stats_worker(memory, i);
		json_t *own_counters = json_object(), *own_drops = json_object();
		bool own;

		add_counters(own_counters, stats, &worker);
		add_drops(own_drops, stats, &worker);
		add_counters(counters, stats, &worker);
		add_drops(drops, stats, &worker);
		add_pools(pools, header->pool_count, &worker);
		add_backends(backends, header->backend_count, &worker);
		own = is_balanced(own_counters, own_drops);
		balanced = balanced && own;
		json_array_append_new(workers,
			json_pack("{s:b, s:o, s:o}", "balanced", own, "counters", own_counters,
				"drops", own_drops));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "generation",
		number(header->generation), "hugepage_bytes", number(header->hugepage_bytes),
		"snapshot_bytes", number(header->snapshot_bytes), "workers", workers, "balanced",
		balanced, "counters", counters, "drops", drops, "pools", pools, "backends",
		backends);
}

int main(int argc, char **argv)
{
	struct stats stats;
	struct stat file;
	const void *memory;
	json_t *object;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: stats_read FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file) != 0) {
		perror(argv[1]);
		return 1;
	}
	memory = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || stats_open(memory, (uint64_t)file.st_size, &stats) != 0) {
		fprintf(stderr, "%s: no stats file of this version\n", argv[1]);
		return 1;
	}
	object = describe(memory, &stats);
	json_dumpf(object, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(object);
	return 0;
}
