// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/status.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const dataplane_names[] = {"absent", "behind", "current"};

const char *fleet_dataplane_name(enum fleet_dataplane state)
{
	return dataplane_names[state];
}

const struct fleet_pool *fleet_pool_find(const struct fleet_status *status, const char *pool)
{
	for (uint32_t i = 0; i < status->pool_count; i++) {
		if (strcmp(status->pools[i].pool, pool) == 0)
			return &status->pools[i];
	}
	return NULL;
}

double fleet_rate_find(const struct fleet_status *status, const char *pool)
{
	for (uint32_t i = 0; i < status->rate_count; i++) {
		if (strcmp(status->rates[i].pool, pool) == 0)
			return status->rates[i].flows_per_second;
	}
	return 0;
}

void fleet_digest_add(uint8_t digest[RING_DIGEST_BYTES], const struct ring_header *ring)
{
	// A sum of bytes of good hashes: commutative, and equal sums of different rings are as rare as equal hashes.
	for (unsigned i = 0; i < RING_DIGEST_BYTES; i++)
		digest[i] =
			(uint8_t)(digest[i] + ring->spec_digest[i] + 3 * ring->points_digest[i]);
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *digest_text(bool known, const uint8_t digest[RING_DIGEST_BYTES])
{
	char text[2 * RING_DIGEST_BYTES + 1];

	if (!known)
		return json_string("");
	for (unsigned i = 0; i < RING_DIGEST_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return json_string(text);
}

const char *fleet_daemon_phase_name(enum daemon_phase phase)
{
	static const char *const names[DAEMON_PHASES] = {"read", "build", "publish"};

	return names[phase];
}

json_t *fleet_startup_write(const uint64_t phases_ns[static STARTUP_PHASES])
{
	json_t *object = json_object();

	for (int i = 0; i < STARTUP_PHASES; i++)
		json_object_set_new(object, stats_startup_name(i), number(phases_ns[i]));
	return object;
}

json_t *fleet_daemon_startup_write(const uint64_t phases_ns[static DAEMON_PHASES])
{
	json_t *object = json_object();

	for (int i = 0; i < DAEMON_PHASES; i++)
		json_object_set_new(object, fleet_daemon_phase_name(i), number(phases_ns[i]));
	return object;
}

static json_t *pool_write(const struct fleet_pool *pool)
{
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:b, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, "
		"s:f, s:f, s:o}",
		"pool", pool->pool, "revision", number(pool->revision), "share",
		number(pool->share), "local", pool->local, "old_digest",
		digest_text(pool->has_old, pool->old_digest), "new_digest",
		digest_text(pool->has_new, pool->new_digest), "error", pool->error, "flows_old",
		number(pool->flows_old), "flows_new", number(pool->flows_new), "aborts_old",
		number(pool->aborts_old), "aborts_new", number(pool->aborts_new), "drops_old",
		number(pool->drops_old), "drops_new", number(pool->drops_new), "load_backend",
		pool->load_backend, "load", pool->load, "load_expected", pool->load_expected,
		"load_flows", number(pool->load_flows));
	json_t *more = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "packets_old",
		number(pool->packets_old), "packets_new", number(pool->packets_new), "shadow_same",
		number(pool->shadow_same), "shadow_different", number(pool->shadow_different),
		"ring_bytes_old", number(pool->ring_bytes_old), "ring_bytes_new",
		number(pool->ring_bytes_new), "live_new", number(pool->live_new), "recalled",
		number(pool->recalled), "moves_established", pool->moves_established);

	json_object_update_missing_new(object, more);
	return object;
}

static json_t *rates_write(const struct fleet_status *status)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < status->rate_count; i++)
		json_object_set_new(object, status->rates[i].pool,
			json_real(round(status->rates[i].flows_per_second * 100) / 100));
	return object;
}

static void rates_read(const json_t *object, struct fleet_status *ret)
{
	const char *pool;
	json_t *rate;

	json_object_foreach ((json_t *)object, pool, rate) {
		struct fleet_rate *to = &ret->rates[ret->rate_count];

		if (ret->rate_count == FLEET_POOLS_MAX || strlen(pool) >= sizeof(to->pool))
			continue;
		memcpy(to->pool, pool, strlen(pool) + 1);
		to->flows_per_second = json_number_value(rate);
		ret->rate_count++;
	}
}

json_t *fleet_status_write(const struct fleet_status *status)
{
	json_t *pools = json_array();

	for (uint32_t i = 0; i < status->pool_count; i++)
		json_array_append_new(pools, pool_write(&status->pools[i]));
	return json_pack("{s:i, s:s, s:s, s:o, s:o, s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"schema_version", 1, "node", status->node, "datacenter", status->datacenter,
		"time_ms", number(status->time_ms), "generation", number(status->generation),
		"dataplane", dataplane_names[status->dataplane], "text", status->text,
		"kill_switch", status->kill_switch, "draining", status->draining, "started_ns",
		number(status->started_ns), "startup_ns", number(status->startup_ns),
		"hugepage_bytes", number(status->hugepage_bytes), "snapshot_bytes",
		number(status->snapshot_bytes), "rx_packets", number(status->rx_packets),
		"busy_cycles", number(status->busy_cycles), "startup_phases_ns",
		fleet_startup_write(status->startup_phases_ns), "daemon_startup_ns",
		fleet_daemon_startup_write(status->daemon_startup_ns), "dataplane_resident_bytes",
		number(status->dataplane_resident_bytes), "daemon_resident_bytes",
		number(status->daemon_resident_bytes), "flows_per_second", rates_write(status),
		"pools", pools);
}

