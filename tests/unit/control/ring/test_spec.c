// SPDX-License-Identifier: Apache-2.0
// Specifications: what is refused, with which words, and what two spellings of one specification share.
#include "control/ring/spec.h"

#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ring_set set;

static void make(uint32_t count)
{
	ring_set_init(&set, RING_V2, 16, count);
	ring_set_sequence(&set, 0x0a000001, 0);
}

static void check_refused(int result, const char *words)
{
	struct ring_error error = {""};

	CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), result);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, words));
	if (strstr(error.text, words) == NULL)
		printf("# got: %s\n", error.text);
	ring_set_free(&set);
}

static void weights_have_limits(void)
{
	make(3);
	set.spec.members[1].weight = 0;
	set.spec.members[1].name = "web-2";
	check_refused(-EINVAL, "backend web-2 (10.0.0.2): weight 0");
	make(3);
	set.spec.members[2].weight = RING_WEIGHT_MAX + 1;
	check_refused(-EINVAL, "backend 10.0.0.3: weight is greater");
}

static void duplicates_are_named(void)
{
	make(3);
	set.spec.members[2].address = set.spec.members[0].address;
	set.spec.members[0].name = "web-1";
	set.spec.members[2].name = "web-3";
	check_refused(-EINVAL, "web-1 (10.0.0.1)");
	make(2);
	ring_set_address(&set, 0, "[2001:db8::1]:443");
	ring_set_address(&set, 1, "[2001:0db8:0::1]:443");
	check_refused(-EINVAL, "[2001:db8::1]:443");
	// Ports make a difference, and so does having one.
	make(3);
	ring_set_address(&set, 0, "10.0.0.1:80");
	ring_set_address(&set, 1, "10.0.0.1:81");
	ring_set_address(&set, 2, "10.0.0.1");
	struct ring_error error;

	CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), 0);
	CU_ASSERT_EQUAL(set.spec.members[0].port, 0);
	CU_ASSERT_EQUAL(set.spec.members[2].port, 81);
	ring_set_free(&set);
}

static void address_is_needed(void)
{
	make(2);
	set.spec.members[1].address.family = ADDR_NONE;
	check_refused(-EINVAL, "has no address");
}

static void too_many_backends(void)
{
	make(RING_MEMBERS_MAX + 1);
	check_refused(-E2BIG, "65536 backends in one ring, the limit is 65535");
	make(RING_MEMBERS_MAX);
	set.spec.points = 1;
	struct ring_error error = {""};

	// About n^2 / 2^33 = 0.5 pairs of twins are expected among so many; these addresses have none.
	CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), 0);
	ring_set_free(&set);
}

// Products and sums that 32 bits would wrap.
static void too_many_points(void)
{
	make(2);
	set.spec.members[0].weight = 1000000;
	set.spec.points = 429497;
	check_refused(-E2BIG, "429497429497 points");
	make(1);
	set.spec.points = UINT32_MAX;
	check_refused(-E2BIG, "4294967295 points");
	make(1);
	set.spec.points = RING_POINTS_MAX;
	struct ring_error error;

	CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), 0);
	ring_set_free(&set);
}

static void parameters_are_checked(void)
{
	make(1);
	set.spec.version = 4;
	check_refused(-EINVAL, "ring version 4 is unknown");
	make(1);
	set.spec.version = RING_V1;
	check_refused(-EINVAL, "a v1 ring has 160 points a weight, not 16");
	make(1);
	set.spec.seed = 2;
	check_refused(-EINVAL, "ring seed 2 is unknown");
	make(1);
	set.spec.version = RING_V1;
	set.spec.points = 0;
	struct ring_error error;

	CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), 0);
	CU_ASSERT_EQUAL(set.spec.points, 160);
	set.spec.version = RING_V2;
	set.spec.points = 0;
	CU_ASSERT_EQUAL(ring_spec_normalise(&set.spec, &error), 0);
	CU_ASSERT_EQUAL(set.spec.points, 16);
	ring_set_free(&set);
}

static void nginx_seed_needs_its_text(void)
{
	make(2);
	set.spec.seed = RING_SEED_NGINX;
	set.texts[0][0] = 'a';
	check_refused(-EINVAL, "backend 10.0.0.2: seed nginx needs the text");
}

