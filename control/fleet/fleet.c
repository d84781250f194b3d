// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/fleet.h"

#include "control/fleet/conductor.h"
#include "control/fleet/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

// How often the thread looks at all, and reads the store whether or not it was told to.
#define TICK_MS 500u
#define READ_MS 5000u
// How often a node whose datacenter is moving writes its statement: guards count on it.
#define STATUS_ACTIVE_MS 2000u
#define CACHE_NAME       "cutovers.json"
#define PATH_BYTES       4096

struct fleet {
	const struct config_node *config;
	pthread_t thread;
	pthread_mutex_t mutex; // of the next three groups
	// daemon rw, thread rw
	struct fleet_status status;
	bool status_known;
	bool status_urgent;
	bool stop;
	bool poked;
	struct fleet_cutovers fresh; // read by the thread, not taken yet
	bool is_fresh;
	struct fleet_state state;
	json_t *said; // fleet_conductor_said(), or NULL
	uint64_t answered_ms;
	int to_daemon; // eventfd
	int to_thread;
	// daemon only
	struct fleet_cutovers taken;
	// thread only
	struct store *store;
	struct fleet_conductor *conductor;
	struct fleet_cutovers read;
	char *read_text; // of all of them together, to see whether anything changed
	struct fleet_status statement;
	uint64_t read_ms;
	uint64_t written_ms;
	uint32_t jitter_ms;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void raise_event(int event)
{
	uint64_t one = 1;
	ssize_t written = write(event, &one, sizeof(one));

	(void)written; // full: it is readable already
}

static void lower_event(int event)
{
	uint64_t count;
	ssize_t got = read(event, &count, sizeof(count));

	(void)got; // nothing there
}

// --- the copy in the run directory -----------------------------------------------------------------

static void cache_path(const struct fleet *fleet, const char *suffix, char ret[static PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%s/" CACHE_NAME "%s", fleet->config->run_dir, suffix);
}

static void cache_write(struct fleet *fleet, const char *text)
{
	char path[PATH_BYTES], aside[PATH_BYTES];
	FILE *file;

	cache_path(fleet, "", path);
	cache_path(fleet, ".new", aside);
	file = fopen(aside, "we");
	if (file == NULL)
		return;
	bool good = fputs(text, file) >= 0;

	good = fflush(file) == 0 && fsync(fileno(file)) == 0 && good;
	if (fclose(file) != 0 || !good || rename(aside, path) != 0)
		fprintf(stderr, "<4>fleet: cannot write %s: %s\n", path, strerror(errno));
}

// One document a line.
static void cache_read(struct fleet *fleet, struct fleet_cutovers *ret)
{
	char path[PATH_BYTES], error[STORE_ERROR_BYTES], *line = NULL;
	size_t room = 0;
	ssize_t length;

	cache_path(fleet, "", path);
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return;
	while ((length = getline(&line, &room, file)) > 1 && ret->count < FLEET_CUTOVERS_MAX) {
		size_t bytes = (size_t)length - (line[length - 1] == '\n');
		struct fleet_cutover *cutover = fleet_cutover_parse(line, bytes, error);

		if (cutover != NULL)
			ret->items[ret->count++] = cutover;
	}
	free(line);
	fclose(file);
}

// --- the thread ------------------------------------------------------------------------------------

static char *join_texts(const struct fleet_cutovers *cutovers)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (out == NULL)
		return NULL;
	for (uint32_t i = 0; i < cutovers->count; i++)
		fprintf(out, "%s\n", cutovers->items[i]->text);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void copy_all(const struct fleet_cutovers *from, struct fleet_cutovers *ret)
{
	char error[STORE_ERROR_BYTES];

	*ret = (struct fleet_cutovers){0};
	for (uint32_t i = 0; i < from->count; i++) {
		struct fleet_cutover *copy = fleet_cutover_parse(
			from->items[i]->text, strlen(from->items[i]->text), error);

		if (copy != NULL)
			ret->items[ret->count++] = copy;
	}
}

static void answered(struct fleet *fleet, int rc)
{
	bool before = fleet->state.connected; // this thread alone writes it

	if (rc < 0 && before)
		fprintf(stderr, "<4>fleet: nothing moves, the store is lost: %s\n",
			store_error(fleet->store));
	else if (rc >= 0 && !before)
		fprintf(stderr, "<5>fleet: the store answers again\n");
	pthread_mutex_lock(&fleet->mutex);
	fleet->state.connected = rc >= 0;
	fleet->state.elected = fleet_conductor_elected(fleet->conductor);
	if (rc >= 0)
		fleet->answered_ms = now_ms();
	else
		snprintf(fleet->state.error, sizeof(fleet->state.error), "%s",
			store_error(fleet->store));
	pthread_mutex_unlock(&fleet->mutex);
}

static void hand_over(struct fleet *fleet)
{
	struct fleet_cutovers copy;

	copy_all(&fleet->read, &copy);
	pthread_mutex_lock(&fleet->mutex);
	fleet_cutovers_free(&fleet->fresh);
	fleet->fresh = copy;
	fleet->is_fresh = true;
	pthread_mutex_unlock(&fleet->mutex);
	raise_event(fleet->to_daemon);
}

// Rounds of guards that passed are known to this process alone; a document that did not change keeps them.
static void keep_passes(const struct fleet_cutovers *before, struct fleet_cutovers *now)
{
	for (uint32_t i = 0; i < now->count; i++) {
		for (uint32_t k = 0; k < before->count; k++) {
			if (strcmp(before->items[k]->text, now->items[i]->text) == 0)
				now->items[i]->cutover.passes = before->items[k]->cutover.passes;
		}
	}
}

// A read that fails is done again with the next look: while the store is lost, calls fail at once.
static void read_store(struct fleet *fleet)
{
	struct fleet_cutovers cutovers = {0};
	char error[STORE_ERROR_BYTES];
	int rc = fleet_cutovers_read(fleet->store, &cutovers, error);

	answered(fleet, rc);
	fleet->read_ms = rc < 0 ? 0 : now_ms();
	if (rc < 0)
		return; // what was read last goes on: frozen, never reset
	fleet_conductor_saw(fleet->conductor, fleet->store, &cutovers);
	char *text = join_texts(&cutovers);

	keep_passes(&fleet->read, &cutovers);
	fleet_cutovers_free(&fleet->read);
	fleet->read = cutovers;
	if (text == NULL || (fleet->read_text != NULL && strcmp(text, fleet->read_text) == 0)) {
		free(text);
		return;
	}
	free(fleet->read_text);
	fleet->read_text = text;
	cache_write(fleet, text);
	hand_over(fleet);
}

static bool is_active(const struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->read.count; i++) {
		const struct cutover *cutover = &fleet->read.items[i]->cutover;

		if (cutover->state != CUTOVER_PLANNED && !cutover_state_terminal(cutover->state))
			return true;
	}
	return false;
}

static void write_status(struct fleet *fleet)
{
	uint32_t period_ms = is_active(fleet) ? STATUS_ACTIVE_MS : FLEET_STATUS_MS;
	uint64_t now = now_ms();
	bool due = now - fleet->written_ms >= period_ms - period_ms / 4 + fleet->jitter_ms;
	char key[STORE_KEY_BYTES];

	pthread_mutex_lock(&fleet->mutex);
	bool wanted = fleet->status_known && (fleet->status_urgent || due);

	if (wanted) {
		fleet->statement = fleet->status;
		fleet->status_urgent = false;
	}
	pthread_mutex_unlock(&fleet->mutex);
	if (!wanted)
		return;
	json_t *object = fleet_status_write(&fleet->statement);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	snprintf(key, sizeof(key), FLEET_STATUS_PREFIX "%s", fleet->config->node);
	if (text != NULL)
		answered(fleet, store_key_write(fleet->store, key, text, strlen(text)));
	fleet->written_ms = now;
	fleet->jitter_ms = (uint32_t)random() % (period_ms / 2);
	free(text);
	json_decref(object);
}

static bool take_poke(struct fleet *fleet)
{
	pthread_mutex_lock(&fleet->mutex);
	bool poked = fleet->poked;

	fleet->poked = false;
	pthread_mutex_unlock(&fleet->mutex);
	return poked;
}

static bool has_ended(struct fleet *fleet)
{
	pthread_mutex_lock(&fleet->mutex);
	bool stop = fleet->stop;

	pthread_mutex_unlock(&fleet->mutex);
	return stop;
}

static void hand_verdicts_over(struct fleet *fleet)
{
	json_t *said = fleet_conductor_said(fleet->conductor), *before;

	if (said == NULL)
		return;
	pthread_mutex_lock(&fleet->mutex);
	before = fleet->said;
	fleet->said = said;
	pthread_mutex_unlock(&fleet->mutex);
	json_decref(before);
}

json_t *fleet_verdicts(struct fleet *fleet, const struct cutover *cutover)
{
	json_t *list, *ret;

	pthread_mutex_lock(&fleet->mutex);
	list = fleet_guards_of(json_object_get(fleet->said, cutover->spec.pool), cutover);
	ret = json_deep_copy(list);
	json_decref(list);
	pthread_mutex_unlock(&fleet->mutex);
	return ret;
}

static void look(struct fleet *fleet)
{
	bool poked = take_poke(fleet), hinted = store_watch_take(fleet->store);

	if (poked || hinted || now_ms() - fleet->read_ms >= READ_MS)
		read_store(fleet);
	write_status(fleet);
	if (!is_active(fleet))
		return;
	int moved = fleet_conductor_run(
		fleet->conductor, fleet->store, &fleet->read, &fleet->statement);

	hand_verdicts_over(fleet);
	if (moved != 0)
		answered(fleet, moved);
	if (moved != 0)
		read_store(fleet);
}

static void *run(void *context)
{
	struct fleet *fleet = context;
	int watch = store_watch(fleet->store);
	struct pollfd polls[] = {
		{.fd = fleet->to_thread, .events = POLLIN}, {.fd = watch, .events = POLLIN}};

	while (!has_ended(fleet)) {
		poll(polls, watch >= 0 ? 2 : 1, TICK_MS);
		lower_event(fleet->to_thread);
		if (!has_ended(fleet))
			look(fleet);
	}
	fleet_conductor_resign(fleet->conductor, fleet->store);
	return NULL;
}

// --- the daemon's side -----------------------------------------------------------------------------

static void destroy(struct fleet *fleet)
{
	fleet_cutovers_free(&fleet->fresh);
	fleet_cutovers_free(&fleet->taken);
	fleet_cutovers_free(&fleet->read);
	free(fleet->read_text);
	json_decref(fleet->said);
	fleet_conductor_free(fleet->conductor);
	store_close(fleet->store);
	if (fleet->to_daemon >= 0)
		close(fleet->to_daemon);
	if (fleet->to_thread >= 0)
		close(fleet->to_thread);
	free(fleet);
}

static int thread_start(struct fleet *fleet)
{
	sigset_t all, before;

	pthread_mutex_init(&fleet->mutex, NULL);
	// Signals are the daemon's.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = -pthread_create(&fleet->thread, NULL, run, fleet);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

// The store's word goes before what was kept here: a crash may have come between the two. Only without it the copy
// counts, and nothing moves then.
static void first_read(struct fleet *fleet, bool alone)
{
	fleet->state.connected =
		!alone && fleet_cutovers_read(fleet->store, &fleet->taken, fleet->state.error) == 0;
	if (fleet->state.connected)
		return;
	fprintf(stderr, "<4>fleet: goes on with the shares known last: %s\n",
		alone ? "the store is away" : fleet->state.error);
	cache_read(fleet, &fleet->taken);
}

int fleet_open(const struct config_node *config, bool alone, struct fleet **ret, char *ret_error)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	if (fleet == NULL)
		return -ENOMEM;
	fleet->config = config;
	fleet->answered_ms = now_ms();
	fleet->to_daemon = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fleet->to_thread = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fleet->conductor = fleet_conductor_create(config->node);
	int rc = store_open(&config->store, config->node, &fleet->store, ret_error);

	if (rc == 0 && (fleet->to_daemon < 0 || fleet->to_thread < 0 || fleet->conductor == NULL))
		rc = -ENOMEM;
	if (rc == 0) {
		first_read(fleet, alone);
		rc = thread_start(fleet);
	}
	if (rc < 0) {
		destroy(fleet);
		return rc;
	}
	*ret = fleet;
	return 0;
}

void fleet_close(struct fleet *fleet)
{
	if (fleet == NULL)
		return;
	pthread_mutex_lock(&fleet->mutex);
	fleet->stop = true;
	pthread_mutex_unlock(&fleet->mutex);
	raise_event(fleet->to_thread);
	pthread_join(fleet->thread, NULL);
	pthread_mutex_destroy(&fleet->mutex);
	destroy(fleet);
}

int fleet_descriptor(const struct fleet *fleet)
{
	return fleet->to_daemon;
}

bool fleet_take(struct fleet *fleet)
{
	lower_event(fleet->to_daemon);
	pthread_mutex_lock(&fleet->mutex);
	bool fresh = fleet->is_fresh;

	if (fresh) {
		fleet_cutovers_free(&fleet->taken);
		fleet->taken = fleet->fresh;
		fleet->fresh = (struct fleet_cutovers){0};
		fleet->is_fresh = false;
	}
	pthread_mutex_unlock(&fleet->mutex);
	return fresh;
}

const struct fleet_cutovers *fleet_cutovers(const struct fleet *fleet)
{
	return &fleet->taken;
}

void fleet_poke(struct fleet *fleet)
{
	pthread_mutex_lock(&fleet->mutex);
	fleet->poked = true;
	pthread_mutex_unlock(&fleet->mutex);
	raise_event(fleet->to_thread);
}

// What somebody may be waiting for. Counters are not.
static bool urgent(const struct fleet_status *before, const struct fleet_status *now)
{
	if (before->pool_count != now->pool_count || before->generation != now->generation ||
		before->dataplane != now->dataplane || before->kill_switch != now->kill_switch ||
		before->draining != now->draining)
		return true;
	for (uint32_t i = 0; i < now->pool_count; i++) {
		const struct fleet_pool *a = &before->pools[i], *b = &now->pools[i];

		if (a->revision != b->revision || a->share != b->share || a->local != b->local ||
			strcmp(a->pool, b->pool) != 0 || strcmp(a->error, b->error) != 0 ||
			memcmp(a->new_digest, b->new_digest, sizeof(a->new_digest)) != 0)
			return true;
	}
	return false;
}

void fleet_report(struct fleet *fleet, const struct fleet_status *status)
{
	pthread_mutex_lock(&fleet->mutex);
	bool now = !fleet->status_known || urgent(&fleet->status, status);

	fleet->status = *status;
	fleet->status_known = true;
	fleet->status_urgent |= now;
	pthread_mutex_unlock(&fleet->mutex);
	if (now)
		raise_event(fleet->to_thread);
}

void fleet_state(struct fleet *fleet, struct fleet_state *ret)
{
	pthread_mutex_lock(&fleet->mutex);
	*ret = fleet->state;
	ret->silent_ms = now_ms() - fleet->answered_ms;
	pthread_mutex_unlock(&fleet->mutex);
}
