// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/established.h"

#include "tests/lib/suite.h"

static json_int_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void nodes_add_up_and_the_sample_weighs_them(void)
{
	struct established established = {.silent_count = 2};
	json_t *object;

	established_add(&established, &(struct established_node){1000, 30, 10});
	established_add(&established, &(struct established_node){500, 0, 60});
	object = established_write(&established);
	CU_ASSERT_EQUAL(number_of(object, "live_new"), 1500);
	CU_ASSERT_EQUAL(number_of(object, "sampled"), 100);
	CU_ASSERT_DOUBLE_EQUAL(
		json_real_value(json_object_get(object, "differ_ratio")), 0.7, 1e-12);
	CU_ASSERT_EQUAL(number_of(object, "moving"), 1050);
	CU_ASSERT_EQUAL(number_of(object, "nodes"), 2);
	CU_ASSERT_EQUAL(number_of(object, "nodes_silent"), 2);
	json_decref(object);
}

// Without a sample there is no estimate; 0 would be a lie.
static void without_a_sample_nobody_knows(void)
{
	struct established established = {0};
	json_t *object;

	established_add(&established, &(struct established_node){1000, 0, 0});
	object = established_write(&established);
	CU_ASSERT_EQUAL(number_of(object, "live_new"), 1000);
	CU_ASSERT_TRUE(json_is_null(json_object_get(object, "moving")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(object, "differ_ratio")));
	json_decref(object);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"nodes_add_up_and_the_sample_weighs_them",
			nodes_add_up_and_the_sample_weighs_them},
		{"without_a_sample_nobody_knows", without_a_sample_nobody_knows},
	};

	return SUITE_RUN("established", cases);
}
