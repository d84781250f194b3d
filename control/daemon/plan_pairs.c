// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/plan_pairs.h"

#include "control/ring/churn.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The members that a ring of the pool was built from.
static struct config_pool members_of(const struct document *document, const struct node_ring *ring)
{
	struct config_pool members = *config_pool_find(document->pools, ring->pool);
	const struct document_cutover *cutover = document_cutover_find(document, ring->pool);

	if (ring->is_new && cutover != NULL && cutover->backend_count != 0) {
		members.backends = cutover->backends;
		members.backend_count = cutover->backend_count;
	}
	return members;
}

static void weights_fill(
	const struct document *document, const struct node_ring *node_ring, uint32_t *ret)
{
	const struct config_pool members = members_of(document, node_ring);
	const struct ring *ring = node_ring->ring;

	for (uint32_t owner = 0; owner < ring->header->member_count; owner++) {
		const struct document_id *id =
			document_id_name(document, DOCUMENT_BACKEND, ring_member(ring, owner));
		const struct config_backend *backend =
			id ? config_backend_find(&members, id->name) : NULL;

		ret[owner] = backend ? backend->weight : 1;
	}
}

static const char *name_of(const struct document *document, const struct ring *ring, uint32_t owner)
{
	const struct document_id *id =
		document_id_name(document, DOCUMENT_BACKEND, ring_member(ring, owner));

	return id ? id->name : "?";
}

static void balance_measure(const struct document *document, const struct node_ring *node_ring,
	struct plan_balance *ret)
{
	const struct ring *ring = node_ring->ring;
	uint32_t members = ring->header->member_count;
	uint64_t *arcs = calloc((size_t)members + 1, sizeof(*arcs));
	uint32_t *weights = calloc((size_t)members + 1, sizeof(*weights));

	*ret = (struct plan_balance){0};
	if (members != 0 && arcs != NULL && weights != NULL) {
		ring_shares(ring, arcs);
		weights_fill(document, node_ring, weights);
		plan_balance_of(arcs, weights, members, ring->header->point_count, ret);
	}
	free(arcs);
	free(weights);
}

static void tags_text(const struct config_service *service, char *ret, size_t bytes)
{
	size_t length = 0;

	snprintf(ret, bytes, "-");
	for (uint32_t i = 0; i < service->require_count && length < bytes; i++)
		length += (size_t)snprintf(
			ret + length, bytes - length, "%s%s", i ? "," : "", service->requires[i]);
}

// The part of a sample's weight whose backend changes. traffic: hash, weight, hash, weight. NAN without a sample.
static double churn_weighted(
	const struct ring *before, const struct ring *after, const json_t *traffic)
{
	uint64_t *there = calloc((size_t)before->header->member_count + 1, sizeof(*there));
	double all = 0, moved = 0;

	if (there == NULL || ring_shares_in(before, after, there) != 0) {
		free(there);
		return NAN;
	}
	for (size_t i = 0; i + 1 < json_array_size(traffic); i += 2) {
		uint32_t hash = (uint32_t)json_integer_value(json_array_get(traffic, i));
		double weight = json_number_value(json_array_get(traffic, i + 1));

		all += weight;
		moved += weight * ring_chance_moved(before, after, there, hash);
	}
	free(there);
	return all > 0 ? moved / all : NAN;
}

static void measure(const struct document *document, const json_t *traffic,
	const struct plan_pair *pair, struct plan_ring *ret)
{
	const struct ring *before = pair->before->ring, *after = pair->after->ring;
	uint64_t moved = RING_CIRCLE; // without memory the worst is said

	ring_moved(before, after, &moved, NULL, NULL);
	ret->churn = (double)moved / (double)RING_CIRCLE;
	ret->churn_traffic = churn_weighted(before, after, traffic);
	balance_measure(document, pair->before, &ret->before);
	balance_measure(document, pair->after, &ret->after);
	ret->build_ns = pair->after->build_ns;
}

// Where keys have a home, a move of theirs is felt by the caches: the worst affinity of the services counts.
static void service_count(const struct config_service *service, struct plan_ring *ret)
{
	if (ret->services++ == 0) {
		tags_text(service, ret->name, sizeof(ret->name));
		ret->affinity = FLOW_AFFINITY_FLOW;
	}
	if (plan_surge_applies((enum flow_affinity)service->affinity))
		ret->affinity = (enum flow_affinity)service->affinity;
}

// Puts a service to the pair of its rings, made when there is none. Returns 0 or -E2BIG.
static int service_add(
	struct plan_pairs *pairs, const struct config_service *service, const struct plan_pair *its)
{
	uint32_t i = 0;

	while (i < pairs->count &&
		(pairs->items[i].before != its->before || pairs->items[i].after != its->after))
		i++;
	if (i == SNAPSHOT_RINGS_MAX)
		return -E2BIG;
	if (i == pairs->count)
		pairs->items[pairs->count++] = *its;
	service_count(service, &pairs->rings[i]);
	return 0;
}

