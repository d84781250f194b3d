// SPDX-License-Identifier: Apache-2.0
// Flows as operators write them, and explanations from a snapshot image against the dataplane's own selection.
#include "control/cli/explain_snapshot.h"

#include "common/selection.h"
#include "control/cli/cli.h"
#include "control/cli/flow_text.h"
#include "tests/lib/image.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

static void endpoints_are_read_strictly(void)
{
	static const char *const bad[] = {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:x",
		"1.2.3.4:65536", "1.2.3.4:-1", "1.2.3:80", "2001:db8::1:80", "[2001:db8::1]",
		"[2001:db8::1:80", "[]:80", "[1.2.3.4]:80", "2001:db8::1]:80", "[:80",
		"1.2.3.4:123456", "[2001:0db8:0000:0000:0000:0000:0000:0000:0000:0000:0001]:80"};
	struct ip_addr address;
	uint16_t port = 7;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(flow_text_endpoint(bad[i], &address, &port), -EINVAL);
	CU_ASSERT_EQUAL(port, 7);
	CU_ASSERT_EQUAL(flow_text_endpoint("1.2.3.4:65535", &address, &port), 0);
	CU_ASSERT_EQUAL(address.family, ADDR_V4);
	CU_ASSERT_EQUAL(port, 65535);
	CU_ASSERT_EQUAL(flow_text_endpoint("[2001:db8::1]:443", &address, &port), 0);
	CU_ASSERT_EQUAL(address.family, ADDR_V6);
	CU_ASSERT_EQUAL(address.bytes[15], 1);
	CU_ASSERT_EQUAL(port, 443);
}

static void a_flow_becomes_its_canonical_key(void)
{
	struct flow_key key;
	char error[256];

	CU_ASSERT_EQUAL(
		flow_text_parse("tcp", "198.51.100.7:40000", "203.0.113.10:443", &key, error), 0);
	CU_ASSERT_EQUAL(key.protocol, IPPROTO_TCP);
	CU_ASSERT_EQUAL(key.family, ADDR_V4);
	CU_ASSERT_EQUAL(ntohs(key.source_port_be), 40000);
	CU_ASSERT_EQUAL(ntohs(key.destination_port_be), 443);
	CU_ASSERT_EQUAL(key.source[0], 198);
	CU_ASSERT_EQUAL(key.source[4], 0);
	CU_ASSERT_EQUAL(flow_text_parse("icmp", "1.2.3.4:1", "1.2.3.5:1", &key, error), -EINVAL);
	CU_ASSERT_EQUAL(flow_text_parse("udp", "1.2.3.4:1", "[::1]:1", &key, error), -EINVAL);
}

// Every flow of every service gets the backend that selection_pick() gives, on both sides of the gate.
static void explanations_agree_with(uint8_t seeded)
{
	const struct image_shape shape = {.generation = 9,
		.pool_count = 3,
		.backend_count = 30,
		.points = 16,
		.staged = true,
		.seeded = seeded};
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	struct snapshot_error reason;
	uint64_t bytes, state = suite_seed();
	void *image = image_build(&shape, &bytes);
	unsigned new_ring = 0;

	CU_ASSERT_EQUAL_FATAL(snapshot_open(image, bytes, snapshot, &reason), 0);
	for (uint32_t p = 0; p < 3; p++)
		snapshot_gate_set(&snapshot->pools[p], UINT64_C(1) << 31);
	for (int i = 0; i < 3000; i++) {
		struct flow_key key = {.protocol = IPPROTO_TCP,
			.family = ADDR_V4,
			.source_port_be = (uint16_t)suite_random(&state),
			.destination_port_be = htons(IMAGE_PORT_TCP)};
		uint32_t service = (uint32_t)(suite_random(&state) % 3);
		uint32_t address = htonl(IMAGE_ADDRESS4 + service);
		struct ipc_explained explained;
		struct selection selection;

		memcpy(key.destination, &address, sizeof(address));
		*(uint32_t *)key.source = (uint32_t)suite_random(&state);
		explain_snapshot(snapshot, &key, &explained);
		CU_ASSERT_EQUAL(explained.verdict, IPC_EXPLAIN_FORWARD);
		CU_ASSERT_EQUAL(explained.service, service);
		CU_ASSERT_EQUAL(explained.generation, 9);
		CU_ASSERT_EQUAL(explained.ring_hash == explained.ring_hash_new, seeded == 0);
		selection_pick(snapshot, &snapshot->services[service],
			(struct selection_hash){explained.ring_hash, explained.ring_hash_new},
			&selection);
		CU_ASSERT_EQUAL(explained.backend, selection.backend);
		CU_ASSERT_EQUAL(explained.backend,
			explained.uses_new ? explained.backend_new : explained.backend_old);
		new_ring += explained.uses_new;
	}
	CU_ASSERT(new_ring > 1350 && new_ring < 1650);
	free(image);
	free(snapshot);
}

