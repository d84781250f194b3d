// SPDX-License-Identifier: Apache-2.0
// The run directory: what the process keeps there, and that it is alone in it.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FILES_PATH_BYTES 512u

// Makes the directory when it is missing (mode 0755), checks that it belongs to us, to root or to user and that no one
// else may write in it, and locks it for this process.
// user: whom the process will run as; the effective user when it stays what it is.
// Returns a descriptor of the lock, to keep; -EBUSY when another dataplane has it; -EPERM when others may write; else
// -errno.
int files_lock_run_dir(const char *run_dir, uid_t user);

// Writes a file that is whole or not there: a temporary one, fsync, rename, fsync of the directory.
// parts: written one after the other. Returns 0 or -errno; then the old file is as it was.
struct files_part {
	const void *data;
	uint64_t bytes;
};
int files_write(const char *dir, const char *name, const struct files_part *parts, unsigned count);

// Maps a file for reading, and for writing a copy that the file never sees (MAP_PRIVATE).
// Returns 0 with *ret_memory and *ret_bytes; -ENOENT, -ENODATA when it is empty, else -errno.
int files_map_private(const char *path, void **ret_memory, uint64_t *ret_bytes);

// Maps a file that all see, created or cut to bytes, zeroes where it grows; locks it for this process.
// mode: of a new file. Returns a descriptor to keep, with *ret_memory; -EBUSY when another process has locked it;
// -ENOMEM when its pages (of hugetlbfs) are not there, else -errno.
int files_map_shared(const char *path, uint64_t bytes, unsigned mode, void **ret_memory);
