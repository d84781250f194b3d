// SPDX-License-Identifier: Apache-2.0
#include "control/ring/build.h"

#include "control/ring/points.h"
#include "control/ring/seed.h"
#include "control/ring/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_MEAN_MAX \
	64u // entries: a start costs 4 bytes, so the starts cost 0.06 to 0.12 bytes a point
#define RUN_MEAN_MAX 8u // entries sorted together; sixteen fit the vectors of sort_run()
#define BITS_MAX     28u

uint32_t points_bits(uint64_t generated, uint32_t slot_count)
{
	uint32_t bits = 1;

	while ((UINT64_C(1) << bits) < slot_count || generated > (uint64_t)PREFIX_MEAN_MAX << bits)
		bits++;
	return bits;
}

int points_allocate(struct ring_points *points)
{
	points->entries = malloc(((size_t)points->generated + 1) * sizeof(*points->entries));
	points->starts = calloc(((size_t)1 << points->bits) + 1, sizeof(*points->starts));
	points->backends = calloc((size_t)points->member_count + 1, sizeof(*points->backends));
	points->slots = calloc((size_t)points->slot_count + 1, sizeof(*points->slots));
	return points->entries && points->starts && points->backends && points->slots ? 0 : -ENOMEM;
}

void ring_points_free(struct ring_points *points)
{
	if (points == NULL)
		return;
	free(points->entries);
	free(points->starts);
	free(points->backends);
	free(points->slots);
	free(points);
}

// A chain on its way through a slot.
struct lane {
	uint32_t slot;
	uint32_t left;
};

static bool lane_load(const struct ring_slot *slots, uint32_t slot_count, uint32_t *next,
	struct lane *lane, struct chain *chain)
{
	while (*next < slot_count && slots[*next].count == 0)
		++*next;
	if (*next == slot_count)
		return false;
	*lane = (struct lane){*next, slots[*next].count};
	*chain = (struct chain){slots[*next].state, slots[*next].seat};
	++*next;
	return true;
}

// Keeps the points of a lane that its mask chooses, in place. done: points of the slot before these.
// Returns how many are left.
static uint32_t keep_chosen(
	const struct ring_slot *slot, uint32_t done, uint32_t *hashes, uint32_t count)
{
	uint32_t kept = 0;

	if (slot->mask == 0)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		hashes[kept] = hashes[i];
		kept += slot->mask >> (done + i) & 1;
	}
	return kept;
}

void points_generate(const struct chain_tables *tables, const struct ring_slot *slots,
	uint32_t slot_count, points_sink *sink, void *context)
{
	struct chain chains[CHAIN_LANES];
	struct lane lanes[CHAIN_LANES];
	struct chain_block block;
	uint32_t next = 0;
	unsigned active = 0;

	while (active < CHAIN_LANES &&
		lane_load(slots, slot_count, &next, &lanes[active], &chains[active]))
		active++;
	while (active > 0) {
		uint32_t run = CHAIN_BLOCK;

		for (unsigned i = 0; i < active; i++)
			run = lanes[i].left < run ? lanes[i].left : run;
		chain_fill(tables, chains, active, run, &block);
		for (unsigned i = 0; i < active; i++) {
			const struct ring_slot *slot = &slots[lanes[i].slot];

			uint32_t kept = keep_chosen(
				slot, slot->count - lanes[i].left, block.points[i], run);

			sink(context, lanes[i].slot, block.points[i], kept);
			lanes[i].left -= run;
		}
		for (unsigned i = active; i-- > 0;) {
			if (lanes[i].left > 0 ||
				lane_load(slots, slot_count, &next, &lanes[i], &chains[i]))
				continue;
			active--;
			lanes[i] = lanes[active];
			chains[i] = chains[active];
		}
	}
}

// The points are made twice, first to count them, then to put them in place: making a point again costs less than
// writing it down and reading it back, and needs no memory.
struct scatter {
	uint32_t *cursors; // [2^bits] counts, then the next place of each run
	uint32_t *entries;
	unsigned shift;      // 32 - bits of the runs
	unsigned entry_bits; // bits of the entries' prefix
};

static void count_points(void *context, uint32_t slot, const uint32_t *hashes, uint32_t count)
{
	struct scatter *scatter = context;

	(void)slot;
	for (uint32_t i = 0; i < count; i++)
		scatter->cursors[hashes[i] >> scatter->shift]++;
}

