// SPDX-License-Identifier: Apache-2.0
// The `file` backend: one directory.
//
//	lock                     flock for every change
//	document/0000…0042.json  one file a generation, the newest STORE_HISTORY
//	keys/node%status         one file a key, '/' written as '%'
//	locks/conductor          "EXPIRY HOLDER"
//	audit.log                one line an entry
//
// A file appears whole or not at all: it is written aside, flushed, renamed, and its directory flushed.
#include "control/store/backend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GENERATION_DIGITS 20
#define NAME_BYTES        (STORE_KEY_BYTES + 16)

struct file_state {
	int directory;
	int documents;
	int keys;
	int locks;
	int lock;  // descriptor of the lock file
	int watch; // inotify, or -1
};

static int fail_errno(struct store *store, const char *what, const char *name)
{
	int code = errno;

	return store_fail(store, -code, "%s %s: %s", what, name, strerror(code));
}

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

// Puts a file into a directory: durable and whole when it returns 0.
static int file_put(
	struct store *store, int directory, const char *name, const char *bytes, size_t length)
{
	static const char aside[] = ".new";
	int fd = openat(directory, aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return fail_errno(store, "cannot write", name);
	rc = write_all(fd, bytes, length);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	close(fd);
	if (rc == 0 && renameat(directory, aside, directory, name) < 0)
		rc = -errno;
	if (rc == 0 && fsync(directory) < 0)
		rc = -errno;
	if (rc < 0) {
		unlinkat(directory, aside, 0);
		return store_fail(store, rc, "cannot write %s: %s", name, strerror(-rc));
	}
	return 0;
}

static int file_get(
	struct store *store, int directory, const char *name, char **ret_text, size_t *ret_length)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	struct stat status;
	size_t length = 0;
	char *text;

