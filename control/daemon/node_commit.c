// SPDX-License-Identifier: Apache-2.0
// The way of a change: expected generation, plan, build, commit, use, audit, send.
#include "control/config/arena.h"
#include "control/daemon/node_private.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum node_code node_say(struct node_outcome *outcome, enum node_code code, const char *format, ...)
{
	va_list args;

	outcome->code = code;
	va_start(args, format);
	vsnprintf(outcome->text, sizeof(outcome->text), format, args);
	va_end(args);
	return code;
}

void node_outcome_free(struct node_outcome *outcome)
{
	config_diff_free(outcome->diff);
	outcome->diff = NULL;
	free(outcome->moves);
	outcome->moves = NULL;
}

enum node_code node_change_begin(struct node *node, const struct node_request *request,
	struct node_outcome *outcome, struct node_change *ret)
{
	const struct document *now = node->now.document;

	memset(outcome, 0, sizeof(*outcome));
	outcome->generation = now->generation;
	outcome->snapshot = now->snapshot_generation;
	if (request->generation != 0 && request->generation != now->generation)
		return node_say(outcome, NODE_CONFLICT,
			"generation %llu was expected, it is %llu now: look again at what changed",
			(unsigned long long)request->generation,
			(unsigned long long)now->generation);
	if (request->force && (request->reason == NULL || request->reason[0] == '\0'))
		return node_say(outcome, NODE_USAGE, "--force needs a --reason");
	*ret = (struct node_change){.request = request, .outcome = outcome};
	ret->next = document_copy(now);
	if (ret->next == NULL)
		return node_say(outcome, NODE_FAILED, "out of memory");
	node_shares_apply(node, ret->next);
	return NODE_OK;
}

void node_change_end(struct node_change *change)
{
	document_free(change->next);
	change->next = NULL;
}

static uint64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec;
}

// A new snapshot gets a generation of its own; a change of shares only moves gates in the one in use.
static void generations_set(const struct node *node, struct node_change *change)
{
	const struct document *now = node->now.document;
	struct document *next = change->next;

	next->generation = now->generation + 1;
	if (change->only_shares)
		return;
	if (next->snapshot_generation <= now->snapshot_generation)
		next->snapshot_generation = now->snapshot_generation + 1;
	if (next->snapshot_generation < next->generation)
		next->snapshot_generation = next->generation;
	for (uint32_t i = 0; i < next->cutover_count; i++)
		next->cutovers[i].sent_share = next->cutovers[i].share;
}

static enum node_code code_of(int error)
{
	switch (error) {
	case -EINVAL:
		return NODE_INVALID;
	case -E2BIG:
	case -ENOSPC:
		return NODE_REFUSED;
	default:
		return NODE_FAILED;
	}
}

// Makes the state that the change leads to, from the change's document.
static enum node_code state_prepare(
	const struct node *node, struct node_change *change, struct node_state *ret)
{
	struct node_outcome *outcome = change->outcome;
	struct document *next = change->next;
	char error[NODE_TEXT_BYTES];
	int rc = document_ids_assign(next, now_s());

	if (rc < 0)
		return node_say(outcome, code_of(rc), "%s",
			rc == -ENOSPC ? "all ids are in use or rest for two hours"
				      : "out of memory");
	generations_set(node, change);
	change->next = NULL;
	rc = node_state_make(node, next, &node->now, ret, error);
	return rc < 0 ? node_say(outcome, code_of(rc), "%s", error) : NODE_OK;
}

// Makes the text to be committed, and reads it back: what a node could not start from is never written down.
static enum node_code text_make(const struct document *document, char **ret_text,
	size_t *ret_length, struct node_outcome *outcome)
{
	char error[NODE_TEXT_BYTES] = "out of memory";
	struct document *again = NULL;
	int rc = document_write(document, ret_text, ret_length);

	if (rc == 0)
		rc = node_document_parse(*ret_text, *ret_length,
			"this would leave a document that no node can read", &again, error);
	document_free(again);
	return rc < 0 ? node_say(outcome, code_of(rc), "%s", error) : NODE_OK;
}

static enum node_code text_commit(
	struct node *node, const char *text, size_t length, struct node_outcome *outcome)
{
	int rc = store_commit(node->store, text, length, node->now.document->generation);

	if (rc == 0)
		node_cache_write(node, text, length);
	if (rc == -ESTALE) {
		node_refresh(node);
		outcome->generation = node->now.document->generation;
		return node_say(outcome, NODE_CONFLICT,
			"somebody else has committed generation %llu",
			(unsigned long long)outcome->generation);
	}
	if (rc < 0)
		return node_say(
			outcome, NODE_FAILED, "cannot commit: %s", store_error(node->store));
	return NODE_OK;
}

static void state_use(struct node *node, struct node_state *state)
{
	node_state_free(&node->now);
	node->now = *state;
}

