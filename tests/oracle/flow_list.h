// SPDX-License-Identifier: Apache-2.0
// The naive twin of the flow table: one struct a flow, seconds that never wrap, rules as plain ifs.
#pragma once

#include "dataplane/table/flow_table.h"

struct flow_list_item {
	bool used;
	uint32_t tag;
	enum flow_state state;
	uint32_t backend;
	bool uses_new;
	uint64_t deadline_s;
};

struct flow_list {
	uint64_t bucket_count;
	uint64_t now_s;
	struct flow_list_item *items; // [bucket_count][FLOW_TABLE_WAYS]
};

struct flow_list *flow_list_make(uint64_t bucket_count, uint64_t now_s);
void flow_list_free(struct flow_list *list);

// The live flow of a hash, or NULL.
struct flow_list_item *flow_list_find(struct flow_list *list, uint64_t hash);

// As flow_table_advance() and flow_table_insert().
bool flow_list_advance(struct flow_list *list, struct flow_list_item *item, enum flow_event event,
	const struct flow_idle *idle);
enum flow_insert flow_list_insert(struct flow_list *list, uint64_t hash, enum flow_event event,
	const struct flow_choice *choice, const struct flow_idle *idle);

// Drops what expired; returns how many. waiting: also what a sweep does to SYNs; returns half-open ones.
uint64_t flow_list_sweep(struct flow_list *list, uint64_t *ret_half_open);
uint64_t flow_list_count(const struct flow_list *list);
