// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int lock_file(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

int files_lock_run_dir(const char *run_dir, uid_t user)
{
	struct stat info;
	int fd, result;

	if (mkdir(run_dir, 0755) != 0 && errno != EEXIST)
		return -errno;
	fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &info) != 0)
		result = -errno;
	else if ((info.st_uid != geteuid() && info.st_uid != 0 && info.st_uid != user) ||
		(info.st_mode & 022) != 0)
		result = -EPERM;
	else
		result = lock_file(fd);
	if (result == 0)
		return fd;
	close(fd);
	return result;
}

static int write_all(int fd, const struct files_part *part)
{
	const uint8_t *data = part->data;
	uint64_t left = part->bytes;

	while (left > 0) {
		ssize_t written = write(fd, data, left < 1u << 30 ? left : 1u << 30);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		data += written;
		left -= (uint64_t)written;
	}
	return 0;
}

static int write_temporary(
	int dir, const char *name, const struct files_part *parts, unsigned count)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int result = 0;

	if (fd < 0)
		return -errno;
	for (unsigned i = 0; i < count && result == 0; i++)
		result = write_all(fd, &parts[i]);
	if (result == 0 && fsync(fd) != 0)
		result = -errno;
	if (close(fd) != 0 && result == 0)
		result = -errno;
	return result;
}

int files_write(const char *dir, const char *name, const struct files_part *parts, unsigned count)
{
	char temporary[FILES_PATH_BYTES];
	int fd, result;

	if ((size_t)snprintf(temporary, sizeof(temporary), ".%s.new", name) >= sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = write_temporary(fd, temporary, parts, count);
	if (result == 0 && renameat(fd, temporary, fd, name) != 0)
		result = -errno;
	if (result != 0)
		unlinkat(fd, temporary, 0);
	else if (fsync(fd) != 0)
		result = -errno;
	close(fd);
	return result;
}

int files_map_private(const char *path, void **ret_memory, uint64_t *ret_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat info;
	int result = 0;
	void *memory;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &info) != 0) {
		result = -errno;
	} else if (info.st_size == 0) {
		result = -ENODATA;
	} else {
		memory = mmap(
			NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (memory == MAP_FAILED) {
			result = -errno;
		} else {
			*ret_memory = memory;
			*ret_bytes = (uint64_t)info.st_size;
		}
	}
	close(fd);
	return result;
}

// Gives a file its size, and the space for it: a hole that cannot be filled later would be a bus error.
static int reserve(int fd, uint64_t bytes)
{
	struct statfs fs;
	int result;

	if (fstatfs(fd, &fs) != 0 || ftruncate(fd, (off_t)bytes) != 0)
		return -errno;
	// hugetlbfs reserves its pages at mmap(), and puts them on the right node only when they are touched.
	if (fs.f_type == HUGETLBFS_MAGIC)
		return 0;
	result = posix_fallocate(fd, 0, (off_t)bytes);
	return result == EOPNOTSUPP ? 0 : -result;
}

int files_map_shared(const char *path, uint64_t bytes, unsigned mode, void **ret_memory)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
	void *memory;
	int result;

	if (fd < 0)
		return -errno;
	result = lock_file(fd);
	if (result != 0)
		goto err_close;
	result = reserve(fd, bytes);
	if (result != 0)
		goto err_close;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		result = -errno;
		goto err_close;
	}
	*ret_memory = memory;
	return fd;

err_close:
	close(fd);
	return result;
}
