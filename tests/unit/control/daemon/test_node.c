// SPDX-License-Identifier: Apache-2.0
// The node without a dataplane: what is committed, what is refused, what the snapshot says.
#include "common/selection.h"
#include "control/config/edit.h"
#include "control/ring/walk.h"
#include "control/store/store.h"
#include "tests/unit/control/daemon/node_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *backend_name(const struct node *node, uint32_t id)
{
	const struct document_id *found =
		document_id_name(node_document(node), DOCUMENT_BACKEND, id);

	return found == NULL ? "none" : found->name;
}

// Flows of 3,000 that go to a backend.
static unsigned flows_of(const struct node *node, const char *name)
{
	unsigned count = 0;

	for (uint32_t n = 0; n < 3000; n++) {
		struct flow_key key = flow_to("203.0.113.1", 80, IPPROTO_TCP, n);
		struct ipc_explained explained;

		node_explain(node, &key, &explained);
		count += strcmp(backend_name(node, explained.backend), name) == 0;
	}
	return count;
}

static void snapshot_says_what_the_configuration_says(void)
{
	struct node *node = fresh();
	const struct snapshot *snapshot = node_snapshot(node);
	const struct document_id *some =
		document_id_find(node_document(node), DOCUMENT_SERVICE, "", "some");
	const struct document_id *net =
		document_id_find(node_document(node), DOCUMENT_SERVICE, "", "net");

	CU_ASSERT_EQUAL(snapshot->binding_count, 4);
	CU_ASSERT_EQUAL(snapshot->backend_count, 3);
	// Two services without tags share one ring; the one that requires x has its own.
	CU_ASSERT_EQUAL(snapshot->ring_count, 2);
	CU_ASSERT_EQUAL(
		snapshot->rings[snapshot->services[some->id].ring_old].header->member_count, 2);
	CU_ASSERT_EQUAL(snapshot->services[some->id].ring_new, SNAPSHOT_NO_RING);
	CU_ASSERT_EQUAL(
		snapshot->services[net->id].flags, SNAPSHOT_USED | SNAPSHOT_SERVICE_STATELESS);
	CU_ASSERT_EQUAL(snapshot->services[some->id].idle_udp_s, 60);
	CU_ASSERT_EQUAL(snapshot->header->generation, node_document(node)->snapshot_generation);
	node_close(node);
}

static void most_specific_binding_serves(void)
{
	struct node *node = fresh();
	const struct {
		const char *address;
		uint16_t port;
		uint8_t protocol;
		const char *service;
	} flows[] = {
		{"203.0.113.1", 80, IPPROTO_TCP, "http"},
		{"203.0.113.1", 443, IPPROTO_TCP, "https"},
		{"203.0.113.1", 81, IPPROTO_TCP, "net"},
		{"203.0.113.9", 80, IPPROTO_TCP, "net"},
		{"203.0.113.2", 53, IPPROTO_UDP, "some"},
		{"203.0.113.1", 53, IPPROTO_UDP, NULL},
		{"203.0.114.1", 80, IPPROTO_TCP, NULL},
	};

	for (unsigned i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct flow_key key =
			flow_to(flows[i].address, flows[i].port, flows[i].protocol, i);
		struct ipc_explained explained;

		node_explain(node, &key, &explained);
		if (flows[i].service == NULL) {
			CU_ASSERT_EQUAL(explained.verdict, IPC_EXPLAIN_NO_SERVICE);
			continue;
		}
		CU_ASSERT_EQUAL(explained.verdict, IPC_EXPLAIN_FORWARD);
		CU_ASSERT_STRING_EQUAL(
			document_id_name(node_document(node), DOCUMENT_SERVICE, explained.service)
				->name,
			flows[i].service);
	}
	node_close(node);
}