// Sends, and says what became of the change. Sending may itself commit once more (node_push()), so the document is
// looked at afterwards.
static void outcome_finish(struct node *node, struct node_outcome *outcome, uint32_t built)
{
	const struct document *now;

	outcome->changed = true;
	outcome->in_use = node_push(node, NODE_DATAPLANE_WAIT_MS) == 0;
	now = node->now.document;
	outcome->generation = now->generation;
	outcome->snapshot = now->snapshot_generation;
	snprintf(outcome->dataplane, sizeof(outcome->dataplane), "%s", node->dataplane.text);
	if (outcome->text[0] == '\0')
		node_say(outcome, NODE_OK, "generation %llu: %u change%s, %u of %u rings built",
			(unsigned long long)now->generation,
			outcome->diff != NULL ? outcome->diff->change_count : 1,
			outcome->diff != NULL && outcome->diff->change_count != 1 ? "s" : "", built,
			node->now.ring_count);
}

// The text of a state that was prepared; commits it unless this is a dry run.
static enum node_code state_commit(
	struct node *node, const struct node_change *change, const struct node_state *next)
{
	struct node_outcome *outcome = change->outcome;
	char *text = NULL;
	size_t length;
	enum node_code code = text_make(next->document, &text, &length, outcome);

	if (code == NODE_OK && !change->request->dry_run)
		code = text_commit(node, text, length, outcome);
	free(text);
	return code;
}

static enum node_code change_commit(struct node *node, struct node_change *change)
{
	struct node_outcome *outcome = change->outcome;
	uint64_t before = node->now.document->generation;
	struct node_state next;
	enum node_code code = state_prepare(node, change, &next);
	uint32_t built;

	if (code != NODE_OK)
		return code;
	// A change of shares moves what the shares say; the rings are as they were.
	if (!change->only_shares &&
		node_moves(&node->now, &next, &outcome->moves, &outcome->move_count) < 0) {
		node_state_free(&next);
		return node_say(outcome, NODE_FAILED, "out of memory");
	}
	code = state_commit(node, change, &next);
	if (code != NODE_OK || change->request->dry_run) {
		node_state_free(&next);
		outcome->changed = code == NODE_OK;
		return code != NODE_OK || outcome->text[0] != '\0'
			? code
			: node_say(outcome, NODE_OK, "nothing was changed (dry run)");
	}
	built = next.rings->built;
	state_use(node, &next);
	outcome_finish(node, outcome, built);
	node_audit(node, change->request, outcome, before);
	return NODE_OK;
}

enum node_code node_change_commit(struct node *node, struct node_change *change)
{
	enum node_code code = change_commit(node, change);

	node_change_end(change);
	return code;
}

#define AUDIT_CHANGES_MAX 64u

static json_t *changes_json(const struct config_diff *diff)
{
	json_t *list = json_array();

	for (uint32_t i = 0; diff != NULL && i < diff->change_count && i < AUDIT_CHANGES_MAX; i++) {
		const struct config_change *change = &diff->changes[i];
		json_t *item = json_pack("{ss ss* ss*}", "path", change->path, "before",
			change->before, "after", change->after);

		json_array_append_new(list, item);
	}
	return list;
}

// What was predicted, beside which later counters show what came.
static json_t *moves_json(const struct node_outcome *outcome)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < outcome->move_count && i < AUDIT_CHANGES_MAX; i++)
		json_array_append_new(list,
			json_pack("{ss sf}", "ring", outcome->moves[i].ring, "moved_ratio",
				outcome->moves[i].moved));
	return list;
}

void node_audit(struct node *node, const struct node_request *request,
	const struct node_outcome *outcome, uint64_t before)
{
	uint32_t changes = outcome->diff != NULL ? outcome->diff->change_count : 0;
	time_t seconds = (time_t)now_s();
	struct tm utc;
	char when[32];
	json_t *entry;
	char *text;

	gmtime_r(&seconds, &utc);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	entry = json_pack("{ss ss ss ss si si si sI sI si so so ss sb}", "time", when, "node",
		node->config->node, "verb", request->verb, "reason",
		request->reason != NULL ? request->reason : "", "uid", (int)request->uid, "gid",
		(int)request->gid, "pid", (int)request->pid, "before", (json_int_t)before, "after",
		(json_int_t)outcome->generation, "change_count", (int)changes, "changes",
		changes_json(outcome->diff), "moves", moves_json(outcome), "result", outcome->text,
		"in_use", outcome->in_use);
	text = entry == NULL ? NULL : json_dumps(entry, JSON_COMPACT);
	if (text == NULL || store_audit_append(node->store, text) < 0)
		fprintf(stderr, "<3>audit: %s was not written down: %s\n", request->verb,
			text == NULL ? "out of memory" : store_error(node->store));
	free(text);
	json_decref(entry);
}
