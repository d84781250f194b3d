// SPDX-License-Identifier: Apache-2.0
// What is wrong with a configuration: all findings of one pass, each with its place, its reason and the way out.
//
//	error[CFG014]: pools.yaml:42:15  pools[1].backends[17].weight: 70000 is out of range 1..65535
//	   42 |       weight: 70000
//	      |               ^^^^^
//	  hint: ...
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Stable: a number is never given another meaning. Names and sentences: docs/configuration.md.
enum config_code {
	CONFIG_SYNTAX = 1,  // no YAML
	CONFIG_FEATURE = 2, // YAML that is not taken: anchors, aliases, tags, several documents
	CONFIG_LIMIT = 3,   // too large, too deep, too many items
	CONFIG_DUPLICATE_KEY = 4,
	CONFIG_UNKNOWN_KEY = 10,
	CONFIG_MISSING_KEY = 11,
	CONFIG_WRONG_KIND = 12, // a list where a value is expected, and so on
	CONFIG_BAD_VALUE = 13,  // not a number, no address, ...
	CONFIG_OUT_OF_RANGE = 14,
	CONFIG_BAD_CHOICE = 15,
	CONFIG_DUPLICATE_NAME = 20,
	CONFIG_UNKNOWN_NAME = 21, // a reference to nothing
	CONFIG_DUPLICATE_ADDRESS = 22,
	CONFIG_SAME_TRAFFIC = 23, // two services claim the same packets
	CONFIG_CONFLICT = 24,     // keys that exclude each other
	CONFIG_RING = 25,         // a rule of the ring versions
	CONFIG_NO_BACKEND = 26,   // warning: a ring with no backend
};

struct config_finding {
	enum config_code code;
	bool warning;
	uint32_t line; // from 1; 0: no place in a file
	uint32_t column;
	uint32_t width; // characters to underline, at least 1
	char *path;     // pools[1].backends[17].weight
	char *text;
	char *hint; // or NULL
};

#define CONFIG_FINDINGS_MAX 100u // more are counted, not kept

struct config_tree;
struct tree_mark;
struct tree_node;

struct config_report {
	const char *file; // name for messages, not owned
	const char *source;
	size_t source_length;
	struct config_tree *tree; // gives findings of later passes their places; may be NULL
	struct config_finding findings[CONFIG_FINDINGS_MAX];
	uint32_t finding_count;
	uint32_t error_count; // all, also those not kept
	uint32_t warning_count;
};

// file, source: must outlive the report; source may be NULL (findings then have no place).
void config_report_init(
	struct config_report *report, const char *file, const char *source, size_t source_length);
void config_report_free(struct config_report *report);

// Adds a finding whose place is found by its path, if the report has a tree.
// hint: or NULL. format: the sentence.
__attribute__((format(printf, 5, 6))) void config_report_add(struct config_report *report,
	enum config_code code, const char *path, const char *hint, const char *format, ...);

// The same as a warning: it does not refuse the file.
__attribute__((format(printf, 5, 6))) void config_report_warn(struct config_report *report,
	enum config_code code, const char *path, const char *hint, const char *format, ...);

// Adds an error at a place of the source.
void config_report_add_at(struct config_report *report, enum config_code code,
	const struct tree_mark *mark, const char *hint, const char *text);

// Adds an error about a key itself (CONFIG_UNKNOWN_KEY, CONFIG_DUPLICATE_KEY).
void config_report_add_key(struct config_report *report, enum config_code code,
	const struct tree_node *node, const char *hint);

// Puts the findings into the order of the file. The readers do so at their end.
void config_report_sort(struct config_report *report);

// Prints all findings for people, with carets, and a last line that counts them.
void config_report_print(const struct config_report *report, FILE *out);
