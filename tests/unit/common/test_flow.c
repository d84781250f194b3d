// SPDX-License-Identifier: Apache-2.0
// The fleet's hash: golden values, and evenness over the kinds of keys that real traffic has.
#include "common/flow.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>

static const uint8_t seed_zero[HASH_SEED_BYTES];
static const uint8_t seed_counting[HASH_SEED_BYTES] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static struct flow_key key_of(const char *source, const char *destination, uint16_t source_port,
	uint16_t destination_port, uint8_t protocol)
{
	struct ip_addr from, to;
	struct flow_key key = {
		.source_port_be = htons(source_port),
		.destination_port_be = htons(destination_port),
		.protocol = protocol,
	};

	CU_ASSERT_EQUAL_FATAL(addr_parse(source, &from), 0);
	CU_ASSERT_EQUAL_FATAL(addr_parse(destination, &to), 0);
	memcpy(key.source, from.bytes, sizeof(key.source));
	memcpy(key.destination, to.bytes, sizeof(key.destination));
	key.family = from.family;
	return key;
}

// Changing one of these moves every flow of a fleet. They were computed by a second implementation.
static void flow_hash_is_pinned(void)
{
	static const struct {
		const char *source, *destination;
		uint16_t source_port, destination_port;
		uint8_t protocol;
		uint64_t zero, counting;
	} golden[] = {
		{"198.51.100.7", "203.0.113.10", 40000, 443, IPPROTO_TCP, 0x61b70f3c22a7bfd8,
			0x9b2a0d1e14b74115},
		{"10.0.0.1", "10.0.0.2", 1, 2, IPPROTO_UDP, 0xdaf5d85ed79af7bf, 0xe9c0a4f47a1b7655},
		{"2001:db8::7", "2001:db8:ffff::10", 40000, 443, IPPROTO_TCP, 0xd655e3d497bf2be0,
			0x146f045b2474de20},
		{"::1", "::2", 53, 53, IPPROTO_UDP, 0xdd529a212e1cb60d, 0x5a6fbcbe978b8462},
	};
	struct hash_seed zero = hash_seed_expand(seed_zero);
	struct hash_seed counting = hash_seed_expand(seed_counting);

	for (unsigned i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct flow_key key = key_of(golden[i].source, golden[i].destination,
			golden[i].source_port, golden[i].destination_port, golden[i].protocol);

		CU_ASSERT_EQUAL(flow_hash(&key, &zero), golden[i].zero);
		CU_ASSERT_EQUAL(flow_hash(&key, &counting), golden[i].counting);
	}
	CU_ASSERT_EQUAL(flow_ring_hash(0x61b70f3c22a7bfd8), 0x61b70f3c);
}

static void byte_hash_and_mix_are_pinned(void)
{
	struct hash_seed seed = hash_seed_expand(seed_counting);
	uint8_t bytes[20];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	CU_ASSERT_EQUAL(seed.word[0], 0xea3c324570509d0d);
	CU_ASSERT_EQUAL(seed.word[3], 0x0d03de0c57a66355);
	CU_ASSERT_EQUAL(hash_bytes("", 0, &seed), 0xb92ae027c9568973);
	CU_ASSERT_EQUAL(hash_bytes("\x01", 1, &seed), 0xa7688f21d66051a8);
	CU_ASSERT_EQUAL(hash_bytes(bytes, 8, &seed), 0x37c65cbb88883f18);
	CU_ASSERT_EQUAL(hash_bytes(bytes, 20, &seed), 0xd90aca7cc538066b);
	CU_ASSERT_EQUAL(hash_mix32(0), 0);
	CU_ASSERT_EQUAL(hash_mix32(1), 0x514e28b7);
	CU_ASSERT_EQUAL(hash_mix32(0xdeadbeef), 0x0de5c6a9);
	CU_ASSERT_EQUAL(hash_mix32(0xffffffff), 0x81f16f39);
}

