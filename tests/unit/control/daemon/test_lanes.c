// SPDX-License-Identifier: Apache-2.0
// Balanced v3 rings in the document: their lanes stay, are repaired, change sides and go.
#include "control/daemon/lanes.h"

#include "control/config/reader.h"
#include "control/daemon/ids.h"
#include "control/daemon/rings.h"
#include "control/ring/walk.h"
#include "tests/lib/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKENDS 400u
#define TEXT_MAX 65536u

// What a document says of its one pool.
struct shape {
	const char *ring;
	uint32_t missing; // number of the backend that is left out; BACKENDS: none
	uint32_t weight;  // of backend 7; the others have 1
};

static const struct shape whole = {"{version: v3}", BACKENDS, 1};

static void config_set(struct document *document, const struct shape *shape)
{
	char *text = malloc(TEXT_MAX);
	size_t used = (size_t)snprintf(text, TEXT_MAX,
		"services:\n"
		"- {name: all, address: 203.0.113.1, protocol: tcp, pool: web}\n"
		"- {name: some, address: 203.0.113.2, protocol: tcp, pool: web, requires: [x]}\n"
		"pools:\n- name: web\n  ring: %s\n  backends:\n",
		shape->ring);
	struct config_pools *pools = NULL;
	struct config_report report;

	for (uint32_t i = 0; i < BACKENDS; i++) {
		if (i == shape->missing)
			continue;
		used += (size_t)snprintf(text + used, TEXT_MAX - used,
			"  - {name: b%u, address: 10.0.%u.%u, weight: %u%s}\n", i, i / 200,
			i % 200 + 1, i == 7 ? shape->weight : 1, i % 2 ? ", tags: [x]" : "");
	}
	config_report_init(&report, "text", text, used);
	CU_ASSERT_EQUAL_FATAL(config_pools_read(&report, &pools), 0);
	CU_ASSERT_EQUAL_FATAL(document_config_set(document, pools), 0);
	CU_ASSERT_EQUAL_FATAL(document_ids_assign(document, 1000000), 0);
	config_report_free(&report);
	config_pools_free(pools);
	free(text);
}

static struct rings *rings_of(struct document *document)
{
	char error[RINGS_ERROR_BYTES] = "";
	struct rings *rings = NULL;

	if (rings_plan(document, &rings, error) != 0)
		printf("# %s\n", error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rings);
	CU_ASSERT_EQUAL_FATAL(rings_build(rings, NULL), 0);
	return rings;
}

static struct document *document_of(const struct shape *shape)
{
	struct document *document = NULL;

	CU_ASSERT_EQUAL_FATAL(document_create(&document), 0);
	config_set(document, shape);
	return document;
}

static struct ring view_of(const struct rings *rings, uint32_t index)
{
	const struct rings_image *image = rings->items[index].image;
	const char *reason = "";
	struct ring ring = {0};

	CU_ASSERT_EQUAL_FATAL(ring_open(image->bytes_at, image->bytes, &ring, &reason), 0);
	return ring;
}

static double hottest_of(const struct ring *ring)
{
	uint64_t *arcs = calloc(ring->header->member_count, sizeof(*arcs));
	double hottest = 0;

	ring_shares(ring, arcs);
	for (uint32_t i = 0; i < ring->header->member_count; i++)
		hottest = fmax(hottest, (double)arcs[i] / 0x1p32 * ring->header->member_count);
	free(arcs);
	return hottest;
}

static double churn_of(const struct rings *before, const struct rings *after)
{
	struct ring a = view_of(before, 0), b = view_of(after, 0);

	return (double)ring_churn(&a, &b, NULL, NULL) / 0x1p32;
}

static void v3_rings_are_balanced_and_filed(void)
{
	struct document *document = document_of(&whole);
	struct rings *rings = rings_of(document);
	struct ring ring = view_of(rings, 0);

	CU_ASSERT_EQUAL(rings->count, 2);
	CU_ASSERT_EQUAL(document->balanced_count, 2);
	CU_ASSERT(hottest_of(&ring) < 1.03);
	rings_free(rings);
	document_free(document);
}

static void other_versions_file_nothing(void)
{
	struct shape shape = whole;

	shape.ring = "{version: v2, points: 16}";
	struct document *document = document_of(&shape);
	struct rings *rings = rings_of(document);

	CU_ASSERT_EQUAL(document->balanced_count, 0);
	rings_free(rings);
	document_free(document);
}

// Through text and back, as a restart does.
static void lanes_survive_the_store(void)
{
	struct document *document = document_of(&whole), *again = NULL;
	struct rings *rings = rings_of(document), *same;
	struct config_report report;
	size_t length;
	char *text;

	CU_ASSERT_EQUAL_FATAL(document_write(document, &text, &length), 0);
	config_report_init(&report, "store", text, length);
	CU_ASSERT_EQUAL_FATAL(document_read(&report, &again), 0);
	same = rings_of(again);
	CU_ASSERT_EQUAL(
		memcmp(rings->items[0].digest, same->items[0].digest, RING_DIGEST_BYTES), 0);
	CU_ASSERT_EQUAL(
		memcmp(rings->items[1].digest, same->items[1].digest, RING_DIGEST_BYTES), 0);
	config_report_free(&report);
	free(text);
	rings_free(rings);
	rings_free(same);
	document_free(document);
	document_free(again);
}

