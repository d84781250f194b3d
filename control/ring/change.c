// SPDX-License-Identifier: Apache-2.0
#include "control/ring/points.h"
#include "control/ring/seed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Puts an entry in its place. Returns false when its prefix is full.
static bool insert_entry(struct ring_points *points, uint32_t hash, uint32_t slot)
{
	uint32_t prefix = hash >> (32 - points->bits), entry = hash << points->bits | slot;
	uint32_t room = points->starts[prefix + 1] - points->starts[prefix];
	uint32_t *words = points->entries + points->starts[prefix];
	uint32_t place = points->sizes[prefix];

	if (place == room)
		return false;
	for (; place > 0 && words[place - 1] > entry; place--)
		words[place] = words[place - 1];
	words[place] = entry;
	points->sizes[prefix]++;
	return true;
}

// Takes an entry out that is there.
static void remove_entry(struct ring_points *points, uint32_t hash, uint32_t slot)
{
	uint32_t prefix = hash >> (32 - points->bits), entry = hash << points->bits | slot;
	uint32_t *words = points->entries + points->starts[prefix];
	uint32_t place = 0, last = --points->sizes[prefix];

	while (words[place] != entry)
		place++;
	memmove(words + place, words + place + 1, (last - place) * sizeof(*words));
}

// Makes a slot's chain as long as count says: takes points off its end, or adds some, which may not fit. In that case
// the chain is as long as before.
static bool set_length(struct ring_points *points, const struct chain_tables *tables,
	uint32_t number, uint32_t count)
{
	struct ring_slot *slot = &points->slots[number];
	uint32_t before = slot->count, point = 0;
	bool fits = true;

	for (uint32_t i = 0; i < before || (i < count && fits); i++) {
		point = chain_step(tables, slot->state, point);
		if (i >= count) {
			remove_entry(points, point, number);
			slot->count--;
		} else if (i >= before) {
			fits = insert_entry(points, point, number);
			slot->count += fits;
		}
	}
	if (!fits)
		set_length(points, tables, number, before);
	points->generated = points->generated - before + slot->count;
	return fits;
}

static uint32_t slot_of(const struct ring_points *points, uint32_t owner)
{
	uint32_t slot = 0;

	while (points->slots[slot].count == 0 || points->slots[slot].owner != owner)
		slot++;
	return slot;
}

// The owners from one position on move up by one, or down.
static void shift_owners(struct ring_points *points, uint32_t from, uint32_t by)
{
	for (uint32_t i = 0; i < points->slot_count; i++)
		points->slots[i].owner += points->slots[i].owner >= from ? by : 0;
}

// Takes an owner without points out of the order.
static void forget_owner(struct ring_points *points, uint32_t owner)
{
	points->member_count--;
	memmove(points->backends + owner, points->backends + owner + 1,
		(points->member_count - owner) * sizeof(*points->backends));
	shift_owners(points, owner, UINT32_MAX);
}

static bool add_member(struct ring_points *points, const struct chain_tables *tables,
	const struct ring_spec *spec, uint32_t owner)
{
	const struct ring_spec_member *member = &spec->members[owner];
	uint32_t number = 0;

	while (number < points->slot_count && points->slots[number].count > 0)
		number++;
	if (number == points->slot_room || number >> points->bits != 0 ||
		points->member_count == points->member_room)
		return false;
	struct ring_slot slot = {.state = seed_state(tables, spec->seed, member), .owner = owner};

	slot.first = chain_first(tables, slot.state);
	shift_owners(points, owner, 1);
	points->slots[number] = slot;
	points->slot_count += number == points->slot_count;
	memmove(points->backends + owner + 1, points->backends + owner,
		(points->member_count - owner) * sizeof(*points->backends));
	points->backends[owner] = member->backend;
	points->member_count++;
	if (set_length(points, tables, number, member->weight * spec->points))
		return true;
	forget_owner(points, owner);
	return false;
}

static void remove_member(
	struct ring_points *points, const struct chain_tables *tables, uint32_t owner)
{
	set_length(points, tables, slot_of(points, owner), 0);
	forget_owner(points, owner);
}

static bool has_lanes(const struct ring_points *points)
{
	for (uint32_t i = 0; i < points->slot_count; i++) {
		if (points->slots[i].mask != 0)
			return true;
	}
	return false;
}

static bool change_in_place(struct ring_points *points, const struct ring_spec *spec,
	enum ring_change change, uint32_t owner)
{
	struct chain_tables tables;

	if (spec->lane_count > 0 || has_lanes(points) || spec->version != points->version)
		return false;
	chain_tables_fill(&tables);
	switch (change) {
	case RING_CHANGE_ADD:
		return add_member(points, &tables, spec, owner);
	case RING_CHANGE_REMOVE:
		remove_member(points, &tables, owner);
		return true;
	case RING_CHANGE_WEIGHT:
		return set_length(points, &tables, slot_of(points, owner),
			spec->members[owner].weight * spec->points);
	}
	return false;
}

int ring_points_change(struct ring_points *points, const struct ring_spec *spec,
	enum ring_change change, uint32_t owner)
{
	struct ring_points *built;

	if (change_in_place(points, spec, change, owner)) {
		points->index_width = 0;
		points_identify(points, spec);
		return 0;
	}
	if (ring_points_build(spec, &built) != 0)
		return -ENOMEM;
	points_release(points);
	*points = *built;
	free(built);
	return 0;
}
