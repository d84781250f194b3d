// SPDX-License-Identifier: Apache-2.0
// The changes that operators ask for.
#include "control/config/arena.h"
#include "control/config/edit.h"
#include "control/config/reader.h"
#include "control/config/tables.h"
#include "control/daemon/node_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static enum node_code unchanged(struct node_outcome *outcome)
{
	return node_say(outcome, NODE_OK, "nothing to do: it is so already");
}

static bool ring_equal(const struct config_ring *a, const struct config_ring *b)
{
	return a->version == b->version && a->points == b->points && a->balance == b->balance &&
		a->seed == b->seed && memcmp(a->hash_seed, b->hash_seed, sizeof(a->hash_seed)) == 0;
}

static bool only_seed_differs(const struct config_ring *a, const struct config_ring *b)
{
	struct config_ring same = *a;

	memcpy(same.hash_seed, b->hash_seed, sizeof(same.hash_seed));
	return ring_equal(&same, b);
}

static enum node_code ring_refuse(struct node_outcome *outcome, const struct config_pool *before,
	const struct config_pool *after)
{
	const struct config_ring *from = &before->ring, *to = &after->ring;

	if (only_seed_differs(from, to))
		return node_say(outcome, NODE_REFUSED,
			"pool \"%s\": another hash_seed for its ring would move most flows at once; "
			"`ringway cutover plan` of a file with `to: {hash_seed: ...}` moves them in steps",
			before->name);
	return node_say(outcome, NODE_REFUSED,
		"pool \"%s\": another ring (%s, %u points -> %s, %u points) would move most flows at "
		"once; `ringway cutover set %s --to %s` moves them in steps",
		before->name, config_ring_version_name(from->version), from->points,
		config_ring_version_name(to->version), to->points, before->name,
		config_ring_version_name(to->version));
}

// A cutover holds on to its pool until it has ended, and another ring is what cutovers are for: put in at once it
// would move most keys of the pool.
static enum node_code rings_keep(const struct node *node, const struct node_change *change)
{
	const struct config_pools *now = node->now.document->pools;

	for (uint32_t i = 0; i < now->pool_count; i++) {
		const struct config_pool *before = &now->pools[i];
		const struct config_pool *after =
			config_pool_find(change->next->pools, before->name);
		bool moving = document_cutover_find(change->next, before->name) != NULL;

		if (moving && (after == NULL || !ring_equal(&before->ring, &after->ring)))
			return node_say(change->outcome, NODE_REFUSED,
				"pool \"%s\" is in a cutover: retire it, or roll back and discard "
				"it, before its ring changes or it goes",
				before->name);
		if (after != NULL && before->backend_count > 0 &&
			!ring_equal(&before->ring, &after->ring) && !change->request->force)
			return ring_refuse(change->outcome, before, after);
	}
	return NODE_OK;
}

static const uint8_t no_seed[16];

// Texts for people leave secrets out, so a file without them means those that are in use: whoever applies what he
// exported, with force or without, moves nothing.
static void secrets_keep(const struct config_pools *now, struct config_pools *next)
{
	if (memcmp(next->hash_seed, no_seed, sizeof(no_seed)) == 0)
		memcpy(next->hash_seed, now->hash_seed, sizeof(no_seed));
	for (uint32_t i = 0; i < next->pool_count; i++) {
		struct config_ring *ring = &next->pools[i].ring;
		const struct config_pool *before = config_pool_find(now, next->pools[i].name);

		if (before != NULL && memcmp(ring->hash_seed, no_seed, sizeof(no_seed)) == 0)
			memcpy(ring->hash_seed, before->ring.hash_seed, sizeof(no_seed));
	}
}

// Another seed for the fleet would move every flow of every ring that has none of its own.
static enum node_code seed_keep(const struct node *node, struct node_change *change)
{
	const uint8_t *wanted = change->next->pools->hash_seed;
	struct document *next = change->next;
	bool differs = memcmp(wanted, next->hash_seed, sizeof(next->hash_seed)) != 0;

