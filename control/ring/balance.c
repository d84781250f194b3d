// SPDX-License-Identifier: Apache-2.0
#include "control/ring/balance.h"

#include "control/ring/balance_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDS_MAX   8u    // of the local search; it settles in five
#define WINDOW_TURNS 8u    // times that misfits may look for another window
#define MISFIT       0.01  // off its target by more than this: look in another window
#define SETTLED      0.003 // a window this close is taken at once
#define FEW_POINTS   4u    // more points than this combine well enough in one window
#define LANE_POINTS  32u   // wanted of a lane: half of the window stays free

static uint32_t lanes_wanted(
	const struct balance_request *request, uint32_t member, double weight_sum)
{
	double share = request->members[member].weight / weight_sum;
	double points = (double)request->points * request->count * share;

	return points <= BALANCE_POINTS_MAX ? 1 : (uint32_t)ceil(points / LANE_POINTS);
}

// The lowest window that none of a member's lanes uses yet.
static uint32_t free_base(const struct balance_choice *lanes, uint32_t count)
{
	uint32_t base = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (lanes[i].base != base)
			continue;
		base += ARCS_SLOTS;
		i = UINT32_MAX; // from the start again: lanes are few and in no order
	}
	return base;
}

static uint32_t lay_out_member(const struct balance_choice *old, uint32_t old_count,
	uint32_t wanted, struct balance_choice *ret)
{
	uint32_t member = ret->member, count = 0;

	for (; count < old_count; count++)
		ret[count] = old[count];
	while (count < wanted) {
		uint32_t base = free_base(ret, count);

		ret[count++] = (struct balance_choice){.base = base, .member = member};
	}
	return count;
}

static uint32_t run_of(const struct balance_choice *choices, uint32_t count, uint32_t member)
{
	uint32_t run = 0;

	while (run < count && choices[run].member == member)
		run++;
	return run;
}

int balance_layout(const struct balance_request *request, const struct balance_choice *old,
	uint32_t old_count, struct balance_choice **ret_choices, uint32_t *ret_count)
{
	double sum = 0;
	uint64_t most = old_count;
	uint32_t count = 0, at = 0;

	if (request->count == 0 || request->count > UINT16_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < request->count; i++)
		sum += request->members[i].weight;
	for (uint32_t i = 0; i < request->count; i++)
		most += lanes_wanted(request, i, sum);
	struct balance_choice *choices = calloc(most, sizeof(*choices));

	if (choices == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < request->count; i++) {
		uint32_t run = run_of(old + at, old_count - at, i);

		choices[count].member = i;
		count += lay_out_member(
			old + at, run, lanes_wanted(request, i, sum), choices + count);
		at += run;
	}
	if (at != old_count || count > UINT16_MAX) {
		free(choices);
		return at != old_count ? -EINVAL : -E2BIG;
	}
	*ret_choices = choices;
	*ret_count = count;
	return 0;
}

static bool is_misfit(const struct search *search, uint32_t lane)
{
	return fabs(search_excess(search, lane)) > MISFIT * search->target[lane];
}

// Rounds over all lanes until hardly one finds a better move.
static void improve(struct search *search)
{
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		uint32_t changed = 0;

		for (uint32_t i = 0; i < search->count; i++)
			changed += search_improve(search, i);
		if (changed <= search->count / 500)
			return;
	}
}

// The places that a point of a window would own, and the cost to its next neighbour.
struct prospect {
	double places;
	double cost;
};

static struct prospect prospect_at(const struct search *search, uint32_t hash)
{
	const struct arcs *arcs = search->arcs;
	uint32_t position = arcs_find(arcs, hash);
	uint32_t after = arcs_is_chosen(arcs, position) ? position : arcs_after(arcs, position);
	uint32_t before = arcs_before(arcs, position);
	struct prospect ret = {.places = (double)(uint32_t)(hash - arcs->hash[before])};

	// A neighbour that gains by it is no reason to take what does not fit.
	ret.cost = fmax(0, search_shift_cost(search, arcs->owner[after], -ret.places));
	return ret;
}

