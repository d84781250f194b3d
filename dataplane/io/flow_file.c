// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/flow_file.h"

#include "dataplane/io/files.h"
#include "dataplane/io/hugemem.h"
#include "dataplane/pipeline/pipeline.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int file_path(char *ret, size_t size, const char *dir, unsigned index)
{
	return (size_t)snprintf(ret, size, "%s/flows.%u", dir, index) < size ? 0 : -ENAMETOOLONG;
}

uint64_t flow_file_bytes(const struct flow_file_place *place)
{
	uint64_t bytes = flow_table_footprint(place->entries);
	struct statfs fs;

	if (statfs(place->dir, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC)
		bytes = (bytes + (uint64_t)fs.f_bsize - 1) / (uint64_t)fs.f_bsize *
			(uint64_t)fs.f_bsize;
	return bytes;
}

uint64_t flow_file_missing(const struct flow_file_place *place)
{
	uint64_t bytes = flow_file_bytes(place);
	char path[FILES_PATH_BYTES];
	struct stat info;

	if (file_path(path, sizeof(path), place->dir, place->index) != 0 || stat(path, &info) != 0)
		return bytes;
	return (uint64_t)info.st_size < bytes ? bytes - (uint64_t)info.st_size : 0;
}

int flow_file_open(struct flow_file *ret, const struct flow_file_place *place)
{
	struct flow_file file = {.bytes = flow_file_bytes(place)};
	char path[FILES_PATH_BYTES];

	if (file_path(path, sizeof(path), place->dir, place->index) != 0)
		return -ENAMETOOLONG;
	file.lock = files_map_shared(path, file.bytes, 0600, &file.memory);
	if (file.lock < 0)
		return file.lock;
	hugemem_prefer_node(file.memory, file.bytes, place->node);
	if (flow_table_open(file.memory, file.bytes, place->entries, place->now_s, &file.table,
		    &file.kept) != 0)
		file.table = flow_table_format(file.memory, place->entries, place->now_s);
	*ret = file;
	return 0;
}

void flow_file_close(struct flow_file *file)
{
	if (file->memory == NULL)
		return;
	munmap(file->memory, file->bytes);
	close(file->lock);
	file->memory = NULL;
}

void flow_file_remove_from(const char *dir, unsigned index)
{
	char path[FILES_PATH_BYTES];

	for (; index < PIPELINE_WORKERS_MAX; index++) {
		if (file_path(path, sizeof(path), dir, index) == 0)
			unlink(path);
	}
}
