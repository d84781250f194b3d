// SPDX-License-Identifier: Apache-2.0
#include "common/addr.h"

#include <arpa/inet.h>
#include <errno.h>
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

// Digits by hand: rings of thousands of members seed from these texts, and snprintf() took a tenth of their build.
static char *put_decimal(char *to, uint8_t byte)
{
	if (byte >= 100)
		*to++ = (char)('0' + byte / 100);
	if (byte >= 10)
		*to++ = (char)('0' + byte / 10 % 10);
	*to++ = (char)('0' + byte % 10);
	return to;
}

static char *put_hex(char *to, uint16_t group)
{
	for (unsigned shift = 12; shift < 16; shift -= 4) {
		unsigned digit = group >> shift & 0xf;

		if (group >> shift != 0 || shift == 0)
			*to++ = "0123456789abcdef"[digit];
	}
	return to;
}

static char *put_v4(char *to, const uint8_t *bytes)
{
	for (unsigned i = 0; i < 4; i++) {
		if (i > 0)
			*to++ = '.';
		to = put_decimal(to, bytes[i]);
	}
	return to;
}

static char *put_v6(char *to, const uint8_t *bytes)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint16_t group[GROUPS];
	unsigned start, zeros;

	// RFC 5952 section 5: dotted where the prefix is known to hold IPv4 addresses.
	if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		return put_v4(stpcpy(to, "::ffff:"), bytes + sizeof(mapped));
	for (unsigned i = 0; i < GROUPS; i++)
		group[i] = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
	longest_zeros(group, &start, &zeros);
	for (unsigned i = 0; i < GROUPS; i++) {
		if (i == start) {
			to = stpcpy(to, "::");
			i += zeros - 1;
			continue;
		}
		if (i != 0 && i != start + zeros)
			*to++ = ':';
		to = put_hex(to, group[i]);
	}
	return to;
}

size_t addr_format(const struct ip_addr *addr, char ret[static ADDR_TEXT_BYTES])
{
	char *end;

	if (addr->family == ADDR_V4)
		end = put_v4(ret, addr->bytes);
	else if (addr->family == ADDR_V6)
		end = put_v6(ret, addr->bytes);
	else
		end = stpcpy(ret, "none");
	*end = '\0';
	return (size_t)(end - ret);
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