static void change_moves_little(const struct shape *shape, double unavoidable)
{
	struct document *document = document_of(&whole);
	struct rings *before = rings_of(document), *after;
	struct document *next = document_copy(document);

	CU_ASSERT_PTR_NOT_NULL_FATAL(next);
	config_set(next, shape);
	after = rings_of(next);
	double churn = churn_of(before, after) / unavoidable;

	printf("# churn %.3f of the unavoidable\n", churn);
	CU_ASSERT(churn > 0.9);
	CU_ASSERT(churn <= 1.25);
	CU_ASSERT_EQUAL(next->balanced_count, 2);
	rings_free(before);
	rings_free(after);
	document_free(document);
	document_free(next);
}

static void a_backend_that_leaves_moves_little(void)
{
	struct shape shape = whole;

	shape.missing = 100;
	change_moves_little(&shape, 1.0 / BACKENDS);
}

static void a_weight_that_doubles_moves_little(void)
{
	struct shape shape = whole;

	shape.weight = 2;
	change_moves_little(&shape, 1.0 / (BACKENDS + 1));
}

static void nothing_moves_when_nothing_changed(void)
{
	struct document *document = document_of(&whole);
	struct rings *before = rings_of(document), *after;
	struct document *next = document_copy(document);

	config_set(next, &whole);
	after = rings_of(next);
	CU_ASSERT_EQUAL(
		memcmp(before->items[0].digest, after->items[0].digest, RING_DIGEST_BYTES), 0);
	rings_free(before);
	rings_free(after);
	document_free(document);
	document_free(next);
}

// v2 to v3 by a cutover: while both rings stand, and after the old one is gone, the new one has the same points.
static void retired_cutover_keeps_the_new_ring(void)
{
	struct shape shape = whole;
	uint8_t digest[RING_DIGEST_BYTES];

	shape.ring = "{version: v2, points: 16}";
	struct document *document = document_of(&shape);
	struct document_cutover *cutover = document_cutover_add(document, "web");

	CU_ASSERT_PTR_NOT_NULL_FATAL(cutover);
	cutover->ring = (struct config_ring){
		.version = RING_V3, .points = 16, .balance = CONFIG_BALANCE_DEFAULT};
	struct rings *rings = rings_of(document);

	CU_ASSERT_EQUAL(rings->count, 4);
	CU_ASSERT_EQUAL(document->balanced_count, 2);
	memcpy(digest, rings->items[rings->services[0].ring_new].digest, sizeof(digest));
	rings_free(rings);

	document->config.pools[0].ring = document->cutovers[0].ring;
	document_cutover_remove(document, &document->cutovers[0]);
	rings = rings_of(document);
	CU_ASSERT_EQUAL(
		memcmp(digest, rings->items[rings->services[0].ring_old].digest, sizeof(digest)),
		0);
	CU_ASSERT_EQUAL(document->balanced_count, 2);
	CU_ASSERT_FALSE(document->balanced[0].is_new);
	rings_free(rings);
	document_free(document);
}

static void damaged_lanes_are_chosen_anew(void)
{
	static const char *const damages[] = {"", "10.0.0.1", "10.0.0.1 0 1 0 zz",
		"10.0.0.1 0 1 0 1 more", "10.0.0.1 70000 1 0 1", "10.0.0.1.1 0 1 0 1"};

	for (unsigned i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct document *document = document_of(&whole);
		struct rings *rings = rings_of(document);

		rings_free(rings);
		document->balanced[0].lanes[3] = damages[i];
		rings = rings_of(document);
		struct ring ring = view_of(rings, 0);

		CU_ASSERT(hottest_of(&ring) < 1.03);
		CU_ASSERT_STRING_NOT_EQUAL(document->balanced[0].lanes[3], damages[i]);
		rings_free(rings);
		document_free(document);
	}
}

int main(void)
{
	static const struct test_case cases[] = {
		{"v3_rings_are_balanced_and_filed", v3_rings_are_balanced_and_filed},
		{"other_versions_file_nothing", other_versions_file_nothing},
		{"lanes_survive_the_store", lanes_survive_the_store},
		{"a_backend_that_leaves_moves_little", a_backend_that_leaves_moves_little},
		{"a_weight_that_doubles_moves_little", a_weight_that_doubles_moves_little},
		{"nothing_moves_when_nothing_changed", nothing_moves_when_nothing_changed},
		{"retired_cutover_keeps_the_new_ring", retired_cutover_keeps_the_new_ring},
		{"damaged_lanes_are_chosen_anew", damaged_lanes_are_chosen_anew},
	};

	return SUITE_RUN("lanes", cases);
}
