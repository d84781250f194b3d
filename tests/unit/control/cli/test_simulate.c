// SPDX-License-Identifier: Apache-2.0
// The mathematics of balance, and `ringway ring simulate` as a program sees it.
#include "control/cli/cli.h"
#include "control/ring/balance_stats.h"
#include "control/ring/build.h"
#include "control/ring/walk.h"
#include "tests/lib/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 16

static uint32_t *equal_weights(uint32_t count, uint32_t weight)
{
	uint32_t *weights = calloc(count, sizeof(*weights));

	for (uint32_t i = 0; i < count; i++)
		weights[i] = weight;
	return weights;
}

static void the_formula_gives_the_known_figures(void)
{
	static const struct {
		uint32_t count, points;
		double cv;
	} cases[] = {
		{100, 1, 0.9901},
		{100, 160, 0.07866},
		{100, 16, 0.2487},
		{100, 10000, 0.00995},
		{100, 100000, 0.003146},
		{2048, 16, 0.2499},
		{2048, 160, 0.07904},
		{2048, 10000, 0.009998},
		{2048, 100000, 0.003162},
		{1, 160, 0},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t *weights = equal_weights(cases[i].count, 1);

		CU_ASSERT_DOUBLE_EQUAL(
			ring_balance_predict(weights, cases[i].count, cases[i].points), cases[i].cv,
			cases[i].cv * 5e-4 + 1e-12);
		free(weights);
	}
}

static void weight_and_points_count_the_same(void)
{
	uint32_t *light = equal_weights(50, 1), *heavy = equal_weights(50, 625);

	CU_ASSERT_DOUBLE_EQUAL(
		ring_balance_predict(light, 50, 10000), ring_balance_predict(heavy, 50, 16), 1e-12);
	free(light);
	free(heavy);
}

static void fixed_ties_cost_what_was_measured_on_large_rings(void)
{
	uint32_t *weights = equal_weights(2048, 1);
	uint32_t best = 0;

	CU_ASSERT_DOUBLE_EQUAL(
		ring_balance_predict_fixed_ties(weights, 2048, 100000), 0.01407, 0.0003);
	// The best number of points is (6 * 2^64 / N^2)^(1/3), and 0.7 % is not passed.
	CU_ASSERT_EQUAL(ring_balance_points_for(weights, 2048, 0.005, 1, 1 << 17, &best), 0);
	CU_ASSERT_DOUBLE_EQUAL(best, cbrt(6 * pow(2, 64) / (2048.0 * 2048)), 100);
	CU_ASSERT_DOUBLE_EQUAL(
		ring_balance_predict_fixed_ties(weights, 2048, best), 0.0071, 0.0001);
	CU_ASSERT_EQUAL(ring_balance_points_for(weights, 2048, 0.005, 0, 1 << 17, &best), 39981);
	free(weights);
}

static void the_least_points_for_a_spread_are_the_least(void)
{
	static const double targets[] = {0.5, 0.2, 0.08, 0.05, 0.01};
	uint32_t weights[] = {1, 2, 3, 100, 625};

	for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		uint32_t best,
			points = ring_balance_points_for(weights, 5, targets[i], 0, 1 << 22, &best);

		CU_ASSERT(points > 0);
		CU_ASSERT(ring_balance_predict(weights, 5, points) <= targets[i]);
		CU_ASSERT(points == 1 || ring_balance_predict(weights, 5, points - 1) > targets[i]);
	}
}

