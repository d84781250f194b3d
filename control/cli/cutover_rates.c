// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cutover_rates.h"

#include <stdbool.h>
#include <string.h>

// Statements closer than this to each other would make rates of chance.
#define APART_MS 500

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

// Tells whether the sums of two moments are of the same nodes and starts.
static bool comparable(const json_t *before, const json_t *now)
{
	return json_is_object(before) && json_is_object(now) &&
		json_equal(json_object_get(before, "counters_of"),
			json_object_get(now, "counters_of"));
}

static double grown(const json_t *before, const json_t *now, const char *ring, const char *key)
{
	return number(json_object_get(now, ring), key) - number(json_object_get(before, ring), key);
}

static json_t *side_rates(const json_t *before, const json_t *now, const char *ring, double seconds)
{
	return json_pack("{s:f, s:f, s:f}", "flows", grown(before, now, ring, "flows") / seconds,
		"packets", grown(before, now, ring, "packets") / seconds, "drops",
		grown(before, now, ring, "drops") / seconds);
}

static json_t *rates_of(const json_t *before, const json_t *now)
{
	double seconds = (number(now, "time_ms") - number(before, "time_ms")) / 1000;

	return json_pack("{s:f, s:o, s:o}", "seconds", seconds, "old",
		side_rates(before, now, "old", seconds), "new",
		side_rates(before, now, "new", seconds));
}

static void set_ratio(json_t *object, const char *key, double part, double whole)
{
	if (whole > 0)
		json_object_set_new(object, key, json_real(part / whole));
}

static json_t *ratios_of(const json_t *base, const json_t *now)
{
	double old = grown(base, now, "old", "flows"), new = grown(base, now, "new", "flows");
	double same = number(now, "shadow_same") - number(base, "shadow_same");
	double different = number(now, "shadow_different") - number(base, "shadow_different");
	json_t *ret = json_pack("{s:I, s:I}", "flows", (json_int_t)(old + new), "shadow_flows",
		(json_int_t)(same + different));

	set_ratio(ret, "new_share", new, old + new);
	set_ratio(ret, "old_aborts_ratio", grown(base, now, "old", "aborts"), old);
	set_ratio(ret, "new_aborts_ratio", grown(base, now, "new", "aborts"), new);
	set_ratio(ret, "shadow_different_share", different, same + different);
	return ret;
}

// What is remembered of a datacenter: "base" of the ratios, "before" and "last" of the rates.
static json_t *entry_of(json_t *memory, const char *name)
{
	json_t *entry = json_object_get(memory, name);

	if (entry == NULL) {
		entry = json_object();
		json_object_set_new(memory, name, entry);
	}
	return entry;
}

// A statement that is newer moves "last" to "before".
static void remember(json_t *entry, json_t *now)
{
	json_t *last = json_object_get(entry, "last"), *base = json_object_get(entry, "base");

	if (!comparable(last, now)) {
		json_object_clear(entry);
		json_object_set(entry, "last", now);
		json_object_set(entry, "base", now);
		return;
	}
	if (!json_equal(
		    json_object_get(base, "intended_ppm"), json_object_get(now, "intended_ppm")))
		json_object_set(entry, "base", now);
	if (number(now, "time_ms") < number(last, "time_ms") + APART_MS)
		return;
	json_object_set(entry, "before", last);
	json_object_set(entry, "last", now);
}

void cutover_rates_add(json_t *memory, json_t *cutover)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(cutover, "datacenters_now"), i, row) {
		json_t *now = json_object_get(row, "live"), *before, *entry;
		const char *name = json_string_value(json_object_get(row, "name"));

		json_object_set_new(row, "rates", json_null());
		json_object_set_new(row, "ratios", json_null());
		if (name == NULL || !json_is_object(now))
			continue;
		entry = entry_of(memory, name);
		remember(entry, now);
		before = json_object_get(entry, "before");
		if (before != NULL)
			json_object_set_new(
				row, "rates", rates_of(before, json_object_get(entry, "last")));
		if (json_object_get(entry, "base") != now)
			json_object_set_new(
				row, "ratios", ratios_of(json_object_get(entry, "base"), now));
	}
}
