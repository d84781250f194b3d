// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/load.h"

#include "control/ring/walk.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BERNSTEIN_T 8.0
// New flows that a backend must have seen on average before the hottest one means anything.
#define FLOWS_EACH 64u

struct load_backend {
	uint32_t id;
	uint64_t counted; // at the last look
	uint64_t flows;   // that count
	double expected;
};

struct load_service {
	uint32_t id;
	uint32_t rings[2];   // position in load->rings of the old and the new one; NO_RING: none
	uint64_t counted[2]; // at the last look
};

// One subset ring.
struct load_ring {
	uint32_t index; // in the snapshot
	uint32_t member_count;
	uint32_t *backends; // position in load->backends, by owner
	double *parts;      // of the circle, by owner
};

#define NO_RING UINT32_MAX

struct load {
	bool known; // counted, services and rings are those of the last look
	uint64_t generation;
	uint64_t epoch;
	struct load_backend *backends; // ascending by id
	uint32_t backend_count;
	struct load_service *services;
	uint32_t service_count;
	struct load_ring *rings;
	uint32_t ring_count;
};

struct load *load_create(void)
{
	return calloc(1, sizeof(struct load));
}

static void rings_free(struct load *load)
{
	for (uint32_t i = 0; i < load->ring_count; i++) {
		free(load->rings[i].backends);
		free(load->rings[i].parts);
	}
	free(load->rings);
	free(load->services);
	load->rings = NULL;
	load->services = NULL;
	load->ring_count = load->service_count = 0;
}

void load_free(struct load *load)
{
	if (load == NULL)
		return;
	rings_free(load);
	free(load->backends);
	free(load);
}

void load_skip(struct load *load)
{
	load->known = false;
}

void load_reset(struct load *load)
{
	for (uint32_t i = 0; i < load->backend_count; i++) {
		load->backends[i].flows = 0;
		load->backends[i].expected = 0;
	}
}

// --- the rings of a snapshot -------------------------------------------------------------------------

static int by_id(const void *key, const void *element)
{
	uint32_t id = *(const uint32_t *)key, other = ((const struct load_backend *)element)->id;

	return id < other ? -1 : id > other;
}

static struct load_backend *backend_find(const struct load *load, uint32_t id)
{
	return load->backend_count == 0
		? NULL
		: bsearch(&id, load->backends, load->backend_count, sizeof(*load->backends), by_id);
}

static bool is_of(const struct snapshot *snapshot, uint32_t backend, uint32_t pool)
{
	return snapshot->backends[backend].state != SNAPSHOT_BACKEND_FREE &&
		snapshot->backends[backend].pool == pool;
}

// The backends of the pool as the snapshot has them; what was counted for those that stay is kept.
static int backends_list(struct load *load, const struct snapshot *snapshot, uint32_t pool)
{
	struct load_backend *list = calloc((size_t)snapshot->backend_count + 1, sizeof(*list));
	uint32_t count = 0;

	if (list == NULL)
		return -ENOMEM;
	for (uint32_t id = 0; id < snapshot->backend_count; id++) {
		if (!is_of(snapshot, id, pool))
			continue;
		const struct load_backend *before = backend_find(load, id);

		list[count++] = before ? *before : (struct load_backend){.id = id};
	}
	free(load->backends);
	load->backends = list;
	load->backend_count = count;
	return 0;
}

static int ring_measure(struct load *load, const struct ring *ring, struct load_ring *ret)
{
	uint32_t members = ring->header->member_count;
	uint64_t *arcs = calloc((size_t)members + 1, sizeof(*arcs));

	ret->member_count = members;
	ret->backends = calloc((size_t)members + 1, sizeof(*ret->backends));
	ret->parts = calloc((size_t)members + 1, sizeof(*ret->parts));
	if (arcs == NULL || ret->backends == NULL || ret->parts == NULL) {
		free(arcs);
		return -ENOMEM;
	}
	ring_shares(ring, arcs);
	for (uint32_t owner = 0; owner < members; owner++) {
		const struct load_backend *backend = backend_find(load, ring_member(ring, owner));

		// snapshot_open() has checked that members are used backends of the pool.
		ret->backends[owner] = (uint32_t)(backend - load->backends);
		ret->parts[owner] = (double)arcs[owner] / (double)RING_CIRCLE;
	}
	free(arcs);
	return 0;
}

