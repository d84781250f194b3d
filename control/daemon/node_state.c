// SPDX-License-Identifier: Apache-2.0
// From a document to all that follows from it: ids, rings, image.
#include "control/daemon/node_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void node_state_free(struct node_state *state)
{
	free(state->views);
	image_destroy(&state->image);
	rings_free(state->rings);
	document_free(state->document);
	*state = (struct node_state){.image.fd = -1};
}

static int views_make(struct node_state *state)
{
	const struct rings *rings = state->rings;

	state->views = calloc((size_t)rings->count + 1, sizeof(*state->views));
	if (state->views == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < rings->count; i++) {
		const struct rings_ring *ring = &rings->items[i];

		state->views[i] = (struct node_ring){
			.index = i,
			.pool = ring->pool,
			.is_new = ring->is_new,
			.tags = ring->tags,
			.tag_count = ring->tag_count,
			.service_count = ring->service_count,
			.v1_bytes = ring->v1_bytes,
			.build_ns = ring->image->build_ns,
			.ring = &state->image.snapshot->rings[i],
		};
	}
	state->ring_count = rings->count;
	return 0;
}

// Ids beyond the room of the statistics would be refused by the dataplane, after the commit; so they are refused here.
static int room_check(const struct node *node, const struct document *document, char *error)
{
	const struct config_dataplane *d = &node->config->dataplane;
	const struct {
		const char *name;
		uint32_t room;
	} kinds[] = {
		[DOCUMENT_SERVICE] = {"services", d->services},
		[DOCUMENT_POOL] = {"pools", d->pools},
		[DOCUMENT_BACKEND] = {"backends", d->backends},
	};

	for (uint32_t i = 0; i < document->id_count; i++) {
		const struct document_id *id = &document->ids[i];

		if (id->freed_s != 0 || id->id < kinds[id->kind].room)
			continue;
		snprintf(error, NODE_TEXT_BYTES,
			"\"%s\" needs id %u, and dataplane.%s in node.yaml has room for %u; ids of "
			"what was removed rest for two hours",
			id->name, id->id, kinds[id->kind].name, kinds[id->kind].room);
		return -ENOSPC;
	}
	return 0;
}

// Half of the machine: building takes memory beside the images, and so do the workers' copies.
static int memory_check(const struct rings *rings, char *error)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	if (rings->bytes <= memory / 2)
		return 0;
	snprintf(error, NODE_TEXT_BYTES,
		"%u rings would take %llu MiB for each worker, and this machine has %llu MiB; use "
		"smaller weights, fewer points, v2 or v3",
		rings->count, (unsigned long long)(rings->bytes >> 20),
		(unsigned long long)(memory >> 20));
	return -ENOSPC;
}

int node_state_make(const struct node *node, struct document *document,
	const struct node_state *previous, struct node_state *ret, char *ret_error)
{
	struct node_state state = {.document = document, .image.fd = -1};
	int rc = room_check(node, document, ret_error);

	node_shares_apply(node, document);
	if (rc == 0)
		rc = rings_plan(document, &state.rings, ret_error);
	if (rc == 0)
		rc = memory_check(state.rings, ret_error);
	if (rc == 0) {
		snprintf(ret_error, NODE_TEXT_BYTES, "out of memory");
		rc = rings_build(state.rings, previous != NULL ? previous->rings : NULL);
	}
	if (rc == 0)
		rc = image_write(document, state.rings, IMAGE_SHARES_NOW, &state.image, ret_error);
	if (rc == 0)
		rc = views_make(&state);
	if (rc < 0) {
		node_state_free(&state);
		return rc;
	}
	*ret = state;
	return 0;
}

void node_state_service_rings(const struct node_state *state, uint32_t service,
	const struct node_ring **ret_old, const struct node_ring **ret_new)
{
	const struct rings_service *uses = &state->rings->services[service];

	*ret_old = &state->views[uses->ring_old];
	*ret_new = uses->ring_new != SNAPSHOT_NO_RING ? &state->views[uses->ring_new] : NULL;
}

void node_thresholds_set(struct node_state *state)
{
	const struct document *document = state->document;

	for (uint32_t i = 0; i < document->cutover_count; i++) {
		const struct document_cutover *cutover = &document->cutovers[i];
		const struct document_id *id =
			document_id_find(document, DOCUMENT_POOL, "", cutover->pool);

		snapshot_gate_set(
			&state->image.snapshot->pools[id->id], document_cutover_gate(cutover));
	}
}
