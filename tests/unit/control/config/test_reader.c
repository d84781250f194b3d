// SPDX-License-Identifier: Apache-2.0
#include "control/config/reader.h"

#include "control/config/pool_ring.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const char design_pools[] =
	"pools:\n"
	"  - name: web\n"
	"    ring: {version: v1}\n"
	"    backends:\n"
	"      - {name: web-1, address: 10.0.0.11, weight: 100, tags: [nvme, eu]}\n"
	"      - {name: web-2, address: 10.0.0.12, weight: 200, tags: [nvme]}\n"
	"services:\n"
	"  - name: https\n"
	"    address: 203.0.113.10\n"
	"    protocol: tcp\n"
	"    ports: [443]\n"
	"    pool: web\n"
	"    requires: [nvme]\n"
	"    affinity: flow\n"
	"    tunnel: {type: gue}\n";

// Wraps one service line around what a test wants to see refused.
static const char one_pool[] = "pools: [{name: web, ring: {version: v1}, backends: ["
			       "{name: a, address: 10.0.0.1}]}]\n";

struct refusal {
	const char *text;
	enum config_code code;
	uint32_t line;
	uint32_t column;
};

static struct config_pools *read_good(const char *text)
{
	struct config_pools *pools = NULL;
	struct config_report report;

	config_report_init(&report, "good", text, strlen(text));
	CU_ASSERT_EQUAL(config_pools_read(&report, &pools), 0);
	config_report_print(&report, stdout);
	config_report_free(&report);
	return pools;
}

static bool report_has(const struct config_report *report, const struct refusal *wanted)
{
	for (uint32_t i = 0; i < report->finding_count; i++) {
		const struct config_finding *f = &report->findings[i];

		if (f->code == wanted->code && f->line == wanted->line &&
			f->column == wanted->column)
			return true;
	}
	return false;
}

static void expect_pools_refused(const struct refusal *wanted)
{
	struct config_pools *pools = NULL;
	struct config_report report;
	bool met;

	config_report_init(&report, "bad", wanted->text, strlen(wanted->text));
	CU_ASSERT_EQUAL(config_pools_read(&report, &pools), -EINVAL);
	CU_ASSERT_PTR_NULL(pools);
	met = report_has(&report, wanted);
	CU_ASSERT_TRUE(met);
	if (!met) {
		printf("# wanted CFG%03d at %u:%u\n", wanted->code, wanted->line, wanted->column);
		config_report_print(&report, stdout);
	}
	config_report_free(&report);
}

static void expect_node_refused(const struct refusal *wanted)
{
	struct config_node *node = NULL;
	struct config_report report;
	bool met;

	config_report_init(&report, "bad", wanted->text, strlen(wanted->text));
	CU_ASSERT_EQUAL(config_node_read(&report, &node), -EINVAL);
	CU_ASSERT_PTR_NULL(node);
	met = report_has(&report, wanted);
	CU_ASSERT_TRUE(met);
	if (!met) {
		printf("# wanted CFG%03d at %u:%u\n", wanted->code, wanted->line, wanted->column);
		config_report_print(&report, stdout);
	}
	config_report_free(&report);
}

static void pools_of_the_design_are_read_whole(void)
{
	struct config_pools *pools = read_good(design_pools);
	const struct config_pool *web;
	const struct config_service *https;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
	web = config_pool_find(pools, "web");
	https = config_service_find(pools, "https");
	CU_ASSERT_PTR_NOT_NULL_FATAL(web);
	CU_ASSERT_PTR_NOT_NULL_FATAL(https);
	CU_ASSERT_EQUAL(web->ring.version, RING_V1);
	CU_ASSERT_EQUAL(web->ring.points, 160);
	CU_ASSERT_EQUAL(web->backend_count, 2);
	CU_ASSERT_EQUAL(web->backends[1].weight, 200);
	CU_ASSERT_EQUAL(web->backends[0].tag_count, 2);
	CU_ASSERT_STRING_EQUAL(web->backends[0].tags[0], "eu");
	CU_ASSERT_EQUAL(web->backends[0].state, CONFIG_BACKEND_UP);
	CU_ASSERT_EQUAL(https->protocol, IPPROTO_TCP);
	CU_ASSERT_EQUAL(https->address.bits, 32);
	CU_ASSERT_EQUAL(https->ports[0], 443);
	CU_ASSERT_EQUAL(https->tunnel.type, SNAPSHOT_TUNNEL_GUE);
	CU_ASSERT_EQUAL(https->tunnel.port, 6080);
	CU_ASSERT_EQUAL(https->timeouts.established_s, 900);
	CU_ASSERT_TRUE(config_backend_eligible(&web->backends[0], https));
	config_pools_free(pools);
}

