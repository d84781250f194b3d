// SPDX-License-Identifier: Apache-2.0
// Cutovers of one node: shares move flows one way, and the ends are where they belong.
#include "tests/unit/control/daemon/node_fixture.h"

#include <stdlib.h>
#include <string.h>

static void share_moves_flows_one_way_and_back(void)
{
	static const uint32_t shares[] = {0, 1, 10000, 100000, 500000, 999999, 1000000};
	static struct picks before, now, last;
	struct node *node = fresh();
	struct node_request request = request_of("cutover.rollback");
	struct node_outcome outcome;
	uint64_t snapshot = 0;

	picks_take(node, &before);
	memset(&last, 0, sizeof(last));
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		unsigned is_new = 0, back = 0;

		CU_ASSERT_EQUAL(cutover(node, i == 0 ? RING_V2 : 0, 16, shares[i]), NODE_OK);
		picks_take(node, &now);
		for (unsigned n = 0; n < 3000; n++) {
			is_new += now.is_new[n];
			back += last.is_new[n] && !now.is_new[n];
			if (!now.is_new[n])
				CU_ASSERT_EQUAL(now.backend[n], before.backend[n]);
		}
		CU_ASSERT_EQUAL(back, 0);
		CU_ASSERT_TRUE(labs((long)is_new - (long)(shares[i] / 1000000.0 * 3000)) < 120);
		last = now;
		// Only the first one makes a snapshot, the others move the gate in it.
		if (i == 0)
			snapshot = node_document(node)->snapshot_generation;
		CU_ASSERT_EQUAL(node_document(node)->snapshot_generation, snapshot);
		CU_ASSERT_EQUAL(node_snapshot(node)->header->generation, snapshot);
	}
	request.generation = 1; // stale, and no matter
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", false, &outcome), NODE_OK);
	picks_take(node, &now);
	CU_ASSERT_EQUAL(memcmp(&now, &before, sizeof(now)), 0);
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", false, &outcome), NODE_OK);
	CU_ASSERT_FALSE(outcome.changed);
	node_close(node);
}

static uint64_t gate_of_web(const struct node *node)
{
	return snapshot_gate(&node_snapshot(node)->pools[0]);
}

// The word of the gate, as it goes to the dataplane; it outlives the daemon, and ends with what sends flows again.
static void rollback_takes_established_flows_along(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("cutover.rollback");
	struct node_outcome outcome;

	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 500000), NODE_OK);
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", false, &outcome), NODE_OK);
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_NEVER);
	uint64_t snapshot = node_document(node)->snapshot_generation;

	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", true, &outcome), NODE_OK);
	CU_ASSERT_TRUE(outcome.changed);
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_RECALL);
	CU_ASSERT_EQUAL(node_document(node)->snapshot_generation, snapshot);
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", true, &outcome), NODE_OK);
	CU_ASSERT_FALSE(outcome.changed);
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", false, &outcome), NODE_OK);
	CU_ASSERT_FALSE(outcome.changed);
	node_close(node);
	node = node_start();
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_RECALL);
	CU_ASSERT_EQUAL(cutover(node, 0, 0, 100000), NODE_OK);
	CU_ASSERT_EQUAL(gate_of_web(node), gate_threshold(100000));
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", false, &outcome), NODE_OK);
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_NEVER);
	CU_ASSERT_EQUAL(node_cutover_rollback(node, &request, "web", true, &outcome), NODE_OK);
	CU_ASSERT_EQUAL(node_cutover_discard(node, &request, "web", &outcome), NODE_OK);
	node_outcome_free(&outcome);
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_NEVER);
	node_close(node);
}

// What the fleet says of this node stands above what the document says, the share and this alike.
static void shares_of_a_fleet_say_whether_established_flows_come_back(void)
{
	struct node_share share = {.pool = "web", .moves_established = true};
	struct node *node = fresh();

	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 0), NODE_OK);
	node_shares_set(node, &share, 1, false);
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_RECALL);
	share.share = 10000; // never with flows that go there
	node_shares_set(node, &share, 1, false);
	CU_ASSERT_EQUAL(gate_of_web(node), gate_threshold(10000));
	share.share = 0;
	share.moves_established = false;
	node_shares_set(node, &share, 1, false);
	CU_ASSERT_EQUAL(gate_of_web(node), GATE_NEVER);
	node_close(node);
}

