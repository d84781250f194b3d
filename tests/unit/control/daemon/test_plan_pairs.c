// SPDX-License-Identifier: Apache-2.0
// What a plan compares: every service's rings before and after, also where subsets part, join or stay.
#include "tests/unit/control/daemon/node_fixture.h"

#include "control/daemon/plan_pairs.h"
#include "control/ring/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const tags[] = {"x"};

// pools_text, and c has the tag x, too: the ring of those that need x is the ring of all.
static struct node *all_tagged(void)
{
	static const char c[] = "address: 10.0.0.3";
	char text[POOLS_TEXT_BYTES];
	const char *end = strstr(pools_text, c) + strlen(c);
	struct node *node = fresh();

	snprintf(text, sizeof(text), "%.*s, tags: [x]%s", (int)(end - pools_text), pools_text, end);
	CU_ASSERT_EQUAL(apply(node, text), NODE_OK);
	return node;
}

// The pairs of a cutover of "web" to a v1 ring in which c has so many tags and this weight. The caller frees both.
static struct plan_pairs *pairs_of(
	struct node *node, uint32_t tag_count, uint32_t weight, struct node_preview **ret_preview)
{
	struct plan_pairs *pairs = calloc(1, sizeof(*pairs));
	struct config_backend members[3];
	struct node_cutover wanted = {.pool = "web",
		.has_ring = true,
		.ring = {.version = RING_V1},
		.backends = members,
		.backend_count = 3};
	struct node_outcome outcome = {0};

	memcpy(members, node_document(node)->pools->pools[0].backends, sizeof(members));
	members[2].tags = (const char **)(uintptr_t)tags;
	members[2].tag_count = tag_count;
	members[2].weight = weight;
	CU_ASSERT_EQUAL_FATAL(node_preview(node, &wanted, ret_preview, &outcome), NODE_OK);
	CU_ASSERT_EQUAL(plan_pairs_measure(*ret_preview, "web", NULL, pairs), 0);
	return pairs;
}

static uint64_t bytes_of(const struct node_ring *ring)
{
	return ring->ring->header->bytes;
}

// Every 2^12th hash asked of both rings.
static void assert_churn(const struct plan_pairs *pairs, uint32_t index)
{
	const struct ring *before = pairs->items[index].before->ring;
	const struct ring *after = pairs->items[index].after->ring;
	uint32_t moved = 0;

	for (uint64_t hash = 0; hash < RING_CIRCLE; hash += 4096)
		moved += ring_member(before, ring_lookup(before, (uint32_t)hash)) !=
			ring_member(after, ring_lookup(after, (uint32_t)hash));
	CU_ASSERT_DOUBLE_EQUAL(
		pairs->rings[index].churn, moved / (double)(RING_CIRCLE / 4096), 0.002);
	CU_ASSERT_TRUE(isnan(pairs->rings[index].churn_traffic));
}

static void subsets_that_part_are_two_pairs(void)
{
	struct node *node = all_tagged();
	struct node_preview *preview;
	struct plan_pairs *pairs = pairs_of(node, 0, 1, &preview);

	CU_ASSERT_EQUAL_FATAL(pairs->count, 2);
	CU_ASSERT_PTR_EQUAL(pairs->items[0].before, pairs->items[1].before);
	CU_ASSERT_STRING_EQUAL(pairs->rings[0].name, "-");
	CU_ASSERT_STRING_EQUAL(pairs->rings[1].name, "x");
	CU_ASSERT_EQUAL(pairs->rings[0].services, 3);
	CU_ASSERT_EQUAL(pairs->rings[1].services, 1);
	// Those that need any backend notice nothing: their ring is in use already.
	CU_ASSERT_PTR_EQUAL(pairs->items[0].before, pairs->items[0].after);
	CU_ASSERT_EQUAL(pairs->rings[0].churn, 0);
	CU_ASSERT_TRUE(pairs->rings[1].churn > 0.1);
	assert_churn(pairs, 0);
	assert_churn(pairs, 1);
	CU_ASSERT_EQUAL(pairs->bytes_now, bytes_of(pairs->items[0].before));
	CU_ASSERT_EQUAL(pairs->bytes_after,
		bytes_of(pairs->items[0].after) + bytes_of(pairs->items[1].after));
	CU_ASSERT_EQUAL(pairs->bytes_during, pairs->bytes_after);
	free(pairs);
	node_preview_free(preview);
	node_close(node);
}

static void subsets_that_join_are_two_pairs(void)
{
	struct node *node = fresh();
	struct node_preview *preview;
	struct plan_pairs *pairs = pairs_of(node, 1, 4, &preview);

	CU_ASSERT_EQUAL_FATAL(pairs->count, 2);
	CU_ASSERT_PTR_EQUAL(pairs->items[0].after, pairs->items[1].after);
	CU_ASSERT_PTR_NOT_EQUAL(pairs->items[0].before, pairs->items[1].before);
	assert_churn(pairs, 0);
	assert_churn(pairs, 1);
	CU_ASSERT_TRUE(pairs->rings[1].churn > pairs->rings[0].churn);
	CU_ASSERT_EQUAL(pairs->bytes_after, bytes_of(pairs->items[0].after));
	CU_ASSERT_EQUAL(pairs->bytes_during, pairs->bytes_now + pairs->bytes_after);
	free(pairs);
	node_preview_free(preview);
	node_close(node);
}

static void a_subset_that_stays_is_a_pair_of_one_ring(void)
{
	struct node *node = fresh();
	struct node_preview *preview;
	struct plan_pairs *pairs = pairs_of(node, 0, 4, &preview);

	CU_ASSERT_EQUAL_FATAL(pairs->count, 2);
	CU_ASSERT_PTR_EQUAL(pairs->items[1].before, pairs->items[1].after);
	CU_ASSERT_EQUAL(pairs->rings[1].churn, 0);
	CU_ASSERT_TRUE(pairs->rings[0].churn > 0.1);
	assert_churn(pairs, 0);
	CU_ASSERT_EQUAL(pairs->bytes_during, pairs->bytes_now + bytes_of(pairs->items[0].after));
	free(pairs);
	node_preview_free(preview);
	node_close(node);
}

static const struct test_case cases[] = {
	SUITE_CASE(subsets_that_part_are_two_pairs),
	SUITE_CASE(subsets_that_join_are_two_pairs),
	SUITE_CASE(a_subset_that_stays_is_a_pair_of_one_ring),
};

int main(void)
{
	return fixture_run("plan pairs", cases, sizeof(cases) / sizeof(cases[0]));
}