static void bad_file_changes_nothing(void)
{
	struct node *node = fresh();
	uint64_t generation = node_document(node)->generation;
	uint64_t checksum = node_snapshot(node)->header->checksum;

	CU_ASSERT_EQUAL(apply(node, "pools: [{name: web}]\n"), NODE_INVALID);
	CU_ASSERT_EQUAL(apply(node, "pools: [\n"), NODE_INVALID);
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	CU_ASSERT_EQUAL(node_snapshot(node)->header->checksum, checksum);
	node_close(node);
}

static void applying_the_same_again_is_no_change(void)
{
	struct node *node = fresh();
	uint64_t generation = node_document(node)->generation;

	CU_ASSERT_EQUAL(apply(node, pools_text), NODE_OK);
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	node_close(node);
}

static void stale_generation_is_a_conflict(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("apply");

	request.generation = node_document(node)->generation - 1;
	CU_ASSERT_EQUAL(apply_as(node, &request, "pools: []\n"), NODE_CONFLICT);
	CU_ASSERT_EQUAL(node_document(node)->pools->pool_count, 1);
	node_close(node);
}

static void other_writer_wins_and_is_taken_over(void)
{
	struct node *one = fresh();
	struct node *two = node_start();
	struct node_request request = request_of("backend.set");
	struct config_backend drain = {.name = "a", .state = CONFIG_BACKEND_DRAIN};
	struct config_backend weight = {.name = "b", .weight = 7};
	struct node_outcome outcome;

	CU_ASSERT_EQUAL(node_backend_set(one, &request, "web", &drain, CONFIG_EDIT_STATE, &outcome),
		NODE_OK);
	node_outcome_free(&outcome);
	CU_ASSERT_EQUAL(
		node_backend_set(two, &request, "web", &weight, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_CONFLICT);
	node_outcome_free(&outcome);
	CU_ASSERT_EQUAL(node_document(two)->generation, node_document(one)->generation);
	CU_ASSERT_EQUAL(
		node_backend_set(two, &request, "web", &weight, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_OK);
	node_outcome_free(&outcome);
	CU_ASSERT_EQUAL(config_backend_find(&node_document(two)->pools->pools[0], "a")->state,
		CONFIG_BACKEND_DRAIN);
	node_close(one);
	node_close(two);
}

static void dry_run_says_and_changes_nothing(void)
{
	struct node *node = fresh();
	uint64_t generation = node_document(node)->generation;
	struct node_request request = request_of("backend.set");
	struct config_backend weight = {.name = "b", .weight = 7};
	struct node_outcome outcome;

	request.dry_run = true;
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &weight, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_OK);
	CU_ASSERT_TRUE(outcome.changed);
	CU_ASSERT_EQUAL(outcome.diff->change_count, 1);
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	node_outcome_free(&outcome);
	node_close(node);
}

static void verbs_cannot_make_what_a_file_could_not(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("backend.set");
	struct config_backend bad = {.name = "b", .weight = 0};
	struct config_backend twin = {.name = "d", .weight = 1};
	struct node_outcome outcome;

	CU_ASSERT_EQUAL(node_backend_set(node, &request, "web", &bad, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "state: drain"));
	addr_parse("10.0.0.3", &twin.address);
	CU_ASSERT_EQUAL(node_backend_add(node, &request, "web", &twin, &outcome), NODE_INVALID);
	twin.name = "not a name";
	addr_parse("10.0.0.4", &twin.address);
	CU_ASSERT_EQUAL(node_backend_add(node, &request, "web", &twin, &outcome), NODE_INVALID);
	CU_ASSERT_EQUAL(node_backend_add(node, &request, "wbe", &twin, &outcome), NODE_NOT_FOUND);
	CU_ASSERT_EQUAL(node_backend_remove(node, &request, "web", "z", &outcome), NODE_NOT_FOUND);
	node_close(node);
}

static void draining_backend_gets_no_new_flows_and_keeps_its_points(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("backend.set");
	struct config_backend change = {.name = "b", .state = CONFIG_BACKEND_DRAIN};
	const struct snapshot *snapshot = node_snapshot(node);
	uint8_t digest[RING_DIGEST_BYTES];
	unsigned a = flows_of(node, "a"), b = flows_of(node, "b");
	struct node_outcome outcome;

	memcpy(digest, snapshot->rings[0].header->points_digest, sizeof(digest));
	CU_ASSERT_TRUE(b > 300);
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &change, CONFIG_EDIT_STATE, &outcome),
		NODE_OK);
	node_outcome_free(&outcome);
	snapshot = node_snapshot(node);
	CU_ASSERT_EQUAL(
		memcmp(digest, snapshot->rings[0].header->points_digest, sizeof(digest)), 0);
	CU_ASSERT_EQUAL(snapshot->rings[0].header->usable_count, 2);
	CU_ASSERT_EQUAL(flows_of(node, "b"), 0);
	CU_ASSERT_TRUE(flows_of(node, "a") >= a);
	change.state = CONFIG_BACKEND_UP;
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &change, CONFIG_EDIT_STATE, &outcome),
		NODE_OK);
	CU_ASSERT_EQUAL(flows_of(node, "b"), b);
	CU_ASSERT_EQUAL(flows_of(node, "a"), a);
	node_outcome_free(&outcome);
	node_close(node);
}

