// SPDX-License-Identifier: Apache-2.0
#include "control/store/etcd_watch.h"

#include "control/store/etcd_client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define RECONNECT_MS_MIN 200u
#define RECONNECT_MS_MAX 5000u
// A host that is gone never closes: it is asked after so much silence, and has so long to answer.
#define SILENCE_S 10L
#define PROBE_S   5L
// And a stream is opened anew at times: a process that hangs keeps its connections. So much of a hint may be late.
#define STREAM_MS_MAX 300000u
#define STAND_MS_MAX  5000u

#define ROOT_BYTES_MAX 128u
#define RANGES         3u
#define READY_MS_MAX   2000u

struct etcd_watch {
	struct etcd_client client; // the thread's own
	char *body;
	int event;
	atomic_bool stop;
	atomic_bool stands; // the server has said that it watches all ranges
	// of the stream that is open, thread only
	unsigned answers;  // lines
	unsigned canceled; // characters of CANCELED that were just seen
	uint64_t opened_ms;
	pthread_t thread;
};

static void hint(struct etcd_watch *watch)
{
	uint64_t one = 1;
	ssize_t written = write(watch->event, &one, sizeof(one));

	(void)written; // full: it is readable already
}

// What an answer has when the server has ended a watch (no permission, say) and leaves the stream open. Nothing else
// can look like it: keys and values are base64.
static const char canceled[] = "\"canceled\":true";

// One line an answer; the first RANGES say that the watches stand. From then on nothing is missed; before, something may
// have been, so that is a hint as well.
static size_t stream_take(char *bytes, size_t size, size_t count, void *context)
{
	struct etcd_watch *watch = context;

	for (size_t i = 0; i < size * count; i++) {
		if (bytes[i] != canceled[watch->canceled])
			watch->canceled = 0;
		if (bytes[i] == canceled[watch->canceled] &&
			++watch->canceled == sizeof(canceled) - 1)
			return 0; // ends the stream
		if (bytes[i] != '\n' || ++watch->answers < RANGES)
			continue;
		hint(watch);
		atomic_store(&watch->stands, true);
	}
	return size * count;
}

// libcurl asks about once a second, also when nothing comes.
static int stream_goes_on(
	void *context, curl_off_t total, curl_off_t now, curl_off_t sent, curl_off_t to_send)
{
	const struct etcd_watch *watch = context;
	bool late = watch->answers < RANGES && etcd_now_ms() - watch->opened_ms > STAND_MS_MAX;

	(void)total, (void)now, (void)sent, (void)to_send;
	return late || atomic_load(&watch->stop) ? 1 : 0;
}

static void stream_once(struct etcd_watch *watch)
{
	struct etcd_client *client = &watch->client;
	struct curl_slist *headers;

	curl_easy_reset(client->curl);
	if (etcd_client_login(client) < 0 ||
		etcd_client_prepare(client, client->curl, "watch", client->endpoint, &headers) < 0)
		return;
	watch->answers = 0;
	watch->canceled = 0;
	watch->opened_ms = etcd_now_ms();
	// A member that has lost its leader ends the stream, instead of staying silent with it.
	headers = curl_slist_append(headers, "Grpc-Metadata-hasleader: true");
	curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(client->curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(client->curl, CURLOPT_TCP_KEEPIDLE, SILENCE_S);
	curl_easy_setopt(client->curl, CURLOPT_TCP_KEEPINTVL, PROBE_S);
	curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, watch->body);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)STREAM_MS_MAX);
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, stream_take);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, watch);
	curl_easy_setopt(client->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(client->curl, CURLOPT_XFERINFOFUNCTION, stream_goes_on);
	curl_easy_setopt(client->curl, CURLOPT_XFERINFODATA, watch);
	curl_easy_perform(client->curl);
	curl_slist_free_all(headers);
	// Whatever ended it, a token may have run out with it.
	etcd_client_logout(client);
}

static void pause_ms(const struct etcd_watch *watch, uint32_t ms)
{
	uint64_t end_ms = etcd_now_ms() + ms;

	while (!atomic_load(&watch->stop) && etcd_now_ms() < end_ms) {
		struct timespec slice = {.tv_nsec = 50 * 1000000};

		nanosleep(&slice, NULL);
	}
}

