// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/spec_json.h"

#include "control/cutover/guard.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MS_MAX (UINT64_C(3650) * 24 * 3600 * CUTOVER_SECOND_MS)

// A place in the object and the faults found so far.
struct reader {
	struct cutover_spec_error *errors;
	size_t count;
	size_t max;
	char where[64];
};

__attribute__((format(printf, 3, 4))) static void fault(
	struct reader *reader, const char *key, const char *format, ...)
{
	va_list args;

	if (reader->count == reader->max)
		return;
	struct cutover_spec_error *error = &reader->errors[reader->count++];
	bool nested = reader->where[0] != '\0' && key[0] != '\0';

	snprintf(error->where, sizeof(error->where), "%.40s%s%.20s", reader->where,
		nested ? "." : "", key);
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

// The text of a scalar: of a number what JSON would write. NULL for anything else.
static const char *scalar(const json_t *value, char *buffer, size_t bytes)
{
	if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
		return json_string_value(value);
	if (json_is_integer(value))
		snprintf(buffer, bytes, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		snprintf(buffer, bytes, "%.17g", json_real_value(value));
	else if (json_is_boolean(value))
		snprintf(buffer, bytes, "%s", json_is_true(value) ? "true" : "false");
	else
		return NULL;
	return buffer;
}

// --- one kind of value each; a key that is absent leaves its default -----------------------------

static void read_text(
	struct reader *reader, const json_t *object, const char *key, char *ret, size_t bytes)
{
	const json_t *value = json_object_get(object, key);
	char buffer[40];
	const char *text = scalar(value, buffer, sizeof(buffer));

	if (value == NULL)
		return;
	if (text == NULL || text[0] == '\0' || strlen(text) >= bytes)
		fault(reader, key, "must be a text of 1 to %zu bytes", bytes - 1);
	else
		memcpy(ret, text, strlen(text) + 1);
}

static void read_time(
	struct reader *reader, const json_t *object, const char *key, uint64_t *ret_ms)
{
	const json_t *value = json_object_get(object, key);
	char buffer[40];
	const char *text = scalar(value, buffer, sizeof(buffer));

	if (value != NULL && (text == NULL || cutover_time_parse(text, ret_ms) != 0))
		fault(reader, key, "must be a time such as 20s, 22m or 24h");
}

static void read_share_value(
	struct reader *reader, const json_t *value, const char *key, uint32_t *ret)
{
	char buffer[40];
	const char *text = scalar(value, buffer, sizeof(buffer));

	if (text == NULL || cutover_share_parse(text, ret) != 0)
		fault(reader, key, "must be a share from 0%% to 100%% in steps of 0.0001%%");
}

static void read_count(struct reader *reader, const json_t *object, const char *key, uint32_t *ret)
{
	const json_t *value = json_object_get(object, key);
	char buffer[40], *end;
	const char *text = scalar(value, buffer, sizeof(buffer));

	if (value == NULL)
		return;
	if (text == NULL || !isdigit((unsigned char)text[0])) {
		fault(reader, key, "must be a whole number");
		return;
	}
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);

	if (*end != '\0' || errno != 0 || number > UINT32_MAX)
		fault(reader, key, "must be a whole number up to %u", UINT32_MAX);
	else
		*ret = (uint32_t)number;
}

// A number, or a percentage as its hundredth.
static void read_number(struct reader *reader, const json_t *object, const char *key, double *ret)
{
	const json_t *value = json_object_get(object, key);
	char buffer[40], *end;
	const char *text = scalar(value, buffer, sizeof(buffer));

	if (value == NULL)
		return;
	double number = text ? strtod(text, &end) : NAN;

	if (text != NULL && end != text && *end == '%') {
		number /= 100;
		end++;
	}
	if (text == NULL || end == text || *end != '\0' || !isfinite(number))
		fault(reader, key, "must be a number");
	else
		*ret = number;
}

static void read_flag(struct reader *reader, const json_t *object, const char *key, bool *ret)
{
	const json_t *value = json_object_get(object, key);
	char buffer[40];
	const char *text = scalar(value, buffer, sizeof(buffer));

	if (value == NULL)
		return;
	if (text != NULL && strcmp(text, "true") == 0)
		*ret = true;
	else if (text != NULL && strcmp(text, "false") == 0)
		*ret = false;
	else
		fault(reader, key, "must be true or false");
}

// Picks one of count words. Returns its position, or fallback.
static unsigned read_choice(struct reader *reader, const json_t *object, const char *key,
	const char *const *words, unsigned fallback)
{
	const json_t *value = json_object_get(object, key);

	if (value == NULL)
		return fallback;
	for (unsigned i = 0; words[i] != NULL; i++) {
		if (json_is_string(value) && strcmp(json_string_value(value), words[i]) == 0)
			return i;
	}
	fault(reader, key, "must be one of %s, %s%s%s", words[0], words[1], words[2] ? ", " : "",
		words[2] ? words[2] : "");
	return fallback;
}

static void check_keys(struct reader *reader, const json_t *object, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		unsigned i = 0;

		while (known[i] != NULL && strcmp(known[i], key) != 0)
			i++;
		if (known[i] == NULL)
			fault(reader, key, "is not known here");
	}
}

