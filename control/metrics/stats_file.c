// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/stats_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SPINS 200
#define WAITS 50u

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void match_names(struct stats_file *file)
{
	for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
		file->counter_place[i] = UINT32_MAX;
		for (uint32_t j = 0; j < file->view.header->counter_count; j++) {
			if (strncmp(file->view.names[j], stats_counter_name(i), STATS_NAME_BYTES) ==
				0)
				file->counter_place[i] = j;
		}
	}
}

static int map(struct stats_file *file, int descriptor, const struct stat *info)
{
	void *memory;
	int error;

	if (info->st_size <= 0)
		return -EINVAL;
	memory = mmap(NULL, (size_t)info->st_size, PROT_READ, MAP_SHARED, descriptor, 0);
	if (memory == MAP_FAILED)
		return -errno;
	error = stats_open(memory, (uint64_t)info->st_size, &file->view);
	if (error) {
		munmap(memory, (size_t)info->st_size);
		return error;
	}
	file->memory = memory;
	file->bytes = (uint64_t)info->st_size;
	file->device = info->st_dev;
	file->inode = info->st_ino;
	match_names(file);
	return 0;
}

int stats_file_refresh(struct stats_file *file, const char *path)
{
	struct stat info;
	int descriptor, error;

	if (stat(path, &info) != 0) {
		error = -errno;
		stats_file_close(file);
		return error;
	}
	// A dataplane that starts puts a new file in the place of the old one, so a mapped file is never cut.
	if (file->memory != NULL && info.st_ino == file->inode && info.st_dev == file->device &&
		(uint64_t)info.st_size == file->bytes)
		return 0;
	stats_file_close(file);
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	error = fstat(descriptor, &info) == 0 ? map(file, descriptor, &info) : -errno;
	close(descriptor);
	return error;
}

void stats_file_close(struct stats_file *file)
{
	if (file->memory != NULL)
		munmap(file->memory, file->bytes);
	*file = (struct stats_file){0};
}

// The workers that a question is about.
static void range(
	const struct stats_file *file, uint32_t worker, uint32_t *ret_first, uint32_t *ret_end)
{
	*ret_first = worker == UINT32_MAX ? 0 : worker;
	*ret_end = worker == UINT32_MAX ? file->view.header->worker_count : worker + 1;
}

static void read_once(const struct stats_file *file, uint32_t worker, struct stats_reading *ret)
{
	struct stats_worker block = stats_worker(file->memory, worker);

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
		if (file->counter_place[i] != UINT32_MAX)
			ret->counter[i] = load(&block.counter[file->counter_place[i]]);
	}
	for (uint32_t i = 0; i < file->view.header->drop_count; i++)
		ret->drops += load(&block.drop[i]);
	ret->difference =
		(int64_t)(ret->counter[COUNTER_rx_packets] - ret->counter[COUNTER_forwarded] -
			ret->counter[COUNTER_punted] - ret->counter[COUNTER_answered] - ret->drops);
}

// Reads one worker between two of its bursts: in the middle of one, up to a burst of packets has no verdict yet.
// A worker on its CPU is between bursts again within a microsecond; one that lost its CPU needs a wait.
// waits: sleeps that are left, for all workers together.
static void read_between_bursts(
	const struct stats_file *file, uint32_t worker, unsigned *waits, struct stats_reading *ret)
{
	static const struct timespec pause = {.tv_nsec = 200000};

	for (;;) {
		for (int i = 0; i < SPINS; i++) {
			read_once(file, worker, ret);
			if (ret->difference == 0)
				return;
		}
		if (*waits == 0)
			return;
		--*waits;
		nanosleep(&pause, NULL);
	}
}

void stats_file_read(const struct stats_file *file, uint32_t worker, struct stats_reading *ret)
{
	unsigned waits = WAITS;
	uint32_t first, end;

	memset(ret, 0, sizeof(*ret));
	range(file, worker, &first, &end);
	for (uint32_t w = first; w < end; w++) {
		struct stats_reading one;

		read_between_bursts(file, w, &waits, &one);
		for (uint32_t i = 0; i < COUNTER_COUNT; i++)
			ret->counter[i] += one.counter[i];
		ret->drops += one.drops;
		ret->difference += one.difference;
	}
	ret->generation = load(&file->view.header->generation);
	ret->heartbeat_ns = load(&file->view.header->heartbeat_ns);
}

uint64_t stats_file_drop(const struct stats_file *file, uint32_t worker, uint32_t reason)
{
	uint64_t sum = 0;
	uint32_t first, end;

	range(file, worker, &first, &end);
	for (uint32_t w = first; w < end; w++)
		sum += load(&stats_worker(file->memory, w).drop[reason]);
	return sum;
}

const char *stats_file_drop_name(const struct stats_file *file, uint32_t reason)
{
	return file->view.names[file->view.header->counter_count + reason];
}

// The reason of this build that has the file's name; DROP_COUNT if none has.
static enum drop_reason known_drop(const struct stats_file *file, uint32_t reason)
{
	for (int i = 0; i < DROP_COUNT; i++) {
		if (strncmp(stats_file_drop_name(file, reason), stats_drop_name(i),
			    STATS_NAME_BYTES) == 0)
			return i;
	}
	return DROP_COUNT;
}

const char *stats_file_drop_text(const struct stats_file *file, uint32_t reason)
{
	enum drop_reason known = known_drop(file, reason);

	return known == DROP_COUNT ? NULL : stats_drop_text(known);
}

const char *stats_file_drop_stage(const struct stats_file *file, uint32_t reason)
{
	enum drop_reason known = known_drop(file, reason);

	return known == DROP_COUNT ? NULL : stats_drop_stage(known);
}

// Adds the words of one worker's slot to a sum.
static void add_words(uint64_t *ret, const void *from, size_t bytes)
{
	const uint64_t *words = from;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		ret[i] += load(&words[i]);
}

void stats_file_service(const struct stats_file *file, uint32_t id, struct stats_service *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t w = 0;
		id < file->view.header->service_count && w < file->view.header->worker_count; w++)
		add_words(
			(uint64_t *)ret, &stats_worker(file->memory, w).services[id], sizeof(*ret));
}

void stats_file_pool(const struct stats_file *file, uint32_t id, struct stats_pool *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t w = 0;
		id < file->view.header->pool_count && w < file->view.header->worker_count; w++)
		add_words((uint64_t *)ret, &stats_worker(file->memory, w).pools[id], sizeof(*ret));
}

void stats_file_backend(const struct stats_file *file, uint32_t id, struct stats_backend *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t w = 0;
		id < file->view.header->backend_count && w < file->view.header->worker_count; w++)
		add_words(
			(uint64_t *)ret, &stats_worker(file->memory, w).backends[id], sizeof(*ret));
}