	if (fd < 0)
		return fail_errno(store, "cannot read", name);
	if (fstat(fd, &status) < 0 || status.st_size > (off_t)STORE_DOCUMENT_BYTES) {
		close(fd);
		return store_fail(store, -EFBIG, "%s is too large", name);
	}
	text = malloc((size_t)status.st_size + 1);
	while (text != NULL && length < (size_t)status.st_size) {
		ssize_t got = read(fd, text + length, (size_t)status.st_size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	close(fd);
	if (text == NULL || length < (size_t)status.st_size) {
		free(text);
		return store_fail(store, text == NULL ? -ENOMEM : -EIO, "cannot read %s", name);
	}
	text[length] = '\0';
	*ret_text = text;
	*ret_length = length;
	return 0;
}

static int directory_open(struct store *store, int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return fail_errno(store, "cannot make", name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail_errno(store, "cannot open", name) : fd;
}

static void file_close(struct store *store)
{
	struct file_state *state = store->state;
	const int fds[] = {state->watch, state->lock, state->locks, state->keys, state->documents,
		state->directory};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	free(state);
}

static int parts_open(struct store *store, struct file_state *state)
{
	state->documents = directory_open(store, state->directory, "document");
	state->keys = directory_open(store, state->directory, "keys");
	state->locks = directory_open(store, state->directory, "locks");
	state->lock = openat(state->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (state->lock < 0)
		return fail_errno(store, "cannot open", "lock");
	if (state->documents < 0 || state->keys < 0 || state->locks < 0)
		return -EIO;
	return 0;
}

static int file_open(struct store *store, const struct config_store *config)
{
	struct file_state *state = malloc(sizeof(*state));
	int rc;

	if (state == NULL)
		return store_fail(store, -ENOMEM, "out of memory");
	*state = (struct file_state){-1, -1, -1, -1, -1, -1};
	store->state = state;
	state->directory = directory_open(store, AT_FDCWD, config->path);
	rc = state->directory < 0 ? state->directory : parts_open(store, state);
	if (rc < 0) {
		file_close(store);
		store->state = NULL;
	}
	return rc;
}

static int changes_lock(struct store *store)
{
	struct file_state *state = store->state;

	while (flock(state->lock, LOCK_EX) < 0) {
		if (errno != EINTR)
			return fail_errno(store, "cannot lock", "the store");
	}
	return 0;
}

static void changes_unlock(struct store *store)
{
	struct file_state *state = store->state;

	flock(state->lock, LOCK_UN);
}

// Reads a directory afresh each time: a descriptor that was read to its end stays there.
static DIR *directory_list(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (list == NULL && fd >= 0)
		close(fd);
	return list;
}

// 0 when name is no document.
static uint64_t generation_of(const char *name)
{
	if (strspn(name, "0123456789") != GENERATION_DIGITS ||
		strcmp(name + GENERATION_DIGITS, ".json") != 0)
		return 0;
	return strtoull(name, NULL, 10);
}

static void generation_name(uint64_t generation, char ret[static NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "%0*" PRIu64 ".json", GENERATION_DIGITS, generation);
}

static int generation_newest(struct store *store, uint64_t *ret)
{
	struct file_state *state = store->state;
	DIR *list = directory_list(state->documents);
	struct dirent *entry;
	uint64_t newest = 0;

	if (list == NULL)
		return fail_errno(store, "cannot list", "document");
	while ((entry = readdir(list)) != NULL) {
		uint64_t generation = generation_of(entry->d_name);

		if (generation > newest)
			newest = generation;
	}
	closedir(list);
	*ret = newest;
	return 0;
}

static int file_read(struct store *store, uint64_t generation, char **ret_text, size_t *ret_length,
	uint64_t *ret_generation)
{
	struct file_state *state = store->state;
	char name[NAME_BYTES];
	int rc = 0;

	if (generation == 0)
		rc = generation_newest(store, &generation);
	if (rc == 0 && generation == 0)
		rc = store_fail(store, -ENOENT, "the store is empty");
	if (rc < 0)
		return rc;
	generation_name(generation, name);
	rc = file_get(store, state->documents, name, ret_text, ret_length);
	if (rc == 0)
		*ret_generation = generation;
	return rc;
}

static void history_prune(struct store *store, uint64_t newest)
{
	struct file_state *state = store->state;
	DIR *list = directory_list(state->documents);
	struct dirent *entry;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		uint64_t generation = generation_of(entry->d_name);

		if (generation > 0 && generation + STORE_HISTORY <= newest)
			unlinkat(state->documents, entry->d_name, 0);
	}
	if (list != NULL)
		closedir(list);
}

static int commit_locked(struct store *store, const char *text, size_t length, uint64_t expected)
{
	struct file_state *state = store->state;
	char name[NAME_BYTES];
	uint64_t newest;
	int rc = generation_newest(store, &newest);

	if (rc < 0)
		return rc;
	if (newest != expected)
		return store_fail(store, -ESTALE,
			"generation %" PRIu64 " was expected, the store is at %" PRIu64, expected,
			newest);
	generation_name(expected + 1, name);
	rc = file_put(store, state->documents, name, text, length);
	if (rc == 0)
		history_prune(store, expected + 1);
	return rc;
}

static int file_commit(struct store *store, const char *text, size_t length, uint64_t expected)
{
	int rc = changes_lock(store);

	if (rc < 0)
		return rc;
	rc = commit_locked(store, text, length, expected);
	changes_unlock(store);
	return rc;
}

// Keys have no '%', so it stands for '/' and all keys lie in one directory.
static void key_name(const char *key, char ret[static NAME_BYTES])
{
	size_t i = 0;

	for (; key[i] != '\0' && i < NAME_BYTES - 1; i++)
		ret[i] = key[i] == '/' ? '%' : key[i];
	ret[i] = '\0';
}

static int file_key_write(struct store *store, const char *key, const char *value, size_t length)
{
	struct file_state *state = store->state;
	char name[NAME_BYTES];
	int rc = changes_lock(store);

	if (rc < 0)
		return rc;
	key_name(key, name);
	rc = file_put(store, state->keys, name, value, length);
	changes_unlock(store);
	return rc;
}

static int swap_locked(struct store *store, const char *name, const char *before, const char *value)
{
	struct file_state *state = store->state;
	char *now = NULL;
	size_t length;
	int rc = file_get(store, state->keys, name, &now, &length);
	bool same = rc == 0 ? before != NULL && strcmp(now, before) == 0 : before == NULL;

	free(now);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (!same)
		return store_fail(store, -ESTALE, "somebody else changed %s", name);
	return file_put(store, state->keys, name, value, strlen(value));
}

static int file_key_swap(
	struct store *store, const char *key, const char *before, const char *value)
{
	char name[NAME_BYTES];
	int rc = changes_lock(store);

	if (rc < 0)
		return rc;
	key_name(key, name);
	rc = swap_locked(store, name, before, value);
	changes_unlock(store);
	return rc;
}

static int file_key_read(struct store *store, const char *key, char **ret_value, size_t *ret_length)
{
	struct file_state *state = store->state;
	char name[NAME_BYTES];

	key_name(key, name);
	return file_get(store, state->keys, name, ret_value, ret_length);
}

static int file_key_remove(struct store *store, const char *key)
{
	struct file_state *state = store->state;
	char name[NAME_BYTES];

	key_name(key, name);
	if (unlinkat(state->keys, name, 0) < 0 && errno != ENOENT)
		return fail_errno(store, "cannot remove", key);
	return fsync(state->keys) < 0 ? fail_errno(store, "cannot remove", key) : 0;
}

struct key_list {
	char (*names)[NAME_BYTES];
	size_t count;
};

static int name_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

// Gathers first, so that visits may write keys.
static int keys_gather(struct store *store, const char *prefix, struct key_list *ret)
{
	struct file_state *state = store->state;
	DIR *list = directory_list(state->keys);
	struct dirent *entry;

	if (list == NULL)
		return fail_errno(store, "cannot list", "keys");
	while ((entry = readdir(list)) != NULL) {
		char key[NAME_BYTES];
		void *larger;
		size_t i = 0;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= STORE_KEY_BYTES)
			continue;
		for (; entry->d_name[i] != '\0'; i++)
			key[i] = entry->d_name[i] == '%' ? '/' : entry->d_name[i];
		key[i] = '\0';
		if (strncmp(key, prefix, strlen(prefix)) != 0)
			continue;
		larger = realloc(ret->names, (ret->count + 1) * sizeof(*ret->names));
		if (larger == NULL)
			break;
		ret->names = larger;
		memcpy(ret->names[ret->count++], key, sizeof(key));
	}
	closedir(list);
	if (ret->count > 0)
		qsort(ret->names, ret->count, sizeof(*ret->names), name_compare);
	return 0;
}

static int file_key_list(struct store *store, const char *prefix, store_visit visit, void *context)
{
	struct key_list list = {0};
	int rc = keys_gather(store, prefix, &list);

	for (size_t i = 0; i < list.count && rc == 0; i++) {
		char *value;
		size_t length;

		rc = file_key_read(store, list.names[i], &value, &length);
		if (rc == -ENOENT) {
			rc = 0; // removed in between
			continue;
		}
		if (rc == 0) {
			rc = visit(context, list.names[i], value, length);
			free(value);
		}
	}
	free(list.names);
	return rc;
}

static uint64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec;
}

// Reads a lock file. Returns whether somebody holds it now.
static bool lock_held(struct store *store, const char *name, char *ret_holder)
{
	struct file_state *state = store->state;
	char *text, *end;
	size_t length;
	uint64_t expiry;

	if (file_get(store, state->locks, name, &text, &length) < 0)
		return false;
	expiry = strtoull(text, &end, 10);
	snprintf(ret_holder, STORE_KEY_BYTES, "%s", *end == ' ' ? end + 1 : "");
	free(text);
	return expiry > now_s() && ret_holder[0] != '\0';
}

static int lock_take_locked(struct store *store, const char *name, uint32_t ttl_s, char *ret_holder)
{
	struct file_state *state = store->state;
	char text[NAME_BYTES + 32];
	int length;

	if (lock_held(store, name, ret_holder) && strcmp(ret_holder, store->node) != 0)
		return store_fail(store, -EBUSY, "lock %s is held by %s", name, ret_holder);
	length = snprintf(text, sizeof(text), "%" PRIu64 " %s", now_s() + ttl_s, store->node);
	snprintf(ret_holder, STORE_KEY_BYTES, "%s", store->node);
	return file_put(store, state->locks, name, text, (size_t)length);
}

static int file_lock_take(struct store *store, const char *lock, uint32_t ttl_s, char *ret_holder)
{
	char name[NAME_BYTES];
	int rc = changes_lock(store);

	if (rc < 0)
		return rc;
	key_name(lock, name);
	rc = lock_take_locked(store, name, ttl_s, ret_holder);
	changes_unlock(store);
	return rc;
}

static int file_lock_drop(struct store *store, const char *lock)
{
	struct file_state *state = store->state;
	char holder[STORE_KEY_BYTES], name[NAME_BYTES];
	int rc = changes_lock(store);

	if (rc < 0)
		return rc;
	key_name(lock, name);
	if (lock_held(store, name, holder) && strcmp(holder, store->node) == 0 &&
		unlinkat(state->locks, name, 0) < 0)
		rc = fail_errno(store, "cannot drop", lock);
	changes_unlock(store);
	return rc;
}

// The log is read back to the newline before its last line.
#define AUDIT_TAIL_BYTES (STORE_VALUE_BYTES + 256)

static int audit_last(struct store *store, int fd, char **ret_line)
{
	off_t size = lseek(fd, 0, SEEK_END);
	size_t room = size < 0 ? 0 : size > AUDIT_TAIL_BYTES ? AUDIT_TAIL_BYTES : (size_t)size;
	char *tail = malloc(room + 1);
	char *start;
	ssize_t got;

	if (size < 0 || tail == NULL) {
		free(tail);
		return store_fail(store, -EIO, "cannot read the audit log");
	}
	got = pread(fd, tail, room, size - (off_t)room);
	if (got < 0 || (size_t)got != room) {
		free(tail);
		return store_fail(store, -EIO, "cannot read the audit log");
	}
	tail[room] = '\0';
	// A line without its newline is what a crash left: it was never acknowledged, so it is cut.
	start = strrchr(tail, '\n');
	if (start == NULL || start[1] != '\0') {
		size_t whole = start == NULL ? 0 : (size_t)(start + 1 - tail);

		if (ftruncate(fd, size - (off_t)(room - whole)) < 0) {
			free(tail);
			return fail_errno(store, "cannot repair", "the audit log");
		}
		tail[whole] = '\0';
	}
	if (tail[0] != '\0')
		tail[strlen(tail) - 1] = '\0';
	start = strrchr(tail, '\n');
	if (start != NULL)
		memmove(tail, start + 1, strlen(start + 1) + 1);
	*ret_line = tail;
	return 0;
}

static int audit_append_locked(
	struct store *store, int fd, store_audit_make make, const char *entry)
{
	char *last = NULL, *line;
	size_t length;
	int rc = audit_last(store, fd, &last);

