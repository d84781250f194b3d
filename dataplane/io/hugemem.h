// SPDX-License-Identifier: Apache-2.0
// Memory that no device reads: what workers forward by, their tables and scratch. Each block is its own mapping of
// 2 MiB pages on the NUMA node of its worker, so a new snapshot takes only what it needs, an old one gives
// all of it back, and neither needs physical addresses or privileges.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUGEMEM_PAGE_BYTES (UINT64_C(2) << 20)

// Chooses ordinary pages (EAL's --no-huge). Context: main, before the first allocation.
void hugemem_use_huge(bool huge);

// Bytes that a block of this size takes: whole pages.
uint64_t hugemem_footprint(uint64_t bytes);

// Allocates zeroed memory at a page boundary. node: preferred NUMA node, -1 for any.
// Returns NULL when no page is left.
void *hugemem_alloc(uint64_t bytes, int node);

// Frees a block. bytes: as asked for. memory: NULL is allowed.
void hugemem_free(void *memory, uint64_t bytes);

// Bytes that can be allocated now: free 2 MiB pages that nobody has reserved, or free memory without huge pages.
uint64_t hugemem_available(void);

// Bytes held by blocks of this process.
uint64_t hugemem_held(void);

// Places memory that is not of here (a mapped file) on a node, before it is touched. Best effort.
void hugemem_prefer_node(void *memory, uint64_t bytes, int node);
