// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/json.h"

#include "control/cutover/moves.h"
#include "control/cutover/spec_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_TEXT_BYTES 17

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *write_datacenters(const struct cutover *cutover)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		const struct cutover_datacenter *datacenter = &cutover->datacenters[i];

		json_array_append_new(list,
			json_pack("{s:s, s:b, s:o, s:o, s:b}", "name", cutover->spec.datacenters[i],
				"admitted", datacenter->admitted, "share",
				number(datacenter->share), "cap", number(datacenter->cap),
				"move_established", datacenter->move_established));
	}
	return list;
}

static json_t *write_overrides(const struct cutover *cutover)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < CUTOVER_OVERRIDES_MAX; i++) {
		const struct cutover_override *override = &cutover->overrides[i];

		if (override->used)
			json_array_append_new(list,
				json_pack("{s:s, s:o, s:o, s:s}", "datacenter",
					cutover->spec.datacenters[override->datacenter], "share",
					number(override->share), "expires_ms",
					number(override->expires_ms), "reason", override->reason));
	}
	return list;
}

json_t *cutover_write(const struct cutover *cutover)
{
	char plan[PLAN_TEXT_BYTES];

	snprintf(plan, sizeof(plan), "%016llx", (unsigned long long)cutover->plan_id);
	json_t *object = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:s, s:s}",
		"schema_version", CUTOVER_SCHEMA_VERSION, "pool", cutover->spec.pool, "plan", plan,
		"base_generation", number(cutover->base_generation), "revision",
		number(cutover->revision), "shares_revision", number(cutover->shares_revision),
		"state", cutover_state_name(cutover->state), "resume_to",
		cutover_state_name(cutover->resume_to), "pause", cutover_pause_name(cutover->pause),
		"reason", cutover->reason, "actor", cutover->actor);
	json_t *more = json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "stage",
		number(cutover->stage), "share", number(cutover->share), "manual", cutover->manual,
		"passes", number(cutover->passes), "state_ms", number(cutover->state_ms),
		"stage_ms", number(cutover->stage_ms), "soak_ms", number(cutover->soak_ms),
		"datacenters", write_datacenters(cutover), "overrides", write_overrides(cutover),
		"spec", cutover_spec_write(&cutover->spec));

	if (object == NULL || more == NULL || json_object_update_missing_new(object, more) != 0) {
		json_decref(object);
		return NULL;
	}
	if (cutover->lock.owner[0] != '\0')
		json_object_set_new(object, "lock",
			json_pack("{s:s, s:o, s:s}", "owner", cutover->lock.owner, "expires_ms",
				number(cutover->lock.expires_ms), "reason", cutover->lock.reason));
	return object;
}

// --- reading; the first fault is kept ------------------------------------------------------------

struct reader {
	const json_t *object;
	char *error;
	bool failed;
};

static void fail(struct reader *reader, const char *key)
{
	if (!reader->failed)
		move_say(reader->error, "\"%s\" is missing or is not what it should be", key);
	reader->failed = true;
}

static uint64_t get_number(struct reader *reader, const char *key, uint64_t most)
{
	const json_t *value = json_object_get(reader->object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		(uint64_t)json_integer_value(value) > most) {
		fail(reader, key);
		return 0;
	}
	return (uint64_t)json_integer_value(value);
}

static void get_text(struct reader *reader, const char *key, char *ret, size_t bytes)
{
	const char *text = json_string_value(json_object_get(reader->object, key));

	if (text == NULL || strlen(text) >= bytes)
		fail(reader, key);
	else
		memcpy(ret, text, strlen(text) + 1);
}

static bool get_flag(struct reader *reader, const char *key)
{
	const json_t *value = json_object_get(reader->object, key);

	if (!json_is_boolean(value))
		fail(reader, key);
	return json_is_true(value);
}

static enum cutover_state get_state(struct reader *reader, const char *key)
{
	const char *name = json_string_value(json_object_get(reader->object, key));
	enum cutover_state state = CUTOVER_PLANNED;

	if (name == NULL || !cutover_state_find(name, &state))
		fail(reader, key);
	return state;
}

static int get_datacenter(struct reader *reader, const struct cutover *cutover, const char *key)
{
	const char *name = json_string_value(json_object_get(reader->object, key));
	int index = name ? cutover_datacenter_find(&cutover->spec, name) : -ENOENT;

	if (index < 0)
		fail(reader, key);
	return index;
}

static void read_datacenters(struct reader *reader, struct cutover *cutover)
{
	const json_t *list = json_object_get(reader->object, "datacenters");
	json_t *item;
	size_t i;

	for (uint32_t d = 0; d < CUTOVER_DATACENTERS_MAX; d++)
		cutover->datacenters[d].cap = GATE_SHARE_ALL;
	if (json_array_size(list) != cutover->spec.datacenter_count)
		fail(reader, "datacenters");
	json_array_foreach (list, i, item) {
		struct reader entry = {.object = item, .error = reader->error};
		int index = get_datacenter(&entry, cutover, "name");
		struct cutover_datacenter datacenter = {
			.admitted = get_flag(&entry, "admitted"),
			.share = (uint32_t)get_number(&entry, "share", GATE_SHARE_ALL),
			.cap = (uint32_t)get_number(&entry, "cap", GATE_SHARE_ALL),
			// Older documents do not say.
			.move_established = json_is_true(json_object_get(item, "move_established")),
		};

		reader->failed |= entry.failed;
		if (!entry.failed)
			cutover->datacenters[index] = datacenter;
	}
}

