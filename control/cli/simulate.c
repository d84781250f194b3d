// SPDX-License-Identifier: Apache-2.0
#include "control/cli/simulate.h"

#include "control/cli/files.h"
#include "control/cli/request.h"
#include "control/cli/simulate_balanced.h"
#include "control/ring/build.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETS_MAX       256u // address sets
#define POINTS_MAX     100000u
#define STEPS_MAX      64u
#define PORT           80
#define NAMED_VERSIONS 3u

// What a run simulates.
struct model {
	enum ring_version version;
	uint32_t points; // a weight
	uint32_t count;  // backends
	uint32_t *weights;
	uint64_t runs;
	uint64_t seed;
	uint64_t workers;
	uint64_t nodes;
	struct ring_spec_member *members; // of the run, in any order
	const struct config_pool *pool;   // whose own addresses make the first run; NULL: none
};

// The mean of some rings that differ in their addresses only.
struct measured {
	double square_sum[2];        // of the spreads, by tie rule: [0] fixed order, [1] fair
	struct ring_balance balance; // of the first ring, with the ties of the version
	uint64_t generated;
	uint64_t distinct; // sum over the runs
	uint64_t build_ns; // the fastest
	uint64_t image_bytes;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Backend i of address set r is 10.r.(i/254).(1 + i%254), or 10.r+i/65024... beyond 65,024 of them.
static struct ip_addr address_of(uint64_t set, uint32_t i)
{
	struct ip_addr address = {.family = ADDR_V4};

	address.bytes[0] = (uint8_t)(10 + i / 65024);
	address.bytes[1] = (uint8_t)set;
	address.bytes[2] = (uint8_t)(i / 254 % 256);
	address.bytes[3] = (uint8_t)(1 + i % 254);
	return address;
}

// The backends of a run: those of the pool in its first one, else those of an address set.
static void place_members(struct model *model, uint64_t run)
{
	const struct config_backend *own = model->pool && run == 0 ? model->pool->backends : NULL;

	for (uint32_t i = 0; i < model->count; i++)
		model->members[i] = (struct ring_spec_member){
			.address = own ? own[i].address : address_of(model->seed + run, i),
			.port = own ? (uint16_t)own[i].port : PORT,
			.weight = model->weights[i],
			.backend = i,
		};
}

// Builds one ring and adds what it shows. index: of the run.
static int measure_one(struct model *model, uint64_t index, uint64_t *arcs, uint32_t *weights,
	struct measured *ret, struct ring_error *error)
{
	struct ring_spec spec = {.version = model->version,
		.points = model->points,
		.member_count = model->count,
		.members = model->members};
	struct ring_balance balance;
	struct ring_points *points;
	uint64_t started;
	int failed;

	place_members(model, index);
	failed = ring_spec_normalise(&spec, error);
	if (failed)
		return failed;
	started = now_ns();
	failed = ring_points_build(&spec, &points);
	if (failed)
		return failed;
	started = now_ns() - started;
	if (index == 0 || started < ret->build_ns)
		ret->build_ns = started;
	for (uint32_t i = 0; i < model->count; i++)
		weights[i] = spec.members[i].weight;
	for (int fair = 0; fair < 2; fair++) {
		ring_points_arcs(points, fair ? RING_V3 : RING_V2, arcs);
		ring_balance_measure(arcs, weights, model->count, &balance);
		ret->square_sum[fair] += balance.cv * balance.cv;
		if (index == 0 && fair == (model->version == RING_V3))
			ret->balance = balance;
	}
	ret->generated = ring_points_generated(points);
	ret->distinct += ring_points_count(points);
	ret->image_bytes = ring_points_image_bytes(points);
	ring_points_free(points);
	return 0;
}

static enum answer measure(struct cli *cli, struct model *model, struct measured *ret)
{
	uint64_t *arcs = calloc(model->count, sizeof(*arcs));
	uint32_t *weights = calloc(model->count, sizeof(*weights));
	struct ring_error error = {"out of memory"};
	int failed = arcs && weights ? 0 : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	for (uint64_t i = 0; i < model->runs && !failed; i++)
		failed = measure_one(model, i, arcs, weights, ret, &error);
	free(arcs);
	free(weights);
	if (failed)
		return cli_fail(
			cli, failed == -E2BIG ? ANSWER_REFUSED : ANSWER_FAILED, "%s", error.text);
	return ANSWER_DONE;
}

static double measured_cv(const struct model *model, const struct measured *measured, bool fair)
{
	return sqrt(measured->square_sum[fair] / (double)model->runs);
}

static uint64_t weight_total(const struct model *model)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < model->count; i++)
		sum += model->weights[i];
	return sum;
}

