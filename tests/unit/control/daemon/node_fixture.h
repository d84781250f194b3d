// SPDX-License-Identifier: Apache-2.0
// A node with a store of its own in /tmp and no dataplane, for the tests of the node.
#pragma once

#include "control/daemon/node.h"
#include "tests/lib/suite.h"

#include <ftw.h>
#include <sys/stat.h>

extern char store_path[64];
extern struct config_node config;

// One pool "web" (v1) of a, b and c, and four services; c has no tag x.
#define POOLS_TEXT_BYTES 1024u
extern const char pools_text[POOLS_TEXT_BYTES];

// For nftw(): removes what it is shown.
int entry_remove(const char *name, const struct stat *status, int type, struct FTW *ftw);

// Opens a node on the store as it is; on an empty one with pools_text applied.
struct node *node_start(void);
struct node *fresh(void);

struct node_request request_of(const char *verb);
enum node_code apply_as(struct node *node, const struct node_request *request, const char *text);
enum node_code apply(struct node *node, const char *text);

// Sets ring (version 0: none) and share of the cutover of "web".
enum node_code cutover(struct node *node, uint32_t version, uint32_t points, uint32_t share);

// Flow number n of many to a service.
struct flow_key flow_to(const char *destination, uint16_t port, uint8_t protocol, uint32_t n);

// What 3,000 flows to port 80 of 203.0.113.1 get.
struct picks {
	uint32_t backend[3000];
	bool is_new[3000];
};

void picks_take(const struct node *node, struct picks *ret);

// Runs cases as a suite around the store's directory. Returns what main() returns.
int fixture_run(const char *name, const struct test_case *cases, unsigned count);
