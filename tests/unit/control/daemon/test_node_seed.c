// SPDX-License-Identifier: Apache-2.0
// Hash seeds of rings on one node: what a file may change, what a cutover does, and what outlives a restart.
#include "tests/unit/control/daemon/node_fixture.h"

#include "control/config/writer.h"

#include <stdlib.h>
#include <string.h>

#define SEED_TEXT "00112233445566778899aabbccddeeff"

static const uint8_t seed[HASH_SEED_BYTES] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
	0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
static const uint8_t other_seed[HASH_SEED_BYTES] = {1};
static const uint8_t fleets[HASH_SEED_BYTES];

// pools_text with a hash seed in the ring of "web".
static void seeded_text(char ret[POOLS_TEXT_BYTES], const char *digits)
{
	const char *end = strchr(strstr(pools_text, "ring: {"), '}');

	snprintf(ret, POOLS_TEXT_BYTES, "%.*s, hash_seed: %s%s", (int)(end - pools_text),
		pools_text, digits, end);
}

// Sets the cutover of "web" to the ring it has under another seed.
static enum node_code seed_cutover(
	struct node *node, const uint8_t hash_seed[HASH_SEED_BYTES], uint32_t share)
{
	struct node_request request = request_of("cutover.set");
	struct node_cutover wanted = {.pool = "web",
		.has_ring = true,
		.ring = node_document(node)->pools->pools[0].ring,
		.has_share = true,
		.share = share};
	struct node_outcome outcome;
	enum node_code code;

	memcpy(wanted.ring.hash_seed, hash_seed, HASH_SEED_BYTES);
	code = node_cutover_set(node, &request, &wanted, &outcome);
	node_outcome_free(&outcome);
	return code;
}

static void retire(struct node *node)
{
	struct node_request request = request_of("cutover.retire");
	struct node_outcome outcome;

	CU_ASSERT_EQUAL(node_cutover_retire(node, &request, "web", &outcome), NODE_OK);
	node_outcome_free(&outcome);
}

static unsigned moved(const struct picks *a, const struct picks *b)
{
	unsigned count = 0;

	for (unsigned n = 0; n < 3000; n++)
		count += a->backend[n] != b->backend[n];
	return count;
}

// What a flow gets from a ring under a seed, worked out here.
static uint32_t expected(
	const struct node *node, const uint8_t hash_seed[HASH_SEED_BYTES], uint32_t n)
{
	const struct snapshot *snapshot = node_snapshot(node);
	struct hash_seed schedule = hash_seed_expand(hash_seed);
	struct flow_key key = flow_to("203.0.113.1", 80, 6, n);
	struct ipc_explained explained;

	node_explain(node, &key, &explained);
	const struct ring *ring = &snapshot->rings[snapshot->services[explained.service].ring_old];

	return ring_member(ring, ring_lookup(ring, flow_ring_hash(flow_hash(&key, &schedule))));
}

static void cutover_to_a_seed_moves_flows_one_way_and_back(void)
{
	static const uint32_t shares[] = {0, 1, 10000, 500000, 999999, 1000000};
	static struct picks before, now, last, retired;
	struct node *node = fresh();

	picks_take(node, &before);
	memset(&last, 0, sizeof(last));
	CU_ASSERT_EQUAL(node_snapshot(node)->header->ring_seeds, 0);
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		unsigned back = 0, strays = 0;

		CU_ASSERT_EQUAL(seed_cutover(node, seed, shares[i]), NODE_OK);
		picks_take(node, &now);
		for (unsigned n = 0; n < 3000; n++) {
			back += last.is_new[n] && !now.is_new[n];
			strays += !now.is_new[n] && now.backend[n] != before.backend[n];
		}
		CU_ASSERT_EQUAL(back, 0);
		CU_ASSERT_EQUAL(strays, 0);
		last = now;
	}
	CU_ASSERT_EQUAL(node_snapshot(node)->header->ring_seeds, 1);
	CU_ASSERT_TRUE(moved(&before, &now) > 1000);
	retire(node);
	picks_take(node, &retired);
	CU_ASSERT_EQUAL(memcmp(retired.backend, now.backend, sizeof(now.backend)), 0);
	for (unsigned n = 0; n < 3000; n++)
		CU_ASSERT_EQUAL(retired.backend[n], expected(node, seed, n));
	node_close(node);
}

