// SPDX-License-Identifier: Apache-2.0
// Statements, roster, guards at work and the conductor, on a real file store.
#include "control/cutover/json.h"
#include "control/fleet/conductor.h"
#include "control/fleet/guards.h"
#include "control/store/backend.h"
#include "control/fleet/live.h"
#include "tests/lib/http_server.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char directory[] = "/tmp/ringway-fleet-XXXXXX";
static char path[64];

static int entry_remove(const char *name, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status, (void)type, (void)ftw;
	return remove(name);
}

static struct store *open_store(const char *node)
{
	struct config_store config = {.type = CONFIG_STORE_FILE, .path = path};
	char error[STORE_ERROR_BYTES];
	struct store *store = NULL;

	CU_ASSERT_EQUAL_FATAL(store_open(&config, node, &store, error), 0);
	return store;
}

static struct store *fresh_store(const char *node)
{
	nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	return open_store(node);
}

static uint64_t steady_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// What node NAME of a datacenter says: current, both rings, following the cutover.
static void statement(struct fleet_status *ret, const char *node, const char *datacenter,
	const struct cutover *cutover)
{
	*ret = (struct fleet_status){.generation = 7, .dataplane = FLEET_DATAPLANE_CURRENT};
	snprintf(ret->node, sizeof(ret->node), "%s", node);
	snprintf(ret->datacenter, sizeof(ret->datacenter), "%s", datacenter);
	ret->time_ms = 1;
	ret->started_ns = 5;
	ret->pool_count = 1;
	snprintf(ret->pools[0].pool, sizeof(ret->pools[0].pool), "web");
	ret->pools[0].revision = cutover->shares_revision;
	ret->pools[0].share = cutover_share(cutover, datacenter, false, NULL);
	ret->pools[0].has_new = ret->pools[0].has_old = true;
	memset(ret->pools[0].new_digest, 0x22, RING_DIGEST_BYTES);
	memset(ret->pools[0].old_digest, 0x11, RING_DIGEST_BYTES);
}

static void say(struct store *store, const struct fleet_status *status)
{
	json_t *object = fleet_status_write(status);
	char *text = json_dumps(object, JSON_COMPACT), key[128];

	snprintf(key, sizeof(key), FLEET_STATUS_PREFIX "%s", status->node);
	CU_ASSERT_EQUAL_FATAL(store_key_write(store, key, text, strlen(text)), 0);
	free(text);
	json_decref(object);
}

static void say_all(struct store *store, const struct cutover *cutover, uint64_t time_ms)
{
	static const char *const nodes[][2] = {{"a1", "ams"}, {"a2", "ams"}, {"f1", "fra"},
		{"f2", "fra"}, {"w1", "waw"}, {"w2", "waw"}};

	for (unsigned i = 0; i < 6; i++) {
		struct fleet_status status;

		statement(&status, nodes[i][0], nodes[i][1], cutover);
		status.time_ms = time_ms;
		say(store, &status);
	}
}

static void statement_reads_back(void)
{
	struct cutover cutover;
	struct fleet_status before, after;

	fixture_reach(&cutover, CUTOVER_SOAKING);
	statement(&before, "a1", "ams", &cutover);
	before.kill_switch = true;
	before.pools[0].aborts_new = 9;
	before.pools[0].load = 1250;
	snprintf(before.pools[0].load_backend, CUTOVER_NAME_BYTES, "b7");
	before.rate_count = 1;
	before.rates[0] = (struct fleet_rate){.pool = "dns", .flows_per_second = 812.25};
	before.pools[0].packets_old = 11;
	before.pools[0].packets_new = 12;
	before.pools[0].shadow_same = 13;
	before.pools[0].shadow_different = 14;
	before.pools[0].ring_bytes_old = 15;
	before.pools[0].ring_bytes_new = 16;
	before.pools[0].live_new = 21;
	before.pools[0].recalled = 22;
	before.pools[0].moves_established = true;
	before.startup_phases_ns[STARTUP_SNAPSHOT] = 17;
	before.daemon_startup_ns[DAEMON_PUBLISH] = 18;
	before.dataplane_resident_bytes = 19;
	before.daemon_resident_bytes = 20;
	json_t *object = fleet_status_write(&before);

	CU_ASSERT_EQUAL_FATAL(fleet_status_read(object, &after), 0);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	CU_ASSERT_DOUBLE_EQUAL(fleet_rate_find(&after, "dns"), 812.25, 0);
	CU_ASSERT_DOUBLE_EQUAL(fleet_rate_find(&after, "web"), 0, 0);
	json_object_set_new(object, "node", json_integer(7));
	CU_ASSERT_EQUAL(fleet_status_read(object, &after), -EINVAL);
	json_decref(object);
	CU_ASSERT_EQUAL(fleet_status_read(NULL, &after), -EINVAL);
}

