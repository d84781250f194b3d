// SPDX-License-Identifier: Apache-2.0
// The naive twin of the service table: reads all bindings and keeps the most specific one.
#pragma once

#include "common/flow.h"
#include "common/snapshot.h"

// The service of a key, or UINT32_MAX.
uint32_t service_scan(
	const struct snapshot_binding *bindings, uint32_t count, const struct flow_key *key);

// Tells whether an address lies in some binding.
bool service_scan_address(
	const struct snapshot_binding *bindings, uint32_t count, const struct ip_addr *address);