// The most points a weight that an image of these backends can have.
static uint32_t points_max(const struct model *model)
{
	uint64_t total = weight_total(model);

	return total < RING_POINTS_MAX ? (uint32_t)(RING_POINTS_MAX / total) : 1;
}

static json_t *balance_json(const struct ring_balance *balance)
{
	return json_pack("{s:f, s:f}", "hottest_ratio", balance->hottest_ratio, "coldest_ratio",
		balance->coldest_ratio);
}

static void add_memory(const struct model *model, enum ring_version version, uint64_t points,
	uint64_t bytes, json_t *rows)
{
	char name[4];

	// More points than an image may have: there is no ring of this version.
	if (bytes == UINT64_MAX)
		return;
	snprintf(name, sizeof(name), "v%d", version);
	json_array_append_new(rows,
		json_pack("{s:s, s:I, s:f, s:I, s:I, s:I}", "name", name, "points",
			(json_int_t)points, "bytes_per_point", (double)bytes / (double)points,
			"core_bytes", (json_int_t)bytes, "node_bytes",
			(json_int_t)(bytes * model->workers), "fleet_bytes",
			(json_int_t)(bytes * model->workers * model->nodes)));
}

// Memory of these backends in each version: v1 at its 160 points a weight, v2 at the points of the run, v3 with as many
// points for a backend of mean weight, since there a weight is a share and no number of points.
// balanced: the v3 ring if it was built, else NULL.
static json_t *memory_json(const struct model *model, const json_t *balanced)
{
	json_t *rows = json_array();
	uint64_t total = weight_total(model), v3_points = (uint64_t)model->count * model->points;
	uint64_t v3_bytes = ring_image_bytes(RING_V3, v3_points, model->count);

	if (balanced != NULL) {
		v3_points = (uint64_t)json_integer_value(json_object_get(balanced, "points"));
		v3_bytes = (uint64_t)json_integer_value(json_object_get(balanced, "core_bytes"));
	}
	add_memory(model, RING_V1, total * RING_V1_POINTS,
		ring_image_bytes(RING_V1, total * RING_V1_POINTS, model->count), rows);
	add_memory(model, RING_V2, total * model->points,
		ring_image_bytes(RING_V2, total * model->points, model->count), rows);
	add_memory(model, RING_V3, v3_points, v3_bytes, rows);
	return rows;
}

// The ring as v3 has it: points chosen for balance. NULL for more points than the balancer takes.
static json_t *balanced_json(struct model *model, struct ring_error *error)
{
	struct simulate_balanced balanced;

	if (model->points > BALANCE_POINTS_MAX)
		return NULL;
	place_members(model, 0);
	if (simulate_balanced(model->members, model->count, model->points, &balanced, error) != 0)
		return NULL;
	return json_pack("{s:i, s:f, s:f, s:f, s:I, s:I, s:I}", "points", (int)balanced.points,
		"cv_share", balanced.balance.cv, "hottest_ratio", balanced.balance.hottest_ratio,
		"coldest_ratio", balanced.balance.coldest_ratio, "core_bytes",
		(json_int_t)balanced.bytes, "choose_ns", (json_int_t)balanced.choose_ns, "build_ns",
		(json_int_t)balanced.build_ns);
}

static json_t *simulation_json(const struct model *model, const struct measured *measured)
{
	bool fair = model->version == RING_V3;
	double predicted = ring_balance_predict(model->weights, model->count, model->points);
	double with_ties = fair
		? predicted
		: ring_balance_predict_fixed_ties(model->weights, model->count, model->points);
	char version[4];

	snprintf(version, sizeof(version), "v%d", model->version);
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:f, s:f, s:I}", "version",
		version, "backends", (json_int_t)model->count, "points_per_weight",
		(json_int_t)model->points, "points", (json_int_t)measured->generated, "runs",
		(json_int_t)model->runs, "predicted_cv_share", predicted,
		"predicted_with_ties_cv_share", with_ties, "simulated_cv_share",
		measured_cv(model, measured, fair), "first_run", balance_json(&measured->balance),
		"collisions_expected", ring_balance_collisions(measured->generated), "collisions",
		(double)measured->generated - (double)measured->distinct / (double)model->runs,
		"build_ns", (json_int_t)measured->build_ns);
}

