// SPDX-License-Identifier: Apache-2.0
// ringwayd: reads node.yaml, opens the store, serves the socket, and keeps the dataplane at what the store says.
#include "control/config/diff.h"
#include "control/config/reader.h"
#include "control/daemon/exporter.h"
#include "control/daemon/log.h"
#include "control/daemon/node.h"
#include "control/daemon/server.h"
#include "control/daemon/verbs.h"
#include "control/metrics/http.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#define NODE_FILE   "/etc/ringway/node.yaml"
#define RUN_MODE    0750
#define SOCKET_MODE 0660

// Exit codes are those of the CLI where both have them.
enum {
	EXIT_USAGE = NODE_USAGE,
	EXIT_INVALID = NODE_INVALID,
};

struct daemon_options {
	const char *node_file;
	const char *pools_file; // instead of the node file's
	bool check;
};

static const char help[] =
	"Usage: ringwayd [-f NODE.yaml] [--pools POOLS.yaml] [--check]\n"
	"\n"
	"Keeps ringway-dataplane at what the store says, and serves ringway.\n"
	"\n"
	"  -f, --config FILE  node file (default " NODE_FILE ")\n"
	"  --pools FILE       pools file to apply when the store is empty, instead of the\n"
	"                     node file's `pools_file`\n"
	"  --check            read both files, say all that is wrong, and end\n"
	"  --help, --version\n"
	"\n"
	"Messages go to standard error with the priority in front, as the journal reads them.\n";

static int options_parse(int argc, char **argv, struct daemon_options *ret)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'f'},
		{"pools", required_argument, NULL, 'p'},
		{"check", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int option;

	*ret = (struct daemon_options){.node_file = NODE_FILE};
	while ((option = getopt_long(argc, argv, "f:", longs, NULL)) != -1) {
		switch (option) {
		case 'f':
			ret->node_file = optarg;
			break;
		case 'p':
			ret->pools_file = optarg;
			break;
		case 'c':
			ret->check = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -ECANCELED;
		case 'v':
			puts("ringwayd " RINGWAY_VERSION);
			return -ECANCELED;
		default:
			return -EINVAL;
		}
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "ringwayd: unexpected argument %s\n", argv[optind]);
	return -EINVAL;
}

// A file and its report. The text must outlive the report.
struct source {
	char *text;
	struct config_report report;
};

static int source_load(const char *path, struct source *ret)
{
	size_t length;
	int rc = config_file_load(path, &ret->text, &length);

	if (rc < 0) {
		fprintf(stderr, "<3>%s: %s\n", path, strerror(-rc));
		return rc;
	}
	config_report_init(&ret->report, path, ret->text, length);
	return 0;
}

static void source_free(struct source *source)
{
	config_report_free(&source->report);
	free(source->text);
}

static int node_file_read(const char *path, struct config_node **ret)
{
	struct source source;
	int rc = source_load(path, &source);

	if (rc < 0)
		return rc;
	rc = config_node_read(&source.report, ret);
	config_report_print(&source.report, stderr);
	source_free(&source);
	return rc;
}

static int pools_file_check(const char *path)
{
	struct config_pools *pools = NULL;
	struct source source;
	int rc = source_load(path, &source);

	if (rc < 0)
		return rc;
	rc = config_pools_read(&source.report, &pools);
	config_report_print(&source.report, stderr);
	config_pools_free(pools);
	source_free(&source);
	return rc;
}

// The pools file is applied once, to a store that has none: from then on the store is the truth.
static int pools_file_apply(struct node *node, const char *path)
{
	struct node_request request = {.verb = "apply", .reason = "first start", .pid = getpid()};
	struct node_outcome outcome;
	struct source source;
	int rc;

	if (path[0] == '\0' || node_document(node)->applied_generation != 0)
		return 0;
	rc = source_load(path, &source);
	if (rc < 0)
		return rc;
	enum node_code code = node_apply(node, &request, &source.report, &outcome);

	// Of the nodes of a new fleet that start at once, one was faster: its pools are in use here now.
	if (code == NODE_CONFLICT && node_document(node)->applied_generation != 0)
		code = NODE_OK;
	rc = code == NODE_OK ? 0 : -EINVAL;
	config_report_print(&source.report, stderr);
	fprintf(stderr, "<%d>%s: %s\n", rc == 0 ? 5 : 3, path, outcome.text);
	node_outcome_free(&outcome);
	source_free(&source);
	return rc;
}

