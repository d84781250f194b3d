// SPDX-License-Identifier: Apache-2.0
#include "control/cli/ring_ref.h"

#include "control/cli/files.h"
#include "control/cli/request.h"
#include "control/config/lane_text.h"
#include "control/ring/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The pieces of a reference, in a copy of its text.
struct pieces {
	char *file; // NULL: none
	char *pool;
	char *tags;    // NULL: none
	char *version; // NULL: none
};

static struct pieces cut(char *text)
{
	struct pieces ret = {0};
	char *at = strrchr(text, '@');
	char *plus, *colon;

	if (at != NULL) {
		*at = '\0';
		ret.version = at + 1;
	}
	plus = strrchr(text, '+');
	if (plus != NULL) {
		*plus = '\0';
		ret.tags = plus + 1;
	}
	// A pool's name holds no colon, a file's may.
	colon = strrchr(text, ':');
	if (colon != NULL) {
		*colon = '\0';
		ret.file = text;
	}
	ret.pool = colon ? colon + 1 : text;
	return ret;
}

static uint64_t mark_at(const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "seed_mark"));

	return text ? strtoull(text, NULL, 16) : 0;
}

// The node's configuration, and the new ring of the pool's cutover if it is asked for.
static enum answer ask_node(struct cli *cli, const struct pieces *pieces, struct ring_ref *ref)
{
	json_t *result = NULL, *cutover;
	enum answer answer = request_ask(
		cli, "config.export", json_pack("{s:s}", "pool", pieces->pool), &result);
	const char *text = json_string_value(json_object_get(result, "pools"));

	if (answer == ANSWER_DONE && text == NULL)
		answer = cli_fail(cli, ANSWER_FAILED, "the node gave no configuration");
	if (answer == ANSWER_DONE)
		answer = files_pools_text(cli, "the node's configuration", text, &ref->pools);
	cutover = json_object_get(result, "cutover");
	ref->balanced = json_incref(json_object_get(result, "balanced"));
	ref->seed_mark = mark_at(result);
	if (answer == ANSWER_DONE && pieces->version && strcmp(pieces->version, "new") == 0) {
		if (!json_is_object(cutover))
			answer = cli_fail(
				cli, ANSWER_NOT_FOUND, "pool %s has no cutover", pieces->pool);
		else {
			ref->seed_mark = mark_at(cutover);
			ref->shape = (struct config_ring){
				.version = (uint32_t)json_integer_value(
					json_object_get(cutover, "version")),
				.points = (uint32_t)json_integer_value(
					json_object_get(cutover, "points")),
				.balance = (uint32_t)json_integer_value(
					json_object_get(cutover, "balance_ppm")),
				.seed = (enum config_seed)json_integer_value(
					json_object_get(cutover, "seed")),
			};
		}
	}
	json_decref(result);
	return answer;
}

static enum answer load(
	struct cli *cli, const struct pieces *pieces, const char *file, struct ring_ref *ref)
{
	enum answer answer;

	if (pieces->file != NULL)
		file = pieces->file;
	if (file != NULL && pieces->version != NULL && strcmp(pieces->version, "new") == 0)
		return cli_fail(cli, ANSWER_USAGE,
			"%s: a file holds no cutover: write the ring as @v2:16", ref->name);
	answer = file ? files_pools(cli, file, &ref->pools) : ask_node(cli, pieces, ref);
	if (answer != ANSWER_DONE)
		return answer;
	ref->pool = config_pool_find(ref->pools, pieces->pool);
	if (ref->pool == NULL)
		return cli_fail(
			cli, ANSWER_NOT_FOUND, "%s: there is no pool %s", ref->name, pieces->pool);
	if (file != NULL) {
		ref->seed_mark = hash_seed_mark(ref->pool->ring.hash_seed);
		ref->seed_is_left_out = ref->seed_mark == 0;
	}
	return ANSWER_DONE;
}

// Reads @v2:16 into the shape of the ring.
static enum answer read_version(struct cli *cli, const char *text, struct ring_ref *ref)
{
	unsigned version, points = 0;
	int used = 0;

	if (text == NULL || strcmp(text, "old") == 0) {
		ref->shape = ref->pool->ring;
		return ANSWER_DONE;
	}
	if (strcmp(text, "new") == 0)
		return ANSWER_DONE;
	if (sscanf(text, "v%1u%n:%u%n", &version, &used, &points, &used) < 1 || version < 1 ||
		version > 3 || text[used] != '\0')
		return cli_fail(cli, ANSWER_USAGE,
			"%s: \"%s\" is no ring: write @v1, @v2:16, @v3:16, @old or @new", ref->name,
			text);
	ref->shape = ref->pool->ring;
	if (points == 0)
		points = version == RING_V1             ? RING_V1_POINTS
			: version == ref->shape.version ? ref->shape.points
							: RING_POINTS_DEFAULT;
	ref->shape.version = version;
	ref->shape.points = points;
	return ANSWER_DONE;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t cut_tags(char *text, const char *tags[CONFIG_TAGS_MAX])
{
	uint32_t count = 0;

	for (char *save, *tag = text ? strtok_r(text, ",", &save) : NULL;
		tag != NULL && count < CONFIG_TAGS_MAX; tag = strtok_r(NULL, ",", &save))
		tags[count++] = tag;
	qsort(tags, count, sizeof(tags[0]), compare_text);
	return count;
}

static bool tags_equal(const json_t *list, const char *const *tags, uint32_t count)
{
	if (json_array_size(list) != count)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(json_string_value(json_array_get(list, i)), tags[i]) != 0)
			return false;
	}
	return true;
}

