// SPDX-License-Identifier: Apache-2.0
#include "control/ring/walk.h"

#include "common/ring_v3.h"

#include <string.h>

static void enter_prefix(struct ring_cursor *cursor, uint32_t prefix)
{
	struct ring_v3_run run = ring_v3_run(cursor->ring, prefix);

	cursor->prefix = prefix;
	cursor->position = run.start;
	cursor->run_end = run.start + run.count;
}

void ring_cursor_first(struct ring_cursor *cursor, const struct ring *ring)
{
	*cursor = (struct ring_cursor){.ring = ring};
	if (ring->header->version == RING_V3)
		enter_prefix(cursor, 0);
}

static uint32_t sorted_hash(const struct ring *ring, uint32_t position)
{
	if (ring->header->version == RING_V1)
		return ((const struct ring_point_v1 *)ring->points)[position].hash;
	return ((const struct ring_point_v2 *)ring->points)[position].hash;
}

void ring_cursor_seek(struct ring_cursor *cursor, const struct ring *ring, uint32_t ring_hash)
{
	uint32_t low = 0, high = ring->header->point_count;
	uint32_t bits = ring->header->prefix_bits;
	const uint32_t *words = ring->points;

	*cursor = (struct ring_cursor){.ring = ring};
	if (ring->header->version == RING_V3) {
		enter_prefix(cursor, ring_hash >> (32 - bits));
		while (cursor->position < cursor->run_end &&
			words[cursor->position] < ring_hash << bits)
			cursor->position++;
		return;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted_hash(ring, middle) < ring_hash)
			low = middle + 1;
		else
			high = middle;
	}
	cursor->position = low;
}

static bool next_v3(struct ring_cursor *cursor, struct ring_walk_point *ret)
{
	const uint32_t *words = cursor->ring->points;
	uint32_t bits = cursor->ring->header->prefix_bits;

	while (cursor->position == cursor->run_end) {
		if ((cursor->prefix + 1) >> bits != 0)
			return false;
		enter_prefix(cursor, cursor->prefix + 1);
	}
	uint32_t word = words[cursor->position++];

	ret->hash = cursor->prefix << (32 - bits) | word >> bits;
	ret->owner = word & ((UINT32_C(1) << bits) - 1);
	return true;
}

bool ring_cursor_next(struct ring_cursor *cursor, struct ring_walk_point *ret)
{
	const struct ring *ring = cursor->ring;

	if (cursor->position == ring->header->point_count)
		return false;
	if (ring->header->version == RING_V3)
		return next_v3(cursor, ret);
	ret->hash = sorted_hash(ring, cursor->position);
	if (ring->header->version == RING_V1)
		ret->owner = ((const struct ring_point_v1 *)ring->points)[cursor->position].owner;
	else
		ret->owner = ((const struct ring_point_v2 *)ring->points)[cursor->position].owner;
	cursor->position++;
	return true;
}

static bool has_owner(const struct ring *ring)
{
	return ring->header->point_count > 0 && ring->header->usable_count > 0;
}

void ring_shares(const struct ring *ring, uint64_t *ret_arcs)
{
	struct ring_cursor cursor;
	struct ring_walk_point point, first = {0};
	uint64_t covered = 0;

	memset(ret_arcs, 0, ring->header->member_count * sizeof(*ret_arcs));
	if (!has_owner(ring))
		return;
	ring_cursor_first(&cursor, ring);
	for (bool started = false; ring_cursor_next(&cursor, &point); started = true) {
		if (!started)
			first = point;
		ret_arcs[point.owner] += (uint64_t)point.hash + 1 - covered;
		covered = (uint64_t)point.hash + 1;
	}
	ret_arcs[first.owner] += RING_CIRCLE - covered;
}

unsigned ring_failover_order(
	const struct ring *ring, uint32_t ring_hash, uint32_t *ret_owners, unsigned limit)
{
	struct ring_cursor cursor;
	struct ring_walk_point point;
	unsigned found = 0;

	if (!has_owner(ring))
		return 0;
	ring_cursor_seek(&cursor, ring, ring_hash);
	for (uint32_t i = 0; i < ring->header->point_count && found < limit; i++) {
		unsigned known = 0;

		if (!ring_cursor_next(&cursor, &point)) {
			ring_cursor_first(&cursor, ring);
			ring_cursor_next(&cursor, &point);
		}
		while (known < found && ret_owners[known] != point.owner)
			known++;
		if (known == found)
			ret_owners[found++] = point.owner;
	}
	return found;
}

// One ring's side of the comparison: the point that owns the hashes up to it.
struct side {
	const struct ring *ring;
	struct ring_cursor cursor;
	uint32_t first_owner;
	uint32_t owner;
	uint64_t end; // one past the last hash of this owner's arc
};

static void side_next(struct side *side)
{
	struct ring_walk_point point;

	if (ring_cursor_next(&side->cursor, &point)) {
		side->owner = point.owner;
		side->end = (uint64_t)point.hash + 1;
		return;
	}
	side->owner = side->first_owner;
	side->end = RING_CIRCLE;
}

static void side_start(struct side *side, const struct ring *ring)
{
	side->ring = ring;
	side->first_owner = RING_NO_OWNER;
	side->owner = RING_NO_OWNER;
	side->end = RING_CIRCLE;
	if (!has_owner(ring))
		return;
	ring_cursor_first(&side->cursor, ring);
	side_next(side);
	side->first_owner = side->owner;
}

static bool moves(const struct side *a, const struct side *b)
{
	if (a->owner == RING_NO_OWNER || b->owner == RING_NO_OWNER)
		return a->owner != b->owner;
	return ring_member(a->ring, a->owner) != ring_member(b->ring, b->owner);
}

uint64_t ring_churn(
	const struct ring *a, const struct ring *b, uint64_t *ret_lost, uint64_t *ret_gained)
{
	uint64_t moved = 0, at = 0;
	struct side from, to;

	if (ret_lost != NULL)
		memset(ret_lost, 0, a->header->member_count * sizeof(*ret_lost));
	if (ret_gained != NULL)
		memset(ret_gained, 0, b->header->member_count * sizeof(*ret_gained));
	side_start(&from, a);
	side_start(&to, b);
	while (at < RING_CIRCLE) {
		uint64_t end = from.end < to.end ? from.end : to.end;

		if (moves(&from, &to)) {
			moved += end - at;
			if (ret_lost != NULL && from.owner != RING_NO_OWNER)
				ret_lost[from.owner] += end - at;
			if (ret_gained != NULL && to.owner != RING_NO_OWNER)
				ret_gained[to.owner] += end - at;
		}
		at = end;
		if (at == RING_CIRCLE)
			break;
		if (from.end == at)
			side_next(&from);
		if (to.end == at)
			side_next(&to);
	}
	return moved;
}
