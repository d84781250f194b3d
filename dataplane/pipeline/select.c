// SPDX-License-Identifier: Apache-2.0
// Selection for flows that have no backend yet, or one that left: gate, ring, flow table; and what a cutover is judged
// by: counts of each ring, shadow comparison, early aborts, traces.
#include "common/selection.h"

#include "dataplane/pipeline/pipeline_state.h"

// The hash that gate and rings see for a packet. is_routed: it decides about the packet, so it is counted.
static struct selection_hash ring_hash_of(struct pipeline_worker *worker, struct packet *packet,
	const struct snapshot_service *service, bool is_routed)
{
	struct quic_id id = quic_id_of(packet, service);

	if (id.length > 0 && is_routed)
		count(worker, COUNTER_quic_routed);
	return selection_ring_hash(&worker->forwarding->snapshot, service, &packet->key,
		packet->hash, id.bytes, id.length);
}

static void book_no_backend(struct pipeline_worker *worker, struct packet *packet,
	const struct snapshot_service *service, const struct selection *selection)
{
	const struct ring *ring = &worker->forwarding->snapshot.rings[selection->ring];
	struct stats_pool *pool = &worker->stats.pools[service->pool];

	if (selection->uses_new)
		pool->drops_new++;
	else
		pool->drops_old++;
	drop(packet, ring->header->point_count == 0 ? DROP_ring_empty : DROP_all_unusable);
}

void select_book_abort(struct pipeline_worker *worker, uint32_t pool, bool uses_new)
{
	if (uses_new)
		worker->stats.pools[pool].aborts_new++;
	else
		worker->stats.pools[pool].aborts_old++;
}

uint64_t select_peek_others(const struct pipeline_worker *worker, uint64_t hash)
{
	const struct pipeline *pipeline = worker->pipeline;

	// All buckets are asked for first: the misses overlap, whatever the number of workers.
	for (uint32_t i = 0; i < pipeline->worker_count; i++) {
		if (i != worker->index && pipeline->flow_tables[i] != NULL)
			flow_table_prefetch(pipeline->flow_tables[i], hash);
	}
	for (uint32_t i = 0; i < pipeline->worker_count; i++) {
		uint64_t word = 0;

		if (i != worker->index && pipeline->flow_tables[i] != NULL)
			word = flow_table_peek(pipeline->flow_tables[i], hash, worker->now_s);
		if (word != 0)
			return word;
	}
	return 0;
}

// A trace's word for what flow_table_insert() did; a flow that was found had its trace already.
static enum ipc_trace_entry entry_of(enum flow_insert insert)
{
	static const uint8_t entries[] = {
		[FLOW_INSERT_FREE] = IPC_TRACE_INSERTED,
		[FLOW_INSERT_EXPIRED] = IPC_TRACE_OVER_EXPIRED,
		[FLOW_INSERT_EVICT_UNPROVEN] = IPC_TRACE_OVER_UNPROVEN,
		[FLOW_INSERT_EVICT_OLDEST] = IPC_TRACE_OVER_OLDEST,
		[FLOW_INSERT_FOUND] = IPC_TRACE_INSERTED,
		[FLOW_INSERT_REFUSED] = IPC_TRACE_REFUSED,
		[FLOW_INSERT_NOT_WORTH_STORING] = IPC_TRACE_NOT_STORED,
	};

	return (enum ipc_trace_entry)entries[insert];
}

static bool is_traced(const struct pipeline_worker *worker, const struct packet *packet)
{
	uint32_t sample = __atomic_load_n(&worker->pipeline->trace_sample, __ATOMIC_RELAXED);

	return sample != 0 && is_sampled(packet->hash, sample - 1);
}

static void trace(struct pipeline_worker *worker, const struct packet *packet,
	const struct snapshot_service *service, const struct selection *selection,
	enum ipc_trace_table table, enum ipc_trace_entry entry)
{
	const struct snapshot *snapshot = &worker->forwarding->snapshot;
	int64_t offset_ns =
		__atomic_load_n(&worker->pipeline->realtime_offset_ns, __ATOMIC_RELAXED);
	struct ipc_trace record = {
		.time_ns = worker->now_ns + (uint64_t)offset_ns,
		.key = packet->key,
		.service = packet->service,
		.ring_hash = selection->hash.ring_old,
		.ring_hash_new = selection->hash.ring_new,
		.bucket = selection->bucket,
		.backend = packet->backend,
		.threshold = snapshot_threshold(&snapshot->pools[service->pool]),
		.uses_new = selection->uses_new,
		.table = (uint8_t)table,
		.worker = (uint8_t)worker->index,
		.entry = (uint8_t)entry,
	};

	selection_pick_both(
		snapshot, service, selection->hash, &record.backend_old, &record.backend_new);
	trace_ring_push(&worker->scratch->traces, &record);
}

// What is counted for a new flow, besides its packets.
static void book_new_flow(struct pipeline_worker *worker, const struct packet *packet,
	const struct snapshot_service *service, const struct selection *selection,
	enum ipc_trace_entry entry)
{
	const struct snapshot *snapshot = &worker->forwarding->snapshot;
	struct stats_pool *of_pool = &worker->stats.pools[service->pool];
	struct stats_service *of_service = &worker->stats.services[packet->service];

