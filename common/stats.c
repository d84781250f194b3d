// SPDX-License-Identifier: Apache-2.0
#include "common/stats.h"

#include <errno.h>
#include <string.h>

#define COUNTER(name, text) {#name, text},
static const struct {
	const char *name;
	const char *text;
} counters[] = {
#include "common/counters.def"
};
#undef COUNTER

#define DROP(name, stage, text) {#name, #stage, text},
static const struct {
	const char *name;
	const char *stage;
	const char *text;
} drops[] = {
#include "common/drops.def"
};
#undef DROP

static uint64_t line_up(uint64_t bytes)
{
	return (bytes + STATS_LINE - 1) / STATS_LINE * STATS_LINE;
}

// Fills the offsets of a header whose counts are set. All counts are bounded by the caller.
static void lay_out(struct stats_header *header)
{
	uint64_t names = (uint64_t)(header->counter_count + header->drop_count) * STATS_NAME_BYTES;
	uint64_t drops_offset = line_up(header->counter_count * sizeof(uint64_t));

	header->names_offset = line_up(sizeof(*header));
	header->workers_offset = header->names_offset + line_up(names);
	header->services_offset = drops_offset + line_up(header->drop_count * sizeof(uint64_t));
	header->pools_offset = header->services_offset +
		line_up(header->service_count * sizeof(struct stats_service));
	header->backends_offset =
		header->pools_offset + line_up(header->pool_count * sizeof(struct stats_pool));
	header->worker_bytes = header->backends_offset +
		line_up(header->backend_count * sizeof(struct stats_backend));
	header->bytes = header->workers_offset + header->worker_bytes * header->worker_count;
}

static void describe(struct stats_header *header, const struct stats_geometry *geometry)
{
	memset(header, 0, sizeof(*header));
	header->magic = STATS_MAGIC;
	header->format = STATS_FORMAT;
	header->header_bytes = sizeof(*header);
	header->worker_count = geometry->worker_count;
	header->counter_count = COUNTER_COUNT;
	header->drop_count = DROP_COUNT;
	header->service_count = geometry->service_count;
	header->pool_count = geometry->pool_count;
	header->backend_count = geometry->backend_count;
	lay_out(header);
}

uint64_t stats_footprint(const struct stats_geometry *geometry)
{
	struct stats_header header;

	describe(&header, geometry);
	return header.bytes;
}

void stats_format(void *memory, const struct stats_geometry *geometry)
{
	struct stats_header *header = memory;
	char *name;

	describe(header, geometry);
	name = (char *)memory + header->names_offset;
	for (size_t i = 0; i < COUNTER_COUNT; i++, name += STATS_NAME_BYTES)
		strncpy(name, counters[i].name, STATS_NAME_BYTES - 1);
	for (size_t i = 0; i < DROP_COUNT; i++, name += STATS_NAME_BYTES)
		strncpy(name, drops[i].name, STATS_NAME_BYTES - 1);
}

int stats_open(const void *memory, uint64_t bytes, struct stats *ret)
{
	struct stats_header header, expected;

	if (bytes < sizeof(header))
		return -EINVAL;
	// A copy, since the writer's heartbeat moves while we compare.
	memcpy(&header, memory, sizeof(header));
	if (header.magic != STATS_MAGIC)
		return -EINVAL;
	if (header.format != STATS_FORMAT)
		return -ENOTSUP;
	// The counts are bounded before they are multiplied, so lay_out() cannot wrap.
	if (header.worker_count > STATS_WORKERS_MAX || header.counter_count > 4096 ||
		header.drop_count > 4096 || header.service_count > 1u << 20 ||
		header.pool_count > 1u << 20 || header.backend_count > 1u << 20)
		return -EINVAL;
	expected = header;
	lay_out(&expected);
	if (memcmp(&expected, &header, sizeof(expected)) != 0 || header.bytes > bytes)
		return -EINVAL;
	ret->header = memory;
	ret->names = (const char(*)[STATS_NAME_BYTES])((const char *)memory + header.names_offset);
	return 0;
}

struct stats_worker stats_worker(const void *memory, uint32_t worker)
{
	const struct stats_header *header = memory;
	char *block =
		(char *)(uintptr_t)memory + header->workers_offset + worker * header->worker_bytes;
	struct stats_worker ret;

	ret.counter = (uint64_t *)block;
	ret.drop = (uint64_t *)(block + line_up(header->counter_count * sizeof(uint64_t)));
	ret.services = (struct stats_service *)(block + header->services_offset);
	ret.pools = (struct stats_pool *)(block + header->pools_offset);
	ret.backends = (struct stats_backend *)(block + header->backends_offset);
	return ret;
}

const char *stats_counter_name(enum counter counter)
{
	return counters[counter].name;
}

const char *stats_counter_text(enum counter counter)
{
	return counters[counter].text;
}

const char *stats_drop_name(enum drop_reason reason)
{
	return drops[reason].name;
}

const char *stats_drop_text(enum drop_reason reason)
{
	return drops[reason].text;
}

const char *stats_drop_stage(enum drop_reason reason)
{
	return drops[reason].stage;
}

const char *stats_startup_name(enum startup_phase phase)
{
	static const char *const names[STARTUP_PHASES] = {
		"eal", "ports", "flows", "snapshot", "poll"};

	return names[phase];
}