static enum answer simulate_one(struct cli *cli, struct model *model)
{
	struct ring_error error;
	struct measured measured;
	enum answer answer = measure(cli, model, &measured);
	json_t *result, *balanced;

	if (answer != ANSWER_DONE)
		return answer;
	result = simulation_json(model, &measured);
	if (result == NULL)
		return cli_fail(cli, ANSWER_FAILED, "out of memory");
	balanced = model->version == RING_V3 ? balanced_json(model, &error) : NULL;
	if (balanced != NULL)
		json_object_set_new(result, "balanced", balanced);
	json_object_set_new(result, "memory", memory_json(model, balanced));
	answer = request_print(cli, result);
	json_decref(result);
	return answer;
}

static json_t *target_json(
	const char *name, bool reached, uint32_t points, double cv, uint64_t bytes)
{
	return json_pack("{s:s, s:b, s:I, s:f, s:o}", "name", name, "reached", reached,
		"points_per_weight", (json_int_t)points, "cv_share", cv, "core_bytes",
		bytes == UINT64_MAX ? json_null() : json_integer((json_int_t)bytes));
}

// By the formula: v2 with its fixed ties, and random points with fair ones.
static void add_random_targets(const struct model *model, double target, json_t *rows)
{
	for (int fixed_ties = 1; fixed_ties >= 0; fixed_ties--) {
		uint32_t best = 0;
		uint32_t points = ring_balance_points_for(
			model->weights, model->count, target, fixed_ties, points_max(model), &best);
		uint32_t shown = points ? points : best;
		double cv = fixed_ties
			? ring_balance_predict_fixed_ties(model->weights, model->count, shown)
			: ring_balance_predict(model->weights, model->count, shown);

		json_array_append_new(rows,
			target_json(fixed_ties ? "v2" : "fair ties", points != 0, shown, cv,
				ring_image_bytes(fixed_ties ? RING_V2 : RING_V3,
					weight_total(model) * shown, model->count)));
	}
}

// By trying: the balancer with more and more points.
static void add_balanced_target(struct model *model, double target, json_t *rows)
{
	static const uint32_t tries[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
	struct simulate_balanced balanced = {0};
	struct ring_error error;
	uint32_t points = 0;

	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		place_members(model, 0);
		if (simulate_balanced(model->members, model->count, tries[i], &balanced, &error) !=
			0)
			return;
		points = tries[i];
		if (balanced.balance.cv <= target)
			break;
	}
	json_array_append_new(rows,
		target_json("v3", balanced.balance.cv <= target, points, balanced.balance.cv,
			balanced.bytes));
}

static enum answer simulate_target(struct cli *cli, struct model *model)
{
	json_t *rows = json_array(), *result;
	double target = 0;
	enum answer answer = cli_real(cli, CLI_TARGET_CV, 1e-6, 1, &target);

	if (answer != ANSWER_DONE) {
		json_decref(rows);
		return answer;
	}
	add_random_targets(model, target, rows);
	add_balanced_target(model, target, rows);
	result = json_pack("{s:I, s:f, s:o}", "backends", (json_int_t)model->count,
		"target_cv_share", target, "versions", rows);
	answer =
		result ? request_print(cli, result) : cli_fail(cli, ANSWER_FAILED, "out of memory");
	json_decref(result);
	return answer;
}

// The steps of a sweep: 1, 2, 5, 10, ... between the ends, and the ends themselves.
static unsigned make_steps(uint32_t from, uint32_t to, struct simulate_step steps[STEPS_MAX])
{
	static const uint32_t factors[] = {2, 5, 10};
	unsigned count = 0;

	steps[count++].points = from;
	for (uint32_t decade = 1; decade < to; decade *= 10) {
		for (unsigned i = 0; i < 3; i++) {
			if (decade * factors[i] > from && decade * factors[i] < to)
				steps[count++].points = decade * factors[i];
		}
		// The points that v1 and v2 are known by.
		if (decade * 16 > from && decade * 16 < to && decade <= 10)
			steps[count++].points = decade * 16;
	}
	if (to > from)
		steps[count++].points = to;
	return count;
}

static int compare_steps(const void *a, const void *b)
{
	const struct simulate_step *left = a, *right = b;

	return left->points < right->points ? -1 : left->points > right->points;
}