// Document and snapshot are made anew from the store's text.
static void seeds_outlive_a_restart(void)
{
	static struct picks before, after;
	struct node *node = fresh();
	uint64_t checksum;

	CU_ASSERT_EQUAL(seed_cutover(node, seed, 500000), NODE_OK);
	picks_take(node, &before);
	checksum = node_snapshot(node)->header->checksum;
	node_close(node);
	node = node_start();
	picks_take(node, &after);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	CU_ASSERT_EQUAL(node_snapshot(node)->header->checksum, checksum);
	CU_ASSERT_EQUAL(seed_cutover(node, seed, 1000000), NODE_OK);
	retire(node);
	picks_take(node, &before);
	node_close(node);
	node = node_start();
	picks_take(node, &after);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	CU_ASSERT_EQUAL(
		memcmp(node_document(node)->pools->pools[0].ring.hash_seed, seed, sizeof(seed)), 0);
	node_close(node);
}

// The next cutover begins with the seeded ring as the old one: to a third seed, and back to the fleet's.
static void later_cutovers_go_on_from_the_seed_there_is(void)
{
	static struct picks first, now, back;
	struct node *node = fresh();

	picks_take(node, &first);
	CU_ASSERT_EQUAL(seed_cutover(node, seed, 1000000), NODE_OK);
	CU_ASSERT_EQUAL(seed_cutover(node, other_seed, 1000000), NODE_CONFLICT);
	retire(node);
	CU_ASSERT_EQUAL(seed_cutover(node, seed, 0), NODE_CONFLICT); // it has this ring already
	CU_ASSERT_EQUAL(seed_cutover(node, other_seed, 1000000), NODE_OK);
	retire(node);
	picks_take(node, &now);
	CU_ASSERT_TRUE(moved(&first, &now) > 1000);
	CU_ASSERT_EQUAL(seed_cutover(node, fleets, 1000000), NODE_OK);
	retire(node);
	picks_take(node, &back);
	CU_ASSERT_EQUAL(memcmp(first.backend, back.backend, sizeof(first.backend)), 0);
	CU_ASSERT_EQUAL(node_snapshot(node)->header->ring_seeds, 0);
	node_close(node);
}

static void file_with_another_seed_is_refused_with_the_way(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("apply");
	struct config_report report;
	struct node_outcome outcome;
	char text[POOLS_TEXT_BYTES];
	uint64_t generation = node_document(node)->generation;

	seeded_text(text, SEED_TEXT);
	config_report_init(&report, "pools.yaml", text, strlen(text));
	CU_ASSERT_EQUAL(node_apply(node, &request, &report, &outcome), NODE_REFUSED);
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "hash_seed"));
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "cutover plan"));
	CU_ASSERT_PTR_NULL(strstr(outcome.text, SEED_TEXT));
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	node_outcome_free(&outcome);
	config_report_free(&report);
	request.force = true;
	CU_ASSERT_EQUAL(apply_as(node, &request, text), NODE_OK);
	CU_ASSERT_EQUAL(
		memcmp(node_document(node)->pools->pools[0].ring.hash_seed, seed, sizeof(seed)), 0);
	node_close(node);
}

// Nobody who applies a text without secrets means to move flows, not even with force.
static void file_without_seeds_keeps_them(void)
{
	static struct picks before, after;
	struct node *node = fresh();
	struct node_request request = request_of("apply");
	char text[POOLS_TEXT_BYTES], *exported = NULL;
	size_t length;
	FILE *out = open_memstream(&exported, &length);
	uint64_t generation;

	CU_ASSERT_EQUAL(seed_cutover(node, seed, 1000000), NODE_OK);
	retire(node);
	picks_take(node, &before);
	config_pools_write(node_document(node)->pools, CONFIG_YAML, false, out);
	fclose(out);
	CU_ASSERT_PTR_NULL(strstr(exported, SEED_TEXT));
	generation = node_document(node)->generation;
	request.force = true;
	CU_ASSERT_EQUAL(apply_as(node, &request, exported), NODE_OK);
	CU_ASSERT_EQUAL(apply_as(node, &request, pools_text), NODE_OK);
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	// The seed written out is no change either.
	seeded_text(text, SEED_TEXT);
	CU_ASSERT_EQUAL(apply(node, text), NODE_OK);
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	picks_take(node, &after);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	free(exported);
	node_close(node);
}

