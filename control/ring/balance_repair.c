// SPDX-License-Identifier: Apache-2.0
#include "control/ring/balance.h"
#include "control/ring/balance_search.h"

#include <errno.h>
#include <math.h>

#define CHANGED_CLOSE 0.01 // how close a new or re-weighted member is brought to its target

// Tells whether a growing lane may take a point without leaving its next neighbour too little.
static bool leaves_enough(const struct search *search, const struct search_option *option)
{
	double left = (double)search->arcs->share[option->other] - option->places;

	return left >= search->target[option->other] * (1 - fmin(search->request->tolerance, 0.5));
}

// The free point that brings a growing lane closest to its target. gentle: only those that leave enough.
static uint32_t best_growth(const struct search *search, uint32_t lane, bool gentle)
{
	double off = search_excess(search, lane), best = fabs(off);
	uint32_t ret = SEARCH_NO_POSITION;

	for (uint32_t slot = 0; slot < ARCS_SLOTS; slot++) {
		uint32_t position = search->arcs->place[lane * ARCS_SLOTS + slot];
		struct search_option option = search_option_at(search->arcs, lane, position);

		if (arcs_is_chosen(search->arcs, position) || option.places <= 0 ||
			(gentle && !leaves_enough(search, &option)))
			continue;
		if (fabs(off + option.places) < best) {
			best = fabs(off + option.places);
			ret = position;
		}
	}
	return ret;
}

// The least relief found so far for a hot lane: just enough if there is one, else the largest.
struct relief {
	double wanted;
	double places;
	uint32_t position;
};

static void offer(struct relief *relief, double places, uint32_t position)
{
	bool enough = places >= relief->wanted, had_enough = relief->places >= relief->wanted;

	if (places <= 0)
		return;
	if (enough ? (!had_enough || places < relief->places)
		   : (!had_enough && places > relief->places)) {
		relief->places = places;
		relief->position = position;
	}
}

static bool has_room(const struct search *search, uint32_t lane, double places)
{
	return (double)search->arcs->share[lane] + places <=
		search->target[lane] * (1 + search->request->tolerance);
}

// Looks through one arc of a hot lane: dropping its point, or another lane's candidate inside of it.
static void look_in_arc(
	const struct search *search, uint32_t lane, uint32_t position, struct relief *relief)
{
	const struct arcs *arcs = search->arcs;
	struct search_option drop = search_option_at(arcs, lane, position);

	if (drop.other != lane && has_room(search, drop.other, drop.places))
		offer(relief, drop.places, position);
	for (uint32_t at = drop.before;;) {
		at = at + 1 == arcs->candidate_count ? 0 : at + 1;
		if (at == position || arcs_is_chosen(arcs, at))
			return;
		double places = (double)(uint32_t)(arcs->hash[at] - arcs->hash[drop.before]);

		if (arcs->owner[at] != lane && has_room(search, arcs->owner[at], places))
			offer(relief, places, at);
	}
}

// Takes from a lane at least what it has above limit times its target, if one move can; else as much as one can.
static bool relieve(struct search *search, uint32_t lane, double limit)
{
	struct relief relief = {
		.wanted = (double)search->arcs->share[lane] - search->target[lane] * limit,
		.position = SEARCH_NO_POSITION,
	};

	for (uint32_t slot = 0; slot < ARCS_SLOTS; slot++) {
		uint32_t position = search->arcs->place[lane * ARCS_SLOTS + slot];

		if (arcs_is_chosen(search->arcs, position))
			look_in_arc(search, lane, position, &relief);
	}
	if (relief.position == SEARCH_NO_POSITION)
		return search_improve(search, lane);
	search_flip(search, relief.position);
	return true;
}

// Brings a new or re-weighted lane to its target, one point at a time and in one direction, so no key moves twice.
static void settle(struct search *search, uint32_t lane)
{
	for (unsigned step = 0; step < ARCS_SLOTS; step++) {
		double off = search_excess(search, lane);

		if (fabs(off) <= CHANGED_CLOSE * search->target[lane])
			return;
		if (off > 0) {
			if (!relieve(search, lane, 1 + CHANGED_CLOSE))
				return;
			continue;
		}
		uint32_t position = best_growth(search, lane, true);

		if (position == SEARCH_NO_POSITION)
			position = best_growth(search, lane, false);
		if (position == SEARCH_NO_POSITION)
			return;
		search_flip(search, position);
	}
}

static uint32_t hottest_lane(const struct search *search)
{
	uint32_t ret = 0;
	double hottest = 0;

	for (uint32_t i = 0; i < search->count; i++) {
		double ratio = (double)search->arcs->share[i] / search->target[i];

		if (ratio > hottest) {
			hottest = ratio;
			ret = i;
		}
	}
	return ret;
}

// Cools the hottest lane, again and again, until it is within tolerance or nothing helps.
static void cool(struct search *search)
{
	double tolerance = search->request->tolerance;

	// Two moves for each lane are far more than a repair takes.
	for (uint32_t step = 0; step < 2 * search->count + ARCS_SLOTS; step++) {
		uint32_t lane = hottest_lane(search);

		if (search_excess(search, lane) <= search->target[lane] * tolerance)
			return;
		if (!relieve(search, lane, 1 + tolerance))
			return;
	}
}

int balance_repair(const struct balance_request *request, struct balance_choice *choices,
	uint32_t count, struct balance_report *ret_report)
{
	struct search search;
	int rc = search_start(&search, request, choices, count);

	if (rc == 0 && !(request->tolerance >= 0.001 && request->tolerance <= 10))
		rc = -EINVAL;
	if (rc == 0)
		rc = search_load(&search);
	if (rc == 0) {
		for (uint32_t i = 0; i < count; i++) {
			if (choices[i].mask == 0 || request->members[choices[i].member].changed)
				settle(&search, i);
		}
		cool(&search);
		search_store(&search);
		search_report(&search, ret_report);
	}
	search_end(&search);
	return rc;
}
