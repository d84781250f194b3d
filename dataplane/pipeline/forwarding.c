// SPDX-License-Identifier: Apache-2.0
// What a worker forwards by: a worker's block of a snapshot, and the next hop of each backend.
#include "dataplane/packet/encap.h"
#include "dataplane/pipeline/pipeline_state.h"
#include "dataplane/table/neighbour_table.h"

#include <assert.h>
#include <errno.h>

static uint64_t line_up(uint64_t bytes)
{
	return (bytes + SNAPSHOT_ALIGN - 1) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
}

// Offsets of the parts of a block.
struct layout {
	uint64_t image;
	uint64_t backends;
	uint64_t services;
	uint64_t bytes;
};

static struct layout lay_out(const struct snapshot *snapshot)
{
	struct layout ret;

	ret.image = line_up(sizeof(struct forwarding));
	ret.backends = ret.image + line_up(snapshot->header->bytes);
	ret.services =
		ret.backends + line_up(snapshot->backend_count * sizeof(struct forwarding_backend));
	ret.bytes = ret.services + line_up(service_table_footprint(snapshot->binding_count));
	return ret;
}

uint64_t forwarding_footprint(const struct snapshot *snapshot)
{
	return lay_out(snapshot).bytes;
}

// Where a packet for a backend goes.
struct route {
	const struct ip_addr *next_hop; // NULL: nowhere
	uint8_t port;
	bool on_link;
};

static bool is_on_link(const struct pipeline_port *port, const struct ip_addr *address)
{
	for (unsigned i = 0; i < port->address_count; i++) {
		const struct pipeline_address *own = &port->addresses[i];

		if (own->address.family == address->family &&
			addr_in_prefix(address, &own->address, own->prefix_bits))
			return true;
	}
	return false;
}

static struct route find_route(const struct pipeline *pipeline, const struct ip_addr *address)
{
	struct route ret = {.next_hop = NULL};

	for (uint32_t i = 0; i < pipeline->port_count; i++) {
		if (is_on_link(&pipeline->ports[i], address))
			return (struct route){
				.next_hop = address, .port = (uint8_t)i, .on_link = true};
	}
	for (uint32_t i = 0; i < pipeline->port_count && ret.next_hop == NULL; i++) {
		const struct pipeline_port *port = &pipeline->ports[i];
		const struct ip_addr *gateway =
			address->family == ADDR_V4 ? &port->gateway4 : &port->gateway6;

		if (gateway->family == address->family)
			ret = (struct route){.next_hop = gateway, .port = (uint8_t)i};
	}
	return ret;
}

static int build_backend(struct pipeline *pipeline, const struct snapshot_backend *from,
	uint64_t generation, struct forwarding_backend *ret)
{
	struct route route;

	*ret = (struct forwarding_backend){.address = from->address,
		.pool = from->pool,
		.next_hop = PIPELINE_NO_ROUTE,
		.state = from->state};
	if (from->state == SNAPSHOT_BACKEND_FREE)
		return 0;
	route = find_route(pipeline, &from->address);
	if (route.next_hop == NULL)
		return 0;
	ret->port = route.port;
	ret->on_link = route.on_link;
	return neighbour_table_intern(
		pipeline->neighbours, route.port, route.next_hop, generation, &ret->next_hop);
}

int forwarding_build(void *memory, const struct snapshot *snapshot, struct pipeline *pipeline,
	struct forwarding **ret)
{
	struct layout layout = lay_out(snapshot);
	struct forwarding *forwarding = memory;
	struct forwarding_backend *backends =
		(struct forwarding_backend *)((char *)memory + layout.backends);

	assert((uintptr_t)memory % SNAPSHOT_ALIGN == 0);
	memcpy((char *)memory + layout.image, snapshot->header, snapshot->header->bytes);
	snapshot_view((char *)memory + layout.image, &forwarding->snapshot);
	for (uint32_t i = 0; i < snapshot->backend_count; i++) {
		int result = build_backend(pipeline, &snapshot->backends[i],
			snapshot->header->generation, &backends[i]);

		if (result < 0)
			return result;
	}
	forwarding->backends = backends;
	forwarding->services = service_table_format(
		(char *)memory + layout.services, snapshot->bindings, snapshot->binding_count);
	forwarding->recall_count = 0;
	for (uint32_t i = 0; i < snapshot->pool_count; i++)
		forwarding->recall_count += snapshot_gate(&snapshot->pools[i]) == GATE_RECALL;
	forwarding->generation = snapshot->header->generation;
	forwarding->bytes = layout.bytes;
	*ret = forwarding;
	return 0;
}

// The count is a hint that saves looking at gates: a worker that sees it a moment before or after the gate lets a flow pick
// again a packet earlier or later.
void forwarding_gate_set(struct forwarding *forwarding, uint32_t pool, uint64_t word)
{
	struct snapshot_pool *of = &forwarding->snapshot.pools[pool];
	uint32_t recall_count = forwarding->recall_count + (word == GATE_RECALL) -
		(snapshot_gate(of) == GATE_RECALL);

	snapshot_gate_set(of, word);
	__atomic_store_n(&forwarding->recall_count, recall_count, __ATOMIC_RELAXED);
}
