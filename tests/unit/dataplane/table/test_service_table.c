// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table/service_table.h"

#include "tests/lib/suite.h"
#include "tests/oracle/service_scan.h"

#include <netinet/in.h>
#include <stdlib.h>

static struct snapshot_binding binding(
	const char *address, uint8_t bits, uint8_t protocol, uint16_t port, uint32_t service)
{
	struct snapshot_binding ret = {.prefix_bits = bits,
		.protocol = protocol,
		.port_be = htons(port),
		.service = service};

	CU_ASSERT_EQUAL_FATAL(addr_parse(address, &ret.address), 0);
	return ret;
}

static struct flow_key key(const char *destination, uint8_t protocol, uint16_t port)
{
	struct flow_key ret = {.protocol = protocol, .destination_port_be = htons(port)};
	struct ip_addr address;

	CU_ASSERT_EQUAL_FATAL(addr_parse(destination, &address), 0);
	memcpy(ret.destination, address.bytes, sizeof(ret.destination));
	ret.family = address.family;
	return ret;
}

static struct service_table *make(const struct snapshot_binding *bindings, uint32_t count)
{
	uint64_t bytes = (service_table_footprint(count) + 63) / 64 * 64;

	return service_table_format(aligned_alloc(SERVICE_TABLE_ALIGN, bytes), bindings, count);
}

static uint32_t find(
	const struct service_table *table, const char *destination, uint8_t protocol, uint16_t port)
{
	struct flow_key wanted = key(destination, protocol, port);

	return service_table_find(table, &wanted);
}

static void most_specific_binding_wins(void)
{
	struct snapshot_binding bindings[] = {
		binding("203.0.113.10", 32, IPPROTO_TCP, 443, 1),
		binding("203.0.113.10", 32, IPPROTO_TCP, 0, 2),
		binding("203.0.113.0", 24, IPPROTO_TCP, 443, 3),
		binding("203.0.113.0", 24, IPPROTO_TCP, 0, 4),
		binding("203.0.0.0", 16, IPPROTO_TCP, 22, 5),
		binding("203.0.113.10", 32, IPPROTO_UDP, 443, 6),
		binding("0.0.0.0", 0, IPPROTO_UDP, 53, 7),
	};
	struct service_table *table = make(bindings, 7);

	CU_ASSERT_EQUAL(find(table, "203.0.113.10", IPPROTO_TCP, 443), 1);
	CU_ASSERT_EQUAL(find(table, "203.0.113.10", IPPROTO_TCP, 80), 2);
	CU_ASSERT_EQUAL(find(table, "203.0.113.11", IPPROTO_TCP, 443), 3);
	CU_ASSERT_EQUAL(find(table, "203.0.113.11", IPPROTO_TCP, 80), 4);
	CU_ASSERT_EQUAL(find(table, "203.0.113.11", IPPROTO_TCP, 22), 4);
	CU_ASSERT_EQUAL(find(table, "203.0.1.11", IPPROTO_TCP, 22), 5);
	CU_ASSERT_EQUAL(find(table, "203.0.1.11", IPPROTO_TCP, 23), SERVICE_NONE);
	CU_ASSERT_EQUAL(find(table, "203.0.113.10", IPPROTO_UDP, 443), 6);
	CU_ASSERT_EQUAL(find(table, "203.0.113.10", IPPROTO_UDP, 80), SERVICE_NONE);
	CU_ASSERT_EQUAL(find(table, "8.8.8.8", IPPROTO_UDP, 53), 7);
	free(table);
}

