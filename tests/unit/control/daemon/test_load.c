// SPDX-License-Identifier: Apache-2.0
// What backends should get, against an oracle that asks the rings for sampled hashes; and what does not count.
#include "common/selection.h"

#include "control/config/edit.h"
#include "control/daemon/load.h"
#include "tests/unit/control/daemon/node_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define IDS_MAX 32u
#define SAMPLES 200000u

// The counters that a dataplane would have.
struct traffic {
	uint64_t services[IDS_MAX][2];
	uint64_t backends[IDS_MAX];
	uint64_t epoch;
	uint64_t random;
};

static void service_flows(void *context, uint32_t id, uint64_t *ret_old, uint64_t *ret_new)
{
	const struct traffic *traffic = context;

	*ret_old = traffic->services[id][0];
	*ret_new = traffic->services[id][1];
}

static uint64_t backend_flows(void *context, uint32_t id)
{
	return ((const struct traffic *)context)->backends[id];
}

static uint32_t id_of(const struct node *node, enum document_kind kind, const char *name)
{
	const char *pool = kind == DOCUMENT_BACKEND ? "web" : "";

	return document_id_find(node_document(node), kind, pool, name)->id;
}

static void flow(struct traffic *traffic, const struct node *node, uint32_t service, uint32_t hash)
{
	const struct snapshot *snapshot = node_snapshot(node);
	struct selection pick;

	selection_pick(
		snapshot, &snapshot->services[service], (struct selection_hash){hash, hash}, &pick);
	if (pick.backend == SELECTION_NO_BACKEND)
		return;
	traffic->services[service][pick.uses_new]++;
	traffic->backends[pick.backend]++;
}

// Flows of many clients to a service.
static void flows(
	struct traffic *traffic, const struct node *node, const char *service, unsigned count)
{
	uint32_t id = id_of(node, DOCUMENT_SERVICE, service);

	for (unsigned i = 0; i < count; i++)
		flow(traffic, node, id, (uint32_t)suite_random(&traffic->random));
}

static int look(struct load *load, const struct node *node, struct traffic *traffic)
{
	struct load_counters counters = {.context = traffic,
		.service = service_flows,
		.backend = backend_flows,
		.epoch = traffic->epoch};

	return load_look(load, node_snapshot(node), id_of(node, DOCUMENT_POOL, "web"), &counters);
}

// A new ring without a, with d; d and b have the tag x.
static void cutover_of_members(struct node *node, uint32_t share)
{
	static const char *tags[] = {"x"};
	struct config_backend members[3];
	struct config_pools *pools = node_document(node)->pools;
	struct node_request request = request_of("cutover.set");
	struct node_outcome outcome;

	memcpy(&members[0], &pools->pools[0].backends[1], 2 * sizeof(members[0]));
	members[2] = members[1];
	members[2].name = "d";
	members[2].address.bytes[3] = 4;
	members[2].weight = 3;
	members[2].tags = tags;
	members[2].tag_count = 1;
	struct node_cutover wanted = {.pool = "web",
		.has_ring = true,
		.ring = {.version = RING_V2, .points = 16},
		.backends = members,
		.backend_count = 3,
		.has_share = true,
		.share = share};

	CU_ASSERT_EQUAL_FATAL(node_cutover_set(node, &request, &wanted, &outcome), NODE_OK);
	node_outcome_free(&outcome);
}

// --- the oracle ------------------------------------------------------------------------------------------

// The part of sampled hashes that a ring gives to a backend.
static double horrible_part(const struct ring *ring, uint32_t backend)
{
	uint64_t state = 7;
	unsigned got = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		uint32_t owner = ring_lookup(ring, (uint32_t)suite_random(&state));

		got += owner != RING_NO_OWNER && ring_member(ring, owner) == backend;
	}
	return (double)got / SAMPLES;
}

static double horrible_expected(
	const struct node *node, const struct traffic *traffic, uint32_t backend)
{
	const struct snapshot *snapshot = node_snapshot(node);
	double sum = 0;

	for (uint32_t id = 0; id < snapshot->service_count; id++) {
		const struct snapshot_service *service = &snapshot->services[id];

		if (!(service->flags & SNAPSHOT_USED))
			continue;
		sum += (double)traffic->services[id][0] *
			horrible_part(&snapshot->rings[service->ring_old], backend);
		if (service->ring_new != SNAPSHOT_NO_RING)
			sum += (double)traffic->services[id][1] *
				horrible_part(&snapshot->rings[service->ring_new], backend);
	}
	return sum;
}

