// SPDX-License-Identifier: Apache-2.0
// ringway-dataplane: the process that forwards packets. Everything it does, it does in dataplane/io.
#include "dataplane/io/dataplane.h"
#include "dataplane/io/eal.h"
#include "dataplane/io/log.h"
#include "dataplane/io/privilege.h"
#include "dataplane/io/server.h"
#include "dataplane/replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 100

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// SIGTERM and SIGINT come as bytes of a descriptor. Blocked before EAL makes threads, they interrupt none of them.
static int open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
		return -errno;
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Tells systemd that we live, as long as every worker polls.
static void feed_watchdog(const struct dataplane *dataplane, uint64_t *last_polls)
{
	bool moving = true;

	for (uint32_t w = 0; w < dataplane->running; w++) {
		uint64_t polls = __atomic_load_n(
			&dataplane->workers[w]->pipeline.stats.counter[COUNTER_polls],
			__ATOMIC_RELAXED);

		moving = moving && polls != last_polls[w];
		last_polls[w] = polls;
	}
	if (moving)
		sd_notify(0, "WATCHDOG=1");
}

static void serve(struct dataplane *dataplane, struct server *server, int signals)
{
	uint64_t polls[PIPELINE_WORKERS_MAX] = {0};
	uint64_t next_ns = 0;
	struct pollfd waits[] = {
		{.fd = signals, .events = POLLIN}, {.fd = server_fd(server), .events = POLLIN}};

	for (;;) {
		if (poll(waits, 2, TICK_MS) < 0 && errno != EINTR) {
			log_error("poll: %s", strerror(errno));
			return;
		}
		if (waits[0].revents != 0)
			return;
		if (waits[1].revents != 0)
			server_serve(server);
		if (monotonic_ns() < next_ns)
			continue;
		next_ns = monotonic_ns() + TICK_MS * 1000000ull;
		dataplane_tick(dataplane);
		feed_watchdog(dataplane, polls);
	}
}

static int run_open(struct dataplane *dataplane, const struct options *options, int signals)
{
	char error[PRIVILEGE_ERROR_BYTES] = "";
	struct server *server = NULL;
	int result = server_open(&server, dataplane);

	if (result != 0) {
		log_error("socket in %s: %s", options->run_dir, strerror(-result));
		return EXIT_FAILED;
	}
	if (privilege_drop(options, error) != 0) {
		log_error("%s", error);
		server_close(server);
		return EXIT_FAILED;
	}
	log_notice("%u workers on %u ports poll after %" PRIu64 " ms", options->worker_count,
		options->port_count,
		(dataplane->workers[0]->first_poll_ns - dataplane->started_ns) / 1000000);
	sd_notify(0, "READY=1");
	serve(dataplane, server, signals);
	sd_notify(0, "STOPPING=1");
	log_notice("stopping");
	server_close(server);
	return EXIT_OK;
}

static int run(const struct options *options, uint64_t started_ns)
{
	static struct dataplane dataplane;
	char error[DATAPLANE_ERROR_BYTES] = "";
	int signals = open_signals(), status = EXIT_FAILED;

	if (signals < 0) {
		log_error("signals: %s", strerror(-signals));
		return EXIT_FAILED;
	}
	if (eal_start(options, error) != 0) {
		log_error("%s", error);
		return EXIT_FAILED;
	}
	if (dataplane_open(&dataplane, options, started_ns, error) == 0)
		status = run_open(&dataplane, options, signals);
	else
		log_error("%s", error);
	dataplane_close(&dataplane);
	eal_stop();
	return status;
}

// Ports of a replay are only addresses; without any it has one that has none.
static void replay_ports(const struct options *options, struct pipeline *pipeline)
{
	pipeline->worker_count = 1;
	pipeline->port_count = options->port_count > 0 ? options->port_count : 1;
	pipeline->ports[0].mtu = 1500;
	for (uint32_t i = 0; i < options->port_count; i++) {
		const struct options_port *from = &options->ports[i];
		struct pipeline_port *to = &pipeline->ports[i];

		to->mtu = from->mtu;
		to->vlan = from->vlan;
		to->address_count = from->address_count;
		memcpy(to->addresses, from->addresses, sizeof(to->addresses));
		to->gateway4 = from->gateway4;
		to->gateway6 = from->gateway6;
		pipeline->has_punt |= from->punt != NULL;
	}
	for (uint32_t i = 0; i < pipeline->port_count; i++)
		memcpy(pipeline->ports[i].mac, (uint8_t[]){0x02, 0, 0, 0, 0, (uint8_t)i}, 6);
}

static int run_replay(const struct options *options)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	struct replay_options replay = {.input_path = options->replay.input,
		.output_path = options->replay.output,
		.snapshot_path = options->replay.snapshot,
		.pipeline = pipeline,
		.flow_entries = options->flow_entries,
		.report = stdout};
	struct snapshot_error error = {.text = ""};
	struct replay_result counts;
	int result;

	if (pipeline == NULL)
		return EXIT_FAILED;
	memcpy(replay.neighbour_mac, options->replay.neighbour_mac, sizeof(replay.neighbour_mac));
	replay_ports(options, pipeline);
	result = replay_run(&replay, &counts, &error);
	free(pipeline);
	if (result != 0) {
		log_error("%s", error.text);
		return EXIT_FAILED;
	}
	printf("%" PRIu64 " packets in, %" PRIu64 " out\n", counts.packets_in, counts.packets_out);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	uint64_t started_ns = monotonic_ns();
	static struct options options;
	char error[OPTIONS_ERROR_SIZE];

	switch (options_parse(argc, argv, &options, error)) {
	case OPTIONS_HELP:
		fputs(options_help(), stdout);
		return EXIT_OK;
	case OPTIONS_VERSION:
		puts("ringway-dataplane " RINGWAY_VERSION);
		return EXIT_OK;
	case OPTIONS_BAD:
		log_error("%s (see --help)", error);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	return options.replay.input != NULL ? run_replay(&options) : run(&options, started_ns);
}