static int group_find(const char *name, gid_t *ret)
{
	const struct group *group;

	*ret = SERVER_NO_GROUP;
	if (name[0] == '\0')
		return 0;
	group = getgrnam(name);
	if (group == NULL) {
		fprintf(stderr, "<3>there is no group \"%s\"\n", name);
		return -EINVAL;
	}
	*ret = group->gr_gid;
	return 0;
}

static int server_start(
	sd_event *event, const struct config_node *config, struct verbs *verbs, struct server **ret)
{
	char path[256];
	struct server_options options = {
		.path = path,
		.mode = SOCKET_MODE,
		.others = SERVER_VIEWER,
		.verbs = verbs_table,
		.verb_count = verbs_count,
		.context = verbs,
	};
	int rc;

	snprintf(path, sizeof(path), "%s/%s", config->run_dir, PROTOCOL_SOCKET_NAME);
	if (group_find(config->control.group, &options.group) < 0 ||
		group_find(config->control.viewers, &options.viewer) < 0 ||
		group_find(config->control.operators, &options.operators) < 0 ||
		group_find(config->control.admins, &options.admins) < 0)
		return -EINVAL;
	rc = server_create(event, &options, ret);
	if (rc < 0)
		fprintf(stderr, "<3>cannot listen on %s: %s\n", path, strerror(-rc));
	return rc;
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	(void)context;
	fprintf(stderr, "<5>ends on signal %u; the dataplane goes on\n", info->ssi_signo);
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

// What runs, and the file that it was read from.
struct origin {
	const char *path;
	const struct config_node *config;
};

// Every key of node.yaml is read at start; a file that has changed since is told, not ignored and not half obeyed.
static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	const struct origin *origin = context;
	struct config_node *now = NULL;
	struct config_diff *diff;

	(void)source;
	(void)info;
	if (node_file_read(origin->path, &now) < 0)
		return 0;
	diff = config_node_diff(origin->config, now);
	for (uint32_t i = 0; diff != NULL && i < diff->change_count; i++)
		fprintf(stderr, "<4>%s: %s differs from what runs, and needs a restart\n",
			origin->path, diff->changes[i].path);
	if (diff != NULL && diff->change_count == 0)
		fprintf(stderr, "<5>%s is what runs; pools are changed by `ringway apply`\n",
			origin->path);
	config_diff_free(diff);
	config_node_free(now);
	return 0;
}

static int signals_attach(sd_event *event, struct origin *origin)
{
	static const struct {
		int number;
		sd_event_signal_handler_t handler;
	} signals[] = {{SIGTERM, on_end}, {SIGINT, on_end}, {SIGHUP, on_hangup}};
	sigset_t set;
	int rc = 0;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i].number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]) && rc >= 0; i++)
		rc = sd_event_add_signal(
			event, NULL, signals[i].number, signals[i].handler, origin);
	return rc;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Starts the exporter, if the node file asks for one. *ret_exporter must outlive *ret_http.
static int metrics_start(sd_event *event, const struct config_node *config, struct verbs *verbs,
	struct exporter **ret_exporter, struct metrics_http **ret_http)
{
	int rc;

	if (config->metrics[0] == '\0')
		return 0;
	*ret_exporter = exporter_create(verbs);
	rc = *ret_exporter == NULL ? -ENOMEM
				   : metrics_http_create(event, config->metrics, exporter_render,
					     *ret_exporter, ret_http);
	if (rc < 0)
		fprintf(stderr, "<3>metrics: cannot listen on \"%s\": %s\n", config->metrics,
			rc == -EINVAL ? "write 127.0.0.1:9142, [::1]:9142 or unix:/path"
				      : strerror(-rc));
	return rc;
}

