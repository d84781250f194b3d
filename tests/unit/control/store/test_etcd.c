// SPDX-License-Identifier: Apache-2.0
// The `etcd` backend against real clusters on loopback: the contract, and what is its own.
//
//	test_etcd              one member: the contract
//	test_etcd own          one member: large documents, watches, a store that goes and comes back, answers that are lost
//	test_etcd three        three members: the contract
//	test_etcd secure       three members with TLS, client certificates and users: the contract
//	test_etcd three-kill   three members: commits while the leader dies, the watch of a member without a leader
//	test_etcd secure-kill  the same with TLS, client certificates and users
#include "tests/lib/suite.h"
#include "tests/unit/control/store/contract.h"
#include "tests/unit/control/store/etcd_fixture.h"
#include "tests/unit/control/store/etcd_proxy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void document_of_many_parts_comes_back_whole(void)
{
	size_t size = 5000001, length = 0;
	char *text = malloc(size + 1), *got = NULL;
	uint64_t generation;

	fixture_reset();
	struct store *store = fixture_open("node-1");

	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + i % 23);
	text[size] = '\0';
	CU_ASSERT_EQUAL_FATAL(store_commit(store, text, size, 0), 0);
	CU_ASSERT_EQUAL_FATAL(store_read(store, 0, &got, &length, &generation), 0);
	CU_ASSERT_EQUAL(length, size);
	CU_ASSERT_STRING_EQUAL(got, text);
	free(text);
	free(got);
	store_close(store);
}

static void status_of_others_wakes_nobody_up(void)
{
	fixture_reset();
	struct store *store = fixture_open("node-1");
	struct pollfd fd = {.fd = store_watch(store), .events = POLLIN};

	CU_ASSERT_EQUAL(store_key_write(store, "status/node-2", "x", 1), 0);
	CU_ASSERT_EQUAL(poll(&fd, 1, 300), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "statusx", "x", 1), 0);
	CU_ASSERT_EQUAL(poll(&fd, 1, 5000), 1);
	store_close(store);
}

// A lost store answers with an error in bounded time, then at once, and is found again when it is back; the watch too.
static void store_that_goes_and_comes_back_is_found_again(void)
{
	fixture_reset();
	struct store *store = fixture_open("node-1");
	struct pollfd fd = {.fd = store_watch(store), .events = POLLIN};
	uint64_t began_ms;
	int rc = -EIO;

	CU_ASSERT_EQUAL(store_commit(store, "kept", 4, 0), 0);
	poll(&fd, 1, 2000);
	store_watch_take(store);
	etcd_member_kill(&cluster, 0);
	began_ms = fixture_now_ms();
	CU_ASSERT_EQUAL(store_commit(store, "lost", 4, 1), -EIO);
	CU_ASSERT_TRUE(fixture_now_ms() - began_ms < 8000);
	CU_ASSERT_TRUE(strlen(store_error(store)) > 10);
	began_ms = fixture_now_ms();
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), -EIO);
	CU_ASSERT_TRUE(fixture_now_ms() - began_ms < 1000);
	CU_ASSERT_EQUAL_FATAL(etcd_member_start(&cluster, 0), 0);
	for (unsigned i = 0; i < 100 && rc != 0; i++) {
		rc = store_commit(store, "next", 4, 1);
		usleep(100000);
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(poll(&fd, 1, 10000), 1);
	store_close(store);
}

// The answer to a swap is lost; what comes back on the second try is that somebody else's work is there: ours.
static void swap_whose_answer_was_lost_is_done(void)
{
	struct etcd_proxy proxy;
	const char *endpoints[] = {proxy.url};
	char *value = NULL;
	size_t length = 0;

	fixture_reset();
	CU_ASSERT_EQUAL_FATAL(
		etcd_proxy_start(&proxy, cluster.client_ports[0], "/v3/kv/txn", NULL), 0);
	config.endpoints = endpoints;
	config.endpoint_count = 1;
	struct store *store = fixture_open("node-1");

	CU_ASSERT_EQUAL(store_key_read(store, "k", &value, &length), -ENOENT); // a kept connection
	CU_ASSERT_EQUAL(store_key_swap(store, "k", NULL, "one"), 0);
	CU_ASSERT_EQUAL_FATAL(store_key_read(store, "k", &value, &length), 0);
	CU_ASSERT_STRING_EQUAL(value, "one");
	free(value);
	// What was sent once is not taken for what somebody else wrote, though it be the same.
	CU_ASSERT_EQUAL(store_key_swap(store, "k", NULL, "one"), -ESTALE);
	store_close(store);
	etcd_proxy_stop(&proxy);
}

