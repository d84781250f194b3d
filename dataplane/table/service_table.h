// SPDX-License-Identifier: Apache-2.0
// The service table: which service a packet belongs to, and whether an address is one of ours.
//
// A read-only hash table of 32-byte slots, half full at most, built from a snapshot's bindings in memory of the
// caller; the most specific binding wins: (address, protocol, port), (address, protocol, any port), then for
// each prefix, the longest first, the same two. Twin in tests: tests/oracle/service_scan.h.
#pragma once

#include "common/flow.h"
#include "common/snapshot.h"

#define SERVICE_TABLE_ALIGN 64u

// No service. With ours set the address belongs to some service, for another protocol or port.
#define SERVICE_NONE UINT32_MAX

struct service_table;

// Bytes of a table. binding_count: 0..SNAPSHOT_BINDINGS_MAX.
uint64_t service_table_footprint(uint32_t binding_count);

// Builds a table. memory: service_table_footprint(count) bytes at SERVICE_TABLE_ALIGN.
// bindings: of a snapshot that was opened. Of two equal bindings the first stays.
// Cost: about 100 ns a binding. Context: main.
struct service_table *service_table_format(
	void *memory, const struct snapshot_binding *bindings, uint32_t count);

// Finds the services of a burst by destination, protocol and destination port of each key. All first lines are
// asked for before the first is looked at.
// keys: count pointers. ret_services: ids, SERVICE_NONE where there is none. count: 0..32.
// Context: any thread. Cost: one line a packet for an exact binding; one more for any-port, two for each prefix
// length in use.
void service_table_find_burst(const struct service_table *table, const struct flow_key *const *keys,
	unsigned count, uint32_t *ret_services);

// Finds the service of one flow, or SERVICE_NONE.
uint32_t service_table_find(const struct service_table *table, const struct flow_key *key);

// Tells whether an address lies in some binding: a virtual address.
// address: as in struct flow_key. family: enum addr_family.
bool service_table_has_address(
	const struct service_table *table, const uint8_t address[static 16], uint8_t family);
