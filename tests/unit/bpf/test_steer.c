// SPDX-License-Identifier: Apache-2.0
// Runs the steering program in the kernel on byte arrays. Without an AF_XDP socket on the queue a steered packet counts
// as no_socket and goes to the kernel; so the two kinds can be told apart here, and end-to-end tests do the rest.
#include "tests/lib/suite.h"

#include "bpf/bpf_shared.h"
#include "bpf/xdp_steer.skel.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct xdp_steer_bpf *skeleton;

static uint64_t counted(uint32_t counter)
{
	uint64_t values[256] = {}, sum = 0;

	bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.steer_counters), &counter, values);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		sum += values[cpu];
	return sum;
}

// Runs the program over a frame that must pass unchanged. Returns whether it wanted to steer it.
static bool steers(const uint8_t *frame, size_t length)
{
	uint8_t got[256] = {};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = (uint32_t)length,
		.data_out = got, .data_size_out = sizeof(got));
	uint64_t wanted = counted(STEER_COUNTER_no_socket), kernel = counted(STEER_COUNTER_kernel);
	int fd = bpf_program__fd(skeleton->progs.ringway_steer);

	CU_ASSERT_EQUAL_FATAL(bpf_prog_test_run_opts(fd, &options), 0);
	CU_ASSERT_EQUAL(options.retval, XDP_PASS);
	CU_ASSERT_EQUAL(options.data_size_out, length);
	CU_ASSERT_EQUAL(memcmp(got, frame, length), 0);
	wanted = counted(STEER_COUNTER_no_socket) - wanted;
	CU_ASSERT_EQUAL(wanted + counted(STEER_COUNTER_kernel) - kernel, 1);
	return wanted == 1;
}

static void put_address(uint8_t *at, const char *text)
{
	inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, at);
}

static bool steers_v4(const char *destination, unsigned tags)
{
	uint8_t frame[80] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	uint8_t *at = frame + 12;

	for (unsigned i = 0; i < tags; i++, at += 4)
		memcpy(at, "\x81\x00\x00\x64", 4);
	memcpy(at, "\x08\x00\x45\x00\x00\x28", 6);
	at[2 + 8] = 64;
	at[2 + 9] = 6;
	put_address(at + 2 + 12, "198.51.100.7");
	put_address(at + 2 + 16, destination);
	return steers(frame, 64);
}

// type: ICMPv6 type with a target, or 0 for TCP.
static bool steers_v6(const char *destination, uint8_t type, const char *target)
{
	uint8_t frame[100] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60};
	uint8_t *ip = frame + 14;

	ip[5] = 24;
	ip[6] = type ? 58 : 6;
	ip[7] = 255;
	put_address(ip + 8, "fd00:1::1");
	put_address(ip + 24, destination);
	ip[40] = type;
	if (target)
		put_address(ip + 48, target);
	return steers(frame, 14 + 40 + 24);
}

static bool steers_arp(uint8_t operation, const char *target)
{
	uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0,
		6, 4, 0, operation};

	put_address(frame + 14 + 24, target);
	return steers(frame, sizeof(frame));
}

static void virtual_and_port_addresses_are_steered(void)
{
	CU_ASSERT(steers_v4("203.0.113.10", 0));
	CU_ASSERT(steers_v4("203.0.113.10", 1));
	CU_ASSERT(steers_v4("203.0.113.10", 2));
	CU_ASSERT(steers_v4("192.0.2.77", 0)); // in the prefix
	CU_ASSERT(steers_v4("10.0.0.5", 0));   // the port's
	CU_ASSERT(steers_v6("2001:db8:100::10", 0, NULL));
	CU_ASSERT(steers_v6("fd00:1::5", 136, "fd00:1::1")); // an advertisement for the port
}

static void all_else_is_left_to_the_kernel(void)
{
	const uint8_t other[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xcc};

	CU_ASSERT(!steers_v4("203.0.113.11", 0));
	CU_ASSERT(!steers_v4("10.0.0.6", 0));
	CU_ASSERT(!steers_v4("192.0.3.77", 0));
	CU_ASSERT(!steers_v6("2001:db8:100::11", 0, NULL));
	CU_ASSERT(!steers(other, sizeof(other)));
	for (size_t length = 14; length < 34; length++)
		CU_ASSERT(!steers((const uint8_t *)"\2\0\0\0\0\1\2\0\0\0\0\2\10\0\105\0\0\50\0\0\0"
						   "\0\100\6\0\0\0\0\0\0\313\0\161\12",
			length));
}

static void neighbour_questions_for_our_addresses_are_steered(void)
{
	CU_ASSERT(steers_arp(1, "10.0.0.5"));
	CU_ASSERT(steers_arp(2, "10.0.0.5"));
	CU_ASSERT(!steers_arp(1, "10.0.0.6"));
	CU_ASSERT(steers_v6("ff02::1:ff00:5", 135, "fd00:1::5"));
	CU_ASSERT(!steers_v6("ff02::1:ff00:6", 135, "fd00:1::6"));
	CU_ASSERT(!steers_v6(
		"ff02::1", 134, "fd00:1::5")); // a router's advertisement is the kernel's
}

static const struct test_case cases[] = {
	{"virtual_and_port_addresses_are_steered", virtual_and_port_addresses_are_steered},
	{"all_else_is_left_to_the_kernel", all_else_is_left_to_the_kernel},
	{"neighbour_questions_for_our_addresses_are_steered",
		neighbour_questions_for_our_addresses_are_steered},
};

static void add(const char *text, unsigned bits, uint32_t kind)
{
	bool v6 = strchr(text, ':') != NULL;
	struct decap_prefix key = {
		.bits = DECAP_PREFIX_BASE_BITS + bits, .family = v6 ? DECAP_V6 : DECAP_V4};

	put_address(key.bytes, text);
	bpf_map_update_elem(bpf_map__fd(skeleton->maps.steer_addresses), &key, &kind, BPF_ANY);
}

int main(void)
{
	int failed;

	if (geteuid() != 0) {
		printf("1..0 # SKIP needs root: loads BPF programs\n");
		return 0;
	}
	skeleton = xdp_steer_bpf__open_and_load();
	if (skeleton == NULL) {
		printf("1..1\nnot ok 1 - program loads\n");
		return 1;
	}
	add("203.0.113.10", 32, STEER_VIP);
	add("192.0.2.0", 24, STEER_VIP);
	add("2001:db8:100::10", 128, STEER_VIP);
	add("10.0.0.5", 32, STEER_PORT);
	add("fd00:1::5", 128, STEER_PORT);
	failed = SUITE_RUN("steer", cases);
	xdp_steer_bpf__destroy(skeleton);
	return failed;
}
