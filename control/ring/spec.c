// SPDX-License-Identifier: Apache-2.0
#include "control/ring/spec.h"

#include "control/ring/seed.h"
#include "control/ring/sort.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Part of every digest: another meaning of a field is another domain.
#define DIGEST_DOMAIN "ringway ring 1"

static __attribute__((format(printf, 3, 4))) int refuse(
	struct ring_error *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return result;
}

void ring_spec_member_format(const struct ring_spec_member *member, char *ret, size_t bytes)
{
	char address[ADDR_TEXT_BYTES], port[8] = "";
	bool bracket = member->port != 0 && member->address.family == ADDR_V6;

	addr_format(&member->address, address);
	if (member->port != 0)
		snprintf(port, sizeof(port), ":%u", member->port);
	snprintf(ret, bytes, "%.*s%s%s%s%s%s%s", (int)RING_MEMBER_NAME_BYTES,
		member->name ? member->name : "", member->name ? " (" : "", bracket ? "[" : "",
		address, bracket ? "]" : "", port, member->name ? ")" : "");
}

#define MEMBER_TEXT_BYTES (RING_MEMBER_NAME_BYTES + ADDR_TEXT_BYTES + 16)

static int refuse_member(
	struct ring_error *error, const struct ring_spec_member *member, const char *why)
{
	char text[MEMBER_TEXT_BYTES];

	ring_spec_member_format(member, text, sizeof(text));
	return refuse(error, -EINVAL, "backend %s: %s", text, why);
}

static int refuse_pair(struct ring_error *error, const struct ring_spec_member *a,
	const struct ring_spec_member *b, const char *why)
{
	char first[MEMBER_TEXT_BYTES], second[MEMBER_TEXT_BYTES];

	ring_spec_member_format(a, first, sizeof(first));
	ring_spec_member_format(b, second, sizeof(second));
	return refuse(error, -EINVAL, "backends %s and %s: %s", first, second, why);
}

static int check_text(const struct ring_spec_member *member, struct ring_error *error)
{
	if (member->text == NULL || member->text[0] == '\0')
		return refuse_member(error, member,
			"seed nginx needs the text of its server directive; set one, or use seed address");
	if (strlen(member->text) > RING_SEED_TEXT_MAX)
		return refuse_member(error, member, "seed text is longer than 255 bytes");
	return 0;
}

static int check_member(const struct ring_spec *spec, const struct ring_spec_member *member,
	struct ring_error *error)
{
	if (member->address.family != ADDR_V4 && member->address.family != ADDR_V6)
		return refuse_member(error, member, "has no address");
	if (member->weight == 0)
		return refuse_member(error, member,
			"weight 0 would leave it without points; drain it or take it out instead");
	if (member->weight > RING_WEIGHT_MAX)
		return refuse_member(error, member, "weight is greater than 1000000");
	return spec->seed == RING_SEED_NGINX ? check_text(member, error) : 0;
}

static int check_parameters(struct ring_spec *spec, struct ring_error *error)
{
	if (spec->version < RING_V1 || spec->version > RING_V3)
		return refuse(error, -EINVAL, "ring version %d is unknown; take v1, v2 or v3",
			(int)spec->version);
	if (spec->seed != RING_SEED_ADDRESS && spec->seed != RING_SEED_NGINX)
		return refuse(error, -EINVAL, "ring seed %d is unknown", (int)spec->seed);
	if (spec->points == 0)
		spec->points = spec->version == RING_V1 ? RING_V1_POINTS : RING_POINTS_DEFAULT;
	if (spec->version == RING_V1 && spec->points != RING_V1_POINTS)
		return refuse(error, -EINVAL,
			"a v1 ring has 160 points a weight, not %" PRIu32 "; take v2 to set points",
			spec->points);
	if (spec->member_count > RING_MEMBERS_MAX)
		return refuse(error, -E2BIG,
			"%" PRIu32 " backends in one ring, the limit is %u: split the pool",
			spec->member_count, RING_MEMBERS_MAX);
	return 0;
}

// Sums in 64 bits: the limits of weight and members keep each product and the sum below 2^64.
static int check_points(const struct ring_spec *spec, struct ring_error *error)
{
	uint64_t total = ring_spec_points(spec);

	if (total <= RING_POINTS_MAX)
		return 0;
	return refuse(error, -E2BIG,
		"%" PRIu64 " points (sum of weights x %" PRIu32
		"), the limit is %u: divide the weights by a common factor or take fewer points",
		total, spec->points, RING_POINTS_MAX);
}

