// SPDX-License-Identifier: Apache-2.0
// What a change moves: exact arithmetic on the rings before and after, health and drains included.
#include "control/daemon/node_private.h"
#include "control/ring/churn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_ring(const struct node_ring *a, const struct node_ring *b)
{
	if (a->is_new != b->is_new || a->tag_count != b->tag_count || strcmp(a->pool, b->pool) != 0)
		return false;
	for (uint32_t i = 0; i < a->tag_count; i++) {
		if (strcmp(a->tags[i], b->tags[i]) != 0)
			return false;
	}
	return true;
}

static const struct node_ring *ring_match(
	const struct node_state *state, const struct node_ring *ring)
{
	for (uint32_t i = 0; i < state->ring_count; i++) {
		if (same_ring(&state->views[i], ring))
			return &state->views[i];
	}
	return NULL;
}

// Weights by backend id. For free(); NULL when memory is short.
static uint32_t *weights_gather(const struct node_state *state, const struct node_ring *ring)
{
	const struct document *document = state->document;
	const struct config_pool *pool = config_pool_find(document->pools, ring->pool);
	const struct document_cutover *cutover = document_cutover_find(document, ring->pool);
	const struct config_backend *backends = pool->backends;
	uint32_t count = pool->backend_count;
	uint32_t *weights =
		calloc((size_t)state->image.snapshot->backend_count + 1, sizeof(*weights));

	if (ring->is_new && cutover != NULL && cutover->backend_count > 0) {
		backends = cutover->backends;
		count = cutover->backend_count;
	}
	for (uint32_t i = 0; weights != NULL && i < count; i++) {
		const struct document_id *id =
			document_id_find(document, DOCUMENT_BACKEND, ring->pool, backends[i].name);

		if (id != NULL)
			weights[id->id] = backends[i].weight;
	}
	return weights;
}

// The largest share beside its weight's, 1 for a perfect ring.
static int hottest(const struct node_state *state, const struct node_ring *view, double *ret)
{
	const struct ring *ring = view->ring;
	uint32_t members = ring->header->member_count;
	uint64_t *arcs = calloc((size_t)members + 1, sizeof(*arcs));
	uint32_t *weights = weights_gather(state, view);
	uint64_t sum = 0;

	*ret = 0;
	if (arcs == NULL || weights == NULL) {
		free(arcs);
		free(weights);
		return -ENOMEM;
	}
	ring_shares(ring, arcs);
	for (uint32_t i = 0; i < members; i++)
		sum += weights[ring_member(ring, i)];
	for (uint32_t i = 0; i < members; i++) {
		double target = (double)weights[ring_member(ring, i)] / (double)sum;
		double share = (double)arcs[i] / (double)RING_CIRCLE;

		if (target > 0 && share / target > *ret)
			*ret = share / target;
	}
	free(arcs);
	free(weights);
	return 0;
}

// A name that does not fit is cut.
static void name_format(const struct node_ring *ring, char *ret, size_t room)
{
	size_t used = (size_t)snprintf(ret, room, "%s", ring->pool);

	for (uint32_t i = 0; i < ring->tag_count && used < room; i++)
		used += (size_t)snprintf(
			ret + used, room - used, "%s%s", i == 0 ? "+" : ",", ring->tags[i]);
	if (ring->is_new && used < room)
		snprintf(ret + used, room - used, "@new");
}

static int move_measure(const struct node_state *before, const struct node_ring *old,
	const struct node_state *after, const struct node_ring *now, struct node_move *ret)
{
	int rc;

	uint64_t moved;

	*ret = (struct node_move){.bytes_after = now->ring->header->bytes};
	name_format(now, ret->ring, sizeof(ret->ring));
	rc = hottest(after, now, &ret->hottest_after);
	if (rc < 0 || old == NULL)
		return rc;
	ret->bytes_before = old->ring->header->bytes;
	rc = ring_moved(old->ring, now->ring, &moved, NULL, NULL);
	if (rc < 0)
		return rc;
	ret->moved = (double)moved / (double)RING_CIRCLE;
	return hottest(before, old, &ret->hottest_before);
}

int node_moves(const struct node_state *before, const struct node_state *after,
	struct node_move **ret, uint32_t *ret_count)
{
	struct node_move *moves = calloc((size_t)after->ring_count + 1, sizeof(*moves));
	uint32_t count = 0;
	int rc = moves == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; i < after->ring_count && rc == 0; i++) {
		const struct node_ring *now = &after->views[i];
		const struct node_ring *old = ring_match(before, now);
		struct node_move *move = &moves[count];

		rc = move_measure(before, old, after, now, move);
		if (rc == 0 && (old == NULL || move->moved > 0))
			count++;
	}
	if (rc < 0) {
		free(moves);
		return rc;
	}
	*ret = moves;
	*ret_count = count;
	return 0;
}
