// SPDX-License-Identifier: Apache-2.0
// `ringway ring diff A B`: what moves between two rings, exactly, for each backend, and why.
#include "control/cli/request.h"
#include "control/cli/ring_ref.h"
#include "control/cli/traffic.h"
#include "control/ring/churn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CIRCLE    4294967296.0
#define NO_MEMBER UINT32_MAX
#define WHY_BYTES 160u

// A server that stands in one ring or in both. Servers are the same when address and port are: a new name moves
// no key.
struct pair {
	uint32_t a; // owner in ring a, or NO_MEMBER
	uint32_t b;
	uint64_t lost; // hashes that leave it and come to it
	uint64_t gained;
	double traffic;      // sampled, that ring a gives it
	double traffic_lost; // as lost and gained, by sampled traffic
	double traffic_gained;
};

struct comparison {
	const struct ring_ref *a;
	const struct ring_ref *b;
	struct pair *pairs; // in address order
	uint32_t count;
	uint64_t moved;
	bool sampled;
	double traffic; // sum of the sample's weights
	double traffic_moved;
};

static int compare_members(const struct ring_spec_member *x, const struct ring_spec_member *y)
{
	int order = addr_compare(&x->address, &y->address);

	return order ? order : (x->port > y->port) - (x->port < y->port);
}

// Numbers the servers of both rings alike, by one walk over both lists: they are in address order.
static void pair_up(struct comparison *c, uint32_t *ids_a, uint32_t *ids_b)
{
	const struct ring_spec *a = &c->a->ring.spec, *b = &c->b->ring.spec;
	uint32_t i = 0, j = 0;

	while (i < a->member_count || j < b->member_count) {
		struct pair *pair = &c->pairs[c->count];
		int order = i == a->member_count ? 1
			: j == b->member_count   ? -1
						 : compare_members(&a->members[i], &b->members[j]);

		*pair = (struct pair){
			.a = order <= 0 ? i : NO_MEMBER, .b = order >= 0 ? j : NO_MEMBER};
		if (order <= 0)
			ids_a[i++] = c->count;
		if (order >= 0)
			ids_b[j++] = c->count;
		c->count++;
	}
}

// Writes the common numbers into an image, so that ring_churn() compares servers.
static void renumber(const struct ring_ref *ref, const uint32_t *ids)
{
	const struct ring_header *header = ref->view.header;

	memcpy((char *)ref->image + header->members_offset, ids,
		header->member_count * sizeof(*ids));
}

// A file that leaves the hash seed out keeps that of the ring beside it, as `apply` does.
static void settle_seed(const struct ring_ref *ref, const struct ring_ref *other)
{
	struct ring_header *header = ref->image;

	if (ref->seed_is_left_out)
		header->seed_mark = other->view.header->seed_mark;
}

static int compare_rings(struct comparison *c)
{
	uint32_t a_count = c->a->ring.spec.member_count, b_count = c->b->ring.spec.member_count;
	uint64_t *lost = calloc((size_t)a_count + 1, sizeof(*lost));
	uint64_t *gained = calloc((size_t)b_count + 1, sizeof(*gained));
	uint32_t *ids_a = calloc((size_t)a_count + 1, sizeof(*ids_a));
	uint32_t *ids_b = calloc((size_t)b_count + 1, sizeof(*ids_b));
	int error = -ENOMEM;

	c->pairs = calloc((size_t)a_count + b_count + 1, sizeof(*c->pairs));
	if (lost && gained && ids_a && ids_b && c->pairs) {
		settle_seed(c->a, c->b);
		settle_seed(c->b, c->a);
		pair_up(c, ids_a, ids_b);
		renumber(c->a, ids_a);
		renumber(c->b, ids_b);
		error = ring_moved(&c->a->view, &c->b->view, &c->moved, lost, gained);
		for (uint32_t i = 0; i < a_count; i++)
			c->pairs[ids_a[i]].lost = lost[i];
		for (uint32_t i = 0; i < b_count; i++)
			c->pairs[ids_b[i]].gained = gained[i];
	}
	free(lost);
	free(gained);
	free(ids_a);
	free(ids_b);
	return error;
}

