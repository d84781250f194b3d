// SPDX-License-Identifier: Apache-2.0
// The stats file of this process. Workers count straight into it: one writer a line, so nobody waits for anybody.
#pragma once

#include "common/stats.h"

struct stats_file {
	struct stats_header *header;
	uint64_t bytes;
	int lock;
};

// Makes <run_dir>/stats anew, complete before its name appears, so no reader sees a half-made one.
// Returns 0 or -errno.
int stats_file_open(
	struct stats_file *ret, const char *run_dir, const struct stats_geometry *geometry);

// Shows that the process lives. Context: main, at least once a second.
void stats_file_beat(struct stats_file *file);

// Unmaps; the file stays for those who look at the last counters.
void stats_file_close(struct stats_file *file);
