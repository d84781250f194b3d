// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/balance_fleet.h"

#include "control/ring/chain.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANGED_MEMBER 77u

static void *reserve(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (memory == NULL) {
		fprintf(stderr, "balance_fleet: out of memory\n");
		exit(1);
	}
	return memory;
}

uint32_t balance_fleet_state(uint32_t id)
{
	struct chain_tables tables;
	char text[32];
	int host = snprintf(text, sizeof(text), "10.%u.%u.%u", id >> 16, id >> 8 & 255, id & 255);
	int port = snprintf(text + host + 1, sizeof(text) - (size_t)host - 1, "80");

	chain_tables_fill(&tables);
	return chain_seed(&tables, UINT32_MAX, text, (size_t)(host + 1 + port));
}

struct balance_fleet balance_fleet_new(uint32_t first_id, uint32_t count)
{
	struct balance_fleet fleet = {
		.members = reserve(count, sizeof(*fleet.members)),
		.ids = reserve(count, sizeof(*fleet.ids)),
		.count = count,
	};

	for (uint32_t i = 0; i < count; i++) {
		fleet.ids[i] = first_id + i;
		fleet.members[i] = (struct balance_member){
			.weight = 1,
			.state = balance_fleet_state(first_id + i),
		};
	}
	return fleet;
}

void balance_fleet_free(struct balance_fleet *fleet)
{
	free(fleet->members);
	free(fleet->ids);
	free(fleet->choices);
}

struct balance_request balance_fleet_request(
	const struct balance_fleet *fleet, uint32_t points, double tolerance)
{
	return (struct balance_request){
		.members = fleet->members,
		.count = fleet->count,
		.points = points,
		.tolerance = tolerance,
	};
}

int balance_fleet_choose(struct balance_fleet *fleet, uint32_t points)
{
	struct balance_request request = balance_fleet_request(fleet, points, 0.1);
	int rc = balance_layout(&request, NULL, 0, &fleet->choices, &fleet->choice_count);

	return rc ? rc
		  : balance_fresh(&request, fleet->choices, fleet->choice_count, &fleet->report);
}

static bool is_removed(
	const struct balance_fleet *fleet, const struct balance_change *change, uint32_t i)
{
	uint32_t stride = change->removed ? fleet->count / change->removed : 1;

	return change->removed && i >= change->first && (i - change->first) % stride == 0 &&
		(i - change->first) / stride < change->removed;
}

int balance_fleet_repaired(const struct balance_fleet *from, const struct balance_change *change,
	double tolerance, struct balance_fleet *ret)
{
	struct balance_fleet to =
		balance_fleet_new(from->count, from->count - change->removed + change->added);
	struct balance_choice *old = reserve(from->choice_count + 1, sizeof(*old));
	uint32_t kept = 0;

	for (uint32_t i = 0; i < from->count; i++) {
		if (is_removed(from, change, i))
			continue;
		to.ids[kept] = from->ids[i];
		to.members[kept] = from->members[i];
		old[kept] = from->choices[i];
		old[kept].member = kept;
		kept++;
	}
	for (uint32_t i = 0; i < change->added; i++) {
		to.ids[kept + i] = from->count + i;
		to.members[kept + i] = (struct balance_member){
			.state = balance_fleet_state(from->count + i),
			.changed = true,
		};
	}
	for (uint32_t i = 0; i < to.count; i++)
		to.members[i].weight = 100;
	if (change->weight) {
		to.members[CHANGED_MEMBER].weight = change->weight;
		to.members[CHANGED_MEMBER].changed = true;
	}
	struct balance_request request =
		balance_fleet_request(&to, from->report.points / from->count, tolerance);
	int rc = balance_layout(&request, old, kept, &to.choices, &to.choice_count);

	if (rc == 0)
		rc = balance_repair(&request, to.choices, to.choice_count, &to.report);
	free(old);
	*ret = to;
	return rc;
}

static int compare_points(const void *a, const void *b)
{
	const struct balance_point *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

struct balance_point *balance_fleet_points(const struct balance_fleet *fleet, uint32_t *ret_count)
{
	struct balance_point *points = reserve(fleet->choice_count * ARCS_SLOTS, sizeof(*points));
	struct chain_tables tables;
	uint32_t count = 0;

	chain_tables_fill(&tables);
	for (uint32_t i = 0; i < fleet->choice_count; i++) {
		const struct balance_choice *choice = &fleet->choices[i];
		uint32_t state = fleet->members[choice->member].state, hash = 0;

		for (uint32_t at = 0; at < choice->base + ARCS_SLOTS; at++) {
			hash = chain_step(&tables, state, hash);
			if (at >= choice->base && choice->mask >> (at - choice->base) & 1)
				points[count++] =
					(struct balance_point){hash, fleet->ids[choice->member]};
		}
	}
	qsort(points, count, sizeof(*points), compare_points);
	*ret_count = count;
	return points;
}

double balance_fleet_churn(const struct balance_fleet *a, const struct balance_fleet *b)
{
	uint32_t a_count, b_count, i = 0, j = 0;
	struct balance_point *x = balance_fleet_points(a, &a_count);
	struct balance_point *y = balance_fleet_points(b, &b_count);
	uint64_t at = 0, moved = 0, all = UINT64_C(1) << 32;

	while (at < all) {
		uint64_t x_end = i < a_count ? x[i].hash + UINT64_C(1) : all;
		uint64_t y_end = j < b_count ? y[j].hash + UINT64_C(1) : all;
		uint64_t end = x_end < y_end ? x_end : y_end;

		if (x[i < a_count ? i : 0].id != y[j < b_count ? j : 0].id)
			moved += end - at;
		at = end;
		while (i < a_count && x[i].hash + UINT64_C(1) <= end)
			i++;
		while (j < b_count && y[j].hash + UINT64_C(1) <= end)
			j++;
	}
	free(x);
	free(y);
	return (double)moved / (double)all;
}