static void explanations_agree_with_the_selection(void)
{
	for (uint8_t seeded = 0; seeded < 4; seeded++)
		explanations_agree_with(seeded);
}

static void a_flow_to_nowhere_has_no_service(void)
{
	const struct image_shape shape = {
		.generation = 1, .pool_count = 1, .backend_count = 2, .points = 4};
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	struct ipc_explained explained;
	struct snapshot_error reason;
	struct flow_key key;
	char error[256];
	uint64_t bytes;
	void *image = image_build(&shape, &bytes);

	CU_ASSERT_EQUAL_FATAL(snapshot_open(image, bytes, snapshot, &reason), 0);
	flow_text_parse("tcp", "198.51.100.7:40000", "203.0.113.0:81", &key, error);
	explain_snapshot(snapshot, &key, &explained);
	CU_ASSERT_EQUAL(explained.verdict, IPC_EXPLAIN_NO_SERVICE);
	CU_ASSERT_EQUAL(explained.backend, SELECTION_NO_BACKEND);
	flow_text_parse("udp", "198.51.100.7:40000", "203.0.113.0:80", &key, error);
	explain_snapshot(snapshot, &key, &explained);
	CU_ASSERT_EQUAL(explained.verdict, IPC_EXPLAIN_NO_SERVICE);
	free(image);
	free(snapshot);
}

static int run_on(const char *path, char **ret_out)
{
	char *argv[] = {"ringway", "--json", "explain", "tcp", "198.51.100.7:40000",
		"203.0.113.0:80", "-f", (char *)path, NULL};
	FILE *err = fopen("/dev/null", "w"), *out;
	size_t bytes;
	int code;

	out = open_memstream(ret_out, &bytes);
	code = cli_main(8, argv, out, err);
	fclose(out);
	fclose(err);
	return code;
}

static void the_command_reads_an_image_and_refuses_a_spoilt_one(void)
{
	const struct image_shape shape = {
		.generation = 5, .pool_count = 1, .backend_count = 3, .points = 4};
	char path[] = "/tmp/ringway-image-XXXXXX", *out;
	int file = mkstemp(path);
	uint64_t bytes;
	uint8_t *image = image_build(&shape, &bytes);

	CU_ASSERT_EQUAL(write(file, image, bytes), (ssize_t)bytes);
	CU_ASSERT_EQUAL(run_on(path, &out), ANSWER_DONE);
	CU_ASSERT_PTR_NOT_NULL(strstr(out, "\"verdict\": \"forward\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(out, "\"generation\": 5"));
	free(out);
	image[bytes / 2] ^= 1;
	CU_ASSERT_EQUAL(pwrite(file, image, bytes, 0), (ssize_t)bytes);
	CU_ASSERT_EQUAL(run_on(path, &out), ANSWER_INVALID);
	free(out);
	CU_ASSERT_EQUAL(ftruncate(file, 100), 0);
	CU_ASSERT_EQUAL(run_on(path, &out), ANSWER_INVALID);
	free(out);
	CU_ASSERT_EQUAL(ftruncate(file, 0), 0);
	CU_ASSERT_EQUAL(run_on(path, &out), ANSWER_INVALID);
	free(out);
	close(file);
	unlink(path);
	CU_ASSERT_EQUAL(run_on(path, &out), ANSWER_NOT_FOUND);
	free(out);
	free(image);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"endpoints_are_read_strictly", endpoints_are_read_strictly},
		{"a_flow_becomes_its_canonical_key", a_flow_becomes_its_canonical_key},
		{"explanations_agree_with_the_selection", explanations_agree_with_the_selection},
		{"a_flow_to_nowhere_has_no_service", a_flow_to_nowhere_has_no_service},
		{"the_command_reads_an_image_and_refuses_a_spoilt_one",
			the_command_reads_an_image_and_refuses_a_spoilt_one},
	};

	return SUITE_RUN("explain", cases);
}