// Before we ask again, somebody has gone on from what we wrote: it was done all the same.
static void swap_is_done_though_others_went_on_from_it(void)
{
	struct etcd_proxy proxy;
	const char *endpoints[] = {proxy.url};
	char then[256];

	fixture_reset();
	snprintf(then, sizeof(then),
		"for v in two three; do ETCDCTL_API=3 etcdctl --endpoints %s put %s/keys/k $v; done "
		">/dev/null",
		cluster.endpoints[0], config.prefix);
	CU_ASSERT_EQUAL_FATAL(
		etcd_proxy_start(&proxy, cluster.client_ports[0], "/v3/kv/txn", then), 0);
	config.endpoints = endpoints;
	config.endpoint_count = 1;
	struct store *store = fixture_open("node-1");

	CU_ASSERT_EQUAL(store_key_write(store, "k", "zero", 4), 0);
	CU_ASSERT_EQUAL(store_key_swap(store, "k", "zero", "one"), 0);
	CU_ASSERT_EQUAL(store_key_swap(store, "k", "one", "four"), -ESTALE);
	CU_ASSERT_EQUAL(store_key_swap(store, "k", "three", "four"), 0);
	store_close(store);
	etcd_proxy_stop(&proxy);
}

// Documents and the audit log: neither twice nor reported as failed.
static void commit_and_entry_whose_answers_were_lost_are_there_once(void)
{
	struct etcd_proxy proxy;
	const char *endpoints[] = {proxy.url};
	uint64_t count = 0, broken = 0, generation = 0;
	char *text = NULL;
	size_t length;

	fixture_reset();
	config.endpoints = endpoints;
	config.endpoint_count = 1;
	CU_ASSERT_EQUAL_FATAL(
		etcd_proxy_start(&proxy, cluster.client_ports[0], "/v3/kv/txn", NULL), 0);
	struct store *store = fixture_open("node-1");

	CU_ASSERT_EQUAL(store_commit(store, "one", 3, 0), 0);
	CU_ASSERT_EQUAL_FATAL(store_read(store, 0, &text, &length, &generation), 0);
	CU_ASSERT_EQUAL(generation, 1);
	free(text);
	store_close(store);
	etcd_proxy_stop(&proxy);
	CU_ASSERT_EQUAL_FATAL(
		etcd_proxy_start(&proxy, cluster.client_ports[0], "/v3/kv/txn", NULL), 0);
	store = fixture_open("node-1");
	CU_ASSERT_EQUAL(store_audit_append(store, "{}"), 0);
	CU_ASSERT_EQUAL(store_audit_append(store, "{}"), 0);
	CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), 0);
	CU_ASSERT_EQUAL(count, 2);
	store_close(store);
	etcd_proxy_stop(&proxy);
}

// Commits go on while the leader is killed; none is lost, none is done twice.
static void commits_survive_the_death_of_the_leader(void)
{
	char text[32], *got = NULL;
	size_t length;
	uint64_t generation = 0, outage_ms = 0;

	fixture_reset();
	struct store *store = fixture_open("node-1");

	for (unsigned i = 0; i < 40; i++) {
		uint64_t began_ms = fixture_now_ms();
		int rc = -EIO;

		if (i == 10)
			CU_ASSERT_TRUE(etcd_leader_kill(&cluster) >= 0);
		snprintf(text, sizeof(text), "generation %u", i + 1);
		for (unsigned tries = 0; tries < 300 && rc != 0; tries++) {
			rc = store_commit(store, text, strlen(text), i);
			if (rc == -ESTALE)
				break;
			if (rc != 0)
				usleep(100000);
		}
		CU_ASSERT_EQUAL_FATAL(rc, 0);
		if (fixture_now_ms() - began_ms > outage_ms)
			outage_ms = fixture_now_ms() - began_ms;
	}
	printf("# longest commit, over the election: %u ms\n", (unsigned)outage_ms);
	CU_ASSERT_EQUAL_FATAL(store_read(store, 0, &got, &length, &generation), 0);
	CU_ASSERT_EQUAL(generation, 40);
	CU_ASSERT_STRING_EQUAL(got, text);
	free(got);
	store_close(store);
	for (unsigned i = 0; i < cluster.member_count; i++) {
		if (cluster.pids[i] == 0)
			CU_ASSERT_EQUAL(etcd_member_start(&cluster, i), 0);
	}
}

