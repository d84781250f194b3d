// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/control/store/contract.h"

#include "tests/lib/suite.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct contract_target *target;

static struct store *fresh(void)
{
	struct store *store;

	target->reset();
	store = target->open("node-1");
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	return store;
}

static int commit(struct store *store, const char *text, uint64_t expected)
{
	return store_commit(store, text, strlen(text), expected);
}

static void expect_document(
	struct store *store, uint64_t generation, const char *text, uint64_t wanted)
{
	char *got = NULL;
	size_t length = 0;
	uint64_t got_generation = 0;

	CU_ASSERT_EQUAL_FATAL(store_read(store, generation, &got, &length, &got_generation), 0);
	CU_ASSERT_EQUAL(got_generation, wanted);
	CU_ASSERT_EQUAL(length, strlen(text));
	CU_ASSERT_STRING_EQUAL(got, text);
	free(got);
}

static void empty_store_has_no_document(void)
{
	struct store *store = fresh();
	char *text = NULL;
	size_t length;
	uint64_t generation;

	CU_ASSERT_EQUAL(store_read(store, 0, &text, &length, &generation), -ENOENT);
	CU_ASSERT_EQUAL(store_read(store, 7, &text, &length, &generation), -ENOENT);
	CU_ASSERT_PTR_NULL(text);
	store_close(store);
}

static void generations_grow_by_one_and_older_ones_can_be_read(void)
{
	struct store *store = fresh();

	CU_ASSERT_EQUAL(commit(store, "{\"a\": 1}", 0), 0);
	CU_ASSERT_EQUAL(commit(store, "{\"a\": 2}", 1), 0);
	CU_ASSERT_EQUAL(commit(store, "{\"a\": \"\xc3\xbc\n\"}", 2), 0);
	expect_document(store, 0, "{\"a\": \"\xc3\xbc\n\"}", 3);
	expect_document(store, 1, "{\"a\": 1}", 1);
	expect_document(store, 2, "{\"a\": 2}", 2);
	store_close(store);
}

static void stale_commit_changes_nothing(void)
{
	struct store *store = fresh();

	CU_ASSERT_EQUAL(commit(store, "one", 0), 0);
	CU_ASSERT_EQUAL(commit(store, "other", 0), -ESTALE);
	CU_ASSERT_EQUAL(commit(store, "other", 2), -ESTALE);
	CU_ASSERT_NOT_EQUAL(strlen(store_error(store)), 0);
	expect_document(store, 0, "one", 1);
	CU_ASSERT_EQUAL(commit(store, "two", 1), 0);
	expect_document(store, 0, "two", 2);
	store_close(store);
}

static void document_outlives_its_handle(void)
{
	struct store *store = fresh();

	CU_ASSERT_EQUAL(commit(store, "kept", 0), 0);
	store_close(store);
	store = target->open("node-1");
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	expect_document(store, 0, "kept", 1);
	store_close(store);
}

static void history_is_bounded_and_keeps_the_newest(void)
{
	struct store *store = fresh();
	uint64_t newest = STORE_HISTORY + 5;
	char text[32], wanted[32];
	char *old = NULL;
	size_t length;
	uint64_t generation;

	for (uint64_t i = 0; i < newest; i++) {
		snprintf(text, sizeof(text), "generation %u", (unsigned)i + 1);
		CU_ASSERT_EQUAL_FATAL(commit(store, text, i), 0);
	}
	snprintf(wanted, sizeof(wanted), "generation %u", (unsigned)(newest - STORE_HISTORY + 1));
	expect_document(store, 0, text, newest);
	expect_document(store, newest - STORE_HISTORY + 1, wanted, newest - STORE_HISTORY + 1);
	CU_ASSERT_EQUAL(store_read(store, 1, &old, &length, &generation), -ENOENT);
	store_close(store);
}

