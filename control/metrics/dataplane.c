// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/dataplane.h"

#include "control/metrics/process.h"

#include <stdio.h>

// A family of one series: a sum over all workers.
static void counter(struct metrics_text *text, const char *name, const char *help, uint64_t value)
{
	metrics_family(text, name, METRICS_COUNTER, help);
	metrics_count(text, NULL, value);
}

static void gauge(struct metrics_text *text, const char *name, const char *help, double value)
{
	metrics_family(text, name, METRICS_GAUGE, help);
	metrics_real(text, NULL, value);
}

// One row of a family whose series differ in one label.
struct labelled {
	enum counter counter;
	const char *value;
};

// A family whose series are sums that differ in one label.
struct labelled_family {
	const char *name;
	const char *help;
	const char *label;
	struct labelled rows[5]; // ends with a NULL value, or is full
};

static void labelled_family(struct metrics_text *text, const struct stats_reading *reading,
	const struct labelled_family *family)
{
	metrics_family(text, family->name, METRICS_COUNTER, family->help);
	for (unsigned i = 0; i < 5 && family->rows[i].value != NULL; i++)
		metrics_count(text, METRICS_LABELS({family->label, family->rows[i].value}),
			reading->counter[family->rows[i].counter]);
}

static const struct labelled_family flow_families[] = {
	{"flow_lookups_total",
		"Look-ups in the flow table; miss_non_syn are packets of flows that it does not know.",
		"result",
		{{COUNTER_flow_hit, "hit"}, {COUNTER_flow_hit_other, "hit_other_worker"},
			{COUNTER_flow_miss_syn, "miss_syn"},
			{COUNTER_flow_miss_non_syn, "miss_non_syn"},
			{COUNTER_flow_miss_udp, "miss_udp"}}},
	{"flow_table_evictions_total", "Entries evicted from full buckets.", "reason",
		{{COUNTER_flow_evict_unconfirmed, "unconfirmed"},
			{COUNTER_flow_evict_oldest, "oldest"}}},
	{"routed_packets_total",
		"Packets that found their backend another way than by their own entry.", "kind",
		{{COUNTER_icmp_routed, "icmp_error"}, {COUNTER_fragment_routed, "fragment"},
			{COUNTER_quic_routed, "quic"}, {COUNTER_stateless, "stateless"}}},
	{"shadow_selections_total",
		"Sampled new flows for which both rings of a cutover agree or differ.", "result",
		{{COUNTER_shadow_same, "same"}, {COUNTER_shadow_different, "different"}}},
};

static void write_packets(struct metrics_text *text, const struct stats_reading *reading)
{
	const uint64_t *sums = reading->counter;

	counter(text, "rx_packets_total", "Packets taken from the receive queues.",
		sums[COUNTER_rx_packets]);
	counter(text, "rx_bytes_total", "Bytes taken from the receive queues.",
		sums[COUNTER_rx_bytes]);
	counter(text, "forwarded_packets_total", "Packets sent to backends.",
		sums[COUNTER_forwarded]);
	counter(text, "forwarded_bytes_total", "Bytes sent to backends, tunnel headers included.",
		sums[COUNTER_forwarded_bytes]);
	counter(text, "punted_packets_total", "Packets handed to the kernel.",
		sums[COUNTER_punted]);
	counter(text, "answered_packets_total",
		"Packets used up or answered here: ARP, ND, ICMP echo.", sums[COUNTER_answered]);
	counter(text, "generated_packets_total",
		"Packets made here: requests for neighbours, ICMP errors to senders.",
		sums[COUNTER_generated]);
	gauge(text, "unaccounted_packets",
		"Received minus forwarded, punted, answered and dropped packets; 0, or a burst in flight.",
		(double)reading->difference);
}

static void write_flows(struct metrics_text *text, const struct stats_reading *reading)
{
	for (unsigned i = 0; i < sizeof(flow_families) / sizeof(flow_families[0]); i++)
		labelled_family(text, reading, &flow_families[i]);
	counter(text, "flow_table_inserts_total", "Entries written to the flow table.",
		reading->counter[COUNTER_flow_insert]);
	counter(text, "flow_table_refused_total",
		"New flows not stored, because a full bucket held only established ones.",
		reading->counter[COUNTER_flow_refused]);
	counter(text, "flow_table_expired_total", "Entries found past their idle time.",
		reading->counter[COUNTER_flow_expired]);
	counter(text, "flow_rerouted_total",
		"Flows that picked again because their backend was down or gone.",
		reading->counter[COUNTER_flow_rerouted]);
	counter(text, "flow_recalled_total",
		"Flows of a new ring that a rollback moved to the old ring's backend.",
		reading->counter[COUNTER_flow_recalled]);
}