// A status whose every number has the most digits, and the longest names.
static void statement_stays_small(void)
{
	struct fleet_status status;
	size_t sizes[2];

	for (unsigned pools = 0; pools < 2; pools++) {
		memset(&status, 0x7f, sizeof(status));
		status.dataplane = FLEET_DATAPLANE_CURRENT;
		status.kill_switch = status.draining = true;
		status.pool_count = pools;
		status.pools[0].local = status.pools[0].moves_established = true;
		status.pools[0].has_old = status.pools[0].has_new = true;
		snprintf(status.node, sizeof(status.node), "%063d", 1);
		snprintf(status.datacenter, sizeof(status.datacenter), "%063d", 1);
		snprintf(status.text, sizeof(status.text), "%0191d", 1);
		snprintf(status.pools[0].pool, sizeof(status.pools[0].pool), "%063d", 1);
		snprintf(status.pools[0].error, sizeof(status.pools[0].error), "%0191d", 1);
		snprintf(status.pools[0].load_backend, CUTOVER_NAME_BYTES, "%063d", 1);
		status.pools[0].load = status.pools[0].load_expected = 1.0 / 3;
		status.rate_count = pools;
		snprintf(status.rates[0].pool, CUTOVER_NAME_BYTES, "%063d", 1);
		status.rates[0].flows_per_second = 1e9 / 3;
		json_t *object = fleet_status_write(&status);
		char *text = json_dumps(object, JSON_COMPACT);

		CU_ASSERT_PTR_NOT_NULL_FATAL(text);
		sizes[pools] = strlen(text);
		free(text);
		json_decref(object);
	}
	CU_ASSERT(sizes[0] <= 1536);
	CU_ASSERT(sizes[1] - sizes[0] <= 1536);
}

static void live_figures_add_up(void)
{
	struct fleet_live live = {0}, again = {0};
	struct cutover cutover;
	struct fleet_status a, b;
	json_t *object;

	fixture_reach(&cutover, CUTOVER_SOAKING);
	object = fleet_live_write(&live);
	CU_ASSERT(json_is_null(object));
	statement(&a, "a1", "ams", &cutover);
	statement(&b, "a2", "ams", &cutover);
	a.time_ms = 1000;
	b.time_ms = 2000;
	a.pools[0].flows_new = 3;
	b.pools[0].flows_new = 4;
	a.pools[0].live_new = 1;
	b.pools[0].live_new = 2;
	a.pools[0].packets_old = b.pools[0].packets_old = 50;
	a.startup_phases_ns[STARTUP_EAL] = 10;
	b.startup_phases_ns[STARTUP_POLL] = 20; // the slower start, as a whole
	a.daemon_resident_bytes = b.daemon_resident_bytes = 100;
	fleet_live_add(&live, &a, &a.pools[0]);
	fleet_live_add(&live, &b, &b.pools[0]);
	fleet_live_add(&again, &b, &b.pools[0]);
	fleet_live_add(&again, &a, &a.pools[0]);
	CU_ASSERT_EQUAL(memcmp(&live, &again, sizeof(live)), 0);
	json_decref(object);
	object = fleet_live_write(&live);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(object, "time_ms")), 1500);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(object, "nodes")), 2);
	CU_ASSERT_EQUAL(
		json_integer_value(json_object_get(json_object_get(object, "new"), "flows")), 7);
	CU_ASSERT_EQUAL(
		json_integer_value(json_object_get(json_object_get(object, "old"), "packets")),
		100);
	CU_ASSERT_EQUAL(live.startup_ns[STARTUP_EAL], 0);
	CU_ASSERT_EQUAL(live.startup_ns[STARTUP_POLL], 20);
	CU_ASSERT_EQUAL(live.daemon_resident_bytes, 200);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(object, "live_new")), 3);
	json_decref(object);
	// A dataplane that started anew counts from 0: its sums are not to be subtracted.
	b.started_ns++;
	again = (struct fleet_live){0};
	fleet_live_add(&again, &a, &a.pools[0]);
	fleet_live_add(&again, &b, &b.pools[0]);
	CU_ASSERT_NOT_EQUAL(live.counters_of, again.counters_of);
}