static void all_down_says_no_backend(void)
{
	struct node *node = fresh();
	struct flow_key key = flow_to("203.0.113.1", 80, IPPROTO_TCP, 1);
	struct ipc_explained explained;
	char text[sizeof(pools_text) + 64];
	char *at;

	memcpy(text, pools_text, sizeof(pools_text));
	for (char letter = '1'; letter <= '3'; letter++) {
		char address[16];

		snprintf(address, sizeof(address), "10.0.0.%c", letter);
		at = strstr(text, address);
		CU_ASSERT_PTR_NOT_NULL_FATAL(at);
		if (at == NULL)
			return;
		at += strlen(address);
		memmove(at + 13, at, strlen(at) + 1);
		memcpy(at, ", state: down", 13);
	}
	CU_ASSERT_EQUAL(apply(node, text), NODE_OK);
	node_explain(node, &key, &explained);
	CU_ASSERT_EQUAL(explained.verdict, IPC_EXPLAIN_NO_BACKEND);
	node_close(node);
}

static void another_ring_at_once_is_refused_without_force(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("apply");
	char text[sizeof(pools_text)];

	memcpy(text, pools_text, sizeof(text));
	*(strstr(text, "v1") + 1) = '2';
	CU_ASSERT_EQUAL(apply(node, text), NODE_REFUSED);
	CU_ASSERT_EQUAL(node_document(node)->pools->pools[0].ring.version, RING_V1);
	request.force = true;
	CU_ASSERT_EQUAL(apply_as(node, &request, text), NODE_OK);
	CU_ASSERT_EQUAL(node_document(node)->pools->pools[0].ring.version, RING_V2);
	node_close(node);
}

static void restart_makes_the_same_snapshot(void)
{
	struct node *node = fresh();
	uint64_t checksum, generation;

	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 250000), NODE_OK);
	checksum = node_snapshot(node)->header->checksum;
	generation = node_document(node)->generation;
	node_close(node);
	node = node_start();
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	CU_ASSERT_EQUAL(node_snapshot(node)->header->checksum, checksum);
	CU_ASSERT_EQUAL(snapshot_threshold(&node_snapshot(node)->pools[0]), gate_threshold(250000));
	node_close(node);
}

static int entry_count(
	void *context, uint64_t number, const char *entry, const uint8_t hash[STORE_HASH_BYTES])
{
	unsigned *found = context;

	(void)number;
	(void)hash;
	*found += strstr(entry, "\"verb\":\"cutover.set\"") != NULL &&
		strstr(entry, "0% -> 25%") != NULL && strstr(entry, "\"reason\":\"test\"") != NULL;
	return 0;
}

