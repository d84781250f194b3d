// SPDX-License-Identifier: Apache-2.0
// What a backend of the store provides. Arguments have been checked by the front (store.c); the contracts are those
// of store.h. A failing call leaves its sentence in store->error (store_fail()).
#pragma once

#include "control/store/store.h"

// Makes the line for an entry that follows the line last. The caller frees it; NULL when memory is short.
typedef char *(*store_audit_make)(const char *last, const char *entry);

struct store_backend {
	const char *name;
	int (*open)(struct store *store, const struct config_store *config);
	void (*close)(struct store *store);
	int (*read)(struct store *store, uint64_t generation, char **ret_text, size_t *ret_length,
		uint64_t *ret_generation);
	int (*commit)(struct store *store, const char *text, size_t length, uint64_t expected);
	int (*key_write)(struct store *store, const char *key, const char *value, size_t length);
	int (*key_swap)(
		struct store *store, const char *key, const char *before, const char *value);
	int (*key_read)(struct store *store, const char *key, char **ret_value, size_t *ret_length);
	int (*key_remove)(struct store *store, const char *key);
	int (*key_list)(struct store *store, const char *prefix, store_visit visit, void *context);
	int (*lock_take)(struct store *store, const char *name, uint32_t ttl_s, char *ret_holder);
	int (*lock_drop)(struct store *store, const char *name);
	// Audit lines are "HASH ENTRY"; the front makes and checks the hashes. audit_append() calls make with the
	// last line ("" when there is none) and appends what it makes, with nobody appending in between.
	int (*audit_append)(struct store *store, store_audit_make make, const char *entry);
	int (*audit_list)(struct store *store, uint64_t first, store_visit visit, void *context);
	int (*watch)(struct store *store);
	bool (*watch_take)(struct store *store);
};

struct store {
	const struct store_backend *backend;
	void *state; // the backend's
	char node[STORE_KEY_BYTES];
	char error[STORE_ERROR_BYTES];
};

extern const struct store_backend store_file;
extern const struct store_backend store_etcd;

// Sets the sentence and returns code, for `return store_fail(store, -EIO, "...")`.
__attribute__((format(printf, 3, 4))) int store_fail(
	struct store *store, int code, const char *format, ...);
