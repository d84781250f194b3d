// SPDX-License-Identifier: Apache-2.0
// The `etcd` backend: one key space of a cluster, below a prefix.
//
//	P/documents/0000…0042      {"id": ..., "parts": N, "bytes": N}: which parts make this generation
//	P/parts/ID/000…            a document in pieces below etcd's request limit; ID is its writer's, used once
//	P/keys/KEY                 small values
//	P/locks/NAME               the holder's name, on a lease: the only leases there are
//	P/audit/0000…0007          one line an entry
//
// Reads are linearizable: a member that is cut off from the others answers with an error, never with the past.
// A document is there when its generation's key is; parts are written before. Every transaction compares and writes
// in one step. A call that was sent twice (the first answer was lost) may find its own work done: that counts as
// done; key_swap looks for it in the history of the key, since others may have gone on from it.
#include "control/store/backend.h"
#include "control/store/etcd_client.h"
#include "control/store/etcd_credentials.h"
#include "control/store/etcd_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PART_BYTES    (512u << 10) // etcd takes requests of 1.5 MiB, base64 adds a third
#define PARTS_MAX     (STORE_DOCUMENT_BYTES / PART_BYTES + 1)
#define NUMBER_DIGITS 20
#define ID_BYTES      33
#define PATH_BYTES    256
#define AUDIT_TRIES   50u
#define SWAP_HISTORY  16u // values that a key can have had while one swap was waiting for its answer

struct etcd_state {
	struct etcd_client client;
	struct etcd_watch *watch;
	char root[PATH_BYTES / 4]; // prefix and a slash
};

// Hands the client's sentence on.
static int fail_client(struct store *store, int code)
{
	struct etcd_state *state = store->state;

	return store_fail(store, code, "%s", state->client.error);
}

static int call(struct store *store, const char *path, json_t *request, json_t **ret_reply)
{
	struct etcd_state *state = store->state;
	int rc = etcd_call(&state->client, path, request, ret_reply);

	return rc < 0 ? fail_client(store, rc) : 0;
}

__attribute__((format(printf, 3, 4))) static const char *key_path(
	struct store *store, char *ret, const char *format, ...)
{
	struct etcd_state *state = store->state;
	va_list args;
	int length = snprintf(ret, PATH_BYTES, "%s", state->root);

	va_start(args, format);
	vsnprintf(ret + length, PATH_BYTES - (size_t)length, format, args);
	va_end(args);
	return ret;
}

static json_t *encode_text(const char *text)
{
	return etcd_encode(text, strlen(text));
}

// --- pieces of requests ------------------------------------------------------------------------------

// The first key behind all that begin with prefix.
static json_t *encode_end(const char *prefix)
{
	char end[PATH_BYTES];
	size_t length = strlen(prefix);

	memcpy(end, prefix, length + 1);
	end[length - 1]++;
	return encode_text(end);
}

static json_t *range_of_prefix(const char *prefix)
{
	return json_pack("{s:o, s:o, s:s, s:s}", "key", encode_text(prefix), "range_end",
		encode_end(prefix), "sort_order", "ASCEND", "sort_target", "KEY");
}

// The last key of a prefix whose keys end in numbers of one width.
static json_t *range_of_last(const char *prefix)
{
	return json_pack("{s:o, s:o, s:s, s:s, s:i}", "key", encode_text(prefix), "range_end",
		encode_end(prefix), "sort_order", "DESCEND", "sort_target", "KEY", "limit", 1);
}

static json_t *compare_absent(const char *key)
{
	return json_pack("{s:o, s:s, s:s, s:s}", "key", encode_text(key), "target", "VERSION",
		"result", "EQUAL", "version", "0");
}

static json_t *compare_present(const char *key)
{
	return json_pack("{s:o, s:s, s:s, s:s}", "key", encode_text(key), "target", "VERSION",
		"result", "GREATER", "version", "0");
}