static enum answer read_sweep(
	struct cli *cli, struct simulate_step steps[STEPS_MAX], unsigned *ret_count)
{
	const char *text = cli->value[CLI_SWEEP];
	unsigned from, to;
	int used = 0;

	if (sscanf(text, "points=%u..%u%n", &from, &to, &used) != 2 || text[used] != '\0' ||
		from < 1 || from > to || to > POINTS_MAX)
		return cli_fail(cli, ANSWER_USAGE,
			"--sweep: \"%s\" is no range: write points=1..100000, at most %u", text,
			POINTS_MAX);
	*ret_count = make_steps(from, to, steps);
	qsort(steps, *ret_count, sizeof(steps[0]), compare_steps);
	return ANSWER_DONE;
}

static json_t *step_json(const struct model *model, const struct simulate_step *step,
	const struct measured *measured)
{
	uint64_t total = weight_total(model) * step->points;

	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "points_per_weight",
		(json_int_t)step->points, "predicted_cv_share", step->predicted_cv,
		"fixed_ties_cv_share", step->fixed_ties_cv, "fair_ties_cv_share",
		step->fair_ties_cv, "collisions",
		(double)measured->generated - (double)measured->distinct / (double)model->runs,
		"v2_bytes", (json_int_t)ring_image_bytes(RING_V2, total, model->count), "v3_bytes",
		(json_int_t)ring_image_bytes(RING_V3, total, model->count), "build_ns",
		(json_int_t)measured->build_ns);
}

static enum answer simulate_sweep(struct cli *cli, struct model *model)
{
	struct simulate_step steps[STEPS_MAX] = {0};
	json_t *rows = json_array(), *result;
	unsigned count = 0;
	enum answer answer = read_sweep(cli, steps, &count);

	// Both tie rules are measured on one ring of plain points.
	model->version = RING_V2;
	for (unsigned i = 0; i < count && answer == ANSWER_DONE; i++) {
		struct measured measured;

		model->points = steps[i].points;
		answer = measure(cli, model, &measured);
		if (answer != ANSWER_DONE)
			break;
		steps[i].predicted_cv =
			ring_balance_predict(model->weights, model->count, steps[i].points);
		steps[i].fixed_ties_cv = measured_cv(model, &measured, false);
		steps[i].fair_ties_cv = measured_cv(model, &measured, true);
		json_array_append_new(rows, step_json(model, &steps[i], &measured));
	}
	result = json_pack("{s:I, s:I, s:o}", "backends", (json_int_t)model->count, "runs",
		(json_int_t)model->runs, "sweep", rows);
	if (answer == ANSWER_DONE)
		answer = request_print(cli, result);
	json_decref(result);
	if (answer == ANSWER_DONE && cli_has(cli, CLI_SVG)) {
		int error = simulate_draw(cli->value[CLI_SVG], steps, count, model->count);

		if (error)
			answer = cli_fail(cli, ANSWER_FAILED, "%s: %s", cli->value[CLI_SVG],
				strerror(-error));
	}
	return answer;
}

// Gives the weights of --weights to the backends in turn.
static enum answer read_weights(struct cli *cli, struct model *model)
{
	const char *text = cli_has(cli, CLI_WEIGHTS) ? cli->value[CLI_WEIGHTS] : "1";
	const char *c = text;

	for (uint32_t i = 0; i < model->count && model->pool != NULL; i++)
		model->weights[i] = model->pool->backends[i].weight;
	if (model->pool != NULL)
		return ANSWER_DONE;
	for (uint32_t i = 0; i < model->count; i++) {
		char *end;
		unsigned long weight = *c >= '0' && *c <= '9' ? strtoul(c, &end, 10) : 0;

		if (weight < 1 || weight > RING_WEIGHT_MAX || (*end != ',' && *end != '\0'))
			return cli_fail(cli, ANSWER_USAGE,
				"--weights: \"%s\" is no list of whole numbers from 1 to %u", text,
				RING_WEIGHT_MAX);
		model->weights[i] = (uint32_t)weight;
		c = *end == ',' ? end + 1 : text;
	}
	return ANSWER_DONE;
}

// Without --ring and --points: as the pool has it, else v2 with its usual points.
static enum answer read_version(struct cli *cli, struct model *model)
{
	static const char *const names[] = {"v1", "v2", "v3"};
	const char *text = cli_has(cli, CLI_RING) ? cli->value[CLI_RING]
		: model->pool ? config_ring_version_name(model->pool->ring.version)
			      : "v2";
	uint64_t points;
	enum answer answer;