static void digest_of_subsets_heeds_no_order(void)
{
	struct ring_header one = {.spec_digest = {1}, .points_digest = {2}};
	struct ring_header two = {.spec_digest = {3}, .points_digest = {4}};
	uint8_t a[RING_DIGEST_BYTES] = {0}, b[RING_DIGEST_BYTES] = {0}, c[RING_DIGEST_BYTES] = {0};

	fleet_digest_add(a, &one);
	fleet_digest_add(a, &two);
	fleet_digest_add(b, &two);
	fleet_digest_add(b, &one);
	CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
	two.points_digest[15]++;
	fleet_digest_add(c, &one);
	fleet_digest_add(c, &two);
	CU_ASSERT_NOT_EQUAL(memcmp(a, c, sizeof(a)), 0);
}

static void facts_count_who_follows_and_who_does_not(void)
{
	struct store *store = fresh_store("a1");
	struct fleet_roster roster = {0};
	struct cutover cutover;
	struct cutover_facts facts;
	struct fleet_status status, self;
	uint64_t now_ms = steady_ms();

	fixture_reach(&cutover, CUTOVER_SHIFTING);
	say_all(store, &cutover, 1);
	statement(&self, "a1", "ams", &cutover);
	statement(&status, "a2", "ams", &cutover);
	status.pools[0].revision--; // not there yet
	say(store, &status);
	statement(&status, "w1", "waw", &cutover);
	status.pools[0].new_digest[3]++; // another ring under the same generation
	say(store, &status);
	statement(&status, "w2", "waw", &cutover);
	status.pools[0].new_digest[3]++;
	status.generation--; // another generation may have another ring
	say(store, &status);
	statement(&status, "x1", "sin", &cutover); // nobody asked it
	say(store, &status);
	CU_ASSERT_EQUAL(store_key_write(store, FLEET_STATUS_PREFIX "zz", "{]", 2), 0);
	CU_ASSERT_EQUAL_FATAL(fleet_roster_read(store, &roster, now_ms), 0);
	CU_ASSERT_EQUAL(roster.count, 7);
	fleet_facts(&roster, &cutover, &self, now_ms, &facts);
	CU_ASSERT_EQUAL(facts.datacenters[0].nodes, 2);
	CU_ASSERT_EQUAL(facts.datacenters[0].applied, 1);
	CU_ASSERT_EQUAL(facts.datacenters[1].mismatched, 1);
	CU_ASSERT_EQUAL(facts.datacenters[1].prepared, 0);
	CU_ASSERT_EQUAL(facts.datacenters[2].prepared, 2);
	CU_ASSERT_EQUAL(facts.outside_nodes, 1);
	// Statements that stay the same grow old, whatever the clocks of their nodes say.
	CU_ASSERT_EQUAL_FATAL(fleet_roster_read(store, &roster, now_ms + FLEET_MISSING_MS + 1), 0);
	fleet_facts(&roster, &cutover, &self, now_ms + FLEET_MISSING_MS + 1, &facts);
	CU_ASSERT_EQUAL(facts.datacenters[0].missing, 2);
	CU_ASSERT_EQUAL(facts.datacenters[0].applied, 0);
	fleet_roster_free(&roster);
	store_close(store);
}

// One node's counters at a time, and what the guards make of it.
struct watching {
	struct fleet_guards *guards;
	struct fleet_member member;
	struct fleet_member *members[1];
	struct fleet_roster roster;
	struct cutover cutover;
	struct cutover_facts facts;
	struct cutover_guard_facts said;
	uint64_t now_ms;
	uint64_t soaked_ms;
};

static void watching_begin(struct watching *w)
{
	memset(w, 0, sizeof(*w));
	w->guards = fleet_guards_create();
	fixture_reach(&w->cutover, CUTOVER_SOAKING);
	w->cutover.spec.guards[0].difference_min = 0.1;
	w->cutover.spec.guards[0].failures = 2;
	w->cutover.spec.guards[0].window_ms = 10000;
	statement(&w->member.status, "a1", "ams", &w->cutover);
	w->members[0] = &w->member;
	w->roster = (struct fleet_roster){w->members, 1};
	w->now_ms = 1000000;
}