static json_t *compare_value(const char *key, const char *value)
{
	return json_pack("{s:o, s:s, s:s, s:o}", "key", encode_text(key), "target", "VALUE",
		"result", "EQUAL", "value", encode_text(value));
}

static json_t *put_of(const char *key, const char *value, size_t length)
{
	return json_pack(
		"{s:o, s:o}", "key", encode_text(key), "value", etcd_encode(value, length));
}

// Puts when all comparisons hold; if not, *ret_reply's responses hold what stands under key now.
// compares, put: stolen. Returns whether it was put, or -errno.
static int put_if(
	struct store *store, json_t *compares, const char *key, json_t *put, json_t **ret_reply)
{
	json_t *request = json_pack("{s:o, s:[{s:o}], s:[{s:{s:o}}]}", "compare", compares,
		"success", "request_put", put, "failure", "request_range", "key", encode_text(key));
	struct etcd_state *state = store->state;
	int rc = call(store, "kv/txn", request, ret_reply);

	if (rc == -EIO && state->client.sends > 0)
		return store_fail(store, rc,
			"it is not known whether this was done, look again when etcd answers: %s",
			state->client.error);
	return rc < 0 ? rc : json_is_true(json_object_get(*ret_reply, "succeeded"));
}

// The one value that a range, or the failure branch of put_if(), found. Returns NULL when there is none.
static char *value_of(const json_t *kvs_owner, size_t *ret_length)
{
	const json_t *first = json_array_get(json_object_get(kvs_owner, "kvs"), 0);

	return first ? etcd_decode(json_object_get(first, "value"), ret_length) : NULL;
}

static const json_t *failure_range(const json_t *reply)
{
	const json_t *first = json_array_get(json_object_get(reply, "responses"), 0);

	return json_object_get(first, "response_range");
}

static bool holds(const json_t *kvs_owner, const char *value)
{
	size_t length;
	char *there = value_of(kvs_owner, &length);
	bool same = there != NULL && strcmp(there, value) == 0;

	free(there);
	return same;
}

// Whether a put that did not go through found its own value there: the first answer was lost on the way.
static bool was_ours(struct store *store, const json_t *reply, const char *value)
{
	const struct etcd_state *state = store->state;

	return state->client.sends > 1 && holds(failure_range(reply), value);
}

// --- opening -----------------------------------------------------------------------------------------

static void etcd_close(struct store *store)
{
	struct etcd_state *state = store->state;

	etcd_watch_stop(state->watch);
	etcd_client_close(&state->client);
	free(state);
}

static int etcd_open(struct store *store, const struct config_store *config)
{
	struct etcd_state *state = calloc(1, sizeof(*state));
	size_t length = strlen(config->prefix);
	int rc;

	if (state == NULL)
		return store_fail(store, -ENOMEM, "out of memory");
	if (config->endpoint_count == 0 || length + 2 > sizeof(state->root)) {
		free(state);
		return store_fail(store, -EINVAL,
			"etcd needs endpoints and a prefix of at most %zu bytes",
			sizeof(state->root) - 2);
	}
	bool slash = length > 0 && config->prefix[length - 1] == '/';

	snprintf(state->root, sizeof(state->root), "%s%s", config->prefix, slash ? "" : "/");
	store->state = state;
	// A store that cannot be reached now is no reason not to start: the node serves what it has.
	// Files that are not there, or that anybody can read, are one.
	rc = etcd_credentials_check(config, store->error, sizeof(store->error));
	if (rc == 0)
		rc = etcd_client_open(&state->client, config);
	if (rc < 0) {
		if (store->error[0] == '\0')
			fail_client(store, rc);
		free(state);
		store->state = NULL;
	}
	return rc;
}

// --- document ----------------------------------------------------------------------------------------

