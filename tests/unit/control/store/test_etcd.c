// SPDX-License-Identifier: Apache-2.0
// The `etcd` backend against real clusters on loopback: the contract, and what is its own.
//
//	test_etcd            one member: the contract
//	test_etcd own        one member: large documents, watches, a store that goes and comes back, users
//	test_etcd three      three members: the contract
//	test_etcd three-kill three members: commits while the leader dies
#include "tests/lib/suite.h"
#include "tests/lib/etcd.h"
#include "tests/unit/control/store/contract.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct etcd_cluster cluster;
static struct config_store config = {.type = CONFIG_STORE_ETCD,
	.user = "",
	.password_file = "",
	.tls = {.ca = "", .certificate = "", .key = ""}};
static char prefix[32];

// A fresh prefix is an empty store.
static void reset(void)
{
	static unsigned number;

	snprintf(prefix, sizeof(prefix), "/test%u", ++number);
	config.prefix = prefix;
}

static struct store *open_store(const char *node)
{
	char error[STORE_ERROR_BYTES];
	struct store *store = NULL;

	if (store_open(&config, node, &store, error) < 0)
		printf("# %s\n", error);
	return store;
}

static bool begin(unsigned members)
{
	if (etcd_cluster_start(&cluster, members) != 0)
		return false;
	config.endpoints = cluster.endpoints;
	config.endpoint_count = members;
	reset();
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void document_of_many_parts_comes_back_whole(void)
{
	size_t size = 5000001, length = 0;
	char *text = malloc(size + 1), *got = NULL;
	uint64_t generation;

	reset();
	struct store *store = open_store("node-1");

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
	reset();
	struct store *store = open_store("node-1");
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
	reset();
	struct store *store = open_store("node-1");
	struct pollfd fd = {.fd = store_watch(store), .events = POLLIN};
	uint64_t began_ms;
	int rc = -EIO;

	CU_ASSERT_EQUAL(store_commit(store, "kept", 4, 0), 0);
	poll(&fd, 1, 2000);
	store_watch_take(store);
	etcd_member_kill(&cluster, 0);
	began_ms = now_ms();
	CU_ASSERT_EQUAL(store_commit(store, "lost", 4, 1), -EIO);
	CU_ASSERT_TRUE(now_ms() - began_ms < 8000);
	CU_ASSERT_TRUE(strlen(store_error(store)) > 10);
	began_ms = now_ms();
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), -EIO);
	CU_ASSERT_TRUE(now_ms() - began_ms < 1000);
	CU_ASSERT_EQUAL_FATAL(etcd_member_start(&cluster, 0), 0);
	for (unsigned i = 0; i < 100 && rc != 0; i++) {
		rc = store_commit(store, "next", 4, 1);
		usleep(100000);
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(poll(&fd, 1, 10000), 1);
	store_close(store);
}

static void users_are_asked_for_their_password(void)
{
	char file[] = "/tmp/ringway-etcd-password-XXXXXX";
	int fd = mkstemp(file);
	char *value;
	size_t length;

	reset();
	CU_ASSERT_EQUAL_FATAL(write(fd, "secret\n", 7), 7);
	close(fd);
	CU_ASSERT_EQUAL_FATAL(etcd_cluster_users(&cluster, "secret"), 0);
	struct store *store = open_store("node-1"); // without a user

	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), -EACCES);
	store_close(store);
	config.user = "root";
	config.password_file = file;
	store = open_store("node-1");
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
	CU_ASSERT_EQUAL(store_key_read(store, "k", &value, &length), 0);
	free(value);
	store_close(store);
	CU_ASSERT_EQUAL(truncate(file, 3), 0); // a wrong password
	store = open_store("node-1");
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), -EACCES);
	store_close(store);
	unlink(file);
	config.user = "";
	config.password_file = "";
}

// Commits go on while the leader is killed; none is lost, none is done twice.
static void commits_survive_the_death_of_the_leader(void)
{
	char text[32], *got = NULL;
	size_t length;
	uint64_t generation = 0, outage_ms = 0;

	reset();
	struct store *store = open_store("node-1");

	for (unsigned i = 0; i < 40; i++) {
		uint64_t began_ms = now_ms();
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
		if (now_ms() - began_ms > outage_ms)
			outage_ms = now_ms() - began_ms;
	}
	printf("# longest commit, over the election: %u ms\n", (unsigned)outage_ms);
	CU_ASSERT_EQUAL_FATAL(store_read(store, 0, &got, &length, &generation), 0);
	CU_ASSERT_EQUAL(generation, 40);
	CU_ASSERT_STRING_EQUAL(got, text);
	free(got);
	store_close(store);
}

static const struct test_case own_cases[] = {
	{"document_of_many_parts_comes_back_whole", document_of_many_parts_comes_back_whole},
	{"status_of_others_wakes_nobody_up", status_of_others_wakes_nobody_up},
	{"store_that_goes_and_comes_back_is_found_again",
		store_that_goes_and_comes_back_is_found_again},
	{"users_are_asked_for_their_password", users_are_asked_for_their_password},
};

static const struct test_case three_cases[] = {
	{"commits_survive_the_death_of_the_leader", commits_survive_the_death_of_the_leader},
};

int main(int argc, char **argv)
{
	static const struct contract_target target = {"etcd", open_store, reset};
	const char *what = argc > 1 ? argv[1] : "";
	bool three = strncmp(what, "three", 5) == 0;
	int rc;

	if (!etcd_installed()) {
		printf("1..0 # SKIP etcd is not installed\n");
		return 0;
	}
	if (!begin(three ? 3 : 1)) {
		printf("Bail out! etcd did not start\n");
		return 1;
	}
	if (strcmp(what, "own") == 0)
		rc = SUITE_RUN("etcd own", own_cases);
	else if (strcmp(what, "three-kill") == 0)
		rc = SUITE_RUN("etcd three", three_cases);
	else
		rc = contract_run(&target);
	etcd_cluster_stop(&cluster);
	return rc;
}