static int compare_members(const void *a, const void *b)
{
	const struct ring_spec_member *first = a, *second = b;
	int order = addr_compare(&first->address, &second->address);

	if (order != 0)
		return order;
	return (first->port > second->port) - (first->port < second->port);
}

// Members mostly come sorted; looking costs far less than sorting again.
static void sort_members(struct ring_spec *spec)
{
	for (uint32_t i = 1; i < spec->member_count; i++) {
		if (compare_members(&spec->members[i - 1], &spec->members[i]) > 0) {
			qsort(spec->members, spec->member_count, sizeof(*spec->members),
				compare_members);
			return;
		}
	}
}

static int compare_lane(const struct ring_lane *lane, const struct ring_spec_member *member)
{
	int order = addr_compare(&lane->address, &member->address);

	return order != 0 ? order : (lane->port > member->port) - (lane->port < member->port);
}

static int check_lane(
	const struct ring_spec *spec, uint32_t lane, uint32_t member, struct ring_error *error)
{
	const struct ring_lane *l = &spec->lanes[lane];

	if (l->mask == 0 || l->base % 64 != 0 || l->base > RING_LANE_BASE_MAX)
		return refuse_member(error, &spec->members[member],
			"its balance is malformed; balance the ring anew");
	if (lane > 0 && compare_lane(l - 1, &spec->members[member]) == 0 && l[-1].base >= l->base)
		return refuse_member(error, &spec->members[member],
			"its lanes are not in order; balance the ring anew");
	return 0;
}

// Members and lanes are both in address order: one walk sees that each has the other.
static int check_lanes(const struct ring_spec *spec, struct ring_error *error)
{
	uint32_t lane = 0;
	int result = 0;

	if (spec->lane_count == 0)
		return 0;
	if (spec->version != RING_V3)
		return refuse(error, -EINVAL, "only a v3 ring has a balance");
	if (spec->lane_count > RING_MEMBERS_MAX)
		return refuse(error, -E2BIG, "%" PRIu32 " lanes in one ring, the limit is %u",
			spec->lane_count, RING_MEMBERS_MAX);
	for (uint32_t member = 0; member < spec->member_count && result == 0; member++) {
		uint32_t first = lane;

		for (; lane < spec->lane_count && result == 0 &&
			compare_lane(&spec->lanes[lane], &spec->members[member]) == 0;
			lane++)
			result = check_lane(spec, lane, member, error);
		if (lane == first)
			return refuse_member(error, &spec->members[member],
				"the ring's balance does not know it; balance the ring for its members");
	}
	if (result == 0 && lane < spec->lane_count)
		return refuse(error, -EINVAL,
			"the ring's balance names a backend that is not a member; balance the ring anew");
	return result;
}

// Finds members that share a first point, hence all points.
static int check_twins(const struct ring_spec *spec, struct ring_error *error)
{
	struct chain_tables tables;
	uint64_t *keys = calloc((size_t)spec->member_count * 2 + 1, sizeof(*keys));
	int result = 0;

	if (keys == NULL)
		return refuse(error, -ENOMEM, "no memory to check the seeds");
	chain_tables_fill(&tables);
	for (uint32_t i = 0; i < spec->member_count; i++) {
		uint32_t state = seed_state(&tables, spec->seed, &spec->members[i]);
		uint32_t first = chain_first(&tables, state);

		if (first == 0)
			result = refuse_member(error, &spec->members[i],
				"all its points would fall on place 0; give it a port or another address");
		keys[i] = (uint64_t)first << 32 | i;
	}
	sort_u64(keys, keys + spec->member_count, spec->member_count);
	for (uint32_t i = 1; i < spec->member_count && result == 0; i++) {
		if (keys[i] >> 32 == keys[i - 1] >> 32)
			result = refuse_pair(error, &spec->members[(uint32_t)keys[i - 1]],
				&spec->members[(uint32_t)keys[i]],
				"their seeds have one CRC-32, so all their points coincide and one "
				"would never get a flow; give one a port or another address");
	}
	free(keys);
	return result;
}

void ring_spec_seed(struct ring_spec *spec, const uint8_t hash_seed[HASH_SEED_BYTES])
{
	memcpy(spec->hash_seed, hash_seed, HASH_SEED_BYTES);
	spec->seed_mark = hash_seed_mark(hash_seed);
}

