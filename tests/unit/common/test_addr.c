// SPDX-License-Identifier: Apache-2.0
#include "common/addr.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static struct ip_addr parsed(const char *text)
{
	struct ip_addr addr = {0};

	CU_ASSERT_EQUAL_FATAL(addr_parse(text, &addr), 0);
	return addr;
}

static void check_text(const char *text, const char *canonical)
{
	struct ip_addr addr = parsed(text);
	char written[ADDR_TEXT_BYTES];
	size_t length = addr_format(&addr, written);

	CU_ASSERT_STRING_EQUAL(written, canonical);
	CU_ASSERT_EQUAL(length, strlen(canonical));
}

static void every_spelling_has_one_text(void)
{
	check_text("192.0.2.1", "192.0.2.1");
	check_text("0.0.0.0", "0.0.0.0");
	check_text("255.255.255.255", "255.255.255.255");
	check_text("::", "::");
	check_text("::1", "::1");
	check_text("1::", "1::");
	check_text("2001:DB8:0:0:0:0:0:1", "2001:db8::1");
	check_text("2001:0db8::0001", "2001:db8::1");
	check_text("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"); // one group stays
	check_text("2001:0:0:1:0:0:0:1", "2001:0:0:1::1");          // the longest run
	check_text("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1");    // the first of equal runs
	check_text("0:0:1::", "0:0:1::");
	check_text("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::");
	check_text("0:0:3:4:5:6:7:8", "::3:4:5:6:7:8");
	check_text("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static void only_mapped_addresses_end_in_dots(void)
{
	check_text("::ffff:192.0.2.1", "::ffff:192.0.2.1");
	check_text("::ffff:c000:201", "::ffff:192.0.2.1");
	check_text("::192.0.2.1", "::c000:201"); // glibc writes ::192.0.2.1
	check_text("::0.1.0.2", "::1:2");        // and here ::0.1.0.2
	check_text("64:ff9b::192.0.2.1", "64:ff9b::c000:201");
}

// glibc differs from RFC 5952 only in ::/96.
static void agrees_with_inet_ntop_elsewhere(void)
{
	uint64_t state = suite_seed();

	for (unsigned i = 0; i < 20000; i++) {
		struct ip_addr addr = {.family = ADDR_V6};
		uint64_t zeros = suite_random(&state);
		char ours[ADDR_TEXT_BYTES], theirs[INET6_ADDRSTRLEN];

		for (unsigned group = 0; group < 8; group++) {
			uint64_t value = zeros >> group & 1 ? 0 : suite_random(&state);

			addr.bytes[2 * group] = (uint8_t)(zeros >> (8 + group) & 1 ? 0 : value);
			addr.bytes[2 * group + 1] = (uint8_t)(value >> 8);
		}
		addr.bytes[0] |= 0x20;
		addr_format(&addr, ours);
		inet_ntop(AF_INET6, addr.bytes, theirs, sizeof(theirs));
		CU_ASSERT_STRING_EQUAL(ours, theirs);
		struct ip_addr again = parsed(ours);

		CU_ASSERT_EQUAL(memcmp(&again, &addr, sizeof(addr)), 0);
	}
}

static void refuses_what_is_no_address(void)
{
	static const char *const bad[] = {"", " ", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1",
		"01.2.3.4", "1.2.3.4 ", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
		"::g", "fe80::1%eth0", "[::1]", "::1.2.3", "12345::", "localhost", "0x7f.1"};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ip_addr addr = {.family = 77};

		CU_ASSERT_EQUAL(addr_parse(bad[i], &addr), -EINVAL);
		CU_ASSERT_EQUAL(addr.family, 77);
	}
}

static void orders_as_numbers_ipv4_first(void)
{
	static const char *const ascending[] = {"0.0.0.0", "9.255.255.255", "10.0.0.0", "10.0.0.2",
		"10.0.0.10", "255.0.0.0", "::", "::2", "::10", "::ffff:1.2.3.4",
		"2001:db8::", "ff02::1"};
	unsigned count = sizeof(ascending) / sizeof(ascending[0]);

	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = 0; j < count; j++) {
			struct ip_addr a = parsed(ascending[i]), b = parsed(ascending[j]);
			int order = addr_compare(&a, &b);

			CU_ASSERT_EQUAL((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
}

static void prefix_ends_at_any_bit(void)
{
	struct ip_addr addr = parsed("10.1.130.7"), prefix = parsed("10.1.128.0");
	struct ip_addr addr6 = parsed("2001:db8:8000::1"), prefix6 = parsed("2001:db8::");

	CU_ASSERT_TRUE(addr_in_prefix(&addr, &prefix, 0));
	CU_ASSERT_TRUE(addr_in_prefix(&addr, &prefix, 17));
	CU_ASSERT_TRUE(addr_in_prefix(&addr, &prefix, 22));
	CU_ASSERT_FALSE(addr_in_prefix(&addr, &prefix, 23));
	CU_ASSERT_FALSE(addr_in_prefix(&addr, &prefix, 32));
	CU_ASSERT_TRUE(addr_in_prefix(&addr, &addr, 32));
	CU_ASSERT_TRUE(addr_in_prefix(&addr6, &prefix6, 32));
	CU_ASSERT_FALSE(addr_in_prefix(&addr6, &prefix6, 33));
	CU_ASSERT_TRUE(addr_in_prefix(&addr6, &addr6, 128));
	CU_ASSERT_FALSE(addr_in_prefix(&addr6, &prefix, 0));
}

int main(void)
{
	static const struct test_case cases[] = {
		{"every_spelling_has_one_text", every_spelling_has_one_text},
		{"only_mapped_addresses_end_in_dots", only_mapped_addresses_end_in_dots},
		{"agrees_with_inet_ntop_elsewhere", agrees_with_inet_ntop_elsewhere},
		{"refuses_what_is_no_address", refuses_what_is_no_address},
		{"orders_as_numbers_ipv4_first", orders_as_numbers_ipv4_first},
		{"prefix_ends_at_any_bit", prefix_ends_at_any_bit},
	};

	return SUITE_RUN("addr", cases);
}
