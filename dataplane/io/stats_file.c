// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/stats_file.h"

#include "common/ipc.h"
#include "dataplane/io/files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int stats_file_open(
	struct stats_file *ret, const char *run_dir, const struct stats_geometry *geometry)
{
	uint64_t bytes = stats_footprint(geometry);
	char path[FILES_PATH_BYTES], temporary[FILES_PATH_BYTES];
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "%s/" IPC_STATS_NAME, run_dir);
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s/." IPC_STATS_NAME ".new", run_dir) >=
		sizeof(temporary))
		return -ENAMETOOLONG;
	unlink(temporary);
	fd = files_map_shared(temporary, bytes, 0644, &memory);
	if (fd < 0)
		return fd;
	stats_format(memory, geometry);
	ret->header = memory;
	ret->bytes = bytes;
	ret->lock = fd;
	ret->header->pid = (uint64_t)getpid();
	ret->header->started_ns = clock_ns(CLOCK_REALTIME);
	stats_file_beat(ret);
	if (rename(temporary, path) != 0) {
		int result = -errno;

		stats_file_close(ret);
		return result;
	}
	return 0;
}

void stats_file_beat(struct stats_file *file)
{
	__atomic_store_n(&file->header->heartbeat_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
}

void stats_file_close(struct stats_file *file)
{
	if (file->header == NULL)
		return;
	munmap(file->header, file->bytes);
	close(file->lock);
	file->header = NULL;
}
