// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/dataplane.h"

#include "dataplane/io/eal.h"
#include "dataplane/io/files.h"
#include "dataplane/io/hugemem.h"
#include "dataplane/io/log.h"
#include "dataplane/io/persist.h"
#include "dataplane/io/publish.h"
#include "dataplane/packet/discovery.h"
#include "dataplane/table/neighbour_table.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FRAMES_MAX             64u // questions to neighbours a tick
#define FIRST_POLL_WAIT_S      10u // a worker that has not polled by then never will
#define WORKER_ALIGN_UP(bytes) (((bytes) + PIPELINE_ALIGN - 1) / PIPELINE_ALIGN * PIPELINE_ALIGN)

__attribute__((format(printf, 3, 4))) static int fail(
	char *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, DATAPLANE_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return result;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t boot_seconds(void)
{
	return (uint32_t)(clock_ns(CLOCK_BOOTTIME) / 1000000000u);
}

static int lock_run_dir(struct dataplane *dataplane, char *error)
{
	const char *run_dir = dataplane->options->run_dir;
	const char *name = dataplane->options->user;
	const struct passwd *user = name != NULL ? getpwnam(name) : NULL;
	int lock = files_lock_run_dir(run_dir, user != NULL ? user->pw_uid : geteuid());

	if (lock == -EBUSY)
		return fail(error, lock, "--run-dir %s: another dataplane runs there", run_dir);
	if (lock == -EPERM)
		return fail(error, lock,
			"--run-dir %s: must belong to this user, --user or root, and be writable to no one else",
			run_dir);
	if (lock < 0)
		return fail(error, lock, "--run-dir %s: %s", run_dir, strerror(-lock));
	dataplane->run_dir_lock = lock + 1;
	return 0;
}

// What workers share with main, before there are any.
static int make_shared(struct dataplane *dataplane, char *error)
{
	struct worker_shared *shared = &dataplane->shared;
	uint32_t workers = dataplane->options->worker_count;
	size_t bytes = rte_rcu_qsbr_get_memsize(workers);

	shared->ports = dataplane->ports;
	shared->port_count = dataplane->options->port_count;
	shared->idle_sleep = dataplane->options->idle_sleep;
	// With --user, main changes the user of all threads at once, which takes their capabilities and needs them until then.
	if (!dataplane->options->keep_privileges && dataplane->options->user == NULL)
		shared->drop_privileges = dataplane->options;
	shared->tsc_hz = rte_get_tsc_hz();
	shared->now_s = boot_seconds();
	shared->qsbr =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(bytes, RTE_CACHE_LINE_SIZE));
	if (shared->qsbr == NULL || rte_rcu_qsbr_init(shared->qsbr, workers) != 0)
		return fail(error, -ENOMEM, "memory: none for the grace periods of %u workers",
			workers);
	for (uint32_t w = 0; w < workers; w++)
		rte_rcu_qsbr_thread_register(shared->qsbr, w);
	shared->mailbox = rte_ring_create("ringway_mailbox", WORKER_MAILBOX_SIZE, SOCKET_ID_ANY,
		RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (shared->mailbox == NULL)
		return fail(error, -rte_errno, "memory: mailbox: %s", rte_strerror(rte_errno));
	return 0;
}

// The pool of a NUMA node, made when its first port asks for it.
static struct rte_mempool *pool_of_node(struct dataplane *dataplane, int node)
{
	struct port_buffers plan = port_plan_buffers(dataplane->options);
	unsigned index = node < 0 ? 0 : (unsigned)node % RTE_MAX_NUMA_NODES;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (dataplane->pools[index] != NULL)
		return dataplane->pools[index];
	snprintf(name, sizeof(name), "ringway_%u", index);
	dataplane->pools[index] = rte_pktmbuf_pool_create(
		name, plan.count, 256, 0, plan.room, node < 0 ? SOCKET_ID_ANY : node);
	return dataplane->pools[index];
}

static int open_ports(struct dataplane *dataplane, char *error)
{
	const struct options *options = dataplane->options;

	for (uint32_t i = 0; i < options->port_count; i++) {
		struct rte_mempool *pool =
			pool_of_node(dataplane, port_node(options->ports[i].device));
		int result;

		if (pool == NULL) {
			struct port_buffers plan = port_plan_buffers(options);

			return fail(error, -rte_errno,
				"memory: %u packet buffers (%" PRIu64 " MiB) for port %s: %s",
				plan.count, plan.bytes >> 20, options->ports[i].device,
				rte_strerror(rte_errno));
		}
		result = port_open(&dataplane->ports[i], &dataplane->pipeline.ports[i], options, i,
			pool, error);
		if (result != 0)
			return result;
		dataplane->pipeline.has_punt |= options->ports[i].punt != NULL;
	}
	return 0;
}

static int make_pipeline(struct dataplane *dataplane, char *error)
{
	const struct options *options = dataplane->options;
	struct pipeline *pipeline = &dataplane->pipeline;
	uint32_t slots = RTE_MIN(
		options->capacity.backend_count + 2 * options->port_count, NEIGHBOUR_TABLE_MAX);

	dataplane->neighbour_bytes = neighbour_table_footprint(slots);
	dataplane->neighbour_memory = hugemem_alloc(dataplane->neighbour_bytes, -1);
	if (dataplane->neighbour_memory == NULL)
		return fail(error, -ENOMEM, "memory: %" PRIu64 " MiB for %u neighbours",
			dataplane->neighbour_bytes >> 20, slots);
	pipeline->neighbours = neighbour_table_format(dataplane->neighbour_memory, slots);
	pipeline->worker_count = options->worker_count;
	pipeline->port_count = options->port_count;
	if (pipeline_init(pipeline) != 0)
		return fail(error, -EINVAL, "ports: the pipeline does not take them");
	return 0;
}

static int open_flows(struct dataplane *dataplane, uint32_t index, int node, char *error)
{
	const struct options *options = dataplane->options;
	struct flow_file_place place = {
		.dir = options->huge_dir != NULL ? options->huge_dir : options->run_dir,
		.index = index,
		.entries = options->flow_entries,
		.now_s = dataplane->shared.now_s,
		.node = node};
	int result = flow_file_open(&dataplane->flows[index], &place);

	if (result == 0)
		return 0;
	return fail(error, result, "flow table %s/flows.%u (%" PRIu64 " MiB): %s", place.dir, index,
		flow_file_bytes(&place) >> 20,
		result == -EBUSY ? "another process uses it" : strerror(-result));
}

static uint64_t worker_bytes(void)
{
	return WORKER_ALIGN_UP(sizeof(struct worker)) + pipeline_worker_footprint();
}

static int make_worker(struct dataplane *dataplane, uint32_t index, char *error)
{
	int node = (int)rte_lcore_to_socket_id(EAL_LCORE(index));
	uint8_t *memory = hugemem_alloc(worker_bytes(), node);
	struct stats_worker stats = stats_worker(dataplane->stats.header, index);
	struct worker *worker;
	int result;

	if (memory == NULL)
		return fail(error, -ENOMEM, "memory: %" PRIu64 " KiB for worker %u",
			worker_bytes() >> 10, index);
	worker = (struct worker *)memory;
	dataplane->workers[index] = worker;
	result = open_flows(dataplane, index, node, error);
	if (result != 0)
		return result;
	pipeline_worker_init(&worker->pipeline, &dataplane->pipeline, index,
		dataplane->flows[index].table, &stats, memory + WORKER_ALIGN_UP(sizeof(*worker)));
	worker->shared = &dataplane->shared;
	worker->node = node;
	worker->ns_per_tsc32 =
		(uint64_t)(((unsigned __int128)1000000000u << 32) / dataplane->shared.tsc_hz);
	worker_assign_queues(worker, dataplane->options->worker_count);
	if (worker->queue_count == 0)
		log_warning(
			"worker %u: no receive queue on any port; it only expires flows", index);
	return 0;
}

static int make_workers(struct dataplane *dataplane, char *error)
{
	const struct options *options = dataplane->options;
	int result = stats_file_open(&dataplane->stats, options->run_dir, &options->capacity);

	if (result != 0)
		return fail(
			error, result, "stats file in %s: %s", options->run_dir, strerror(-result));
	dataplane->stats.header->tsc_hz = dataplane->shared.tsc_hz;
	dataplane->stats.header->flow_entries = flow_table_capacity(options->flow_entries);
	for (uint32_t w = 0; w < options->worker_count && result == 0; w++)
		result = make_worker(dataplane, w, error);
	flow_file_remove_from(options->huge_dir != NULL ? options->huge_dir : options->run_dir,
		options->worker_count);
	dataplane->stats.header->hugepage_bytes = hugemem_held();
	return result;
}

// Starts the workers and waits until each has polled once: then packets flow.
static int launch(struct dataplane *dataplane, char *error)
{
	const struct timespec pause = {.tv_nsec = 200000};
	uint64_t limit_ns = clock_ns(CLOCK_MONOTONIC) + FIRST_POLL_WAIT_S * 1000000000ull;

	for (uint32_t w = 0; w < dataplane->options->worker_count; w++) {
		int result = rte_eal_remote_launch(worker_run, dataplane->workers[w], EAL_LCORE(w));

		if (result != 0)
			return fail(error, result, "worker %u: %s", w, strerror(-result));
		dataplane->running = w + 1;
	}
	for (uint32_t w = 0; w < dataplane->options->worker_count; w++) {
		struct worker *worker = dataplane->workers[w];

		while (__atomic_load_n(&worker->first_poll_ns, __ATOMIC_ACQUIRE) == 0) {
			if (clock_ns(CLOCK_MONOTONIC) > limit_ns)
				return fail(error, -ETIMEDOUT, "worker %u: does not poll", w);
			nanosleep(&pause, NULL);
		}
	}
	return 0;
}

// Hands a frame of main's own to worker 0, which has a transmit queue.
static void post(struct dataplane *dataplane, const struct pipeline_frame *frame)
{
	struct port *port = &dataplane->ports[frame->port];
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool_of_node(dataplane, port->node));
	char *data;

	if (mbuf == NULL)
		return; // asked again in a second
	data = rte_pktmbuf_append(mbuf, frame->length);
	if (data != NULL) {
		memcpy(data, frame->bytes, frame->length);
		mbuf->port = port->id;
		if (rte_ring_sp_enqueue(dataplane->shared.mailbox, mbuf) == 0)
			return;
	}
	rte_pktmbuf_free(mbuf);
}

