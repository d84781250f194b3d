// SPDX-License-Identifier: Apache-2.0
// Where a worker's flow table lies: a file that outlives the process, so that the next one finds the flows.
#pragma once

#include "dataplane/table/flow_table.h"

struct flow_file {
	struct flow_table *table;
	void *memory;
	uint64_t bytes;
	uint64_t kept; // flows taken over from the process before
	int lock;
};

// How a file was opened.
struct flow_file_place {
	const char *dir; // on hugetlbfs, or any directory
	unsigned index;  // worker; the file is flows.<index>
	uint32_t entries;
	uint32_t now_s; // CLOCK_BOOTTIME
	int node;       // NUMA node of the worker, -1 for any
};

// Bytes that the file takes in dir.
uint64_t flow_file_bytes(const struct flow_file_place *place);

// Bytes of it that are not there yet, so have to be found at start.
uint64_t flow_file_missing(const struct flow_file_place *place);

// Maps the file and takes its flows over; makes it empty when it is new, of another size, damaged or from before a boot.
// Returns 0, -EBUSY when another process uses it, -ENOMEM when hugetlbfs has no pages for it, else -errno.
int flow_file_open(struct flow_file *ret, const struct flow_file_place *place);

// Unmaps; the file and its flows stay.
void flow_file_close(struct flow_file *file);

// Removes the files of workers from index on: another number of workers spreads flows differently anyway.
void flow_file_remove_from(const char *dir, unsigned index);
