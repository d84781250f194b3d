// SPDX-License-Identifier: Apache-2.0
// Brings the dataplane to what the document says, and only if it is not there yet.
#include "control/daemon/node_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Remembers what is known of the dataplane; says it to the journal when it is something else than before.
__attribute__((format(printf, 3, 4))) static void learn(
	struct node *node, enum node_dataplane_state state, const char *format, ...)
{
	struct node_dataplane *dataplane = &node->dataplane;
	char text[NODE_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (state != dataplane->state || strcmp(text, dataplane->text) != 0)
		fprintf(stderr, "<%d>dataplane: %s\n", state == NODE_DATAPLANE_CURRENT ? 5 : 4,
			text);
	dataplane->state = state;
	snprintf(dataplane->text, sizeof(dataplane->text), "%s", text);
}

static bool same_history(const struct node *node, const struct ipc_status *status)
{
	return memcmp(status->id_space, node->now.document->id_space, 16) == 0;
}

// The image in the dataplane was made with the shares of its time: those that the document remembers, or those of
// the moment when this process sent it again.
static bool same_image(const struct node *node, const struct ipc_status *status)
{
	const struct node_state *now = &node->now;

	return status->generation == now->document->snapshot_generation &&
		same_history(node, status) &&
		(status->snapshot_checksum == node->sent_checksum ||
			status->snapshot_checksum ==
				image_checksum(&now->image, now->document, IMAGE_SHARES_SENT));
}

// A dataplane that is ahead, or has another content under our number, takes only a higher one. That happens when a
// store was restored from a copy, or when another store's daemon fed it.
static int generation_raise(struct node *node, const struct ipc_status *status)
{
	struct node_request request = {
		.verb = "reconcile", .reason = "the dataplane uses a snapshot of another history"};
	struct node_outcome outcome;
	struct node_change change;

	if (node->raising || node_change_begin(node, &request, &outcome, &change) != NODE_OK)
		return -EPROTO;
	node->raising = true;
	change.next->snapshot_generation = status->generation + 1;
	node_say(&outcome, NODE_OK, "snapshot generation %llu follows the dataplane's %llu",
		(unsigned long long)status->generation + 1, (unsigned long long)status->generation);
	// The commit pushes, and this time the number is ours.
	node_change_commit(node, &change);
	node->raising = false;
	node_outcome_free(&outcome);
	return outcome.code != NODE_OK ? -EIO : outcome.in_use ? 0 : -EAGAIN;
}

static int image_send(
	struct node *node, struct dataplane *dataplane, const struct ipc_status *status)
{
	const struct image *image = &node->now.image;
	uint64_t generation = node->now.document->snapshot_generation;
	char text[IPC_TEXT_BYTES];
	struct image fresh;
	char error[IMAGE_ERROR_BYTES];
	int rc;

	if (node->refused_generation == generation && node->refused_by_ns == status->started_ns)
		return -EALREADY;
	// The memfd has the shares of when it was made; what is sent must have those of now.
	if (image_checksum(image, node->now.document, IMAGE_SHARES_NOW) !=
		image->snapshot->header->checksum) {
		rc = image_write(
			node->now.document, node->now.rings, IMAGE_SHARES_NOW, &fresh, error);
		if (rc < 0) {
			learn(node, NODE_DATAPLANE_BEHIND, "%s", error);
			return rc;
		}
		image_destroy(&node->now.image);
		node->now.image = fresh;
		for (uint32_t i = 0; i < node->now.ring_count; i++)
			node->now.views[i].ring = &fresh.snapshot->rings[i];
	}
	rc = dataplane_load(dataplane, image->fd, image->bytes, generation, text);
	if (rc == 0) {
		node->sent_checksum = image->snapshot->header->checksum;
		node_sent_save(node);
		return 0;
	}
	if (rc != -ETIMEDOUT && rc != -ECONNRESET) {
		node->refused_generation = generation;
		node->refused_by_ns = status->started_ns;
	}
	learn(node, NODE_DATAPLANE_BEHIND, "%s (generation %llu stays in use)", dataplane->error,
		(unsigned long long)status->generation);
	return rc;
}

static int gates_send(
	struct node *node, struct dataplane *dataplane, const struct ipc_status *status)
{
	char text[IPC_TEXT_BYTES];
	int rc;

	node_thresholds_set(&node->now);
	if (ipc_gates_checksum(node->now.image.snapshot) == status->gates_checksum)
		return 0;
	rc = dataplane_gates(dataplane, node->now.image.snapshot, text);
	if (rc < 0)
		learn(node, NODE_DATAPLANE_BEHIND, "%s", dataplane->error);
	return rc;
}

// Returns 0 when the dataplane is current, 1 when it must be asked again, or -errno.
static int push_step(struct node *node, struct dataplane *dataplane)
{
	struct ipc_status *status = &node->dataplane.status;
	uint64_t wanted = node->now.document->snapshot_generation;
	int rc = dataplane_status(dataplane, status);

	if (rc < 0) {
		learn(node, NODE_DATAPLANE_ABSENT, "%s", dataplane->error);
		return rc;
	}
	if (same_image(node, status)) {
		rc = gates_send(node, dataplane, status);
		if (rc == 0)
			learn(node, NODE_DATAPLANE_CURRENT, "uses generation %llu",
				(unsigned long long)wanted);
		return rc;
	}
	if (status->generation >= wanted)
		return generation_raise(node, status);
	rc = image_send(node, dataplane, status);
	return rc == 0 ? 1 : rc;
}

int node_push(struct node *node, int wait_ms)
{
	uint64_t began_ns = node_now_ns();
	struct dataplane dataplane;
	int rc = dataplane_connect(node->config->run_dir, wait_ms, &dataplane);

	node_steer(node);
	if (rc < 0) {
		learn(node, NODE_DATAPLANE_ABSENT, "%s", dataplane.error);
		return rc;
	}
	// Send, then ask again what is in use now: two rounds are enough, or the dataplane says something odd.
	for (unsigned round = 0; round < 2; round++) {
		rc = push_step(node, &dataplane);
		if (rc != 1)
			break;
	}
	dataplane_close(&dataplane);
	if (rc == 1) {
		learn(node, NODE_DATAPLANE_BEHIND, "took generation %llu but does not use it",
			(unsigned long long)node->now.document->snapshot_generation);
		rc = -EPROTO;
	}
	if (rc == 0 && node->startup_ns[DAEMON_PUBLISH] == 0)
		node->startup_ns[DAEMON_PUBLISH] = node_now_ns() - began_ns;
	return rc;
}

int node_reconcile(struct node *node)
{
	return node_push(node, NODE_DATAPLANE_WAIT_MS);
}

int node_explain_live(struct node *node, const struct flow_key *key, struct ipc_explained *ret)
{
	struct dataplane dataplane;
	int rc = dataplane_connect(node->config->run_dir, NODE_DATAPLANE_WAIT_MS, &dataplane);

	if (rc == 0)
		rc = dataplane_explain(&dataplane, key, ret);
	dataplane_close(&dataplane);
	return rc;
}