	if (memcmp(wanted, no_seed, sizeof(no_seed)) == 0 || !differs)
		return NODE_OK;
	if (node->now.document->applied_generation != 0 && !change->request->force)
		return node_say(change->outcome, NODE_REFUSED,
			"another hash_seed would empty the flow tables and send new flows somewhere "
			"else at once on every ring that has none of its own; cutovers with `to: "
			"{hash_seed: ...}` give rings their own, pool by pool");
	memcpy(next->hash_seed, wanted, sizeof(next->hash_seed));
	return NODE_OK;
}

// Puts a configuration into the change and commits what differs.
static enum node_code config_commit(
	struct node *node, struct node_change *change, const struct config_pools *pools)
{
	struct node_outcome *outcome = change->outcome;
	enum node_code code;

	outcome->diff = config_pools_diff(node->now.document->pools, pools);
	if (outcome->diff == NULL || document_config_set(change->next, pools) < 0) {
		node_change_end(change);
		return node_say(outcome, NODE_FAILED, "out of memory");
	}
	code = rings_keep(node, change);
	if (code == NODE_OK)
		code = seed_keep(node, change);
	if (code != NODE_OK) {
		node_change_end(change);
		return code;
	}
	if (outcome->diff->change_count == 0 && node->now.document->applied_generation != 0) {
		node_change_end(change);
		return unchanged(outcome);
	}
	return node_change_commit(node, change);
}

// The configuration of the last whole file, NULL when it is not kept any more.
static struct document *applied_read(struct node *node)
{
	uint64_t applied = node->now.document->applied_generation, generation;
	struct document *document = NULL;
	struct config_report report;
	size_t length;
	char *text;

	if (applied == 0 || applied == node->now.document->generation ||
		store_read(node->store, applied, &text, &length, &generation) < 0)
		return NULL;
	config_report_init(&report, "document", text, length);
	if (document_read(&report, &document) < 0)
		document = NULL;
	config_report_free(&report);
	free(text);
	return document;
}

static bool path_in(const struct config_diff *diff, const char *path)
{
	for (uint32_t i = 0; i < diff->change_count; i++) {
		if (strcmp(diff->changes[i].path, path) == 0)
			return true;
	}
	return false;
}

// Three ways meet in an apply: the file before, what verbs changed since, and the file now. What the verbs changed and
// the file now changes again is said, since somebody may have drained a backend for a reason.
static void undone_say(
	struct node *node, const struct config_pools *pools, char ret[NODE_TEXT_BYTES])
{
	struct document *applied = applied_read(node);
	struct config_diff *since = NULL, *now = NULL;
	uint32_t undone = 0;
	const char *first = NULL;

	ret[0] = '\0';
	if (applied == NULL)
		return;
	since = config_pools_diff(applied->pools, node->now.document->pools);
	now = config_pools_diff(node->now.document->pools, pools);
	for (uint32_t i = 0; since != NULL && now != NULL && i < now->change_count; i++) {
		if (!path_in(since, now->changes[i].path))
			continue;
		first = undone++ == 0 ? now->changes[i].path : first;
	}
	if (undone > 0)
		snprintf(ret, NODE_TEXT_BYTES,
			"; this undoes %u change%s made since the last apply (%.200s%s)", undone,
			undone == 1 ? "" : "s", first, undone == 1 ? "" : ", ...");
	config_diff_free(since);
	config_diff_free(now);
	document_free(applied);
}

enum node_code node_apply(struct node *node, const struct node_request *request,
	struct config_report *report, struct node_outcome *outcome)
{
	struct config_pools *pools = NULL;
	struct node_change change;
	char undone[NODE_TEXT_BYTES];
	enum node_code code = node_change_begin(node, request, outcome, &change);
	int rc;

	if (code != NODE_OK)
		return code;
	rc = config_pools_read(report, &pools);
	if (rc < 0) {
		node_change_end(&change);
		return rc == -EINVAL
			? node_say(outcome, NODE_INVALID,
				  "%s has %u error%s; generation %llu stays in use", report->file,
				  report->error_count, report->error_count == 1 ? "" : "s",
				  (unsigned long long)outcome->generation)
			: node_say(outcome, NODE_FAILED, "out of memory");
	}
	secrets_keep(node->now.document->pools, pools);
	change.next->applied_generation = change.next->generation + 1;
	undone_say(node, pools, undone);
	code = config_commit(node, &change, pools);
	if (code == NODE_OK && outcome->changed)
		snprintf(outcome->text + strlen(outcome->text),
			sizeof(outcome->text) - strlen(outcome->text), "%s", undone);
	config_pools_free(pools);
	return code;
}