	worker->stats.backends[packet->backend].new_flows++;
	of_pool->new_flows_old += !selection->uses_new;
	of_pool->new_flows_new += selection->uses_new;
	of_service->new_flows_old += !selection->uses_new;
	of_service->new_flows_new += selection->uses_new;
	if (service->ring_new != SNAPSHOT_NO_RING &&
		is_sampled(packet->hash, PIPELINE_SHADOW_SHIFT)) {
		uint32_t on_old, on_new;

		selection_pick_both(snapshot, service, selection->hash, &on_old, &on_new);
		count(worker, on_old == on_new ? COUNTER_shadow_same : COUNTER_shadow_different);
		of_pool->shadow_same += on_old == on_new;
		of_pool->shadow_different += on_old != on_new;
	}
	if (is_traced(worker, packet))
		trace(worker, packet, service, selection, IPC_TRACE_MISS, entry);
}

static void book_insert(struct pipeline_worker *worker, enum flow_insert insert)
{
	static const uint8_t counters[] = {
		[FLOW_INSERT_FREE] = COUNTER_flow_insert,
		[FLOW_INSERT_EXPIRED] = COUNTER_flow_expired,
		[FLOW_INSERT_EVICT_UNPROVEN] = COUNTER_flow_evict_unconfirmed,
		[FLOW_INSERT_EVICT_OLDEST] = COUNTER_flow_evict_oldest,
		[FLOW_INSERT_FOUND] = COUNTER_flow_hit,
		[FLOW_INSERT_REFUSED] = COUNTER_flow_refused,
	};

	if (insert == FLOW_INSERT_NOT_WORTH_STORING)
		return;
	count(worker, (enum counter)counters[insert]);
	if (insert != FLOW_INSERT_FREE && insert != FLOW_INSERT_FOUND &&
		insert != FLOW_INSERT_REFUSED)
		count(worker, COUNTER_flow_insert);
}

static void book_miss(struct pipeline_worker *worker, enum flow_event event)
{
	if (event == FLOW_EVENT_SYN)
		count(worker, COUNTER_flow_miss_syn);
	else if (event == FLOW_EVENT_UDP)
		count(worker, COUNTER_flow_miss_udp);
	else
		count(worker, COUNTER_flow_miss_non_syn);
}

// What gate and rings would have said of a flow that has its backend already.
static void trace_adopted(struct pipeline_worker *worker, struct packet *packet,
	const struct snapshot_service *service, enum flow_insert insert)
{
	struct selection selection;

	selection_pick(&worker->forwarding->snapshot, service,
		ring_hash_of(worker, packet, service, false), &selection);
	trace(worker, packet, service, &selection, IPC_TRACE_HIT_OTHER, entry_of(insert));
}

static void book_recalled(struct pipeline_worker *worker, uint32_t pool)
{
	count(worker, COUNTER_flow_recalled);
	worker->stats.pools[pool].recalled++;
}

// Picks for a flow that may not go on as its entry says. Returns its word with the new choice; the word as it was when
// the flow is recalled and the old ring has nobody; 0 when no backend serves, and the packet is dropped.
// Apart from its callers, so that those stay small: inlined, it cost a new flow 3 %.
static __attribute__((noinline, cold)) uint64_t pick_again(struct pipeline_worker *worker,
	struct packet *packet, const struct snapshot_service *service, uint64_t word,
	struct selection *ret)
{
	bool served = backend_serves(worker->forwarding, flow_word_backend(word), service);

	selection_pick(&worker->forwarding->snapshot, service,
		ring_hash_of(worker, packet, service, true), ret);
	if (ret->backend == SELECTION_NO_BACKEND && served)
		return word;
	if (ret->backend == SELECTION_NO_BACKEND) {
		book_no_backend(worker, packet, service, ret);
		drop(packet, DROP_stale_flow_backend);
		return 0;
	}
	return flow_word_set_choice(word, ret->backend, ret->uses_new);
}

// Takes over a flow that another worker knows: RSS changed, or a fragment landed here. Returns false when none does.
static bool adopt_from_others(struct pipeline_worker *worker, struct burst *burst, unsigned place)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];
	struct rate_limit *limit = &worker->scratch->remote_limit;
	struct flow_idle idle = service_idle(service);
	struct selection selection;
	enum flow_insert insert;
	struct flow_entry entry;
	uint32_t before;
	uint64_t word;

	// A SYN begins a flow here, whatever the others remember; and for a repeated one rings agree.
	if (worker->pipeline->worker_count == 1 || burst->events[place] == FLOW_EVENT_SYN ||
		!rate_limit_take(limit, worker->now_ns))
		return false;
	word = select_peek_others(worker, packet->hash);
	if (word == 0 || !backend_serves(worker->forwarding, flow_word_backend(word), service))
		return false;
	before = flow_word_backend(word);
	if (is_recalled(worker->forwarding, word, service))
		word = pick_again(worker, packet, service, word, &selection);
	rate_limit_add(limit, PIPELINE_REMOTE_REWARD);
	count(worker, COUNTER_flow_hit_other);
	packet->backend = flow_word_backend(word);
	burst->uses_new[place] = flow_word_uses_new(word);
	insert = flow_table_insert_word(worker->flow_table, packet->hash, word, &entry);
	book_insert(worker, insert);
	if (packet->backend != before && insert != FLOW_INSERT_FOUND)
		book_recalled(worker, service->pool);
	if (is_traced(worker, packet))
		trace_adopted(worker, packet, service, insert);
	if (entry.slot != NULL)
		flow_table_advance(
			worker->flow_table, &entry, (enum flow_event)burst->events[place], &idle);
	return true;
}