static void families_do_not_mix(void)
{
	struct snapshot_binding bindings[] = {
		binding("0.0.0.0", 32, IPPROTO_TCP, 80, 1),
		binding("::", 128, IPPROTO_TCP, 80, 2),
		binding("2001:db8::", 32, IPPROTO_TCP, 80, 3),
	};
	struct service_table *table = make(bindings, 3);

	CU_ASSERT_EQUAL(find(table, "0.0.0.0", IPPROTO_TCP, 80), 1);
	CU_ASSERT_EQUAL(find(table, "::", IPPROTO_TCP, 80), 2);
	CU_ASSERT_EQUAL(find(table, "2001:db8:ffff::1", IPPROTO_TCP, 80), 3);
	CU_ASSERT_EQUAL(find(table, "32.1.13.184", IPPROTO_TCP, 80), SERVICE_NONE);
	free(table);
}

static void first_of_equal_bindings_stays(void)
{
	struct snapshot_binding bindings[] = {
		binding("192.0.2.1", 32, IPPROTO_TCP, 80, 1),
		binding("192.0.2.1", 32, IPPROTO_TCP, 80, 2),
	};
	struct service_table *table = make(bindings, 2);

	CU_ASSERT_EQUAL(find(table, "192.0.2.1", IPPROTO_TCP, 80), 1);
	free(table);
}

static void empty_table_knows_nothing(void)
{
	struct service_table *table = make(NULL, 0);
	struct flow_key wanted = key("192.0.2.1", IPPROTO_TCP, 80);

	CU_ASSERT_EQUAL(service_table_find(table, &wanted), SERVICE_NONE);
	CU_ASSERT_FALSE(service_table_has_address(table, wanted.destination, ADDR_V4));
	free(table);
}

static void address_is_ours_whatever_protocol_and_port(void)
{
	struct snapshot_binding bindings[] = {
		binding("203.0.113.10", 32, IPPROTO_TCP, 443, 1),
		binding("2001:db8:1::", 48, IPPROTO_UDP, 443, 2),
	};
	struct service_table *table = make(bindings, 2);
	struct flow_key a = key("203.0.113.10", IPPROTO_ICMP, 0);
	struct flow_key b = key("2001:db8:1:2::3", IPPROTO_TCP, 1);
	struct flow_key c = key("2001:db8:2::3", IPPROTO_UDP, 443);

	CU_ASSERT_TRUE(service_table_has_address(table, a.destination, ADDR_V4));
	CU_ASSERT_FALSE(service_table_has_address(table, a.destination, ADDR_V6));
	CU_ASSERT_TRUE(service_table_has_address(table, b.destination, ADDR_V6));
	CU_ASSERT_FALSE(service_table_has_address(table, c.destination, ADDR_V6));
	free(table);
}

static void random_address(uint64_t *random, struct ip_addr *ret)
{
	uint64_t dice = suite_random(random);

	// Few distinct bytes, so that prefixes and addresses meet.
	memset(ret, 0, sizeof(*ret));
	ret->family = dice & 1 ? ADDR_V4 : ADDR_V6;
	for (unsigned i = 0; i < (ret->family == ADDR_V4 ? 4 : 16); i++) {
		dice = suite_random(random);
		ret->bytes[i] = (uint8_t)(dice % 3 == 0 ? 0x80 : dice % 3 == 1 ? 0xff : 0);
	}
}

static void clear_host_bits(struct snapshot_binding *binding)
{
	for (unsigned n = binding->prefix_bits; n < 128; n++)
		binding->address.bytes[n / 8] &= (uint8_t) ~(1u << (7 - n % 8));
}

