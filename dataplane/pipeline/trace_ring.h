// SPDX-License-Identifier: Apache-2.0
// Selection traces on their way from a worker to main: a queue with one writer and one reader that never waits. When
// it is full, new traces are lost and counted.
#pragma once

#include "common/ipc.h"

#define TRACE_RING_RECORDS 1024u // a power of two

struct trace_ring {
	uint64_t head; // worker rw, main ro
	uint64_t lost; // worker rw, main ro
	uint8_t pad[48];
	uint64_t tail;      // main rw, worker ro
	uint64_t lost_seen; // main
	uint8_t pad2[48];
	struct ipc_trace records[TRACE_RING_RECORDS];
};

_Static_assert(offsetof(struct trace_ring, tail) == 64, "writer and reader on lines of their own");

// Appends a trace, or counts it as lost. Context: the worker.
static inline void trace_ring_push(struct trace_ring *ring, const struct ipc_trace *trace)
{
	// Pairs with the release in trace_ring_pop(): the record was read before it is written over.
	if (ring->head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == TRACE_RING_RECORDS) {
		__atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
		return;
	}
	ring->records[ring->head % TRACE_RING_RECORDS] = *trace;
	// Pairs with the acquire in trace_ring_pop(): who sees the head sees the record.
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
}

// Takes the oldest traces, at most capacity. Context: main.
static inline unsigned trace_ring_pop(
	struct trace_ring *ring, struct ipc_trace *ret, unsigned capacity, uint64_t *ret_lost)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint64_t lost = __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
	unsigned taken = 0;

	while (taken < capacity && ring->tail + taken != head) {
		ret[taken] = ring->records[(ring->tail + taken) % TRACE_RING_RECORDS];
		taken++;
	}
	__atomic_store_n(&ring->tail, ring->tail + taken, __ATOMIC_RELEASE);
	*ret_lost = lost - ring->lost_seen;
	ring->lost_seen = lost;
	return taken;
}