#define SEEN_BEFORE 1
#define SEEN_AFTER  2

static void bytes_add(struct plan_pairs *pairs)
{
	uint8_t seen[SNAPSHOT_RINGS_MAX] = {0};

	for (uint32_t i = 0; i < pairs->count; i++) {
		const struct node_ring *before = pairs->items[i].before;
		const struct node_ring *after = pairs->items[i].after;

		seen[before->index] |= SEEN_BEFORE;
		seen[after->index] |= SEEN_AFTER;
	}
	for (uint32_t i = 0; i < 2 * pairs->count; i++) {
		const struct plan_pair *pair = &pairs->items[i / 2];
		const struct node_ring *ring = i % 2 == 0 ? pair->before : pair->after;
		uint64_t bytes = ring->ring->header->bytes;

		pairs->bytes_now += seen[ring->index] & SEEN_BEFORE ? bytes : 0;
		pairs->bytes_after += seen[ring->index] & SEEN_AFTER ? bytes : 0;
		pairs->bytes_during += seen[ring->index] != 0 ? bytes : 0;
		seen[ring->index] = 0;
	}
}

int plan_pairs_measure(const struct node_preview *preview, const char *pool, const json_t *traffic,
	struct plan_pairs *ret)
{
	const struct document *document = node_preview_document(preview);
	int rc = 0;

	for (uint32_t i = 0; i < document->pools->service_count && rc == 0; i++) {
		const struct config_service *service = &document->pools->services[i];
		struct plan_pair its;

		if (strcmp(service->pool, pool) != 0)
			continue;
		node_preview_service_rings(preview, i, &its.before, &its.after);
		rc = service_add(ret, service, &its);
	}
	for (uint32_t i = 0; i < ret->count; i++)
		measure(document, traffic, &ret->items[i], &ret->rings[i]);
	bytes_add(ret);
	return rc;
}

// --- the answer ------------------------------------------------------------------------------------

static json_t *balance_json(const struct document *document, const struct ring *ring,
	const struct plan_balance *balance)
{
	return json_pack("{s:f, s:f, s:f, s:s, s:f, s:s}", "cv", balance->cv, "cv_predicted",
		balance->predicted, "hottest", balance->hottest, "hottest_backend",
		name_of(document, ring, balance->hottest_member), "coldest", balance->coldest,
		"coldest_backend", name_of(document, ring, balance->coldest_member));
}

// Of one pair or of all rings of a pool, in one worker and in all of them; during: both rings are there.
static json_t *memory_json(uint64_t now, uint64_t during, uint64_t after, uint32_t workers)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "workers", (json_int_t)workers,
		"worker_bytes_now", (json_int_t)now, "worker_bytes_during", (json_int_t)during,
		"worker_bytes_after", (json_int_t)after, "node_bytes_now",
		(json_int_t)(now * workers), "node_bytes_during", (json_int_t)(during * workers),
		"node_bytes_after", (json_int_t)(after * workers));
}

static json_t *ring_json(const struct document *document, const struct plan_pair *pair,
	const struct plan_ring *ring, uint32_t workers)
{
	uint64_t now = pair->before->ring->header->bytes, after = pair->after->ring->header->bytes;

	json_t *ret = json_pack("{s:s, s:I, s:s, s:f, s:o, s:o, s:I, s:o}", "tags", ring->name,
		"services", (json_int_t)ring->services, "affinity",
		config_affinity_name(ring->affinity), "churn", ring->churn, "before",
		balance_json(document, pair->before->ring, &ring->before), "after",
		balance_json(document, pair->after->ring, &ring->after), "build_ns",
		(json_int_t)ring->build_ns, "memory",
		memory_json(now, pair->before == pair->after ? now : now + after, after, workers));

	if (!ring_same_seed(pair->before->ring, pair->after->ring))
		json_object_set_new(ret, "hash_seed_changes", json_true());
	if (!isnan(ring->churn_traffic))
		json_object_set_new(ret, "churn_traffic", json_real(ring->churn_traffic));
	return ret;
}

json_t *plan_pairs_rings(
	const struct plan_pairs *pairs, const struct node_preview *preview, uint32_t workers)
{
	const struct document *document = node_preview_document(preview);
	json_t *ret = json_array();

	for (uint32_t i = 0; i < pairs->count; i++)
		json_array_append_new(
			ret, ring_json(document, &pairs->items[i], &pairs->rings[i], workers));
	return ret;
}

json_t *plan_pairs_memory(const struct plan_pairs *pairs, uint32_t workers)
{
	return memory_json(pairs->bytes_now, pairs->bytes_during, pairs->bytes_after, workers);
}
