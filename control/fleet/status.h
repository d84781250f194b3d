// SPDX-License-Identifier: Apache-2.0
// What a node says about itself, as JSON under status/node/NAME in the store.
//
// A statement, not a heartbeat: a node that stops writing goes on forwarding, and is counted as missing by whoever
// looks. Counters only grow while the dataplane lives; readers take differences.
//
// Small, for every node writes it every few seconds and all are read together: at most 1.5 KiB, and as much for each
// pool with a cutover. Nothing in it is by backend or by worker.
#pragma once

#include "common/ring.h"
#include "common/stats.h"
#include "control/cutover/spec.h"

#include <jansson.h>

#define FLEET_STATUS_PREFIX "status/node/"
#define FLEET_POOLS_MAX     64u // of a node that take part in cutovers
#define FLEET_TEXT_BYTES    192u

// A node writes at least this often, jittered, and at once when it follows another revision; who was not heard of for
// FLEET_MISSING_MS is missing.
#define FLEET_STATUS_MS  10000u
#define FLEET_MISSING_MS 30000u

enum fleet_dataplane {
	FLEET_DATAPLANE_ABSENT,  // nobody forwards
	FLEET_DATAPLANE_BEHIND,  // forwards with something older than the document
	FLEET_DATAPLANE_CURRENT, // uses exactly the document's snapshot and shares
};

// What ringwayd does from the opening of its store until the dataplane is current.
enum daemon_phase {
	DAEMON_READ,    // the newest document, read and checked
	DAEMON_BUILD,   // rings and snapshot
	DAEMON_PUBLISH, // the first exchange after which the dataplane was current
	DAEMON_PHASES,
};

// One pool with a cutover, as the node has it.
struct fleet_pool {
	char pool[CUTOVER_NAME_BYTES];
	uint64_t revision;      // shares_revision that the dataplane follows
	uint32_t share;         // that it uses, millionths
	bool local;             // overridden on the node: rollback --local
	bool moves_established; // established flows of the new ring come back
	bool has_old;           // old_digest holds
	bool has_new;
	uint8_t old_digest[RING_DIGEST_BYTES]; // all subset rings together, see fleet_digest_add()
	uint8_t new_digest[RING_DIGEST_BYTES];
	char error[FLEET_TEXT_BYTES]; // why the node cannot hold the new ring; ""
	// Counters since the dataplane started.
	uint64_t flows_old;
	uint64_t flows_new;
	uint64_t aborts_old;
	uint64_t aborts_new;
	uint64_t drops_old;
	uint64_t drops_new;
	uint64_t packets_old;
	uint64_t packets_new;
	uint64_t shadow_same; // sampled new flows for which both rings agree
	uint64_t shadow_different;
	uint64_t ring_bytes_old; // of all subset rings, in all workers
	uint64_t ring_bytes_new;
	uint64_t recalled; // flows that a rollback moved from the new ring to another backend
	uint64_t live_new; // entries of the flow tables that the new ring picked, in the last sweep
	// The hottest backend since the last change of share: the new flows that it got, and the most that its rings
	// and chance explain. load_flows: new flows of the pool; 0 when they are too few to mean anything.
	char load_backend[CUTOVER_NAME_BYTES];
	double load;
	double load_expected;
	uint64_t load_flows;
};

// New flows of a pool a second, over about the last minute.
struct fleet_rate {
	char pool[CUTOVER_NAME_BYTES];
	double flows_per_second;
};

struct fleet_status {
	char node[CUTOVER_NAME_BYTES];
	char datacenter[CUTOVER_NAME_BYTES];
	uint64_t time_ms;    // since 1970, the node's clock
	uint64_t generation; // of the document that it has taken into use
	enum fleet_dataplane dataplane;
	char text[FLEET_TEXT_BYTES]; // of the dataplane
	bool kill_switch;
	bool draining;       // about to leave
	uint64_t started_ns; // of the dataplane: counters of another start are other counters
	uint64_t startup_ns;
	uint64_t startup_phases_ns[STARTUP_PHASES]; // add up to startup_ns
	uint64_t daemon_startup_ns[DAEMON_PHASES];
	uint64_t dataplane_resident_bytes; // huge pages not counted
	uint64_t daemon_resident_bytes;
	uint64_t hugepage_bytes;
	uint64_t snapshot_bytes; // of one worker's copy
	uint64_t rx_packets;
	uint64_t busy_cycles;
	struct fleet_pool pools[FLEET_POOLS_MAX];
	uint32_t pool_count;
	struct fleet_rate rates
		[FLEET_POOLS_MAX]; // of the first pools that have any flows, in a cutover or not
	uint32_t rate_count;
};

// The pool of a status, or NULL.
const struct fleet_pool *fleet_pool_find(const struct fleet_status *status, const char *pool);

// The rate of a pool; 0 when the node has said none.
double fleet_rate_find(const struct fleet_status *status, const char *pool);

// Adds a ring's digests to that of all subset rings of a pool; the order of adding does not matter.
void fleet_digest_add(uint8_t digest[RING_DIGEST_BYTES], const struct ring_header *ring);

// Writes a status. Returns a new reference, or NULL when memory is short.
json_t *fleet_status_write(const struct fleet_status *status);

// Reads a status of any node. Returns 0, or -EINVAL when it is none; *ret is then undefined.
int fleet_status_read(const json_t *object, struct fleet_status *ret);

const char *fleet_dataplane_name(enum fleet_dataplane state);

// "read", "build", "publish".
const char *fleet_daemon_phase_name(enum daemon_phase phase);

// Phases of a start as an object, by name. New references.
json_t *fleet_startup_write(const uint64_t phases_ns[static STARTUP_PHASES]);
json_t *fleet_daemon_startup_write(const uint64_t phases_ns[static DAEMON_PHASES]);
