// SPDX-License-Identifier: Apache-2.0
#include "common/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GROUPS 8u

int addr_parse(const char *text, struct ip_addr *ret)
{
	struct ip_addr addr = {0};

	if (inet_pton(AF_INET, text, addr.bytes) == 1)
		addr.family = ADDR_V4;
	else if (inet_pton(AF_INET6, text, addr.bytes) == 1)
		addr.family = ADDR_V6;
	else
		return -EINVAL;
	*ret = addr;
	return 0;
}

// The first of the longest runs of zero groups; RFC 5952 section 4.2.2 leaves single groups alone.
static void longest_zeros(const uint16_t group[GROUPS], unsigned *ret_start, unsigned *ret_length)
{
	unsigned start = 0, length = 0;

	for (unsigned i = 0; i < GROUPS; i++) {
		unsigned run = 0;

		while (i + run < GROUPS && group[i + run] == 0)
			run++;
		if (run > length) {
			start = i;
			length = run;
		}
		i += run;
	}
	*ret_start = length < 2 ? GROUPS : start;
	*ret_length = length < 2 ? 0 : length;
}

static int format_v4(const uint8_t *bytes, const char *prefix, char *ret)
{
	return snprintf(ret, ADDR_TEXT_BYTES, "%s%u.%u.%u.%u", prefix, bytes[0], bytes[1], bytes[2],
		bytes[3]);
}

static int format_v6(const uint8_t *bytes, char *ret)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint16_t group[GROUPS];
	unsigned start, zeros;
	int length = 0;

	// RFC 5952 section 5: dotted where the prefix is known to hold IPv4 addresses.
	if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		return format_v4(bytes + sizeof(mapped), "::ffff:", ret);
	for (unsigned i = 0; i < GROUPS; i++)
		group[i] = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
	longest_zeros(group, &start, &zeros);
	for (unsigned i = 0; i < GROUPS; i++) {
		const char *colon = i == 0 || i == start + zeros ? "" : ":";

		if (i == start) {
			length += snprintf(ret + length, ADDR_TEXT_BYTES - (size_t)length, "::");
			i += zeros - 1;
			continue;
		}
		length += snprintf(
			ret + length, ADDR_TEXT_BYTES - (size_t)length, "%s%x", colon, group[i]);
	}
	return length;
}

size_t addr_format(const struct ip_addr *addr, char ret[static ADDR_TEXT_BYTES])
{
	if (addr->family == ADDR_V4)
		return (size_t)format_v4(addr->bytes, "", ret);
	if (addr->family == ADDR_V6)
		return (size_t)format_v6(addr->bytes, ret);
	return (size_t)snprintf(ret, ADDR_TEXT_BYTES, "none");
}

int addr_compare(const struct ip_addr *a, const struct ip_addr *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool addr_in_prefix(const struct ip_addr *addr, const struct ip_addr *prefix, unsigned prefix_bits)
{
	unsigned whole = prefix_bits / 8, rest = prefix_bits % 8;

	if (addr->family != prefix->family || memcmp(addr->bytes, prefix->bytes, whole) != 0)
		return false;
	return rest == 0 || ((addr->bytes[whole] ^ prefix->bytes[whole]) >> (8 - rest)) == 0;
}
