// SPDX-License-Identifier: Apache-2.0
// Writes metrics in Prometheus' text format, version 0.0.4, and keeps them within a budget of series.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define METRICS_SERIES_MAX 2000u // of a scrape without a scope

enum metrics_type {
	METRICS_GAUGE,
	METRICS_COUNTER,
};

// A name and a value; arrays of them end with a NULL name.
struct metrics_label {
	const char *name;
	const char *value;
};

struct metrics_text {
	FILE *out;
	const char *family; // that is being written
	uint32_t series_count;
	uint32_t left_out_count;
	bool unlimited; // a scope was asked for: no budget
};

// Asks for room for a group of series that belong together, such as all series of all pools.
// Returns false when they do not fit the budget; the group is then to be left out, and is counted as such.
// To be asked before the group, with all of its series, so that a group is there whole or not at all.
bool metrics_room(struct metrics_text *text, uint32_t series);

// Starts a family: its HELP and TYPE lines. name: without the prefix "ringway_". help: one line.
void metrics_family(
	struct metrics_text *text, const char *name, enum metrics_type type, const char *help);

// Writes one series of the family. labels may be NULL. Values of labels are escaped.
void metrics_count(struct metrics_text *text, const struct metrics_label *labels, uint64_t value);
void metrics_real(struct metrics_text *text, const struct metrics_label *labels, double value);

#define METRICS_LABELS(...)            \
	(const struct metrics_label[]) \
	{                              \
		__VA_ARGS__,           \
		{                      \
			NULL, NULL     \
		}                      \
	}