	for (unsigned i = 0; i < NAMED_VERSIONS; i++) {
		if (strcmp(text, names[i]) == 0)
			model->version = (enum ring_version)(RING_V1 + i);
	}
	if (model->version == 0)
		return cli_fail(cli, ANSWER_USAGE, "--ring: \"%s\" is not v1, v2 or v3", text);
	points = model->version == RING_V1 ? RING_V1_POINTS : RING_POINTS_DEFAULT;
	if (model->pool != NULL && model->pool->ring.version == model->version)
		points = model->pool->ring.points;
	answer = cli_number(cli, CLI_POINTS, 1, RING_POINTS_MAX, &points);
	if (answer == ANSWER_DONE && model->version == RING_V1 && points != RING_V1_POINTS)
		return cli_fail(cli, ANSWER_USAGE,
			"--points: v1 always has %u points a weight; use --ring v2, or more weight",
			RING_V1_POINTS);
	model->points = (uint32_t)points;
	return answer;
}

static enum answer read_model(struct cli *cli, struct model *model)
{
	uint64_t count = model->pool ? model->pool->backend_count : 0;
	enum answer answer = read_version(cli, model);

	model->runs = model->workers = model->nodes = 1;
	if (answer == ANSWER_DONE && model->pool == NULL && !cli_has(cli, CLI_BACKENDS))
		answer = cli_fail(cli, ANSWER_USAGE,
			"say how many backends (--backends 100), or whose (-f pools.yaml POOL)");
	if (answer == ANSWER_DONE && model->pool != NULL &&
		(cli_has(cli, CLI_BACKENDS) || cli_has(cli, CLI_WEIGHTS)))
		answer = cli_fail(cli, ANSWER_USAGE, "the pool has its own backends and weights");
	if (answer == ANSWER_DONE && model->pool != NULL && count == 0)
		answer =
			cli_fail(cli, ANSWER_INVALID, "pool %s has no backends", model->pool->name);
	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_BACKENDS, 1, RING_MEMBERS_MAX, &count);
	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_RUNS, 1, SETS_MAX, &model->runs);
	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_SEED, 0, SETS_MAX - model->runs, &model->seed);
	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_WORKERS, 1, 1024, &model->workers);
	if (answer == ANSWER_DONE)
		answer = cli_number(cli, CLI_NODES, 1, 1000000, &model->nodes);
	model->count = (uint32_t)count;
	return answer;
}

// Runs what was asked for. model: read, without its arrays.
static enum answer simulate(struct cli *cli, struct model *model)
{
	enum answer answer;

	model->weights = calloc(model->count, sizeof(*model->weights));
	model->members = calloc(model->count, sizeof(*model->members));
	if (model->weights == NULL || model->members == NULL)
		answer = cli_fail(cli, ANSWER_FAILED, "out of memory");
	else
		answer = read_weights(cli, model);
	if (answer == ANSWER_DONE && cli_has(cli, CLI_SWEEP))
		answer = simulate_sweep(cli, model);
	else if (answer == ANSWER_DONE && cli_has(cli, CLI_TARGET_CV))
		answer = simulate_target(cli, model);
	else if (answer == ANSWER_DONE)
		answer = simulate_one(cli, model);
	free(model->weights);
	free(model->members);
	return answer;
}

enum answer simulate_run(struct cli *cli)
{
	struct config_pools *pools = NULL;
	struct model model = {0};
	enum answer answer = ANSWER_DONE;

	if (cli_has(cli, CLI_FILE) != (cli->operand_count == 1))
		return cli_fail(
			cli, ANSWER_USAGE, "a pool and its file go together: -f pools.yaml POOL");
	if (cli_has(cli, CLI_FILE)) {
		answer = files_pools(cli, cli->value[CLI_FILE], &pools);
		model.pool = pools ? config_pool_find(pools, cli->operand[0]) : NULL;
		if (answer == ANSWER_DONE && model.pool == NULL)
			answer = cli_fail(
				cli, ANSWER_NOT_FOUND, "there is no pool %s", cli->operand[0]);
	}
	if (answer == ANSWER_DONE)
		answer = read_model(cli, &model);
	if (answer == ANSWER_DONE)
		answer = simulate(cli, &model);
	config_pools_free(pools);
	return answer;
}