int ring_spec_normalise(struct ring_spec *spec, struct ring_error *ret_error)
{
	int result = check_parameters(spec, ret_error);

	for (uint32_t i = 0; i < spec->member_count && result == 0; i++)
		result = check_member(spec, &spec->members[i], ret_error);
	if (result == 0)
		result = check_points(spec, ret_error);
	if (result != 0)
		return result;
	sort_members(spec);
	for (uint32_t i = 1; i < spec->member_count; i++) {
		if (compare_members(&spec->members[i - 1], &spec->members[i]) == 0)
			return refuse_pair(ret_error, &spec->members[i - 1], &spec->members[i],
				"the same address and port; take one of them out");
	}
	result = check_lanes(spec, ret_error);
	return result != 0 ? result : check_twins(spec, ret_error);
}

uint64_t ring_spec_points(const struct ring_spec *spec)
{
	uint64_t weights = 0, chosen = 0;

	for (uint32_t i = 0; i < spec->lane_count; i++)
		chosen += (uint64_t)__builtin_popcountll(spec->lanes[i].mask);
	if (spec->lane_count > 0)
		return chosen;
	for (uint32_t i = 0; i < spec->member_count; i++)
		weights += spec->members[i].weight;
	return weights * spec->points;
}

// Collects what is digested, since many small updates cost more than the hash.
struct digest {
	XXH3_state_t state;
	uint32_t filled;
	uint8_t buffer[4096];
};

static void digest_bytes(struct digest *digest, const void *bytes, uint32_t length)
{
	if (length > sizeof(digest->buffer) - digest->filled) {
		XXH3_128bits_update(&digest->state, digest->buffer, digest->filled);
		digest->filled = 0;
	}
	memcpy(digest->buffer + digest->filled, bytes, length);
	digest->filled += length;
}

static void digest_u32(struct digest *digest, uint32_t value)
{
	uint32_t bytes = htole32(value);

	digest_bytes(digest, &bytes, sizeof(bytes));
}

static void digest_member(
	struct digest *digest, enum ring_seed seed, const struct ring_spec_member *member)
{
	uint32_t length = seed == RING_SEED_NGINX ? (uint32_t)strlen(member->text) : 0;

	digest_u32(digest, member->address.family);
	digest_bytes(digest, member->address.bytes, sizeof(member->address.bytes));
	digest_u32(digest, member->port);
	digest_u32(digest, member->weight);
	digest_u32(digest, length);
	if (length > 0)
		digest_bytes(digest, member->text, length);
}

static void digest_lane(struct digest *digest, const struct ring_lane *lane)
{
	digest_u32(digest, lane->address.family);
	digest_bytes(digest, lane->address.bytes, sizeof(lane->address.bytes));
	digest_u32(digest, lane->port);
	digest_u32(digest, lane->base);
	digest_u32(digest, (uint32_t)lane->mask);
	digest_u32(digest, (uint32_t)(lane->mask >> 32));
}

void ring_spec_digest(const struct ring_spec *spec, uint8_t ret[RING_DIGEST_BYTES])
{
	XXH128_canonical_t canonical;
	struct digest digest;

	digest.filled = 0;
	XXH3_128bits_reset(&digest.state);
	digest_bytes(&digest, DIGEST_DOMAIN, sizeof(DIGEST_DOMAIN));
	digest_u32(&digest, spec->version);
	digest_u32(&digest, spec->seed);
	digest_u32(&digest, spec->points);
	digest_u32(&digest, spec->member_count);
	for (uint32_t i = 0; i < spec->member_count; i++)
		digest_member(&digest, spec->seed, &spec->members[i]);
	for (uint32_t i = 0; i < spec->lane_count; i++)
		digest_lane(&digest, &spec->lanes[i]);
	// Rings under the fleet's seed keep the digests that they have always had.
	if (spec->seed_mark != 0) {
		digest_u32(&digest, (uint32_t)spec->seed_mark);
		digest_u32(&digest, (uint32_t)(spec->seed_mark >> 32));
	}
	XXH3_128bits_update(&digest.state, digest.buffer, digest.filled);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&digest.state));
	memcpy(ret, canonical.digest, RING_DIGEST_BYTES);
}

void ring_digest_format(
	const uint8_t digest[RING_DIGEST_BYTES], char ret[static 2 * RING_DIGEST_BYTES + 1])
{
	for (unsigned i = 0; i < RING_DIGEST_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