static void json_is_read_by_the_same_reader(void)
{
	struct config_pools *pools = read_good(
		"{\"pools\": [{\"name\": \"web\", \"ring\": {\"version\": \"v2\"},"
		" \"backends\": [{\"name\": \"a\", \"address\": \"2001:db8::1\", \"port\": 80}]}],\n"
		" \"services\": [{\"name\": \"dns\", \"address\": \"2001:db8:53::/48\","
		" \"protocol\": \"udp\", \"pool\": \"web\", \"state\": \"none\","
		" \"timeouts\": {\"udp\": \"2m\"}}]}");

	CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
	CU_ASSERT_EQUAL(pools->pools[0].ring.points, CONFIG_POINTS_DEFAULT);
	CU_ASSERT_EQUAL(pools->pools[0].backends[0].port, 80);
	CU_ASSERT_EQUAL(pools->services[0].address.bits, 48);
	CU_ASSERT_EQUAL(pools->services[0].port_count, 0);
	CU_ASSERT_EQUAL(pools->services[0].timeouts.udp_s, 120);
	CU_ASSERT_EQUAL(pools->services[0].state, CONFIG_STATE_NONE);
	config_pools_free(pools);
}

static void empty_file_is_an_empty_configuration(void)
{
	struct config_pools *pools = read_good("# nothing yet\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
	CU_ASSERT_EQUAL(pools->pool_count, 0);
	config_pools_free(pools);
}

static void words_are_typed_by_the_schema_alone(void)
{
	// What YAML 1.1 would take for a bool, a float and a base-60 number are names here.
	struct config_pools *pools = read_good(
		"pools:\n"
		"  - {name: no, ring: {version: v1}, backends: [{name: 1.5, address: 10.0.0.1,"
		" tags: [on, 22.22]}]}\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
	CU_ASSERT_STRING_EQUAL(pools->pools[0].name, "no");
	CU_ASSERT_STRING_EQUAL(pools->pools[0].backends[0].tags[1], "on");
	config_pools_free(pools);
}

static void other_yaml_is_refused_at_its_place(void)
{
	static const struct refusal refusals[] = {
		{"pools: &a []\n", CONFIG_FEATURE, 1, 8},
		{"pools: *a\n", CONFIG_FEATURE, 1, 8},
		{"pools: !!seq []\n", CONFIG_FEATURE, 1, 8},
		{"pools: []\n---\nservices: []\n", CONFIG_FEATURE, 2, 1},
		{"<<: {}\n", CONFIG_FEATURE, 1, 1},
		{"? [a]\n: b\n", CONFIG_FEATURE, 1, 3},
		{"pools: [\n", CONFIG_SYNTAX, 2, 1},
		{"pools:\n\t- a\n", CONFIG_SYNTAX, 2, 1},
		{"just text\n", CONFIG_WRONG_KIND, 1, 1},
		{"[1, 2]\n", CONFIG_WRONG_KIND, 1, 1},
		{"a: [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\n", CONFIG_LIMIT, 1, 19},
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		expect_pools_refused(&refusals[i]);
}

static void bad_keys_and_values_are_refused_at_their_place(void)
{
	static const struct refusal refusals[] = {
		{"poools: []\n", CONFIG_UNKNOWN_KEY, 1, 1},
		{"pools: []\nservices: []\npools: []\n", CONFIG_DUPLICATE_KEY, 3, 1},
		{"pools: {}\n", CONFIG_WRONG_KIND, 1, 1},
		{"pools: [a]\n", CONFIG_WRONG_KIND, 1, 9},
		{"unknown: [drop]\n", CONFIG_WRONG_KIND, 1, 1},
		{"unknown: maybe\n", CONFIG_BAD_CHOICE, 1, 10},
		{"unknown:\n", CONFIG_BAD_VALUE, 1, 9},
		{"pools:\n  - {name: a b, ring: {version: v1}}\n", CONFIG_BAD_VALUE, 2, 12},
		{"pools:\n  - {name: web}\n", CONFIG_MISSING_KEY, 2, 5},
		{"pools:\n  - {name: web, ring: {version: v4}}\n", CONFIG_BAD_CHOICE, 2, 33},
		{"pools:\n  - {name: web, ring: {version: v1, points: 16}}\n", CONFIG_CONFLICT, 2,
			45},
		{"pools:\n  - {name: web, ring: {version: v2, points: 16, balance: 0.01}}\n",
			CONFIG_CONFLICT, 2, 58},
		{"pools:\n  - {name: web, ring: {version: v3, balance: 0.0000001}}\n",
			CONFIG_BAD_VALUE, 2, 46},
		{"pools:\n  - {name: web, ring: {version: v3, balance: 2}}\n", CONFIG_OUT_OF_RANGE,
			2, 46},
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		expect_pools_refused(&refusals[i]);
}

static void bad_backends_are_refused_at_their_place(void)
{
	static const char head[] =
		"pools:\n  - name: web\n    ring: {version: v1}\n    backends:\n";
	static const struct refusal refusals[] = {
		{"      - {name: a, address: 10.0.0.1, weight: 0}\n", CONFIG_OUT_OF_RANGE, 5, 46},
		{"      - {name: a, address: 10.0.0.1, weight: 70000}\n", CONFIG_OUT_OF_RANGE, 5,
			46},
		{"      - {name: a, address: 10.0.0.1, weight: -1}\n", CONFIG_BAD_VALUE, 5, 46},
		{"      - {name: a, address: 10.0.0.1, weight: 1e3}\n", CONFIG_BAD_VALUE, 5, 46},
		{"      - {name: a, address: 10.0.0.256}\n", CONFIG_BAD_VALUE, 5, 28},
		{"      - {name: a, address: 10.0.0.1, port: 65536}\n", CONFIG_OUT_OF_RANGE, 5, 44},
		{"      - {name: a, address: 10.0.0.1, tags: [x, y, x]}\n", CONFIG_DUPLICATE_NAME,
			5, 38},
		{"      - {name: a, address: 10.0.0.1, state: maint}\n", CONFIG_BAD_CHOICE, 5, 45},
		{"      - {name: a, address: 10.0.0.1, server: \"x:80\"}\n", CONFIG_CONFLICT, 5,
			46},
		{"      - {name: a, address: 10.0.0.1}\n      - {name: a, address: 10.0.0.2}\n",
			CONFIG_DUPLICATE_NAME, 6, 16},
		{"      - {name: a, address: \"2001:db8::1\"}\n"
		 "      - {name: b, address: \"2001:db8:0::0:1\"}\n",
			CONFIG_DUPLICATE_ADDRESS, 6, 28},
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct refusal whole = refusals[i];
		char text[512];

		snprintf(text, sizeof(text), "%s%s", head, refusals[i].text);
		whole.text = text;
		expect_pools_refused(&whole);
	}
}

static void bad_services_are_refused_at_their_place(void)
{
	static const struct refusal refusals[] = {
		{"services:\n  - {name: s, address: 203.0.113.1, protocol: tcp, pool: wbe}\n",
			CONFIG_UNKNOWN_NAME, 3, 58},
		{"services:\n  - {name: s, address: 203.0.113.1/24, protocol: tcp, pool: web}\n",
			CONFIG_BAD_VALUE, 3, 24},
		{"services:\n  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web,"
		 " ports: [443, 80, 443]}\n",
			CONFIG_DUPLICATE_NAME, 3, 80},
		{"services:\n"
		 "  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web, ports: [80]}\n"
		 "  - {name: t, address: 203.0.113.1, protocol: tcp, pool: web, ports: [81, 80]}\n",
			CONFIG_SAME_TRAFFIC, 4, 75},
		{"services:\n"
		 "  - {name: s, address: 203.0.113.1, protocol: udp, pool: web}\n"
		 "  - {name: t, address: 203.0.113.1, protocol: udp, pool: web}\n",
			CONFIG_SAME_TRAFFIC, 4, 24},
		{"services:\n  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web,"
		 " tunnel: {source4: \"2001:db8::/64\"}}\n",
			CONFIG_BAD_VALUE, 3, 81},
		{"services:\n  - {name: s, address: 203.0.113.1, protocol: tcp, pool: web,"
		 " timeouts: {udp: 3h}}\n",
			CONFIG_OUT_OF_RANGE, 3, 79},
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct refusal whole = refusals[i];
		char text[1024];

		snprintf(text, sizeof(text), "%s%s", one_pool, refusals[i].text);
		whole.text = text;
		expect_pools_refused(&whole);
	}
}

// The port is told apart from any port, the address from a prefix, TCP from UDP.
static void unlike_bindings_are_no_conflict(void)
{
	char text[1024];
	struct config_pools *pools;

	snprintf(text, sizeof(text),
		"%sservices:\n"
		"  - {name: a, address: 203.0.113.1, protocol: tcp, pool: web, ports: [80]}\n"
		"  - {name: b, address: 203.0.113.1, protocol: tcp, pool: web}\n"
		"  - {name: c, address: 203.0.113.1, protocol: udp, pool: web, ports: [80]}\n"
		"  - {name: d, address: 203.0.113.0/24, protocol: tcp, pool: web, ports: [80]}\n"
		"  - {name: e, address: 203.0.113.0/25, protocol: tcp, pool: web, ports: [80]}\n",
		one_pool);
	pools = read_good(text);
	CU_ASSERT_PTR_NOT_NULL(pools);
	config_pools_free(pools);
}

static void nginx_text_seeds_the_ring_as_it_is_written(void)
{
	struct config_pools *pools = read_good(
		"pools:\n"
		"  - name: web\n"
		"    ring: {version: v1, seed: nginx}\n"
		"    backends:\n"
		"      - {name: a, address: 10.0.0.1, server: \"a.example.net:80\"}\n"
		"      - {name: b, address: \"2001:db8::1\", port: 80}\n"
		"      - {name: c, address: \"2001:db8::2\", server: \"[2001:DB8:0::2]\"}\n");
	struct ring_error error;
	struct pool_ring ring;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pools);
	CU_ASSERT_EQUAL_FATAL(
		pool_ring_spec(&pools->pools[0], &pools->pools[0].ring, NULL, 0, &ring, &error), 0);
	CU_ASSERT_STRING_EQUAL(ring.spec.members[0].text, "a.example.net:80");
	CU_ASSERT_STRING_EQUAL(ring.spec.members[1].text, "[2001:db8::1]:80");
	CU_ASSERT_STRING_EQUAL(ring.spec.members[2].text, "[2001:DB8:0::2]");
	pool_ring_free(&ring);
	config_pools_free(pools);
}

static void service_without_backends_is_a_warning(void)
{
	char text[512];
	struct config_pools *pools = NULL;
	struct config_report report;

	snprintf(text, sizeof(text),
		"%sservices: [{name: a, address: 203.0.113.1, protocol: tcp, pool: web,"
		" requires: [gpu]}]\n",
		one_pool);
	config_report_init(&report, "warned", text, strlen(text));
	CU_ASSERT_EQUAL(config_pools_read(&report, &pools), 0);
	CU_ASSERT_EQUAL(report.warning_count, 1);
	CU_ASSERT_EQUAL(report.findings[0].code, CONFIG_NO_BACKEND);
	config_report_free(&report);
	config_pools_free(pools);
}

static void all_errors_of_a_file_come_at_once(void)
{
	// Schema and reference errors together, in the order of the file.
	static const char text[] = "pools:\n"
				   "  - {name: web, ring: {version: v9}, bakends: []}\n"
				   "services:\n"
				   "  - {name: s, address: nowhere, protocol: tcp, pool: wbe}\n";
	static const struct refusal wanted[] = {
		{NULL, CONFIG_BAD_CHOICE, 2, 33},
		{NULL, CONFIG_UNKNOWN_KEY, 2, 38},
		{NULL, CONFIG_BAD_VALUE, 4, 24},
		{NULL, CONFIG_UNKNOWN_NAME, 4, 54},
	};
	struct config_pools *pools = NULL;
	struct config_report report;

	config_report_init(&report, "bad", text, strlen(text));
	CU_ASSERT_EQUAL(config_pools_read(&report, &pools), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(report.finding_count, 4);
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(report.findings[i].code, wanted[i].code);
		CU_ASSERT_EQUAL(report.findings[i].line, wanted[i].line);
		CU_ASSERT_EQUAL(report.findings[i].column, wanted[i].column);
	}
	config_report_free(&report);
}

static void more_errors_than_are_kept_are_counted(void)
{
	char text[8192];
	size_t used = (size_t)snprintf(text, sizeof(text), "pools:\n");
	struct config_pools *pools = NULL;
	struct config_report report;

	for (unsigned i = 0; i < 150; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  - %u\n", i);
	config_report_init(&report, "bad", text, used);
	CU_ASSERT_EQUAL(config_pools_read(&report, &pools), -EINVAL);
	CU_ASSERT_EQUAL(report.error_count, 150);
	CU_ASSERT_EQUAL(report.finding_count, CONFIG_FINDINGS_MAX);
	config_report_free(&report);
}

static void one_backend_more_than_a_ring_takes_is_refused(void)
{
	const unsigned count = CONFIG_BACKENDS_MAX + 1;
	char *text = malloc(count * 64u);
	size_t used =
		(size_t)sprintf(text, "pools:\n- name: a\n  ring: {version: v2}\n  backends:\n");
	struct refusal wanted = {text, CONFIG_LIMIT, 4, 3};

	for (unsigned i = 0; i < count; i++)
		used += (size_t)sprintf(text + used, "  - {name: b%u, address: 10.%u.%u.%u}\n", i,
			i >> 16, i >> 8 & 255, i & 255);
	expect_pools_refused(&wanted);
	free(text);
}

static const char design_node[] = "node: lb-ams01-1\n"
				  "datacenter: ams01\n"
				  "store: {type: file, path: /var/lib/ringway}\n"
				  "dataplane:\n"
				  "  eal: [\"--in-memory\"]\n"
				  "  workers: [1, 2]\n"
				  "  flow_entries: 1048576\n"
				  "  ports:\n"
				  "    - device: \"0000:3b:00.0\"\n"
				  "      mtu: 1600\n"
				  "      addresses: [192.0.2.10/24, \"2001:db8:1::10/64\"]\n"
				  "      gateways: [192.0.2.1, \"2001:db8:1::1\"]\n";

static void node_of_the_design_is_read_whole(void)
{
	struct config_node *node = NULL;
	struct config_report report;

	config_report_init(&report, "node.yaml", design_node, strlen(design_node));
	CU_ASSERT_EQUAL_FATAL(config_node_read(&report, &node), 0);
	CU_ASSERT_STRING_EQUAL(node->node, "lb-ams01-1");
	CU_ASSERT_STRING_EQUAL(node->run_dir, "/run/ringway");
	CU_ASSERT_EQUAL(node->store.type, CONFIG_STORE_FILE);
	CU_ASSERT_EQUAL(node->dataplane.worker_count, 2);
	CU_ASSERT_EQUAL(node->dataplane.ports[0].mtu, 1600);
	CU_ASSERT_EQUAL(node->dataplane.ports[0].addresses[0].bits, 24);
	CU_ASSERT_EQUAL(node->dataplane.ports[0].addresses[0].address.bytes[3], 10);
	CU_ASSERT_EQUAL(node->dataplane.ports[0].gateway_count, 2);
	config_report_free(&report);
	config_node_free(node);
}

static void worker_on_the_main_cpu_is_a_warning(void)
{
	struct config_report report;
	struct config_node *node = NULL;
	const char *text = "node: a\ndataplane: {workers: [0], ports: [{device: x}]}\n";

	config_report_init(&report, "node.yaml", text, strlen(text));
	CU_ASSERT_EQUAL(config_node_read(&report, &node), 0);
	CU_ASSERT_EQUAL(report.warning_count, 1);
	CU_ASSERT_EQUAL(report.findings[0].code, CONFIG_CONFLICT);
	CU_ASSERT_EQUAL(report.findings[0].column, 23);
	config_report_free(&report);
	config_node_free(node);
}

static void plaintext_to_other_machines_wants_a_word(void)
{
	struct config_report report;
	struct config_node *node = NULL;
	const char *text =
		"node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
		"store: {type: etcd, plaintext: anywhere, endpoints: [\"http://e:2379\"]}\n";

	config_report_init(&report, "node.yaml", text, strlen(text));
	CU_ASSERT_EQUAL(config_node_read(&report, &node), 0);
	config_report_free(&report);
	config_node_free(node);
}

static void password_in_a_url_is_not_repeated(void)
{
	struct config_report report;
	struct config_node *node = NULL;
	const char *text = "node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
			   "store: {type: etcd, endpoints: [\"https://me:secret@e:2379\"]}\n";

	config_report_init(&report, "node.yaml", text, strlen(text));
	CU_ASSERT_EQUAL(config_node_read(&report, &node), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(report.error_count, 1);
	CU_ASSERT_PTR_NULL(strstr(report.findings[0].text, "secret"));
	config_report_free(&report);
}

static void bad_nodes_are_refused_at_their_place(void)
{
	static const struct refusal refusals[] = {
		{"node: a\n", CONFIG_MISSING_KEY, 1, 1},
		{"node: a\ndataplane: {workers: [], ports: [{device: x}]}\n", CONFIG_OUT_OF_RANGE,
			2, 13},
		{"node: a\ndataplane: {workers: [1, 1], ports: [{device: x}]}\n",
			CONFIG_DUPLICATE_NAME, 2, 26},
		{"node: a\ndataplane: {workers: [1], eal: [\"-l1\"], ports: [{device: x}]}\n",
			CONFIG_CONFLICT, 2, 33},
		{"node: a\ndataplane: {workers: [1], ports: []}\n", CONFIG_OUT_OF_RANGE, 2, 27},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x, addresses: [10.0.0.1]}]}\n",
			CONFIG_BAD_VALUE, 2, 59},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x, addresses: [10.0.0.1/24],"
		 " gateways: [10.0.1.1]}]}\n",
			CONFIG_CONFLICT, 2, 84},
		{"node: a\nstore: {type: etcd}\ndataplane: {workers: [1], ports: [{device: x}]}\n",
			CONFIG_MISSING_KEY, 2, 1},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
		 "store: {type: etcd, endpoints: [\"https://e:2379\", \"etcd:2379\"]}\n",
			CONFIG_BAD_VALUE, 3, 51},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
		 "store: {type: etcd, endpoints: [\"https://e:2379/\"]}\n",
			CONFIG_BAD_VALUE, 3, 33},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
		 "store: {type: etcd, endpoints: [\"https://me:secret@e:2379\"]}\n",
			CONFIG_BAD_VALUE, 3, 33},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
		 "store: {type: etcd, endpoints: [\"http://127.0.0.1:1\", \"http://e:2379\"]}\n",
			CONFIG_CONFLICT, 3, 55},
		{"node: a\ndataplane: {workers: [1], ports: [{device: x}]}\n"
		 "store: {type: etcd, endpoints: [\"http://127.0.0.1:1\"],"
		 " tls: {certificate: /c, key: /k}}\n",
			CONFIG_CONFLICT, 3, 33},
		{"node: a\ndataplane: {workers: [1], flow_entries: 1000000,"
		 " ports: [{device: x}]}\n",
			CONFIG_BAD_VALUE, 2, 41},
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		expect_node_refused(&refusals[i]);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"pools_of_the_design_are_read_whole", pools_of_the_design_are_read_whole},
		{"json_is_read_by_the_same_reader", json_is_read_by_the_same_reader},
		{"empty_file_is_an_empty_configuration", empty_file_is_an_empty_configuration},
		{"words_are_typed_by_the_schema_alone", words_are_typed_by_the_schema_alone},
		{"other_yaml_is_refused_at_its_place", other_yaml_is_refused_at_its_place},
		{"bad_keys_and_values_are_refused_at_their_place",
			bad_keys_and_values_are_refused_at_their_place},
		{"bad_backends_are_refused_at_their_place",
			bad_backends_are_refused_at_their_place},
		{"bad_services_are_refused_at_their_place",
			bad_services_are_refused_at_their_place},
		{"unlike_bindings_are_no_conflict", unlike_bindings_are_no_conflict},
		{"nginx_text_seeds_the_ring_as_it_is_written",
			nginx_text_seeds_the_ring_as_it_is_written},
		{"service_without_backends_is_a_warning", service_without_backends_is_a_warning},
		{"all_errors_of_a_file_come_at_once", all_errors_of_a_file_come_at_once},
		{"more_errors_than_are_kept_are_counted", more_errors_than_are_kept_are_counted},
		{"one_backend_more_than_a_ring_takes_is_refused",
			one_backend_more_than_a_ring_takes_is_refused},
		{"node_of_the_design_is_read_whole", node_of_the_design_is_read_whole},
		{"worker_on_the_main_cpu_is_a_warning", worker_on_the_main_cpu_is_a_warning},
		{"bad_nodes_are_refused_at_their_place", bad_nodes_are_refused_at_their_place},
		SUITE_CASE(plaintext_to_other_machines_wants_a_word),
		SUITE_CASE(password_in_a_url_is_not_repeated),
	};

	return SUITE_RUN("config_reader", cases);
}