// A pool of v3 with equal backends, all but the one that a number names.
static void v3_text(char *ret, size_t room, unsigned count, unsigned left_out)
{
	size_t used = (size_t)snprintf(ret, room,
		"services:\n"
		"  - {name: all, address: 203.0.113.1, protocol: tcp, pool: web}\n"
		"  - {name: same, address: 203.0.113.2, protocol: tcp, pool: web, requires: [x]}\n"
		"pools:\n- name: web\n  ring: {version: v3}\n  backends:\n");

	for (unsigned i = 0; i < count; i++) {
		if (i != left_out)
			used += (size_t)snprintf(ret + used, room - used,
				"  - {name: b%u, address: 10.0.%u.%u, tags: [x]}\n", i, i / 256,
				i % 256);
	}
}

static double hottest(const struct ring *ring)
{
	uint32_t members = ring->header->member_count;
	uint64_t *arcs = calloc(members, sizeof(*arcs));
	uint64_t most = 0;

	ring_shares(ring, arcs);
	for (uint32_t i = 0; i < members; i++)
		most = arcs[i] > most ? arcs[i] : most;
	free(arcs);
	return (double)most * members / (double)RING_CIRCLE;
}

static void v3_is_balanced_and_a_change_moves_little(void)
{
	static char text[65536];
	struct node *node = fresh();
	struct ring before, after;
	const char *reason;
	void *kept;
	double moved;

	v3_text(text, sizeof(text), 500, UINT32_MAX);
	CU_ASSERT_EQUAL_FATAL(apply(node, "pools: []\n"), NODE_OK);
	CU_ASSERT_EQUAL_FATAL(apply(node, text), NODE_OK);
	// Tags that choose all members make no ring of their own.
	CU_ASSERT_EQUAL(node_snapshot(node)->ring_count, 1);
	CU_ASSERT_TRUE(hottest(&node_snapshot(node)->rings[0]) < 1.03);
	kept = aligned_alloc(RING_ALIGN, node_snapshot(node)->rings[0].header->bytes);
	memcpy(kept, node_snapshot(node)->rings[0].header,
		node_snapshot(node)->rings[0].header->bytes);
	CU_ASSERT_EQUAL_FATAL(
		ring_open(kept, ((struct ring_header *)kept)->bytes, &before, &reason), 0);

	v3_text(text, sizeof(text), 500, 17);
	CU_ASSERT_EQUAL(apply(node, text), NODE_OK);
	after = node_snapshot(node)->rings[0];
	moved = (double)ring_churn(&before, &after, NULL, NULL) / (double)RING_CIRCLE;
	CU_ASSERT_TRUE(moved >= 0.9 / 500 && moved < 2.0 / 500);
	CU_ASSERT_TRUE(hottest(&after) < 1.10);
	free(kept);
	node_close(node);
}

static void restart_keeps_what_was_chosen(void)
{
	static char text[65536];
	struct node *node = fresh();
	uint8_t digest[RING_DIGEST_BYTES];
	uint64_t checksum;

	CU_ASSERT_EQUAL_FATAL(apply(node, "pools: []\n"), NODE_OK);
	v3_text(text, sizeof(text), 100, UINT32_MAX);
	CU_ASSERT_EQUAL_FATAL(apply(node, text), NODE_OK);
	// The repaired ring is not the one that would be chosen anew: history is in the document.
	v3_text(text, sizeof(text), 100, 3);
	CU_ASSERT_EQUAL_FATAL(apply(node, text), NODE_OK);
	memcpy(digest, node_snapshot(node)->rings[0].header->spec_digest, sizeof(digest));
	checksum = node_snapshot(node)->header->checksum;
	node_close(node);
	node = node_start();
	CU_ASSERT_EQUAL(node_snapshot(node)->header->checksum, checksum);
	CU_ASSERT_EQUAL(apply(node, "pools: []\n"), NODE_OK);
	CU_ASSERT_EQUAL(node_document(node)->balanced_count, 0);
	CU_ASSERT_EQUAL(apply(node, text), NODE_OK);
	CU_ASSERT_NOT_EQUAL(
		memcmp(digest, node_snapshot(node)->rings[0].header->spec_digest, sizeof(digest)),
		0);
	node_close(node);
}

