// SPDX-License-Identifier: Apache-2.0
// The local search under balance_fresh() and balance_repair(). Private to control/ring.
#pragma once

#include "control/ring/balance.h"
#include "control/ring/chain.h"

#define SEARCH_NO_POSITION UINT32_MAX

// "Member" of the arcs is a lane here: an index in the choices.
struct search {
	const struct balance_request *request;
	struct balance_choice *choices;
	uint32_t count; // of choices
	struct arcs *arcs;
	double *target;   // [count], places
	double *cost;     // [count], 1 / target^2: deviations count relative to the target
	uint16_t *wanted; // [count], points
	uint32_t moves;
	struct chain_tables tables;
};

// A point that a lane could drop or choose: what moves, and who else is concerned.
struct search_option {
	double places;     // 0 when the other one is the lane itself
	uint32_t other;    // gets the places of a dropped point, loses those of a chosen one
	uint32_t position; // SEARCH_NO_POSITION: do nothing
	uint32_t before;
	uint32_t after;
};

// Checks the request and sets targets; search_load() must follow. Returns 0, -EINVAL or -ENOMEM; search_end() in any case.
int search_start(struct search *search, const struct balance_request *request,
	struct balance_choice *choices, uint32_t count);
void search_end(struct search *search);

// Makes the arcs from the choices. Returns 0 or -ENOMEM.
int search_load(struct search *search);

// Writes the next ARCS_SLOTS points of a member's chain.
// point: the last one before them, 0 at the start; moved on.
void search_window(const struct search *search, uint32_t member, uint32_t *point,
	uint32_t ret_points[ARCS_SLOTS]);

// Writes the chosen points back into the choices.
void search_store(const struct search *search);

// A lane's share above (below: negative) its target, in places.
double search_excess(const struct search *search, uint32_t lane);

// How the sum of squared relative deviations changes when a lane's share moves by some places.
double search_shift_cost(const struct search *search, uint32_t lane, double places);

struct search_option search_option_at(const struct arcs *arcs, uint32_t lane, uint32_t position);

// Makes the best swap, addition or removal of one point of a lane, if one lowers the sum of squares.
// Cost: 16 x 48 candidates, 1.5 us.
bool search_improve(struct search *search, uint32_t lane);

// Chooses a free position or drops a chosen one, and counts the move.
void search_flip(struct search *search, uint32_t position);

// Balance over members, their lanes added up.
void search_report(const struct search *search, struct balance_report *ret);