// Pushes each backend in turn to the top, so that the load says what it expected of it, and holds that against the oracle.
static void check_expected(const struct node *node, const struct traffic *traffic, double *ret_sum)
{
	*ret_sum = 0;
	for (uint32_t id = 0; id < node_snapshot(node)->backend_count; id++) {
		struct load *load = load_create();
		struct traffic nothing = {0}, pushed = *traffic;
		struct load_hottest hottest;

		pushed.backends[id] += 100000000;
		CU_ASSERT_EQUAL(look(load, node, &nothing), 0);
		CU_ASSERT_EQUAL(look(load, node, &pushed), 0);
		CU_ASSERT_TRUE(load_hottest(load, &hottest));
		CU_ASSERT_EQUAL(hottest.backend, id);
		double expected = horrible_expected(node, traffic, id);
		double total = (double)hottest.total - 100000000;

		// Five standard deviations of what the oracle's sample can be off.
		CU_ASSERT_TRUE(
			fabs(hottest.expected - expected) <= 5 * total * sqrt(0.25 / SAMPLES));
		CU_ASSERT_EQUAL(expected == 0, hottest.expected == 0);
		*ret_sum += hottest.expected;
		load_free(load);
	}
}

static void subset_rings_and_other_members_are_summed_up(void)
{
	struct node *node = fresh();
	struct traffic traffic = {.random = suite_seed()};
	double sum;

	cutover_of_members(node, 300000);
	// Two subset rings on each side, with loads of their own.
	flows(&traffic, node, "http", 40000);
	flows(&traffic, node, "https", 5000);
	flows(&traffic, node, "some", 20000);
	check_expected(node, &traffic, &sum);
	CU_ASSERT_DOUBLE_EQUAL(sum, 65000, 1e-3);
	node_close(node);
}

static void parts_of_a_backend_that_is_down_go_to_the_next_ones(void)
{
	static const char *const states[] = {"drain", "down"};

	for (unsigned i = 0; i < 2; i++) {
		struct node *node = fresh();
		struct traffic traffic = {.random = suite_seed()};
		struct node_request request = request_of("backend.set");
		struct config_backend backend = {
			.name = "b", .state = i == 0 ? CONFIG_BACKEND_DRAIN : CONFIG_BACKEND_DOWN};
		struct node_outcome outcome;
		double sum;

		cutover_of_members(node, 500000);
		CU_ASSERT_EQUAL_FATAL(node_backend_set(node, &request, "web", &backend,
					      CONFIG_EDIT_STATE, &outcome),
			NODE_OK);
		node_outcome_free(&outcome);
		flows(&traffic, node, "http", 10000);
		flows(&traffic, node, "some", 10000);
		CU_ASSERT_EQUAL(traffic.backends[id_of(node, DOCUMENT_BACKEND, "b")], 0);
		check_expected(node, &traffic, &sum);
		printf("# %s: %.0f of 20000 flows are expected\n", states[i], sum);
		CU_ASSERT_DOUBLE_EQUAL(sum, 20000, 1e-3);
		node_close(node);
	}
}

// --- what it says ------------------------------------------------------------------------------------------

