// SPDX-License-Identifier: Apache-2.0
// The balancer of v3 rings: weights are target shares, not point counts.
//
// Every member's chain of points is endless; which of them a ring uses is free. A choice is small data: a window of 64
// points of the chain and a mask of those in use. It belongs in the ring's specification, so a node builds the ring
// from it without searching, and the next ring starts from the last one. A member whose share is large has several
// choices, its lanes.
//
// Deterministic: same request, same choices, on every machine. The caller lists members in address order, so the order
// in which an operator wrote them does not matter. Health never comes here. Source: docs/ring.md section 5.
#pragma once

#include "control/ring/arcs.h"

#define BALANCE_POINTS_MAX 48u // a lane: leaves 16 free candidates to choose from
// Most windows that are looked through for a lane of few points.
#define BALANCE_WINDOWS_MAX 1024u

// Points base..base+63 of the member's chain (0 is the first point); bit b of mask uses point base + b.
struct balance_choice {
	uint64_t mask;   // 0: not chosen yet
	uint32_t base;   // a multiple of ARCS_SLOTS; the lanes of a member have different ones
	uint32_t member; // index in the request's members
};

struct balance_member {
	uint32_t weight; // >= 1; the target share is weight / the sum of all
	uint32_t state;  // CRC register behind the member's seed, see chain.h
	bool changed;    // balance_repair(): new, or another weight than in the choices given
};

struct balance_request {
	const struct balance_member *members;
	uint32_t count; // 1..65535
	// Wanted points of a member of mean weight, 1..BALANCE_POINTS_MAX; single lanes may differ by a few.
	uint32_t points;
	// Repair: how far above its target share a member may be, 0.001..10.
	double tolerance;
};

struct balance_report {
	uint32_t points; // in all
	uint32_t moves;  // points chosen or dropped by the search
	double cv;       // of share / target over the members, 1 = 100 %
	double hottest;  // largest share / target
	double coldest;
};

// Lays out the choices of a request: those given, in member order, and a new lane with mask 0 wherever a member has
// fewer than its share asks for.
// old: choices of the last ring, member renumbered to this request, members that left left out; NULL and 0 for a fresh
// ring. Returns 0 with *ret_choices (free() it) and *ret_count; -EINVAL for a bad request; -E2BIG for more than 65535
// lanes in all; -ENOMEM.
int balance_layout(const struct balance_request *request, const struct balance_choice *old,
	uint32_t old_count, struct balance_choice **ret_choices, uint32_t *ret_count);

// Chooses anew, for the best balance: 2,048 equal members of 16 points come out at a CV near 0.1 %.
// choices: of balance_layout() without old ones; masks and bases are written.
// Returns 0, -EINVAL for a bad request, or -ENOMEM; then the choices are undefined.
// Cost: 40 ms for 2,048 members of 16 points.
int balance_fresh(const struct balance_request *request, struct balance_choice *choices,
	uint32_t count, struct balance_report *ret_report);

// Keeps the choices but for what a change of members asks: settles new and re-weighted members at their target, then
// takes from members above tolerance the least that brings them back under it. Moves few keys beside the unavoidable
// ones. choices: of balance_layout(). Returns as balance_fresh(); on failure the choices are as they came.
int balance_repair(const struct balance_request *request, struct balance_choice *choices,
	uint32_t count, struct balance_report *ret_report);
