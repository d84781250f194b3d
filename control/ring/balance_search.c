// SPDX-License-Identifier: Apache-2.0
#include "control/ring/balance_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t lanes_of_next_member(const struct search *search, uint32_t first)
{
	uint32_t end = first;

	while (end < search->count && search->choices[end].member == search->choices[first].member)
		end++;
	return end - first;
}

static void set_targets(struct search *search, double weight_sum)
{
	const struct balance_request *request = search->request;

	for (uint32_t first = 0; first < search->count;) {
		uint32_t lanes = lanes_of_next_member(search, first);
		double share =
			request->members[search->choices[first].member].weight / weight_sum / lanes;
		double points = fmax(round((double)request->points * request->count * share), 1);

		for (uint32_t lane = first; lane < first + lanes; lane++) {
			search->target[lane] = (double)ARCS_CIRCLE * share;
			search->cost[lane] = 1 / (search->target[lane] * search->target[lane]);
			search->wanted[lane] = (uint16_t)fmin(points, BALANCE_POINTS_MAX);
		}
		first += lanes;
	}
}

int search_start(struct search *search, const struct balance_request *request,
	struct balance_choice *choices, uint32_t count)
{
	double sum = 0;

	memset(search, 0, sizeof(*search));
	if (request->count == 0 || request->count > UINT16_MAX || request->points == 0 ||
		request->points > BALANCE_POINTS_MAX || count < request->count ||
		count > UINT16_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < request->count; i++) {
		if (request->members[i].weight == 0)
			return -EINVAL;
		sum += request->members[i].weight;
	}
	search->request = request;
	search->choices = choices;
	search->count = count;
	search->target = malloc(sizeof(*search->target) * count);
	search->cost = malloc(sizeof(*search->cost) * count);
	search->wanted = malloc(sizeof(*search->wanted) * count);
	if (search->target == NULL || search->cost == NULL || search->wanted == NULL)
		return -ENOMEM;
	set_targets(search, sum);
	chain_tables_fill(&search->tables);
	return 0;
}

void search_end(struct search *search)
{
	arcs_destroy(search->arcs);
	free(search->target);
	free(search->cost);
	free(search->wanted);
}

void search_window(const struct search *search, uint32_t member, uint32_t *point,
	uint32_t ret_points[ARCS_SLOTS])
{
	uint32_t state = search->request->members[member].state;

	for (uint32_t i = 0; i < ARCS_SLOTS; i++)
		ret_points[i] = *point = chain_step(&search->tables, state, *point);
}

// The candidates of a choice; the windows before its own are walked through.
static void candidates_of(
	const struct search *search, const struct balance_choice *choice, uint32_t *ret_points)
{
	uint32_t point = 0;

	for (uint32_t base = 0; base <= choice->base; base += ARCS_SLOTS)
		search_window(search, choice->member, &point, ret_points);
}

int search_load(struct search *search)
{
	uint32_t *candidates = malloc(sizeof(*candidates) * search->count * ARCS_SLOTS);
	uint64_t *masks = malloc(sizeof(*masks) * search->count);
	int rc = -ENOMEM;

	arcs_destroy(search->arcs);
	search->arcs = NULL;
	if (candidates != NULL && masks != NULL) {
		for (uint32_t i = 0; i < search->count; i++) {
			masks[i] = search->choices[i].mask;
			candidates_of(search, &search->choices[i], candidates + i * ARCS_SLOTS);
		}
		rc = arcs_create(candidates, masks, search->count, &search->arcs);
	}
	free(candidates);
	free(masks);
	return rc;
}

void search_store(const struct search *search)
{
	for (uint32_t i = 0; i < search->count; i++)
		search->choices[i].mask = arcs_mask(search->arcs, i);
}

double search_excess(const struct search *search, uint32_t lane)
{
	return (double)search->arcs->share[lane] - search->target[lane];
}

double search_shift_cost(const struct search *search, uint32_t lane, double places)
{
	return search->cost[lane] * places * (2 * search_excess(search, lane) + places);
}

struct search_option search_option_at(const struct arcs *arcs, uint32_t lane, uint32_t position)
{
	struct search_option ret = {
		.position = position,
		.before = arcs_before(arcs, position),
		.after = arcs_after(arcs, position),
	};

	ret.other = arcs->owner[ret.after];
	ret.places = ret.other == lane ? 0 : (double)arcs_length(arcs, position);
	return ret;
}

struct options {
	struct search_option drop[ARCS_SLOTS + 1];
	struct search_option choose[ARCS_SLOTS + 1];
	unsigned drop_count;
	unsigned choose_count;
};

