// SPDX-License-Identifier: Apache-2.0
#include "control/store/store.h"

#include "control/store/backend.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_TEXT_BYTES (2 * STORE_HASH_BYTES)

int store_fail(struct store *store, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(store->error, sizeof(store->error), format, args);
	va_end(args);
	return code;
}

const char *store_error(const struct store *store)
{
	return store->error;
}

int store_open(const struct config_store *config, const char *node, struct store **ret,
	char ret_error[static STORE_ERROR_BYTES])
{
	struct store *store = calloc(1, sizeof(*store));
	int rc;

	if (store == NULL)
		return -ENOMEM;
	snprintf(store->node, sizeof(store->node), "%s", node);
	store->backend = config->type == CONFIG_STORE_ETCD ? &store_etcd : &store_file;
	rc = store->backend->open(store, config);
	if (rc < 0) {
		snprintf(ret_error, STORE_ERROR_BYTES, "%s", store->error);
		free(store);
		return rc;
	}
	*ret = store;
	return 0;
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	store->backend->close(store);
	free(store);
}

int store_read(struct store *store, uint64_t generation, char **ret_text, size_t *ret_length,
	uint64_t *ret_generation)
{
	return store->backend->read(store, generation, ret_text, ret_length, ret_generation);
}

int store_commit(struct store *store, const char *text, size_t length, uint64_t expected)
{
	if (length == 0 || length > STORE_DOCUMENT_BYTES)
		return store_fail(store, -EFBIG, "a document of %zu bytes is not taken", length);
	return store->backend->commit(store, text, length, expected);
}

// Parts of letters, digits, '.', '_', '-', joined by '/'; none is empty or begins with a dot, so a key never leaves
// the place where keys are kept.
static bool key_is_good(const char *key)
{
	bool start = true;

	if (strlen(key) >= STORE_KEY_BYTES)
		return false;
	for (; *key != '\0'; key++) {
		bool letter = isalnum((unsigned char)*key) || *key == '_';

		if (start && !letter)
			return false;
		if (!letter && *key != '.' && *key != '-' && *key != '/')
			return false;
		start = *key == '/';
	}
	return !start;
}

static int key_check(struct store *store, const char *key)
{
	if (key_is_good(key))
		return 0;
	return store_fail(store, -EINVAL, "\"%.32s\" is no key", key);
}

int store_key_write(struct store *store, const char *key, const char *value, size_t length)
{
	int rc = key_check(store, key);

	if (rc == 0 && length > STORE_VALUE_BYTES)
		rc = store_fail(store, -EFBIG, "a value of %zu bytes is not taken", length);
	return rc < 0 ? rc : store->backend->key_write(store, key, value, length);
}

int store_key_swap(struct store *store, const char *key, const char *before, const char *value)
{
	int rc = key_check(store, key);

	if (rc == 0 && strlen(value) > STORE_VALUE_BYTES)
		rc = store_fail(store, -EFBIG, "a value of %zu bytes is not taken", strlen(value));
	return rc < 0 ? rc : store->backend->key_swap(store, key, before, value);
}

int store_key_read(struct store *store, const char *key, char **ret_value, size_t *ret_length)
{
	int rc = key_check(store, key);

	return rc < 0 ? rc : store->backend->key_read(store, key, ret_value, ret_length);
}

int store_key_remove(struct store *store, const char *key)
{
	int rc = key_check(store, key);

	return rc < 0 ? rc : store->backend->key_remove(store, key);
}

int store_key_list(struct store *store, const char *prefix, store_visit visit, void *context)
{
	return store->backend->key_list(store, prefix, visit, context);
}

int store_lock_take(struct store *store, const char *name, uint32_t ttl_s, char *ret_holder)
{
	char holder[STORE_KEY_BYTES];
	int rc = key_check(store, name);

	if (rc == 0 && ttl_s == 0)
		rc = store_fail(store, -EINVAL, "a lock needs a time to live");
	if (rc < 0)
		return rc;
	return store->backend->lock_take(
		store, name, ttl_s, ret_holder != NULL ? ret_holder : holder);
}

int store_lock_drop(struct store *store, const char *name)
{
	int rc = key_check(store, name);

	return rc < 0 ? rc : store->backend->lock_drop(store, name);
}