static void many_clients_are_within_chance_and_a_hot_one_is_not(void)
{
	struct node *node = fresh();
	struct traffic traffic = {.random = suite_seed()};
	struct load *load = load_create();
	struct load_hottest hottest;
	uint32_t some = id_of(node, DOCUMENT_SERVICE, "some"), client = 0;
	const struct snapshot *snapshot;
	struct selection pick = {0};

	cutover_of_members(node, 100000);
	CU_ASSERT_EQUAL(look(load, node, &traffic), 0);
	flows(&traffic, node, "http", 20000);
	flows(&traffic, node, "some", 20000);
	CU_ASSERT_EQUAL(look(load, node, &traffic), 0);
	CU_ASSERT_TRUE(load_hottest(load, &hottest));
	CU_ASSERT_EQUAL(hottest.total, 40000);
	CU_ASSERT_TRUE((double)hottest.flows <= 1.2 * hottest.most);
	// One client of a service with affinity `client`: all its flows have one hash, which goes to b on the new ring.
	snapshot = node_snapshot(node);
	while (!pick.uses_new || pick.backend != id_of(node, DOCUMENT_BACKEND, "b")) {
		client++;
		selection_pick(snapshot, &snapshot->services[some],
			(struct selection_hash){client, client}, &pick);
	}
	for (unsigned i = 0; i < 30000; i++)
		flow(&traffic, node, some, client);
	CU_ASSERT_EQUAL(look(load, node, &traffic), 0);
	CU_ASSERT_TRUE(load_hottest(load, &hottest));
	CU_ASSERT_TRUE((double)hottest.flows > 1.2 * hottest.most);
	CU_ASSERT_TRUE(hottest.flows >= 30000);
	load_free(load);
	node_close(node);
}

static void few_flows_say_nothing(void)
{
	struct node *node = fresh();
	struct traffic traffic = {.random = 1};
	struct load *load = load_create();
	struct load_hottest hottest;

	CU_ASSERT_FALSE(load_hottest(load, &hottest));
	CU_ASSERT_EQUAL(look(load, node, &traffic), 0);
	CU_ASSERT_FALSE(load_hottest(load, &hottest));
	flows(&traffic, node, "http", 3 * 64 - 1);
	CU_ASSERT_EQUAL(look(load, node, &traffic), 0);
	CU_ASSERT_FALSE(load_hottest(load, &hottest));
	flows(&traffic, node, "http", 1);
	CU_ASSERT_EQUAL(look(load, node, &traffic), 0);
	CU_ASSERT_TRUE(load_hottest(load, &hottest));
	load_free(load);
	node_close(node);
}

static uint64_t total_of(const struct load *load)
{
	struct load_hottest hottest;

	load_hottest(load, &hottest);
	return hottest.total;
}

static void what_came_across_a_change_does_not_count(void)
{
	struct node *node = fresh();
	struct traffic traffic = {.random = 1};
	struct load *load = load_create();

	look(load, node, &traffic);
	flows(&traffic, node, "http", 1000);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 1000);
	// Another snapshot in between: nobody knows which flow asked which rings. What was counted stays.
	flows(&traffic, node, "http", 100);
	cutover_of_members(node, 500000);
	flows(&traffic, node, "http", 100);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 1000);
	flows(&traffic, node, "http", 500);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 1500);
	// The dataplane had something else in between.
	load_skip(load);
	flows(&traffic, node, "http", 100);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 1500);
	// A dataplane that started again counts from 0.
	memset(traffic.services, 0, sizeof(traffic.services));
	memset(traffic.backends, 0, sizeof(traffic.backends));
	traffic.epoch++;
	flows(&traffic, node, "http", 50);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 1500);
	flows(&traffic, node, "http", 50);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 1550);
	load_reset(load);
	CU_ASSERT_EQUAL(total_of(load), 0);
	flows(&traffic, node, "http", 5);
	look(load, node, &traffic);
	CU_ASSERT_EQUAL(total_of(load), 5);
	load_free(load);
	node_close(node);
}

static void chance_leaves_room_for_small_and_for_large_counts(void)
{
	CU_ASSERT_DOUBLE_EQUAL(load_most(0), 8.0 / 3, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(load_most(10000), 10000 + 400 + 8.0 / 3, 1e-9);
}

static const struct test_case cases[] = {
	SUITE_CASE(subset_rings_and_other_members_are_summed_up),
	SUITE_CASE(parts_of_a_backend_that_is_down_go_to_the_next_ones),
	SUITE_CASE(many_clients_are_within_chance_and_a_hot_one_is_not),
	SUITE_CASE(few_flows_say_nothing),
	SUITE_CASE(what_came_across_a_change_does_not_count),
	SUITE_CASE(chance_leaves_room_for_small_and_for_large_counts),
};

int main(void)
{
	return fixture_run("load", cases, sizeof(cases) / sizeof(cases[0]));
}
