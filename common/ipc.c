// SPDX-License-Identifier: Apache-2.0
#include "common/ipc.h"

#include <errno.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// The body that follows the fixed part, for the two messages that are cut to their count.
struct tail {
	size_t count_offset;
	size_t elements_offset;
	size_t element_bytes;
	uint32_t count_min;
	uint32_t count_max;
};

static const struct tail gates_tail = {
	offsetof(struct ipc_gates, count),
	offsetof(struct ipc_gates, gates),
	sizeof(struct ipc_gate),
	1,
	IPC_GATES_MAX,
};

static const struct tail traces_tail = {
	offsetof(struct ipc_traces, count),
	offsetof(struct ipc_traces, traces),
	sizeof(struct ipc_trace),
	0,
	IPC_TRACES_MAX,
};

// What each type must measure: a fixed length, or a tail.
static const struct shape {
	uint16_t type;
	size_t bytes;
	const struct tail *tail;
} shapes[] = {
	{IPC_STATUS, sizeof(struct ipc_header), NULL},
	{IPC_LOAD_SNAPSHOT, sizeof(struct ipc_load), NULL},
	{IPC_SET_GATES, 0, &gates_tail},
	{IPC_EXPLAIN, sizeof(struct ipc_explain), NULL},
	{IPC_TRACE_SET, sizeof(struct ipc_trace_set), NULL},
	{IPC_TRACE_READ, sizeof(struct ipc_header), NULL},
	{IPC_REPLY_RESULT, sizeof(struct ipc_result), NULL},
	{IPC_REPLY_STATUS, sizeof(struct ipc_status), NULL},
	{IPC_REPLY_EXPLAIN, sizeof(struct ipc_explained), NULL},
	{IPC_REPLY_TRACES, 0, &traces_tail},
};

static const struct shape *find_shape(uint16_t type)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (shapes[i].type == type)
			return &shapes[i];
	}
	return NULL;
}

static int check_tail(const struct tail *tail, const void *message, size_t length)
{
	uint32_t count;

	if (length < tail->elements_offset)
		return -EMSGSIZE;
	memcpy(&count, (const uint8_t *)message + tail->count_offset, sizeof(count));
	if (count < tail->count_min || count > tail->count_max)
		return -EMSGSIZE;
	return length == tail->elements_offset + count * tail->element_bytes ? 0 : -EMSGSIZE;
}

int ipc_check(const void *message, size_t length)
{
	struct ipc_header header;
	const struct shape *shape;

	if (length < sizeof(header))
		return -EPROTO;
	memcpy(&header, message, sizeof(header));
	if (header.magic != IPC_MAGIC)
		return -EPROTO;
	if (header.version != IPC_VERSION)
		return -ENOTSUP;
	if (header.length != length)
		return -EMSGSIZE;
	shape = find_shape(header.type);
	if (shape == NULL)
		return -EPROTO;
	if (shape->tail != NULL)
		return check_tail(shape->tail, message, length);
	return length == shape->bytes ? 0 : -EMSGSIZE;
}

uint64_t ipc_gates_checksum(const struct snapshot *snapshot)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < snapshot->pool_count; i++) {
		const struct snapshot_pool *pool = &snapshot->pools[i];
		struct ipc_gate gate = {.pool = i, .salt = pool->gate.salt};

		if (!(pool->flags & SNAPSHOT_USED))
			continue;
		gate.word = snapshot_gate(pool);
		sum = XXH3_64bits_withSeed(&gate, sizeof(gate), sum);
	}
	return sum;
}
