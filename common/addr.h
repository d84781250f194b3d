// SPDX-License-Identifier: Apache-2.0
// IP addresses of both families, and their one canonical text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum addr_family {
	ADDR_NONE = 0,
	ADDR_V4 = 4,
	ADDR_V6 = 6,
};

// An address in network byte order. IPv4 stands in bytes[0..3] and the rest is zero, so two equal
// addresses are equal byte for byte. Part of the snapshot image: the layout is fixed.
struct ip_addr {
	uint8_t bytes[16];
	uint8_t family; // enum addr_family
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct ip_addr) == 20, "struct ip_addr is part of the snapshot image");

// Longest text with its NUL: eight groups of four digits, or an IPv4-mapped address.
#define ADDR_TEXT_BYTES 46

// Reads an address: dotted IPv4 or any spelling of IPv6 (RFC 4291 section 2.2), no brackets, no scope.
// Returns 0, or -EINVAL when text is no address; then *ret is untouched.
int addr_parse(const char *text, struct ip_addr *ret);

// Writes the canonical text (RFC 5952): the longest run of two or more zero groups, the first of equal
// runs, becomes "::"; lower case; only ::ffff:0:0/96 ends in dotted form. This differs from inet_ntop()
// for ::/96 (docs/ring.md section 1), and ring seeds depend on it.
// Returns the length without the NUL.
size_t addr_format(const struct ip_addr *addr, char ret[static ADDR_TEXT_BYTES]);

// Orders addresses: IPv4 before IPv6, then by number. Returns <0, 0 or >0.
int addr_compare(const struct ip_addr *a, const struct ip_addr *b);

// Tells whether addr lies in prefix/prefix_bits. Families must match; prefix_bits in 0..32 or 0..128.
bool addr_in_prefix(const struct ip_addr *addr, const struct ip_addr *prefix, unsigned prefix_bits);