static void large_document_comes_back_whole(void)
{
	struct store *store = fresh();
	size_t size = 1000000; // below what every backend takes by default
	char *text = malloc(size + 1), *got = NULL;
	size_t length = 0;
	uint64_t generation;

	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + i % 23);
	text[size] = '\0';
	CU_ASSERT_EQUAL(store_commit(store, text, size, 0), 0);
	CU_ASSERT_EQUAL_FATAL(store_read(store, 0, &got, &length, &generation), 0);
	CU_ASSERT_EQUAL(length, size);
	CU_ASSERT_STRING_EQUAL(got, text);
	free(text);
	free(got);
	store_close(store);
}

#define WRITERS 4u
#define ROUNDS  10u

// Commits ROUNDS times, each time on what it has just read; exits with how often it had to try again.
static void writer_run(unsigned number)
{
	char node[16];
	struct store *store;
	unsigned done = 0;

	snprintf(node, sizeof(node), "node-%u", number);
	store = target->open(node);
	for (unsigned tries = 0; store != NULL && done < ROUNDS && tries < 1000; tries++) {
		char *text = NULL;
		size_t length;
		uint64_t generation = 0;
		int rc = store_read(store, 0, &text, &length, &generation);

		free(text);
		if (rc != 0 && rc != -ENOENT)
			break;
		rc = commit(store, node, generation);
		if (rc == 0)
			done++;
		else if (rc != -ESTALE)
			break;
	}
	store_close(store);
	_exit(done == ROUNDS ? 0 : 1);
}

static void of_many_writers_one_wins_each_generation(void)
{
	struct store *store = fresh();
	char *text = NULL;
	size_t length;
	uint64_t generation = 0;

	fflush(stdout);
	for (unsigned i = 0; i < WRITERS; i++) {
		if (fork() == 0)
			writer_run(i);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		int status = -1;

		CU_ASSERT_TRUE(wait(&status) > 0);
		CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	CU_ASSERT_EQUAL(store_read(store, 0, &text, &length, &generation), 0);
	CU_ASSERT_EQUAL(generation, WRITERS * ROUNDS);
	free(text);
	store_close(store);
}

static void keys_are_written_read_and_removed(void)
{
	struct store *store = fresh();
	char *value = NULL;
	size_t length = 0;

	CU_ASSERT_EQUAL(store_key_read(store, "node/a/status", &value, &length), -ENOENT);
	CU_ASSERT_EQUAL(store_key_write(store, "node/a/status", "x\0y", 3), 0);
	CU_ASSERT_EQUAL_FATAL(store_key_read(store, "node/a/status", &value, &length), 0);
	CU_ASSERT_EQUAL(length, 3);
	CU_ASSERT_EQUAL(memcmp(value, "x\0y", 4), 0);
	free(value);
	CU_ASSERT_EQUAL(store_key_write(store, "node/a/status", "", 0), 0);
	CU_ASSERT_EQUAL_FATAL(store_key_read(store, "node/a/status", &value, &length), 0);
	CU_ASSERT_EQUAL(length, 0);
	free(value);
	CU_ASSERT_EQUAL(store_key_remove(store, "node/a/status"), 0);
	CU_ASSERT_EQUAL(store_key_remove(store, "node/a/status"), 0);
	CU_ASSERT_EQUAL(store_key_read(store, "node/a/status", &value, &length), -ENOENT);
	store_close(store);
}

static void swap_wants_what_is_there(void)
{
	struct store *store = fresh();
	char *value = NULL;
	size_t length = 0;

	CU_ASSERT_EQUAL(store_key_swap(store, "cutover/web", "one", "two"), -ESTALE);
	CU_ASSERT_EQUAL(store_key_swap(store, "cutover/web", NULL, "one"), 0);
	CU_ASSERT_EQUAL(store_key_swap(store, "cutover/web", NULL, "two"), -ESTALE);
	CU_ASSERT_EQUAL(store_key_swap(store, "cutover/web", "on", "two"), -ESTALE);
	CU_ASSERT_EQUAL(store_key_swap(store, "cutover/web", "one", "two"), 0);
	CU_ASSERT_EQUAL(store_key_swap(store, "cutover/web", "one", "three"), -ESTALE);
	CU_ASSERT_EQUAL_FATAL(store_key_read(store, "cutover/web", &value, &length), 0);
	CU_ASSERT_STRING_EQUAL(value, "two");
	free(value);
	CU_ASSERT_EQUAL(store_key_swap(store, "../x", NULL, "one"), -EINVAL);
	store_close(store);
}

static void bad_keys_are_refused(void)
{
	static const char *const bad[] = {
		"", "/a", "a/", "a//b", "../a", "a/../b", "a b", "a%b", ".hidden", "a\n"};
	char long_key[STORE_KEY_BYTES + 1];
	struct store *store = fresh();

	memset(long_key, 'k', STORE_KEY_BYTES);
	long_key[STORE_KEY_BYTES] = '\0';
	CU_ASSERT_EQUAL(store_key_write(store, long_key, "x", 1), -EINVAL);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(store_key_write(store, bad[i], "x", 1), -EINVAL);
	store_close(store);
}

struct listing {
	char text[256];
	unsigned stop_after;
	unsigned seen;
};

static int list_visit(void *context, const char *key, const char *value, size_t length)
{
	struct listing *listing = context;
	size_t used = strlen(listing->text);

	snprintf(listing->text + used, sizeof(listing->text) - used, "%s=%.*s;", key, (int)length,
		value);
	return ++listing->seen == listing->stop_after ? 77 : 0;
}

static void listing_is_sorted_and_by_prefix(void)
{
	struct store *store = fresh();
	struct listing all = {0}, two = {.stop_after = 2}, none = {0};

	CU_ASSERT_EQUAL(store_key_write(store, "node/b", "2", 1), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "node/a", "1", 1), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "nodes", "no", 2), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "node/c/d", "3", 1), 0);
	CU_ASSERT_EQUAL(store_key_list(store, "node/", list_visit, &all), 0);
	CU_ASSERT_STRING_EQUAL(all.text, "node/a=1;node/b=2;node/c/d=3;");
	CU_ASSERT_EQUAL(store_key_list(store, "node/", list_visit, &two), 77);
	CU_ASSERT_STRING_EQUAL(two.text, "node/a=1;node/b=2;");
	CU_ASSERT_EQUAL(store_key_list(store, "other/", list_visit, &none), 0);
	CU_ASSERT_EQUAL(none.seen, 0);
	store_close(store);
}

