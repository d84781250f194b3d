// SPDX-License-Identifier: Apache-2.0
// Differences of two models, for `ringway diff` and for the audit log.
#pragma once

#include "control/config/config.h"

enum config_change_kind {
	CONFIG_ADDED,
	CONFIG_REMOVED,
	CONFIG_CHANGED,
};

// One difference. Items of lists with names are matched by name, whatever their order.
struct config_change {
	enum config_change_kind kind;
	const char *path;   // pool web, backend web-2, weight -> "pools.web.backends.web-2.weight"
	const char *before; // text as in the file; NULL: absent
	const char *after;
};

struct config_diff {
	struct arena *arena;
	struct config_change *changes;
	uint32_t change_count;
};

// Compares two models; either may be NULL, which stands for an empty one.
// Returns the differences in path order of after, then what was removed; NULL when memory is short.
struct config_diff *config_pools_diff(
	const struct config_pools *before, const struct config_pools *after);
struct config_diff *config_node_diff(
	const struct config_node *before, const struct config_node *after);

void config_diff_free(struct config_diff *diff);