static void place_points(void *context, uint32_t slot, const uint32_t *hashes, uint32_t count)
{
	struct scatter *scatter = context;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = scatter->cursors[hashes[i] >> scatter->shift]++;

		scatter->entries[place] = hashes[i] << scatter->entry_bits | slot;
	}
}

// Sorts every run and notes where the prefixes start. cursors: the end of each run.
static void sort_runs(struct ring_points *points, const uint32_t *cursors, uint32_t run_bits)
{
	uint32_t runs_in_prefix = UINT32_C(1) << (run_bits - points->bits);
	uint32_t start = 0;

	for (uint32_t run = 0; run >> run_bits == 0; run++) {
		if (run % runs_in_prefix == 0)
			points->starts[run / runs_in_prefix] = start;
		sort_run(points->entries + start, cursors[run] - start);
		start = cursors[run];
	}
	points->starts[UINT32_C(1) << points->bits] = start;
}

static int sort_points(struct ring_points *points, const struct chain_tables *tables)
{
	uint32_t run_bits = points->bits, sum = 0;

	while (run_bits < BITS_MAX && points->generated > (uint64_t)RUN_MEAN_MAX << run_bits)
		run_bits++;
	struct scatter scatter = {
		.cursors = calloc((size_t)1 << run_bits, sizeof(uint32_t)),
		.entries = points->entries,
		.shift = 32 - run_bits,
		.entry_bits = points->bits,
	};
	if (scatter.cursors == NULL)
		return -ENOMEM;
	points_generate(tables, points->slots, points->slot_count, count_points, &scatter);
	for (uint32_t run = 0; run >> run_bits == 0; run++) {
		uint32_t size = scatter.cursors[run];

		scatter.cursors[run] = sum;
		sum += size;
	}
	points_generate(tables, points->slots, points->slot_count, place_points, &scatter);
	sort_runs(points, scatter.cursors, run_bits);
	free(scatter.cursors);
	return 0;
}

uint32_t points_slot_count(const struct ring_spec *spec)
{
	return spec->lane_count > 0 ? spec->lane_count : spec->member_count;
}

static void fill_lane(
	const struct chain_tables *tables, const struct ring_lane *lane, struct ring_slot *slot)
{
	slot->mask = lane->mask;
	slot->base = lane->base;
	slot->count = 64 - (uint32_t)__builtin_clzll(lane->mask);
	for (uint32_t i = 0; i < lane->base; i++)
		slot->seat = chain_step(tables, slot->state, slot->seat);
}

void points_fill_slots(const struct chain_tables *tables, const struct ring_spec *spec,
	struct ring_slot *ret_slots)
{
	struct ring_slot *slot = ret_slots;
	uint32_t lane = 0;

	for (uint32_t i = 0; i < spec->member_count; i++) {
		const struct ring_spec_member *member = &spec->members[i];
		struct ring_slot plain = {
			.state = seed_state(tables, spec->seed, member),
			.count = member->weight * spec->points,
			.owner = i,
		};

		plain.first = chain_first(tables, plain.state);
		if (spec->lane_count == 0) {
			*slot++ = plain;
			continue;
		}
		for (; lane < spec->lane_count && spec->lanes[lane].port == member->port &&
			addr_compare(&spec->lanes[lane].address, &member->address) == 0;
			lane++) {
			*slot = plain;
			fill_lane(tables, &spec->lanes[lane], slot++);
		}
	}
}

int ring_points_build(const struct ring_spec *spec, struct ring_points **ret)
{
	struct ring_points *points = calloc(1, sizeof(*points));
	struct chain_tables tables;

	if (points == NULL)
		return -ENOMEM;
	points->version = spec->version;
	points->generated = (uint32_t)ring_spec_points(spec);
	points->slot_count = points_slot_count(spec);
	points->member_count = spec->member_count;
	points->bits = points_bits(points->generated, points->slot_count);
	ring_spec_digest(spec, points->spec_digest);
	if (points_allocate(points) != 0)
		goto err_free;
	chain_tables_fill(&tables);
	points_fill_slots(&tables, spec, points->slots);
	for (uint32_t i = 0; i < spec->member_count; i++)
		points->backends[i] = spec->members[i].backend;
	if (sort_points(points, &tables) != 0)
		goto err_free;
	*ret = points;
	return 0;

err_free:
	ring_points_free(points);
	return -ENOMEM;
}