static void watching_look(struct watching *w, uint64_t later_ms)
{
	struct fleet_look look = {.cutover = &w->cutover, .roster = &w->roster, .facts = &w->facts};

	w->now_ms += later_ms;
	w->member.status.time_ms = w->now_ms;
	look.now_ms = w->now_ms;
	look.soaked_ms = w->soaked_ms += later_ms;
	fleet_guards_run(w->guards, &look, &w->said);
}

static void flows(struct watching *w, uint64_t old_flows, uint64_t new_flows, uint64_t new_aborts)
{
	w->member.status.pools[0].flows_old += old_flows;
	w->member.status.pools[0].flows_new += new_flows;
	w->member.status.pools[0].aborts_new += new_aborts;
}

static void windows_turn_counters_into_a_rollback(void)
{
	struct watching w;

	watching_begin(&w);
	watching_look(&w, 0);
	flows(&w, 10000, 1000, 0);
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_GO);
	CU_ASSERT_TRUE(w.said.evaluated);
	flows(&w, 10000, 1000, 300);
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_WAIT);
	flows(&w, 10000, 1000, 300);
	watching_look(&w, 5000);
	CU_ASSERT_FALSE(w.said.evaluated); // half a window
	watching_look(&w, 5000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_ROLLBACK);
	CU_ASSERT_PTR_NOT_NULL(strstr(w.said.text, "early_abort"));
	fleet_guards_free(w.guards);
}

static void flows_of_two_shares_or_two_dataplanes_are_never_mixed(void)
{
	struct watching w;

	watching_begin(&w);
	watching_look(&w, 0);
	flows(&w, 10000, 1000, 900);
	w.member.status.started_ns++; // the counters began anew, and happen to be larger
	watching_look(&w, 10000);
	CU_ASSERT_NOT_EQUAL(w.said.action, GUARD_ROLLBACK);
	CU_ASSERT_FALSE(w.said.evaluated); // nothing was seen that counts
	flows(&w, 10000, 1000, 900);
	w.member.status.pools[0].revision++; // moved in between
	watching_look(&w, 10000);
	CU_ASSERT_FALSE(w.said.evaluated);
	fleet_guards_free(w.guards);
}

static void silence_becomes_a_pause_not_a_pass(void)
{
	struct watching w;
	unsigned passes = 0;

	watching_begin(&w);
	watching_look(&w, 0);
	for (unsigned i = 0; i < 12 && w.said.action != GUARD_PAUSE; i++) {
		// The node says nothing new.
		struct fleet_look look = {.cutover = &w.cutover,
			.roster = &w.roster,
			.facts = &w.facts,
			.now_ms = w.now_ms += 10000};

		fleet_guards_run(w.guards, &look, &w.said);
		passes += w.said.evaluated && w.said.action == GUARD_GO;
	}
	CU_ASSERT_EQUAL(w.said.action, GUARD_PAUSE);
	CU_ASSERT_TRUE(w.said.no_data);
	CU_ASSERT_EQUAL(passes, 0);
	fleet_guards_free(w.guards);
}

static void at_a_hundred_percent_the_old_rings_past_stands_in(void)
{
	struct watching w;

	watching_begin(&w);
	watching_look(&w, 0);
	flows(&w, 50000, 1000, 0);
	watching_look(&w, 10000);
	w.member.status.pools[0].share = GATE_SHARE_ALL;
	w.member.status.pools[0].revision++;
	w.cutover.shares_revision++;
	watching_look(&w, 10000);
	flows(&w, 0, 50000, 0);
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_GO);
	CU_ASSERT_TRUE(w.said.evaluated);
	flows(&w, 0, 50000, 20000);
	watching_look(&w, 10000);
	flows(&w, 0, 50000, 20000);
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_ROLLBACK);
	fleet_guards_free(w.guards);
}

