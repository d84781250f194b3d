// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/node.h"

#include "control/daemon/node_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_US 1000000u
#define REFRESH_TICKS \
	30u // the store's watch is a hint; this often it is read whether or not it hinted
#define TICK_WAIT_MS 1000

// A store that is empty gets its first document: no pools, but the id space and the hash seed for good.
static int first_commit(struct node *node, struct document **ret, char *error)
{
	struct document *document = NULL;
	char *text = NULL;
	size_t length;
	int rc = document_create(&document);

	if (rc == 0) {
		document->generation = 1;
		document->snapshot_generation = 1;
		rc = document_write(document, &text, &length);
	}
	if (rc == 0) {
		rc = store_commit(node->store, text, length, 0);
		if (rc < 0)
			snprintf(error, NODE_TEXT_BYTES, "%s", store_error(node->store));
	} else {
		snprintf(error, NODE_TEXT_BYTES, "cannot make a first document: %s", strerror(-rc));
	}
	free(text);
	if (rc < 0) {
		document_free(document);
		return rc;
	}
	*ret = document;
	return 0;
}

int node_document_parse(
	const char *text, size_t length, const char *what, struct document **ret, char *error)
{
	struct config_report report;
	int rc;

	config_report_init(&report, "document", text, length);
	rc = document_read(&report, ret);
	if (rc == -EINVAL)
		snprintf(error, NODE_TEXT_BYTES, "%s: %s: %s", what, report.findings[0].path,
			report.findings[0].text);
	else if (rc < 0)
		snprintf(error, NODE_TEXT_BYTES, "out of memory");
	config_report_free(&report);
	return rc;
}

// Reads the newest document if it is newer than one that is known (0: none is). *ret: NULL when it is not.
static int document_newer(struct node *node, uint64_t known, struct document **ret, char *error)
{
	struct document *document = NULL;
	uint64_t generation;
	size_t length;
	char *text;
	int rc = store_read(node->store, 0, &text, &length, &generation);

	if (rc < 0) {
		snprintf(error, NODE_TEXT_BYTES, "cannot read the store: %s",
			store_error(node->store));
		return rc;
	}
	// Most looks find what this node has committed itself; a large document takes long to parse.
	if (generation > known)
		rc = node_document_parse(
			text, length, "the store's document is damaged", &document, error);
	if (rc == 0 && document != NULL && document->generation != generation) {
		snprintf(error, NODE_TEXT_BYTES,
			"the store's document %llu says that it is generation %llu",
			(unsigned long long)generation, (unsigned long long)document->generation);
		document_free(document);
		rc = -EINVAL;
	}
	if (rc == 0 && document != NULL)
		node_cache_write(node, text, length);
	free(text);
	if (rc == 0)
		*ret = document;
	return rc;
}

// Reads the newest document at the start; makes the first one when there is none. Never later: a store that is found
// empty then was lost, and what is in use stays.
static int document_load(struct node *node, struct document **ret, char *error)
{
	int rc = document_newer(node, 0, ret, error);

	if (rc != -ENOENT)
		return rc;
	rc = first_commit(node, ret, error);
	// Another node of the fleet was faster: its document is the first.
	return rc == -ESTALE ? document_newer(node, 0, ret, error) : rc;
}

// A node of a fleet whose store cannot be reached starts with what it knew last: frozen, never reset.
static int cache_load(struct node *node, int reason, struct document **ret, char *error)
{
	char because[NODE_TEXT_BYTES];
	char *text = NULL;
	size_t length;

	if (reason == -EINVAL || node_cache_read(node, &text, &length) < 0)
		return reason;
	snprintf(because, sizeof(because), "%s", error);
	int rc = node_document_parse(
		text, length, "the document kept in the run directory is damaged", ret, error);

	free(text);
	node->alone = rc == 0;
	if (rc == 0)
		fprintf(stderr, "<4>%s: starts with generation %llu, as it was known last\n",
			because, (unsigned long long)(*ret)->generation);
	return rc;
}