static void projection_keeps_what_the_affinity_names(void)
{
	struct flow_key key = key_of("198.51.100.7", "203.0.113.10", 40000, 443, IPPROTO_TCP),
			other = key;
	struct flow_key client, destination;

	other.source_port_be = htons(40001);
	client = flow_key_project(&key, FLOW_AFFINITY_CLIENT);
	destination = flow_key_project(&other, FLOW_AFFINITY_CLIENT);
	CU_ASSERT_EQUAL(memcmp(&client, &destination, sizeof(client)), 0);
	other.source[0] = 7;
	other.protocol = IPPROTO_UDP;
	client = flow_key_project(&key, FLOW_AFFINITY_DESTINATION);
	destination = flow_key_project(&other, FLOW_AFFINITY_DESTINATION);
	CU_ASSERT_EQUAL(memcmp(&client, &destination, sizeof(client)), 0);
	client = flow_key_project(&key, FLOW_AFFINITY_FLOW);
	CU_ASSERT_EQUAL(memcmp(&client, &key, sizeof(client)), 0);
	client = flow_key_project(&key, FLOW_AFFINITY_CLIENT);
	destination = flow_key_project(&key, FLOW_AFFINITY_DESTINATION);
	CU_ASSERT_NOT_EQUAL(memcmp(&client, &destination, sizeof(client)), 0);
}

// Key sets: number i of a set of keys that differ in a regular way. Linear hashes fail on some of them.
static void put32(uint8_t *ret, uint32_t value)
{
	uint32_t be = htonl(value);

	memcpy(ret, &be, sizeof(be));
}

static void vary_port(struct flow_key *key, uint32_t i)
{
	key->source_port_be = htons((uint16_t)i);
}

static void vary_even_port(struct flow_key *key, uint32_t i)
{
	key->source_port_be = htons((uint16_t)(2 * i));
}

static void vary_client(struct flow_key *key, uint32_t i)
{
	put32(key->source, 0x0a010000 + i);
}

static void vary_client_and_port(struct flow_key *key, uint32_t i)
{
	put32(key->source, 0x0a010000 + i % 16);
	key->source_port_be = htons((uint16_t)(32768 + i / 16));
}

static void vary_middle_octets(struct flow_key *key, uint32_t i)
{
	put32(key->source, 0x0a000001 + (i << 8));
}

static void vary_in_lock_step(struct flow_key *key, uint32_t i)
{
	put32(key->source, 0x0a010000 + i);
	key->source_port_be = htons((uint16_t)(1024 + i));
}

static void vary_few_ports(struct flow_key *key, uint32_t i)
{
	put32(key->source, 0x0a010000 + i / 16);
	key->source_port_be = htons((uint16_t)(40000 + i % 16));
}

static void vary_v6_port(struct flow_key *key, uint32_t i)
{
	key->family = ADDR_V6;
	key->source_port_be = htons((uint16_t)i);
}

static void vary_v6_interface(struct flow_key *key, uint32_t i)
{
	key->family = ADDR_V6;
	put32(key->source + 12, i);
}

struct key_set {
	const char *name;
	void (*vary)(struct flow_key *key, uint32_t i);
	uint32_t count;
};

static const struct key_set key_sets[] = {
	{"one client, all ports", vary_port, 65536},
	{"one client, even ports", vary_even_port, 32768},
	{"a /16 of clients", vary_client, 65536},
	{"16 clients x 28 k ports", vary_client_and_port, 16 * 28672},
	{"hosts x.y.z.1", vary_middle_octets, 65536},
	{"address and port in lock step", vary_in_lock_step, 60000},
	{"4096 clients x 16 ports", vary_few_ports, 65536},
	{"IPv6 ports", vary_v6_port, 65536},
	{"IPv6 interface identifiers", vary_v6_interface, 65536},
};

#define BINS   2048u
#define TRIALS 12u

// The z value of chi-square: 0 for a random hash, with a spread of 1.
static double z_value(const uint32_t *loads, uint32_t count)
{
	double expected = (double)count / BINS, sum = 0;

	for (unsigned i = 0; i < BINS; i++)
		sum += (loads[i] - expected) * (loads[i] - expected) / expected;
	return (sum - (BINS - 1)) / sqrt(2.0 * (BINS - 1));
}