// Guards of a node's own figures: cycles a packet, hugepages, seconds to the first poll.
static void figures_of_nodes_are_held_against_those_while_staged(void)
{
	static const enum guard_kind kinds[] = {GUARD_LOOKUP_COST, GUARD_MEMORY, GUARD_STARTUP};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct watching w;
		struct fleet_status *status = &w.member.status;

		watching_begin(&w);
		guard_default(kinds[i], &w.cutover.spec.guards[0]);
		w.cutover.spec.guards[0].dry_run = false;
		w.cutover.spec.guards[0].failures = 1;
		w.cutover.spec.guards[0].window_ms = 10000;
		status->hugepage_bytes = 100;
		status->startup_ns = 1000000000;
		watching_look(&w, 0);
		watching_look(&w, 10000);
		CU_ASSERT_FALSE(w.said.action == GUARD_GO); // this conductor saw nothing staged
		w.cutover.state = CUTOVER_STAGED;
		status->rx_packets += 1000;
		status->busy_cycles += 100000;
		watching_look(&w, 1000);
		w.cutover.state = CUTOVER_SOAKING;
		status->rx_packets += 1000;
		status->busy_cycles += 100000;
		watching_look(&w, 10000);
		CU_ASSERT_EQUAL(w.said.action, GUARD_GO);
		status->rx_packets += 1000;
		status->busy_cycles += 160000;
		status->hugepage_bytes = 130;
		status->startup_ns = 1600000000;
		watching_look(&w, 10000);
		CU_ASSERT_EQUAL(w.said.action, GUARD_PAUSE);
		fleet_guards_free(w.guards);
	}
}

static void the_hottest_backend_of_any_node_pauses(void)
{
	struct watching w;
	struct fleet_pool *pool = &w.member.status.pools[0];

	watching_begin(&w);
	guard_default(GUARD_LOAD, &w.cutover.spec.guards[0]);
	w.cutover.spec.guards[0].failures = 1;
	w.cutover.spec.guards[0].window_ms = 10000;
	watching_look(&w, 0);
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_WAIT); // too few flows
	snprintf(pool->load_backend, sizeof(pool->load_backend), "b7");
	pool->load = 1100;
	pool->load_expected = 1000;
	pool->load_flows = 5000;
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_GO);
	pool->load = 1300;
	watching_look(&w, 10000);
	CU_ASSERT_EQUAL(w.said.action, GUARD_PAUSE);
	CU_ASSERT_STRING_EQUAL(w.said.text,
		"load: b7 got 1300 new flows on a1; its rings and chance explain 1000");
	fleet_guards_free(w.guards);
}

// Guards of what the roster shows: nodes that do not answer, beyond those that the stage allows, and other digests.
static void nodes_that_are_missing_or_differ_are_counted(void)
{
	static const enum guard_kind kinds[] = {GUARD_MISSING, GUARD_DIGEST};

	for (unsigned i = 0; i < 2; i++) {
		struct watching w;

		watching_begin(&w);
		guard_default(kinds[i], &w.cutover.spec.guards[0]);
		w.cutover.spec.guards[0].failures = 1;
		w.cutover.spec.stages[w.cutover.stage].missing_nodes_max = 1;
		w.facts.datacenters[0].nodes = w.facts.datacenters[1].nodes = 4;
		w.facts.datacenters[0].missing = w.facts.datacenters[1].missing = 1;
		watching_look(&w, 0);
		watching_look(&w, 5000);
		CU_ASSERT_EQUAL(w.said.action, GUARD_GO);
		if (kinds[i] == GUARD_MISSING)
			w.facts.datacenters[1].missing = 3;
		else
			w.facts.datacenters[1].mismatched = 2;
		watching_look(&w, 5000);
		CU_ASSERT_EQUAL(w.said.action, GUARD_PAUSE);
		CU_ASSERT_STRING_EQUAL(w.said.text,
			kinds[i] == GUARD_MISSING ? "missing: 2 nodes do not answer"
						  : "digest: 2 nodes have another digest");
		fleet_guards_free(w.guards);
	}
}