// Stores the flow of a packet that was picked for.
static void store(struct pipeline_worker *worker, struct burst *burst, unsigned place,
	const struct selection *selection)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];
	enum flow_event event = (enum flow_event)burst->events[place];
	struct flow_choice choice = {
		.backend = selection->backend, .uses_new = selection->uses_new};
	struct flow_idle idle = service_idle(service);
	struct flow_entry entry;
	enum flow_insert insert =
		flow_table_insert(worker->flow_table, packet->hash, event, &choice, &idle, &entry);

	book_insert(worker, insert);
	if (insert == FLOW_INSERT_FOUND) {
		// An earlier packet of this burst stored the flow; both made the same pick, unless the gate moved
		// in between.
		packet->backend = flow_word_backend(entry.word);
		burst->uses_new[place] = flow_word_uses_new(entry.word);
		if (flow_table_advance(worker->flow_table, &entry, event, &idle))
			select_book_abort(worker, service->pool, burst->uses_new[place]);
		return;
	}
	book_miss(worker, event);
	if (service->affinity == FLOW_AFFINITY_QUIC)
		quic_learn(worker, burst, place);
	// Each flow is counted as new once: when it is stored, or by its SYN when there is no room.
	if (entry.slot != NULL || event == FLOW_EVENT_SYN)
		book_new_flow(worker, packet, service, selection, entry_of(insert));
}

// Takes what was picked for a packet.
static void take(struct pipeline_worker *worker, struct burst *burst, unsigned place,
	const struct selection *selection)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];

	if (selection->backend == SELECTION_NO_BACKEND) {
		book_no_backend(worker, packet, service, selection);
		return;
	}
	packet->backend = selection->backend;
	burst->uses_new[place] = selection->uses_new;
	if (!(service->flags & SNAPSHOT_SERVICE_STATELESS)) {
		store(worker, burst, place, selection);
		return;
	}
	count(worker, COUNTER_stateless);
	if (burst->events[place] == FLOW_EVENT_SYN)
		book_new_flow(worker, packet, service, selection, IPC_TRACE_NOT_STORED);
}

void select_burst(struct pipeline_worker *worker, struct burst *burst)
{
	const struct snapshot_service *services[PACKET_BURST];
	struct selection_hash hashes[PACKET_BURST];
	uint8_t places[PACKET_BURST];
	struct selection picks[PACKET_BURST];
	unsigned count = 0;

	for (unsigned n = 0; n < burst->miss_count; n++) {
		unsigned i = burst->misses[n];
		struct packet *packet = &burst->packets[i];
		const struct snapshot_service *service = burst->services[i];

		if (!(service->flags & SNAPSHOT_SERVICE_STATELESS) &&
			(adopt_from_others(worker, burst, i) || quic_follow(worker, burst, i)))
			continue;
		services[count] = service;
		hashes[count] = ring_hash_of(worker, packet, service, true);
		places[count++] = (uint8_t)i;
	}
	if (count == 0)
		return;
	selection_pick_burst(&worker->forwarding->snapshot, services, hashes, count, picks);
	for (unsigned n = 0; n < count; n++)
		take(worker, burst, places[n], &picks[n]);
}

bool select_again(struct pipeline_worker *worker, struct burst *burst, unsigned place,
	struct flow_entry *entry)
{
	struct packet *packet = &burst->packets[place];
	const struct snapshot_service *service = burst->services[place];
	uint32_t before = flow_word_backend(entry->word);
	bool served = backend_serves(worker->forwarding, before, service);
	struct selection selection;
	uint64_t word = pick_again(worker, packet, service, entry->word, &selection);

	if (word == 0)
		return false;
	struct flow_choice choice = {
		.backend = flow_word_backend(word), .uses_new = flow_word_uses_new(word)};

	packet->backend = choice.backend;
	burst->uses_new[place] = choice.uses_new;
	if (selection.backend == SELECTION_NO_BACKEND)
		return true;
	flow_table_reroute(entry, &choice);
	if (!served)
		count(worker, COUNTER_flow_rerouted);
	else if (choice.backend != before)
		book_recalled(worker, service->pool);
	if (is_traced(worker, packet))
		trace(worker, packet, service, &selection,
			served ? IPC_TRACE_RECALLED : IPC_TRACE_STALE, IPC_TRACE_REWRITTEN);
	return true;
}