static int new_id(char ret[static ID_BYTES])
{
	uint8_t random[(ID_BYTES - 1) / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	for (unsigned i = 0; i < sizeof(random); i++)
		snprintf(ret + 2 * i, 3, "%02x", random[i]);
	return 0;
}

static int parts_write(struct store *store, const char *id, const char *text, size_t length)
{
	int rc = 0;

	for (size_t at = 0, number = 0; at < length && rc == 0; at += PART_BYTES, number++) {
		size_t bytes = length - at < PART_BYTES ? length - at : PART_BYTES;
		char key[PATH_BYTES];
		json_t *reply = NULL;

		key_path(store, key, "parts/%s/%04zu", id, number);
		rc = call(store, "kv/put", put_of(key, text + at, bytes), &reply);
		json_decref(reply);
	}
	return rc;
}

static void remove_prefix(struct store *store, const char *prefix)
{
	json_t *reply = NULL;

	call(store, "kv/deleterange",
		json_pack(
			"{s:o, s:o}", "key", encode_text(prefix), "range_end", encode_end(prefix)),
		&reply);
	json_decref(reply);
}

static void parts_remove(struct store *store, const char *id)
{
	char prefix[PATH_BYTES];

	remove_prefix(store, key_path(store, prefix, "parts/%s/", id));
}

// Reads which parts make a generation; 0: the newest. -ENOENT: there is none.
static int manifest_read(
	struct store *store, uint64_t generation, json_t **ret, uint64_t *ret_generation)
{
	char key[PATH_BYTES];
	json_t *reply = NULL;
	size_t length = 0;
	int rc;

	if (generation == 0) {
		rc = call(store, "kv/range", range_of_last(key_path(store, key, "documents/")),
			&reply);
	} else {
		key_path(store, key, "documents/%0*" PRIu64, NUMBER_DIGITS, generation);
		rc = call(store, "kv/range", json_pack("{s:o}", "key", encode_text(key)), &reply);
	}
	if (rc < 0)
		return rc;
	char *text = value_of(reply, &length);
	const json_t *first = json_array_get(json_object_get(reply, "kvs"), 0);
	char *found = text ? etcd_decode(json_object_get(first, "key"), &length) : NULL;
	const char *digits = found ? strrchr(found, '/') : NULL;

	*ret = text ? json_loads(text, 0, NULL) : NULL;
	*ret_generation = digits ? strtoull(digits + 1, NULL, 10) : 0;
	if (text == NULL)
		rc = store_fail(store, -ENOENT,
			generation ? "that generation is gone" : "the store is empty");
	else if (*ret == NULL)
		rc = store_fail(store, -EPROTO, "the store holds a document that is none");
	free(found);
	free(text);
	json_decref(reply);
	return rc;
}

static int parts_join(struct store *store, const json_t *kvs, size_t bytes, char **ret_text)
{
	char *text = malloc(bytes + 1);
	size_t at = 0, i;
	json_t *kv;

	if (text == NULL)
		return store_fail(store, -ENOMEM, "out of memory");
	json_array_foreach (kvs, i, kv) {
		size_t length;
		char *part = etcd_decode(json_object_get(kv, "value"), &length);

		if (part != NULL && length <= bytes - at) {
			memcpy(text + at, part, length);
			at += length;
		}
		free(part);
	}
	if (at != bytes) {
		free(text);
		// Pruned while it was read, or another writer's prune went wrong.
		return store_fail(store, -ENOENT, "that generation is gone");
	}
	text[bytes] = '\0';
	*ret_text = text;
	return 0;
}

static int etcd_read(struct store *store, uint64_t generation, char **ret_text, size_t *ret_length,
	uint64_t *ret_generation)
{
	json_t *manifest = NULL, *reply = NULL;
	char prefix[PATH_BYTES];
	uint64_t found;
	int rc = manifest_read(store, generation, &manifest, &found);

	if (rc < 0)
		return rc;
	const char *id = json_string_value(json_object_get(manifest, "id"));
	uint64_t bytes = etcd_number(manifest, "bytes");

	if (id == NULL || strlen(id) != ID_BYTES - 1 || bytes > STORE_DOCUMENT_BYTES) {
		json_decref(manifest);
		return store_fail(store, -EPROTO, "the store holds a document that is none");
	}
	rc = call(store, "kv/range", range_of_prefix(key_path(store, prefix, "parts/%s/", id)),
		&reply);
	if (rc == 0)
		rc = parts_join(store, json_object_get(reply, "kvs"), bytes, ret_text);
	if (rc == 0) {
		*ret_length = bytes;
		*ret_generation = found;
	}
	json_decref(reply);
	json_decref(manifest);
	return rc;
}

static void history_prune(struct store *store, uint64_t newest)
{
	json_t *manifest, *reply = NULL;
	char key[PATH_BYTES];
	uint64_t old;

	if (newest <= STORE_HISTORY ||
		manifest_read(store, newest - STORE_HISTORY, &manifest, &old) < 0)
		return;
	const char *id = json_string_value(json_object_get(manifest, "id"));

	// The name first: what has no name is not read.
	key_path(store, key, "documents/%0*" PRIu64, NUMBER_DIGITS, old);
	call(store, "kv/deleterange", json_pack("{s:o}", "key", encode_text(key)), &reply);
	if (reply != NULL && id != NULL)
		parts_remove(store, id);
	json_decref(reply);
	json_decref(manifest);
}

// Names the parts as generation expected + 1: only if that has no parts yet and the one before it has.
static int manifest_commit(struct store *store, const char *manifest, uint64_t expected)
{
	char key[PATH_BYTES], before[PATH_BYTES];
	json_t *reply = NULL;
	int rc;

	key_path(store, key, "documents/%0*" PRIu64, NUMBER_DIGITS, expected + 1);
	key_path(store, before, "documents/%0*" PRIu64, NUMBER_DIGITS, expected);
	json_t *compares = json_pack("[o]", compare_absent(key));

	if (expected != 0)
		json_array_append_new(compares, compare_present(before));
	rc = put_if(store, compares, key, put_of(key, manifest, strlen(manifest)), &reply);
	if (rc == 0 && !was_ours(store, reply, manifest))
		rc = store_fail(store, -ESTALE,
			"generation %" PRIu64 " was expected, the store is past it", expected);
	json_decref(reply);
	return rc < 0 ? rc : 0;
}

// An empty store has generation 0; its first document may not come beside one that is there.
static int etcd_commit(struct store *store, const char *text, size_t length, uint64_t expected)
{
	char id[ID_BYTES], manifest[128];
	json_t *newest = NULL;
	uint64_t generation = 0;
	int rc = new_id(id);

	if (rc == 0)
		rc = manifest_read(store, 0, &newest, &generation);
	json_decref(newest);
	if (rc == -ENOENT)
		rc = 0;
	if (rc == 0 && generation != expected)
		rc = store_fail(store, -ESTALE,
			"generation %" PRIu64 " was expected, the store is at %" PRIu64, expected,
			generation);
	if (rc < 0)
		return rc;
	snprintf(manifest, sizeof(manifest), "{\"id\":\"%s\",\"parts\":%zu,\"bytes\":%zu}", id,
		(length + PART_BYTES - 1) / PART_BYTES, length);
	rc = parts_write(store, id, text, length);
	if (rc == 0)
		rc = manifest_commit(store, manifest, expected);
	if (rc == 0)
		history_prune(store, expected + 1);
	else if (rc == -ESTALE)
		parts_remove(store, id);
	return rc;
}

// --- keys --------------------------------------------------------------------------------------------

static int etcd_key_write(struct store *store, const char *key, const char *value, size_t length)
{
	char path[PATH_BYTES];
	json_t *reply = NULL;
	int rc;

	key_path(store, path, "keys/%s", key);
	rc = call(store, "kv/put", put_of(path, value, length), &reply);
	json_decref(reply);
	return rc;
}

// Whether value stood under a key between before and now: each older value is what was there just before the newer one
// came. now: what a range found; stolen. Returns 1, 0, or -errno.
static int stood_since(
	struct store *store, const char *path, json_t *now, const char *before, const char *value)
{
	for (unsigned i = 0; i < SWAP_HISTORY; i++) {
		const json_t *kv = json_array_get(json_object_get(now, "kvs"), 0);
		uint64_t revision = etcd_number(kv, "mod_revision");
		bool found = holds(now, value);
		bool first = kv == NULL || etcd_number(kv, "version") == 1 ||
			(before != NULL && holds(now, before));

		json_decref(now);
		now = NULL;
		if (found || first)
			return found;
		int rc = call(store, "kv/range",
			json_pack("{s:o, s:I}", "key", encode_text(path), "revision",
				(json_int_t)revision - 1),
			&now);

		if (rc < 0)
			return rc;
	}
	json_decref(now);
	return store_fail(store, -EIO, "it is not known whether this was done: look again");
}

static int etcd_key_swap(
	struct store *store, const char *key, const char *before, const char *value)
{
	struct etcd_state *state = store->state;
	char path[PATH_BYTES];
	json_t *reply = NULL;
	int rc;

	key_path(store, path, "keys/%s", key);
	rc = put_if(store,
		json_pack("[o]", before ? compare_value(path, before) : compare_absent(path)), path,
		put_of(path, value, strlen(value)), &reply);
	if (rc == 0 && state->client.sends > 1)
		rc = stood_since(
			store, path, json_incref((json_t *)failure_range(reply)), before, value);
	if (rc == 0)
		rc = store_fail(store, -ESTALE, "somebody else changed %s", key);
	json_decref(reply);
	return rc < 0 ? rc : 0;
}

static int etcd_key_read(struct store *store, const char *key, char **ret_value, size_t *ret_length)
{
	char path[PATH_BYTES];
	json_t *reply = NULL;
	int rc;

	key_path(store, path, "keys/%s", key);
	rc = call(store, "kv/range", json_pack("{s:o}", "key", encode_text(path)), &reply);
	if (rc == 0) {
		char *value = value_of(reply, ret_length);

		if (value != NULL)
			*ret_value = value;
		else
			rc = store_fail(store, -ENOENT, "there is no %s", key);
	}
	json_decref(reply);
	return rc;
}

static int etcd_key_remove(struct store *store, const char *key)
{
	char path[PATH_BYTES];
	json_t *reply = NULL;
	int rc;

	key_path(store, path, "keys/%s", key);
	rc = call(store, "kv/deleterange", json_pack("{s:o}", "key", encode_text(path)), &reply);
	json_decref(reply);
	return rc;
}

// Visits everything below a directory of the prefix in order. skip: bytes of the path that the visitor does not see.
static int visit_all(
	struct store *store, json_t *range, size_t skip, store_visit visit, void *context)
{
	json_t *reply = NULL, *kv;
	size_t i;
	int rc = call(store, "kv/range", range, &reply);

	json_array_foreach (json_object_get(reply, "kvs"), i, kv) {
		size_t key_length = 0, length = 0;
		char *key = etcd_decode(json_object_get(kv, "key"), &key_length);
		char *value = etcd_decode(json_object_get(kv, "value"), &length);

		if (key != NULL && value != NULL && key_length > skip && rc == 0)
			rc = visit(context, key + skip, value, length);
		free(key);
		free(value);
		if (rc != 0)
			break;
	}
	json_decref(reply);
	return rc;
}

static int etcd_key_list(struct store *store, const char *prefix, store_visit visit, void *context)
{
	char path[PATH_BYTES], root[PATH_BYTES];

	key_path(store, path, "keys/%s", prefix);
	key_path(store, root, "keys/");
	return visit_all(store, range_of_prefix(path), strlen(root), visit, context);
}

// --- locks -------------------------------------------------------------------------------------------

static int lease_grant(struct store *store, uint32_t ttl_s, char ret[static 24])
{
	json_t *reply = NULL;
	int rc = call(store, "lease/grant", json_pack("{s:i}", "TTL", (int)ttl_s), &reply);

	if (rc == 0)
		snprintf(ret, 24, "%" PRIu64, etcd_number(reply, "ID"));
	json_decref(reply);
	return rc;
}

static void lease_revoke(struct store *store, const char *lease)
{
	json_t *reply = NULL;

	call(store, "lease/revoke", json_pack("{s:s}", "ID", lease), &reply);
	json_decref(reply);
}

// Ours already: put it on the new lease, in place of the old one.
static int lock_renew(struct store *store, const char *path, const json_t *held, const char *lease)
{
	const json_t *kv = json_array_get(json_object_get(held, "kvs"), 0);
	const char *old = json_string_value(json_object_get(kv, "lease"));
	json_t *put = put_of(path, store->node, strlen(store->node));
	json_t *reply = NULL;
	int rc;

	json_object_set_new(put, "lease", json_string(lease));
	rc = put_if(store, json_pack("[o]", compare_value(path, store->node)), path, put, &reply);
	json_decref(reply);
	if (rc == 1 && old != NULL && strcmp(old, lease) != 0)
		lease_revoke(store, old);
	return rc;
}

// Who holds a lock that is not ours; a look costs no lease, and most of a fleet only ever looks.
static int lock_look(struct store *store, const char *path, char *ret_holder)
{
	json_t *reply = NULL;
	size_t length = 0;
	int rc = call(store, "kv/range", json_pack("{s:o}", "key", encode_text(path)), &reply);
	char *holder = rc == 0 ? value_of(reply, &length) : NULL;

	if (holder != NULL && strcmp(holder, store->node) != 0) {
		snprintf(ret_holder, STORE_KEY_BYTES, "%s", holder);
		rc = store_fail(store, -EBUSY, "a lock is held by %s", holder);
	}
	free(holder);
	json_decref(reply);
	return rc;
}

static int etcd_lock_take(struct store *store, const char *name, uint32_t ttl_s, char *ret_holder)
{
	char path[PATH_BYTES], lease[24];
	json_t *reply = NULL, *put;
	int rc;

	key_path(store, path, "locks/%s", name);
	rc = lock_look(store, path, ret_holder);
	if (rc == 0)
		rc = lease_grant(store, ttl_s, lease);
	if (rc < 0)
		return rc;
	put = put_of(path, store->node, strlen(store->node));
	json_object_set_new(put, "lease", json_string(lease));
	rc = put_if(store, json_pack("[o]", compare_absent(path)), path, put, &reply);
	if (rc == 0) {
		size_t length = 0;
		char *holder = value_of(failure_range(reply), &length);

		snprintf(ret_holder, STORE_KEY_BYTES, "%s", holder ? holder : "nobody");
		if (holder != NULL && strcmp(holder, store->node) == 0)
			rc = lock_renew(store, path, failure_range(reply), lease);
		free(holder);
	} else if (rc == 1) {
		snprintf(ret_holder, STORE_KEY_BYTES, "%s", store->node);
	}
	json_decref(reply);
	if (rc == 1)
		return 0;
	if (rc == 0)
		rc = store_fail(store, -EBUSY, "lock %s is held by %s", name, ret_holder);
	lease_revoke(store, lease);
	return rc;
}

static int etcd_lock_drop(struct store *store, const char *name)
{
	char path[PATH_BYTES];
	json_t *reply = NULL;
	int rc;

	key_path(store, path, "locks/%s", name);
	json_t *request =
		json_pack("{s:[o], s:[{s:{s:o}}]}", "compare", compare_value(path, store->node),
			"success", "request_delete_range", "key", encode_text(path));

	rc = call(store, "kv/txn", request, &reply);
	json_decref(reply);
	return rc;
}

// --- audit log ---------------------------------------------------------------------------------------

// The number and the line of the last entry; 0 and "" when there is none. *ret_line is the caller's to free.
static int audit_last(struct store *store, uint64_t *ret_number, char **ret_line)
{
	char prefix[PATH_BYTES];
	json_t *reply = NULL;
	size_t length = 0;
	int rc = call(store, "kv/range", range_of_last(key_path(store, prefix, "audit/")), &reply);

	if (rc < 0)
		return rc;
	const json_t *kv = json_array_get(json_object_get(reply, "kvs"), 0);
	char *key = kv ? etcd_decode(json_object_get(kv, "key"), &length) : NULL;
	const char *digits = key ? strrchr(key, '/') : NULL;

	*ret_number = digits ? strtoull(digits + 1, NULL, 10) : 0;
	*ret_line = kv ? etcd_decode(json_object_get(kv, "value"), &length) : strdup("");
	free(key);
	json_decref(reply);
	return *ret_line ? 0 : store_fail(store, -ENOMEM, "out of memory");
}

// One try: the entry follows the last one, unless somebody else's did first. Returns whether it did, or -errno.
static int audit_try(struct store *store, store_audit_make make, const char *entry)
{
	char key[PATH_BYTES], *last = NULL;
	json_t *reply = NULL;
	uint64_t number;
	int rc = audit_last(store, &number, &last);

	if (rc < 0)
		return rc;
	char *line = make(last, entry);

	free(last);
	if (line == NULL)
		return store_fail(store, -ENOMEM, "out of memory");
	key_path(store, key, "audit/%0*" PRIu64, NUMBER_DIGITS, number + 1);
	rc = put_if(store, json_pack("[o]", compare_absent(key)), key,
		put_of(key, line, strlen(line)), &reply);
	if (rc == 0)
		rc = was_ours(store, reply, line);
	json_decref(reply);
	free(line);
	return rc;
}

static int etcd_audit_append(struct store *store, store_audit_make make, const char *entry)
{
	for (unsigned i = 0; i < AUDIT_TRIES; i++) {
		int rc = audit_try(store, make, entry);

		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	return store_fail(store, -EAGAIN, "too many write to the audit log at once");
}

static int etcd_audit_list(struct store *store, uint64_t first, store_visit visit, void *context)
{
	char from[PATH_BYTES], prefix[PATH_BYTES];

	key_path(store, prefix, "audit/");
	key_path(store, from, "audit/%0*" PRIu64, NUMBER_DIGITS, first);
	json_t *range = range_of_prefix(prefix);

	json_object_set_new(range, "key", encode_text(from));
	return visit_all(store, range, strlen(prefix), visit, context);
}

// --- watch -------------------------------------------------------------------------------------------

static int etcd_watch_open(struct store *store)
{
	struct etcd_state *state = store->state;
	int rc = 0;

	// A store that is known to be lost is not waited for.
	if (state->watch == NULL)
		rc = etcd_watch_start(state->client.config, state->root,
			state->client.down_count == 0, &state->watch);
	if (rc < 0)
		return store_fail(store, rc, "cannot watch: %s", strerror(-rc));
	return etcd_watch_descriptor(state->watch);
}

static bool etcd_watch_taken(struct store *store)
{
	struct etcd_state *state = store->state;

	return state->watch != NULL && etcd_watch_take(state->watch);
}

const struct store_backend store_etcd = {
	.name = "etcd",
	.open = etcd_open,
	.close = etcd_close,
	.read = etcd_read,
	.commit = etcd_commit,
	.key_write = etcd_key_write,
	.key_swap = etcd_key_swap,
	.key_read = etcd_key_read,
	.key_remove = etcd_key_remove,
	.key_list = etcd_key_list,
	.lock_take = etcd_lock_take,
	.lock_drop = etcd_lock_drop,
	.audit_append = etcd_audit_append,
	.audit_list = etcd_audit_list,
	.watch = etcd_watch_open,
	.watch_take = etcd_watch_taken,
};