uint64_t node_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int node_open(const struct config_node *config, struct node **ret, char ret_error[NODE_TEXT_BYTES])
{
	struct node *node = calloc(1, sizeof(*node));
	uint64_t opened_ns = node_now_ns(), read_ns;
	struct document *document;
	int rc;

	if (node == NULL)
		return -ENOMEM;
	node->config = config;
	node->now.image.fd = -1;
	snprintf(node->dataplane.text, NODE_TEXT_BYTES, "not asked yet");
	node_sent_load(node);
	rc = store_open(&config->store, config->node, &node->store, ret_error);
	if (rc == 0)
		rc = document_load(node, &document, ret_error);
	if (rc < 0 && node->store != NULL)
		rc = cache_load(node, rc, &document, ret_error);
	read_ns = node_now_ns();
	if (rc == 0)
		rc = node_state_make(node, document, NULL, &node->now, ret_error);
	if (rc < 0) {
		node_close(node);
		return rc;
	}
	node->startup_ns[DAEMON_READ] = read_ns - opened_ns;
	node->startup_ns[DAEMON_BUILD] = node_now_ns() - read_ns;
	*ret = node;
	return 0;
}

void node_close(struct node *node)
{
	if (node == NULL)
		return;
	sd_event_source_unref(node->timer);
	sd_event_source_unref(node->watch);
	node_state_free(&node->now);
	store_close(node->store);
	free(node);
}

int node_refresh(struct node *node)
{
	uint64_t known = node->now.document->generation;
	char error[NODE_TEXT_BYTES];
	struct document *document = NULL;
	struct node_state next;
	int rc = document_newer(node, known, &document, error);

	if (rc == 0 && document == NULL)
		return 0;
	if (rc == 0)
		rc = node_state_make(node, document, &node->now, &next, error);
	if (rc < 0) {
		fprintf(stderr, "<4>generation %llu stays in use: %s\n", (unsigned long long)known,
			error);
		return rc;
	}
	node_state_free(&node->now);
	node->now = next;
	return 0;
}

static int on_tick(sd_event_source *source, uint64_t time_us, void *context)
{
	struct node *node = context;
	bool read = store_watch_take(node->store);

	if (++node->ticks >= REFRESH_TICKS) {
		node->ticks = 0;
		read = true;
	}
	if (read)
		node_refresh(node);
	node_push(node, TICK_WAIT_MS);
	sd_event_source_set_time(source, time_us + TICK_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_watch(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct node *node = context;
	uint64_t before = node->now.document->generation;

	(void)source;
	(void)fd;
	(void)events;
	if (!store_watch_take(node->store))
		return 0;
	node_refresh(node);
	if (node->now.document->generation != before)
		node_push(node, TICK_WAIT_MS);
	return 0;
}

int node_attach(struct node *node, struct sd_event *event)
{
	int fd = store_watch(node->store);
	int rc = sd_event_add_time_relative(
		event, &node->timer, CLOCK_MONOTONIC, TICK_US, 0, on_tick, node);

	node->ticks = REFRESH_TICKS; // the watch tells of nothing that came before it
	if (rc >= 0 && fd >= 0)
		rc = sd_event_add_io(event, &node->watch, fd, EPOLLIN, on_watch, node);
	return rc < 0 ? rc : 0;
}

bool node_started_alone(const struct node *node)
{
	return node->alone;
}

const struct config_node *node_config(const struct node *node)
{
	return node->config;
}

const struct document *node_document(const struct node *node)
{
	return node->now.document;
}

const struct snapshot *node_snapshot(const struct node *node)
{
	return node->now.image.snapshot;
}

void node_service_rings(const struct node *node, uint32_t service, const struct node_ring **ret_old,
	const struct node_ring **ret_new)
{
	node_state_service_rings(&node->now, service, ret_old, ret_new);
}

uint32_t node_rings(const struct node *node, const struct node_ring **ret)
{
	*ret = node->now.views;
	return node->now.ring_count;
}

const struct node_dataplane *node_dataplane(const struct node *node)
{
	return &node->dataplane;
}

const uint64_t *node_startup(const struct node *node)
{
	return node->startup_ns;
}

struct store *node_store(struct node *node)
{
	return node->store;
}