// An edited model passes through the same reader as a file, so no verb can make what a file could not.
static enum node_code edited_check(
	struct config_pools *pools, struct config_pools **ret, struct node_outcome *outcome)
{
	struct schema_style style = {.json = true, .full = true, .secrets = true};
	struct config_report report;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	enum node_code code = NODE_OK;
	int rc;

	if (out == NULL)
		return node_say(outcome, NODE_FAILED, "out of memory");
	rc = schema_write(&config_pools_table, pools, style, out);
	if (fclose(out) != 0 || rc < 0) {
		free(text);
		return node_say(outcome, NODE_FAILED, "out of memory");
	}
	config_report_init(&report, "change", text, length);
	rc = config_pools_read(&report, ret);
	if (rc == -EINVAL) {
		const struct config_finding *f = &report.findings[0];

		code = node_say(outcome, NODE_INVALID, "%s: %s%s%s", f->path, f->text,
			f->hint != NULL ? "; " : "", f->hint != NULL ? f->hint : "");
	} else if (rc < 0) {
		code = node_say(outcome, NODE_FAILED, "out of memory");
	}
	config_report_free(&report);
	free(text);
	return code;
}

// An edit of the configuration: begun with a copy of it, ended by edit_commit().
struct edit {
	struct node_change change;
	struct config_pools *pools;
};

static enum node_code edit_begin(struct node *node, const struct node_request *request,
	struct node_outcome *outcome, struct edit *ret)
{
	enum node_code code = node_change_begin(node, request, outcome, &ret->change);

	if (code != NODE_OK)
		return code;
	ret->pools = config_pools_copy(node->now.document->pools);
	if (ret->pools == NULL) {
		node_change_end(&ret->change);
		return node_say(outcome, NODE_FAILED, "out of memory");
	}
	return NODE_OK;
}

static enum node_code edit_commit(struct node *node, struct edit *edit)
{
	struct config_pools *checked = NULL;
	enum node_code code = edited_check(edit->pools, &checked, edit->change.outcome);

	if (code == NODE_OK)
		code = config_commit(node, &edit->change, checked);
	else
		node_change_end(&edit->change);
	config_pools_free(checked);
	config_pools_free(edit->pools);
	return code;
}

static enum node_code edit_fail(struct edit *edit, enum node_code code)
{
	node_change_end(&edit->change);
	config_pools_free(edit->pools);
	return code;
}

enum node_code node_backend_add(struct node *node, const struct node_request *request,
	const char *pool, const struct config_backend *backend, struct node_outcome *outcome)
{
	struct edit edit;
	enum node_code code = edit_begin(node, request, outcome, &edit);
	int rc;

	if (code != NODE_OK)
		return code;
	rc = config_backend_add(edit.pools, pool, backend);
	if (rc == -ENOENT)
		return edit_fail(
			&edit, node_say(outcome, NODE_NOT_FOUND, "there is no pool \"%s\"", pool));
	if (rc == -EEXIST)
		return edit_fail(&edit,
			node_say(outcome, NODE_CONFLICT, "pool \"%s\" has a backend \"%s\" already",
				pool, backend->name));
	if (rc < 0)
		return edit_fail(&edit, node_say(outcome, NODE_FAILED, "out of memory"));
	return edit_commit(node, &edit);
}

static enum node_code not_found(
	struct node_outcome *outcome, const char *missing, const char *pool, const char *backend)
{
	if (strcmp(missing, "pool") == 0)
		return node_say(outcome, NODE_NOT_FOUND, "there is no pool \"%s\"", pool);
	return node_say(
		outcome, NODE_NOT_FOUND, "pool \"%s\" has no backend \"%s\"", pool, backend);
}

enum node_code node_backend_set(struct node *node, const struct node_request *request,
	const char *pool, const struct config_backend *backend, uint32_t mask,
	struct node_outcome *outcome)
{
	const char *missing = "";
	struct edit edit;
	enum node_code code = edit_begin(node, request, outcome, &edit);
	int rc;

