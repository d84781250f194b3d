// SPDX-License-Identifier: Apache-2.0
// The text of a file as a bounded tree of maps, lists and scalars, each with its place.
#pragma once

#include "control/config/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_DEPTH_MAX  16u
#define TREE_NODES_MAX  (4u << 20)
#define TREE_SCALAR_MAX 4096u // bytes

struct config_report;

enum tree_kind {
	TREE_SCALAR,
	TREE_LIST,
	TREE_MAP,
};

struct tree_mark {
	uint32_t line;   // from 1
	uint32_t column; // from 1, in characters
	uint32_t width;
};

struct tree_node {
	enum tree_kind kind;
	uint32_t count;   // children
	bool quoted;      // scalar
	const char *text; // scalar
	const char *key;  // child of a map
	struct tree_mark mark;
	struct tree_mark key_mark;
	struct tree_node *first;
	struct tree_node *last;
	struct tree_node *next; // sibling
};

struct config_tree {
	struct arena *arena;
	struct tree_node *root; // a map; an empty text is an empty map
};

// Reads YAML or JSON text (UTF-8). Findings go to the report.
// Returns 0, -EINVAL or -ENOMEM; on failure no tree is made.
int tree_read(
	const char *text, size_t length, struct config_report *report, struct config_tree **ret);
void tree_free(struct config_tree *tree);

// Finds the node at a path such as pools[1].backends[17].weight.
// Returns the deepest node there is on the way, and whether the path was found whole.
const struct tree_node *tree_find(
	const struct config_tree *tree, const char *path, bool *ret_whole);