static void announce(struct dataplane *dataplane)
{
	struct pipeline_frame frame;

	for (unsigned i = 0; pipeline_announcement_frame(&dataplane->pipeline, i, &frame); i++)
		post(dataplane, &frame);
}

// Neighbours ask for an IPv6 address in a group; switches that snoop forget who is in it.
static void join_groups(struct dataplane *dataplane)
{
	uint32_t now_s = dataplane->shared.now_s;
	struct pipeline_frame frame;

	if (now_s < dataplane->membership_due_s)
		return;
	dataplane->membership_due_s = now_s + DISCOVERY_MEMBERSHIP_S;
	for (unsigned i = 0; pipeline_membership_frame(&dataplane->pipeline, i, &frame); i++) {
		if (frame.length != 0)
			post(dataplane, &frame);
	}
}

static void set_clocks(struct dataplane *dataplane)
{
	uint64_t packet_ns = worker_clock_ns(dataplane->workers[0]);

	__atomic_store_n(&dataplane->shared.now_s, boot_seconds(), __ATOMIC_RELAXED);
	__atomic_store_n(&dataplane->pipeline.realtime_offset_ns,
		(int64_t)(clock_ns(CLOCK_REALTIME) - packet_ns), __ATOMIC_RELAXED);
}

// Ends a phase of starting at a moment (CLOCK_MONOTONIC).
static void end_phase(struct dataplane *dataplane, enum startup_phase phase, uint64_t at_ns)
{
	dataplane->startup_ns[phase] = at_ns - dataplane->phase_ns;
	dataplane->phase_ns = at_ns;
}