static void compare_with_scan(uint64_t *random, const struct service_table *table,
	const struct snapshot_binding *bindings, uint32_t count)
{
	struct flow_key keys[32];
	const struct flow_key *pointers[32];
	uint32_t services[32];

	for (unsigned i = 0; i < 32; i++) {
		uint64_t dice = suite_random(random);
		struct ip_addr address;

		random_address(random, &address);
		if (dice & 1)
			address = bindings[dice / 4 % count].address;
		memset(&keys[i], 0, sizeof(keys[i]));
		memcpy(keys[i].destination, address.bytes, sizeof(address.bytes));
		keys[i].family = address.family;
		keys[i].protocol = dice & 2 ? IPPROTO_TCP : IPPROTO_UDP;
		keys[i].destination_port_be = htons((uint16_t)(1 + (dice >> 40) % 3));
		if (i > 0 && dice >> 62 == 0)
			keys[i] = keys[i - 1];
		pointers[i] = &keys[i];
		CU_ASSERT_EQUAL(service_table_has_address(table, address.bytes, address.family),
			service_scan_address(bindings, count, &address));
	}
	service_table_find_burst(table, pointers, 32, services);
	for (unsigned i = 0; i < 32; i++) {
		uint32_t expected = service_scan(bindings, count, &keys[i]);

		CU_ASSERT_EQUAL_FATAL(services[i], expected);
		CU_ASSERT_EQUAL_FATAL(services[i], service_table_find(table, &keys[i]));
	}
}

static void random_bindings_agree_with_the_linear_scan(void)
{
	uint64_t random = suite_seed();

	for (unsigned round = 0; round < 200; round++) {
		uint32_t count = (uint32_t)(1 + suite_random(&random) % 120);
		struct snapshot_binding *bindings = calloc(count, sizeof(*bindings));

		for (uint32_t i = 0; i < count; i++) {
			uint64_t dice = suite_random(&random);

			random_address(&random, &bindings[i].address);
			uint8_t full = bindings[i].address.family == ADDR_V4 ? 32 : 128;

			bindings[i].prefix_bits =
				(uint8_t)(dice & 1 ? full : (dice >> 8) % (full + 1u));
			bindings[i].protocol = dice & 2 ? IPPROTO_TCP : IPPROTO_UDP;
			bindings[i].port_be = htons((uint16_t)((dice >> 40) % 4));
			bindings[i].service = i;
			clear_host_bits(&bindings[i]);
		}
		struct service_table *table = make(bindings, count);

		for (unsigned i = 0; i < 20; i++)
			compare_with_scan(&random, table, bindings, count);
		free(table);
		free(bindings);
	}
}

static void all_services_of_the_limit_are_found(void)
{
	struct snapshot_binding *bindings = calloc(SNAPSHOT_BINDINGS_MAX, sizeof(*bindings));

	for (uint32_t i = 0; i < SNAPSHOT_BINDINGS_MAX; i++) {
		uint32_t address_be = htonl(0x0a000000 + i / 4);

		memcpy(bindings[i].address.bytes, &address_be, 4);
		bindings[i].address.family = ADDR_V4;
		bindings[i].prefix_bits = 32;
		bindings[i].protocol = IPPROTO_TCP;
		bindings[i].port_be = htons((uint16_t)(i % 4));
		bindings[i].service = i % SNAPSHOT_SERVICES_MAX;
	}
	struct service_table *table = make(bindings, SNAPSHOT_BINDINGS_MAX);
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < SNAPSHOT_BINDINGS_MAX; i++) {
		struct flow_key wanted = {.family = ADDR_V4,
			.protocol = IPPROTO_TCP,
			.destination_port_be = bindings[i].port_be};

		memcpy(wanted.destination, bindings[i].address.bytes, 16);
		wrong += service_table_find(table, &wanted) != bindings[i].service;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	free(table);
	free(bindings);
}

static const struct test_case cases[] = {
	{"most_specific_binding_wins", most_specific_binding_wins},
	{"families_do_not_mix", families_do_not_mix},
	{"first_of_equal_bindings_stays", first_of_equal_bindings_stays},
	{"empty_table_knows_nothing", empty_table_knows_nothing},
	{"address_is_ours_whatever_protocol_and_port", address_is_ours_whatever_protocol_and_port},
	{"random_bindings_agree_with_the_linear_scan", random_bindings_agree_with_the_linear_scan},
	{"all_services_of_the_limit_are_found", all_services_of_the_limit_are_found},
};

int main(void)
{
	return SUITE_RUN("service_table", cases);
}
