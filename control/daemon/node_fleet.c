// SPDX-License-Identifier: Apache-2.0
// What a fleet needs of the node: its own shares, and rings that are built before anything is committed.
#include "control/config/reader.h"
#include "control/daemon/node_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SENT_NAME  "sent"
#define PATH_BYTES 4096
#define PUSH_MS    1000

void node_shares_apply(const struct node *node, struct document *document)
{
	for (uint32_t i = 0; i < document->cutover_count; i++) {
		struct document_cutover *cutover = &document->cutovers[i];

		cutover->has_node_share = node->takes_none;
		cutover->node_share = 0;
		cutover->node_moves_established = false;
		for (uint32_t s = 0; s < node->share_count; s++) {
			if (strcmp(node->shares[s].pool, cutover->pool) != 0)
				continue;
			cutover->has_node_share = true;
			cutover->node_share = node->shares[s].share;
			cutover->node_moves_established = node->shares[s].moves_established;
		}
	}
}

int node_shares_set(
	struct node *node, const struct node_share *shares, uint32_t count, bool takes_none)
{
	bool same = count == node->share_count && takes_none == node->takes_none;

	if (count > NODE_SHARES_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < count && same; i++)
		same = node->shares[i].share == shares[i].share &&
			node->shares[i].moves_established == shares[i].moves_established &&
			strcmp(node->shares[i].pool, shares[i].pool) == 0;
	if (same)
		return 0;
	memcpy(node->shares, shares, count * sizeof(*shares));
	node->share_count = count;
	node->takes_none = takes_none;
	node_shares_apply(node, node->now.document);
	// Also while no dataplane answers: what is explained then is what it will be told.
	node_thresholds_set(&node->now);
	return node_push(node, PUSH_MS);
}

// --- what was sent ---------------------------------------------------------------------------------

static void sent_path(const struct node *node, char ret[static PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%s/" SENT_NAME, node->config->run_dir);
}

void node_sent_load(struct node *node)
{
	char path[PATH_BYTES];
	unsigned long long checksum;
	FILE *file;

	sent_path(node, path);
	file = fopen(path, "re");
	if (file == NULL)
		return;
	if (fscanf(file, "%llx", &checksum) == 1)
		node->sent_checksum = checksum;
	fclose(file);
}

// Lost, or of a dataplane that has gone since: then the image is sent once more under a higher number, as without it.
void node_sent_save(const struct node *node)
{
	char path[PATH_BYTES];
	FILE *file;

	sent_path(node, path);
	file = fopen(path, "we");
	if (file == NULL)
		return;
	fprintf(file, "%016llx\n", (unsigned long long)node->sent_checksum);
	fclose(file);
}

// --- the document, for a start without the store ---------------------------------------------------

#define CACHE_NAME "document.json"

static void cache_path(const struct node *node, const char *suffix, char ret[static PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%s/" CACHE_NAME "%s", node->config->run_dir, suffix);
}

void node_cache_write(const struct node *node, const char *text, size_t length)
{
	char path[PATH_BYTES], aside[PATH_BYTES];
	FILE *file;

	if (node->config->store.type == CONFIG_STORE_FILE)
		return;
	cache_path(node, "", path);
	cache_path(node, ".new", aside);
	file = fopen(aside, "we");
	if (file == NULL)
		return;
	bool good = fwrite(text, 1, length, file) == length;

	good = fflush(file) == 0 && fsync(fileno(file)) == 0 && good;
	if (fclose(file) != 0 || !good || rename(aside, path) != 0)
		fprintf(stderr, "<4>cannot write %s: %s\n", path, strerror(errno));
}

int node_cache_read(const struct node *node, char **ret_text, size_t *ret_length)
{
	char path[PATH_BYTES];

	if (node->config->store.type == CONFIG_STORE_FILE)
		return -ENOENT;
	cache_path(node, "", path);
	return config_file_load(path, ret_text, ret_length);
}

// --- previews --------------------------------------------------------------------------------------

struct node_preview {
	struct node_state state;
};

static enum node_code preview_make(struct node *node, struct document *document,
	struct node_preview **ret, struct node_outcome *outcome)
{
	struct node_preview *preview = calloc(1, sizeof(*preview));
	char error[NODE_TEXT_BYTES] = "out of memory";
	int rc = preview ? document_ids_assign(document, (uint64_t)time(NULL)) : -ENOMEM;

	if (rc < 0) {
		document_free(document);
		free(preview);
		return node_say(outcome, NODE_REFUSED, "%s", error);
	}
	rc = node_state_make(node, document, &node->now, &preview->state, error);
	if (rc < 0) {
		free(preview);
		return node_say(outcome, rc == -EINVAL ? NODE_INVALID : NODE_REFUSED, "%s", error);
	}
	*ret = preview;
	return NODE_OK;
}

enum node_code node_preview(struct node *node, const struct node_cutover *wanted,
	struct node_preview **ret, struct node_outcome *outcome)
{
	struct document *document = document_copy(node->now.document);
	struct document_cutover *cutover;

	if (document == NULL)
		return node_say(outcome, NODE_FAILED, "out of memory");
	cutover = document_cutover_find(document, wanted->pool);
	if (config_pool_find(document->pools, wanted->pool) == NULL) {
		document_free(document);
		return node_say(outcome, NODE_NOT_FOUND, "there is no pool \"%s\"", wanted->pool);
	}
	if (cutover == NULL)
		cutover = document_cutover_add(document, wanted->pool);
	if (cutover == NULL ||
		(wanted->backend_count != 0 &&
			document_cutover_members_set(
				document, cutover, wanted->backends, wanted->backend_count) < 0)) {
		document_free(document);
		return node_say(outcome, NODE_FAILED, "out of memory");
	}
	cutover->ring = wanted->ring;
	config_ring_complete(&cutover->ring);
	cutover->salt = 1;
	return preview_make(node, document, ret, outcome);
}

void node_preview_free(struct node_preview *preview)
{
	if (preview == NULL)
		return;
	node_state_free(&preview->state);
	free(preview);
}

void node_preview_service_rings(const struct node_preview *preview, uint32_t service,
	const struct node_ring **ret_old, const struct node_ring **ret_new)
{
	node_state_service_rings(&preview->state, service, ret_old, ret_new);
}

const struct document *node_preview_document(const struct node_preview *preview)
{
	return preview->state.document;
}