// The chain: hash(n) = SHA-256(hash(n - 1) as text, entry n); the first entry follows the empty text.
static int chain_hash(
	const char *before, size_t before_length, const char *entry, uint8_t ret[STORE_HASH_BYTES])
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	int good = digest != NULL && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) &&
		EVP_DigestUpdate(digest, before, before_length) &&
		EVP_DigestUpdate(digest, entry, strlen(entry)) &&
		EVP_DigestFinal_ex(digest, ret, NULL);

	EVP_MD_CTX_free(digest);
	return good ? 0 : -ENOMEM;
}

static void hash_format(const uint8_t hash[STORE_HASH_BYTES], char *ret)
{
	for (unsigned i = 0; i < STORE_HASH_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", hash[i]);
}

static char *audit_line(const char *last, const char *entry)
{
	size_t length = strlen(entry);
	char *line = malloc(HASH_TEXT_BYTES + 1 + length + 1);
	uint8_t hash[STORE_HASH_BYTES];

	if (line == NULL)
		return NULL;
	if (chain_hash(last, strnlen(last, HASH_TEXT_BYTES), entry, hash) < 0) {
		free(line);
		return NULL;
	}
	hash_format(hash, line);
	line[HASH_TEXT_BYTES] = ' ';
	memcpy(line + HASH_TEXT_BYTES + 1, entry, length + 1);
	return line;
}

int store_audit_append(struct store *store, const char *entry)
{
	size_t length = strlen(entry);

	if (length == 0 || length > STORE_VALUE_BYTES || strchr(entry, '\n') != NULL)
		return store_fail(store, -EINVAL, "an audit entry is one line");
	return store->backend->audit_append(store, audit_line, entry);
}

struct audit_walk {
	store_audit_visit visit;
	void *context;
	bool verify;
	char before[HASH_TEXT_BYTES + 1];
	uint64_t count;
	uint64_t broken; // number of the first entry that does not fit; 0: none
};

static bool hash_parse(const char *text, uint8_t ret[STORE_HASH_BYTES])
{
	if (strspn(text, "0123456789abcdef") != HASH_TEXT_BYTES || text[HASH_TEXT_BYTES] != ' ')
		return false;
	for (unsigned i = 0; i < STORE_HASH_BYTES; i++) {
		const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

		ret[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return true;
}

static int audit_step(void *context, const char *key, const char *line, size_t length)
{
	struct audit_walk *walk = context;
	uint64_t number = strtoull(key, NULL, 10);
	uint8_t hash[STORE_HASH_BYTES], wanted[STORE_HASH_BYTES];
	bool good = hash_parse(line, hash);
	int rc;

	(void)length;
	walk->count++;
	if (!walk->verify)
		return good ? walk->visit(walk->context, number, line + HASH_TEXT_BYTES + 1, hash)
			    : -EBADMSG;
	if (good) {
		rc = chain_hash(
			walk->before, strlen(walk->before), line + HASH_TEXT_BYTES + 1, wanted);
		if (rc < 0)
			return rc;
		good = memcmp(hash, wanted, sizeof(hash)) == 0 && number == walk->count;
		hash_format(hash, walk->before);
	}
	if (good)
		return 0;
	walk->broken = walk->count;
	return -EBADMSG;
}

int store_audit_list(struct store *store, uint64_t first, store_audit_visit visit, void *context)
{
	struct audit_walk walk = {.visit = visit, .context = context};

	return store->backend->audit_list(store, first, audit_step, &walk);
}

int store_audit_verify(struct store *store, uint64_t *ret_count, uint64_t *ret_number)
{
	struct audit_walk walk = {.verify = true};
	int rc = store->backend->audit_list(store, 1, audit_step, &walk);

	*ret_count = walk.count;
	*ret_number = walk.broken;
	if (rc == -EBADMSG)
		return store_fail(store, rc,
			"audit entry %llu does not follow from those before it",
			(unsigned long long)walk.broken);
	return rc;
}

int store_watch(struct store *store)
{
	return store->backend->watch(store);
}

bool store_watch_take(struct store *store)
{
	return store->backend->watch_take(store);
}