static void weigh(void *context, uint32_t hash, double weight)
{
	struct comparison *c = context;
	uint32_t from = ring_lookup(&c->a->view, hash), to = ring_lookup(&c->b->view, hash);

	c->traffic += weight;
	from = from == RING_NO_OWNER ? NO_MEMBER : ring_member(&c->a->view, from);
	to = to == RING_NO_OWNER ? NO_MEMBER : ring_member(&c->b->view, to);
	if (from != NO_MEMBER)
		c->pairs[from].traffic += weight;
	if (from == to || !ring_same_seed(&c->a->view, &c->b->view))
		return;
	c->traffic_moved += weight;
	if (from != NO_MEMBER)
		c->pairs[from].traffic_lost += weight;
	if (to != NO_MEMBER)
		c->pairs[to].traffic_gained += weight;
}

// Under two seeds a flow's hash in ring a says nothing about ring b: what each server has is spread over b's shares.
static int spread_traffic(struct comparison *c)
{
	uint32_t b_count = c->b->ring.spec.member_count;
	uint64_t *arcs = calloc((size_t)b_count + 1, sizeof(*arcs));

	if (arcs == NULL)
		return -ENOMEM;
	ring_shares(&c->b->view, arcs);
	c->traffic_moved = c->traffic;
	for (uint32_t i = 0; i < c->count; i++) {
		struct pair *pair = &c->pairs[i];
		double share = pair->b == NO_MEMBER ? 0 : (double)arcs[pair->b] / CIRCLE;

		pair->traffic_lost = pair->traffic * (1 - share);
		pair->traffic_gained = (c->traffic - pair->traffic) * share;
		c->traffic_moved -= pair->traffic * share;
	}
	free(arcs);
	return 0;
}

static enum answer read_traffic(struct cli *cli, struct comparison *c)
{
	enum answer answer = traffic_read(cli, weigh, c);

	c->sampled = answer == ANSWER_DONE && c->traffic > 0;
	if (c->sampled && !ring_same_seed(&c->a->view, &c->b->view) && spread_traffic(c) != 0)
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	return answer;
}

// Why keys of this server move.
static void say_why(const struct comparison *c, const struct pair *pair, char ret[WHY_BYTES])
{
	const struct ring_spec *a = &c->a->ring.spec, *b = &c->b->ring.spec;
	const struct ring_spec_member *from = pair->a == NO_MEMBER ? NULL : &a->members[pair->a];
	const struct ring_spec_member *to = pair->b == NO_MEMBER ? NULL : &b->members[pair->b];

	if (from == NULL)
		snprintf(ret, WHY_BYTES, "added");
	else if (to == NULL)
		snprintf(ret, WHY_BYTES, "removed");
	else if (a->seed != b->seed)
		snprintf(ret, WHY_BYTES, "another seed: all of its points are others");
	else if (!ring_same_seed(&c->a->view, &c->b->view))
		snprintf(ret, WHY_BYTES, "another hash seed: every key is drawn anew");
	else if (from->weight != to->weight)
		snprintf(ret, WHY_BYTES, "weight %u -> %u", from->weight, to->weight);
	else if (a->version == RING_V3 && b->version != RING_V3)
		snprintf(ret, WHY_BYTES, "v3 chose its points, v%d takes the first", b->version);
	else if (b->version == RING_V3 && a->version != RING_V3)
		snprintf(ret, WHY_BYTES, "v%d took its first points, v3 chooses", a->version);
	else if (a->points != b->points)
		snprintf(ret, WHY_BYTES, "points a weight %u -> %u", a->points, b->points);
	else if (pair->lost || pair->gained)
		snprintf(ret, WHY_BYTES, "points of others came or went beside it");
	else
		snprintf(ret, WHY_BYTES, "unchanged");
}

static double target_share(const struct ring_spec *spec, uint32_t owner, double weights)
{
	return owner == NO_MEMBER || weights == 0 ? 0 : spec->members[owner].weight / weights;
}

static double weight_sum(const struct ring_spec *spec)
{
	double sum = 0;

	for (uint32_t i = 0; i < spec->member_count; i++)
		sum += spec->members[i].weight;
	return sum;
}

