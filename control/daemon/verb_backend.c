// SPDX-License-Identifier: Apache-2.0
#include "control/config/edit.h"
#include "control/daemon/verbs.h"

#include <stdlib.h>
#include <string.h>

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Reads "tags" into an array of the caller's that points into the request. Models keep them sorted.
static enum answer read_tags(struct server_call *call, const char **tags, uint32_t *ret_count)
{
	const json_t *list = json_object_get(call->request->args, "tags"), *item;
	size_t i;

	*ret_count = 0;
	if (list == NULL)
		return ANSWER_DONE;
	if (!json_is_array(list) || json_array_size(list) > CONFIG_TAGS_MAX)
		return server_fail(call, ANSWER_USAGE,
			"\"tags\" must be a list of at most %u texts", CONFIG_TAGS_MAX);
	json_array_foreach (list, i, item) {
		if (!json_is_string(item) || json_string_length(item) == 0)
			return server_fail(call, ANSWER_USAGE, "\"tags\" must be a list of texts");
		tags[(*ret_count)++] = json_string_value(item);
	}
	qsort(tags, *ret_count, sizeof(tags[0]), compare_text);
	return ANSWER_DONE;
}

static enum answer read_state(
	struct server_call *call, enum config_backend_state *ret, bool *ret_given)
{
	const char *text = NULL;
	enum answer answer = server_text_optional(call, "state", &text);

	*ret_given = text != NULL;
	if (text == NULL || answer != ANSWER_DONE)
		return answer;
	for (int state = CONFIG_BACKEND_UP; state <= CONFIG_BACKEND_DOWN; state++) {
		if (strcmp(text, config_backend_state_name(state)) == 0) {
			*ret = state;
			return ANSWER_DONE;
		}
	}
	return server_fail(call, ANSWER_USAGE, "\"state\" must be up, drain or down, not %s", text);
}

// What is common to add and set: names, weight, state, tags. mask: which of them were given.
static enum answer read_backend(struct server_call *call, const char **ret_pool,
	struct config_backend *ret, uint32_t *ret_mask)
{
	uint64_t weight = 0;
	bool has_state;

	*ret_mask = 0;
	if (server_text(call, "pool", ret_pool) != ANSWER_DONE ||
		server_text(call, "backend", &ret->name) != ANSWER_DONE ||
		server_number_optional(call, "weight", 1, CONFIG_WEIGHT_MAX, &weight) !=
			ANSWER_DONE ||
		read_state(call, &ret->state, &has_state) != ANSWER_DONE ||
		read_tags(call, ret->tags, &ret->tag_count) != ANSWER_DONE)
		return call->answer;
	if (weight != 0) {
		ret->weight = (uint32_t)weight;
		*ret_mask |= CONFIG_EDIT_WEIGHT;
	}
	if (has_state)
		*ret_mask |= CONFIG_EDIT_STATE;
	if (json_object_get(call->request->args, "tags") != NULL)
		*ret_mask |= CONFIG_EDIT_TAGS;
	return ANSWER_DONE;
}

void verb_backend_add(struct server_call *call)
{
	const char *tags[CONFIG_TAGS_MAX], *pool, *address = NULL;
	struct config_backend backend = {.weight = 1, .tags = tags};
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	uint64_t port = 0;
	uint32_t mask;

	if (read_backend(call, &pool, &backend, &mask) != ANSWER_DONE ||
		server_text(call, "address", &address) != ANSWER_DONE ||
		server_number_optional(call, "port", 1, 65535, &port) != ANSWER_DONE)
		return;
	if (addr_parse(address, &backend.address) != 0) {
		server_fail(call, ANSWER_USAGE, "\"%s\" is no IPv4 or IPv6 address", address);
		return;
	}
	backend.port = (uint32_t)port;
	node_backend_add(verbs_of(call)->node, &request, pool, &backend, &outcome);
	verbs_outcome(call, &outcome);
}

void verb_backend_set(struct server_call *call)
{
	const char *tags[CONFIG_TAGS_MAX], *pool;
	struct config_backend backend = {.tags = tags};
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	uint32_t mask;

	if (read_backend(call, &pool, &backend, &mask) != ANSWER_DONE)
		return;
	if (mask == 0) {
		server_fail(call, ANSWER_USAGE, "nothing to set: give a weight, a state or tags");
		return;
	}
	node_backend_set(verbs_of(call)->node, &request, pool, &backend, mask, &outcome);
	verbs_outcome(call, &outcome);
}

void verb_backend_drain(struct server_call *call)
{
	struct config_backend backend = {.state = CONFIG_BACKEND_DRAIN};
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	const char *pool;

	if (server_text(call, "pool", &pool) != ANSWER_DONE ||
		server_text(call, "backend", &backend.name) != ANSWER_DONE)
		return;
	node_backend_set(
		verbs_of(call)->node, &request, pool, &backend, CONFIG_EDIT_STATE, &outcome);
	verbs_outcome(call, &outcome);
}

void verb_backend_del(struct server_call *call)
{
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	const char *pool, *name;

	if (server_text(call, "pool", &pool) != ANSWER_DONE ||
		server_text(call, "backend", &name) != ANSWER_DONE)
		return;
	node_backend_remove(verbs_of(call)->node, &request, pool, name, &outcome);
	verbs_outcome(call, &outcome);
}
