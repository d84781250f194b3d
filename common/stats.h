// SPDX-License-Identifier: Apache-2.0
// The stats file: counters of the dataplane in shared memory, read-only for everybody else, so that reading
// statistics never messages a worker.
//
//	stats_header | names | worker 0 | worker 1 | ...
//	one worker:  counter[] | drop[] | stats_service[] | stats_pool[] | stats_backend[]   (each on its own line)
//
// Plain 64-bit counters with one writer each; readers use relaxed loads and may see one packet more in one
// counter than in another. Workers publish their private sums once a burst.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STATS_MAGIC       UINT64_C(0x3130535359574752) // "RGWYSS01"
#define STATS_FORMAT      UINT32_C(2)
#define STATS_LINE        64u
#define STATS_WORKERS_MAX 64u
#define STATS_NAME_BYTES  32u

#define COUNTER(name, text) COUNTER_##name,
enum counter {
#include "common/counters.def"
	COUNTER_COUNT,
};
#undef COUNTER

#define DROP(name, stage, text) DROP_##name,
enum drop_reason {
#include "common/drops.def"
	DROP_COUNT,
};
#undef DROP

// What a dataplane does before it forwards, in the order of time. The phases add up to startup_ns of its status.
enum startup_phase {
	STARTUP_EAL,      // from main() until EAL and what workers share are there
	STARTUP_PORTS,    // packet buffers, devices
	STARTUP_FLOWS,    // neighbours, flow tables taken over, this file
	STARTUP_SNAPSHOT, // the last snapshot and gates, checked and copied for each worker
	STARTUP_POLL,     // from there to the first poll
	STARTUP_PHASES,
};

struct stats_header {
	uint64_t magic;
	uint32_t format;
	uint32_t header_bytes;
	uint64_t bytes; // of the whole file
	uint32_t worker_count;
	uint32_t counter_count;
	uint32_t drop_count;
	uint32_t service_count; // slots by service id
	uint32_t pool_count;    // slots by pool id
	uint32_t backend_count; // slots by backend id
	uint64_t names_offset;  // counter_count + drop_count names of STATS_NAME_BYTES, NUL padded
	uint64_t workers_offset;
	uint64_t worker_bytes;    // stride of a worker's block
	uint64_t services_offset; // these three from the start of a worker's block
	uint64_t pools_offset;
	uint64_t backends_offset;
	uint64_t pid;
	uint64_t started_ns;   // CLOCK_REALTIME
	uint64_t heartbeat_ns; // CLOCK_MONOTONIC, by the main lcore, at least once a second
	uint64_t generation;   // of the snapshot that all workers use
	uint64_t tsc_hz;
	uint64_t flow_entries;               // capacity of each worker's flow table
	uint64_t hugepage_bytes;             // held by the process
	uint64_t snapshot_bytes;             // of one worker's copy
	uint64_t startup_ns[STARTUP_PHASES]; // all 0 until the first poll
	uint64_t reserved[3];
};

// For each service id and worker: one line, of which established flows touch the first half. The sides tell how many
// flows asked each of the service's subset rings.
struct stats_service {
	uint64_t packets;
	uint64_t bytes;         // of the packets as they came
	uint64_t new_flows_old; // picked on the old ring
	uint64_t new_flows_new; // picked on the new ring
	uint64_t drops;
	uint64_t reserved[3];
};

// A flow that aborts by silence is counted so long after its SYN, at the latest.
#define STATS_ABORT_DELAY_MS 8000u

// For each pool id and worker: the two sides of a cutover.
struct stats_pool {
	uint64_t new_flows_old; // picked on the old ring
	uint64_t new_flows_new; // picked on the new ring
	uint64_t packets_old;
	uint64_t packets_new;
	// Flows that aborted early, once each: a RST from the client within the first packets, the SYN again before any
	// other packet, or nothing at all for 4 to 8 s after the SYN (the backend refused or was silent).
	uint64_t aborts_old;
	uint64_t aborts_new;
	uint64_t drops_old; // no usable backend
	uint64_t drops_new;
	// The second line, which packets do not touch: new flows, sampled by their hash, for which both rings pick the
	// same backend, or different ones.
	uint64_t shadow_same;
	uint64_t shadow_different;
	// Entries alive in the last sweep that were picked on the new ring; goes up and down.
	uint64_t live_new;
	uint64_t recalled; // flows that a rollback moved from the new ring to another backend
	uint64_t reserved[4];
};

// For each backend id and worker.
struct stats_backend {
	uint64_t packets;
	uint64_t bytes; // of the packets as they came
	uint64_t new_flows;
	uint64_t reserved;
};

_Static_assert(sizeof(struct stats_service) == 64, "format 2");
_Static_assert(sizeof(struct stats_pool) == 128, "format 2");
_Static_assert(sizeof(struct stats_backend) == 32, "format 2");

struct stats_geometry {
	uint32_t worker_count; // 1..STATS_WORKERS_MAX
	uint32_t service_count;
	uint32_t pool_count;
	uint32_t backend_count;
};

// Pointers into one worker's block. Writer: that worker alone.
struct stats_worker {
	uint64_t *counter;              // [COUNTER_COUNT]
	uint64_t *drop;                 // [DROP_COUNT]
	struct stats_service *services; // [service_count]
	struct stats_pool *pools;       // [pool_count]
	struct stats_backend *backends; // [backend_count]
};

// A checked view of a stats file. Owns nothing.
struct stats {
	const struct stats_header *header;
	const char (*names)[STATS_NAME_BYTES];
};

// Bytes of a stats file.
uint64_t stats_footprint(const struct stats_geometry *geometry);

// Formats zeroed memory of stats_footprint() bytes, aligned to STATS_LINE, as a stats file.
void stats_format(void *memory, const struct stats_geometry *geometry);

// Checks a stats file. bytes: readable at memory.
// Returns 0; -EINVAL when it is none or is cut; -ENOTSUP when its format is newer.
int stats_open(const void *memory, uint64_t bytes, struct stats *ret);

// The block of a worker, 0..worker_count-1. For the writer, memory is the one that was formatted; a reader may
// only read through it.
struct stats_worker stats_worker(const void *memory, uint32_t worker);

// Names and sentences of this build's counters and reasons.
const char *stats_counter_name(enum counter counter);
const char *stats_counter_text(enum counter counter);
const char *stats_drop_name(enum drop_reason reason);
const char *stats_drop_text(enum drop_reason reason);
const char *stats_drop_stage(enum drop_reason reason);

// "eal", "ports", "flows", "snapshot", "poll".
const char *stats_startup_name(enum startup_phase phase);
