// SPDX-License-Identifier: Apache-2.0
// What ringwayd does, without the socket: verbs of the server are thin callers of these functions.
//
// A change runs parse, validate, compare-and-swap commit, ring build, snapshot, dataplane. An error before the
// commit changes nothing. An error after it (dataplane absent or refusing) leaves the commit, keeps the dataplane
// on what it has, is told in the outcome, and is tried again by a timer.
// Context: the daemon's one thread. Calls may wait for the dataplane, at most NODE_DATAPLANE_WAIT_MS and 1 s for every
// 32 MiB of a new snapshot.
#pragma once

#include "common/ipc.h"
#include "control/config/config.h"
#include "control/config/diff.h"
#include "control/config/report.h"
#include "control/daemon/document.h"

#include <stdbool.h>
#include <sys/types.h>

#define NODE_DATAPLANE_WAIT_MS 5000
#define NODE_TEXT_BYTES        512u

struct node;
struct sd_event;

// Who asks for a change, and why; goes to the audit log.
struct node_request {
	const char *verb;
	const char *reason; // "" allowed where the verb needs none
	uid_t uid;
	gid_t gid;
	pid_t pid;
	uint64_t generation; // expected current generation; 0: any
	bool dry_run;        // all but the commit
	bool force;          // past NODE_REFUSED; needs a reason
};

// What came of a request. Numbers are CLI exit codes.
enum node_code {
	NODE_OK = 0,
	NODE_FAILED = 1,
	NODE_USAGE = 2,
	NODE_NOT_FOUND = 3,
	NODE_CONFLICT = 4,
	NODE_INVALID = 7,
	NODE_REFUSED = 8,
};

// What a change moves on one ring.
struct node_move {
	char ring[160]; // "web+nvme,eu", with "@new" for the new ring of a cutover
	double moved; // share of the ring's keys that get another backend, 0..1; health and drains count
	double hottest_before; // largest share beside its weight's; 0: there was no such ring
	double hottest_after;
	uint64_t bytes_before; // a worker
	uint64_t bytes_after;
};

struct node_outcome {
	enum node_code code;
	bool changed;                    // something was (dry_run: would be) committed
	bool in_use;                     // the dataplane acknowledged it
	uint64_t generation;             // of the document now
	uint64_t snapshot;               // generation of its snapshot
	char text[NODE_TEXT_BYTES];      // one sentence: what was done, or why not
	char dataplane[NODE_TEXT_BYTES]; // what the dataplane uses now, or why it is not up to date
	struct node_move *moves;         // rings from which something moves
	uint32_t move_count;
	struct config_diff *diff; // what changed, or NULL
};

void node_outcome_free(struct node_outcome *outcome);

// Opens store and state; does not talk to the dataplane yet.
// Returns 0 or -errno; *ret_error is a sentence for people.
int node_open(const struct config_node *config, struct node **ret, char ret_error[NODE_TEXT_BYTES]);
void node_close(struct node *node);

// Whether node_open() had to do without the store.
bool node_started_alone(const struct node *node);

// Attaches timers (reconciliation, quarantine) and the store's watch to the event loop.
int node_attach(struct node *node, struct sd_event *event);

// --- changes: each returns outcome->code -------------------------------------------------------

// Applies a whole pools file. Another ring for a pool that exists would move most of its flows at once: refused
// (NODE_REFUSED) without force, a cutover does it in steps. report: initialised with the text; holds the findings afterwards.
enum node_code node_apply(struct node *node, const struct node_request *request,
	struct config_report *report, struct node_outcome *outcome);

// Backends of the configuration. mask: CONFIG_EDIT_* (control/config/edit.h).
enum node_code node_backend_add(struct node *node, const struct node_request *request,
	const char *pool, const struct config_backend *backend, struct node_outcome *outcome);
enum node_code node_backend_set(struct node *node, const struct node_request *request,
	const char *pool, const struct config_backend *backend, uint32_t mask,
	struct node_outcome *outcome);
enum node_code node_backend_remove(struct node *node, const struct node_request *request,
	const char *pool, const char *backend, struct node_outcome *outcome);

// Which parts of a cutover to set.
struct node_cutover {
	const char *pool;
	bool has_ring; // start one, or confirm the one under way (another ring is a conflict)
	struct config_ring ring;
	// Members of the new ring if they change, too; none: those of the pool.
	const struct config_backend *backends;
	uint32_t backend_count;
	bool has_share;
	uint32_t share; // millionths
};

// Starts a cutover (with has_ring; share 0 unless given) or moves its share.
enum node_code node_cutover_set(struct node *node, const struct node_request *request,
	const struct node_cutover *cutover, struct node_outcome *outcome);
// Share to 0, both rings stay; move_established: and established flows of the new ring come back, until the share is set
// again or the cutover ends. Ignores request->generation; legal whenever a cutover exists.
enum node_code node_cutover_rollback(struct node *node, const struct node_request *request,
	const char *pool, bool move_established, struct node_outcome *outcome);
