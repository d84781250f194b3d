// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/plan_facts.h"

#include "control/daemon/verb_fleet.h"

#include <stdio.h>
#include <stdlib.h>

// Flows below which their part that ends early is chance.
#define ERROR_FLOWS_MIN 1000u

enum answer plan_hit_ratio(
	struct server_call *call, struct cutover_spec *spec, struct hit_ratio *ret)
{
	if (spec->hit_query[0] == '\0' ||
		hit_ratio_measure(spec->prometheus, spec->hit_query, ret) == 0) {
		spec->hit_ratio = spec->hit_query[0] != '\0' ? ret->value : spec->hit_ratio;
		return ANSWER_DONE;
	}
	server_fail(call, ANSWER_FAILED, "the hit ratio is not known: %s", ret->error);
	server_detail(call, "%s was asked for %s", spec->prometheus, spec->hit_query);
	server_detail(call,
		"without it no surge can be told and no step be limited; to plan with "
		"a number, write one: hit_ratio: 0.95");
	return call->answer;
}

void plan_flows(struct server_call *call, const struct cutover_spec *spec,
	double ret[static CUTOVER_DATACENTERS_MAX], bool *ret_given)
{
	const json_t *given = json_object_get(call->request->args, "flows_per_second");
	struct fleet_roster roster = {0};
	struct cutover_facts *facts = malloc(sizeof(*facts));
	uint64_t wall_ms = fleet_wall_ms();

	*ret_given = json_is_number(given);
	for (uint32_t i = 0; *ret_given && i < spec->datacenter_count; i++)
		ret[i] = json_number_value(given);
	if (!*ret_given && facts != NULL && fleet_look_at(call, NULL, &roster, facts) < 0)
		fprintf(stderr, "<4>cutover plan: no flow rates: the store does not answer\n");
	for (uint32_t i = 0; i < roster.count; i++) {
		const struct fleet_status *status = &roster.members[i]->status;
		int index = cutover_datacenter_find(spec, status->datacenter);

		if (index >= 0 && status->time_ms + FLEET_MISSING_MS >= wall_ms)
			ret[index] += fleet_rate_find(status, spec->pool);
	}
	fleet_roster_free(&roster);
	free(facts);
}

double plan_error_ratio(struct verbs *verbs, const char *pool)
{
	const struct stats_file *stats = verbs_stats(verbs);
	struct stats_pool sums = {0};

	if (stats != NULL)
		stats_file_pool(stats, verbs_id(verbs, DOCUMENT_POOL, "", pool), &sums);
	return sums.new_flows_old < ERROR_FLOWS_MIN
		? 0
		: (double)sums.aborts_old / (double)sums.new_flows_old;
}