// --- reading -----------------------------------------------------------------------------------------

static bool get_text(const json_t *object, const char *key, char *ret, size_t bytes)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text == NULL || strlen(text) >= bytes)
		return false;
	memcpy(ret, text, strlen(text) + 1);
	return true;
}

// Absent numbers are 0: older nodes say less.
static uint64_t get_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static bool get_digest(const json_t *object, const char *key, uint8_t *ret)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text == NULL || strlen(text) != 2 * RING_DIGEST_BYTES)
		return false;
	for (unsigned i = 0; i < RING_DIGEST_BYTES; i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		ret[i] = (uint8_t)byte;
	}
	return true;
}

static bool pool_read(const json_t *object, struct fleet_pool *ret)
{
	*ret = (struct fleet_pool){
		.revision = get_number(object, "revision"),
		.share = (uint32_t)get_number(object, "share"),
		.local = json_is_true(json_object_get(object, "local")),
		.moves_established = json_is_true(json_object_get(object, "moves_established")),
		.recalled = get_number(object, "recalled"),
		.live_new = get_number(object, "live_new"),
		.flows_old = get_number(object, "flows_old"),
		.flows_new = get_number(object, "flows_new"),
		.aborts_old = get_number(object, "aborts_old"),
		.aborts_new = get_number(object, "aborts_new"),
		.drops_old = get_number(object, "drops_old"),
		.drops_new = get_number(object, "drops_new"),
		.packets_old = get_number(object, "packets_old"),
		.packets_new = get_number(object, "packets_new"),
		.shadow_same = get_number(object, "shadow_same"),
		.shadow_different = get_number(object, "shadow_different"),
		.ring_bytes_old = get_number(object, "ring_bytes_old"),
		.ring_bytes_new = get_number(object, "ring_bytes_new"),
		.load = json_number_value(json_object_get(object, "load")),
		.load_expected = json_number_value(json_object_get(object, "load_expected")),
		.load_flows = get_number(object, "load_flows"),
	};
	ret->has_old = get_digest(object, "old_digest", ret->old_digest);
	ret->has_new = get_digest(object, "new_digest", ret->new_digest);
	get_text(object, "error", ret->error, sizeof(ret->error));
	get_text(object, "load_backend", ret->load_backend, sizeof(ret->load_backend));
	return get_text(object, "pool", ret->pool, sizeof(ret->pool)) &&
		ret->share <= GATE_SHARE_ALL;
}

static void startup_read(const json_t *object, struct fleet_status *ret)
{
	const json_t *dataplane = json_object_get(object, "startup_phases_ns");
	const json_t *daemon = json_object_get(object, "daemon_startup_ns");

	for (int i = 0; i < STARTUP_PHASES; i++)
		ret->startup_phases_ns[i] = get_number(dataplane, stats_startup_name(i));
	for (int i = 0; i < DAEMON_PHASES; i++)
		ret->daemon_startup_ns[i] = get_number(daemon, fleet_daemon_phase_name(i));
}

int fleet_status_read(const json_t *object, struct fleet_status *ret)
{
	const char *dataplane = json_string_value(json_object_get(object, "dataplane"));
	json_t *item;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	if (!get_text(object, "node", ret->node, sizeof(ret->node)) ||
		!get_text(object, "datacenter", ret->datacenter, sizeof(ret->datacenter)))
		return -EINVAL;
	for (unsigned state = 0; dataplane != NULL && state < 3; state++) {
		if (strcmp(dataplane, dataplane_names[state]) == 0)
			ret->dataplane = (enum fleet_dataplane)state;
	}
	get_text(object, "text", ret->text, sizeof(ret->text));
	ret->time_ms = get_number(object, "time_ms");
	ret->generation = get_number(object, "generation");
	ret->kill_switch = json_is_true(json_object_get(object, "kill_switch"));
	ret->draining = json_is_true(json_object_get(object, "draining"));
	ret->started_ns = get_number(object, "started_ns");
	ret->startup_ns = get_number(object, "startup_ns");
	startup_read(object, ret);
	ret->dataplane_resident_bytes = get_number(object, "dataplane_resident_bytes");
	ret->daemon_resident_bytes = get_number(object, "daemon_resident_bytes");
	ret->hugepage_bytes = get_number(object, "hugepage_bytes");
	ret->snapshot_bytes = get_number(object, "snapshot_bytes");
	ret->rx_packets = get_number(object, "rx_packets");
	ret->busy_cycles = get_number(object, "busy_cycles");
	rates_read(json_object_get(object, "flows_per_second"), ret);
	json_array_foreach (json_object_get(object, "pools"), i, item) {
		if (ret->pool_count == FLEET_POOLS_MAX ||
			!pool_read(item, &ret->pools[ret->pool_count++]))
			return -EINVAL;
	}
	return 0;
}