// Two of three die: the third keeps connections, and has nothing to say. When they are back, the watch says that
// something may have been missed, and works.
static void watch_leaves_a_member_that_has_lost_its_leader(void)
{
	fixture_reset();
	config.endpoints = &cluster.endpoints[2];
	config.endpoint_count = 1;
	struct store *store = fixture_open("node-1");
	struct pollfd fd = {.fd = store_watch(store), .events = POLLIN};
	int rc = -EIO;

	for (unsigned i = 0; i < 2; i++)
		etcd_member_kill(&cluster, i);
	usleep(4500000); // three elections without a result, and the member gives up
	store_watch_take(store);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(etcd_member_start(&cluster, i), 0);
	CU_ASSERT_EQUAL(poll(&fd, 1, 20000), 1);
	store_watch_take(store);
	for (unsigned i = 0; i < 100 && rc != 0; i++) {
		rc = store_key_write(store, "k", "v", 1);
		usleep(100000);
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(poll(&fd, 1, 5000), 1);
	store_close(store);
}

// Each member in turn stops in the middle of everything, connections and all; the store goes on with another.
static void member_that_hangs_is_left(void)
{
	char value[32], *got = NULL;
	size_t length;

	fixture_reset();
	struct store *store = fixture_open("node-1");

	for (unsigned i = 0; i < cluster.member_count; i++) {
		char before[32];
		int rc = -EIO;

		snprintf(before, sizeof(before), "value %u", i);
		snprintf(value, sizeof(value), "value %u", i + 1);
		kill(cluster.pids[i], SIGSTOP);
		for (unsigned tries = 0; tries < 300 && rc != 0; tries++) {
			rc = store_key_swap(store, "k", i == 0 ? NULL : before, value);
			CU_ASSERT_TRUE_FATAL(rc == 0 || rc == -EIO); // never somebody else's
			if (rc != 0)
				usleep(100000);
			// What was not known is looked up, as store.h asks.
			if (rc != 0 && store_key_read(store, "k", &got, &length) == 0) {
				rc = strcmp(got, value) == 0 ? 0 : rc;
				free(got);
			}
		}
		kill(cluster.pids[i], SIGCONT);
		CU_ASSERT_EQUAL(rc, 0);
	}
	CU_ASSERT_EQUAL_FATAL(store_key_read(store, "k", &got, &length), 0);
	CU_ASSERT_STRING_EQUAL(got, value);
	free(got);
	store_close(store);
}

static const struct test_case own_cases[] = {
	{"document_of_many_parts_comes_back_whole", document_of_many_parts_comes_back_whole},
	{"status_of_others_wakes_nobody_up", status_of_others_wakes_nobody_up},
	{"store_that_goes_and_comes_back_is_found_again",
		store_that_goes_and_comes_back_is_found_again},
	SUITE_CASE(swap_whose_answer_was_lost_is_done),
	SUITE_CASE(swap_is_done_though_others_went_on_from_it),
	SUITE_CASE(commit_and_entry_whose_answers_were_lost_are_there_once),
};

static const struct test_case kill_cases[] = {
	SUITE_CASE(commits_survive_the_death_of_the_leader),
	SUITE_CASE(member_that_hangs_is_left),
	SUITE_CASE(watch_leaves_a_member_that_has_lost_its_leader),
};

int main(int argc, char **argv)
{
	static const struct contract_target target = {"etcd", fixture_open, fixture_reset};
	const char *what = argc > 1 ? argv[1] : "";
	bool secure = strncmp(what, "secure", 6) == 0;
	bool three = secure || strncmp(what, "three", 5) == 0;
	int rc;

	if (!etcd_installed()) {
		printf("1..0 # SKIP needs etcd, etcdctl and openssl\n");
		return 0;
	}
	if (!fixture_begin(three ? 3 : 1, secure ? ETCD_SECURE : ETCD_PLAIN)) {
		printf("Bail out! etcd did not start\n");
		return 1;
	}
	if (strcmp(what, "own") == 0)
		rc = SUITE_RUN("etcd own", own_cases);
	else if (strstr(what, "-kill") != NULL)
		rc = SUITE_RUN("etcd kill", kill_cases);
	else
		rc = contract_run(&target);
	fixture_end();
	return rc;
}
