// SPDX-License-Identifier: Apache-2.0
// Every known answer of vectors/: points, picks, walks and ties of pingora-ketama's and nginx's rings.
#include "control/ring/chain.h"
#include "control/ring/walk.h"
#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS      1000
#define WALK_MAX  64
#define PATH_SIZE 512

static uint32_t key_crc[KEYS];

static json_t *load(const char *name)
{
	char path[PATH_SIZE];
	json_error_t error;

	snprintf(path, sizeof(path), "%s/%s.json", VECTORS_DIR, name);
	json_t *root = json_load_file(path, 0, &error);

	if (root == NULL)
		printf("# %s:%d: %s\n", path, error.line, error.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	return root;
}

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static int64_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static uint32_t hex32(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 16);
}

static size_t hex_bytes(const char *text, uint8_t *ret, size_t size)
{
	size_t length = strlen(text) / 2;

	CU_ASSERT_FATAL(length <= size);
	for (size_t i = 0; i < length; i++) {
		unsigned byte;

		CU_ASSERT_FATAL(sscanf(text + 2 * i, "%2x", &byte) == 1);
		ret[i] = (uint8_t)byte;
	}
	return length;
}

static void load_keys(void)
{
	json_t *root = load("keys"), *keys = json_object_get(root, "keys");
	json_t *crcs = json_object_get(root, "crc32");
	struct chain_tables tables;
	uint8_t bytes[2048];

	chain_tables_fill(&tables);
	CU_ASSERT_EQUAL_FATAL(json_array_size(keys), KEYS);
	for (unsigned i = 0; i < KEYS; i++) {
		const char *text = json_string_value(json_array_get(keys, i));
		size_t length = hex_bytes(text, bytes, sizeof(bytes));

		key_crc[i] = ~chain_seed(&tables, UINT32_MAX, bytes, length);
		CU_ASSERT_EQUAL(key_crc[i], hex32(json_string_value(json_array_get(crcs, i))));
	}
	json_decref(root);
}

// The backend positions of the vectors are backend ids here, so owners map back through the members.
static void spec_of(
	const json_t *root, const json_t *ring, enum ring_version version, struct ring_set *ret)
{
	json_t *backends = json_object_get(root, "backends");

	ring_set_init(ret, version, (uint32_t)number_of(ring, "multiple"),
		(uint32_t)json_array_size(backends));
	if (strcmp(text_of(ring, "version"), "nginx") == 0)
		ret->spec.seed = RING_SEED_NGINX;
	for (uint32_t i = 0; i < ret->spec.member_count; i++) {
		json_t *backend = json_array_get(backends, i);

		CU_ASSERT_EQUAL_FATAL(
			ring_set_address(ret, i, json_string_value(json_array_get(backend, 0))), 0);
		ret->spec.members[i].weight =
			(uint32_t)json_integer_value(json_array_get(backend, 1));
	}
}

struct stream {
	EVP_MD_CTX *points;
	EVP_MD_CTX *hashes;
};

static void check_sha256(EVP_MD_CTX *context, const char *expected)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	char text[2 * EVP_MAX_MD_SIZE + 1] = "";
	unsigned length;

	EVP_DigestFinal_ex(context, digest, &length);
	EVP_MD_CTX_free(context);
	for (unsigned i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	if (expected != NULL)
		CU_ASSERT_STRING_EQUAL(text, expected);
}

static void put_le(uint8_t *ret, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		ret[i] = (uint8_t)(value >> 8 * i);
}

// ties_are_ours: the recorded winners follow our rule, so owners count too.
static void check_points(const json_t *entry, const struct ring *ring, bool ties_are_ours)
{
	EVP_MD_CTX *points = EVP_MD_CTX_new(), *hashes = EVP_MD_CTX_new();
	struct chain_tables tables;
	struct ring_cursor cursor;
	struct ring_walk_point point;
	uint32_t crc = UINT32_MAX;
	uint8_t bytes[6];

	chain_tables_fill(&tables);
	EVP_DigestInit_ex(points, EVP_sha256(), NULL);
	EVP_DigestInit_ex(hashes, EVP_sha256(), NULL);
	CU_ASSERT_EQUAL(ring->header->point_count, number_of(entry, "points"));
	ring_cursor_first(&cursor, ring);
	while (ring_cursor_next(&cursor, &point)) {
		put_le(bytes, point.hash, 4);
		put_le(bytes + 4, ring_member(ring, point.owner), 2);
		EVP_DigestUpdate(points, bytes, 6);
		EVP_DigestUpdate(hashes, bytes, 4);
		crc = chain_seed(&tables, crc, bytes, 6);
	}
	check_sha256(points, ties_are_ours ? text_of(entry, "sha256") : NULL);
	check_sha256(hashes, text_of(entry, "hashes_sha256"));
	if (ties_are_ours && text_of(entry, "crc32") != NULL)
		CU_ASSERT_EQUAL((uint32_t)~crc, hex32(text_of(entry, "crc32")));
}

