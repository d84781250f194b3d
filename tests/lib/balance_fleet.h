// SPDX-License-Identifier: Apache-2.0
// A fleet of made-up members 10.x.y.z:80 and what the balancer chose for them, for its tests and its benchmark; and the
// naive twin of the arcs: a list of points, sorted by the library and gone through once.
#pragma once

#include "control/ring/balance.h"

struct balance_fleet {
	struct balance_member *members; // weight 1 each
	uint32_t *ids;                  // which made-up member each is
	uint32_t count;
	struct balance_choice *choices; // NULL until chosen
	uint32_t choice_count;
	struct balance_report report;
};

// Members first_id, first_id + 1, ... Ends the program when memory is short.
struct balance_fleet balance_fleet_new(uint32_t first_id, uint32_t count);
void balance_fleet_free(struct balance_fleet *fleet);

// CRC register behind the seed of a made-up member.
uint32_t balance_fleet_state(uint32_t id);

struct balance_request balance_fleet_request(
	const struct balance_fleet *fleet, uint32_t points, double tolerance);

// Chooses anew. Returns 0 or what the balancer returned.
int balance_fleet_choose(struct balance_fleet *fleet, uint32_t points);

// A change of members.
struct balance_change {
	uint32_t removed; // so many, spread over the fleet
	uint32_t first;   // the first that is removed
	uint32_t added;
	uint32_t weight; // of member 77 in hundredths of the others'; 0: as it was
};

// The fleet after a change: choices carried over and repaired. Returns 0 or what the balancer returned.
int balance_fleet_repaired(const struct balance_fleet *from, const struct balance_change *change,
	double tolerance, struct balance_fleet *ret);

struct balance_point {
	uint32_t hash;
	uint32_t id;
};

// The points in use, ascending. free() them.
struct balance_point *balance_fleet_points(const struct balance_fleet *fleet, uint32_t *ret_count);

// Part of the circle whose owner differs between two fleets.
double balance_fleet_churn(const struct balance_fleet *a, const struct balance_fleet *b);
