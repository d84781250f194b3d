// SPDX-License-Identifier: Apache-2.0
// The frame of every CUnit program: it lists its tests once, runs them, and prints TAP for meson, one line a test.
#pragma once

#include <CUnit/CUnit.h>
#include <stdint.h>

struct test_case {
	const char *name; // says the behaviour: syn_to_draining_backend_goes_to_new_ring
	void (*run)(void);
};

// Runs the cases as one CUnit suite and prints TAP, with each failed assertion as a comment.
// Returns what main() returns: 0 when all passed, 1 when one failed or none ran.
int suite_run(const char *name, const struct test_case *cases, unsigned count);

// The seed of this run's random tests: RINGWAY_TEST_SEED if set, else the clock. Printed once as a TAP comment, so
// that a failure can be run again.
uint64_t suite_seed(void);

// The next number of a splitmix64 stream; state advances.
uint64_t suite_random(uint64_t *state);

// A line of the list of cases; the function's name says the behaviour.
// clang-format off
#define SUITE_CASE(name) {#name, name}
// clang-format on

#define SUITE_RUN(name, cases) suite_run(name, cases, sizeof(cases) / sizeof((cases)[0]))
