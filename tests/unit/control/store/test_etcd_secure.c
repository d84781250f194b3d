// SPDX-License-Identifier: Apache-2.0
// Certificates, passwords, tokens and permissions: what works, and what each fault says.
//
//	test_etcd_secure simple   etcd keeps tokens in memory: a member that was started anew knows none
//	test_etcd_secure signed   tokens are signed: they outlive members, and end on time
#include "tests/lib/suite.h"
#include "tests/unit/control/store/etcd_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void copy(const char *from, const char *to)
{
	char command[256];

	snprintf(command, sizeof(command), "cd %s && cp %s new && mv new %s", cluster.directory,
		from, to);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

// A call on a store must fail with a sentence that has all the words, NULL at the end, and not the password.
static void expect_told(int rc, int wanted, const char *said, const char *const *words)
{
	CU_ASSERT_EQUAL(rc, wanted);
	printf("# %d: %s\n", rc, said);
	for (; *words != NULL; words++) {
		if (strstr(said, *words) == NULL) {
			printf("# not said: %s\n", *words);
			CU_FAIL("the sentence lacks a word");
		}
	}
	CU_ASSERT_PTR_NULL(strstr(said, ETCD_PASSWORD));
}

// Opens a store as config says; its first call must fail so.
static void expect_call_told(int wanted, const char *const *words)
{
	struct store *store = fixture_open("node-1");

	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	int rc = store_key_write(store, "k", "v", 1);

	expect_told(rc, wanted, store_error(store), words);
	store_close(store);
}

static void expect_open_told(int wanted, const char *const *words)
{
	char error[STORE_ERROR_BYTES] = "";
	struct store *store = NULL;
	int rc = store_open(&config, "node-1", &store, error);

	expect_told(rc, wanted, error, words);
	CU_ASSERT_PTR_NULL(store);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void authority_that_did_not_sign_is_named(void)
{
	fixture_reset();
	char *ca = etcd_file(&cluster, "other-ca.pem");

	config.tls.ca = ca;
	expect_call_told(-EIO, WORDS("https://127.0.0.1:", "store.tls.ca", "other-ca.pem"));
	free(ca);
}

static void certificate_of_another_authority_is_named(void)
{
	fixture_reset();
	char *certificate = etcd_file(&cluster, "stranger.pem");
	char *key = etcd_file(&cluster, "stranger.key");

	config.tls.certificate = certificate;
	config.tls.key = key;
	expect_call_told(
		-EIO, WORDS("https://127.0.0.1:", "store.tls.certificate", "stranger.pem"));
	free(certificate);
	free(key);
}

static void certificate_that_is_missing_is_asked_for(void)
{
	fixture_reset();
	config.tls.certificate = "";
	config.tls.key = "";
	expect_call_told(-EIO, WORDS("https://127.0.0.1:", "store.tls.certificate"));
}

static void certificate_with_a_name_is_refused(void)
{
	fixture_reset();
	char *certificate = etcd_file(&cluster, "named.pem"),
	     *key = etcd_file(&cluster, "named.key");

	config.tls.certificate = certificate;
	config.tls.key = key;
	expect_call_told(-EACCES, WORDS("https://127.0.0.1:", "common name", "named.pem"));
	free(certificate);
	free(key);
}

static void key_of_another_certificate_is_named(void)
{
	fixture_reset();
	char *key = etcd_file(&cluster, "stranger.key");

	config.tls.key = key;
	expect_call_told(-EIO, WORDS("store.tls.key", "stranger.key"));
	free(key);
}

static void authorities_that_are_none_are_named(void)
{
	fixture_reset();
	config.tls.ca = config.password_file;
	expect_call_told(-EIO, WORDS("store.tls.ca", "password"));
}

// The certificate ends while the store is in use; a new one is put in its place, and the same store goes on.
static void certificate_is_renewed_without_a_restart(void)
{
	fixture_reset();
	char *certificate = etcd_file(&cluster, "used.pem"), *key = etcd_file(&cluster, "used.key");
	int rc = -EIO;

	copy("expired.pem", "used.pem");
	copy("expired.key", "used.key");
	config.tls.certificate = certificate;
	config.tls.key = key;
	struct store *store = fixture_open("node-1");

	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	rc = store_key_write(store, "k", "v", 1);
	expect_told(rc, -EIO, store_error(store),
		WORDS("https://127.0.0.1:", "store.tls.certificate", "used.pem expired on 20"));
	copy("node.pem", "used.pem");
	copy("node.key", "used.key");
	for (unsigned i = 0; i < 100 && rc != 0; i++) {
		rc = store_key_write(store, "k", "v", 1);
		usleep(100000);
	}
	CU_ASSERT_EQUAL(rc, 0);
	store_close(store);
	free(certificate);
	free(key);
}

// Wrong, then right: the file is read with each login. Meanwhile etcd is not asked again and again.
static void password_is_changed_without_a_restart(void)
{
	fixture_reset();
	char *password = etcd_file(&cluster, "used-password");
	int rc = -EACCES;

	copy("ca.pem", "used-password");
	config.password_file = password;
	struct store *store = fixture_open("node-1");

	CU_ASSERT_PTR_NOT_NULL_FATAL(store);
	rc = store_key_write(store, "k", "v", 1);
	expect_told(rc, -EACCES, store_error(store),
		WORDS("https://127.0.0.1:", "user " ETCD_USER, "used-password"));
	rc = store_key_write(store, "k", "v", 1);
	expect_told(rc, -EACCES, store_error(store), WORDS("used-password"));
	copy("password", "used-password");
	for (unsigned i = 0; i < 100 && rc != 0; i++) {
		rc = store_key_write(store, "k", "v", 1);
		usleep(100000);
	}
	CU_ASSERT_EQUAL(rc, 0);
	store_close(store);
	free(password);
}

static void user_that_is_missing_is_asked_for(void)
{
	fixture_reset();
	config.user = "";
	config.password_file = "";
	expect_call_told(-EACCES, WORDS("https://127.0.0.1:", "store.user", "store.password_file"));
}

static void prefix_that_is_not_the_users_is_named(void)
{
	char *text = NULL;
	size_t length;
	uint64_t generation;

	fixture_reset();
	config.prefix = "/others";
	expect_call_told(-EACCES,
		WORDS("https://127.0.0.1:", "user " ETCD_USER, "permission denied", "/others/"));
	struct store *store = fixture_open("node-1");
	int rc = store_commit(store, "one", 3, 0);

	expect_told(rc, -EACCES, store_error(store), WORDS("/others/"));
	rc = store_read(store, 0, &text, &length, &generation);
	expect_told(rc, -EACCES, store_error(store), WORDS("/others/"));
	store_close(store);
}

// What is refused for its mode, and what is not: root's files may be read by a group.
static void secrets_that_others_can_read_are_refused(void)
{
	static const struct {
		mode_t mode;
		uid_t owner;
		bool taken;
	} tries[] = {{0400, 0, true}, {0600, 0, true}, {0640, 0, true}, {0644, 0, false},
		{0660, 0, false}, {0404, 0, false}, {0400, 65534, true}, {0440, 65534, false}};
	char *files[] = {etcd_file(&cluster, "open.key"), etcd_file(&cluster, "open-password")};

	copy("node.key", "open.key");
	copy("password", "open-password");
	for (unsigned i = 0; i < 2 * sizeof(tries) / sizeof(tries[0]); i++) {
		const char *file = files[i % 2];

		if (geteuid() != 0 && tries[i / 2].owner != 0)
			continue;
		fixture_reset();
		*(i % 2 == 0 ? &config.tls.key : &config.password_file) = file;
		CU_ASSERT_EQUAL_FATAL(chmod(file, tries[i / 2].mode), 0);
		CU_ASSERT_EQUAL_FATAL(geteuid() == 0 ? chown(file, tries[i / 2].owner, 0) : 0, 0);
		if (!tries[i / 2].taken) {
			expect_open_told(-EPERM,
				WORDS(i % 2 == 0 ? "store.tls.key" : "store.password_file", file,
					"chmod 0400"));
			continue;
		}
		struct store *store = fixture_open("node-1");

		CU_ASSERT_PTR_NOT_NULL(store);
		store_close(store);
	}
	free(files[0]);
	free(files[1]);
}

static void files_that_are_not_there_are_named(void)
{
	const char **keys[] = {
		&config.tls.ca, &config.tls.certificate, &config.tls.key, &config.password_file};
	const char *names[] = {
		"store.tls.ca", "store.tls.certificate", "store.tls.key", "store.password_file"};

	for (unsigned i = 0; i < 4; i++) {
		fixture_reset();
		*keys[i] = "/nonexistent/file";
		expect_open_told(-ENOENT, WORDS(names[i], "/nonexistent/file"));
	}
}

// Nobody asks for longer than a token lives; the next call logs in, once, and is done.
static void token_that_ran_out_is_renewed(void)
{
	fixture_reset();
	struct store *store = fixture_open("node-1");

	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
		CU_ASSERT_EQUAL(store_lock_take(store, "conductor", 60, NULL), 0);
		usleep(ETCD_TOKEN_S * 1000000 + 1200000);
	}
	CU_ASSERT_EQUAL(store_commit(store, "one", 3, 0), 0);
	store_close(store);
}

// Each member is killed and comes back without its memory.
static void member_that_was_started_anew_is_logged_in_to(void)
{
	fixture_reset();
	struct store *store = fixture_open("node-1");

	for (unsigned i = 0; i < cluster.member_count; i++) {
		int rc = -EIO;

		etcd_member_kill(&cluster, i);
		CU_ASSERT_EQUAL_FATAL(etcd_member_start(&cluster, i), 0);
		for (unsigned tries = 0; tries < 300 && rc != 0; tries++) {
			rc = store_key_write(store, "k", "v", 1);
			CU_ASSERT_TRUE(rc == 0 || rc == -EIO); // never refused
			if (rc != 0)
				usleep(100000);
		}
		CU_ASSERT_EQUAL(rc, 0);
	}
	store_close(store);
}

// Users change: signed tokens of before are told to be old, kept ones go with their user.
static void change_of_users_is_followed(void)
{
	fixture_reset();
	struct store *store = fixture_open("node-1");

	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
	CU_ASSERT_EQUAL_FATAL(etcd_control(&cluster, 0, "role add another"), 0);
	CU_ASSERT_EQUAL_FATAL(etcd_control(&cluster, 0, "user add other:one"), 0);
	CU_ASSERT_EQUAL_FATAL(etcd_control(&cluster, 0, "user grant-role other another"), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
	CU_ASSERT_EQUAL_FATAL(etcd_control(&cluster, 0, "user delete other"), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
	store_close(store);
}

// Users are turned off and on again while a store is in use: a fleet is configured first.
static void users_may_be_turned_on_later(void)
{
	fixture_reset();
	CU_ASSERT_EQUAL_FATAL(etcd_control(&cluster, 0, "auth disable"), 0);
	struct store *store = fixture_open("node-1");

	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
	CU_ASSERT_EQUAL_FATAL(etcd_control(&cluster, 0, "auth enable"), 0);
	CU_ASSERT_EQUAL(store_key_write(store, "k", "v", 1), 0);
	store_close(store);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		SUITE_CASE(authority_that_did_not_sign_is_named),
		SUITE_CASE(certificate_of_another_authority_is_named),
		SUITE_CASE(certificate_that_is_missing_is_asked_for),
		SUITE_CASE(certificate_with_a_name_is_refused),
		SUITE_CASE(key_of_another_certificate_is_named),
		SUITE_CASE(authorities_that_are_none_are_named),
		SUITE_CASE(certificate_is_renewed_without_a_restart),
		SUITE_CASE(password_is_changed_without_a_restart),
		SUITE_CASE(user_that_is_missing_is_asked_for),
		SUITE_CASE(prefix_that_is_not_the_users_is_named),
		SUITE_CASE(secrets_that_others_can_read_are_refused),
		SUITE_CASE(files_that_are_not_there_are_named),
		SUITE_CASE(token_that_ran_out_is_renewed),
		SUITE_CASE(member_that_was_started_anew_is_logged_in_to),
		SUITE_CASE(change_of_users_is_followed),
		SUITE_CASE(users_may_be_turned_on_later),
	};
	bool is_signed = argc > 1 && strcmp(argv[1], "signed") == 0;

	if (!etcd_installed()) {
		printf("1..0 # SKIP needs etcd, etcdctl and openssl\n");
		return 0;
	}
	if (!fixture_begin(3, is_signed ? ETCD_SECURE_SIGNED : ETCD_SECURE)) {
		printf("Bail out! etcd did not start\n");
		return 1;
	}
	int rc = SUITE_RUN("etcd secure", cases);

	fixture_end();
	return rc;
}
