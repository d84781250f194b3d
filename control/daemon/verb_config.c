// SPDX-License-Identifier: Apache-2.0
#include "control/config/writer.h"
#include "control/daemon/verbs.h"

#include <stdlib.h>
#include <string.h>

// Applies the text of a pools file; dry_run only tells what would change.
static void apply(struct server_call *call, const struct node_request *request)
{
	struct node_outcome outcome = {0};
	struct config_report *report;
	const char *text = NULL, *file = "pools.yaml";

	if (server_text(call, "pools", &text) != ANSWER_DONE ||
		server_text_optional(call, "file", &file) != ANSWER_DONE)
		return;
	report = calloc(1, sizeof(*report));
	if (report == NULL) {
		server_fail(call, ANSWER_FAILED, "out of memory");
		return;
	}
	config_report_init(report, file, text, strlen(text));
	node_apply(verbs_of(call)->node, request, report, &outcome);
	verbs_outcome(call, &outcome);
	if (report->finding_count > 0 && call->answer != ANSWER_DONE)
		verbs_findings(call, report);
	config_report_free(report);
	free(report);
}

void verb_apply(struct server_call *call)
{
	struct node_request request = verbs_request(call);

	apply(call, &request);
}

// An apply that commits nothing, and so shows also what an apply would refuse for its effect.
void verb_diff(struct server_call *call)
{
	struct node_request request = verbs_request(call);

	request.dry_run = true;
	request.force = true;
	request.reason = "diff";
	apply(call, &request);
}

// Two rings with one mark have one hash seed: all that a reader learns of it.
static json_t *mark_json(const struct config_ring *ring)
{
	return json_sprintf("%016llx", (unsigned long long)hash_seed_mark(ring->hash_seed));
}

static json_t *cutover_json(const struct document_cutover *cutover)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:o, s:i}", "pool", cutover->pool, "version",
		(int)cutover->ring.version, "points", (int)cutover->ring.points, "balance_ppm",
		(int)cutover->ring.balance, "seed", (int)cutover->ring.seed, "seed_mark",
		mark_json(&cutover->ring), "share_ppm", (int)cutover->share);
}

// The lanes of a pool's balanced rings: with them a reader builds the very rings that this node has.
static json_t *balanced_json(const struct document *document, const char *pool)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; pool != NULL && i < document->balanced_count; i++) {
		const struct document_lanes *entry = &document->balanced[i];
		json_t *tags = json_array(), *lanes = json_array();

		for (uint32_t t = 0; t < entry->tag_count; t++)
			json_array_append_new(tags, json_string(entry->tags[t]));
		for (uint32_t l = 0; l < entry->lane_count; l++)
			json_array_append_new(lanes, json_string(entry->lanes[l]));
		if (strcmp(entry->pool, pool) == 0)
			json_array_append_new(rows,
				json_pack("{s:b, s:O, s:O}", "is_new", entry->is_new != 0, "tags",
					tags, "lanes", lanes));
		json_decref(tags);
		json_decref(lanes);
	}
	return rows;
}

// The configuration as text that `apply` takes, and the cutover and lanes of one pool.
void verb_config_export(struct server_call *call)
{
	const struct document *document = node_document(verbs_of(call)->node);
	const struct document_cutover *cutover = NULL;
	const struct config_pool *found = NULL;
	const char *pool = NULL;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	if (server_text_optional(call, "pool", &pool) != ANSWER_DONE)
		return;
	if (pool != NULL) {
		cutover = document_cutover_find(document, pool);
		found = config_pool_find(document->pools, pool);
	}
	out = open_memstream(&text, &bytes);
	if (out == NULL || config_pools_write(document->pools, CONFIG_YAML, false, out) != 0) {
		server_fail(call, ANSWER_FAILED, "the configuration could not be written");
		if (out != NULL)
			fclose(out);
		free(text);
		return;
	}
	fclose(out);
	call->result = json_pack("{s:I, s:s, s:o, s:o, s:o}", "generation",
		(json_int_t)document->generation, "pools", text, "cutover",
		cutover ? cutover_json(cutover) : json_null(), "seed_mark",
		found ? mark_json(&found->ring) : json_null(), "balanced",
		balanced_json(document, pool));
	free(text);
}
