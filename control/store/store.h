// SPDX-License-Identifier: Apache-2.0
// Where committed state is kept: one document with generations, keys, locks, and the audit log.
//
// Two backends stand behind this interface: `file` (one directory, this node alone) and `etcd` (a fleet). Both pass
// the same tests (tests/unit/control/store/contract.c). A store that is lost freezes changes; it never changes what
// is in use.
// Context: one thread. Calls block for at most the backend's timeout (file: the disk; etcd: 5 s).
#pragma once

#include "control/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_ERROR_BYTES    512u
#define STORE_DOCUMENT_BYTES CONFIG_BYTES_MAX
#define STORE_KEY_BYTES      128u // with the NUL: letters, digits, '.', '_', '-', and '/' between parts
#define STORE_VALUE_BYTES    (1u << 20)
#define STORE_HISTORY        32u // generations that can still be read, the newest included
#define STORE_HASH_BYTES     32u // SHA-256

struct store;

// Opens the store that the node's configuration names.
// node: name of this node, for locks and the audit log.
// Returns 0 or -errno; ret_error is then a sentence for people.
int store_open(const struct config_store *config, const char *node, struct store **ret,
	char ret_error[static STORE_ERROR_BYTES]);
void store_close(struct store *store);

// Why the last call that failed did so: a sentence for people.
const char *store_error(const struct store *store);

// --- document ------------------------------------------------------------------------------------

// Reads a generation of the document; 0: the newest.
// Returns 0; -ENOENT when there is none (or no longer); -EIO and others when the store is not to be had.
// *ret_text: NUL-terminated, the caller's, to be freed.
int store_read(struct store *store, uint64_t generation, char **ret_text, size_t *ret_length,
	uint64_t *ret_generation);

// Commits text as generation expected + 1, if the newest is still expected (0: there is none yet).
// Durable when it returns 0. -ESTALE: somebody else committed first. Others: it is not known to be committed;
// read again.
int store_commit(struct store *store, const char *text, size_t length, uint64_t expected);

// --- keys: small values, the last writer wins ------------------------------------------------------

int store_key_write(struct store *store, const char *key, const char *value, size_t length);
// Writes a value in place of another, both NUL-terminated: only while the key still holds before (NULL: nothing).
// Returns 0; -ESTALE: it holds something else; others: it is not known to be written; read again.
int store_key_swap(struct store *store, const char *key, const char *before, const char *value);

int store_key_read(
	struct store *store, const char *key, char **ret_value, size_t *ret_length); // -ENOENT
int store_key_remove(struct store *store, const char *key); // 0 also when there is none

// Calls visit for all keys that begin with prefix, in order; it stops at the first visit that returns not 0.
// Returns 0, what visit returned, or -errno.
typedef int (*store_visit)(void *context, const char *key, const char *value, size_t length);
int store_key_list(struct store *store, const char *prefix, store_visit visit, void *context);

// --- locks -----------------------------------------------------------------------------------------

// Takes or renews a lock for ttl_s seconds; it is this node's until then, whatever happens to the node.
// Returns 0, or -EBUSY when another holds it (ret_holder, STORE_KEY_BYTES, says who; may be NULL).
int store_lock_take(struct store *store, const char *name, uint32_t ttl_s, char *ret_holder);

// Gives a lock back that this node holds. Returns 0 also when it holds none.
int store_lock_drop(struct store *store, const char *name);

// --- audit log: append-only, each entry carries the hash of all before it ----------------------------

// Appends an entry: one line of JSON. Returns 0 or -errno.
int store_audit_append(struct store *store, const char *entry);

// Calls visit for entries from number first on (1 is the oldest); hash: of the chain up to and with this entry.
typedef int (*store_audit_visit)(
	void *context, uint64_t number, const char *entry, const uint8_t hash[STORE_HASH_BYTES]);
int store_audit_list(struct store *store, uint64_t first, store_audit_visit visit, void *context);

// Walks the whole chain. Returns 0; -EBADMSG when an entry was changed, left out or put in, and *ret_number is the
// first that does not fit; *ret_count: entries seen.
int store_audit_verify(struct store *store, uint64_t *ret_count, uint64_t *ret_number);

// --- watch -----------------------------------------------------------------------------------------

// A descriptor that polls readable when document or keys may have changed, by anybody. A hint: read to know. Keys that
// begin with "status/" need not wake anybody up: a fleet writes hundreds of them a second. What changed before this returned is
// not told: read then.
int store_watch(struct store *store);

// Takes the hint, so that the descriptor waits for the next one. Returns whether there was one.
bool store_watch_take(struct store *store);
