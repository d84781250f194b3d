// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/spec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND CUTOVER_SECOND_MS
#define HOUR   (3600 * CUTOVER_SECOND_MS)

void datacenter_set_add(struct datacenter_set *set, uint32_t index)
{
	set->words[index / 64] |= UINT64_C(1) << (index % 64);
}

bool datacenter_set_has(const struct datacenter_set *set, uint32_t index)
{
	return index < CUTOVER_DATACENTERS_MAX && (set->words[index / 64] >> (index % 64) & 1);
}

bool datacenter_set_empty(const struct datacenter_set *set)
{
	for (unsigned i = 0; i < CUTOVER_DATACENTERS_MAX / 64; i++) {
		if (set->words[i] != 0)
			return false;
	}
	return true;
}

void cutover_spec_init(struct cutover_spec *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->guard_passes = 3;
	ret->shadow_ms = 60 * SECOND;
	ret->full_soak_ms = 24 * HOUR;
	ret->retire_hold_ms = 900 * SECOND;
	ret->apply_ms = 120 * SECOND;
	ret->refill_ms = 1320 * SECOND;
	ret->hit_ratio = NAN;
	ret->churn_surge = NAN;
}

int cutover_datacenter_find(const struct cutover_spec *spec, const char *name)
{
	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		if (strcmp(spec->datacenters[i], name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

int cutover_datacenter_add(struct cutover_spec *spec, const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length >= CUTOVER_NAME_BYTES)
		return -ENAMETOOLONG;
	if (cutover_datacenter_find(spec, name) >= 0)
		return -EEXIST;
	if (spec->datacenter_count == CUTOVER_DATACENTERS_MAX)
		return -ENOSPC;
	uint32_t index = spec->datacenter_count++;

	memcpy(spec->datacenters[index], name, length + 1);
	for (uint32_t i = 0; i < spec->stage_count; i++) {
		if (spec->stages[i].every)
			datacenter_set_add(&spec->stages[i].datacenters, index);
	}
	return (int)index;
}

uint32_t cutover_stage_last_share(const struct cutover_stage *stage)
{
	return stage->step_count ? stage->steps[stage->step_count - 1] : stage->ramp_to;
}

uint32_t cutover_stage_next_share(const struct cutover_stage *stage, uint32_t share)
{
	for (uint32_t i = 0; i < stage->step_count; i++) {
		if (stage->steps[i] > share)
			return stage->steps[i];
	}
	if (stage->step_count != 0 || share >= stage->ramp_to)
		return share;
	uint32_t left = stage->ramp_to - share;

	return share + (stage->ramp_step < left ? stage->ramp_step : left);
}

int cutover_share_parse(const char *text, uint32_t *ret)
{
	uint32_t share = 0, scale = GATE_SHARE_ALL / 100, digits = 0;

	while (isspace((unsigned char)*text))
		text++;
	for (; isdigit((unsigned char)*text); text++, digits++) {
		share = share * 10 + (uint32_t)(*text - '0') * scale;
		if (share > GATE_SHARE_ALL)
			return -EINVAL;
	}
	if (digits == 0)
		return -EINVAL;
	if (*text == '.') {
		for (text++, digits = 0; isdigit((unsigned char)*text); text++, digits++) {
			scale /= 10;
			if (scale == 0)
				return -EINVAL;
			share += (uint32_t)(*text - '0') * scale;
		}
		if (digits == 0)
			return -EINVAL;
	}
	while (isspace((unsigned char)*text))
		text++;
	if (*text == '%')
		text++;
	if (*text != '\0' || share > GATE_SHARE_ALL)
		return -EINVAL;
	*ret = share;
	return 0;
}

void cutover_share_format(uint32_t share, char ret[static CUTOVER_SHARE_TEXT_BYTES])
{
	uint32_t whole = share / 10000, part = share % 10000;
	int length = snprintf(ret, CUTOVER_SHARE_TEXT_BYTES, "%u", whole);

	if (part != 0) {
		length += snprintf(
			ret + length, CUTOVER_SHARE_TEXT_BYTES - (size_t)length, ".%04u", part);
		while (ret[length - 1] == '0')
			length--;
	}
	ret[length] = '%';
	ret[length + 1] = '\0';
}

// Faults found so far.
struct faults {
	struct cutover_spec_error *list;
	size_t count;
	size_t max;
};

__attribute__((format(printf, 3, 4))) static void fault(
	struct faults *faults, const char *where, const char *format, ...)
{
	va_list args;

	if (faults->count == faults->max)
		return;
	struct cutover_spec_error *error = &faults->list[faults->count++];

	snprintf(error->where, sizeof(error->where), "%s", where);
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

static void check_steps(const struct cutover_stage *stage, uint32_t index, struct faults *faults)
{
	char where[64];
	uint32_t before = 0;

	snprintf(where, sizeof(where), "stages[%u]", index);
	if (stage->step_count > CUTOVER_STEPS_MAX) {
		fault(faults, where, "%u steps; at most %u", stage->step_count, CUTOVER_STEPS_MAX);
		return;
	}
	if (stage->step_count == 0) {
		if (stage->ramp_to == 0 || stage->ramp_to > GATE_SHARE_ALL || stage->ramp_step == 0)
			fault(faults, where,
				"needs `steps`, or a ramp with `to` and `rate` above 0");
		return;
	}
	for (uint32_t i = 0; i < stage->step_count; i++) {
		snprintf(where, sizeof(where), "stages[%u].steps[%u]", index, i);
		if (stage->steps[i] > GATE_SHARE_ALL)
			fault(faults, where, "more than 100%%");
		else if (stage->steps[i] <= before)
			fault(faults, where, "steps of a stage must rise, and be above 0%%");
		before = stage->steps[i];
	}
}

static void check_stage(const struct cutover_spec *spec, uint32_t index, struct faults *faults)
{
	const struct cutover_stage *stage = &spec->stages[index];
	char where[64];

	snprintf(where, sizeof(where), "stages[%u]", index);
	check_steps(stage, index, faults);
	if (datacenter_set_empty(&stage->datacenters) && !stage->every)
		fault(faults, where, "names no datacenter; use `all` for every one");
	for (uint32_t i = spec->datacenter_count; i < CUTOVER_DATACENTERS_MAX; i++) {
		if (datacenter_set_has(&stage->datacenters, i)) {
			fault(faults, where, "names a datacenter that is not listed");
			break;
		}
	}
	if (stage->require == CUTOVER_REQUIRE_HOOK && spec->hook[0] == '\0')
		fault(faults, where, "`require: hook`, but `hook` names no URL");
	if (stage->min_soak_ms == 0)
		fault(faults, where, "`min_soak` must be above 0");
	if (stage->max_duration_ms != 0 && stage->max_duration_ms < stage->min_soak_ms)
		fault(faults, where, "`max_duration` is shorter than one `min_soak`");
	if (stage->max_step_surge < 0 || isnan(stage->max_step_surge))
		fault(faults, where, "`max_step_surge` must be 0 or above");
}

static void check_end(const struct cutover_spec *spec, struct faults *faults)
{
	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		uint32_t last = 0;

		for (uint32_t s = 0; s < spec->stage_count; s++) {
			if (datacenter_set_has(&spec->stages[s].datacenters, i))
				last = cutover_stage_last_share(&spec->stages[s]);
		}
		if (last != GATE_SHARE_ALL) {
			fault(faults, "stages",
				"datacenter %s never reaches 100%%; add a last stage that takes it there",
				spec->datacenters[i]);
		}
	}
}

static void check_guard(const struct cutover_spec *spec, uint32_t index, struct faults *faults)
{
	const struct guard_config *guard = &spec->guards[index];
	char where[64];

	snprintf(where, sizeof(where), "guards[%u]", index);
	if (guard->name[0] == '\0')
		fault(faults, where, "has no name");
	if (guard->kind == GUARD_PROMQL && guard->query[0] == '\0')
		fault(faults, where, "has no query");
	if (guard->kind == GUARD_PROMQL && spec->prometheus[0] == '\0')
		fault(faults, where, "has a query, but `prometheus` names no server");
	if (guard->kind == GUARD_PROMQL && isnan(guard->pause_at) && isnan(guard->rollback_at))
		fault(faults, where, "needs `pause` or `rollback`, a threshold");
	if (guard->failures == 0 || guard->errors == 0 || guard->window_ms == 0)
		fault(faults, where, "`failures`, `errors` and `window` must be above 0");
}

size_t cutover_spec_check(
	const struct cutover_spec *spec, struct cutover_spec_error *ret, size_t max)
{
	struct faults faults = {.list = ret, .max = max};

	if (spec->pool[0] == '\0')
		fault(&faults, "pool", "is missing");
	if (spec->stage_count == 0 || spec->stage_count > CUTOVER_STAGES_MAX)
		fault(&faults, "stages", "must be 1 to %u", CUTOVER_STAGES_MAX);
	if (spec->guard_count > CUTOVER_GUARDS_MAX)
		fault(&faults, "guards", "must be at most %u", CUTOVER_GUARDS_MAX);
	if (spec->guard_passes == 0)
		fault(&faults, "guard_passes", "must be above 0");
	if (spec->apply_ms == 0)
		fault(&faults, "apply_timeout", "must be above 0");
	if (!isnan(spec->hit_ratio) && !(spec->hit_ratio >= 0 && spec->hit_ratio < 1))
		fault(&faults, "hit_ratio", "must be from 0 up to, not including, 1");
	if (faults.count != 0)
		return faults.count;
	for (uint32_t i = 0; i < spec->stage_count; i++)
		check_stage(spec, i, &faults);
	for (uint32_t i = 0; i < spec->guard_count; i++)
		check_guard(spec, i, &faults);
	check_end(spec, &faults);
	return faults.count;
}

// A running hash of fields, so that padding never counts.
static uint64_t mix_bytes(uint64_t state, const void *data, size_t length)
{
	return XXH3_64bits_withSeed(data, length, state ^ length);
}

static uint64_t mix_number(uint64_t state, uint64_t number)
{
	uint64_t little = htole64(number);

	return mix_bytes(state, &little, sizeof(little));
}

static uint64_t mix_double(uint64_t state, double value)
{
	uint64_t bits;

	if (isnan(value)) // one of many bit patterns
		return mix_number(state, UINT64_MAX);
	memcpy(&bits, &value, sizeof(bits));
	return mix_number(state, bits);
}

static uint64_t mix_text(uint64_t state, const char *text)
{
	return mix_bytes(state, text, strlen(text));
}

static uint64_t mix_ring(uint64_t state, const struct cutover_ring *ring)
{
	state = mix_number(state, ring->version);
	state = mix_number(state, ring->points);
	state = mix_double(state, ring->balance);
	state = mix_number(state, ring->seed_mark);
	return mix_bytes(state, ring->digest, sizeof(ring->digest));
}

static uint64_t mix_stage(uint64_t state, const struct cutover_stage *stage)
{
	for (unsigned i = 0; i < CUTOVER_DATACENTERS_MAX / 64; i++)
		state = mix_number(state, stage->datacenters.words[i]);
	state = mix_number(state, stage->every);
	state = mix_number(state, stage->step_count);
	for (uint32_t i = 0; i < stage->step_count; i++)
		state = mix_number(state, stage->steps[i]);
	state = mix_number(state, stage->ramp_to);
	state = mix_number(state, stage->ramp_step);
	state = mix_number(state, stage->min_soak_ms);
	state = mix_number(state, stage->max_duration_ms);
	state = mix_number(state, stage->on_expiry);
	state = mix_number(state, stage->require);
	state = mix_number(state, stage->missing_nodes_max);
	return mix_double(state, stage->max_step_surge);
}

static uint64_t mix_guard(uint64_t state, const struct guard_config *guard)
{
	state = mix_text(state, guard->name);
	state = mix_number(state, guard->kind);
	state = mix_number(state, guard->direction);
	state = mix_text(state, guard->query);
	state = mix_double(state, guard->pause_at);
	state = mix_double(state, guard->rollback_at);
	state = mix_double(state, guard->difference_min);
	state = mix_number(state, guard->failures);
	state = mix_number(state, guard->errors);
	state = mix_number(state, guard->window_ms);
	return mix_number(state, guard->dry_run);
}

uint64_t cutover_plan_id(const struct cutover_spec *spec, uint64_t base_generation)
{
	uint64_t state = mix_number(0, base_generation);

	state = mix_text(state, spec->pool);
	state = mix_ring(state, &spec->from);
	state = mix_ring(state, &spec->to);
	state = mix_number(state, spec->salt);
	for (uint32_t i = 0; i < spec->datacenter_count; i++)
		state = mix_text(state, spec->datacenters[i]);
	for (uint32_t i = 0; i < spec->stage_count; i++)
		state = mix_stage(state, &spec->stages[i]);
	for (uint32_t i = 0; i < spec->guard_count; i++)
		state = mix_guard(state, &spec->guards[i]);
	state = mix_text(state, spec->prometheus);
	state = mix_text(state, spec->hook);
	state = mix_number(state, spec->guard_passes);
	state = mix_number(state, spec->shadow_ms);
	state = mix_number(state, spec->full_soak_ms);
	state = mix_number(state, spec->retire_hold_ms);
	state = mix_number(state, spec->apply_ms);
	state = mix_number(state, spec->refill_ms);
	state = mix_double(state, spec->hit_ratio);
	state = mix_text(state, spec->hit_query);
	return state ? state : 1;
}
