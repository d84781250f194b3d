// SPDX-License-Identifier: Apache-2.0
#include "control/ring/lanes.h"

#include "control/ring/seed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct balance_member *target_shares(const struct ring_spec *spec)
{
	struct balance_member *members = calloc(spec->member_count, sizeof(*members));
	struct chain_tables tables;

	chain_tables_fill(&tables);
	for (uint32_t i = 0; members != NULL && i < spec->member_count; i++) {
		members[i].weight = spec->members[i].weight;
		members[i].state = seed_state(&tables, spec->seed, &spec->members[i]);
		members[i].changed = true;
	}
	return members;
}

// Finds a lane's member by halving; member_count if it left.
static uint32_t find_member(const struct ring_spec *spec, const struct ring_lane *lane)
{
	uint32_t low = 0, high = spec->member_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct ring_spec_member *member = &spec->members[middle];
		int order = addr_compare(&member->address, &lane->address);

		if (order == 0)
			order = (member->port > lane->port) - (member->port < lane->port);
		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return spec->member_count;
}

static int compare_choices(const void *a, const void *b)
{
	const struct balance_choice *x = a, *y = b;

	if (x->member != y->member)
		return x->member < y->member ? -1 : 1;
	return (x->base > y->base) - (x->base < y->base);
}

// Renumbers the old lanes of members that are still there, and marks the members that kept their weight. The
// balancer keeps a choice at its own place, so lanes stand in the order of their bases.
static uint32_t keep_old(const struct ring_lanes_request *request, struct balance_member *members,
	struct balance_choice *ret)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < request->old_count; i++) {
		const struct ring_lane *lane = &request->old[i];
		uint32_t member = find_member(request->spec, lane);

		if (member == request->spec->member_count)
			continue;
		members[member].changed = lane->weight != members[member].weight;
		ret[kept++] = (struct balance_choice){lane->mask, lane->base, member};
	}
	if (kept > 0)
		qsort(ret, kept, sizeof(*ret), compare_choices);
	return kept;
}

// A lane that the balancer left without points is no lane.
static struct ring_lane *lanes_of(
	const struct ring_spec *spec, struct balance_choice *choices, uint32_t *count)
{
	struct ring_lane *lanes = calloc(*count, sizeof(*lanes));
	uint32_t used = 0;

	qsort(choices, *count, sizeof(*choices), compare_choices);
	for (uint32_t i = 0; lanes != NULL && i < *count; i++) {
		const struct ring_spec_member *member = &spec->members[choices[i].member];

		if (choices[i].mask == 0)
			continue;
		lanes[used++] = (struct ring_lane){member->address, member->port, member->weight,
			choices[i].base, choices[i].mask};
	}
	*count = used;
	return lanes;
}

int ring_lanes_choose(const struct ring_lanes_request *request, struct ring_lane **ret_lanes,
	uint32_t *ret_count, struct balance_report *ret_report)
{
	struct balance_member *members = target_shares(request->spec);
	struct balance_choice *old = calloc((size_t)request->old_count + 1, sizeof(*old));
	struct balance_choice *choices = NULL;
	struct balance_report report;
	uint32_t count = 0, kept;
	int result = -ENOMEM;

	if (members == NULL || old == NULL)
		goto out;
	kept = keep_old(request, members, old);
	struct balance_request wanted = {
		.members = members,
		.count = request->spec->member_count,
		.points = request->spec->points,
		.tolerance = request->tolerance,
	};

	result = balance_layout(&wanted, kept > 0 ? old : NULL, kept, &choices, &count);
	if (result == 0)
		result = kept > 0 ? balance_repair(&wanted, choices, count, &report)
				  : balance_fresh(&wanted, choices, count, &report);
	if (result != 0)
		goto out;
	*ret_lanes = lanes_of(request->spec, choices, &count);
	result = *ret_lanes != NULL ? 0 : -ENOMEM;
	*ret_count = count;
	if (ret_report != NULL)
		*ret_report = report;

out:
	free(choices);
	free(old);
	free(members);
	return result;
}