static uint32_t pick(const struct ring *ring, uint32_t hash)
{
	uint32_t owner = ring_lookup(ring, hash), burst;

	ring_lookup_burst(ring, &hash, 1, &burst);
	CU_ASSERT_EQUAL(owner, burst);
	return ring_member(ring, owner);
}

static void check_picks(const json_t *entry, const struct ring *ring, bool ties_are_ours)
{
	json_t *picks = json_object_get(entry, "picks"),
	       *tied = json_object_get(entry, "tied_keys");
	bool skip[KEYS] = {false};
	json_t *value;
	size_t i;

	json_array_foreach (tied, i, value)
		skip[json_integer_value(value)] = !ties_are_ours;
	json_array_foreach (picks, i, value) {
		if (!skip[i])
			CU_ASSERT_EQUAL(pick(ring, key_crc[i]), json_integer_value(value));
	}
	json_array_foreach (json_object_get(entry, "edge_picks"), i, value) {
		uint32_t crc = hex32(json_string_value(json_array_get(value, 1)));

		if (ties_are_ours)
			CU_ASSERT_EQUAL(
				pick(ring, crc), json_integer_value(json_array_get(value, 3)));
	}
}

static void check_walk(const json_t *walk, const struct ring *ring)
{
	uint32_t hash = key_crc[number_of(walk, "key")], order[WALK_MAX];
	json_t *owners = json_object_get(walk, "owners");
	json_t *distinct = json_object_get(walk, "distinct");
	struct ring_cursor cursor;
	struct ring_walk_point point;
	json_t *value;
	size_t i;

	ring_cursor_seek(&cursor, ring, hash);
	CU_ASSERT_EQUAL(cursor.position % ring->header->point_count, number_of(walk, "start"));
	json_array_foreach (owners, i, value) {
		if (!ring_cursor_next(&cursor, &point)) {
			ring_cursor_first(&cursor, ring);
			ring_cursor_next(&cursor, &point);
		}
		CU_ASSERT_EQUAL(ring_member(ring, point.owner), json_integer_value(value));
	}
	unsigned limit = (unsigned)json_array_size(distinct);

	CU_ASSERT_EQUAL(ring_failover_order(ring, hash, order, limit), limit);
	json_array_foreach (distinct, i, value)
		CU_ASSERT_EQUAL(ring_member(ring, order[i]), json_integer_value(value));
}

// The owner that a published image gives a hash after its first owners went down, one by one, is the walk's next.
static void check_failover(const json_t *walk, const struct ring_built *built)
{
	json_t *distinct = json_object_get(walk, "distinct"), *value;
	uint32_t members = built->ring.header->member_count;
	uint32_t hash = key_crc[number_of(walk, "key")];
	uint64_t *usable = calloc(members / 64 + 1, sizeof(*usable));
	void *image = aligned_alloc(RING_ALIGN, built->bytes);
	size_t i;

	memset(usable, 0xff, (members / 64 + 1) * sizeof(*usable));
	json_array_foreach (distinct, i, value) {
		struct ring ring;
		const char *reason;

		memcpy(image, built->image, built->bytes);
		ring_resolve(image, usable);
		CU_ASSERT_EQUAL_FATAL(ring_open(image, built->bytes, &ring, &reason), 0);
		CU_ASSERT_EQUAL(pick(&ring, hash), json_integer_value(value));
		CU_ASSERT_EQUAL(memcmp(ring.header->points_digest,
					built->ring.header->points_digest, RING_DIGEST_BYTES),
			0);
		uint32_t owner = ring_lookup(&ring, hash);

		usable[owner / 64] &= ~(UINT64_C(1) << owner % 64);
	}
	free(image);
	free(usable);
}

static void check_ties(const json_t *entry, const struct ring *ring)
{
	json_t *tie;
	size_t i;

	json_array_foreach (json_object_get(entry, "ties"), i, tie)
		CU_ASSERT_EQUAL(pick(ring, hex32(text_of(tie, "hash"))), number_of(tie, "winner"));
}