// --- the parts of a specification ----------------------------------------------------------------

bool cutover_hex_parse(const char *text, uint8_t *ret, size_t bytes)
{
	if (text == NULL || strlen(text) != 2 * bytes ||
		strspn(text, "0123456789abcdefABCDEF") != 2 * bytes)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

		ret[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return true;
}

static void read_hex(
	struct reader *reader, const json_t *object, const char *key, uint8_t *ret, size_t bytes)
{
	const json_t *value = json_object_get(object, key);

	if (value != NULL && !cutover_hex_parse(json_string_value(value), ret, bytes))
		fault(reader, key, "must be %zu hexadecimal digits", 2 * bytes);
}

// What an operator says: digits, `fleet`, or nothing; a program writes the mark.
static void read_seed(struct reader *reader, const json_t *ring, struct cutover_ring *ret)
{
	const json_t *value = json_object_get(ring, "hash_seed");
	const char *text = json_string_value(value);
	uint64_t mark_be = 0;

	ret->keeps_seed = value == NULL && json_object_get(ring, "seed_mark") == NULL;
	read_hex(reader, ring, "seed_mark", (uint8_t *)&mark_be, sizeof(mark_be));
	ret->seed_mark = be64toh(mark_be);
	if (value == NULL || (text != NULL && strcmp(text, "fleet") == 0))
		return;
	if (cutover_hex_parse(text, ret->hash_seed, sizeof(ret->hash_seed)))
		ret->seed_mark = hash_seed_mark(ret->hash_seed);
	if (ret->seed_mark == 0)
		fault(reader, "hash_seed",
			"must be 32 hexadecimal digits that are not all 0, or `fleet`");
}

static void read_ring(
	struct reader *reader, const json_t *object, const char *key, struct cutover_ring *ret)
{
	static const char *const known[] = {
		"version", "points", "balance", "digest", "hash_seed", "seed_mark", NULL};
	static const char *const versions[] = {"v1", "v2", "v3", NULL};
	const json_t *ring = json_object_get(object, key);

	if (ring == NULL)
		return;
	snprintf(reader->where, sizeof(reader->where), "%s", key);
	if (json_is_object(ring)) {
		check_keys(reader, ring, known);
		if (json_object_get(ring, "version") != NULL)
			ret->version = (enum ring_version)(
				RING_V1 + read_choice(reader, ring, "version", versions, 0));
		read_count(reader, ring, "points", &ret->points);
		read_number(reader, ring, "balance", &ret->balance);
		read_hex(reader, ring, "digest", ret->digest, sizeof(ret->digest));
		read_seed(reader, ring, ret);
	} else {
		fault(reader, "", "must be a map such as {version: v2, points: 16}");
	}
	reader->where[0] = '\0';
}

static void read_datacenter(
	struct reader *reader, const json_t *value, struct cutover_spec *spec, uint32_t stage)
{
	const char *name = json_string_value(value);
	int index = name ? cutover_datacenter_find(spec, name) : -EINVAL;

	if (index == -ENOENT)
		index = cutover_datacenter_add(spec, name);
	if (index < 0)
		fault(reader, "datacenters", "must be names of datacenters, %u at most",
			CUTOVER_DATACENTERS_MAX);
	else
		datacenter_set_add(&spec->stages[stage].datacenters, (uint32_t)index);
}

static void read_datacenters(
	struct reader *reader, const json_t *object, struct cutover_spec *spec, uint32_t stage)
{
	const json_t *value = json_object_get(object, "datacenters");
	json_t *item;
	size_t i;

	if (json_is_string(value) && strcmp(json_string_value(value), "all") == 0) {
		spec->stages[stage].every = true;
		return;
	}
	if (!json_is_array(value)) {
		fault(reader, "datacenters", "must be a list of names, or `all`");
		return;
	}
	json_array_foreach (value, i, item)
		read_datacenter(reader, item, spec, stage);
}

static void read_steps(struct reader *reader, const json_t *object, struct cutover_stage *stage)
{
	static const char *const known[] = {"to", "rate", NULL};
	const json_t *steps = json_object_get(object, "steps");
	const json_t *ramp = json_object_get(object, "ramp");
	json_t *item;
	size_t i;

	if ((steps == NULL) == (ramp == NULL)) {
		fault(reader, "", "needs either `steps` or `ramp`");
		return;
	}
	if (ramp != NULL) {
		check_keys(reader, ramp, known);
		stage->ramp_to = GATE_SHARE_ALL;
		if (json_object_get(ramp, "to") != NULL)
			read_share_value(
				reader, json_object_get(ramp, "to"), "ramp", &stage->ramp_to);
		read_share_value(reader, json_object_get(ramp, "rate"), "ramp", &stage->ramp_step);
		return;
	}
	if (!json_is_array(steps) || json_array_size(steps) == 0 ||
		json_array_size(steps) > CUTOVER_STEPS_MAX) {
		fault(reader, "steps", "must be a list of 1 to %u shares", CUTOVER_STEPS_MAX);
		return;
	}
	json_array_foreach (steps, i, item)
		read_share_value(reader, item, "steps", &stage->steps[stage->step_count++]);
}

static void read_stage(
	struct reader *reader, const json_t *object, struct cutover_spec *spec, uint32_t index)
{
	static const char *const known[] = {"datacenters", "steps", "ramp", "min_soak",
		"max_duration", "on_expiry", "require", "missing_nodes_max", "max_step_surge",
		"step_share_max", NULL};
	static const char *const expiries[] = {"pause", "rollback", NULL};
	static const char *const requires[] = {"auto", "manual", "hook", NULL};
	struct cutover_stage *stage = &spec->stages[index];

	snprintf(reader->where, sizeof(reader->where), "stages[%u]", index);
	if (!json_is_object(object)) {
		fault(reader, "", "must be a map");
		return;
	}
	check_keys(reader, object, known);
	stage->min_soak_ms = spec->refill_ms;
	read_datacenters(reader, object, spec, index);
	read_steps(reader, object, stage);
	read_time(reader, object, "min_soak", &stage->min_soak_ms);
	read_time(reader, object, "max_duration", &stage->max_duration_ms);
	stage->on_expiry =
		(enum cutover_expiry)read_choice(reader, object, "on_expiry", expiries, 0);
	stage->require = (enum cutover_require)read_choice(reader, object, "require", requires, 0);
	read_count(reader, object, "missing_nodes_max", &stage->missing_nodes_max);
	read_number(reader, object, "max_step_surge", &stage->max_step_surge);
	read_count(reader, object, "step_share_max", &stage->step_share_max);
}

static void read_stages(struct reader *reader, const json_t *object, struct cutover_spec *spec)
{
	const json_t *stages = json_object_get(object, "stages");
	json_t *item;
	size_t i;

	if (!json_is_array(stages) || json_array_size(stages) == 0 ||
		json_array_size(stages) > CUTOVER_STAGES_MAX) {
		fault(reader, "stages", "must be a list of 1 to %u stages", CUTOVER_STAGES_MAX);
		return;
	}
	json_array_foreach (stages, i, item) {
		spec->stage_count++;
		read_stage(reader, item, spec, (uint32_t)i);
	}
	reader->where[0] = '\0';
	for (uint32_t s = 0; s < spec->stage_count; s++) {
		for (uint32_t d = 0; spec->stages[s].every && d < spec->datacenter_count; d++)
			datacenter_set_add(&spec->stages[s].datacenters, d);
	}
}

// The guard that an entry changes: the default one of its kind, or a new one.
static struct guard_config *guard_of(
	struct reader *reader, struct cutover_spec *spec, enum guard_kind kind)
{
	for (uint32_t i = 0; kind != GUARD_PROMQL && i < spec->guard_count; i++) {
		if (spec->guards[i].kind == kind)
			return &spec->guards[i];
	}
	if (spec->guard_count == CUTOVER_GUARDS_MAX) {
		fault(reader, "", "one guard too many; %u is the most", CUTOVER_GUARDS_MAX);
		return NULL;
	}
	struct guard_config *guard = &spec->guards[spec->guard_count++];

	guard_default(kind, guard);
	return guard;
}

static void read_guard(
	struct reader *reader, const json_t *object, struct cutover_spec *spec, size_t index)
{
	static const char *const known[] = {"name", "kind", "query", "direction", "pause",
		"rollback", "difference", "failures", "errors", "window", "dry_run", NULL};
	static const char *const directions[] = {"above", "below", "not_recovering", NULL};
	const json_t *kind_value = json_object_get(object, "kind");
	enum guard_kind kind = GUARD_PROMQL;

	snprintf(reader->where, sizeof(reader->where), "guards[%zu]", index);
	check_keys(reader, object, known);
	if (kind_value != NULL &&
		(!json_is_string(kind_value) ||
			!guard_kind_find(json_string_value(kind_value), &kind))) {
		fault(reader, "kind", "is no kind of guard");
		return;
	}
	struct guard_config *guard = guard_of(reader, spec, kind);

	if (guard == NULL)
		return;
	read_text(reader, object, "name", guard->name, sizeof(guard->name));
	read_text(reader, object, "query", guard->query, sizeof(guard->query));
	guard->direction = (enum guard_direction)read_choice(
		reader, object, "direction", directions, guard->direction);
	read_number(reader, object, "pause", &guard->pause_at);
	read_number(reader, object, "rollback", &guard->rollback_at);
	read_number(reader, object, "difference", &guard->difference_min);
	read_count(reader, object, "failures", &guard->failures);
	read_count(reader, object, "errors", &guard->errors);
	read_time(reader, object, "window", &guard->window_ms);
	read_flag(reader, object, "dry_run", &guard->dry_run);
}

static void read_guards(struct reader *reader, const json_t *object, struct cutover_spec *spec)
{
	const json_t *guards = json_object_get(object, "guards");
	bool defaults = true;
	json_t *item;
	size_t i;

	read_flag(reader, object, "default_guards", &defaults);
	if (defaults)
		spec->guard_count = guard_defaults(spec->guards);
	if (guards == NULL)
		return;
	if (!json_is_array(guards)) {
		fault(reader, "guards", "must be a list");
		return;
	}
	json_array_foreach (guards, i, item)
		read_guard(reader, item, spec, i);
	reader->where[0] = '\0';
}

// A number, or the query that a plan measures it by; the plan then writes the value beside it.
static void read_hit_ratio(struct reader *reader, const json_t *object, struct cutover_spec *ret)
{
	static const char *const known[] = {"query", "value", NULL};
	const json_t *value = json_object_get(object, "hit_ratio");

	if (!json_is_object(value)) {
		read_number(reader, object, "hit_ratio", &ret->hit_ratio);
		return;
	}
	if (json_object_get(object, "prometheus") == NULL)
		fault(reader, "hit_ratio", "has a query, but `prometheus` names no server");
	snprintf(reader->where, sizeof(reader->where), "hit_ratio");
	check_keys(reader, value, known);
	if (json_object_get(value, "query") == NULL)
		fault(reader, "", "must be a number, or a map such as {query: 'PROMQL'}");
	read_text(reader, value, "query", ret->hit_query, sizeof(ret->hit_query));
	read_number(reader, value, "value", &ret->hit_ratio);
	reader->where[0] = '\0';
}

size_t cutover_spec_read(const json_t *object, struct cutover_spec *ret,
	struct cutover_spec_error *ret_errors, size_t max)
{
	static const char *const known[] = {"pool", "from", "to", "salt", "stages", "guards",
		"default_guards", "guard_passes", "shadow", "full_soak", "retire_hold",
		"apply_timeout", "refill", "hit_ratio", "churn_surge", "datacenters", "prometheus",
		"hook", NULL};
	struct reader reader = {.errors = ret_errors, .max = max};
	json_t *item;
	size_t i;

	cutover_spec_init(ret);
	if (!json_is_object(object)) {
		fault(&reader, "", "must be a map");
		return reader.count;
	}
	check_keys(&reader, object, known);
	read_text(&reader, object, "pool", ret->pool, sizeof(ret->pool));
	read_ring(&reader, object, "from", &ret->from);
	read_ring(&reader, object, "to", &ret->to);
	read_count(&reader, object, "salt", &ret->salt);
	read_count(&reader, object, "guard_passes", &ret->guard_passes);
	read_time(&reader, object, "shadow", &ret->shadow_ms);
	read_time(&reader, object, "full_soak", &ret->full_soak_ms);
	read_time(&reader, object, "retire_hold", &ret->retire_hold_ms);
	read_time(&reader, object, "apply_timeout", &ret->apply_ms);
	read_time(&reader, object, "refill", &ret->refill_ms);
	read_hit_ratio(&reader, object, ret);
	read_number(&reader, object, "churn_surge", &ret->churn_surge);
	read_text(&reader, object, "prometheus", ret->prometheus, sizeof(ret->prometheus));
	read_text(&reader, object, "hook", ret->hook, sizeof(ret->hook));
	// Written by a program: fixes the order, so that positions stay what they were.
	json_array_foreach (json_object_get(object, "datacenters"), i, item) {
		if (!json_is_string(item) ||
			cutover_datacenter_add(ret, json_string_value(item)) < 0)
			fault(&reader, "datacenters", "must be a list of different names");
	}
	read_stages(&reader, object, ret);
	read_guards(&reader, object, ret);
	return reader.count;
}

int cutover_time_parse(const char *text, uint64_t *ret_ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {
		{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);

	if (errno != 0)
		return -EINVAL;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) == 0) {
			if (number > TIME_MS_MAX / units[i].ms)
				return -EINVAL;
			*ret_ms = number * units[i].ms;
			return 0;
		}
	}
	return -EINVAL;
}
