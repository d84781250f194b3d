// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/live.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t sum_of(const uint64_t *phases, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += phases[i];
	return sum;
}

// Keeps the phases of the slower of two starts: phases of different starts do not add up.
static void keep_slower(uint64_t *kept, const uint64_t *phases, unsigned count)
{
	if (sum_of(phases, count) > sum_of(kept, count))
		memcpy(kept, phases, count * sizeof(*kept));
}

void fleet_live_add(
	struct fleet_live *live, const struct fleet_status *status, const struct fleet_pool *pool)
{
	struct fleet_live_ring *old = &live->rings[0], *new = &live->rings[1];

	live->nodes++;
	// A sum, so that the order of nodes does not matter.
	live->counters_of +=
		XXH3_64bits_withSeed(status->node, strlen(status->node), status->started_ns);
	live->time_ms += status->time_ms;
	live->intended_ppm += pool->share;
	old->flows += pool->flows_old;
	new->flows += pool->flows_new;
	old->aborts += pool->aborts_old;
	new->aborts += pool->aborts_new;
	old->drops += pool->drops_old;
	new->drops += pool->drops_new;
	old->packets += pool->packets_old;
	new->packets += pool->packets_new;
	old->bytes += pool->ring_bytes_old;
	new->bytes += pool->ring_bytes_new;
	live->shadow_same += pool->shadow_same;
	live->shadow_different += pool->shadow_different;
	live->recalled += pool->recalled;
	live->live_new += pool->live_new;
	live->dataplane_resident_bytes += status->dataplane_resident_bytes;
	live->daemon_resident_bytes += status->daemon_resident_bytes;
	live->hugepage_bytes += status->hugepage_bytes;
	keep_slower(live->startup_ns, status->startup_phases_ns, STARTUP_PHASES);
	keep_slower(live->daemon_startup_ns, status->daemon_startup_ns, DAEMON_PHASES);
}

static json_t *ring_write(const struct fleet_live_ring *ring)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "flows", (json_int_t)ring->flows, "aborts",
		(json_int_t)ring->aborts, "drops", (json_int_t)ring->drops, "packets",
		(json_int_t)ring->packets, "ring_bytes", (json_int_t)ring->bytes);
}

json_t *fleet_live_write(const struct fleet_live *live)
{
	if (live->nodes == 0)
		return json_null();
	return json_pack(
		"{s:i, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
		"nodes", (int)live->nodes, "counters_of",
		json_sprintf("%016llx", (unsigned long long)live->counters_of), "time_ms",
		(json_int_t)(live->time_ms / live->nodes), "intended_ppm",
		(json_int_t)(live->intended_ppm / live->nodes), "old", ring_write(&live->rings[0]),
		"new", ring_write(&live->rings[1]), "shadow_same", (json_int_t)live->shadow_same,
		"shadow_different", (json_int_t)live->shadow_different, "recalled",
		(json_int_t)live->recalled, "live_new", (json_int_t)live->live_new,
		"dataplane_resident_bytes", (json_int_t)live->dataplane_resident_bytes,
		"daemon_resident_bytes", (json_int_t)live->daemon_resident_bytes, "hugepage_bytes",
		(json_int_t)live->hugepage_bytes, "dataplane_startup_ns",
		fleet_startup_write(live->startup_ns), "daemon_startup_ns",
		fleet_daemon_startup_write(live->daemon_startup_ns));
}
