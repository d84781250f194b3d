// SPDX-License-Identifier: Apache-2.0
// Single changes to a model, for the imperative verbs. Take a copy (config_pools_copy()), edit, check, commit.
#pragma once

#include "control/config/config.h"

// What to change in a backend: only the parts whose bit is set.
#define CONFIG_EDIT_WEIGHT 1u
#define CONFIG_EDIT_STATE  2u
#define CONFIG_EDIT_TAGS   4u

// Adds a backend; its strings are copied. Returns 0, -ENOENT (no such pool), -EEXIST (name taken), -ENOMEM.
int config_backend_add(
	struct config_pools *pools, const char *pool, const struct config_backend *backend);

// Changes the parts of a backend that mask (CONFIG_EDIT_*) names.
// Returns 0, -ENOENT (no such pool or backend; *ret_missing says which) or -ENOMEM.
int config_backend_edit(struct config_pools *pools, const char *pool, uint32_t mask,
	const struct config_backend *backend, const char **ret_missing);

// Takes a backend out. Returns 0 or -ENOENT (*ret_missing: "pool" or "backend").
int config_backend_remove(struct config_pools *pools, const char *pool, const char *backend,
	const char **ret_missing);
