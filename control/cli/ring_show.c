// SPDX-License-Identifier: Apache-2.0
#include "control/cli/request.h"
#include "control/cli/ring_ref.h"
#include "control/ring/balance_stats.h"
#include "control/ring/walk.h"

#include <stdlib.h>

#define CIRCLE 4294967296.0

// One row a backend, in address order.
static json_t *shares_json(const struct ring_ref *ref, const uint64_t *arcs, const uint32_t *points)
{
	const struct ring_spec *spec = &ref->ring.spec;
	json_t *rows = json_array();
	double weights = 0;

	for (uint32_t i = 0; i < spec->member_count; i++)
		weights += spec->members[i].weight;
	for (uint32_t i = 0; i < spec->member_count; i++) {
		const struct ring_spec_member *member = &spec->members[i];
		double share = (double)arcs[i] / CIRCLE, target = member->weight / weights;
		char address[ADDR_TEXT_BYTES];

		addr_format(&member->address, address);
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f}", "name", member->name,
				"address", address, "port", (int)member->port, "weight",
				(int)member->weight, "points", (int)points[i], "target_share",
				target, "ring_share", share, "load_ratio", share / target));
	}
	return rows;
}

static void count_points(const struct ring *ring, uint32_t *points)
{
	struct ring_walk_point point;
	struct ring_cursor cursor;

	for (ring_cursor_first(&cursor, ring); ring_cursor_next(&cursor, &point);)
		points[point.owner]++;
}

// The ring as a whole.
static json_t *ring_json(const struct ring_ref *ref, const uint64_t *arcs, const uint32_t *weights)
{
	const struct ring_header *header = ref->view.header;
	char spec_digest[2 * RING_DIGEST_BYTES + 1], points_digest[2 * RING_DIGEST_BYTES + 1];
	struct ring_balance balance = {0};
	uint64_t v1_points = 0;
	double predicted = 0;

	ring_digest_format(header->spec_digest, spec_digest);
	ring_digest_format(header->points_digest, points_digest);
	for (uint32_t i = 0; i < header->member_count; i++)
		v1_points += (uint64_t)weights[i] * RING_V1_POINTS;
	if (header->member_count > 0) {
		ring_balance_measure(arcs, weights, header->member_count, &balance);
		predicted =
			ring_balance_predict(weights, header->member_count, ref->ring.spec.points);
	}
	return json_pack(
		"{s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:s, s:s}",
		"pool", ref->pool->name, "version", config_ring_version_name(header->version),
		"points_per_weight", (int)ref->ring.spec.points, "backends",
		(int)header->member_count, "points", (int)header->point_count, "collisions",
		(json_int_t)(ref->generated - header->point_count), "ring_bytes",
		(json_int_t)header->bytes, "as_v1_bytes",
		(json_int_t)ring_image_bytes(RING_V1, v1_points, header->member_count),
		"predicted_cv_share", predicted, "cv_share", balance.cv, "hottest_ratio",
		balance.hottest_ratio, "coldest_ratio", balance.coldest_ratio, "build_ns",
		(json_int_t)ref->build_ns, "spec_digest", spec_digest, "points_digest",
		points_digest);
}

static enum answer show(struct cli *cli, const struct ring_ref *ref)
{
	uint32_t count = ref->view.header->member_count;
	uint64_t *arcs = calloc((size_t)count + 1, sizeof(*arcs));
	uint32_t *weights = calloc((size_t)count + 1, sizeof(*weights));
	uint32_t *points = calloc((size_t)count + 1, sizeof(*points));
	json_t *result = NULL;
	enum answer answer;

	if (arcs && weights && points) {
		ring_shares(&ref->view, arcs);
		ring_ref_weights(ref, weights);
		count_points(&ref->view, points);
		result = ring_json(ref, arcs, weights);
		json_object_set_new(result, "members", shares_json(ref, arcs, points));
	}
	answer =
		result ? request_print(cli, result) : cli_fail(cli, ANSWER_FAILED, "out of memory");
	json_decref(result);
	free(arcs);
	free(weights);
	free(points);
	return answer;
}

enum answer ring_show_run(struct cli *cli)
{
	struct ring_ref ref;
	enum answer answer = ring_ref_open(cli, cli->operand[0], cli->value[CLI_FILE], &ref);

	if (answer != ANSWER_DONE)
		return answer;
	answer = show(cli, &ref);
	ring_ref_free(&ref);
	return answer;
}