// Makes the new ring the only one; refused (NODE_REFUSED) below 100 %.
enum node_code node_cutover_retire(struct node *node, const struct node_request *request,
	const char *pool, struct node_outcome *outcome);
// Drops the new ring; refused above 0 %.
enum node_code node_cutover_discard(struct node *node, const struct node_request *request,
	const char *pool, struct node_outcome *outcome);

// --- shares of a fleet's cutovers ----------------------------------------------------------------

#define NODE_SHARES_MAX 512u // a pool in a cutover has two rings at least, of 1,024

// A share that this node uses for a pool's cutover whatever the document says.
struct node_share {
	char pool[CONFIG_NAME_BYTES];
	uint32_t share;         // millionths
	bool moves_established; // at share 0: established flows of the new ring come back, too
};

// Takes shares into use, in place of those of the last call, and sends what differs. Pools that are in no cutover
// are passed over. takes_none: cutovers that shares does not name are at 0, also those that begin later. Returns as node_reconcile(); 0 also when nothing differs from what the dataplane had.
int node_shares_set(
	struct node *node, const struct node_share *shares, uint32_t count, bool takes_none);

// Both rings of a cutover, built but not committed, as `cutover plan` measures them.
struct node_preview;

// Builds what the pool would have with the ring and members that wanted names. outcome: says why not.
// Returns outcome->code; *ret is the caller's, to be freed with node_preview_free().
enum node_code node_preview(struct node *node, const struct node_cutover *wanted,
	struct node_preview **ret, struct node_outcome *outcome);
void node_preview_free(struct node_preview *preview); // NULL is allowed

struct node_ring;

// The rings of a service in the preview, as node_service_rings(); its document, for names and weights.
void node_preview_service_rings(const struct node_preview *preview, uint32_t service,
	const struct node_ring **ret_old, const struct node_ring **ret_new);
const struct document *node_preview_document(const struct node_preview *preview);

// --- views: valid until the next change ---------------------------------------------------------

const struct config_node *node_config(const struct node *node);
const struct document *node_document(const struct node *node);

// The snapshot that stands for the document: what the dataplane uses or will use.
const struct snapshot *node_snapshot(const struct node *node);

// A built ring. One may serve several services, and both of a pool's rings may be the same.
struct node_ring {
	uint32_t index; // in node_snapshot()->rings
	const char *pool;
	bool is_new;       // the new ring of a cutover
	const char **tags; // that its members have been chosen by
	uint32_t tag_count;
	uint32_t service_count; // that use it
	uint64_t v1_bytes;      // what 160 points a weight at 8 bytes would take
	uint64_t build_ns;
	const struct ring *ring; // header: version, points, members, usable, digests, bytes
};

// Writes the rings in use to *ret (an array owned by the node).
uint32_t node_rings(const struct node *node, const struct node_ring **ret);

// The rings that a service asks. *ret_new: NULL outside a cutover; the same as *ret_old where the cutover changes nothing.
// service: position in node_document(node)->pools->services.
void node_service_rings(const struct node *node, uint32_t service, const struct node_ring **ret_old,
	const struct node_ring **ret_new);

enum node_dataplane_state {
	NODE_DATAPLANE_ABSENT,  // no socket, or nobody answers
	NODE_DATAPLANE_BEHIND,  // answers, uses something older (text says why)
	NODE_DATAPLANE_CURRENT, // uses exactly the document's snapshot and gates
};

struct node_dataplane {
	enum node_dataplane_state state;
	char text[NODE_TEXT_BYTES];
	struct ipc_status status; // of the last answer
};

// What is known of the dataplane since the last exchange. Does not talk to it.
const struct node_dataplane *node_dataplane(const struct node *node);

// Time that each phase of this daemon's start took (enum daemon_phase); those that are not over yet are 0.
const uint64_t *node_startup(const struct node *node);

// Talks to the dataplane: compares what it uses with the document and sends what differs.
// Returns 0 when it is current afterwards, else -errno (node_dataplane()->text says why).
int node_reconcile(struct node *node);

// Asks the dataplane where a flow goes, its flow table included. Returns 0 or -errno (-ENOTCONN: absent).
int node_explain_live(struct node *node, const struct flow_key *key, struct ipc_explained *ret);

// Switches the traces of selections on (1 of 2^shift new flows) or off; takes what was traced since the last call.
// Return 0 or -errno with a sentence in ret_text (NODE_TEXT_BYTES).
int node_trace_set(struct node *node, bool enabled, unsigned shift, char *ret_text);
int node_trace_read(struct node *node, struct ipc_traces *ret, char *ret_text);

// The store, for what is beside the document: audit log, keys, history.
struct store;
struct store *node_store(struct node *node);

// The same from the snapshot alone, with the code that the dataplane runs.
void node_explain(const struct node *node, const struct flow_key *key, struct ipc_explained *ret);