// A query is sent when its window is over, and judged when its answer is there; a server that hangs holds nothing up.
static void a_query_is_judged_when_its_answer_is_there(void)
{
	struct http_server *server = http_server_start();
	struct timespec slice = {.tv_nsec = 5000000};
	char line[256] = "", body[256];
	unsigned errors = 0;
	struct watching w;

	watching_begin(&w);
	guard_default(GUARD_PROMQL, &w.cutover.spec.guards[0]);
	snprintf(w.cutover.spec.guards[0].name, CUTOVER_NAME_BYTES, "origin");
	snprintf(w.cutover.spec.guards[0].query, CUTOVER_QUERY_BYTES, "rate");
	snprintf(w.cutover.spec.prometheus, CUTOVER_URL_BYTES, "%s", http_server_url(server));
	w.cutover.spec.guards[0].pause_at = 1.25;
	w.cutover.spec.guards[0].failures = 1;
	w.cutover.spec.guards[0].window_ms = 10000;
	watching_look(&w, 0);
	watching_look(&w, 10000);
	for (unsigned i = 0; i < 6000 && line[0] == '\0'; i++) {
		watching_look(&w, 0);
		CU_ASSERT_FALSE(w.said.evaluated);
		nanosleep(&slice, NULL);
		http_server_asked(server, line, body, sizeof(line));
	}
	// The time of the one that hangs ends with an error; what is asked next has an answer.
	http_server_say(server, 200,
		"{\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,\"1.5\"]}]}}");
	for (unsigned i = 0; i < 6000 && w.said.action != GUARD_PAUSE; i++) {
		watching_look(&w, w.said.evaluated ? 10000 : 0);
		errors += w.said.evaluated && w.said.action == GUARD_WAIT;
		nanosleep(&slice, NULL);
	}
	CU_ASSERT_EQUAL(errors, 1);
	CU_ASSERT_STRING_EQUAL(w.said.text, "origin: 1.5");
	fleet_guards_free(w.guards);
	http_server_stop(server);
}

static void what_guards_said_of_another_plan_is_not_heard(void)
{
	struct store *store = fresh_store("a1");
	struct watching w;
	json_t *said;

	watching_begin(&w);
	watching_look(&w, 0);
	said = fleet_guards_write(w.guards, &w.cutover, json_pack("{s:s}", "name", "hook"));
	fleet_guards_publish(said, &w.cutover, store);
	json_decref(said);
	said = fleet_guards_said(store, &w.cutover);
	CU_ASSERT_EQUAL(json_array_size(said), w.cutover.spec.guard_count + 1);
	json_decref(said);
	w.cutover.plan_id++;
	said = fleet_guards_said(store, &w.cutover);
	CU_ASSERT_EQUAL(json_array_size(said), 0);
	json_decref(said);
	fleet_guards_free(w.guards);
	store_close(store);
}

static void put(struct store *store, const struct cutover *cutover)
{
	char error[STORE_ERROR_BYTES];

	CU_ASSERT_EQUAL_FATAL(fleet_cutover_swap(store, NULL, cutover, error), 0);
}

// As the fleet's thread does it: reads, tells the conductor, and lets it look.
static int look(struct fleet_conductor *conductor, struct store *store, struct cutover *ret)
{
	struct fleet_cutovers cutovers = {0};
	struct fleet_status self;
	char error[STORE_ERROR_BYTES];

	CU_ASSERT_EQUAL_FATAL(fleet_cutovers_read(store, &cutovers, error), 0);
	CU_ASSERT_EQUAL_FATAL(cutovers.count, 1);
	fleet_conductor_saw(conductor, store, &cutovers);
	statement(&self, "a1", "ams", &cutovers.items[0]->cutover);
	int moved = fleet_conductor_run(conductor, store, &cutovers, &self);

	*ret = cutovers.items[0]->cutover;
	fleet_cutovers_free(&cutovers);
	return moved;
}

static void one_conducts_and_another_takes_over(void)
{
	struct store *one_store = fresh_store("a1"), *two_store = open_store("a2");
	struct fleet_conductor *one = fleet_conductor_create("a1");
	struct fleet_conductor *two = fleet_conductor_create("a2");
	struct cutover cutover;
	uint64_t count = 0, broken = 0;

	fixture_reach(&cutover, CUTOVER_SHIFTING);
	put(one_store, &cutover);
	say_all(one_store, &cutover, 1);
	CU_ASSERT_EQUAL(look(one, one_store, &cutover), 1);
	CU_ASSERT_TRUE(fleet_conductor_elected(one));
	CU_ASSERT_EQUAL(look(two, two_store, &cutover), 0);
	CU_ASSERT_FALSE(fleet_conductor_elected(two));
	CU_ASSERT_EQUAL(cutover.state, CUTOVER_SOAKING);
	fleet_conductor_resign(one, one_store);
	fleet_conductor_free(two);
	two = fleet_conductor_create("a2");
	CU_ASSERT_EQUAL(look(two, two_store, &cutover), 0);
	CU_ASSERT_TRUE(fleet_conductor_elected(two));
	// What was moved is written down, and the chain is whole.
	CU_ASSERT_EQUAL(store_audit_verify(one_store, &count, &broken), 0);
	CU_ASSERT_EQUAL(count, 1);
	fleet_conductor_free(one);
	fleet_conductor_free(two);
	store_close(one_store);
	store_close(two_store);
}