static void twins_are_refused(void)
{
	make(2);
	ring_set_address(&set, 0, "127.155.121.111:9000");
	ring_set_address(&set, 1, "127.16.195.39:9000");
	check_refused(-EINVAL, "would never get a flow");
}

static void order_does_not_matter(void)
{
	static const char *const texts[] = {"10.0.0.9:80", "10.0.0.10:80", "10.0.0.10:9",
		"[2001:db8::2]:80", "[2001:db8::10]:80", "9.255.0.1:80", "[::1]:1"};
	uint8_t digests[2][RING_DIGEST_BYTES];
	unsigned count = sizeof(texts) / sizeof(texts[0]);
	struct ring_error error;

	for (unsigned pass = 0; pass < 2; pass++) {
		make(count);
		for (unsigned i = 0; i < count; i++)
			ring_set_address(&set, i, texts[pass ? count - 1 - i : (i * 3) % count]);
		CU_ASSERT_EQUAL_FATAL(ring_spec_normalise(&set.spec, &error), 0);
		CU_ASSERT_EQUAL(set.spec.members[0].address.bytes[0], 9);
		CU_ASSERT_EQUAL(set.spec.members[2].port, 9);
		CU_ASSERT_EQUAL(set.spec.members[3].port, 80);
		CU_ASSERT_EQUAL(set.spec.members[6].address.bytes[15], 0x10);
		ring_spec_digest(&set.spec, digests[pass]);
		ring_set_free(&set);
	}
	CU_ASSERT_EQUAL(memcmp(digests[0], digests[1], RING_DIGEST_BYTES), 0);
}

// Everything that makes another ring makes another digest; names and backend ids do not.
static void digest_sees_what_the_ring_sees(void)
{
	uint8_t digests[9][RING_DIGEST_BYTES], seed[HASH_SEED_BYTES] = {1};
	char text[2 * RING_DIGEST_BYTES + 1];

	for (unsigned change = 0; change < 9; change++) {
		struct ring_error error;

		make(4);
		set.spec.members[0].weight += change == 1;
		set.spec.members[1].port = change == 2 ? 80 : 0;
		set.spec.points += change == 3;
		set.spec.version = change == 4 ? RING_V3 : RING_V2;
		set.spec.member_count -= change == 5;
		set.spec.seed = change == 6 ? RING_SEED_NGINX : RING_SEED_ADDRESS;
		for (unsigned i = 0; i < 4; i++)
			snprintf(set.texts[i], sizeof(set.texts[i]), "10.0.0.%u", i + 1);
		if (change == 8)
			ring_spec_seed(&set.spec, seed);
		if (change == 7) {
			set.spec.members[0].name = "another";
			set.spec.members[0].backend = 99;
		}
		CU_ASSERT_EQUAL_FATAL(ring_spec_normalise(&set.spec, &error), 0);
		ring_spec_digest(&set.spec, digests[change]);
		for (unsigned other = 0; other < change; other++) {
			bool same = memcmp(digests[other], digests[change], RING_DIGEST_BYTES) == 0;

			CU_ASSERT_EQUAL(same, change == 7 && other == 0);
		}
		ring_set_free(&set);
	}
	ring_digest_format(digests[0], text);
	printf("# digest of v2, 16 points, 10.0.0.1-4: %s\n", text);
	// Pinned: nodes of different builds compare digests.
	CU_ASSERT_STRING_EQUAL(text, "f439fb877e6bbbfc3d83de05f5981a16");
}

int main(void)
{
	static const struct test_case cases[] = {
		{"weights_have_limits", weights_have_limits},
		{"duplicates_are_named", duplicates_are_named},
		{"address_is_needed", address_is_needed},
		{"too_many_backends", too_many_backends},
		{"too_many_points", too_many_points},
		{"parameters_are_checked", parameters_are_checked},
		{"nginx_seed_needs_its_text", nginx_seed_needs_its_text},
		{"twins_are_refused", twins_are_refused},
		{"order_does_not_matter", order_does_not_matter},
		{"digest_sees_what_the_ring_sees", digest_sees_what_the_ring_sees},
	};

	return SUITE_RUN("ring spec", cases);
}