static void write_drops(struct metrics_text *text, const struct stats_file *file)
{
	metrics_family(
		text, "drops_total", METRICS_COUNTER, "Packets dropped, by stage and reason.");
	for (uint32_t i = 0; i < file->view.header->drop_count; i++) {
		const char *stage = stats_file_drop_stage(file, i);

		metrics_count(text,
			METRICS_LABELS({"stage", stage ? stage : "unknown"},
				{"reason", stats_file_drop_name(file, i)}),
			stats_file_drop(file, UINT32_MAX, i));
	}
}

static void write_workers(struct metrics_text *text, const struct stats_file *file)
{
	static const struct {
		enum counter counter;
		const char *name;
		const char *help;
	} families[] = {
		{COUNTER_busy_cycles, "lcore_busy_cycles_total",
			"TSC cycles spent on bursts that were not empty."},
		{COUNTER_polls, "lcore_polls_total", "Polls of the receive queues."},
		{COUNTER_bursts, "lcore_bursts_total", "Polls that brought packets."},
		{COUNTER_rx_packets, "lcore_rx_packets_total", "Packets that a worker received."},
	};
	uint32_t workers = file->view.header->worker_count;

	for (unsigned f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		metrics_family(text, families[f].name, METRICS_COUNTER, families[f].help);
		for (uint32_t w = 0; w < workers; w++) {
			struct stats_reading reading;
			char number[12];

			snprintf(number, sizeof(number), "%u", w);
			stats_file_read(file, w, &reading);
			metrics_count(text, METRICS_LABELS({"lcore", number}),
				reading.counter[families[f].counter]);
		}
	}
}

static void write_process(struct metrics_text *text, const struct stats_file *file, uint64_t now_ns,
	const struct stats_reading *reading)
{
	const struct stats_header *header = file->view.header;
	double age =
		reading->heartbeat_ns < now_ns ? (double)(now_ns - reading->heartbeat_ns) / 1e9 : 0;

	metrics_family(text, "dataplane_startup_phase_seconds", METRICS_GAUGE,
		"Time that each phase of the last start took; together from exec to the first poll.");
	for (int phase = 0; phase < STARTUP_PHASES; phase++)
		metrics_real(text, METRICS_LABELS({"phase", stats_startup_name(phase)}),
			(double)header->startup_ns[phase] / 1e9);
	gauge(text, "dataplane_generation", "Generation of the snapshot that all workers use.",
		(double)header->generation);
	gauge(text, "dataplane_workers", "Workers of the dataplane.", header->worker_count);
	gauge(text, "dataplane_heartbeat_age_seconds",
		"Age of the last sign of life of the dataplane; it gives one every second.", age);
	gauge(text, "dataplane_start_timestamp_seconds", "When the dataplane was started.",
		(double)header->started_ns / 1e9);
	gauge(text, "dataplane_resident_memory_bytes", "Resident memory, hugepages not counted.",
		(double)process_resident_bytes(header->pid));
	gauge(text, "hugepages_bytes", "Hugepage memory that the dataplane holds.",
		(double)header->hugepage_bytes);
	gauge(text, "snapshot_bytes", "One worker's copy of the snapshot, rings included.",
		(double)header->snapshot_bytes);
	gauge(text, "flow_table_entries", "Entries alive in the last sweep, all workers.",
		(double)reading->counter[COUNTER_flow_live]);
	gauge(text, "flow_table_capacity", "Entries of each worker's flow table.",
		(double)header->flow_entries);
	gauge(text, "tsc_hz", "Cycles a second, the unit of the cycle counters.",
		(double)header->tsc_hz);
}

void metrics_dataplane(struct metrics_text *text, const struct stats_file *file, uint64_t now_ns)
{
	struct stats_reading reading;

	stats_file_read(file, UINT32_MAX, &reading);
	write_packets(text, &reading);
	write_flows(text, &reading);
	write_drops(text, file);
	write_workers(text, file);
	write_process(text, file, now_ns, &reading);
}
