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

// Members and slots that may be added without another allocation.
#define ROOM 16u

int points_allocate(struct ring_points *points)
{
	size_t prefixes = (size_t)1 << points->bits;
	size_t places = points->generated + points_slack(points->generated) * prefixes + 1;

	points->member_room = points->member_count + ROOM;
	points->slot_room = points->slot_count + ROOM;
	points->entries = malloc(places * sizeof(*points->entries));
	points->starts = calloc(prefixes + 1, sizeof(*points->starts));
	points->sizes = calloc(prefixes, sizeof(*points->sizes));
	points->backends = calloc(points->member_room, sizeof(*points->backends));
	points->slots = calloc(points->slot_room, sizeof(*points->slots));
	return points->entries && points->starts && points->sizes && points->backends &&
			points->slots
		? 0
		: -ENOMEM;
}

void points_release(struct ring_points *points)
{
	free(points->entries);
	free(points->starts);
	free(points->sizes);
	free(points->backends);
	free(points->slots);
}

void ring_points_free(struct ring_points *points)
{
	if (points == NULL)
		return;
	points_release(points);
	free(points);
}

// A chain on its way through a slot.
struct lane {
	uint32_t slot;
	uint32_t left;
};

// What the lanes made in one go, and who gets it.
struct made {
	points_sink *sink;
	void *context;
	unsigned lane_count;
	uint32_t count; // points of each lane
	struct chain_block block;
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
static void keep_chosen(
	const struct ring_slot *slot, uint32_t done, uint32_t *hashes, struct points_run *run)
{
	uint32_t kept = 0;

	if (slot->mask == 0)
		return;
	for (uint32_t i = 0; i < run->count; i++) {
		hashes[kept * run->stride] = hashes[i * run->stride];
		kept += (uint32_t)(slot->mask >> (done + i) & 1);
	}
	run->count = kept;
}

// Hands on what the lanes made: run points each.
static void hand_on(const struct ring_kernels *kernels, const struct ring_slot *slots,
	struct lane *lanes, struct made *made)
{
	for (unsigned i = 0; i < made->lane_count; i++) {
		const struct ring_slot *slot = &slots[lanes[i].slot];
		uint32_t *hashes = made->block.points + i * kernels->lane_stride;
		struct points_run run = {hashes, made->count, kernels->point_stride, lanes[i].slot};

		keep_chosen(slot, slot->count - lanes[i].left, hashes, &run);
		made->sink(made->context, &run);
		lanes[i].left -= made->count;
	}
}

void points_generate(const struct points_maker *maker, const struct ring_slot *slots,
	uint32_t slot_count, points_sink *sink, void *context)
{
	const struct ring_kernels *kernels = maker->kernels;
	struct chain chains[CHAIN_LANES_MAX];
	struct lane lanes[CHAIN_LANES_MAX];
	struct made made = {.sink = sink, .context = context};
	uint32_t next = 0;
	unsigned active = 0;

	while (active < kernels->lanes &&
		lane_load(slots, slot_count, &next, &lanes[active], &chains[active]))
		active++;
	while (active > 0) {
		made.lane_count = active;
		made.count = CHAIN_BLOCK / kernels->lanes;
		for (unsigned i = 0; i < active; i++)
			made.count = lanes[i].left < made.count ? lanes[i].left : made.count;
		kernels->fill(&maker->tables, chains, active, made.count, &made.block);
		hand_on(kernels, slots, lanes, &made);
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

// Turns counts into offsets and fills the starts. Returns false when 8 bits did not hold a count or an offset.
static bool add_up(struct ring_points *points, uint8_t *offsets, uint32_t run_bits)
{
	uint32_t runs = UINT32_C(1) << (run_bits - points->bits), start = 0;
	uint32_t slack = points_slack(points->generated), total = 0;
	bool fits = true;

	for (uint32_t prefix = 0; prefix >> points->bits == 0; prefix++) {
		uint32_t sum = 0;

		points->starts[prefix] = start;
		for (uint32_t run = 0; run < runs; run++) {
			uint8_t size = offsets[run];

			offsets[run] = (uint8_t)sum;
			sum += size;
		}
		fits &= sum <= UINT8_MAX;
		offsets += runs;
		points->sizes[prefix] = sum;
		start += sum + slack;
		total += sum;
	}
	points->starts[UINT32_C(1) << points->bits] = start;
	return fits && total == points->generated;
}

static void gather_points(void *context, const struct points_run *run)
{
	uint64_t **next = context;

	for (uint32_t i = 0; i < run->count; i++)
		*(*next)++ = (uint64_t)run->hashes[i * run->stride] << 32 | run->slot;
}

int points_sort_crowded(struct ring_points *points, const struct points_maker *maker)
{
	uint64_t *keys = malloc((size_t)points->generated * 2 * sizeof(*keys)), *next = keys;
	uint32_t slack = points_slack(points->generated), at = 0;

	if (keys == NULL)
		return -ENOMEM;
	points_generate(maker, points->slots, points->slot_count, gather_points, &next);
	sort_u64(keys, keys + points->generated, points->generated);
	for (uint32_t prefix = 0; prefix >> points->bits == 0; prefix++) {
		uint32_t first = at, start = at + prefix * slack;

		for (; at < points->generated && keys[at] >> (64 - points->bits) == prefix; at++)
			points->entries[start + at - first] =
				(uint32_t)(keys[at] >> 32) << points->bits | (uint32_t)keys[at];
		points->starts[prefix] = start;
		points->sizes[prefix] = at - first;
	}
	points->starts[UINT32_C(1) << points->bits] = at + (slack << points->bits);
	free(keys);
	return 0;
}

// The points are made twice, first to count them, then to put them in place: making a point again costs less than
// writing it down and reading it back, and needs no memory. They are put into runs of about one by more bits of the
// hash than the prefix has, which leaves hardly anything to sort. The place of a run is told in 8 bits from the start
// of its prefix (64 points on average at most), so the table stays in the second-level cache: 256 KiB at 2,048 x 160.
int points_sort(struct ring_points *points, const struct points_maker *maker)
{
	const struct ring_kernels *kernels = maker->kernels;
	uint32_t run_bits = points->bits;

	while (run_bits < BITS_MAX && points->generated > UINT64_C(5) << run_bits >> 2)
		run_bits++;
	struct scatter scatter = {
		.offsets = calloc((size_t)1 << run_bits, sizeof(uint8_t)),
		.starts = points->starts,
		.entries = points->entries,
		.run_shift = 32 - run_bits,
		.prefix_shift = 32 - points->bits,
		.entry_bits = points->bits,
	};
	if (scatter.offsets == NULL)
		return -ENOMEM;
	points_generate(maker, points->slots, points->slot_count, kernels->count, &scatter);
	bool fits = add_up(points, scatter.offsets, run_bits);

	if (fits)
		points_generate(maker, points->slots, points->slot_count, kernels->place, &scatter);
	free(scatter.offsets);
	if (!fits)
		return points_sort_crowded(points, maker);
	for (uint32_t prefix = 0; prefix >> points->bits == 0; prefix++)
		kernels->sort(points->entries + points->starts[prefix], points->sizes[prefix]);
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

void points_identify(struct ring_points *points, const struct ring_spec *spec)
{
	ring_spec_digest(spec, points->spec_digest);
	memcpy(points->hash_seed, spec->hash_seed, sizeof(points->hash_seed));
	points->seed_mark = spec->seed_mark;
}

int ring_points_build(const struct ring_spec *spec, struct ring_points **ret)
{
	struct ring_points *points = calloc(1, sizeof(*points));
	struct points_maker maker = {.kernels = ring_kernels()};

	if (points == NULL)
		return -ENOMEM;
	points->version = spec->version;
	points->generated = (uint32_t)ring_spec_points(spec);
	points->slot_count = points_slot_count(spec);
	points->member_count = spec->member_count;
	points->bits = points_bits(points->generated, points->slot_count);
	points_identify(points, spec);
	if (points_allocate(points) != 0)
		goto err_free;
	chain_tables_fill(&maker.tables);
	points_fill_slots(&maker.tables, spec, points->slots);
	for (uint32_t i = 0; i < spec->member_count; i++)
		points->backends[i] = spec->members[i].backend;
	if (points_sort(points, &maker) != 0)
		goto err_free;
	*ret = points;
	return 0;

err_free:
	ring_points_free(points);
	return -ENOMEM;
}
