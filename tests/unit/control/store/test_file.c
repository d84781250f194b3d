// SPDX-License-Identifier: Apache-2.0
// The `file` backend: the contract, and what is its own.
#include "tests/lib/suite.h"
#include "tests/unit/control/store/contract.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/ringway-store-XXXXXX";
static char path[64];

static int entry_remove(const char *name, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(name);
}

static void file_reset(void)
{
	nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static struct store *file_open(const char *node)
{
	struct config_store config = {.type = CONFIG_STORE_FILE, .path = path};
	char error[STORE_ERROR_BYTES];
	struct store *store = NULL;

	if (store_open(&config, node, &store, error) < 0)
		printf("# %s\n", error);
	return store;
}

static void file_write(const char *name, const char *text, int flags)
{
	char full[128];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", path, name);
	fd = open(full, O_WRONLY | O_CREAT | flags, 0600);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

// A crash before the rename leaves a half file aside; it is never taken for a document.
static void half_written_file_is_no_document(void)
{
	struct store *store;
	char *text = NULL;
	size_t length;
	uint64_t generation;

	file_reset();
	store = file_open("node-1");
	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	CU_ASSERT_EQUAL(store_commit(store, "good", 4, 0), 0);
	file_write("document/.new", "{\"ha", O_TRUNC);
	file_write("document/readme.txt", "not ours", O_TRUNC);
	CU_ASSERT_EQUAL(store_read(store, 0, &text, &length, &generation), 0);
	CU_ASSERT_STRING_EQUAL(text, "good");
	CU_ASSERT_EQUAL(generation, 1);
	free(text);
	CU_ASSERT_EQUAL(store_commit(store, "next", 4, 1), 0);
	store_close(store);
}

static void changed_audit_entry_is_found(void)
{
	struct store *store;
	uint64_t count = 0, broken = 0;
	char name[128];
	int fd;

	file_reset();
	store = file_open("node-1");
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(store_audit_append(store, "{\"share\": \"10%\"}"), 0);
	snprintf(name, sizeof(name), "%s/audit.log", path);
	fd = open(name, O_WRONLY);
	// One digit in the middle of the second line.
	CU_ASSERT_EQUAL(pwrite(fd, "9", 1, 82 + 65 + 11), 1);
	close(fd);
	CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), -EBADMSG);
	CU_ASSERT_EQUAL(broken, 2);
	store_close(store);
}

static void torn_audit_line_is_cut_and_the_chain_goes_on(void)
{
	struct store *store;
	uint64_t count = 0, broken = 0;

	file_reset();
	store = file_open("node-1");
	CU_ASSERT_EQUAL(store_audit_append(store, "{\"n\": 1}"), 0);
	file_write("audit.log", "0123456789abcdef", O_APPEND);
	CU_ASSERT_EQUAL(store_audit_append(store, "{\"n\": 2}"), 0);
	CU_ASSERT_EQUAL(store_audit_verify(store, &count, &broken), 0);
	CU_ASSERT_EQUAL(count, 2);
	store_close(store);
}

// Commits documents of one letter each, long enough to be killed in the middle of one.
static void letters_commit(void)
{
	struct store *store = file_open("node-1");
	size_t length = 300000;
	char *text = malloc(length);

	for (uint64_t generation = 0; store != NULL && text != NULL; generation++) {
		char *old = NULL;
		size_t old_length;
		uint64_t newest = 0;

		store_read(store, 0, &old, &old_length, &newest);
		free(old);
		memset(text, 'a' + (int)(newest % 26), length);
		if (store_commit(store, text, length, newest) < 0)
			break;
	}
	_exit(1);
}

static void expect_whole(struct store *store, uint64_t *last)
{
	char *text = NULL;
	size_t length = 0;
	uint64_t generation = 0;

	if (store_read(store, 0, &text, &length, &generation) == -ENOENT)
		return;
	CU_ASSERT_EQUAL(length, 300000);
	CU_ASSERT_TRUE(generation >= *last);
	for (size_t i = 0; text != NULL && i < length; i++) {
		if (text[i] != 'a' + (int)((generation - 1) % 26)) {
			CU_FAIL("a document is torn");
			break;
		}
	}
	*last = generation;
	free(text);
}

static void killed_writer_leaves_whole_documents(void)
{
	uint64_t seed = suite_seed(), last = 0;
	struct store *store;

	file_reset();
	fflush(stdout);
	for (unsigned round = 0; round < 40; round++) {
		pid_t writer = fork();

		if (writer == 0)
			letters_commit();
		usleep((useconds_t)(suite_random(&seed) % 20000));
		kill(writer, SIGKILL);
		waitpid(writer, NULL, 0);
		store = file_open("node-1");
		CU_ASSERT_PTR_NOT_NULL_FATAL(store);
		expect_whole(store, &last);
		store_close(store);
	}
	CU_ASSERT_TRUE(last > 0);
}

static void directory_that_cannot_be_made_is_an_error(void)
{
	struct config_store config = {.type = CONFIG_STORE_FILE, .path = "/proc/no-such/ringway"};
	char error[STORE_ERROR_BYTES] = "";
	struct store *store = NULL;

	CU_ASSERT_TRUE(store_open(&config, "node-1", &store, error) < 0);
	CU_ASSERT_PTR_NULL(store);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "/proc/no-such/ringway"));
}

static int own_run(void)
{
	static const struct test_case cases[] = {
		{"half_written_file_is_no_document", half_written_file_is_no_document},
		{"changed_audit_entry_is_found", changed_audit_entry_is_found},
		{"torn_audit_line_is_cut_and_the_chain_goes_on",
			torn_audit_line_is_cut_and_the_chain_goes_on},
		{"killed_writer_leaves_whole_documents", killed_writer_leaves_whole_documents},
		{"directory_that_cannot_be_made_is_an_error",
			directory_that_cannot_be_made_is_an_error},
	};

	return SUITE_RUN("store_file_own", cases);
}

int main(int argc, char **argv)
{
	static const struct contract_target target = {
		.name = "store_file", .open = file_open, .reset = file_reset};
	int rc;

	if (mkdtemp(directory) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/store", directory);
	rc = argc > 1 && strcmp(argv[1], "own") == 0 ? own_run() : contract_run(&target);
	file_reset();
	rmdir(directory);
	return rc;
}
