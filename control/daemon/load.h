// SPDX-License-Identifier: Apache-2.0
// How new flows reached the backends of a pool, against what its rings make of them.
//
// Each service of a pool asks one subset ring, in a cutover two; so a backend should get the sum, over services and
// sides, of the flows that asked a ring times the backend's part of that ring. Rings are taken from the snapshot, where
// health is resolved as the dataplane uses it: a backend that is down, or that only one ring has, needs no special case.
#pragma once

#include "common/snapshot.h"

#include <stdbool.h>

struct load;

// Where the counters of the dataplane come from: sums over its workers since it started.
struct load_counters {
	void *context;
	// Each is a new flow of a service, by the ring that picked; and of a backend.
	void (*service)(void *context, uint32_t id, uint64_t *ret_old, uint64_t *ret_new);
	uint64_t (*backend)(void *context, uint32_t id);
	uint64_t epoch; // changes when the counters begin anew
};

// Begins with nothing seen. Returns NULL when memory is short.
struct load *load_create(void);
void load_free(struct load *load); // NULL is allowed

// Adds what came since the last look, if the dataplane used this one snapshot all the while; what came across a change
// of the snapshot or a restart of the dataplane belongs to no ring and is left out.
// snapshot: that the dataplane uses now. pool: id of a used pool.
// Returns 0 or -ENOMEM, after which nothing counts until the next look.
// Cost: one counter of each service and backend of the pool; one pass over its rings' points when the snapshot is new.
int load_look(struct load *load, const struct snapshot *snapshot, uint32_t pool,
	const struct load_counters *counters);

// The dataplane uses something else than a snapshot that is known: what comes until the next look does not count.
void load_skip(struct load *load);

// Forgets what was added; the last look stays where counting goes on from.
void load_reset(struct load *load);

struct load_hottest {
	uint32_t backend; // id
	uint64_t flows;   // new ones that it got
	double expected;  // that it should have got
	double most;      // the same with what chance adds
	uint64_t total;   // new flows of the pool
};

// The backend that is furthest beyond what chance allows. Returns false when there were too few flows to tell: 64 for
// each backend that should get some.
bool load_hottest(const struct load *load, struct load_hottest *ret);

// The most flows that chance explains where so many are expected: Bernstein's bound e + sqrt(2 e t) + t/3 at t = 8, that
// is four standard deviations and a bit that keeps it true for small counts. It is passed with a probability below exp(-8).
double load_most(double expected);
