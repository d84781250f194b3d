// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/lanes.h"

#include "control/config/arena.h"
#include "control/config/lane_text.h"
#include "control/ring/lanes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool key_matches(const struct document_lanes *entry, const struct lanes_key *key)
{
	if (entry->is_new != key->is_new || entry->tag_count != key->tag_count ||
		strcmp(entry->pool, key->pool) != 0)
		return false;
	for (uint32_t i = 0; i < key->tag_count; i++) {
		if (strcmp(entry->tags[i], key->tags[i]) != 0)
			return false;
	}
	return true;
}

static struct document_lanes *entry_find(
	const struct document *document, const struct lanes_key *key)
{
	for (uint32_t i = 0; i < document->balanced_count; i++) {
		if (key_matches(&document->balanced[i], key))
			return &document->balanced[i];
	}
	return NULL;
}

// The entry that a ring's lanes are taken from: its own, or that of the new ring which it has been until now.
static const struct document_lanes *entry_source(
	const struct document *document, const struct lanes_key *key)
{
	struct lanes_key was_new = *key;
	const struct document_lanes *own = entry_find(document, key);

	if (own != NULL || key->is_new || document_cutover_find(document, key->pool) != NULL)
		return own;
	was_new.is_new = true;
	return entry_find(document, &was_new);
}

static struct ring_lane *lanes_read(const struct document_lanes *entry)
{
	struct ring_lane *lanes = calloc((size_t)entry->lane_count + 1, sizeof(*lanes));

	for (uint32_t i = 0; lanes != NULL && i < entry->lane_count; i++) {
		if (lane_text_parse(entry->lanes[i], &lanes[i]) == 0)
			continue;
		free(lanes);
		return NULL;
	}
	return lanes;
}

static int compare_lane(const struct ring_lane *lane, const struct ring_spec_member *member)
{
	int order = addr_compare(&lane->address, &member->address);

	return order ? order : (lane->port > member->port) - (lane->port < member->port);
}

// Tells whether lanes belong to exactly these members with these weights. Both are in address order.
static bool lanes_fit(const struct ring_lane *lanes, uint32_t count, const struct ring_spec *spec)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < spec->member_count; i++) {
		uint32_t first = at;

		while (at < count && compare_lane(&lanes[at], &spec->members[i]) == 0 &&
			lanes[at].weight == spec->members[i].weight)
			at++;
		if (at == first)
			return false;
	}
	return at == count;
}

static int entry_write(struct document *document, const struct lanes_key *key,
	const struct config_ring *config, const struct pool_ring *ring)
{
	struct document_lanes *entry = entry_find(document, key);
	char text[LANE_TEXT_BYTES];

	if (entry == NULL) {
		entry = arena_append(document->arena, &document->balanced,
			&document->balanced_count, sizeof(*entry));
		if (entry == NULL)
			return -ENOMEM;
		*entry = (struct document_lanes){.is_new = key->is_new};
		entry->pool = arena_text(document->arena, key->pool, strlen(key->pool));
		entry->tags =
			arena_take(document->arena, (key->tag_count + 1) * sizeof(*entry->tags));
		if (entry->pool == NULL || entry->tags == NULL)
			return -ENOMEM;
		for (; entry->tag_count < key->tag_count; entry->tag_count++)
			entry->tags[entry->tag_count] = key->tags[entry->tag_count];
	}
	entry->attached = true;
	entry->points = config->points;
	entry->balance = config->balance;
	entry->lane_count = 0;
	entry->lanes = arena_take(
		document->arena, ((size_t)ring->spec.lane_count + 1) * sizeof(*entry->lanes));
	if (entry->lanes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < ring->spec.lane_count; i++) {
		lane_text_format(&ring->spec.lanes[i], text);
		entry->lanes[i] = arena_text(document->arena, text, strlen(text));
		if (entry->lanes[i] == NULL)
			return -ENOMEM;
		entry->lane_count++;
	}
	return 0;
}

// Lanes for a ring whose own ones do not fit any more.
static int lanes_choose(const struct document_lanes *source, const struct config_ring *config,
	struct ring_lane *old, struct pool_ring *ring, struct ring_error *ret_error)
{
	struct ring_lanes_request request = {
		.spec = &ring->spec,
		.tolerance = config->balance / 1e6,
	};
	struct ring_lane *lanes = NULL;
	uint32_t count = 0;
	int error;

	if (old != NULL && source->points == config->points) {
		request.old = old;
		request.old_count = source->lane_count;
	}
	error = ring_lanes_choose(&request, &lanes, &count, NULL);
	if (error) {
		snprintf(ret_error->text, sizeof(ret_error->text), "cannot balance the ring: %s",
			strerror(-error));
		return error;
	}
	return pool_ring_lanes_set(ring, lanes, count, ret_error);
}

int lanes_attach(struct document *document, const struct lanes_key *key,
	const struct config_ring *config, struct pool_ring *ring, struct ring_error *ret_error)
{
	const struct document_lanes *source = entry_source(document, key);
	struct ring_lane *old;
	int error;

	if (ring->spec.version != RING_V3 || ring->spec.member_count == 0)
		return 0;
	old = source ? lanes_read(source) : NULL;
	if (old != NULL && source->points == config->points && source->balance == config->balance &&
		lanes_fit(old, source->lane_count, &ring->spec)) {
		error = pool_ring_lanes_set(ring, old, source->lane_count, ret_error);
	} else {
		error = lanes_choose(source, config, old, ring, ret_error);
		free(old);
	}
	if (error == 0)
		error = entry_write(document, key, config, ring);
	if (error == -ENOMEM)
		snprintf(ret_error->text, sizeof(ret_error->text), "out of memory");
	return error;
}

void lanes_begin(struct document *document)
{
	for (uint32_t i = 0; i < document->balanced_count; i++)
		document->balanced[i].attached = false;
}

void lanes_end(struct document *document)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < document->balanced_count; i++) {
		if (document->balanced[i].attached)
			document->balanced[kept++] = document->balanced[i];
	}
	document->balanced_count = kept;
}
