// SPDX-License-Identifier: Apache-2.0
// A worker's life around its bursts: made, booked, kept.
#include "dataplane/packet/wire.h"
#include "dataplane/pipeline/pipeline_state.h"

#include <assert.h>
#include <errno.h>

int pipeline_init(struct pipeline *pipeline)
{
	if (pipeline->worker_count == 0 || pipeline->worker_count > PIPELINE_WORKERS_MAX ||
		pipeline->port_count == 0 || pipeline->port_count > PIPELINE_PORTS_MAX ||
		pipeline->neighbours == NULL)
		return -EINVAL;
	for (uint32_t i = 0; i < pipeline->port_count; i++) {
		if (pipeline->ports[i].mtu < WIRE_IP4_MTU_MIN ||
			pipeline->ports[i].address_count > PIPELINE_ADDRESSES_MAX)
			return -EINVAL;
	}
	return 0;
}

static uint64_t align_up(uint64_t bytes)
{
	return (bytes + PIPELINE_ALIGN - 1) / PIPELINE_ALIGN * PIPELINE_ALIGN;
}

uint64_t pipeline_worker_footprint(void)
{
	return align_up(sizeof(struct pipeline_scratch)) + align_up(fragment_table_footprint());
}

// The outer source of services that have none of their own: the port's first address of the family.
static void init_encap_port(const struct pipeline_port *port, struct encap_port *ret)
{
	*ret = (struct encap_port){.mtu = port->mtu, .vlan = port->vlan};
	for (unsigned i = port->address_count; i-- > 0;) {
		const struct ip_addr *address = &port->addresses[i].address;

		if (address->family == ADDR_V4)
			ret->source4 = *address;
		else if (address->family == ADDR_V6)
			ret->source6 = *address;
	}
}

void pipeline_worker_init(struct pipeline_worker *worker, struct pipeline *pipeline, uint32_t index,
	struct flow_table *flow_table, const struct stats_worker *stats, void *memory)
{
	struct pipeline_scratch *scratch = memory;

	assert((uintptr_t)memory % PIPELINE_ALIGN == 0 && index < pipeline->worker_count);
	memset(scratch, 0, sizeof(*scratch));
	scratch->fragments =
		fragment_table_format((char *)memory + align_up(sizeof(struct pipeline_scratch)));
	rate_limit_init(&scratch->echo_limit, PIPELINE_ECHO_RATE, PIPELINE_BURST_LIMIT);
	rate_limit_init(&scratch->error_limit, PIPELINE_ERROR_RATE, PIPELINE_BURST_LIMIT);
	rate_limit_init(&scratch->remote_limit, PIPELINE_REMOTE_RATE, PIPELINE_REMOTE_MAX);
	for (uint32_t i = 0; i < pipeline->port_count; i++)
		init_encap_port(&pipeline->ports[i], &scratch->encap_ports[i]);
	*worker = (struct pipeline_worker){.pipeline = pipeline,
		.flow_table = flow_table,
		.stats = *stats,
		.index = index,
		.scratch = scratch};
	pipeline->flow_tables[index] = flow_table;
	pipeline->fragment_tables[index] = scratch->fragments;
}

void pipeline_book_sent(
	struct pipeline_worker *worker, const struct packet *packets, unsigned packet_count)
{
	uint64_t forwarded = 0, forwarded_bytes = 0;

	for (unsigned i = 0; i < packet_count; i++) {
		const struct packet *packet = &packets[i];

		switch ((enum packet_verdict)packet->verdict) {
		case PACKET_FORWARD:
			forwarded++;
			forwarded_bytes += packet->length;
			continue;
		case PACKET_PUNT:
			count(worker, COUNTER_punted);
			continue;
		case PACKET_ANSWER:
		case PACKET_CONSUME:
			count(worker, COUNTER_answered);
			continue;
		case PACKET_DROP_REPLY:
			count(worker, COUNTER_generated);
			break;
		case PACKET_DROP:
			break;
		case PACKET_PENDING:
			assert(false);
		}
		worker->stats.drop[packet->reason]++;
		if (packet->service != SERVICE_NONE)
			worker->stats.services[packet->service].drops++;
	}
	worker->stats.counter[COUNTER_forwarded] += forwarded;
	worker->stats.counter[COUNTER_forwarded_bytes] += forwarded_bytes;
}