static void collisions_match_the_birthday_estimate(void)
{
	// Known rings: 2,048 x 160 cut 13 of 327,680, 100 x 100,000 cut 11,525 of 10,000,000.
	CU_ASSERT_DOUBLE_EQUAL(ring_balance_collisions(327680), 12.5, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(ring_balance_collisions(10000000), 11632, 20);
	CU_ASSERT_EQUAL(ring_balance_collisions(0), 0);
}

static void measured_balance_is_that_of_the_arcs(void)
{
	const uint64_t arcs[] = {100, 300, 200};
	const uint32_t equal[] = {1, 1, 1}, fitting[] = {1, 3, 2};
	struct ring_balance balance;

	ring_balance_measure(arcs, equal, 3, &balance);
	CU_ASSERT_DOUBLE_EQUAL(balance.cv, sqrt((0.25 + 0.25 + 0) / 3), 1e-12);
	CU_ASSERT_EQUAL(balance.hottest, 1);
	CU_ASSERT_EQUAL(balance.coldest, 0);
	CU_ASSERT_DOUBLE_EQUAL(balance.hottest_ratio, 1.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(balance.coldest_ratio, 0.5, 1e-12);
	ring_balance_measure(arcs, fitting, 3, &balance);
	CU_ASSERT_DOUBLE_EQUAL(balance.cv, 0, 1e-12);
}

// Arcs read from points and from the image that they make are the same, for every version.
static void arcs_without_an_image_equal_those_of_the_image(void)
{
	for (enum ring_version version = RING_V1; version <= RING_V3; version++) {
		struct ring_spec_member members[50] = {0};
		struct ring_spec spec = {
			.version = version, .member_count = 50, .members = members};
		uint64_t from_points[50], from_image[50], sum = 0;
		struct ring_points *points;
		struct ring_error error;
		const char *reason;
		struct ring ring;

		for (uint32_t i = 0; i < 50; i++) {
			members[i].address.family = ADDR_V4;
			members[i].address.bytes[3] = (uint8_t)(1 + i);
			members[i].weight = 1 + i % 7;
		}
		CU_ASSERT_EQUAL_FATAL(ring_spec_normalise(&spec, &error), 0);
		CU_ASSERT_EQUAL_FATAL(ring_points_build(&spec, &points), 0);
		ring_points_arcs(points, version, from_points);
		size_t bytes = ring_points_image_bytes(points);
		void *image = aligned_alloc(RING_ALIGN, bytes);

		ring_points_write(points, image);
		CU_ASSERT_EQUAL_FATAL(ring_open(image, bytes, &ring, &reason), 0);
		ring_shares(&ring, from_image);
		CU_ASSERT_EQUAL(memcmp(from_points, from_image, sizeof(from_points)), 0);
		for (uint32_t i = 0; i < 50; i++)
			sum += from_points[i];
		CU_ASSERT_EQUAL(sum, UINT64_C(1) << 32);
		free(image);
		ring_points_free(points);
	}
}

static json_t *simulate(int expected, char **words)
{
	char *argv[WORDS_MAX + 4] = {"ringway", "--json", "ring", "simulate"}, *out, *err;
	size_t out_bytes, err_bytes;
	int argc = 4;
	json_t *ret;

	for (; words[argc - 4] != NULL; argc++)
		argv[argc] = words[argc - 4];
	FILE *out_file = open_memstream(&out, &out_bytes),
	     *err_file = open_memstream(&err, &err_bytes);
	int code = cli_main(argc, argv, out_file, err_file);

	fclose(out_file);
	fclose(err_file);
	CU_ASSERT_EQUAL(code, expected);
	CU_ASSERT_EQUAL(code == 0, err[0] == '\0');
	ret = json_loads(out, 0, NULL);
	free(out);
	free(err);
	return ret;
}

#define SIMULATE(code, ...) simulate(code, (char *[]){__VA_ARGS__, NULL})

static double real_at(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static void a_simulated_ring_keeps_to_the_formula(void)
{
	json_t *result = SIMULATE(0, "-b", "100", "--ring", "v1", "--runs", "50");

	CU_ASSERT_DOUBLE_EQUAL(real_at(result, "predicted_cv_share"), 0.07866, 0.00001);
	CU_ASSERT_DOUBLE_EQUAL(real_at(result, "simulated_cv_share"), 0.0786, 0.002);
	CU_ASSERT_EQUAL(real_at(result, "points"), 16000);
	json_decref(result);
}

static void weighted_rings_keep_to_the_weighted_formula(void)
{
	json_t *result = SIMULATE(0, "-b", "40", "--weights", "1,2,10,100", "--runs", "100");
	double predicted = real_at(result, "predicted_cv_share");

	CU_ASSERT_DOUBLE_EQUAL(real_at(result, "simulated_cv_share"), predicted, predicted * 0.1);
	json_decref(result);
}

static void memory_is_that_of_the_three_versions(void)
{
	json_t *result = SIMULATE(0, "-b", "2048", "--workers", "2", "--nodes", "10");
	const json_t *rows = json_object_get(result, "memory");

	CU_ASSERT_EQUAL_FATAL(json_array_size(rows), 3);
	CU_ASSERT_DOUBLE_EQUAL(
		real_at(json_array_get(rows, 0), "core_bytes"), 2048 * 160 * 8, 9000);
	CU_ASSERT_DOUBLE_EQUAL(real_at(json_array_get(rows, 1), "core_bytes"), 2048 * 16 * 6, 9000);
	CU_ASSERT(real_at(json_array_get(rows, 2), "bytes_per_point") < 4.6);
	for (unsigned i = 0; i < 3; i++) {
		const json_t *row = json_array_get(rows, i);

		CU_ASSERT_EQUAL(real_at(row, "node_bytes"), 2 * real_at(row, "core_bytes"));
		CU_ASSERT_EQUAL(real_at(row, "fleet_bytes"), 20 * real_at(row, "core_bytes"));
	}
	json_decref(result);
}

// What v3 is for: the spread of thousands of points a backend, at a few.
static void a_balanced_ring_beats_the_formula(void)
{
	json_t *result = SIMULATE(0, "-b", "500", "--ring", "v3");
	const json_t *balanced = json_object_get(result, "balanced");
	const json_t *v3 = json_array_get(json_object_get(result, "memory"), 2);

	CU_ASSERT(real_at(balanced, "cv_share") < 0.01);
	CU_ASSERT(real_at(balanced, "hottest_ratio") < 1.03);
	CU_ASSERT(real_at(result, "simulated_cv_share") > 0.2);
	CU_ASSERT_EQUAL(real_at(v3, "core_bytes"), real_at(balanced, "core_bytes"));
	json_decref(result);
	// Weights are shares: the number of points does not grow with them.
	result = SIMULATE(0, "-b", "100", "--weights", "1,2,625", "--ring", "v3");
	balanced = json_object_get(result, "balanced");
	CU_ASSERT(real_at(balanced, "points") < 2500);
	CU_ASSERT(real_at(balanced, "hottest_ratio") < 1.03);
	json_decref(result);
	result = SIMULATE(0, "-b", "200", "--target-cv", "1%");
	CU_ASSERT_TRUE(json_is_true(json_object_get(
		json_array_get(json_object_get(result, "versions"), 2), "reached")));
	CU_ASSERT(real_at(json_array_get(json_object_get(result, "versions"), 2),
			  "points_per_weight") <= 16);
	json_decref(result);
}

static void a_sweep_is_a_table_and_a_picture(void)
{
	char path[] = "/tmp/ringway-sweep-XXXXXX", text[256] = "";
	int file = mkstemp(path);
	json_t *result = SIMULATE(0, "-b", "100", "--sweep", "points=1..1000", "--svg", path);
	const json_t *rows = json_object_get(result, "sweep");
	FILE *picture = fdopen(file, "r");

	CU_ASSERT(json_array_size(rows) >= 10);
	CU_ASSERT_EQUAL(real_at(json_array_get(rows, 0), "points_per_weight"), 1);
	CU_ASSERT_EQUAL(
		real_at(json_array_get(rows, json_array_size(rows) - 1), "points_per_weight"),
		1000);
	CU_ASSERT(fread(text, 1, sizeof(text) - 1, picture) > 100);
	CU_ASSERT_EQUAL(strncmp(text, "<svg ", 5), 0);
	fclose(picture);
	remove(path);
	json_decref(result);
}

static void bad_models_are_refused(void)
{
	CU_ASSERT_PTR_NULL(SIMULATE(2, "--ring", "v2"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "0"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "65536"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--ring", "v4"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--ring", "v1", "--points", "16"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--weights", "1,0"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--weights", "1,x"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--sweep", "points=10..1"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--sweep", "points=1..10x"));
	CU_ASSERT_PTR_NULL(SIMULATE(2, "-b", "10", "--target-cv", "2"));
	CU_ASSERT_PTR_NULL(SIMULATE(8, "-b", "65535", "--points", "65535"));
}

int main(void)
{
	static const struct test_case cases[] = {
		{"the_formula_gives_the_known_figures", the_formula_gives_the_known_figures},
		{"weight_and_points_count_the_same", weight_and_points_count_the_same},
		{"fixed_ties_cost_what_was_measured_on_large_rings",
			fixed_ties_cost_what_was_measured_on_large_rings},
		{"the_least_points_for_a_spread_are_the_least",
			the_least_points_for_a_spread_are_the_least},
		{"collisions_match_the_birthday_estimate", collisions_match_the_birthday_estimate},
		{"measured_balance_is_that_of_the_arcs", measured_balance_is_that_of_the_arcs},
		{"arcs_without_an_image_equal_those_of_the_image",
			arcs_without_an_image_equal_those_of_the_image},
		{"a_simulated_ring_keeps_to_the_formula", a_simulated_ring_keeps_to_the_formula},
		{"weighted_rings_keep_to_the_weighted_formula",
			weighted_rings_keep_to_the_weighted_formula},
		{"memory_is_that_of_the_three_versions", memory_is_that_of_the_three_versions},
		{"a_balanced_ring_beats_the_formula", a_balanced_ring_beats_the_formula},
		{"a_sweep_is_a_table_and_a_picture", a_sweep_is_a_table_and_a_picture},
		{"bad_models_are_refused", bad_models_are_refused},
	};

	return SUITE_RUN("simulate", cases);
}