static void apply_says_which_runtime_changes_it_undoes(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("backend.set");
	struct config_backend drain = {.name = "b", .state = CONFIG_BACKEND_DRAIN};
	struct node_outcome outcome;
	struct config_report report;

	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &drain, CONFIG_EDIT_STATE, &outcome),
		NODE_OK);
	node_outcome_free(&outcome);
	config_report_init(&report, "pools.yaml", pools_text, strlen(pools_text));
	CU_ASSERT_EQUAL(node_apply(node, &request, &report, &outcome), NODE_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "undoes 1 change"));
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "pools.web.backends.b.state"));
	node_outcome_free(&outcome);
	config_report_free(&report);
	node_close(node);
}

static void lost_store_is_not_filled_with_an_empty_document(void)
{
	struct node *node = fresh();
	uint64_t generation = node_document(node)->generation;
	struct node_request request = request_of("backend.set");
	struct config_backend drain = {.name = "b", .state = CONFIG_BACKEND_DRAIN};
	struct node_outcome outcome;
	char *text = NULL;
	size_t length;
	uint64_t found;
	char path[128];

	snprintf(path, sizeof(path), "%s/document", store_path);
	nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	mkdir(path, 0700);
	// The commit finds another generation than it expected, and the look after it finds nothing.
	CU_ASSERT_NOT_EQUAL(
		node_backend_set(node, &request, "web", &drain, CONFIG_EDIT_STATE, &outcome),
		NODE_OK);
	node_outcome_free(&outcome);
	CU_ASSERT_EQUAL(node_document(node)->generation, generation);
	CU_ASSERT_EQUAL(store_read(node_store(node), 0, &text, &length, &found), -ENOENT);
	node_close(node);
}

static void dry_run_predicts_what_the_change_then_moves(void)
{
	static struct picks before, after;
	struct node *node = fresh();
	struct node_request request = request_of("backend.set");
	struct config_backend change = {.name = "b", .weight = 3, .state = CONFIG_BACKEND_UP};
	struct node_outcome outcome;
	double predicted, measured;
	unsigned moved = 0;

	request.dry_run = true;
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &change, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_OK);
	CU_ASSERT_EQUAL_FATAL(outcome.move_count, 2);
	CU_ASSERT_STRING_EQUAL(outcome.moves[0].ring, "web");
	CU_ASSERT_STRING_EQUAL(outcome.moves[1].ring, "web+x");
	predicted = outcome.moves[0].moved;
	// From 1 of 4 to 3 of 6 of the weight: about a quarter moves, all of it to b.
	CU_ASSERT_TRUE(predicted > 0.15 && predicted < 0.35);
	CU_ASSERT_TRUE(outcome.moves[0].hottest_after >= 1 && outcome.moves[0].hottest_after < 1.3);
	node_outcome_free(&outcome);
	picks_take(node, &before);
	request.dry_run = false;
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &change, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_OK);
	node_outcome_free(&outcome);
	picks_take(node, &after);
	for (unsigned n = 0; n < 3000; n++)
		moved += before.backend[n] != after.backend[n];
	measured = moved / 3000.0;
	// Four standard deviations of 3,000 draws.
	CU_ASSERT_TRUE(measured > predicted - 0.033 && measured < predicted + 0.033);
	node_close(node);
}

static void every_change_is_in_the_audit_log(void)
{
	struct node *node = fresh();
	uint64_t count = 0, broken = 0;
	unsigned found = 0;

	CU_ASSERT_EQUAL(cutover(node, RING_V2, 16, 250000), NODE_OK);
	CU_ASSERT_EQUAL(apply(node, "pools: [\n"), NODE_INVALID);
	CU_ASSERT_EQUAL(store_audit_verify(node_store(node), &count, &broken), 0);
	CU_ASSERT_EQUAL(count, 2);
	CU_ASSERT_EQUAL(store_audit_list(node_store(node), 1, entry_count, &found), 0);
	CU_ASSERT_EQUAL(found, 1);
	node_close(node);
}

