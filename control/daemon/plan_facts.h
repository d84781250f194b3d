// SPDX-License-Identifier: Apache-2.0
// What a plan must know of the world beside both rings: the caches' hit ratio, the flows of each datacenter, and how many
// of them end early as it is.
#pragma once

#include "control/cutover/spec.h"
#include "control/daemon/verbs.h"
#include "control/fleet/hit_ratio.h"

// Measures the hit ratio if a query is to, and fixes it in the specification: the plan's id, its limits and what `show`
// says of a way back stay those of this moment. *ret: as measured.
// Returns ANSWER_DONE, or the failure is set.
enum answer plan_hit_ratio(
	struct server_call *call, struct cutover_spec *spec, struct hit_ratio *ret);

// New flows a second of each of spec->datacenters, added to *ret: what the operator says (the argument flows_per_second),
// or what its nodes measured.
void plan_flows(struct server_call *call, const struct cutover_spec *spec,
	double ret[static CUTOVER_DATACENTERS_MAX], bool *ret_given);

// The part of a pool's new flows on this node that end early as it is; 0 when there were too few to say.
double plan_error_ratio(struct verbs *verbs, const char *pool);