// Lists a lane's moves. Doing nothing on one side is a move too while the count of points stays near the wanted one, so
// that a point may be added or dropped alone: that halves the CV that swaps alone reach (0.18 to 0.11 %, 2,048 x 16).
static void list_options(const struct search *search, uint32_t lane, struct options *ret)
{
	const struct arcs *arcs = search->arcs;
	struct search_option none = {.other = lane, .position = SEARCH_NO_POSITION};

	ret->drop_count = 0;
	ret->choose_count = 0;
	for (uint32_t slot = 0; slot < ARCS_SLOTS; slot++) {
		uint32_t position = arcs->place[lane * ARCS_SLOTS + slot];
		struct search_option option = search_option_at(arcs, lane, position);

		if (arcs_is_chosen(arcs, position))
			ret->drop[ret->drop_count++] = option;
		else
			ret->choose[ret->choose_count++] = option;
	}
	unsigned held = ret->drop_count, wanted = search->wanted[lane];

	if (held < wanted + 2 && held < ARCS_SLOTS)
		ret->drop[ret->drop_count++] = none;
	if (held > 1 && held + 2 > wanted)
		ret->choose[ret->choose_count++] = none;
}

// What a move costs the other lane: it gains the places of a dropped point, loses those of a chosen one.
static double other_cost(
	const struct search *search, uint32_t lane, const struct search_option *option, int sign)
{
	if (option->other == lane)
		return 0;
	return search_shift_cost(search, option->other, sign * option->places);
}

// Next to each other the two moves change each other's arcs, and the sum of their costs would be wrong.
static bool touch(const struct search_option *drop, const struct search_option *choose)
{
	return drop->position != SEARCH_NO_POSITION && choose->position != SEARCH_NO_POSITION &&
		(choose->before == drop->position || choose->after == drop->position);
}

// The best pair of a lane so far: drop one point, choose another.
struct pairing {
	struct options options;
	double choose_costs[ARCS_SLOTS + 1]; // to the other lane
	double cost;                         // of the best pair
	const struct search_option *drop;    // NULL: none lowers the cost
	const struct search_option *choose;
};

// Looks for the best partner of one dropped point. A pair costs the lane's own shift and both others', which are known
// before the loop; if both others are one lane, the square of its shift has a mixed term more. Six multiplications a
// pair: a fresh ring of 2,048 takes 36 ms instead of 127.
static void pair_up(const struct search *search, uint32_t lane, const struct search_option *drop,
	struct pairing *pairing)
{
	double twice = 2 * search_excess(search, lane), weight = search->cost[lane];
	double drop_cost = other_cost(search, lane, drop, 1);

	for (unsigned i = 0; i < pairing->options.choose_count; i++) {
		const struct search_option *choose = &pairing->options.choose[i];
		double shift = choose->places - drop->places;
		double cost =
			weight * shift * (twice + shift) + drop_cost + pairing->choose_costs[i];

		if (choose->other == drop->other)
			cost -= 2 * search->cost[drop->other] * drop->places * choose->places;
		if (cost < pairing->cost && !touch(drop, choose)) {
			pairing->cost = cost;
			pairing->drop = drop;
			pairing->choose = choose;
		}
	}
}

bool search_improve(struct search *search, uint32_t lane)
{
	struct pairing pairing = {.cost = -1e-12}; // rounding is no gain: the search must end
	struct options *options = &pairing.options;

	list_options(search, lane, options);
	for (unsigned i = 0; i < options->choose_count; i++)
		pairing.choose_costs[i] = other_cost(search, lane, &options->choose[i], -1);
	for (unsigned i = 0; i < options->drop_count; i++)
		pair_up(search, lane, &options->drop[i], &pairing);
	if (pairing.drop == NULL)
		return false;
	// Chosen first: a ring never stands without a point.
	if (pairing.choose->position != SEARCH_NO_POSITION)
		search_flip(search, pairing.choose->position);
	if (pairing.drop->position != SEARCH_NO_POSITION)
		search_flip(search, pairing.drop->position);
	return true;
}

void search_flip(struct search *search, uint32_t position)
{
	if (arcs_is_chosen(search->arcs, position))
		arcs_drop(search->arcs, position);
	else
		arcs_choose(search->arcs, position);
	search->moves++;
}

void search_report(const struct search *search, struct balance_report *ret)
{
	struct balance_report report = {
		.points = search->arcs->chosen_count,
		.moves = search->moves,
		.coldest = INFINITY,
	};
	double squares = 0;

	for (uint32_t first = 0; first < search->count;) {
		uint32_t lanes = lanes_of_next_member(search, first);
		double share = 0;

		for (uint32_t lane = first; lane < first + lanes; lane++)
			share += (double)search->arcs->share[lane];
		double ratio = share / (search->target[first] * lanes);

		squares += (ratio - 1) * (ratio - 1);
		report.hottest = fmax(report.hottest, ratio);
		report.coldest = fmin(report.coldest, ratio);
		first += lanes;
	}
	report.cv = sqrt(squares / search->request->count);
	*ret = report;
}