// Looks for the point, or the pair of points, of one window that fits a lane best. Returns the cost.
static double fit_window(
	const struct search *search, uint32_t lane, const uint32_t *points, uint64_t *ret_mask)
{
	struct prospect prospects[ARCS_SLOTS];
	double target = search->target[lane], weight = search->cost[lane];
	double best = INFINITY;

	for (uint32_t i = 0; i < ARCS_SLOTS; i++) {
		struct prospect one = prospects[i] = prospect_at(search, points[i]);
		double cost = weight * (one.places - target) * (one.places - target) + one.cost;

		if (cost < best) {
			best = cost;
			*ret_mask = UINT64_C(1) << i;
		}
		for (uint32_t j = 0; j < i; j++) {
			double off = one.places + prospects[j].places - target;
			double both = weight * off * off + one.cost + prospects[j].cost;

			if (both < best) {
				best = both;
				*ret_mask = UINT64_C(1) << i | UINT64_C(1) << j;
			}
		}
	}
	return best;
}

// Finds another window for a lane of so few points that none of its 64 candidates fits its target.
static void change_window(struct search *search, uint32_t lane)
{
	struct balance_choice *choice = &search->choices[lane];
	double best = INFINITY;
	uint32_t point = 0;

	for (uint32_t slot = 0; slot < ARCS_SLOTS; slot++) {
		uint32_t position = search->arcs->place[lane * ARCS_SLOTS + slot];

		if (arcs_is_chosen(search->arcs, position))
			search_flip(search, position);
	}
	for (uint32_t window = 0; window < BALANCE_WINDOWS_MAX && best > SETTLED * SETTLED;
		window++) {
		uint32_t points[ARCS_SLOTS];
		uint64_t mask = 0;

		search_window(search, choice->member, &point, points);
		double cost = fit_window(search, lane, points, &mask);

		if (cost < best) {
			best = cost;
			choice->mask = mask;
			choice->base = window * ARCS_SLOTS;
		}
	}
}

// Gives lanes that are off their target more freedom: another window if they are too small for their candidates, else
// two points more. Another window could be that of another lane of the member, so only members of one lane may.
// The arcs are out of date afterwards.
static void free_misfits(struct search *search)
{
	for (uint32_t i = 0; i < search->count; i++) {
		const struct balance_choice *choice = &search->choices[i];
		bool alone = run_of(choice, search->count - i, choice->member) == 1 &&
			(i == 0 || choice[-1].member != choice->member);
		uint32_t points = (uint32_t)__builtin_popcountll(choice->mask);

		if (!is_misfit(search, i) || search->arcs->chosen_count <= points)
			continue;
		if (alone && points <= FEW_POINTS)
			change_window(search, i);
		else if (search->wanted[i] + 2u <= BALANCE_POINTS_MAX)
			search->wanted[i] += 2;
	}
}

static uint32_t count_misfits(const struct search *search)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < search->count; i++)
		count += is_misfit(search, i);
	return count;
}

int balance_fresh(const struct balance_request *request, struct balance_choice *choices,
	uint32_t count, struct balance_report *ret_report)
{
	struct search search;
	uint32_t misfits = UINT32_MAX;
	int rc = search_start(&search, request, choices, count);

	if (rc == 0) {
		for (uint32_t i = 0; i < count; i++)
			choices[i].mask = (UINT64_C(1) << search.wanted[i]) - 1;
		rc = search_load(&search);
	}
	for (unsigned turn = 0; rc == 0; turn++) {
		improve(&search);
		search_store(&search);
		// Two turns settle nearly all; a turn that leaves as many as before would only repeat itself.
		uint32_t left = count_misfits(&search);

		if (turn == WINDOW_TURNS || left == 0 || left >= misfits)
			break;
		misfits = left;
		free_misfits(&search);
		rc = search_load(&search);
	}
	if (rc == 0)
		search_report(&search, ret_report);
	search_end(&search);
	return rc;
}
