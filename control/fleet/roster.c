// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct gathering {
	struct fleet_roster next;
	uint32_t room;
	const struct fleet_roster *before;
	uint64_t now_ms;
};

static const struct fleet_member *find(const struct fleet_roster *roster, const char *node)
{
	uint32_t low = 0, high = roster->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = strcmp(roster->members[middle]->status.node, node);

		if (order == 0)
			return roster->members[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool make_room(struct gathering *gathering)
{
	if (gathering->next.count < gathering->room)
		return true;
	uint32_t room = gathering->room ? 2 * gathering->room : 64;
	void *larger = realloc(gathering->next.members, room * sizeof(*gathering->next.members));

	if (larger == NULL)
		return false;
	gathering->next.members = larger;
	gathering->room = room;
	return true;
}

// A statement that is no statement is left out: its node will be missing, which says enough.
static int gather(void *context, const char *key, const char *value, size_t length)
{
	struct gathering *gathering = context;
	struct fleet_member *member = malloc(sizeof(*member));
	json_t *object = json_loadb(value, length, 0, NULL);
	const char *name = key + strlen(FLEET_STATUS_PREFIX);
	bool good = member != NULL && object != NULL &&
		fleet_status_read(object, &member->status) == 0 &&
		strcmp(member->status.node, name) == 0 && gathering->next.count < FLEET_NODES_MAX &&
		make_room(gathering);

	json_decref(object);
	if (!good) {
		free(member);
		return 0;
	}
	const struct fleet_member *before = find(gathering->before, name);
	bool same = before != NULL && before->status.time_ms == member->status.time_ms;

	member->seen_ms = same ? before->seen_ms : gathering->now_ms;
	gathering->next.members[gathering->next.count++] = member;
	return 0;
}

int fleet_roster_read(struct store *store, struct fleet_roster *roster, uint64_t now_ms)
{
	struct gathering gathering = {.before = roster, .now_ms = now_ms};
	int rc = store_key_list(store, FLEET_STATUS_PREFIX, gather, &gathering);

	if (rc < 0) {
		fleet_roster_free(&gathering.next);
		return rc;
	}
	fleet_roster_free(roster);
	*roster = gathering.next;
	return 0;
}

void fleet_roster_free(struct fleet_roster *roster)
{
	for (uint32_t i = 0; i < roster->count; i++)
		free(roster->members[i]);
	free(roster->members);
	*roster = (struct fleet_roster){0};
}

bool fleet_member_missing(const struct fleet_member *member, uint64_t now_ms)
{
	return now_ms > member->seen_ms + FLEET_MISSING_MS;
}

static void count(const struct fleet_status *status, const struct cutover *cutover,
	const struct fleet_status *reference, struct cutover_datacenter_facts *seen)
{
	const struct fleet_pool *pool = fleet_pool_find(status, cutover->spec.pool);
	const struct fleet_pool *right =
		reference ? fleet_pool_find(reference, cutover->spec.pool) : NULL;
	bool current = status->dataplane == FLEET_DATAPLANE_CURRENT;

	seen->churning += status->draining;
	// After the end a node has nothing more to say about the pool: what counts is that it took the end over.
	if (pool == NULL)
		return;
	seen->refused += pool->error[0] != '\0';
	seen->applied += current && pool->revision >= cutover->shares_revision;
	if (!pool->has_new)
		return;
	// Another generation may well have another ring; it is not there yet, that is all.
	bool same = right == NULL || !right->has_new ||
		memcmp(pool->new_digest, right->new_digest, RING_DIGEST_BYTES) == 0;

	if (same)
		seen->prepared += current;
	else if (status->generation == reference->generation)
		seen->mismatched++;
}

void fleet_facts(const struct fleet_roster *roster, const struct cutover *cutover,
	const struct fleet_status *reference, uint64_t now_ms, struct cutover_facts *ret)
{
	memset(ret->datacenters, 0, sizeof(ret->datacenters));
	ret->outside_nodes = 0;
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct fleet_member *member = roster->members[i];
		int index = cutover_datacenter_find(&cutover->spec, member->status.datacenter);

		if (index < 0) {
			ret->outside_nodes++;
			continue;
		}
		struct cutover_datacenter_facts *seen = &ret->datacenters[index];

		seen->nodes++;
		if (fleet_member_missing(member, now_ms))
			seen->missing++;
		else
			count(&member->status, cutover, reference, seen);
	}
}