static void check_built(const json_t *entry, const struct ring_built *built, bool ties_are_ours)
{
	json_t *walk;
	size_t i;

	check_points(entry, &built->ring, ties_are_ours);
	check_picks(entry, &built->ring, ties_are_ours);
	if (!ties_are_ours)
		return;
	check_ties(entry, &built->ring);
	json_array_foreach (json_object_get(entry, "walks"), i, walk) {
		check_walk(walk, &built->ring);
		// The failover copies the image for each step; the small rings show the rule as well.
		if (built->bytes < 1 << 20)
			check_failover(walk, built);
	}
}

static void check_entry(const json_t *root, const json_t *entry, enum ring_version version)
{
	struct ring_set set;
	struct ring_built built;
	bool collided =
		number_of(entry, "collided_hashes") > 0 || text_of(entry, "same_as") != NULL;

	spec_of(root, entry, version, &set);
	CU_ASSERT_EQUAL_FATAL(ring_built_make(&set, &built), 0);
	CU_ASSERT_EQUAL(ring_spec_points(&set.spec),
		(uint64_t)number_of(entry, "points_generated") ?: ring_spec_points(&set.spec));
	check_built(entry, &built, strcmp(text_of(entry, "version"), "v2") == 0 || !collided);
	ring_built_free(&built);
	ring_set_free(&set);
}

static void check_set(const char *name)
{
	json_t *root = load(name), *entry;
	size_t i;

	if (key_crc[KEYS - 1] == 0)
		load_keys();
	json_array_foreach (json_object_get(root, "rings"), i, entry) {
		bool v2 = strcmp(text_of(entry, "version"), "v2") == 0;

		check_entry(root, entry, v2 ? RING_V2 : RING_V1);
	}
	json_decref(root);
}

// v3 has a tie rule of its own: hashes and picks off ties are v2's.
static void check_set_in_v3_storage(const char *name)
{
	json_t *root = load(name), *entry;
	size_t i;

	json_array_foreach (json_object_get(root, "rings"), i, entry) {
		struct ring_set set;
		struct ring_built built;

		if (strcmp(text_of(entry, "version"), "v2") != 0)
			continue;
		spec_of(root, entry, RING_V3, &set);
		CU_ASSERT_EQUAL_FATAL(ring_built_make(&set, &built), 0);
		check_built(entry, &built, number_of(entry, "collided_hashes") == 0);
		ring_built_free(&built);
		ring_set_free(&set);
	}
	json_decref(root);
}

static void check_refused(const char *name)
{
	json_t *root = load(name), *entry;
	size_t i;

	json_array_foreach (json_object_get(root, "rings"), i, entry) {
		struct ring_set set;
		struct ring_error error = {""};

		spec_of(root, entry,
			strcmp(text_of(entry, "version"), "v2") == 0 ? RING_V2 : RING_V1, &set);
		CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "127.16.195.39:9000"));
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "CRC-32"));
		ring_set_free(&set);
	}
	json_decref(root);
}

#define SET(name, file)                        \
	static void name(void)                 \
	{                                      \
		check_set(file);               \
		check_set_in_v3_storage(file); \
	}

SET(one, "one")
SET(two, "two")
SET(three_weights, "three-weights")
SET(ten, "ten")
SET(hundred, "hundred")
SET(hundred_weights, "hundred-weights")
SET(hundred_625, "hundred-625")
SET(n2048, "n2048")
SET(n2048_shuffled, "n2048-shuffled")
SET(ipv6, "ipv6")
SET(ties_address_order, "ties-address-order")
SET(ties_ascending, "ties-ascending")
SET(ties_descending, "ties-descending")
SET(ties_triple, "ties-triple")

static void twins(void)
{
	check_refused("twins");
	check_refused("twins-ascending");
}

int main(void)
{
	static const struct test_case cases[] = {
		{"keys_have_their_crc", load_keys},
		{"one_backend", one},
		{"two_ports_of_one_address", two},
		{"three_weights", three_weights},
		{"ten_backends", ten},
		{"hundred_backends", hundred},
		{"hundred_backends_of_weights_1_to_625", hundred_weights},
		{"hundred_backends_of_weight_625", hundred_625},
		{"2048_backends", n2048},
		{"2048_backends_in_no_order_weights_1_to_8", n2048_shuffled},
		{"ipv6_in_every_spelling", ipv6},
		{"tie_goes_to_lower_address_as_a_number", ties_address_order},
		{"tie_in_ascending_list", ties_ascending},
		{"tie_in_descending_list", ties_descending},
		{"tie_of_three", ties_triple},
		{"twins_are_refused_by_name", twins},
	};

	return SUITE_RUN("vectors", cases);
}
