// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/moves.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void move_say(char *ret, const char *format, ...)
{
	va_list args;

	if (ret == NULL)
		return;
	va_start(args, format);
	vsnprintf(ret, CUTOVER_REASON_BYTES, format, args);
	va_end(args);
}

void move_enter(struct cutover *cutover, enum cutover_state state, uint64_t now_ms)
{
	cutover->state = state;
	cutover->state_ms = now_ms;
	cutover->passes = 0;
	if (state == CUTOVER_SOAKING)
		cutover->soak_ms = now_ms;
	if (state != CUTOVER_PAUSED)
		cutover->pause = CUTOVER_PAUSE_NONE;
	// The reason of a way back stays; that of a gate or pause ends with it.
	if (state != CUTOVER_ROLLED_BACK && state != CUTOVER_DISCARDED)
		cutover->reason[0] = '\0';
}

void move_count(struct cutover *cutover, bool shares)
{
	cutover->revision++;
	if (shares)
		cutover->shares_revision = cutover->revision;
}

void move_pause(
	struct cutover *cutover, enum cutover_pause pause, const char *reason, uint64_t now_ms)
{
	cutover->resume_to = cutover->state == CUTOVER_SOAKING ? CUTOVER_SHIFTING : cutover->state;
	move_enter(cutover, CUTOVER_PAUSED, now_ms);
	cutover->pause = pause;
	move_say(cutover->reason, "%s", reason);
}

void move_zero(struct cutover *cutover)
{
	for (uint32_t i = 0; i < CUTOVER_DATACENTERS_MAX; i++) {
		cutover->datacenters[i].admitted = false;
		cutover->datacenters[i].share = 0;
	}
	memset(cutover->overrides, 0, sizeof(cutover->overrides));
	cutover->share = 0;
}

void move_raise(struct cutover *cutover, uint32_t share)
{
	const struct cutover_stage *stage = &cutover->spec.stages[cutover->stage];

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		struct cutover_datacenter *datacenter = &cutover->datacenters[i];

		if (!datacenter_set_has(&stage->datacenters, i))
			continue;
		datacenter->admitted = true;
		if (datacenter->share < share)
			datacenter->share = share;
	}
	cutover->share = share;
}

void move_begin_stage(struct cutover *cutover, uint32_t index, uint64_t now_ms)
{
	const struct cutover_stage *stage = &cutover->spec.stages[index];
	uint32_t base = GATE_SHARE_ALL;

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		if (datacenter_set_has(&stage->datacenters, i) &&
			cutover->datacenters[i].share < base)
			base = cutover->datacenters[i].share;
	}
	cutover->stage = index;
	cutover->stage_ms = now_ms;
	cutover->manual = false;
	move_raise(cutover, cutover_stage_next_share(stage, base));
}

bool move_ready(const struct cutover *cutover, uint32_t index, const struct cutover_facts *facts,
	bool allow_churn, char *ret_why)
{
	const struct cutover_spec *spec = &cutover->spec;
	const struct cutover_stage *stage = &spec->stages[index];

	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		const struct cutover_datacenter_facts *seen = &facts->datacenters[i];
		const char *name = spec->datacenters[i];

		if (seen->mismatched != 0) {
			move_say(ret_why, "%u nodes of %s built a ring with another digest",
				seen->mismatched, name);
			return false;
		}
		if (!datacenter_set_has(&stage->datacenters, i))
			continue;
		if (seen->nodes == 0) {
			move_say(ret_why, "datacenter %s has no nodes", name);
			return false;
		}
		if (seen->refused != 0) {
			move_say(
				ret_why, "%u nodes of %s refuse the new ring", seen->refused, name);
			return false;
		}
		if (seen->prepared + stage->missing_nodes_max < seen->nodes) {
			move_say(ret_why, "%u of %u nodes of %s hold the new ring", seen->prepared,
				seen->nodes, name);
			return false;
		}
		if (seen->churning != 0 && !allow_churn) {
			move_say(ret_why, "%u nodes of %s are draining or joining", seen->churning,
				name);
			return false;
		}
	}
	return true;
}
