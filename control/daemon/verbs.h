// SPDX-License-Identifier: Apache-2.0
// The verbs of ringwayd's socket: thin callers of the node (node.h), one table.
#pragma once

#include "control/daemon/fleet_link.h"
#include "control/daemon/node.h"
#include "control/daemon/server.h"
#include "control/metrics/stats_file.h"

// The churn from one ring to another, by the digests of their points.
struct verbs_churn {
	uint8_t before[RING_DIGEST_BYTES];
	uint8_t after[RING_DIGEST_BYTES];
	double churn;
};

#define VERBS_CHURNS_MAX 8u

// What every verb sees, as server_call.context.
struct verbs {
	struct node *node;
	struct fleet_link *fleet;     // NULL in tests of one node
	const struct server *server;  // for status; may be NULL
	struct stats_file stats;      // of the dataplane; mapped when it is asked for
	uint64_t started_ns;          // CLOCK_MONOTONIC, of this ringwayd
	sd_event_source *trace_lease; // while traces run: ends them when nobody reads any more
	struct verbs_churn churns[VERBS_CHURNS_MAX]; // worked out before; written round and round
	unsigned churn_next;
};

extern const struct server_verb verbs_table[];
extern const unsigned verbs_count;

// The stats file of the node's dataplane, mapped anew if it restarted; NULL when there is none.
const struct stats_file *verbs_stats(struct verbs *verbs);

static inline struct verbs *verbs_of(const struct server_call *call)
{
	return call->context;
}

// Fills a request of the node from a call. Its texts live as long as the call.
struct node_request verbs_request(const struct server_call *call);

// The cutovers over the fleet, the newest that are known here; NULL when there is no fleet (tests).
const struct fleet_cutovers *verbs_cutovers(struct verbs *verbs);

// Turns what the node did into the call's answer, and frees the outcome.
void verbs_outcome(struct server_call *call, struct node_outcome *outcome);

// Findings of a file that was refused, as details of the failure: the text that `ringway validate` prints.
void verbs_findings(struct server_call *call, const struct config_report *report);

// The pool that "pool" names. ANSWER_DONE, or the failure is set.
enum answer verbs_pool(struct server_call *call, const struct config_pool **ret);

// The text of a ring's parameters: "v2 x16", "v2 x16 seed 4fa6e279" for one with a hash seed of its own, by its mark.
void verbs_ring_text(const struct config_ring *ring, char *ret, size_t ret_bytes);
void verbs_ring_shape_text(
	uint32_t version, uint32_t points, uint64_t seed_mark, char *ret, size_t ret_bytes);

// Name of what an id stands for, or NULL; pool: the pool of a backend.
const char *verbs_name(const struct verbs *verbs, enum document_kind kind, uint32_t id);

// Id of a name, or UINT32_MAX. pool: of backends, else "".
uint32_t verbs_id(
	const struct verbs *verbs, enum document_kind kind, const char *pool, const char *name);

// --- handlers, by file ---------------------------------------------------------------------------

void verb_apply(struct server_call *call); // verb_config.c
void verb_diff(struct server_call *call);
void verb_config_export(struct server_call *call);

void verb_service_list(struct server_call *call); // verb_list.c
void verb_service_show(struct server_call *call);
void verb_pool_list(struct server_call *call);
void verb_pool_show(struct server_call *call);
void verb_backend_list(struct server_call *call);
void verb_backend_show(struct server_call *call);

void verb_backend_add(struct server_call *call); // verb_backend.c
void verb_backend_set(struct server_call *call);
void verb_backend_drain(struct server_call *call);
void verb_backend_del(struct server_call *call);

void verb_ring_list(struct server_call *call); // verb_ring.c

void verb_cutover_list(struct server_call *call); // verb_cutover.c
void verb_cutover_show(struct server_call *call);
void verb_cutover_set(struct server_call *call);
void verb_cutover_rollback(struct server_call *call);
void verb_cutover_retire(struct server_call *call);
void verb_cutover_discard(struct server_call *call);

void verb_cutover_plan(struct server_call *call); // verb_plan.c
void verb_cutover_stage(struct server_call *call);

void verb_cutover_start(struct server_call *call); // verb_fleet.c
void verb_cutover_advance(struct server_call *call);
void verb_cutover_pause(struct server_call *call);
void verb_cutover_resume(struct server_call *call);
void verb_cutover_override(struct server_call *call);
void verb_cutover_lock(struct server_call *call);
void verb_cutover_unlock(struct server_call *call);
void verb_cutover_kill_switch(struct server_call *call);

void verb_node_list(struct server_call *call); // verb_node.c
void verb_dc_list(struct server_call *call);
void verb_ring_verify(struct server_call *call);
void verb_cutover_history(struct server_call *call);
void verb_audit_list(struct server_call *call);
void verb_audit_verify(struct server_call *call);

void verb_explain(struct server_call *call); // verb_explain.c

void verb_trace_start(struct server_call *call); // verb_trace.c
void verb_trace_stop(struct server_call *call);
void verb_trace_read(struct server_call *call);

void verb_status(struct server_call *call); // verb_stats.c
void verb_stats(struct server_call *call);