int dataplane_open(struct dataplane *ret, const struct options *options, uint64_t started_ns,
	char ret_error[static DATAPLANE_ERROR_BYTES])
{
	int result;

	ret->options = options;
	ret->started_ns = ret->phase_ns = started_ns;
	result = lock_run_dir(ret, ret_error);
	if (result == 0)
		result = make_shared(ret, ret_error);
	end_phase(ret, STARTUP_EAL, clock_ns(CLOCK_MONOTONIC));
	if (result == 0)
		result = open_ports(ret, ret_error);
	end_phase(ret, STARTUP_PORTS, clock_ns(CLOCK_MONOTONIC));
	if (result == 0)
		result = make_pipeline(ret, ret_error);
	if (result == 0)
		result = make_workers(ret, ret_error);
	if (result != 0)
		return result;
	end_phase(ret, STARTUP_FLOWS, clock_ns(CLOCK_MONOTONIC));
	set_clocks(ret);
	persist_load(ret);
	end_phase(ret, STARTUP_SNAPSHOT, clock_ns(CLOCK_MONOTONIC));
	result = launch(ret, ret_error);
	if (result != 0)
		return result;
	end_phase(ret, STARTUP_POLL, ret->workers[0]->first_poll_ns);
	memcpy(ret->stats.header->startup_ns, ret->startup_ns, sizeof(ret->startup_ns));
	announce(ret);
	return 0;
}

void dataplane_tick(struct dataplane *dataplane)
{
	struct pipeline_frame frames[FRAMES_MAX];
	unsigned count;

	set_clocks(dataplane);
	stats_file_beat(&dataplane->stats);
	count = pipeline_neighbour_frames(
		&dataplane->pipeline, dataplane->shared.now_s, frames, FRAMES_MAX);
	for (unsigned i = 0; i < count; i++)
		post(dataplane, &frames[i]);
	join_groups(dataplane);
	for (uint32_t p = 0; p < dataplane->options->port_count; p++)
		port_watch_link(&dataplane->ports[p]);
}

void dataplane_close(struct dataplane *dataplane)
{
	__atomic_store_n(&dataplane->shared.stop, true, __ATOMIC_RELAXED);
	for (uint32_t w = 0; w < dataplane->running; w++)
		rte_eal_wait_lcore(EAL_LCORE(w));
	for (uint32_t p = 0; p < PIPELINE_PORTS_MAX; p++)
		port_close(&dataplane->ports[p]);
	publish_close(dataplane);
	for (uint32_t w = 0; w < PIPELINE_WORKERS_MAX; w++) {
		flow_file_close(&dataplane->flows[w]);
		hugemem_free(dataplane->workers[w], worker_bytes());
	}
	hugemem_free(dataplane->neighbour_memory, dataplane->neighbour_bytes);
	stats_file_close(&dataplane->stats);
	rte_ring_free(dataplane->shared.mailbox);
	free(dataplane->shared.qsbr);
	for (uint32_t i = 0; i < RTE_DIM(dataplane->pools); i++)
		rte_mempool_free(dataplane->pools[i]);
	if (dataplane->run_dir_lock > 0)
		close(dataplane->run_dir_lock - 1);
	memset(dataplane, 0, sizeof(*dataplane));
}