// Runs a key set under a random client, address and fleet seed.
static double trial(const struct key_set *set, unsigned shift, uint64_t *state)
{
	static uint32_t loads[BINS];
	uint8_t fleet[HASH_SEED_BYTES];
	struct flow_key key = {.family = ADDR_V4, .protocol = IPPROTO_TCP};

	memset(loads, 0, sizeof(loads));
	for (unsigned i = 0; i < sizeof(fleet); i++)
		fleet[i] = (uint8_t)suite_random(state);
	struct hash_seed seed = hash_seed_expand(fleet);

	put32(key.source, (uint32_t)suite_random(state));
	put32(key.destination, (uint32_t)suite_random(state));
	key.destination_port_be = htons(443);
	for (uint32_t i = 0; i < set->count; i++) {
		set->vary(&key, i);
		loads[flow_hash(&key, &seed) >> shift & (BINS - 1)]++;
	}
	return z_value(loads, set->count);
}

// shift: which bits are looked at. A mean of TRIALS beyond 5 / sqrt(TRIALS) comes once in a million runs.
static void check_even(unsigned shift)
{
	uint64_t state = suite_seed();

	for (unsigned i = 0; i < sizeof(key_sets) / sizeof(key_sets[0]); i++) {
		double sum = 0, worst = 0;

		for (unsigned j = 0; j < TRIALS; j++) {
			double z = trial(&key_sets[i], shift, &state);

			sum += z;
			worst = fabs(z) > fabs(worst) ? z : worst;
		}
		printf("# bits from %2u, %-30s z %5.2f, worst %5.2f\n", shift, key_sets[i].name,
			sum / TRIALS, worst);
		CU_ASSERT(fabs(sum / TRIALS) < 5.0 / sqrt(TRIALS));
		CU_ASSERT(fabs(worst) < 6.5);
	}
}

static void ring_bits_are_even(void)
{
	check_even(53);
}

static void table_bits_are_even(void)
{
	check_even(0);
	check_even(21);
}

// The inverse of hash_mix32(), step by step backwards. That it undoes the mix for random words is no proof, but an
// error in either one shows at once.
static uint32_t unmix32(uint32_t value)
{
	value ^= value >> 16;
	value *= 0x7ed1b41du; // 0xc2b2ae35 x this = 1 modulo 2^32
	value ^= value >> 13 ^ value >> 26;
	value *= 0xa5cb9243u; // 0x85ebca6b x this = 1 modulo 2^32
	return value ^ value >> 16;
}

static void mix_is_a_bijection(void)
{
	uint64_t state = suite_seed();

	for (unsigned i = 0; i < 1000000; i++) {
		uint32_t value = (uint32_t)suite_random(&state);

		if (unmix32(hash_mix32(value)) != value)
			CU_FAIL("two words have one mix");
	}
}

static void seeds_have_marks_that_tell_them_apart(void)
{
	uint64_t state = suite_seed(), marks[512];
	uint8_t seed[HASH_SEED_BYTES];

	CU_ASSERT_EQUAL(hash_seed_mark(seed_zero), 0);
	// Pinned: digests of rings hold it, and nodes of different builds compare those.
	CU_ASSERT_EQUAL(hash_seed_mark(seed_counting), 0x4fa6e2797047bb56);
	for (unsigned i = 0; i < 512; i++) {
		for (unsigned b = 0; b < sizeof(seed); b++)
			seed[b] = i < 128 ? 0 : (uint8_t)suite_random(&state);
		// The first ones differ from zero in one bit.
		if (i < 128)
			seed[i / 8] = (uint8_t)(1u << i % 8);
		marks[i] = hash_seed_mark(seed);
		CU_ASSERT_NOT_EQUAL(marks[i], 0);
		for (unsigned other = 0; other < i; other++)
			CU_ASSERT_NOT_EQUAL(marks[i], marks[other]);
	}
}

int main(void)
{
	static const struct test_case cases[] = {
		{"flow_hash_is_pinned", flow_hash_is_pinned},
		{"byte_hash_and_mix_are_pinned", byte_hash_and_mix_are_pinned},
		{"seeds_have_marks_that_tell_them_apart", seeds_have_marks_that_tell_them_apart},
		{"projection_keeps_what_the_affinity_names",
			projection_keeps_what_the_affinity_names},
		{"ring_bits_are_even", ring_bits_are_even},
		{"table_bits_are_even", table_bits_are_even},
		{"mix_is_a_bijection", mix_is_a_bijection},
	};

	return SUITE_RUN("flow", cases);
}
