// SPDX-License-Identifier: Apache-2.0
// A worker: one core that takes bursts from its receive queues, runs the pipeline, and sends.
#pragma once

#include "dataplane/io/port.h"
#include "dataplane/pipeline/pipeline.h"

#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

// Frames of main that wait for worker 0.
#define WORKER_MAILBOX_SIZE 512u

// Time since the last packet after which a worker may sleep, and for how long at a time.
#define WORKER_IDLE_US  1000u
#define WORKER_SLEEP_US 50u

// What all workers share, read-only to them.
struct worker_shared {
	const struct port *ports;
	uint32_t port_count;
	struct rte_rcu_qsbr *qsbr;
	struct rte_ring *mailbox; // main -> worker 0: mbufs, their port field names the port
	uint64_t tsc_hz;
	bool idle_sleep;
	const struct options *drop_privileges; // NULL: keep them
	// main rw, workers ro (relaxed)
	uint32_t now_s; // CLOCK_BOOTTIME
	bool stop;
};

// A queue that the worker polls.
struct worker_queue {
	uint16_t port_id; // of ethdev
	uint16_t queue;
	uint8_t port; // index
};

// Frames on their way to one transmit queue, and the packets of the burst that they are.
struct worker_batch {
	struct rte_mbuf *mbufs[PACKET_BURST];
	uint8_t packets[PACKET_BURST];
	uint16_t count;
};

struct worker {
	struct pipeline_worker pipeline;
	// main writes (release), the worker reads (acquire) once a burst: the block's contents are complete before its
	// pointer is seen.
	struct forwarding *published;
	struct worker_shared *shared;
	struct worker_queue queues[PIPELINE_PORTS_MAX * PIPELINE_WORKERS_MAX];
	uint32_t queue_count;
	int node;              // NUMA node of its core
	uint64_t ns_per_tsc32; // nanoseconds a TSC tick, times 2^32
	uint64_t housekeep_tsc;
	uint64_t busy_tsc;      // end of the last burst that was not empty
	void *memory;           // of pipeline_worker_init()
	uint64_t first_poll_ns; // CLOCK_MONOTONIC; 0: not yet
	// scratch of one burst
	struct packet packets[PACKET_BURST];
	struct rte_mbuf *received[PACKET_BURST];
	struct rte_mbuf *dropped[PACKET_BURST];
	struct worker_batch sends[PIPELINE_PORTS_MAX];
	struct worker_batch punts[PIPELINE_PORTS_MAX];
};

// Gives a worker its queues: of each port, queue q goes to worker q % worker_count.
void worker_assign_queues(struct worker *worker, uint32_t worker_count);

// The worker's clock: nanoseconds of the TSC.
uint64_t worker_clock_ns(const struct worker *worker);

// Polls every queue of the worker once and does what else is due. Returns the number of packets taken.
// Context: the worker's core, registered with shared->qsbr.
unsigned worker_poll(struct worker *worker);

// Runs until shared->stop. For rte_eal_remote_launch(); argument: struct worker.
int worker_run(void *argument);
