// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/service_scan.h"

static bool bit(const uint8_t *bytes, unsigned n)
{
	return bytes[n / 8] >> (7 - n % 8) & 1;
}

static bool in_prefix(
	const struct snapshot_binding *binding, const uint8_t *address, uint8_t family)
{
	if (binding->address.family != family)
		return false;
	for (unsigned n = 0; n < binding->prefix_bits; n++) {
		if (bit(binding->address.bytes, n) != bit(address, n))
			return false;
	}
	return true;
}

uint32_t service_scan(
	const struct snapshot_binding *bindings, uint32_t count, const struct flow_key *key)
{
	uint32_t service = UINT32_MAX;
	int best = -1;

	for (uint32_t i = 0; i < count; i++) {
		bool with_port = bindings[i].port_be == key->destination_port_be;
		int value = 2 * bindings[i].prefix_bits + (bindings[i].port_be != 0);

		if (!in_prefix(&bindings[i], key->destination, key->family) ||
			bindings[i].protocol != key->protocol ||
			(bindings[i].port_be != 0 && !with_port) || value <= best)
			continue;
		best = value;
		service = bindings[i].service;
	}
	return service;
}

bool service_scan_address(
	const struct snapshot_binding *bindings, uint32_t count, const struct ip_addr *address)
{
	for (uint32_t i = 0; i < count; i++) {
		if (in_prefix(&bindings[i], address->bytes, address->family))
			return true;
	}
	return false;
}
