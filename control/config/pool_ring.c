// SPDX-License-Identifier: Apache-2.0
#include "control/config/pool_ring.h"

#include "control/ring/lanes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// "[2001:db8::1]:65535" and a NUL.
#define SEED_TEXT_BYTES (ADDR_TEXT_BYTES + 9)

// The text that nginx would have in its server directive for this backend.
static void seed_text(const struct config_backend *backend, char *ret)
{
	char address[ADDR_TEXT_BYTES];
	bool v6 = backend->address.family == ADDR_V6;
	int length;

	addr_format(&backend->address, address);
	length = snprintf(ret, SEED_TEXT_BYTES, "%s%s%s", v6 ? "[" : "", address, v6 ? "]" : "");
	if (backend->port != 0)
		snprintf(ret + length, SEED_TEXT_BYTES - (size_t)length, ":%u", backend->port);
}

static void add_member(
	struct pool_ring *ret, const struct config_backend *backend, uint32_t position)
{
	struct ring_spec_member *member = &ret->spec.members[ret->spec.member_count++];

	*member = (struct ring_spec_member){
		.address = backend->address,
		.port = (uint16_t)backend->port,
		.weight = backend->weight,
		.backend = position,
		.name = backend->name,
	};
	if (ret->texts != NULL) {
		char *text = ret->texts + (size_t)position * SEED_TEXT_BYTES;

		seed_text(backend, text);
		member->text = backend->server != NULL && backend->server[0] != '\0'
			? backend->server
			: text;
	}
}

int pool_ring_spec(const struct config_pool *pool, const struct config_ring *ring,
	const char *const *tags, uint32_t tag_count, struct pool_ring *ret,
	struct ring_error *ret_error)
{
	struct config_service wanted = {
		.requires = (const char **)tags, .require_count = tag_count};
	struct pool_ring made = {
		.spec = {.version = (enum ring_version)ring->version, .points = ring->points},
	};
	int error = -ENOMEM;

	ring_spec_seed(&made.spec, ring->hash_seed);
	made.spec.members = calloc((size_t)pool->backend_count + 1, sizeof(*made.spec.members));
	if (ring->seed == CONFIG_SEED_NGINX) {
		made.spec.seed = RING_SEED_NGINX;
		made.texts = calloc((size_t)pool->backend_count + 1, SEED_TEXT_BYTES);
		if (made.texts == NULL)
			goto err_free;
	}
	if (made.spec.members == NULL)
		goto err_free;
	for (uint32_t i = 0; i < pool->backend_count; i++) {
		if (config_backend_eligible(&pool->backends[i], &wanted))
			add_member(&made, &pool->backends[i], i);
	}
	error = ring_spec_normalise(&made.spec, ret_error);
	if (error)
		goto err_free;
	*ret = made;
	return 0;

err_free:
	if (error == -ENOMEM)
		snprintf(ret_error->text, sizeof(ret_error->text), "out of memory");
	pool_ring_free(&made);
	return error;
}

int pool_ring_lanes_set(struct pool_ring *ring, struct ring_lane *lanes, uint32_t count,
	struct ring_error *ret_error)
{
	free(ring->lanes);
	ring->lanes = lanes;
	ring->spec.lanes = lanes;
	ring->spec.lane_count = count;
	return ring_spec_normalise(&ring->spec, ret_error);
}

int pool_ring_balance(struct pool_ring *ring, uint32_t balance, struct ring_error *ret_error)
{
	struct ring_lanes_request request = {
		.spec = &ring->spec,
		.tolerance = balance / 1e6,
	};
	struct ring_lane *lanes = NULL;
	uint32_t count = 0;
	int error;

	if (ring->spec.version != RING_V3 || ring->spec.member_count == 0)
		return 0;
	error = ring_lanes_choose(&request, &lanes, &count, NULL);
	if (error) {
		snprintf(ret_error->text, sizeof(ret_error->text), "cannot balance the ring: %s",
			strerror(-error));
		return error;
	}
	return pool_ring_lanes_set(ring, lanes, count, ret_error);
}

void pool_ring_free(struct pool_ring *ring)
{
	free(ring->spec.members);
	free(ring->texts);
	free(ring->lanes);
	*ring = (struct pool_ring){0};
}