static int serve(sd_event *event, const struct config_node *config, struct node *node,
	struct fleet_link *fleet)
{
	struct verbs verbs = {.node = node, .fleet = fleet, .started_ns = now_ns()};
	struct exporter *exporter = NULL;
	struct metrics_http *http = NULL;
	struct server *server = NULL;
	int rc = server_start(event, config, &verbs, &server);

	if (rc < 0)
		return rc;
	verbs.server = server;
	rc = metrics_start(event, config, &verbs, &exporter, &http);
	if (rc == 0)
		rc = node_attach(node, event);
	if (rc == 0)
		rc = fleet_link_attach(fleet, event);
	if (rc == 0) {
		node_reconcile(node);
		fprintf(stderr, "<5>node %s serves generation %llu\n", config->node,
			(unsigned long long)node_document(node)->generation);
		sd_notifyf(0, "READY=1\nSTATUS=generation %llu; dataplane: %s",
			(unsigned long long)node_document(node)->generation,
			node_dataplane(node)->text);
		sd_event_set_watchdog(event, true);
		rc = sd_event_loop(event);
		sd_notify(0, "STOPPING=1");
	}
	metrics_http_destroy(http);
	exporter_destroy(exporter);
	stats_file_close(&verbs.stats);
	sd_event_source_disable_unref(verbs.trace_lease);
	server_destroy(server);
	return rc;
}

static int run_dir_make(const struct config_node *config)
{
	if (mkdir(config->run_dir, RUN_MODE) == 0 || errno == EEXIST)
		return 0;
	fprintf(stderr, "<3>cannot make %s: %s\n", config->run_dir, strerror(errno));
	return -errno;
}

// The fleet's shares are taken into use before the dataplane is spoken to for the first time.
static int node_run(sd_event *event, const struct config_node *config, struct node *node,
	const char *pools_file)
{
	char error[NODE_TEXT_BYTES] = "out of memory";
	struct fleet_link *fleet = NULL;
	int rc = fleet_link_open(node, &fleet, error);

	if (rc < 0) {
		fprintf(stderr, "<3>%s\n", error);
		return rc;
	}
	rc = pools_file_apply(node, pools_file);
	if (rc == 0)
		rc = serve(event, config, node, fleet);
	fleet_link_close(fleet);
	return rc;
}

static int run(struct origin *origin, const char *pools_file)
{
	const struct config_node *config = origin->config;
	char error[NODE_TEXT_BYTES];
	struct node *node = NULL;
	sd_event *event = NULL;
	int rc = run_dir_make(config);

	if (rc < 0)
		return EXIT_FAILURE;
	rc = sd_event_default(&event);

	if (rc >= 0)
		rc = signals_attach(event, origin);
	if (rc < 0) {
		fprintf(stderr, "<3>cannot make an event loop: %s\n", strerror(-rc));
		return EXIT_FAILURE;
	}
	rc = node_open(config, &node, error);
	if (rc < 0) {
		fprintf(stderr, "<3>%s\n", error);
		sd_event_unref(event);
		return EXIT_FAILURE;
	}
	rc = node_run(event, config, node, pools_file);
	node_close(node);
	sd_event_unref(event);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct daemon_options options;
	struct config_node *config = NULL;
	const char *pools_file;
	int rc;

	log_open();
	rc = options_parse(argc, argv, &options);
	if (rc == -ECANCELED)
		return EXIT_SUCCESS;
	if (rc < 0)
		return EXIT_USAGE;
	rc = node_file_read(options.node_file, &config);
	if (rc < 0)
		return rc == -EINVAL ? EXIT_INVALID : EXIT_FAILURE;
	pools_file = options.pools_file != NULL ? options.pools_file : config->pools_file;
	if (options.check) {
		rc = pools_file[0] == '\0' ? 0 : pools_file_check(pools_file);
		rc = rc < 0 ? EXIT_INVALID : EXIT_SUCCESS;
	} else {
		struct origin origin = {.path = options.node_file, .config = config};

		rc = run(&origin, pools_file);
	}
	config_node_free(config);
	return rc;
}
