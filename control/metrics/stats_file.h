// SPDX-License-Identifier: Apache-2.0
// Reads the dataplane's stats file (common/stats.h): maps it, follows a restarted dataplane to its new file, and sums
// the workers. Counters are matched by name, so another version's file is read as far as both know a name.
#pragma once

#include "common/stats.h"

#include <stdbool.h>
#include <sys/types.h>

struct stats_file {
	void *memory; // NULL: not mapped
	uint64_t bytes;
	dev_t device;
	ino_t inode;
	struct stats view;
	uint32_t counter_place[COUNTER_COUNT]; // in the file, or UINT32_MAX
};

// One reading: sums over all workers, or of one.
struct stats_reading {
	uint64_t counter[COUNTER_COUNT];
	uint64_t drops; // sum of all reasons, those that this build does not know included
	int64_t difference; // rx - forwarded - punted - answered - drops; 0: every packet is accounted for
	uint64_t generation; // that the workers use
	uint64_t heartbeat_ns;
};

// Maps the file, or maps it again when another one has taken its place.
// file: zeroed at first. Returns 0; -ENOENT; -EINVAL for no stats file; -ENOTSUP for a newer format.
// On failure nothing is mapped.
int stats_file_refresh(struct stats_file *file, const char *path);

void stats_file_close(struct stats_file *file);

// Sums the counters. worker: one of them, or UINT32_MAX for all.
// A worker in the middle of a burst has packets without a verdict, so it is read again until it balances, or until it is
// clear that it will not.
// Context: any; file is mapped. Cost: microseconds; 10 ms if packets are really missing.
void stats_file_read(const struct stats_file *file, uint32_t worker, struct stats_reading *ret);

// The drops of one reason, by the file's own number: 0..view.header->drop_count-1.
uint64_t stats_file_drop(const struct stats_file *file, uint32_t worker, uint32_t reason);

// The file's own names. The texts and stages are this build's; NULL for a name that it does not know.
const char *stats_file_drop_name(const struct stats_file *file, uint32_t reason);
const char *stats_file_drop_text(const struct stats_file *file, uint32_t reason);
const char *stats_file_drop_stage(const struct stats_file *file, uint32_t reason);

// Sums of one id over all workers; zeroes for an id beyond the file's slots.
void stats_file_service(const struct stats_file *file, uint32_t id, struct stats_service *ret);
void stats_file_pool(const struct stats_file *file, uint32_t id, struct stats_pool *ret);
void stats_file_backend(const struct stats_file *file, uint32_t id, struct stats_backend *ret);