// A store whose swaps are not answered. Done or not is for the next look to find out.
static bool swaps_are_done;

static int swap_unheard(struct store *store, const char *key, const char *before, const char *value)
{
	if (swaps_are_done)
		CU_ASSERT_EQUAL(store_file.key_swap(store, key, before, value), 0);
	return store_fail(store, -EIO, "no answer");
}

static void step_without_an_answer_is_looked_up(void)
{
	struct store_backend deaf = store_file;

	deaf.key_swap = swap_unheard;
	for (unsigned done = 0; done < 2; done++) {
		struct store *store = fresh_store("a1");
		struct fleet_conductor *one = fleet_conductor_create("a1");
		struct fleet_cutovers before = {0};
		struct cutover cutover;
		uint64_t count = 0, broken = 0;
		char error[STORE_ERROR_BYTES];

		fixture_reach(&cutover, CUTOVER_SHIFTING);
		put(store, &cutover);
		say_all(store, &cutover, 1);
		CU_ASSERT_EQUAL(fleet_cutovers_read(store, &before, error), 0);
		swaps_are_done = done != 0;
		store->backend = &deaf;
		CU_ASSERT_EQUAL(look(one, store, &cutover), -EIO);
		store->backend = &store_file;
		CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), 0);
		CU_ASSERT_EQUAL(count, 0);
		// What was read before the swap says nothing, and nothing is moved on it.
		CU_ASSERT_EQUAL(fleet_conductor_run(one, store, &before, NULL), 0);
		CU_ASSERT_EQUAL(look(one, store, &cutover), done ? 0 : 1);
		CU_ASSERT_EQUAL(look(one, store, &cutover), 0);
		CU_ASSERT_EQUAL(cutover.state, CUTOVER_SOAKING);
		CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), 0);
		CU_ASSERT_EQUAL(count, 1);
		fleet_cutovers_free(&before);
		fleet_conductor_free(one);
		store_close(store);
	}
}

static void swap_of_a_stale_document_loses(void)
{
	struct store *store = fresh_store("a1");
	struct fleet_cutover *first = NULL, *second = NULL;
	char error[STORE_ERROR_BYTES];
	struct cutover cutover;

	fixture_reach(&cutover, CUTOVER_GATED);
	put(store, &cutover);
	CU_ASSERT_EQUAL(fleet_cutover_read(store, "nowhere", &first, error), -ENOENT);
	CU_ASSERT_EQUAL_FATAL(fleet_cutover_read(store, "web", &first, error), 0);
	CU_ASSERT_EQUAL_FATAL(fleet_cutover_read(store, "web", &second, error), 0);
	cutover.revision++;
	CU_ASSERT_EQUAL(fleet_cutover_swap(store, first, &cutover, error), 0);
	cutover.revision++;
	CU_ASSERT_EQUAL(fleet_cutover_swap(store, second, &cutover, error), -ESTALE);
	fleet_cutover_free(first);
	fleet_cutover_free(second);
	store_close(store);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(statement_reads_back),
	CASE(statement_stays_small),
	CASE(live_figures_add_up),
	CASE(digest_of_subsets_heeds_no_order),
	CASE(facts_count_who_follows_and_who_does_not),
	CASE(windows_turn_counters_into_a_rollback),
	CASE(flows_of_two_shares_or_two_dataplanes_are_never_mixed),
	CASE(silence_becomes_a_pause_not_a_pass),
	CASE(at_a_hundred_percent_the_old_rings_past_stands_in),
	CASE(figures_of_nodes_are_held_against_those_while_staged),
	CASE(the_hottest_backend_of_any_node_pauses),
	CASE(nodes_that_are_missing_or_differ_are_counted),
	CASE(a_query_is_judged_when_its_answer_is_there),
	CASE(what_guards_said_of_another_plan_is_not_heard),
	CASE(one_conducts_and_another_takes_over),
	CASE(step_without_an_answer_is_looked_up),
	CASE(swap_of_a_stale_document_loses),
};

int main(void)
{
	if (mkdtemp(directory) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/store", directory);
	int rc = SUITE_RUN("fleet", cases);

	nftw(directory, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}