// The pool that an entry's backend is of, or SNAPSHOT_POOLS_MAX when the id names nothing now.
static uint32_t pool_of(const struct forwarding *forwarding, uint32_t backend)
{
	if (forwarding == NULL || backend >= forwarding->snapshot.backend_count ||
		forwarding->backends[backend].state == SNAPSHOT_BACKEND_FREE)
		return SNAPSHOT_POOLS_MAX;
	return forwarding->backends[backend].pool;
}

// Books flows that showed a SYN and nothing after it for a whole round: the backend refused, or was silent.
static void book_half_open(struct pipeline_worker *worker, const struct flow_sweep *found)
{
	for (uint32_t i = 0; i < found->half_open; i++) {
		uint64_t word = found->half_open_words[i];
		uint32_t pool = pool_of(worker->forwarding, flow_word_backend(word));

		if (pool != SNAPSHOT_POOLS_MAX)
			select_book_abort(worker, pool, flow_word_uses_new(word));
	}
}

// Adds up the flows of new rings by pool.
static void count_live_new(struct pipeline_worker *worker, const struct flow_sweep *found)
{
	struct pipeline_scratch *scratch = worker->scratch;

	for (uint32_t i = 0; i < found->live_new; i++) {
		uint32_t pool = pool_of(worker->forwarding, found->live_new_backends[i]);

		if (pool == SNAPSHOT_POOLS_MAX)
			continue;
		scratch->sweep_live_new[pool]++;
		if (pool >= scratch->sweep_pool_count)
			scratch->sweep_pool_count = pool + 1;
	}
}

// Publishes what a whole round counted, and begins the next one. A pool that was counted for once is written in every
// round, so that its gauge goes back to 0.
static void publish_live(struct pipeline_worker *worker)
{
	struct pipeline_scratch *scratch = worker->scratch;

	worker->stats.counter[COUNTER_flow_live] = scratch->sweep_live;
	scratch->sweep_live = 0;
	for (uint32_t i = 0; i < scratch->sweep_pool_count; i++) {
		worker->stats.pools[i].live_new = scratch->sweep_live_new[i];
		scratch->sweep_live_new[i] = 0;
	}
}

static void sweep(struct pipeline_worker *worker, unsigned buckets)
{
	struct pipeline_scratch *scratch = worker->scratch;
	struct flow_sweep found;

	flow_table_sweep(worker->flow_table, buckets, &found);
	book_half_open(worker, &found);
	worker->stats.counter[COUNTER_flow_expired] += found.expired;
	scratch->sweep_live += found.live;
	count_live_new(worker, &found);
	if (found.wrapped)
		publish_live(worker);
}

void pipeline_housekeep(struct pipeline_worker *worker)
{
	struct pipeline_scratch *scratch = worker->scratch;
	uint64_t bucket_ns = PIPELINE_SWEEP_NS / worker->flow_table->bucket_count + 1;
	uint64_t due;

	if (scratch->sweep_ns == 0 || worker->now_ns < scratch->sweep_ns)
		scratch->sweep_ns = worker->now_ns;
	// A worker that was away owes one round, not more.
	if (worker->now_ns - scratch->sweep_ns > PIPELINE_SWEEP_NS)
		scratch->sweep_ns = worker->now_ns - PIPELINE_SWEEP_NS;
	due = (worker->now_ns - scratch->sweep_ns) / bucket_ns;
	if (due > PIPELINE_SWEEP_BUCKETS_MAX)
		due = PIPELINE_SWEEP_BUCKETS_MAX;
	if (due == 0)
		return;
	flow_table_tick(worker->flow_table, worker->now_s);
	scratch->sweep_ns += due * bucket_ns;
	for (; due > FLOW_TABLE_SWEEP_BUCKETS_MAX; due -= FLOW_TABLE_SWEEP_BUCKETS_MAX)
		sweep(worker, FLOW_TABLE_SWEEP_BUCKETS_MAX);
	sweep(worker, (unsigned)due);
}
