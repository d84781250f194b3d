// SPDX-License-Identifier: Apache-2.0
// The stats file as readers see it, and a scrape over real HTTP.
#include "control/metrics/dataplane.h"
#include "control/metrics/http.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/ringway-stats-XXXXXX";

// Makes a stats file in the place of the path, as a dataplane that starts does, and maps it for writing.
static void *make_file(const struct stats_geometry *geometry)
{
	uint64_t bytes = stats_footprint(geometry);
	char temporary[64];
	void *memory;
	int file;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = open(temporary, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CU_ASSERT_EQUAL_FATAL(ftruncate(file, (off_t)bytes), 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CU_ASSERT_FATAL(memory != MAP_FAILED);
	close(file);
	stats_format(memory, geometry);
	CU_ASSERT_EQUAL(rename(temporary, path), 0);
	return memory;
}

static const struct stats_geometry geometry = {
	.worker_count = 2, .service_count = 3, .pool_count = 4, .backend_count = 5};

// Books packets that balance: 10 received, 6 forwarded, 1 punted, 1 answered, 2 dropped.
static void book(void *memory, uint32_t worker)
{
	struct stats_worker block = stats_worker(memory, worker);

	block.counter[COUNTER_rx_packets] += 10;
	block.counter[COUNTER_forwarded] += 6;
	block.counter[COUNTER_punted] += 1;
	block.counter[COUNTER_answered] += 1;
	block.drop[DROP_runt] += 1;
	block.drop[DROP_ttl_expired] += 1;
	block.services[2].packets += 7;
	block.pools[3].new_flows_new += 5;
	block.backends[4].bytes += 100;
}

static void workers_are_summed_and_balance(void)
{
	struct stats_file file = {0};
	struct stats_reading reading;
	struct stats_backend backend;
	struct stats_service service;
	struct stats_pool pool;
	void *memory = make_file(&geometry);

	book(memory, 0);
	book(memory, 1);
	CU_ASSERT_EQUAL_FATAL(stats_file_refresh(&file, path), 0);
	stats_file_read(&file, UINT32_MAX, &reading);
	CU_ASSERT_EQUAL(reading.counter[COUNTER_rx_packets], 20);
	CU_ASSERT_EQUAL(reading.drops, 4);
	CU_ASSERT_EQUAL(reading.difference, 0);
	stats_file_read(&file, 1, &reading);
	CU_ASSERT_EQUAL(reading.counter[COUNTER_forwarded], 6);
	stats_file_service(&file, 2, &service);
	stats_file_pool(&file, 3, &pool);
	stats_file_backend(&file, 4, &backend);
	CU_ASSERT_EQUAL(service.packets, 14);
	CU_ASSERT_EQUAL(pool.new_flows_new, 10);
	CU_ASSERT_EQUAL(backend.bytes, 200);
	// Ids beyond the slots count nothing and read nothing.
	stats_file_backend(&file, 5, &backend);
	stats_file_pool(&file, UINT32_MAX, &pool);
	CU_ASSERT_EQUAL(backend.bytes, 0);
	CU_ASSERT_EQUAL(pool.new_flows_new, 0);
	stats_file_close(&file);
	munmap(memory, stats_footprint(&geometry));
}

static void a_packet_that_is_lost_shows(void)
{
	struct stats_file file = {0};
	struct stats_reading reading;
	void *memory = make_file(&geometry);

	book(memory, 0);
	stats_worker(memory, 0).counter[COUNTER_rx_packets] += 3;
	CU_ASSERT_EQUAL_FATAL(stats_file_refresh(&file, path), 0);
	stats_file_read(&file, UINT32_MAX, &reading);
	CU_ASSERT_EQUAL(reading.difference, 3);
	stats_file_close(&file);
	munmap(memory, stats_footprint(&geometry));
}

static void a_restarted_dataplane_is_followed(void)
{
	struct stats_geometry larger = geometry;
	struct stats_file file = {0};
	struct stats_reading reading;
	void *memory = make_file(&geometry);

	book(memory, 0);
	CU_ASSERT_EQUAL_FATAL(stats_file_refresh(&file, path), 0);
	larger.worker_count = 7;
	void *second = make_file(&larger);

	book(second, 6);
	book(second, 6);
	// The old mapping still reads the old file until it is refreshed.
	stats_file_read(&file, UINT32_MAX, &reading);
	CU_ASSERT_EQUAL(reading.counter[COUNTER_rx_packets], 10);
	CU_ASSERT_EQUAL_FATAL(stats_file_refresh(&file, path), 0);
	stats_file_read(&file, UINT32_MAX, &reading);
	CU_ASSERT_EQUAL(reading.counter[COUNTER_rx_packets], 20);
	CU_ASSERT_EQUAL(file.view.header->worker_count, 7);
	stats_file_close(&file);
	munmap(memory, stats_footprint(&geometry));
	munmap(second, stats_footprint(&larger));
}

static void what_is_no_stats_file_is_refused(void)
{
	struct stats_file file = {0};
	FILE *out;

	CU_ASSERT_EQUAL(stats_file_refresh(&file, "/tmp/ringway-no-such-file"), -ENOENT);
	out = fopen(path, "w");
	fclose(out);
	CU_ASSERT_EQUAL(stats_file_refresh(&file, path), -EINVAL);
	out = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("no stats ", out);
	fclose(out);
	CU_ASSERT_EQUAL(stats_file_refresh(&file, path), -EINVAL);
	CU_ASSERT_PTR_NULL(file.memory);
	// A good file, cut short.
	munmap(make_file(&geometry), stats_footprint(&geometry));
	CU_ASSERT_EQUAL(truncate(path, 4096), 0);
	CU_ASSERT_EQUAL(stats_file_refresh(&file, path), -EINVAL);
}

// A file of another version: one counter has another name, one drop reason is new.
static void unknown_names_are_kept_apart(void)
{
	struct stats_file file = {0};
	struct stats_reading reading;
	void *memory = make_file(&geometry);
	struct stats_header *header = memory;
	char *names = (char *)memory + header->names_offset;

	book(memory, 0);
	strcpy(names + COUNTER_punted * STATS_NAME_BYTES, "of_the_future");
	strcpy(names + (COUNTER_COUNT + DROP_runt) * STATS_NAME_BYTES, "new_reason");
	CU_ASSERT_EQUAL_FATAL(stats_file_refresh(&file, path), 0);
	stats_file_read(&file, UINT32_MAX, &reading);
	CU_ASSERT_EQUAL(reading.counter[COUNTER_punted], 0);
	CU_ASSERT_EQUAL(reading.counter[COUNTER_forwarded], 6);
	CU_ASSERT_EQUAL(reading.drops, 2);
	CU_ASSERT_STRING_EQUAL(stats_file_drop_name(&file, DROP_runt), "new_reason");
	CU_ASSERT_PTR_NULL(stats_file_drop_text(&file, DROP_runt));
	CU_ASSERT_STRING_EQUAL(stats_file_drop_stage(&file, DROP_ttl_expired), "parse");
	stats_file_close(&file);
	munmap(memory, stats_footprint(&geometry));
}

static void text_is_escaped_and_counted(void)
{
	char *out;
	size_t bytes;
	struct metrics_text text = {.out = open_memstream(&out, &bytes)};

	metrics_family(&text, "test_total", METRICS_COUNTER, "A test.");
	metrics_count(&text, METRICS_LABELS({"a", "x\"y\\z\n"}, {"b", NULL}), UINT64_MAX);
	metrics_real(&text, NULL, 0.25);
	fclose(text.out);
	CU_ASSERT_STRING_EQUAL(out,
		"# HELP ringway_test_total A test.\n# TYPE ringway_test_total counter\n"
		"ringway_test_total{a=\"x\\\"y\\\\z\\n\",b=\"\"} 18446744073709551615\n"
		"ringway_test_total 0.25\n");
	CU_ASSERT_EQUAL(text.series_count, 2);
	free(out);
}

static void groups_beyond_the_budget_are_left_out_whole(void)
{
	struct metrics_text text = {.series_count = 1990};

	CU_ASSERT_TRUE(metrics_room(&text, 10));
	CU_ASSERT_FALSE(metrics_room(&text, 11));
	CU_ASSERT_EQUAL(text.left_out_count, 11);
	text.unlimited = true;
	CU_ASSERT_TRUE(metrics_room(&text, 1000000));
}

// --- over HTTP: the server runs in a child --------------------------------------------------------

static char *render(void *context, const char *scope, size_t *ret_length)
{
	struct stats_file file = {0};
	char *out;
	struct metrics_text text = {.out = open_memstream(&out, ret_length)};

	(void)context;
	if (stats_file_refresh(&file, path) == 0)
		metrics_dataplane(&text, &file, 1);
	fprintf(text.out, "# scope %s\n", scope ? scope : "none");
	fclose(text.out);
	stats_file_close(&file);
	return out;
}

static pid_t start_http(unsigned *ret_port)
{
	int ready[2];
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct metrics_http *http;
		sd_event *event;
		unsigned port;

		alarm(30);
		if (sd_event_new(&event) < 0 ||
			metrics_http_create(event, "127.0.0.1:0", render, NULL, &http) != 0)
			_exit(1);
		port = metrics_http_port(http);
		if (write(ready[1], &port, sizeof(port)) != sizeof(port))
			_exit(1);
		_exit(sd_event_loop(event) < 0);
	}
	close(ready[1]);
	CU_ASSERT_EQUAL_FATAL(read(ready[0], ret_port, sizeof(*ret_port)), sizeof(*ret_port));
	close(ready[0]);
	return pid;
}

// One request; the answer is the caller's.
static char *fetch(unsigned port, const char *request)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int peer = socket(AF_INET, SOCK_STREAM, 0);
	char *answer = calloc(1, 1 << 20);
	size_t used = 0;
	ssize_t count;

	CU_ASSERT_EQUAL_FATAL(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
	CU_ASSERT_EQUAL(write(peer, request, strlen(request)), (ssize_t)strlen(request));
	while ((count = read(peer, answer + used, (1 << 20) - 1 - used)) > 0)
		used += (size_t)count;
	close(peer);
	return answer;
}

static void a_scrape_answers_over_http(void)
{
	void *memory = make_file(&geometry);
	unsigned port = 0;
	pid_t pid = start_http(&port);
	char *answer;

	book(memory, 0);
	answer = fetch(port, "GET /metrics HTTP/1.0\r\n\r\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "200 OK"));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "text/plain; version=0.0.4"));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\nringway_rx_packets_total 10\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\nringway_unaccounted_packets 0\n"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(answer, "\nringway_drops_total{stage=\"parse\",reason=\"runt\"} 1\n"));
	// Series of reasons that never happened are there, at zero.
	CU_ASSERT_PTR_NOT_NULL(
		strstr(answer, "ringway_drops_total{stage=\"tx\",reason=\"tx_full\"} 0\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "# scope none"));
	free(answer);
	answer = fetch(port, "GET /metrics?scope=backend HTTP/1.0\r\n\r\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "# scope backend"));
	free(answer);
	answer = fetch(port, "GET /other HTTP/1.0\r\n\r\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "404"));
	free(answer);
	answer = fetch(port, "POST /metrics HTTP/1.0\r\nContent-Length: 4\r\n\r\nabcd");
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "405"));
	free(answer);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(memory, stats_footprint(&geometry));
}

static void bad_addresses_are_refused(void)
{
	static const char *const addresses[] = {"", "9142", "127.0.0.1", "localhost:9142",
		"127.0.0.1:99999", "unix:", "unix:relative", "::1:9142"};
	struct metrics_http *http = NULL;
	sd_event *event;

	CU_ASSERT(sd_event_new(&event) >= 0);
	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		CU_ASSERT_EQUAL(
			metrics_http_create(event, addresses[i], render, NULL, &http), -EINVAL);
	CU_ASSERT_PTR_NULL(http);
	sd_event_unref(event);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"workers_are_summed_and_balance", workers_are_summed_and_balance},
		{"a_packet_that_is_lost_shows", a_packet_that_is_lost_shows},
		{"a_restarted_dataplane_is_followed", a_restarted_dataplane_is_followed},
		{"what_is_no_stats_file_is_refused", what_is_no_stats_file_is_refused},
		{"unknown_names_are_kept_apart", unknown_names_are_kept_apart},
		{"text_is_escaped_and_counted", text_is_escaped_and_counted},
		{"groups_beyond_the_budget_are_left_out_whole",
			groups_beyond_the_budget_are_left_out_whole},
		{"a_scrape_answers_over_http", a_scrape_answers_over_http},
		{"bad_addresses_are_refused", bad_addresses_are_refused},
	};
	int file = mkstemp(path), failed;

	if (file < 0)
		return 1;
	close(file);
	failed = SUITE_RUN("metrics", cases);
	unlink(path);
	return failed;
}