static void cutover_ends_only_at_its_ends(void)
{
	static struct picks full, retired;
	struct node *node = fresh();
	struct node_request request = request_of("cutover.retire");
	struct node_outcome outcome;

	CU_ASSERT_EQUAL(node_cutover_retire(node, &request, "web", &outcome), NODE_NOT_FOUND);
	CU_ASSERT_EQUAL(cutover(node, 0, 0, 5), NODE_CONFLICT);
	CU_ASSERT_EQUAL(cutover(node, RING_V1, 160, 5), NODE_CONFLICT);
	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 1000001), NODE_USAGE);
	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 500000), NODE_OK);
	CU_ASSERT_EQUAL(cutover(node, RING_V2, 17, 500000), NODE_CONFLICT);
	CU_ASSERT_EQUAL(node_cutover_retire(node, &request, "web", &outcome), NODE_REFUSED);
	CU_ASSERT_EQUAL(node_cutover_discard(node, &request, "web", &outcome), NODE_REFUSED);
	CU_ASSERT_EQUAL(cutover(node, 0, 0, 1000000), NODE_OK);
	picks_take(node, &full);
	CU_ASSERT_EQUAL(node_cutover_retire(node, &request, "web", &outcome), NODE_OK);
	node_outcome_free(&outcome);
	picks_take(node, &retired);
	CU_ASSERT_EQUAL(memcmp(full.backend, retired.backend, sizeof(full.backend)), 0);
	CU_ASSERT_EQUAL(node_document(node)->cutover_count, 0);
	CU_ASSERT_EQUAL(node_document(node)->pools->pools[0].ring.version, RING_V2);
	CU_ASSERT_EQUAL(node_snapshot(node)->ring_count, 2);
	node_close(node);
}

static void pool_in_a_cutover_stays(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("apply");

	request.force = true;
	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 500000), NODE_OK);
	CU_ASSERT_EQUAL(apply_as(node, &request, "pools: []\n"), NODE_REFUSED);
	CU_ASSERT_EQUAL(node_document(node)->pools->pool_count, 1);
	node_close(node);
}

// A document that the next start would refuse is never committed, whoever asks for it.
static void what_no_node_could_read_is_refused(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("cutover.set");
	struct node_cutover wanted = {.pool = "web",
		.has_ring = true,
		.ring = {.version = RING_V2, .points = 16, .balance = 100000}};
	uint64_t generation = node_document(node)->generation;
	struct node_outcome outcome;

	for (unsigned i = 0; i < 2; i++) {
		request.dry_run = i == 0;
		CU_ASSERT_EQUAL(node_cutover_set(node, &request, &wanted, &outcome), NODE_INVALID);
		CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "only v3 has a balance"));
		node_outcome_free(&outcome);
		CU_ASSERT_EQUAL(node_document(node)->generation, generation);
		CU_ASSERT_EQUAL(node_document(node)->cutover_count, 0);
	}
	node_close(node);
	node = node_start();
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	node_close(node);
}

static void cutover_to_v3_ends_with_its_lanes(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("cutover.retire");
	struct node_outcome outcome;
	uint8_t digest[RING_DIGEST_BYTES];

	CU_ASSERT_EQUAL(cutover(node, RING_V3, 16, 1000000), NODE_OK);
	CU_ASSERT_EQUAL(node_document(node)->balanced_count, 2);
	memcpy(digest,
		node_snapshot(node)
			->rings[node_snapshot(node)->services[0].ring_new]
			.header->spec_digest,
		sizeof(digest));
	CU_ASSERT_EQUAL(node_cutover_retire(node, &request, "web", &outcome), NODE_OK);
	node_outcome_free(&outcome);
	CU_ASSERT_EQUAL(node_document(node)->balanced_count, 2);
	CU_ASSERT_EQUAL(memcmp(digest,
				node_snapshot(node)
					->rings[node_snapshot(node)->services[0].ring_old]
					.header->spec_digest,
				sizeof(digest)),
		0);
	node_close(node);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"share_moves_flows_one_way_and_back", share_moves_flows_one_way_and_back},
		{"rollback_takes_established_flows_along", rollback_takes_established_flows_along},
		{"shares_of_a_fleet_say_whether_established_flows_come_back",
			shares_of_a_fleet_say_whether_established_flows_come_back},
		{"cutover_ends_only_at_its_ends", cutover_ends_only_at_its_ends},
		{"pool_in_a_cutover_stays", pool_in_a_cutover_stays},
		{"what_no_node_could_read_is_refused", what_no_node_could_read_is_refused},
		{"cutover_to_v3_ends_with_its_lanes", cutover_to_v3_ends_with_its_lanes},
	};

	return fixture_run("node_cutover", cases, sizeof(cases) / sizeof(cases[0]));
}