	if (rc < 0)
		return rc;
	line = make(last, entry);
	free(last);
	if (line == NULL)
		return store_fail(store, -ENOMEM, "out of memory");
	length = strlen(line);
	line[length] = '\n'; // takes the place of the NUL
	if (lseek(fd, 0, SEEK_END) < 0)
		rc = -errno;
	if (rc == 0)
		rc = write_all(fd, line, length + 1);
	if (rc == 0 && fdatasync(fd) < 0)
		rc = -errno;
	free(line);
	return rc < 0 ? store_fail(store, rc, "cannot write the audit log: %s", strerror(-rc)) : 0;
}

static int file_audit_append(struct store *store, store_audit_make make, const char *entry)
{
	struct file_state *state = store->state;
	int rc = changes_lock(store);
	int fd;

	if (rc < 0)
		return rc;
	fd = openat(state->directory, "audit.log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	rc = fd < 0 ? fail_errno(store, "cannot open", "audit.log")
		    : audit_append_locked(store, fd, make, entry);
	if (fd >= 0)
		close(fd);
	changes_unlock(store);
	return rc;
}

static int file_audit_list(struct store *store, uint64_t first, store_visit visit, void *context)
{
	struct file_state *state = store->state;
	int fd = openat(state->directory, "audit.log", O_RDONLY | O_CLOEXEC);
	FILE *log = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	uint64_t number = 0;
	ssize_t length;
	int rc = 0;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (log == NULL)
		return fail_errno(store, "cannot open", "audit.log");
	while (rc == 0 && (length = getline(&line, &room, log)) > 0) {
		char key[24];

		if (line[length - 1] != '\n')
			break; // being written, or what a crash left
		line[--length] = '\0';
		snprintf(key, sizeof(key), "%" PRIu64, ++number);
		if (number >= first)
			rc = visit(context, key, line, (size_t)length);
	}
	free(line);
	fclose(log);
	return rc;
}

static int file_watch(struct store *store)
{
	struct file_state *state = store->state;
	const int directories[] = {state->documents, state->keys};

	if (state->watch >= 0)
		return state->watch;
	state->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	for (size_t i = 0; state->watch >= 0 && i < 2; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", directories[i]);
		if (inotify_add_watch(state->watch, path, IN_MOVED_TO | IN_DELETE) < 0) {
			int rc = fail_errno(store, "cannot watch", "the store");

			close(state->watch);
			state->watch = -1;
			return rc;
		}
	}
	return state->watch < 0 ? fail_errno(store, "cannot watch", "the store") : state->watch;
}

static bool file_watch_take(struct store *store)
{
	struct file_state *state = store->state;
	char events[4096];
	bool any = false;

	while (state->watch >= 0 && read(state->watch, events, sizeof(events)) > 0)
		any = true;
	return any;
}

const struct store_backend store_file = {
	.name = "file",
	.open = file_open,
	.close = file_close,
	.read = file_read,
	.commit = file_commit,
	.key_write = file_key_write,
	.key_swap = file_key_swap,
	.key_read = file_key_read,
	.key_remove = file_key_remove,
	.key_list = file_key_list,
	.lock_take = file_lock_take,
	.lock_drop = file_lock_drop,
	.audit_append = file_audit_append,
	.audit_list = file_audit_list,
	.watch = file_watch,
	.watch_take = file_watch_take,
};
