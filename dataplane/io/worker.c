// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/worker.h"

#include "dataplane/io/privilege.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <sys/prctl.h>
#include <time.h>

// Sweeps come so often that a table of 2^24 entries is visited in the time that flow_table.h asks for.
#define HOUSEKEEP_HZ 10000u

// What a frame keeps of its receive flags: whose memory it is.
#define MBUF_OWNERSHIP (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

void worker_assign_queues(struct worker *worker, uint32_t worker_count)
{
	const struct worker_shared *shared = worker->shared;

	worker->queue_count = 0;
	for (uint32_t p = 0; p < shared->port_count; p++) {
		const struct port *port = &shared->ports[p];

		for (uint32_t q = worker->pipeline.index; q < port->rx_queues; q += worker_count) {
			worker->queues[worker->queue_count++] = (struct worker_queue){
				.port_id = port->id, .queue = (uint16_t)q, .port = (uint8_t)p};
		}
	}
}

uint64_t worker_clock_ns(const struct worker *worker)
{
	unsigned __int128 product = (unsigned __int128)rte_rdtsc() * worker->ns_per_tsc32;

	return (uint64_t)(product >> 32);
}

// A frame in pieces becomes one piece, or its first piece alone: then its IP length does not fit and parse says so.
static void make_whole(struct rte_mbuf *mbuf)
{
	if (rte_pktmbuf_linearize(mbuf) == 0)
		return;
	rte_pktmbuf_free(mbuf->next);
	mbuf->next = NULL;
	mbuf->nb_segs = 1;
	mbuf->pkt_len = mbuf->data_len;
}

static void fill_packets(struct worker *worker, const struct worker_queue *queue, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		rte_prefetch0(rte_pktmbuf_mtod(worker->received[i], void *));
	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = worker->received[i];
		struct packet *packet = &worker->packets[i];

		if (unlikely(mbuf->nb_segs > 1))
			make_whole(mbuf);
		packet->data = rte_pktmbuf_mtod(mbuf, uint8_t *);
		packet->handle = mbuf;
		packet->length = mbuf->data_len;
		packet->headroom = rte_pktmbuf_headroom(mbuf);
		packet->tailroom = rte_pktmbuf_tailroom(mbuf);
		packet->port_in = queue->port;
	}
}

static void push(struct worker_batch *batch, struct rte_mbuf *mbuf, unsigned packet)
{
	batch->mbufs[batch->count] = mbuf;
	batch->packets[batch->count++] = (uint8_t)packet;
}

// Carries what the pipeline did to the bytes over to the frame.
static void take_back(const struct packet *packet, struct rte_mbuf *mbuf)
{
	mbuf->data_off = (uint16_t)(packet->data - (uint8_t *)mbuf->buf_addr);
	mbuf->data_len = (uint16_t)packet->length;
	mbuf->pkt_len = packet->length;
	mbuf->ol_flags &= MBUF_OWNERSHIP;
}

// Sorts a burst by where it goes. Returns the number of frames to free.
static unsigned sort_packets(struct worker *worker, unsigned count)
{
	unsigned dropped = 0;

	for (unsigned i = 0; i < count; i++) {
		struct packet *packet = &worker->packets[i];
		struct rte_mbuf *mbuf = packet->handle;

		switch (packet->verdict) {
		case PACKET_FORWARD:
		case PACKET_ANSWER:
		case PACKET_DROP_REPLY:
			take_back(packet, mbuf);
			push(&worker->sends[packet->port_out], mbuf, i);
			break;
		case PACKET_PUNT:
			push(&worker->punts[packet->port_in], mbuf, i);
			break;
		default:
			worker->dropped[dropped++] = mbuf;
			break;
		}
	}
	return dropped;
}

// Sends a batch, as long as the queue takes some of it. The rest is booked as dropped, and freed by the caller.
static unsigned send_batch(
	struct worker *worker, struct worker_batch *batch, uint16_t port_id, unsigned dropped)
{
	unsigned sent = 0;

	while (port_id != PORT_NO_PUNT && sent < batch->count) {
		uint16_t taken = rte_eth_tx_burst(port_id, (uint16_t)worker->pipeline.index,
			batch->mbufs + sent, (uint16_t)(batch->count - sent));

		if (taken == 0)
			break;
		sent += taken;
	}
	for (; sent < batch->count; sent++) {
		struct packet *packet = &worker->packets[batch->packets[sent]];

		if (packet->verdict == PACKET_PUNT)
			packet->reason = port_id == PORT_NO_PUNT ? DROP_no_punt : DROP_punt_full;
		else if (packet->verdict != PACKET_DROP_REPLY)
			packet->reason = DROP_tx_full;
		packet->verdict = PACKET_DROP;
		worker->dropped[dropped++] = batch->mbufs[sent];
	}
	batch->count = 0;
	return dropped;
}

// Sends a burst that leaves whole by one port, as nearly all do, without sorting it first: 2 ns a packet less
// (tests/bench/bench_device.c). Returns false when it is not such a burst; nothing is sent then.
static bool send_whole(struct worker *worker, unsigned count)
{
	const uint8_t port = worker->packets[0].port_out;
	unsigned sent = 0;

	for (unsigned i = 0; i < count; i++) {
		if (worker->packets[i].verdict != PACKET_FORWARD ||
			worker->packets[i].port_out != port)
			return false;
	}
	for (unsigned i = 0; i < count; i++)
		take_back(&worker->packets[i], worker->received[i]);
	while (sent < count) {
		uint16_t taken = rte_eth_tx_burst(worker->shared->ports[port].id,
			(uint16_t)worker->pipeline.index, worker->received + sent,
			(uint16_t)(count - sent));

		if (taken == 0)
			break;
		sent += taken;
	}
	for (unsigned i = sent; i < count; i++) {
		worker->packets[i].verdict = PACKET_DROP;
		worker->packets[i].reason = DROP_tx_full;
	}
	if (sent < count)
		rte_pktmbuf_free_bulk(worker->received + sent, count - sent);
	return true;
}