// The position of a ring of the snapshot, which is added if it is not there yet.
static int ring_use(
	struct load *load, const struct snapshot *snapshot, uint32_t index, uint32_t *ret)
{
	*ret = NO_RING;
	if (index == SNAPSHOT_NO_RING)
		return 0;
	for (uint32_t i = 0; i < load->ring_count; i++) {
		if (load->rings[i].index == index) {
			*ret = i;
			return 0;
		}
	}
	struct load_ring *ring = &load->rings[load->ring_count];

	*ring = (struct load_ring){.index = index};
	*ret = load->ring_count++;
	return ring_measure(load, &snapshot->rings[index], ring);
}

static int services_list(struct load *load, const struct snapshot *snapshot, uint32_t pool)
{
	int rc = 0;

	load->services = calloc((size_t)snapshot->service_count + 1, sizeof(*load->services));
	load->rings = calloc((size_t)snapshot->ring_count + 1, sizeof(*load->rings));
	if (load->services == NULL || load->rings == NULL)
		return -ENOMEM;
	for (uint32_t id = 0; id < snapshot->service_count && rc == 0; id++) {
		const struct snapshot_service *from = &snapshot->services[id];
		struct load_service *to = &load->services[load->service_count];

		if (!(from->flags & SNAPSHOT_USED) || from->pool != pool)
			continue;
		load->service_count++;
		to->id = id;
		rc = ring_use(load, snapshot, from->ring_old, &to->rings[0]);
		if (rc == 0)
			rc = ring_use(load, snapshot, from->ring_new, &to->rings[1]);
	}
	return rc;
}

// --- looks -------------------------------------------------------------------------------------------

static void expect(struct load *load, uint32_t position, uint64_t flows)
{
	const struct load_ring *ring = &load->rings[position];

	if (flows == 0)
		return;
	for (uint32_t owner = 0; owner < ring->member_count; owner++)
		load->backends[ring->backends[owner]].expected +=
			(double)flows * ring->parts[owner];
}

// Takes the counters over. counts: what came since the last look belongs to the rings that are listed.
static void counters_take(struct load *load, const struct load_counters *counters, bool counts)
{
	for (uint32_t i = 0; i < load->backend_count; i++) {
		struct load_backend *backend = &load->backends[i];
		uint64_t now = counters->backend(counters->context, backend->id);

		backend->flows += counts ? now - backend->counted : 0;
		backend->counted = now;
	}
	for (uint32_t i = 0; i < load->service_count; i++) {
		struct load_service *service = &load->services[i];
		uint64_t now[2];

		counters->service(counters->context, service->id, &now[0], &now[1]);
		for (unsigned side = 0; side < 2; side++) {
			if (counts && service->rings[side] != NO_RING)
				expect(load, service->rings[side],
					now[side] - service->counted[side]);
			service->counted[side] = now[side];
		}
	}
}

int load_look(struct load *load, const struct snapshot *snapshot, uint32_t pool,
	const struct load_counters *counters)
{
	bool same = load->known && load->generation == snapshot->header->generation;

	load->known = false;
	if (!same) {
		int rc;

		rings_free(load);
		rc = backends_list(load, snapshot, pool);
		if (rc == 0)
			rc = services_list(load, snapshot, pool);
		if (rc < 0)
			return rc;
	}
	counters_take(load, counters, same && load->epoch == counters->epoch);
	load->generation = snapshot->header->generation;
	load->epoch = counters->epoch;
	load->known = true;
	return 0;
}

// --- what it says ------------------------------------------------------------------------------------

double load_most(double expected)
{
	return expected + sqrt(2 * expected * BERNSTEIN_T) + BERNSTEIN_T / 3;
}

bool load_hottest(const struct load *load, struct load_hottest *ret)
{
	struct load_hottest hottest = {0};
	uint64_t backends = 0;
	double worst = -1;

	for (uint32_t i = 0; i < load->backend_count; i++) {
		const struct load_backend *backend = &load->backends[i];
		double most = load_most(backend->expected);

		hottest.total += backend->flows;
		backends += backend->expected > 0;
		if ((double)backend->flows / most <= worst)
			continue;
		worst = (double)backend->flows / most;
		hottest.backend = backend->id;
		hottest.flows = backend->flows;
		hottest.expected = backend->expected;
		hottest.most = most;
	}
	*ret = hottest;
	return backends != 0 && hottest.total >= FLOWS_EACH * backends;
}
