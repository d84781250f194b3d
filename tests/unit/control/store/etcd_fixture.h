// SPDX-License-Identifier: Apache-2.0
// A real cluster and a store on it, for the tests of the `etcd` backend.
#pragma once

#include "control/store/store.h"
#include "tests/lib/etcd.h"

extern struct etcd_cluster cluster;
extern struct config_store
	config; // of the stores that are opened next; a test may point it elsewhere

// Starts a cluster; a secure one with users on, config is then ETCD_USER's. Returns whether it runs.
bool fixture_begin(unsigned members, enum etcd_kind kind);
void fixture_end(void);

// Points config at a fresh prefix, which is an empty store, and at what fixture_begin() found good.
void fixture_reset(void);

// Opens a store, or prints why not and returns NULL.
struct store *fixture_open(const char *node);

uint64_t fixture_now_ms(void);