static void read_overrides(struct reader *reader, struct cutover *cutover)
{
	const json_t *list = json_object_get(reader->object, "overrides");
	json_t *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > CUTOVER_OVERRIDES_MAX) {
		fail(reader, "overrides");
		return;
	}
	json_array_foreach (list, i, item) {
		struct reader entry = {.object = item, .error = reader->error};
		struct cutover_override *override = &cutover->overrides[i];

		override->used = true;
		override->datacenter = (uint32_t)get_datacenter(&entry, cutover, "datacenter");
		override->share = (uint32_t)get_number(&entry, "share", GATE_SHARE_ALL);
		override->expires_ms = get_number(&entry, "expires_ms", INT64_MAX);
		get_text(&entry, "reason", override->reason, sizeof(override->reason));
		reader->failed |= entry.failed;
	}
}

static void read_lock(struct reader *reader, struct cutover *cutover)
{
	struct reader entry = {
		.object = json_object_get(reader->object, "lock"), .error = reader->error};

	if (entry.object == NULL)
		return;
	get_text(&entry, "owner", cutover->lock.owner, sizeof(cutover->lock.owner));
	cutover->lock.expires_ms = get_number(&entry, "expires_ms", INT64_MAX);
	get_text(&entry, "reason", cutover->lock.reason, sizeof(cutover->lock.reason));
	reader->failed |= entry.failed;
}

static void read_spec(struct reader *reader, struct cutover *cutover)
{
	struct cutover_spec_error error;
	const json_t *spec = json_object_get(reader->object, "spec");

	if (cutover_spec_read(spec, &cutover->spec, &error, 1) != 0 ||
		cutover_spec_check(&cutover->spec, &error, 1) != 0) {
		if (!reader->failed)
			move_say(reader->error, "spec.%s: %.100s", error.where, error.text);
		reader->failed = true;
	}
}

static void read_plan(struct reader *reader, struct cutover *cutover)
{
	char text[PLAN_TEXT_BYTES] = "", *end;

	get_text(reader, "plan", text, sizeof(text));
	cutover->plan_id = strtoull(text, &end, 16);
	if (*end != '\0' || cutover->plan_id == 0)
		fail(reader, "plan");
}

static void read_progress(struct reader *reader, struct cutover *cutover)
{
	const char *pause = json_string_value(json_object_get(reader->object, "pause"));

	cutover->base_generation = get_number(reader, "base_generation", INT64_MAX);
	cutover->revision = get_number(reader, "revision", INT64_MAX);
	cutover->shares_revision = get_number(reader, "shares_revision", INT64_MAX);
	cutover->state = get_state(reader, "state");
	cutover->resume_to = get_state(reader, "resume_to");
	if (pause == NULL || !cutover_pause_find(pause, &cutover->pause))
		fail(reader, "pause");
	get_text(reader, "reason", cutover->reason, sizeof(cutover->reason));
	get_text(reader, "actor", cutover->actor, sizeof(cutover->actor));
	cutover->stage = (uint32_t)get_number(reader, "stage", CUTOVER_STAGES_MAX - 1);
	if (cutover->stage >= cutover->spec.stage_count)
		fail(reader, "stage");
	cutover->share = (uint32_t)get_number(reader, "share", GATE_SHARE_ALL);
	cutover->manual = get_flag(reader, "manual");
	cutover->passes = (uint32_t)get_number(reader, "passes", UINT32_MAX);
	cutover->state_ms = get_number(reader, "state_ms", INT64_MAX);
	cutover->stage_ms = get_number(reader, "stage_ms", INT64_MAX);
	cutover->soak_ms = get_number(reader, "soak_ms", INT64_MAX);
}

int cutover_read(const json_t *object, struct cutover *ret, char *ret_error)
{
	struct reader reader = {.object = object, .error = ret_error};

	memset(ret, 0, sizeof(*ret));
	if (!json_is_object(object)) {
		move_say(ret_error, "is no map");
		return -EINVAL;
	}
	uint64_t schema = get_number(&reader, "schema_version", UINT32_MAX);

	if (!reader.failed && schema > CUTOVER_SCHEMA_VERSION) {
		move_say(ret_error, "schema %llu is newer than this program",
			(unsigned long long)schema);
		return -ENOTSUP;
	}
	read_spec(&reader, ret);
	if (reader.failed)
		return -EINVAL;
	read_plan(&reader, ret);
	read_progress(&reader, ret);
	read_datacenters(&reader, ret);
	read_overrides(&reader, ret);
	read_lock(&reader, ret);
	return reader.failed ? -EINVAL : 0;
}