static void lock_is_one_nodes_until_dropped(void)
{
	struct store *one = fresh();
	struct store *two = target->open("node-2");
	char holder[STORE_KEY_BYTES] = "";

	CU_ASSERT_PTR_NOT_NULL_FATAL(two);
	CU_ASSERT_EQUAL(store_lock_take(one, "conductor", 60, NULL), 0);
	CU_ASSERT_EQUAL(store_lock_take(one, "conductor", 60, NULL), 0);
	CU_ASSERT_EQUAL(store_lock_take(two, "conductor", 60, holder), -EBUSY);
	CU_ASSERT_STRING_EQUAL(holder, "node-1");
	CU_ASSERT_EQUAL(store_lock_take(two, "cutover/web", 60, NULL), 0);
	CU_ASSERT_EQUAL(store_lock_drop(two, "conductor"), 0);
	CU_ASSERT_EQUAL(store_lock_take(two, "conductor", 60, NULL), -EBUSY);
	CU_ASSERT_EQUAL(store_lock_drop(one, "conductor"), 0);
	CU_ASSERT_EQUAL(store_lock_take(two, "conductor", 60, NULL), 0);
	store_close(one);
	store_close(two);
}

static void lock_runs_out(void)
{
	struct store *one = fresh();
	struct store *two = target->open("node-2");
	int rc = -EBUSY;

	CU_ASSERT_PTR_NOT_NULL_FATAL(two);
	CU_ASSERT_EQUAL(store_lock_take(one, "conductor", 1, NULL), 0);
	store_close(one);
	for (unsigned i = 0; i < 100 && rc == -EBUSY; i++) {
		usleep(100000);
		rc = store_lock_take(two, "conductor", 60, NULL);
	}
	CU_ASSERT_EQUAL(rc, 0);
	store_close(two);
}