static void unchanged_rings_are_not_built_again(void)
{
	struct node *node = fresh();
	struct node_request request = request_of("backend.set");
	struct config_backend change = {.name = "c", .weight = 9};
	struct node_outcome outcome;

	// c is in the ring of all, not in the one that requires x.
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &change, CONFIG_EDIT_WEIGHT, &outcome),
		NODE_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "1 of 2 rings built"));
	node_outcome_free(&outcome);
	change.state = CONFIG_BACKEND_DOWN;
	CU_ASSERT_EQUAL(
		node_backend_set(node, &request, "web", &change, CONFIG_EDIT_STATE, &outcome),
		NODE_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(outcome.text, "0 of 2 rings built"));
	node_outcome_free(&outcome);
	node_close(node);
}

static void what_the_statistics_have_no_room_for_is_refused(void)
{
	struct node *node;

	config.dataplane.backends = 2;
	nftw(store_path, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	node = node_start();
	CU_ASSERT_EQUAL(apply(node, pools_text), NODE_REFUSED);
	CU_ASSERT_EQUAL(node_document(node)->pools->pool_count, 0);
	config.dataplane.backends = 65536;
	node_close(node);
}

static void absent_dataplane_is_told_and_does_not_stop_commits(void)
{
	struct node *node = fresh();

	CU_ASSERT_EQUAL(node_reconcile(node), -ENOTCONN);
	CU_ASSERT_EQUAL(node_dataplane(node)->state, NODE_DATAPLANE_ABSENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(node_dataplane(node)->text, "does not run"));
	CU_ASSERT_EQUAL(cutover(node, RING_V3, 0, 1), NODE_OK);
	node_close(node);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"snapshot_says_what_the_configuration_says",
			snapshot_says_what_the_configuration_says},
		{"most_specific_binding_serves", most_specific_binding_serves},
		{"bad_file_changes_nothing", bad_file_changes_nothing},
		{"applying_the_same_again_is_no_change", applying_the_same_again_is_no_change},
		{"stale_generation_is_a_conflict", stale_generation_is_a_conflict},
		{"other_writer_wins_and_is_taken_over", other_writer_wins_and_is_taken_over},
		{"dry_run_says_and_changes_nothing", dry_run_says_and_changes_nothing},
		{"verbs_cannot_make_what_a_file_could_not",
			verbs_cannot_make_what_a_file_could_not},
		{"draining_backend_gets_no_new_flows_and_keeps_its_points",
			draining_backend_gets_no_new_flows_and_keeps_its_points},
		{"all_down_says_no_backend", all_down_says_no_backend},
		{"another_ring_at_once_is_refused_without_force",
			another_ring_at_once_is_refused_without_force},
		{"restart_makes_the_same_snapshot", restart_makes_the_same_snapshot},
		{"v3_is_balanced_and_a_change_moves_little",
			v3_is_balanced_and_a_change_moves_little},
		{"restart_keeps_what_was_chosen", restart_keeps_what_was_chosen},
		{"apply_says_which_runtime_changes_it_undoes",
			apply_says_which_runtime_changes_it_undoes},
		{"lost_store_is_not_filled_with_an_empty_document",
			lost_store_is_not_filled_with_an_empty_document},
		{"dry_run_predicts_what_the_change_then_moves",
			dry_run_predicts_what_the_change_then_moves},
		{"every_change_is_in_the_audit_log", every_change_is_in_the_audit_log},
		{"unchanged_rings_are_not_built_again", unchanged_rings_are_not_built_again},
		{"what_the_statistics_have_no_room_for_is_refused",
			what_the_statistics_have_no_room_for_is_refused},
		{"absent_dataplane_is_told_and_does_not_stop_commits",
			absent_dataplane_is_told_and_does_not_stop_commits},
	};
	return fixture_run("node", cases, sizeof(cases) / sizeof(cases[0]));
}
