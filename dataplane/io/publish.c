// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/publish.h"

#include "dataplane/io/hugemem.h"
#include "dataplane/table/neighbour_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)

__attribute__((format(printf, 3, 4))) static int refuse(
	struct snapshot_error *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return result;
}

// Ids index the counters, so a snapshot may not name more than the stats file was made for.
static int check_capacity(const struct dataplane *dataplane, const struct snapshot *snapshot,
	struct snapshot_error *error)
{
	const struct stats_geometry *capacity = &dataplane->options->capacity;
	const struct {
		const char *name;
		uint32_t count;
		uint32_t capacity;
	} checks[] = {
		{"services", snapshot->service_count, capacity->service_count},
		{"pools", snapshot->pool_count, capacity->pool_count},
		{"backends", snapshot->backend_count, capacity->backend_count},
	};

	for (size_t i = 0; i < RTE_DIM(checks); i++) {
		if (checks[i].count > checks[i].capacity) {
			return refuse(error, -ENOSPC,
				"snapshot: %" PRIu32 " %s, counters for %" PRIu32
				"; start the dataplane with --%s %" PRIu32,
				checks[i].count, checks[i].name, checks[i].capacity, checks[i].name,
				checks[i].count);
		}
	}
	return 0;
}

static int check_generation(const struct dataplane *dataplane, const struct snapshot *snapshot,
	struct snapshot_error *error)
{
	const struct snapshot *old = dataplane->publication.snapshot;

	if (old == NULL || snapshot->header->generation > old->header->generation)
		return 0;
	return refuse(error, -ESTALE,
		"snapshot: generation %" PRIu64 " is not newer than %" PRIu64 ", which is in use",
		snapshot->header->generation, old->header->generation);
}

// Old and new blocks stand side by side until the grace period is over.
static int check_memory(
	const struct dataplane *dataplane, uint64_t block_bytes, struct snapshot_error *error)
{
	uint32_t workers = dataplane->options->worker_count;
	uint64_t each = hugemem_footprint(block_bytes);
	uint64_t available = hugemem_available();

	if (each <= available / workers)
		return 0;
	return refuse(error, -ENOSPC,
		"snapshot: %" PRIu64 " MiB for %" PRIu32 " workers (%" PRIu64
		" each) do not fit in %" PRIu64 " MiB of free huge pages",
		each * workers / MIB, workers, each / MIB, available / MIB);
}

static void free_blocks(struct publication *publication)
{
	for (uint32_t w = 0; w < PIPELINE_WORKERS_MAX; w++)
		hugemem_free(publication->blocks[w], publication->block_bytes);
}

static int build_blocks(
	struct dataplane *dataplane, struct publication *next, struct snapshot_error *error)
{
	for (uint32_t w = 0; w < dataplane->options->worker_count; w++) {
		void *memory = hugemem_alloc(next->block_bytes, dataplane->workers[w]->node);

		if (memory == NULL)
			return refuse(error, -ENOSPC,
				"snapshot: no huge pages for the copy of worker %" PRIu32, w);
		next->blocks[w] = memory;
		if (forwarding_build(memory, next->snapshot, &dataplane->pipeline,
			    &next->forwarding[w]) != 0) {
			return refuse(error, -ENOSPC,
				"snapshot: more next hops than --backends %" PRIu32,
				dataplane->options->capacity.backend_count);
		}
	}
	return 0;
}

// Waits until every worker has passed a point where it holds no pointer from before. Main sleeps in between, since
// a worker may be waiting for this very CPU.
static void wait_for_workers(struct rte_rcu_qsbr *qsbr)
{
	const struct timespec pause = {.tv_nsec = 20000};
	uint64_t token = rte_rcu_qsbr_start(qsbr);

	while (rte_rcu_qsbr_check(qsbr, token, false) == 0)
		nanosleep(&pause, NULL);
}