static int audit_visit(
	void *context, uint64_t number, const char *entry, const uint8_t hash[STORE_HASH_BYTES])
{
	struct listing *listing = context;
	size_t used = strlen(listing->text);

	snprintf(listing->text + used, sizeof(listing->text) - used, "%u %s %02x%02x;",
		(unsigned)number, entry, hash[0], hash[1]);
	return 0;
}

static void audit_entries_are_chained_in_order(void)
{
	struct store *store = fresh();
	struct listing all = {0}, later = {0};
	uint64_t count = 9, broken = 9;

	CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), 0);
	CU_ASSERT_EQUAL(count, 0);
	CU_ASSERT_EQUAL(store_audit_append(store, "{\"verb\": \"a\"}"), 0);
	CU_ASSERT_EQUAL(store_audit_append(store, "{\"verb\": \"b\"}"), 0);
	CU_ASSERT_EQUAL(store_audit_append(store, "two\nlines"), -EINVAL);
	CU_ASSERT_EQUAL(store_audit_append(store, "{\"verb\": \"c\"}"), 0);
	CU_ASSERT_EQUAL(store_audit_list(store, 1, audit_visit, &all), 0);
	// SHA-256 over the hash before as text and the entry, by an independent program.
	CU_ASSERT_STRING_EQUAL(all.text,
		"1 {\"verb\": \"a\"} 4d67;2 {\"verb\": \"b\"} e443;3 {\"verb\": \"c\"} e947;");
	CU_ASSERT_EQUAL(store_audit_list(store, 3, audit_visit, &later), 0);
	CU_ASSERT_EQUAL(strncmp(later.text, "3 {\"verb\": \"c\"}", 15), 0);
	CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), 0);
	CU_ASSERT_EQUAL(count, 3);
	CU_ASSERT_EQUAL(broken, 0);
	store_close(store);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static void watch_tells_of_other_writers(void)
{
	struct store *one = fresh();
	struct store *two = target->open("node-2");
	int fd = store_watch(one);

	CU_ASSERT_PTR_NOT_NULL_FATAL(two);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(store_watch(one), fd);
	CU_ASSERT_FALSE(readable(fd, 0));
	CU_ASSERT_FALSE(store_watch_take(one));
	CU_ASSERT_EQUAL(commit(two, "x", 0), 0);
	CU_ASSERT_TRUE(readable(fd, 5000));
	CU_ASSERT_TRUE(store_watch_take(one));
	CU_ASSERT_FALSE(readable(fd, 0));
	CU_ASSERT_EQUAL(store_key_write(two, "node/node-2", "x", 1), 0);
	CU_ASSERT_TRUE(readable(fd, 5000));
	CU_ASSERT_TRUE(store_watch_take(one));
	store_close(one);
	store_close(two);
}

int contract_run(const struct contract_target *tested)
{
	static const struct test_case cases[] = {
		{"empty_store_has_no_document", empty_store_has_no_document},
		{"generations_grow_by_one_and_older_ones_can_be_read",
			generations_grow_by_one_and_older_ones_can_be_read},
		{"stale_commit_changes_nothing", stale_commit_changes_nothing},
		{"document_outlives_its_handle", document_outlives_its_handle},
		{"history_is_bounded_and_keeps_the_newest",
			history_is_bounded_and_keeps_the_newest},
		{"large_document_comes_back_whole", large_document_comes_back_whole},
		{"of_many_writers_one_wins_each_generation",
			of_many_writers_one_wins_each_generation},
		{"keys_are_written_read_and_removed", keys_are_written_read_and_removed},
		{"swap_wants_what_is_there", swap_wants_what_is_there},
		{"bad_keys_are_refused", bad_keys_are_refused},
		{"listing_is_sorted_and_by_prefix", listing_is_sorted_and_by_prefix},
		{"lock_is_one_nodes_until_dropped", lock_is_one_nodes_until_dropped},
		{"lock_runs_out", lock_runs_out},
		{"audit_entries_are_chained_in_order", audit_entries_are_chained_in_order},
		{"watch_tells_of_other_writers", watch_tells_of_other_writers},
	};

	target = tested;
	return SUITE_RUN(tested->name, cases);
}