// A balanced ring starts from the one before, and under another seed there is nothing to choose anew.
static void balanced_ring_keeps_its_points_under_another_seed(void)
{
	struct node *node = fresh();

	CU_ASSERT_EQUAL(cutover(node, RING_V3, 16, 1000000), NODE_OK);
	retire(node);
	CU_ASSERT_EQUAL(seed_cutover(node, seed, 500000), NODE_OK);
	const struct snapshot *snapshot = node_snapshot(node);
	const struct ring *old = &snapshot->rings[snapshot->services[0].ring_old];
	const struct ring *new = &snapshot->rings[snapshot->services[0].ring_new];

	CU_ASSERT_EQUAL(new->header->version, RING_V3);
	CU_ASSERT_NOT_EQUAL(new->header->seed_mark, old->header->seed_mark);
	CU_ASSERT_EQUAL_FATAL(new->header->bytes, old->header->bytes);
	CU_ASSERT_EQUAL(
		memcmp(new->header + 1, old->header + 1, old->header->bytes - sizeof(*old->header)),
		0);
	node_close(node);
}

// The fleet's seed written into a ring moves nothing and makes no second ring.
static void fleets_seed_in_a_ring_is_the_fleets(void)
{
	static struct picks before, after;
	struct node *node = fresh();

	picks_take(node, &before);
	CU_ASSERT_EQUAL(seed_cutover(node, node_document(node)->hash_seed, 500000), NODE_OK);
	picks_take(node, &after);
	CU_ASSERT_EQUAL(moved(&before, &after), 0);
	CU_ASSERT_EQUAL(node_snapshot(node)->header->ring_seeds, 0);
	node_close(node);
}

// When all rings have their own, another seed for the fleet moves no pick: the end of a rotation.
static void fleets_seed_can_be_changed_under_rings_with_their_own(void)
{
	static struct picks before, after;
	struct node *node = fresh();
	struct node_request request = request_of("apply");
	char text[POOLS_TEXT_BYTES + 64];

	snprintf(text, sizeof(text), "hash_seed: %s\n%s", "ffeeddccbbaa99887766554433221100",
		pools_text);
	CU_ASSERT_EQUAL(apply(node, text), NODE_REFUSED);
	CU_ASSERT_EQUAL(seed_cutover(node, seed, 1000000), NODE_OK);
	retire(node);
	picks_take(node, &before);
	CU_ASSERT_EQUAL(apply(node, text), NODE_REFUSED);
	request.force = true;
	CU_ASSERT_EQUAL(apply_as(node, &request, text), NODE_OK);
	CU_ASSERT_EQUAL(node_snapshot(node)->header->hash_seed[0], 0xff);
	picks_take(node, &after);
	CU_ASSERT_EQUAL(moved(&before, &after), 0);
	node_close(node);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"cutover_to_a_seed_moves_flows_one_way_and_back",
			cutover_to_a_seed_moves_flows_one_way_and_back},
		{"seeds_outlive_a_restart", seeds_outlive_a_restart},
		{"later_cutovers_go_on_from_the_seed_there_is",
			later_cutovers_go_on_from_the_seed_there_is},
		{"file_with_another_seed_is_refused_with_the_way",
			file_with_another_seed_is_refused_with_the_way},
		{"file_without_seeds_keeps_them", file_without_seeds_keeps_them},
		{"balanced_ring_keeps_its_points_under_another_seed",
			balanced_ring_keeps_its_points_under_another_seed},
		{"fleets_seed_in_a_ring_is_the_fleets", fleets_seed_in_a_ring_is_the_fleets},
		{"fleets_seed_can_be_changed_under_rings_with_their_own",
			fleets_seed_can_be_changed_under_rings_with_their_own},
	};

	return fixture_run("node_seed", cases, sizeof(cases) / sizeof(cases[0]));
}