	if (code != NODE_OK)
		return code;
	rc = config_backend_edit(edit.pools, pool, mask, backend, &missing);
	if (rc == -ENOENT)
		return edit_fail(&edit, not_found(outcome, missing, pool, backend->name));
	if (rc < 0)
		return edit_fail(&edit, node_say(outcome, NODE_FAILED, "out of memory"));
	return edit_commit(node, &edit);
}

enum node_code node_backend_remove(struct node *node, const struct node_request *request,
	const char *pool, const char *backend, struct node_outcome *outcome)
{
	const char *missing = "";
	struct edit edit;
	enum node_code code = edit_begin(node, request, outcome, &edit);

	if (code != NODE_OK)
		return code;
	if (config_backend_remove(edit.pools, pool, backend, &missing) < 0)
		return edit_fail(&edit, not_found(outcome, missing, pool, backend));
	return edit_commit(node, &edit);
}

// Never 0, and not to be guessed from outside: who knows it can aim flows at one side of the gate.
static int salt_make(uint32_t *ret)
{
	do {
		if (getrandom(ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
			return -errno;
	} while (*ret == 0);
	return 0;
}

static enum node_code cutover_start(struct node_change *change, const struct node_cutover *wanted,
	struct document_cutover **ret)
{
	const struct config_pool *pool = config_pool_find(change->next->pools, wanted->pool);
	struct document_cutover *cutover;

	if (!wanted->has_ring)
		return node_say(change->outcome, NODE_CONFLICT,
			"pool \"%s\" is in no cutover: say to which ring (--to v2 --points 16)",
			wanted->pool);
	if (ring_equal(&pool->ring, &wanted->ring) && wanted->backend_count == 0)
		return node_say(change->outcome, NODE_CONFLICT, "pool \"%s\" has this ring already",
			wanted->pool);
	cutover = document_cutover_add(change->next, wanted->pool);
	if (cutover == NULL || salt_make(&cutover->salt) < 0 ||
		(wanted->backend_count != 0 &&
			document_cutover_members_set(change->next, cutover, wanted->backends,
				wanted->backend_count) < 0))
		return node_say(change->outcome, NODE_FAILED, "out of memory");
	cutover->ring = wanted->ring;
	*ret = cutover;
	return NODE_OK;
}

static void percent(uint32_t share, char ret[static 16])
{
	snprintf(ret, 16, "%.4f", (double)share / 10000);
	for (size_t end = strlen(ret); ret[end - 1] == '0' || ret[end - 1] == '.'; end--) {
		bool point = ret[end - 1] == '.';

		ret[end - 1] = '\0';
		if (point)
			break;
	}
}

static enum node_code share_set(struct node *node, struct node_change *change,
	struct document_cutover *cutover, uint32_t share, bool moves_established)
{
	const struct document_cutover *before =
		document_cutover_find(node->now.document, cutover->pool);
	char from[16], to[16];

	percent(before != NULL ? before->share : 0, from);
	percent(share, to);
	if (before != NULL && before->share == share &&
		(before->moves_established != 0) == moves_established) {
		node_change_end(change);
		return unchanged(change->outcome);
	}
	cutover->share = share;
	cutover->moves_established = moves_established;
	node_say(change->outcome, NODE_OK,
		"pool \"%s\": %s%% -> %s%% of new flows on the %s ring%s", cutover->pool, from, to,
		config_ring_version_name(cutover->ring.version),
		moves_established ? "; its established flows come back" : "");
	return node_change_commit(node, change);
}

enum node_code node_cutover_set(struct node *node, const struct node_request *request,
	const struct node_cutover *wanted, struct node_outcome *outcome)
{
	struct document_cutover *cutover;
	struct node_cutover complete = *wanted;
	struct node_change change;
	enum node_code code = node_change_begin(node, request, outcome, &change);

	if (code != NODE_OK)
		return code;
	if (config_pool_find(change.next->pools, wanted->pool) == NULL)
		code = node_say(outcome, NODE_NOT_FOUND, "there is no pool \"%s\"", wanted->pool);
	if (wanted->has_share && wanted->share > GATE_SHARE_ALL)
		code = node_say(outcome, NODE_USAGE, "a share is at most 100%%");
	config_ring_complete(&complete.ring);
	cutover = document_cutover_find(change.next, wanted->pool);
	if (code == NODE_OK && cutover != NULL && wanted->has_ring &&
		!ring_equal(&cutover->ring, &complete.ring))
		code = node_say(outcome, NODE_CONFLICT,
			"pool \"%s\" is in a cutover to another ring (%s, %u points): discard or "
			"retire it first",
			wanted->pool, config_ring_version_name(cutover->ring.version),
			cutover->ring.points);
	change.only_shares = cutover != NULL;
	if (code == NODE_OK && cutover == NULL)
		code = cutover_start(&change, &complete, &cutover);
	if (code != NODE_OK) {
		node_change_end(&change);
		return code;
	}
	return wanted->has_share ? share_set(node, &change, cutover, wanted->share, false)
				 : share_set(node, &change, cutover, cutover->share,
					   cutover->moves_established != 0);
}

// Begins a change of a cutover that exists.
static enum node_code cutover_begin(struct node *node, const struct node_request *request,
	const char *pool, struct node_change *change, struct node_outcome *outcome)
{
	enum node_code code = node_change_begin(node, request, outcome, change);

	if (code != NODE_OK)
		return code;
	if (document_cutover_find(change->next, pool) != NULL)
		return NODE_OK;
	node_change_end(change);
	if (config_pool_find(node->now.document->pools, pool) == NULL)
		return node_say(outcome, NODE_NOT_FOUND, "there is no pool \"%s\"", pool);
	return node_say(outcome, NODE_NOT_FOUND, "pool \"%s\" is in no cutover", pool);
}

enum node_code node_cutover_rollback(struct node *node, const struct node_request *request,
	const char *pool, bool move_established, struct node_outcome *outcome)
{
	struct node_request any = *request;
	struct document_cutover *cutover;
	struct node_change change;
	enum node_code code;

	// The way back is open whatever else has changed meanwhile.
	any.generation = 0;
	code = cutover_begin(node, &any, pool, &change, outcome);
	if (code != NODE_OK)
		return code;
	change.only_shares = true;
	cutover = document_cutover_find(change.next, pool);
	// Said without it afterwards, it stays as it was.
	return share_set(node, &change, cutover, 0,
		move_established || (cutover->share == 0 && cutover->moves_established != 0));
}

enum node_code node_cutover_retire(struct node *node, const struct node_request *request,
	const char *pool_name, struct node_outcome *outcome)
{
	struct document_cutover *cutover;
	struct config_pool *pool;
	struct node_change change;
	enum node_code code = cutover_begin(node, request, pool_name, &change, outcome);

	if (code != NODE_OK)
		return code;
	cutover = document_cutover_find(change.next, pool_name);
	pool = config_pool_find(change.next->pools, pool_name);
	if (document_cutover_share(cutover) != GATE_SHARE_ALL) {
		node_change_end(&change);
		return node_say(outcome, NODE_REFUSED,
			"pool \"%s\" is not at 100%%: the old ring still gets flows", pool_name);
	}
	pool->ring = cutover->ring;
	if (cutover->backend_count > 0) {
		pool->backends = cutover->backends;
		pool->backend_count = cutover->backend_count;
	}
	document_cutover_remove(change.next, cutover);
	outcome->diff = config_pools_diff(node->now.document->pools, change.next->pools);
	node_say(outcome, NODE_OK, "pool \"%s\": the %s ring is the only one now", pool_name,
		config_ring_version_name(pool->ring.version));
	return node_change_commit(node, &change);
}

enum node_code node_cutover_discard(struct node *node, const struct node_request *request,
	const char *pool, struct node_outcome *outcome)
{
	struct document_cutover *cutover;
	struct node_change change;
	enum node_code code = cutover_begin(node, request, pool, &change, outcome);

	if (code != NODE_OK)
		return code;
	cutover = document_cutover_find(change.next, pool);
	if (document_cutover_share(cutover) != 0) {
		node_change_end(&change);
		return node_say(
			outcome, NODE_REFUSED, "pool \"%s\" is not at 0%%: roll back first", pool);
	}
	document_cutover_remove(change.next, cutover);
	node_say(outcome, NODE_OK, "pool \"%s\": the new ring is gone", pool);
	return node_change_commit(node, &change);
}
