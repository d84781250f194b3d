// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/guard.h"
#include "control/cutover/spec_json.h"

#include <math.h>
#include <stdio.h>

void cutover_time_format(uint64_t ms, char ret[static CUTOVER_TIME_TEXT_BYTES])
{
	static const struct {
		uint64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	unsigned i = 0;

	while (ms == 0 || ms % units[i].ms != 0) {
		if (ms == 0) {
			snprintf(ret, CUTOVER_TIME_TEXT_BYTES, "0s");
			return;
		}
		i++;
	}
	snprintf(ret, CUTOVER_TIME_TEXT_BYTES, "%llu%s", (unsigned long long)(ms / units[i].ms),
		units[i].unit);
}

static json_t *time_text(uint64_t ms)
{
	char text[CUTOVER_TIME_TEXT_BYTES];

	cutover_time_format(ms, text);
	return json_string(text);
}

static json_t *share_text(uint32_t share)
{
	char text[CUTOVER_SHARE_TEXT_BYTES];

	cutover_share_format(share, text);
	return json_string(text);
}

static json_t *write_ring(const struct cutover_ring *ring)
{
	char version[4], digest[2 * RING_DIGEST_BYTES + 1];

	snprintf(version, sizeof(version), "v%u", (unsigned)ring->version % 10);
	for (unsigned i = 0; i < RING_DIGEST_BYTES; i++)
		snprintf(digest + 2 * i, 3, "%02x", ring->digest[i]);
	return json_pack("{s:s, s:I, s:f, s:s, s:o}", "version", version, "points",
		(json_int_t)ring->points, "balance", ring->balance, "digest", digest, "seed_mark",
		json_sprintf("%016llx", (unsigned long long)ring->seed_mark));
}

static json_t *write_datacenters(const struct cutover_spec *spec, const struct cutover_stage *stage)
{
	if (stage->every)
		return json_string("all");
	json_t *names = json_array();

	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		if (datacenter_set_has(&stage->datacenters, i))
			json_array_append_new(names, json_string(spec->datacenters[i]));
	}
	return names;
}

static json_t *write_stage(const struct cutover_spec *spec, const struct cutover_stage *stage)
{
	static const char *const expiries[] = {"pause", "rollback"};
	static const char *const requires[] = {"auto", "manual", "hook"};
	json_t *object = json_pack("{s:o, s:o, s:o, s:s, s:s, s:I, s:f, s:I}", "datacenters",
		write_datacenters(spec, stage), "min_soak", time_text(stage->min_soak_ms),
		"max_duration", time_text(stage->max_duration_ms), "on_expiry",
		expiries[stage->on_expiry], "require", requires[stage->require],
		"missing_nodes_max", (json_int_t)stage->missing_nodes_max, "max_step_surge",
		stage->max_step_surge, "step_share_max", (json_int_t)stage->step_share_max);
	json_t *steps = json_array();

	if (stage->step_count == 0) {
		json_object_set_new(object, "ramp",
			json_pack("{s:o, s:o}", "to", share_text(stage->ramp_to), "rate",
				share_text(stage->ramp_step)));
		json_decref(steps);
		return object;
	}
	for (uint32_t i = 0; i < stage->step_count; i++)
		json_array_append_new(steps, share_text(stage->steps[i]));
	json_object_set_new(object, "steps", steps);
	return object;
}

static void set_number(json_t *object, const char *key, double number)
{
	if (!isnan(number))
		json_object_set_new(object, key, json_real(number));
}

static json_t *write_guard(const struct guard_config *guard)
{
	static const char *const directions[] = {"above", "below", "not_recovering"};
	json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:b}", "name", guard->name,
		"kind", guard_kind_name(guard->kind), "direction", directions[guard->direction],
		"failures", (json_int_t)guard->failures, "errors", (json_int_t)guard->errors,
		"window", time_text(guard->window_ms), "dry_run", guard->dry_run);

	if (guard->query[0] != '\0')
		json_object_set_new(object, "query", json_string(guard->query));
	set_number(object, "pause", guard->pause_at);
	set_number(object, "rollback", guard->rollback_at);
	set_number(object, "difference", guard->difference_min);
	return object;
}

static void write_hit_ratio(json_t *object, const struct cutover_spec *spec)
{
	json_t *measured;

	if (spec->hit_query[0] == '\0') {
		set_number(object, "hit_ratio", spec->hit_ratio);
		return;
	}
	measured = json_pack("{s:s}", "query", spec->hit_query);
	set_number(measured, "value", spec->hit_ratio);
	json_object_set_new(object, "hit_ratio", measured);
}

json_t *cutover_spec_write(const struct cutover_spec *spec)
{
	json_t *names = json_array(), *stages = json_array(), *guards = json_array();

	for (uint32_t i = 0; i < spec->datacenter_count; i++)
		json_array_append_new(names, json_string(spec->datacenters[i]));
	for (uint32_t i = 0; i < spec->stage_count; i++)
		json_array_append_new(stages, write_stage(spec, &spec->stages[i]));
	for (uint32_t i = 0; i < spec->guard_count; i++)
		json_array_append_new(guards, write_guard(&spec->guards[i]));
	json_t *object = json_pack("{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:b}",
		"pool", spec->pool, "from", write_ring(&spec->from), "to", write_ring(&spec->to),
		"salt", (json_int_t)spec->salt, "guard_passes", (json_int_t)spec->guard_passes,
		"shadow", time_text(spec->shadow_ms), "full_soak", time_text(spec->full_soak_ms),
		"retire_hold", time_text(spec->retire_hold_ms), "apply_timeout",
		time_text(spec->apply_ms), "refill", time_text(spec->refill_ms), "default_guards",
		0);

	write_hit_ratio(object, spec);
	set_number(object, "churn_surge", spec->churn_surge);
	if (spec->prometheus[0] != '\0')
		json_object_set_new(object, "prometheus", json_string(spec->prometheus));
	if (spec->hook[0] != '\0')
		json_object_set_new(object, "hook", json_string(spec->hook));
	json_object_set_new(object, "datacenters", names);
	json_object_set_new(object, "stages", stages);
	json_object_set_new(object, "guards", guards);
	return object;
}
