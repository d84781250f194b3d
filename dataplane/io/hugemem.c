// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/hugemem.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES_DIR  "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define PAGE_SHIFT 21 // log2 of HUGEMEM_PAGE_BYTES, as mmap() takes it
#define NODES_MAX  1024

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

static bool use_huge = true;
static uint64_t held_bytes;

void hugemem_use_huge(bool huge)
{
	use_huge = huge;
}

uint64_t hugemem_footprint(uint64_t bytes)
{
	return (bytes + HUGEMEM_PAGE_BYTES - 1) / HUGEMEM_PAGE_BYTES * HUGEMEM_PAGE_BYTES;
}

void hugemem_prefer_node(void *memory, uint64_t bytes, int node)
{
	unsigned long mask[NODES_MAX / (8 * sizeof(unsigned long))];

	if (node < 0 || node >= NODES_MAX)
		return;
	memset(mask, 0, sizeof(mask));
	mask[(size_t)node / (8 * sizeof(mask[0]))] |= 1ul << (size_t)node % (8 * sizeof(mask[0]));
	// Preferred, not bound: a node that has run out costs time there, where a bound one would be a bus error.
	// A kernel without NUMA refuses, and has nothing to prefer.
	syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, mask, NODES_MAX, 0);
}

void *hugemem_alloc(uint64_t bytes, int node)
{
	uint64_t size = hugemem_footprint(bytes);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *memory;

	if (use_huge)
		flags |= MAP_HUGETLB | PAGE_SHIFT << MAP_HUGE_SHIFT;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	hugemem_prefer_node(memory, size, node);
	if (!use_huge)
		madvise(memory, size, MADV_HUGEPAGE);
	held_bytes += size;
	return memory;
}

void hugemem_free(void *memory, uint64_t bytes)
{
	if (memory == NULL)
		return;
	munmap(memory, hugemem_footprint(bytes));
	held_bytes -= hugemem_footprint(bytes);
}

static uint64_t read_pages(const char *path)
{
	unsigned long long pages = 0;
	FILE *file = fopen(path, "r");

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages;
}

static uint64_t free_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "r");

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	}
	fclose(file);
	return kib * 1024;
}

uint64_t hugemem_available(void)
{
	uint64_t free_pages, reserved;

	if (!use_huge)
		return free_memory();
	free_pages = read_pages(PAGES_DIR "free_hugepages");
	reserved = read_pages(PAGES_DIR "resv_hugepages");
	return free_pages > reserved ? (free_pages - reserved) * HUGEMEM_PAGE_BYTES : 0;
}

uint64_t hugemem_held(void)
{
	return held_bytes;
}
