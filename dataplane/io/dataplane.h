// SPDX-License-Identifier: Apache-2.0
// The process as a whole: what main owns, in the order in which it comes up.
//
//	run directory locked -> EAL -> ports -> flow tables taken over -> the last snapshot and gates -> workers poll
//	-> socket opened -> privileges given up -> housekeeping until a signal
#pragma once

#include "dataplane/io/flow_file.h"
#include "dataplane/io/options.h"
#include "dataplane/io/port.h"
#include "dataplane/io/stats_file.h"
#include "dataplane/io/worker.h"

#define DATAPLANE_ERROR_BYTES 256u

// What serves now. Main's own view has the gates as they stand; each worker has a block of its own.
struct publication {
	void *image; // mapping of the accepted image, private to us; NULL: none yet
	uint64_t image_bytes;
	struct snapshot *snapshot; // view of image
	struct forwarding *forwarding[PIPELINE_WORKERS_MAX];
	void *blocks[PIPELINE_WORKERS_MAX]; // where they lie
	uint64_t block_bytes;               // of each
};

struct dataplane {
	const struct options *options;
	struct pipeline pipeline;
	struct port ports[PIPELINE_PORTS_MAX];
	struct worker_shared shared;
	struct worker *workers[PIPELINE_WORKERS_MAX];
	struct flow_file flows[PIPELINE_WORKERS_MAX];
	struct stats_file stats;
	struct publication publication;
	struct rte_mempool *pools[RTE_MAX_NUMA_NODES];
	void *neighbour_memory;
	uint64_t neighbour_bytes;
	uint64_t started_ns; // CLOCK_MONOTONIC, at main()
	uint64_t phase_ns;   // CLOCK_MONOTONIC, when the last phase of starting was over
	uint64_t startup_ns[STARTUP_PHASES];
	uint32_t running;          // workers launched
	uint32_t membership_due_s; // next report to switches that snoop
	int run_dir_lock;
};

// Brings everything up to the first poll. EAL must have started, and devices of options->ports be there.
// ret: zeroed. started_ns: CLOCK_MONOTONIC at main(), for the start-up time.
// Returns 0, or -errno with *ret_error; then dataplane_close() cleans up what was reached.
int dataplane_open(struct dataplane *ret, const struct options *options, uint64_t started_ns,
	char ret_error[static DATAPLANE_ERROR_BYTES]);

// What is due ten times a second: clocks, heartbeat, questions to neighbours, links. Context: main.
void dataplane_tick(struct dataplane *dataplane);

// Stops the workers and gives everything back. Flow files, stats and the last snapshot stay where they are.
void dataplane_close(struct dataplane *dataplane);