// The least part of the keys that any ring would have to move: what the target shares grow by.
static double unavoidable(const struct comparison *c)
{
	const struct ring_spec *a = &c->a->ring.spec, *b = &c->b->ring.spec;
	double a_sum = weight_sum(a), b_sum = weight_sum(b), grown = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		double growth = target_share(b, c->pairs[i].b, b_sum) -
			target_share(a, c->pairs[i].a, a_sum);

		grown += growth > 0 ? growth : 0;
	}
	return grown;
}

static json_t *pairs_json(const struct comparison *c)
{
	const struct ring_spec *a = &c->a->ring.spec, *b = &c->b->ring.spec;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < c->count; i++) {
		const struct pair *pair = &c->pairs[i];
		const struct ring_spec_member *member =
			pair->b != NO_MEMBER ? &b->members[pair->b] : &a->members[pair->a];
		char address[ADDR_TEXT_BYTES], why[WHY_BYTES];
		json_t *row;

		addr_format(&member->address, address);
		say_why(c, pair, why);
		row = json_pack("{s:s, s:s, s:i, s:f, s:f}", "name", member->name, "address",
			address, "port", (int)member->port, "out_share",
			(double)pair->lost / CIRCLE, "in_share", (double)pair->gained / CIRCLE);
		if (c->sampled) {
			json_object_set_new(row, "traffic_out_share",
				json_real(pair->traffic_lost / c->traffic));
			json_object_set_new(row, "traffic_in_share",
				json_real(pair->traffic_gained / c->traffic));
		}
		json_object_set_new(row, "why", json_string(why));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *side_json(const struct ring_ref *ref)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:I, s:I}", "ring", ref->name, "version",
		config_ring_version_name(ref->view.header->version), "points_per_weight",
		(int)ref->ring.spec.points, "backends", (int)ref->ring.spec.member_count, "points",
		(json_int_t)ref->view.header->point_count, "ring_bytes",
		(json_int_t)ref->view.header->bytes);
}

static enum answer print_comparison(struct cli *cli, const struct comparison *c)
{
	double least = unavoidable(c), churn = (double)c->moved / CIRCLE;
	json_t *result = json_pack("{s:o, s:o, s:b, s:b, s:f, s:f}", "from", side_json(c->a), "to",
		side_json(c->b), "different", c->moved != 0, "hash_seed_differs",
		!ring_same_seed(&c->a->view, &c->b->view), "churn_share", churn,
		"unavoidable_share", least);
	enum answer answer;

	if (result != NULL && least > 0)
		json_object_set_new(
			result, "churn_over_unavoidable_ratio", json_real(churn / least));
	if (result != NULL && c->sampled) {
		json_object_set_new(
			result, "traffic_churn_share", json_real(c->traffic_moved / c->traffic));
		json_object_set_new(result, "traffic_weight", json_real(c->traffic));
	}
	if (result != NULL)
		json_object_set_new(result, "servers", pairs_json(c));
	answer =
		result ? request_print(cli, result) : cli_fail(cli, ANSWER_FAILED, "out of memory");
	json_decref(result);
	if (answer == ANSWER_DONE && c->moved != 0 && cli_has(cli, CLI_EXIT_CODE))
		answer = ANSWER_DIFFERENT;
	return answer;
}

enum answer ring_diff_run(struct cli *cli)
{
	const char *file = cli->value[CLI_FILE];
	struct comparison c = {0};
	struct ring_ref a = {0}, b = {0};
	enum answer answer = ring_ref_open(cli, cli->operand[0], file, &a);

	if (answer == ANSWER_DONE)
		answer = ring_ref_open(cli, cli->operand[1], file, &b);
	c.a = &a;
	c.b = &b;
	if (answer == ANSWER_DONE && compare_rings(&c) != 0)
		answer = cli_fail(cli, ANSWER_FAILED, "out of memory");
	if (answer == ANSWER_DONE && cli_has(cli, CLI_TRAFFIC))
		answer = read_traffic(cli, &c);
	if (answer == ANSWER_DONE)
		answer = print_comparison(cli, &c);
	free(c.pairs);
	ring_ref_free(&a);
	ring_ref_free(&b);
	return answer;
}