static void swap(struct dataplane *dataplane, struct publication *next)
{
	struct publication old = dataplane->publication;
	struct stats_header *header = dataplane->stats.header;

	for (uint32_t w = 0; w < dataplane->options->worker_count; w++)
		__atomic_store_n(
			&dataplane->workers[w]->published, next->forwarding[w], __ATOMIC_RELEASE);
	wait_for_workers(dataplane->shared.qsbr);
	dataplane->publication = *next;
	free_blocks(&old);
	if (old.image != NULL)
		munmap(old.image, old.image_bytes);
	free(old.snapshot);
	neighbour_table_collect(dataplane->pipeline.neighbours, next->snapshot->header->generation);
	header->generation = next->snapshot->header->generation;
	header->snapshot_bytes = next->block_bytes;
	header->hugepage_bytes = hugemem_held();
}

int publish_image(struct dataplane *dataplane, void *image, uint64_t image_bytes,
	struct snapshot_error *ret_error)
{
	struct publication next = {.image = image, .image_bytes = image_bytes};
	int result;

	next.snapshot = malloc(sizeof(*next.snapshot));
	if (next.snapshot == NULL)
		return refuse(ret_error, -ENOMEM, "snapshot: no memory for its view");
	result = snapshot_open(image, image_bytes, next.snapshot, ret_error);
	if (result == 0)
		result = check_generation(dataplane, next.snapshot, ret_error);
	if (result == 0)
		result = check_capacity(dataplane, next.snapshot, ret_error);
	if (result != 0)
		goto err_view;
	next.block_bytes = forwarding_footprint(next.snapshot);
	result = check_memory(dataplane, next.block_bytes, ret_error);
	if (result == 0)
		result = build_blocks(dataplane, &next, ret_error);
	if (result != 0)
		goto err_blocks;
	swap(dataplane, &next);
	return 0;

err_blocks:
	free_blocks(&next);
err_view:
	free(next.snapshot);
	return result;
}

static int check_gate(
	const struct snapshot *snapshot, const struct ipc_gate *gate, struct snapshot_error *error)
{
	if (gate->pool >= snapshot->pool_count ||
		!(snapshot->pools[gate->pool].flags & SNAPSHOT_USED))
		return refuse(error, -EINVAL, "gates: pool %" PRIu32 " is not in use", gate->pool);
	if (gate->salt != snapshot->pools[gate->pool].gate.salt) {
		return refuse(error, -EINVAL,
			"gates: salt %08" PRIx32 " of pool %" PRIu32
			", the snapshot has %08" PRIx32,
			gate->salt, gate->pool, snapshot->pools[gate->pool].gate.salt);
	}
	if (!gate_word_valid(gate->word))
		return refuse(error, -EINVAL,
			"gates: threshold %" PRIu64 " of pool %" PRIu32 " is above 2^32",
			gate->word, gate->pool);
	return 0;
}

int publish_gates(struct dataplane *dataplane, const struct ipc_gates *gates,
	struct snapshot_error *ret_error)
{
	struct publication *now = &dataplane->publication;
	int result = 0;

	if (now->snapshot == NULL)
		return refuse(ret_error, -ENOENT, "gates: no snapshot is loaded");
	if (gates->generation != now->snapshot->header->generation) {
		return refuse(ret_error, -ESTALE,
			"gates: for generation %" PRIu64 ", %" PRIu64 " is in use",
			gates->generation, now->snapshot->header->generation);
	}
	for (uint32_t i = 0; i < gates->count && result == 0; i++)
		result = check_gate(now->snapshot, &gates->gates[i], ret_error);
	if (result != 0)
		return result;
	for (uint32_t i = 0; i < gates->count; i++) {
		const struct ipc_gate *gate = &gates->gates[i];

		snapshot_gate_set(&now->snapshot->pools[gate->pool], gate->word);
		for (uint32_t w = 0; w < dataplane->options->worker_count; w++)
			forwarding_gate_set(now->forwarding[w], gate->pool, gate->word);
	}
	return 0;
}

void publish_close(struct dataplane *dataplane)
{
	struct publication *now = &dataplane->publication;

	free_blocks(now);
	if (now->image != NULL)
		munmap(now->image, now->image_bytes);
	free(now->snapshot);
	memset(now, 0, sizeof(*now));
}