// The lanes that the node has for a ring, or NULL.
static const json_t *find_lanes(
	const struct ring_ref *ref, bool is_new, const char *const *tags, uint32_t count)
{
	const json_t *row;
	size_t i;

	json_array_foreach (ref->balanced, i, row) {
		if (json_is_true(json_object_get(row, "is_new")) == is_new &&
			tags_equal(json_object_get(row, "tags"), tags, count))
			return json_object_get(row, "lanes");
	}
	return NULL;
}

// Gives a v3 ring its points: the node's own choice, or a fresh one, which is what a node makes that never had it.
static int balance(struct ring_ref *ref, const json_t *texts, struct ring_error *error)
{
	struct ring_lane *lanes;
	const json_t *text;
	size_t i;

	if (texts == NULL)
		return pool_ring_balance(&ref->ring, ref->shape.balance, error);
	lanes = calloc(json_array_size(texts) + 1, sizeof(*lanes));
	if (lanes == NULL)
		return -ENOMEM;
	json_array_foreach (texts, i, text) {
		const char *words = json_string_value(text);

		if (words == NULL || lane_text_parse(words, &lanes[i]) != 0) {
			free(lanes);
			snprintf(error->text, sizeof(error->text),
				"the node's lanes cannot be read");
			return -EINVAL;
		}
	}
	return pool_ring_lanes_set(&ref->ring, lanes, (uint32_t)json_array_size(texts), error);
}

static enum answer build(struct cli *cli, const struct pieces *pieces, struct ring_ref *ref)
{
	const char *tags[CONFIG_TAGS_MAX], *version = pieces->version, *reason = "";
	struct ring_error error = {"out of memory"};
	uint32_t tag_count = cut_tags(pieces->tags, tags);
	bool is_new = version && strcmp(version, "new") == 0;
	bool is_own = version == NULL || is_new || strcmp(version, "old") == 0;
	size_t bytes;
	int failed;

	failed = pool_ring_spec(ref->pool, &ref->shape, tags, tag_count, &ref->ring, &error);
	ref->ring.spec.seed_mark = ref->seed_mark;
	ref->build_ns = now_ns();
	if (!failed && ref->shape.version == RING_V3)
		failed = balance(
			ref, is_own ? find_lanes(ref, is_new, tags, tag_count) : NULL, &error);
	if (failed)
		return cli_fail(cli, failed == -E2BIG ? ANSWER_REFUSED : ANSWER_INVALID, "%s: %s",
			ref->name, error.text);
	ref->generated = ring_spec_points(&ref->ring.spec);
	failed = ring_build_image(&ref->ring.spec, &ref->image, &bytes);
	ref->build_ns = now_ns() - ref->build_ns;
	if (failed)
		return cli_fail(cli, ANSWER_FAILED, "%s: %s", ref->name, strerror(-failed));
	if (ring_open(ref->image, bytes, &ref->view, &reason) != 0)
		return cli_fail(cli, ANSWER_FAILED, "%s: %s", ref->name, reason);
	return ANSWER_DONE;
}

enum answer ring_ref_open(struct cli *cli, const char *text, const char *file, struct ring_ref *ret)
{
	struct ring_ref ref = {.name = strdup(text)};
	char *copy = strdup(text);
	enum answer answer = ANSWER_DONE;

	if (ref.name == NULL || copy == NULL)
		answer = cli_fail(cli, ANSWER_FAILED, "out of memory");
	struct pieces pieces = copy ? cut(copy) : (struct pieces){0};

	if (answer == ANSWER_DONE)
		answer = load(cli, &pieces, file, &ref);
	if (answer == ANSWER_DONE)
		answer = read_version(cli, pieces.version, &ref);
	if (answer == ANSWER_DONE)
		answer = build(cli, &pieces, &ref);
	free(copy);
	if (answer == ANSWER_DONE)
		*ret = ref;
	else
		ring_ref_free(&ref);
	return answer;
}

void ring_ref_free(struct ring_ref *ref)
{
	pool_ring_free(&ref->ring);
	config_pools_free(ref->pools);
	json_decref(ref->balanced);
	free(ref->image);
	free(ref->name);
	*ref = (struct ring_ref){0};
}

void ring_ref_weights(const struct ring_ref *ref, uint32_t *ret)
{
	for (uint32_t i = 0; i < ref->ring.spec.member_count; i++)
		ret[i] = ref->ring.spec.members[i].weight;
}