static void *run(void *context)
{
	struct etcd_watch *watch = context;
	uint32_t wait_ms = RECONNECT_MS_MIN;

	while (!atomic_load(&watch->stop)) {
		uint64_t began_ms = etcd_now_ms();

		stream_once(watch);
		bool lasted = etcd_now_ms() - began_ms > RECONNECT_MS_MAX;

		wait_ms = lasted ? RECONNECT_MS_MIN : wait_ms * 2;
		if (wait_ms > RECONNECT_MS_MAX)
			wait_ms = RECONNECT_MS_MAX;
		watch->client.endpoint =
			(watch->client.endpoint + 1) % watch->client.config->endpoint_count;
		pause_ms(watch, wait_ms / 2 + etcd_jitter_ms(wait_ms / 2));
	}
	return NULL;
}

// A range of keys [from, to) below root.
static json_t *range(const char *root, const char *from, const char *to)
{
	char first[ROOT_BYTES_MAX + 32], last[ROOT_BYTES_MAX + 32];

	snprintf(first, sizeof(first), "%s%s", root, from);
	snprintf(last, sizeof(last), "%s%s", root, to);
	return json_pack("{s:{s:o, s:o}}", "create_request", "key",
		etcd_encode(first, strlen(first)), "range_end", etcd_encode(last, strlen(last)));
}

// Three watches on one stream ('0' is the character behind '/'). Parts of documents come before their names, and
// status keys of a fleet change hundreds of times a second: neither wakes anybody up.
static char *make_body(const char *root)
{
	static const char *const ranges[][2] = {
		{"documents/", "documents0"}, {"keys/", "keys/status/"}, {"keys/status0", "keys0"}};
	char *body = NULL;
	size_t length;
	FILE *out = open_memstream(&body, &length);

	if (out == NULL)
		return NULL;
	for (unsigned i = 0; i < RANGES; i++) {
		json_t *request = range(root, ranges[i][0], ranges[i][1]);

		if (request != NULL)
			json_dumpf(request, out, JSON_COMPACT);
		fputc('\n', out);
		json_decref(request);
	}
	if (fclose(out) != 0) {
		free(body);
		return NULL;
	}
	return body;
}

// Until the server has said that it watches all ranges; the hint that goes with it is the caller's return. A server that
// does not answer is no reason not to start: the hint then comes when it does.
static void wait_until_ready(struct etcd_watch *watch)
{
	uint64_t end_ms = etcd_now_ms() + READY_MS_MAX;

	while (!atomic_load(&watch->stands) && etcd_now_ms() < end_ms) {
		struct timespec slice = {.tv_nsec = 5 * 1000000};

		nanosleep(&slice, NULL);
	}
	if (atomic_load(&watch->stands))
		etcd_watch_take(watch);
}

int etcd_watch_start(
	const struct config_store *config, const char *root, bool wait, struct etcd_watch **ret)
{
	struct etcd_watch *watch = calloc(1, sizeof(*watch));
	sigset_t all, before;
	int rc;

	if (watch == NULL)
		return -ENOMEM;
	watch->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->body = make_body(root);
	rc = watch->event < 0 ? -errno : etcd_client_open(&watch->client, config);
	if (rc == 0 && watch->body == NULL)
		rc = -ENOMEM;
	if (rc == 0) {
		// Signals are the main thread's.
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		rc = -pthread_create(&watch->thread, NULL, run, watch);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (rc == 0) {
		if (wait)
			wait_until_ready(watch);
		*ret = watch;
		return 0;
	}
	if (watch->event >= 0)
		close(watch->event);
	etcd_client_close(&watch->client);
	free(watch->body);
	free(watch);
	return rc;
}

void etcd_watch_stop(struct etcd_watch *watch)
{
	if (watch == NULL)
		return;
	atomic_store(&watch->stop, true);
	pthread_join(watch->thread, NULL);
	close(watch->event);
	etcd_client_close(&watch->client);
	free(watch->body);
	free(watch);
}

int etcd_watch_descriptor(const struct etcd_watch *watch)
{
	return watch->event;
}

bool etcd_watch_take(struct etcd_watch *watch)
{
	uint64_t count;

	return read(watch->event, &count, sizeof(count)) == sizeof(count);
}