static void send_sorted(struct worker *worker, unsigned count)
{
	const struct worker_shared *shared = worker->shared;
	unsigned dropped = sort_packets(worker, count);

	for (uint32_t p = 0; p < shared->port_count; p++) {
		if (worker->sends[p].count > 0)
			dropped =
				send_batch(worker, &worker->sends[p], shared->ports[p].id, dropped);
		if (worker->punts[p].count > 0)
			dropped = send_batch(
				worker, &worker->punts[p], shared->ports[p].punt_id, dropped);
	}
	if (dropped > 0)
		rte_pktmbuf_free_bulk(worker->dropped, dropped);
}

static unsigned poll_queue(struct worker *worker, const struct worker_queue *queue)
{
	unsigned count = rte_eth_rx_burst(
		queue->port_id, queue->queue, worker->received, (uint16_t)PACKET_BURST);
	uint64_t begin;

	if (count == 0)
		return 0;
	begin = rte_rdtsc();
	fill_packets(worker, queue, count);
	pipeline_burst(&worker->pipeline, worker->packets, count);
	if (!send_whole(worker, count))
		send_sorted(worker, count);
	pipeline_book_sent(&worker->pipeline, worker->packets, count);
	worker->busy_tsc = rte_rdtsc();
	worker->pipeline.stats.counter[COUNTER_bursts]++;
	worker->pipeline.stats.counter[COUNTER_busy_cycles] += worker->busy_tsc - begin;
	return count;
}

// Sends frames that nobody sent us: they stand beside the balance of received packets.
static void send_generated(
	struct worker *worker, uint16_t port_id, struct rte_mbuf **mbufs, unsigned count)
{
	unsigned sent =
		rte_eth_tx_burst(port_id, (uint16_t)worker->pipeline.index, mbufs, (uint16_t)count);

	worker->pipeline.stats.counter[COUNTER_generated] += sent;
	if (sent < count)
		rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
}

static void empty_mailbox(struct worker *worker)
{
	struct rte_mbuf *mbuf;

	while (rte_ring_sc_dequeue(worker->shared->mailbox, (void **)&mbuf) == 0)
		send_generated(worker, mbuf->port, &mbuf, 1);
}

// What the kernel says through the TAP of a port goes out on that port as it is.
static void poll_punts(struct worker *worker)
{
	const struct worker_shared *shared = worker->shared;

	for (uint32_t p = 0; p < shared->port_count; p++) {
		unsigned count;

		if (shared->ports[p].punt_id == PORT_NO_PUNT)
			continue;
		count = rte_eth_rx_burst(shared->ports[p].punt_id, (uint16_t)worker->pipeline.index,
			worker->received, (uint16_t)PACKET_BURST);
		if (count > 0)
			send_generated(worker, shared->ports[p].id, worker->received, count);
	}
}

unsigned worker_poll(struct worker *worker)
{
	struct worker_shared *shared = worker->shared;
	struct pipeline_worker *pipeline = &worker->pipeline;
	uint64_t tsc = rte_rdtsc();
	unsigned total = 0;

	// Reported once a loop: what was read before is not held any more, main may free it.
	rte_rcu_qsbr_quiescent(shared->qsbr, pipeline->index);
	// Pairs with the release store in publish: the block behind the pointer is complete.
	pipeline->forwarding = __atomic_load_n(&worker->published, __ATOMIC_ACQUIRE);
	pipeline->now_s = __atomic_load_n(&shared->now_s, __ATOMIC_RELAXED);
	pipeline->now_ns = worker_clock_ns(worker);
	for (uint32_t q = 0; q < worker->queue_count; q++)
		total += poll_queue(worker, &worker->queues[q]);
	pipeline->stats.counter[COUNTER_polls]++;
	if (pipeline->index == 0 && !rte_ring_empty(shared->mailbox))
		empty_mailbox(worker);
	if (tsc >= worker->housekeep_tsc) {
		worker->housekeep_tsc = tsc + shared->tsc_hz / HOUSEKEEP_HZ;
		poll_punts(worker);
		pipeline_housekeep(pipeline);
	}
	return total;
}

static void sleep_when_idle(const struct worker *worker)
{
	const struct timespec pause = {.tv_nsec = WORKER_SLEEP_US * 1000};
	uint64_t idle_tsc = worker->shared->tsc_hz / 1000000 * WORKER_IDLE_US;

	if (rte_rdtsc() - worker->busy_tsc > idle_tsc)
		nanosleep(&pause, NULL);
}

int worker_run(void *argument)
{
	struct worker *worker = argument;
	struct worker_shared *shared = worker->shared;
	unsigned index = worker->pipeline.index;
	struct timespec now;

	if (shared->drop_privileges != NULL)
		privilege_drop_capabilities(shared->drop_privileges, false);
	// The kernel may round a sleep up by this much; its default is as long as the sleep.
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	worker->busy_tsc = rte_rdtsc();
	rte_rcu_qsbr_thread_online(shared->qsbr, index);
	worker_poll(worker);
	clock_gettime(CLOCK_MONOTONIC, &now);
	__atomic_store_n(&worker->first_poll_ns,
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		if (worker_poll(worker) == 0 && shared->idle_sleep)
			sleep_when_idle(worker);
	}
	rte_rcu_qsbr_thread_offline(shared->qsbr, index);
	return 0;
}
