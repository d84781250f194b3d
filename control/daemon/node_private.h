// SPDX-License-Identifier: Apache-2.0
// What the parts of node.h share. Private to node*.c.
#pragma once

#include "control/daemon/dataplane.h"
#include "control/daemon/image.h"
#include "control/daemon/node.h"
#include "control/daemon/rings.h"
#include "control/fleet/status.h"
#include "control/store/store.h"

#include <systemd/sd-event.h>

// Everything that follows from one document. Made whole, then put in the place of the one before.
struct node_state {
	struct document *document;
	struct rings *rings;
	struct image image;
	struct node_ring *views;
	uint32_t ring_count;
};

// What the steering program of a port was told last.
struct node_steered {
	uint64_t generation; // of the document
	uint32_t program;    // id in the kernel; 0: nothing yet
	int result;          // 0 or -errno of the last attempt
};

struct node {
	const struct config_node *config;
	struct store *store;
	struct node_state now;
	struct node_dataplane dataplane;
	uint64_t sent_checksum;      // of the image that this process sent last; 0: none
	uint64_t refused_generation; // snapshot that the dataplane refused; it is not offered again
	uint64_t refused_by_ns;      // start of the dataplane that refused it
	sd_event_source *timer;
	sd_event_source *watch;
	bool alone;     // it started with what it knew last: the store was not to be had
	bool raising;   // a snapshot generation is being raised above the dataplane's
	unsigned ticks; // since the store was read whole
	struct node_share shares[NODE_SHARES_MAX]; // of the fleet's cutovers
	uint32_t share_count;
	bool takes_none; // every other cutover is at 0 here
	struct node_steered steered[CONFIG_LINKS_MAX];
	uint64_t startup_ns[DAEMON_PHASES];
};

// A change on its way to a commit.
struct node_change {
	const struct node_request *request;
	struct document *next; // owned; taken by the commit
	bool only_shares;      // no new snapshot is needed
	struct node_outcome *outcome;
};

// Fills the outcome and returns its code.
__attribute__((format(printf, 3, 4))) enum node_code node_say(
	struct node_outcome *outcome, enum node_code code, const char *format, ...);

// Begins a change: checks the expected generation and copies the document. On anything but NODE_OK nothing is begun.
enum node_code node_change_begin(struct node *node, const struct node_request *request,
	struct node_outcome *outcome, struct node_change *ret);

// Plans, builds, commits, takes into use and sends. Always ends the change (node_change_end()).
enum node_code node_change_commit(struct node *node, struct node_change *change);
void node_change_end(struct node_change *change);

// Reads the text of a document. what: begins the sentence about a fault. Returns as document_read(), with error
// (NODE_TEXT_BYTES) on failure.
int node_document_parse(
	const char *text, size_t length, const char *what, struct document **ret, char *error);

// Makes the state that follows from a document. Takes the document over, also on failure.
// rings are taken over from previous where they can be. Returns 0 or -errno with ret_error (NODE_TEXT_BYTES).
int node_state_make(const struct node *node, struct document *document,
	const struct node_state *previous, struct node_state *ret, char *ret_error);
void node_state_free(struct node_state *state);

// node_service_rings() of a state.
void node_state_service_rings(const struct node_state *state, uint32_t service,
	const struct node_ring **ret_old, const struct node_ring **ret_new);

// Puts the thresholds of a document's shares into the image's view.
void node_thresholds_set(struct node_state *state);

// Puts the fleet's shares into a document that is about to be used.
void node_shares_apply(const struct node *node, struct document *document);

// The document that is in use, kept in the run directory for a start without a store that others hold (etcd).
// node_cache_read() returns 0 or -errno; *ret_text is the caller's.
void node_cache_write(const struct node *node, const char *text, size_t length);
int node_cache_read(const struct node *node, char **ret_text, size_t *ret_length);

// Which image the dataplane was sent last: kept in the run directory, so that a daemon that restarts knows it again.
void node_sent_load(struct node *node);
void node_sent_save(const struct node *node);

// CLOCK_MONOTONIC.
uint64_t node_now_ns(void);

// Reads the store; takes a newer generation into use. Returns 0 (also when there is none) or -errno.
int node_refresh(struct node *node);

// Sends what differs; wait_ms: longest time of one exchange. Returns as node_reconcile().
int node_push(struct node *node, int wait_ms);

// Tells the steering programs of net_af_xdp ports the addresses of the document, if they do not know them yet. What goes
// wrong is said to the journal once, and tried again with the next push.
void node_steer(struct node *node);

// Measures what moves from one state to the next. *ret: for free().
int node_moves(const struct node_state *before, const struct node_state *after,
	struct node_move **ret, uint32_t *ret_count);

// Writes the audit entry of a change.
void node_audit(struct node *node, const struct node_request *request,
	const struct node_outcome *outcome, uint64_t before);
