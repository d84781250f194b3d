// SPDX-License-Identifier: Apache-2.0
// The fragment table: where the first fragment of a datagram went, for the fragments behind it that carry no ports.
//
// One a worker, small, of fixed size. An entry is two 64-bit words, the choice and (identity hash xor choice); a reader on
// another core that sees halves of two entries gets a hash that does not match, and takes it as not found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FRAGMENT_TABLE_ALIGN 64u

// How long the fragments of a datagram may be apart. RFC 8200 section 4.5 gives up 60 s after the first arrival;
// RFC 791 section 3.2 suggests 15 s, RFC 1122 section 3.3.2 60 to 120 s.
#define FRAGMENT_TABLE_IDLE_S 60u

// One line holds four; a datagram lives milliseconds on a healthy path.
#define FRAGMENT_TABLE_ENTRIES 8192u

struct fragment_table;

// What the first fragment was given.
struct fragment_choice {
	uint32_t service; // id, 0..16383
	uint32_t backend; // id, 0..2^20-1
	bool uses_new;
};

// Bytes of a table.
uint64_t fragment_table_footprint(void);

// Makes an empty table. memory: fragment_table_footprint() bytes at FRAGMENT_TABLE_ALIGN.
struct fragment_table *fragment_table_format(void *memory);

// Remembers a first fragment. hash: 64 bits over source, destination, fragment id (and protocol for IPv4).
// Replaces the oldest of four when the line is full: a flood of fragments costs other fragments, nothing else.
// Context: the owner.
void fragment_table_store(struct fragment_table *table, uint64_t hash,
	const struct fragment_choice *choice, uint32_t now_s);

// Finds a first fragment. Returns false when it was not seen in the last FRAGMENT_TABLE_IDLE_S.
// Context: any thread. Source of the two-word check: docs/flow-table.md section 6.
bool fragment_table_find(const struct fragment_table *table, uint64_t hash, uint32_t now_s,
	struct fragment_choice *ret);
