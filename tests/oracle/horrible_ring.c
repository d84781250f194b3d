// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/horrible_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t crc32_bitwise(const uint8_t *bytes, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}

// The bytes that seed a member's chain.
static size_t seed_bytes(
	const struct ring_spec *spec, const struct ring_spec_member *member, uint8_t ret[512])
{
	char host[RING_SEED_TEXT_MAX + 1], port[RING_SEED_TEXT_MAX + 1] = "";
	size_t length;

	if (spec->seed == RING_SEED_NGINX) {
		char *colon;

		snprintf(host, sizeof(host), "%s", member->text);
		colon = strrchr(host, ':');
		if (strncmp(host, "unix:", 5) == 0) {
			memmove(host, host + 5, strlen(host + 5) + 1);
		} else if (colon != NULL && strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
			snprintf(port, sizeof(port), "%s", colon + 1);
			*colon = '\0';
		}
	} else {
		addr_format(&member->address, host);
		if (member->port != 0)
			snprintf(port, sizeof(port), "%u", member->port);
	}
	length = strlen(host) + 1;
	memcpy(ret, host, length);
	memcpy(ret + length, port, strlen(port));
	return length + strlen(port);
}

struct keyed_point {
	struct horrible_point point;
	uint32_t tie;
};

static int compare(const void *a, const void *b)
{
	const struct keyed_point *x = a, *y = b;

	if (x->point.hash != y->point.hash)
		return x->point.hash < y->point.hash ? -1 : 1;
	return (x->tie > y->tie) - (x->tie < y->tie);
}

static uint32_t mix(uint32_t value)
{
	value = (value ^ value >> 16) * 0x85ebca6bu;
	value = (value ^ value >> 13) * 0xc2b2ae35u;
	return value ^ value >> 16;
}

// Tells whether point number i of a member's chain is used.
static bool is_used(const struct ring_spec *spec, const struct ring_spec_member *member, uint32_t i)
{
	if (spec->lane_count == 0)
		return i < member->weight * spec->points;
	for (uint32_t l = 0; l < spec->lane_count; l++) {
		const struct ring_lane *lane = &spec->lanes[l];

		if (addr_compare(&lane->address, &member->address) == 0 &&
			lane->port == member->port && i >= lane->base && i - lane->base < 64 &&
			lane->mask >> (i - lane->base) & 1)
			return true;
	}
	return false;
}

static uint32_t chain(const struct ring_spec *spec, uint32_t member, struct keyed_point *ret)
{
	const struct ring_spec_member *m = &spec->members[member];
	uint32_t last = m->weight * spec->points, hash = 0, first = 0, used = 0;
	uint8_t bytes[512];
	size_t length = seed_bytes(spec, m, bytes);

	for (uint32_t l = 0; l < spec->lane_count; l++)
		last = spec->lanes[l].base + 64 > last ? spec->lanes[l].base + 64 : last;
	for (uint32_t i = 0; i < last; i++) {
		for (unsigned j = 0; j < 4; j++)
			bytes[length + j] = (uint8_t)(hash >> 8 * j);
		hash = crc32_bitwise(bytes, length + 4);
		first = i == 0 ? hash : first;
		if (!is_used(spec, m, i))
			continue;
		ret[used].point = (struct horrible_point){hash, member};
		ret[used++].tie = spec->version == RING_V3 ? mix(hash ^ mix(first)) : member;
	}
	return used;
}

void horrible_ring_build(const struct ring_spec *spec, struct horrible_ring *ret)
{
	size_t total = ring_spec_points(spec), filled = 0;
	struct keyed_point *all = calloc(total + 1, sizeof(*all));

	ret->points = calloc(total + 1, sizeof(*ret->points));
	ret->count = 0;
	ret->member_count = spec->member_count;
	if (all == NULL || ret->points == NULL)
		abort();
	for (uint32_t i = 0; i < spec->member_count; i++)
		filled += chain(spec, i, all + filled);
	qsort(all, filled, sizeof(*all), compare);
	for (size_t i = 0; i < filled; i++) {
		if (i == 0 || all[i].point.hash != all[i - 1].point.hash)
			ret->points[ret->count++] = all[i].point;
	}
	free(all);
}

void horrible_ring_free(struct horrible_ring *ring)
{
	free(ring->points);
	ring->points = NULL;
}

uint32_t horrible_ring_lookup(const struct horrible_ring *ring, uint32_t hash, const bool *down)
{
	uint32_t start = 0;

	while (start < ring->count && ring->points[start].hash < hash)
		start++;
	for (uint32_t i = 0; i < ring->count; i++) {
		uint32_t owner = ring->points[(start + i) % ring->count].owner;

		if (down == NULL || !down[owner])
			return owner;
	}
	return RING_NO_OWNER;
}

static int compare_hash(const void *a, const void *b)
{
	const struct horrible_point *x = a, *y = b;

	if (x->hash < y->hash)
		return -1;
	if (x->hash > y->hash)
		return 1;
	return 0;
}

struct horrible_point *horrible_ring_points_v1(const struct ring_spec *spec, uint32_t *ret_count)
{
	struct horrible_point *points = calloc(ring_spec_points(spec) + 1, sizeof(*points)),
			      *point = points;
	uint32_t table[256];

	if (points == NULL)
		abort();
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (unsigned bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (uint32_t m = 0; m < spec->member_count; m++) {
		uint8_t bytes[512];
		size_t length = seed_bytes(spec, &spec->members[m], bytes);
		uint32_t state = UINT32_MAX, hash = 0;

		for (size_t i = 0; i < length; i++)
			state = state >> 8 ^ table[(state ^ bytes[i]) & 0xff];
		for (uint32_t i = spec->members[m].weight * spec->points; i > 0; i--) {
			uint32_t crc = state;

			for (unsigned j = 0; j < 4; j++)
				crc = crc >> 8 ^ table[(crc ^ hash >> 8 * j) & 0xff];
			hash = ~crc;
			*point++ = (struct horrible_point){hash, m};
		}
	}
	*ret_count = (uint32_t)(point - points);
	qsort(points, *ret_count, sizeof(*points), compare_hash);
	return points;
}
