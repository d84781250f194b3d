// SPDX-License-Identifier: Apache-2.0
// What every backend of the store must do. Each backend has a program that says how to open it and runs these.
#pragma once

#include "control/store/store.h"

struct contract_target {
	const char *name;
	// Opens a handle of a node. Handles of one test see one store; each test begins with an empty one.
	struct store *(*open)(const char *node);
	// Makes the next store empty. Called before each test, with no handle open.
	void (*reset)(void);
};

// Runs all tests against a backend. Returns what main() returns.
int contract_run(const struct contract_target *target);
