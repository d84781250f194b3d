// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/control/daemon/node_fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[] = "/tmp/ringway-node-XXXXXX";
char store_path[64];
struct config_node config;

const char pools_text[POOLS_TEXT_BYTES] =
	"pools:\n"
	"  - name: web\n"
	"    ring: {version: v1}\n"
	"    backends:\n"
	"      - {name: a, address: 10.0.0.1, weight: 2, tags: [x]}\n"
	"      - {name: b, address: 10.0.0.2, tags: [x]}\n"
	"      - {name: c, address: 10.0.0.3}\n"
	"services:\n"
	"  - {name: http, address: 203.0.113.1, protocol: tcp, ports: [80], pool: web}\n"
	"  - {name: https, address: 203.0.113.1, protocol: tcp, ports: [443], pool: web}\n"
	"  - {name: some, address: 203.0.113.2, protocol: udp, pool: web, requires: [x]}\n"
	"  - {name: net, address: 203.0.113.0/24, protocol: tcp, pool: web, state: none}\n";

int entry_remove(const char *name, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(name);
}

struct node *node_start(void)
{
	char error[NODE_TEXT_BYTES] = "";
	struct node *node = NULL;

	if (node_open(&config, &node, error) != 0)
		printf("# %s\n", error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(node);
	return node;
}

struct node_request request_of(const char *verb)
{
	return (struct node_request){.verb = verb, .reason = "test"};
}

enum node_code apply_as(struct node *node, const struct node_request *request, const char *text)
{
	struct node_outcome outcome;
	struct config_report report;
	enum node_code code;

	config_report_init(&report, "pools.yaml", text, strlen(text));
	code = node_apply(node, request, &report, &outcome);
	CU_ASSERT_EQUAL(code, outcome.code);
	CU_ASSERT_NOT_EQUAL(strlen(outcome.text), 0);
	config_report_free(&report);
	node_outcome_free(&outcome);
	return code;
}

enum node_code apply(struct node *node, const char *text)
{
	struct node_request request = request_of("apply");

	return apply_as(node, &request, text);
}

struct node *fresh(void)
{
	struct node *node;

	nftw(store_path, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	node = node_start();
	CU_ASSERT_EQUAL_FATAL(apply(node, pools_text), NODE_OK);
	return node;
}

struct flow_key flow_to(const char *destination, uint16_t port, uint8_t protocol, uint32_t n)
{
	struct flow_key key = {.protocol = protocol, .family = ADDR_V4};
	uint32_t source = htonl(0xc6336400u + n);

	memcpy(key.source, &source, sizeof(source));
	inet_pton(AF_INET, destination, key.destination);
	key.source_port_be = htons((uint16_t)(1024 + n % 60000));
	key.destination_port_be = htons(port);
	return key;
}

enum node_code cutover(struct node *node, uint32_t version, uint32_t points, uint32_t share)
{
	struct node_request request = request_of("cutover.set");
	struct node_cutover wanted = {.pool = "web",
		.has_ring = version != 0,
		.ring = {.version = version, .points = points},
		.has_share = true,
		.share = share};
	struct node_outcome outcome;
	enum node_code code = node_cutover_set(node, &request, &wanted, &outcome);

	node_outcome_free(&outcome);
	return code;
}

void picks_take(const struct node *node, struct picks *ret)
{
	for (uint32_t n = 0; n < 3000; n++) {
		struct flow_key key = flow_to("203.0.113.1", 80, IPPROTO_TCP, n);
		struct ipc_explained explained;

		node_explain(node, &key, &explained);
		ret->backend[n] = explained.backend;
		ret->is_new[n] = explained.uses_new;
	}
}

int fixture_run(const char *name, const struct test_case *cases, unsigned count)
{
	int rc;

	if (mkdtemp(directory) == NULL)
		return 1;
	snprintf(store_path, sizeof(store_path), "%s/store", directory);
	config = (struct config_node){.node = "n",
		.run_dir = directory,
		.store = {.type = CONFIG_STORE_FILE, .path = store_path},
		.dataplane = {.services = 1024, .pools = 1024, .backends = 65536}};
	rc = suite_run(name, cases, count);
	nftw(directory, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}
