// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/exporter.h"

#include "common/gate.h"
#include "control/config/pool_ring.h"
#include "control/metrics/dataplane.h"
#include "control/metrics/process.h"
#include "control/ring/balance_stats.h"
#include "control/ring/walk.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Points whose balance is worked out in one scrape; more rings get theirs in later scrapes.
#define POINTS_A_SCRAPE (4u << 20)

// The balance of a ring that does not change while its digest and its usable backends do not.
struct known_balance {
	uint8_t digest[RING_DIGEST_BYTES];
	uint32_t usable_count;
	struct ring_balance balance;
};

struct exporter {
	struct verbs *verbs;
	struct known_balance known[SNAPSHOT_RINGS_MAX];
	uint32_t known_count;
};

// Which groups a scrape asks for beyond what fits anyway.
struct scope {
	bool pools, rings, services, backends;
};

struct exporter *exporter_create(struct verbs *verbs)
{
	struct exporter *exporter = calloc(1, sizeof(*exporter));

	if (exporter != NULL)
		exporter->verbs = verbs;
	return exporter;
}

void exporter_destroy(struct exporter *exporter)
{
	free(exporter);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void gauge(struct metrics_text *text, const char *name, const char *help, double value)
{
	metrics_family(text, name, METRICS_GAUGE, help);
	metrics_real(text, NULL, value);
}

static void write_node(struct metrics_text *text, struct verbs *verbs)
{
	const struct document *document = node_document(verbs->node);
	const struct node_dataplane *dataplane = node_dataplane(verbs->node);

	metrics_family(text, "build_info", METRICS_GAUGE, "1; the version is a label.");
	metrics_count(text, METRICS_LABELS({"version", RINGWAY_VERSION}), 1);
	gauge(text, "config_generation", "Generation of the committed document.",
		(double)document->generation);
	gauge(text, "config_applied_generation", "Generation of the last whole file applied.",
		(double)document->applied_generation);
	gauge(text, "snapshot_generation", "Generation of the newest snapshot.",
		(double)document->snapshot_generation);
	gauge(text, "dataplane_up", "1 while the dataplane answers.",
		dataplane->state != NODE_DATAPLANE_ABSENT);
	gauge(text, "dataplane_current",
		"1 while the dataplane uses exactly the committed snapshot and gates.",
		dataplane->state == NODE_DATAPLANE_CURRENT);
	gauge(text, "dataplane_startup_seconds", "From exec to the first poll.",
		(double)dataplane->status.startup_ns / 1e9);
	gauge(text, "resident_memory_bytes", "Resident memory of ringwayd.",
		(double)process_resident_bytes((uint64_t)getpid()));
	metrics_family(text, "startup_phase_seconds", METRICS_GAUGE,
		"Time that each phase of ringwayd's start took; 0 before the first image was taken.");
	for (int phase = 0; phase < DAEMON_PHASES; phase++)
		metrics_real(text, METRICS_LABELS({"phase", fleet_daemon_phase_name(phase)}),
			(double)node_startup(verbs->node)[phase] / 1e9);
	gauge(text, "uptime_seconds", "Since ringwayd started.",
		(double)(now_ns() - verbs->started_ns) / 1e9);
	gauge(text, "services", "Services configured.", document->pools->service_count);
	gauge(text, "pools", "Pools configured.", document->pools->pool_count);
}

static void write_requests(struct metrics_text *text, const struct server *server)
{
	if (server == NULL)
		return;
	metrics_family(text, "control_requests_total", METRICS_COUNTER,
		"Requests on the control socket, by verb and exit code; codes that never came are left out.");
	for (unsigned verb = 0; verb < verbs_count; verb++) {
		for (int answer = 0; answer < ANSWER_COUNT; answer++) {
			uint64_t count = server_request_count(server, verb, answer);

			if (count > 0 || answer == ANSWER_DONE)
				metrics_count(text,
					METRICS_LABELS({"verb", verbs_table[verb].name},
						{"code", answer_name(answer)}),
					count);
		}
	}
	metrics_family(text, "control_malformed_requests_total", METRICS_COUNTER,
		"Lines on the control socket that were no request.");
	metrics_count(text, NULL, server_malformed_count(server));
	gauge(text, "control_connections", "Connections on the control socket.",
		server_connection_count(server));
}

// One family of two series a pool: the old and the new ring's side of a field of struct stats_pool.
struct pool_family {
	const char *name;
	const char *help;
	size_t old_offset;
	size_t new_offset;
};

static uint64_t at(const struct stats_pool *sums, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)sums + offset, sizeof(value));
	return value;
}

static void write_pool_counters(
	struct metrics_text *text, struct verbs *verbs, const struct stats_file *stats)
{
#define SIDES(field) \
	offsetof(struct stats_pool, field##_old), offsetof(struct stats_pool, field##_new)
	static const struct pool_family families[] = {
		{"new_flows_total", "New flows, by the ring that picked.", SIDES(new_flows)},
		{"pool_packets_total", "Packets forwarded, by the ring of their flow.",
			SIDES(packets)},
		{"early_aborts_total",
			"Resets by clients and repeated SYNs within the first packets of a flow.",
			SIDES(aborts)},
		{"pool_drops_total", "Packets with no usable backend.", SIDES(drops)},
	};
#undef SIDES
	const struct config_pools *pools = node_document(verbs->node)->pools;

	for (unsigned f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		metrics_family(text, families[f].name, METRICS_COUNTER, families[f].help);
		for (uint32_t i = 0; i < pools->pool_count; i++) {
			const char *pool = pools->pools[i].name;
			struct stats_pool sums;

			stats_file_pool(stats, verbs_id(verbs, DOCUMENT_POOL, "", pool), &sums);
			metrics_count(text, METRICS_LABELS({"pool", pool}, {"ring", "old"}),
				at(&sums, families[f].old_offset));
			metrics_count(text, METRICS_LABELS({"pool", pool}, {"ring", "new"}),
				at(&sums, families[f].new_offset));
		}
	}
}

static void write_pool_shadow(
	struct metrics_text *text, struct verbs *verbs, const struct stats_file *stats)
{
	const struct config_pools *pools = node_document(verbs->node)->pools;

	metrics_family(text, "pool_shadow_selections_total", METRICS_COUNTER,
		"Sampled new flows of a pool for which both rings of its cutover agree or differ.");
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		const char *pool = pools->pools[i].name;
		struct stats_pool sums;

		stats_file_pool(stats, verbs_id(verbs, DOCUMENT_POOL, "", pool), &sums);
		metrics_count(
			text, METRICS_LABELS({"pool", pool}, {"result", "same"}), sums.shadow_same);
		metrics_count(text, METRICS_LABELS({"pool", pool}, {"result", "different"}),
			sums.shadow_different);
	}
}

static void write_live_flows(
	struct metrics_text *text, struct verbs *verbs, const struct stats_file *stats)
{
	const struct config_pools *pools = node_document(verbs->node)->pools;

	metrics_family(text, "new_ring_flows", METRICS_GAUGE,
		"Entries alive in the last sweep that were picked on the new ring.");
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		const char *pool = pools->pools[i].name;
		struct stats_pool sums;

		stats_file_pool(stats, verbs_id(verbs, DOCUMENT_POOL, "", pool), &sums);
		metrics_count(text, METRICS_LABELS({"pool", pool}), sums.live_new);
	}
}

static void write_backend_states(struct metrics_text *text, const struct config_pools *pools)
{
	metrics_family(text, "backends", METRICS_GAUGE, "Backends of a pool, by state.");
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		uint32_t counts[CONFIG_BACKEND_DOWN + 1] = {0};

		for (uint32_t b = 0; b < pools->pools[i].backend_count; b++)
			counts[pools->pools[i].backends[b].state]++;
		for (int state = CONFIG_BACKEND_UP; state <= CONFIG_BACKEND_DOWN; state++)
			metrics_count(text,
				METRICS_LABELS({"pool", pools->pools[i].name},
					{"state", config_backend_state_name(state)}),
				counts[state]);
	}
}

// A number, so that a state change makes no new series: 0 none; of a cutover over the fleet 1 + its state in
// docs/cutover.md (planned, staged, shifting, soaking, gated, full, retiring, retired, paused, rolling back, rolled
// back, discarded); by hand on one node 2, 3 or 6 by its share.
static unsigned cutover_state(const struct cutover *fleet, const struct document_cutover *cutover)
{
	if (fleet != NULL)
		return 1 + (unsigned)fleet->state;
	if (cutover == NULL)
		return 0;
	return 1 +
		(unsigned)(cutover->share == 0                     ? CUTOVER_STAGED
				: cutover->share == GATE_SHARE_ALL ? CUTOVER_FULL
								   : CUTOVER_SHIFTING);
}

static const struct cutover *fleet_cutover(struct verbs *verbs, const char *pool)
{
	const struct fleet_cutovers *cutovers = verbs_cutovers(verbs);

	for (uint32_t i = 0; cutovers != NULL && i < cutovers->count; i++) {
		if (strcmp(cutovers->items[i]->cutover.spec.pool, pool) == 0)
			return &cutovers->items[i]->cutover;
	}
	return NULL;
}

static void write_cutovers(struct metrics_text *text, struct verbs *verbs)
{
	const struct document *document = node_document(verbs->node);
	const struct config_pools *pools = document->pools;

	metrics_family(text, "cutover_state", METRICS_GAUGE,
		"Cutover of a pool: 0 none, 1 planned, 2 staged, 3 shifting, 4 soaking, 5 gated, "
		"6 full, 7 retiring, 8 retired, 9 paused, 10 rolling back, 11 rolled back, 12 discarded.");
	for (uint32_t i = 0; i < pools->pool_count; i++)
		metrics_count(text, METRICS_LABELS({"pool", pools->pools[i].name}),
			cutover_state(fleet_cutover(verbs, pools->pools[i].name),
				document_cutover_find(document, pools->pools[i].name)));
	metrics_family(text, "cutover_intended_ratio", METRICS_GAUGE,
		"Part of this node's new flows that is to take the new ring.");
	for (uint32_t i = 0; i < pools->pool_count; i++) {
		const struct document_cutover *cutover =
			document_cutover_find(document, pools->pools[i].name);

		metrics_real(text, METRICS_LABELS({"pool", pools->pools[i].name}),
			cutover ? (double)document_cutover_share(cutover) / GATE_SHARE_ALL : 0);
	}
}

// The guard that the reason of a hold by the conductor begins with; "" when it was none.
static const char *holding_guard(const struct cutover *cutover)
{
	if (strcmp(cutover->actor, "conductor") != 0)
		return "";
	for (uint32_t i = 0; i < cutover->spec.guard_count; i++) {
		const char *name = cutover->spec.guards[i].name;
		size_t length = strlen(name);

		if (strncmp(cutover->reason, name, length) == 0 && cutover->reason[length] == ':')
			return name;
	}
	return "";
}

static const char *hold_of(const struct cutover *cutover)
{
	if (cutover->state == CUTOVER_PAUSED)
		return cutover_pause_name(cutover->pause);
	if (cutover->state != CUTOVER_ROLLING_BACK && cutover->state != CUTOVER_ROLLED_BACK)
		return NULL;
	if (strcmp(cutover->actor, "conductor") != 0)
		return "rollback_operator";
	return holding_guard(cutover)[0] != '\0' ? "rollback_guard" : "rollback_expired";
}

// Why a cutover stands still or goes back; absent while it moves.
static void write_held(struct metrics_text *text, const struct fleet_cutovers *cutovers)
{
	metrics_family(text, "cutover_held", METRICS_GAUGE,
		"1 while a cutover is paused, or was taken back; the reason is a label.");
	for (uint32_t i = 0; i < cutovers->count; i++) {
		const struct cutover *cutover = &cutovers->items[i]->cutover;

		if (hold_of(cutover) != NULL)
			metrics_count(text,
				METRICS_LABELS({"pool", cutover->spec.pool},
					{"reason", hold_of(cutover)},
					{"guard", holding_guard(cutover)}),
				1);
	}
}

// A guard's verdict as a number, so that another verdict makes no new series. The hook of a gate is among them.
static int verdict_number(const json_t *guard)
{
	const char *verdict = json_string_value(json_object_get(guard, "verdict"));

	for (int i = GUARD_PASSED; i <= GUARD_ERROR; i++) {
		if (verdict != NULL && strcmp(verdict, guard_verdict_name(i)) == 0)
			return i;
	}
	return GUARD_ERROR;
}

static void write_guard_family(
	struct metrics_text *text, const char *pool, const json_t *guards, bool values)
{
	const json_t *guard;
	size_t i;

	json_array_foreach (guards, i, guard) {
		const json_t *value = json_object_get(guard, "value");
		const struct metrics_label *labels = METRICS_LABELS({"pool", pool},
			{"guard", json_string_value(json_object_get(guard, "name"))},
			{"kind", json_string_value(json_object_get(guard, "kind"))},
			{"dry_run",
				json_is_true(json_object_get(guard, "dry_run")) ? "true"
										: "false"});

		if (!values)
			metrics_count(text, labels, (uint64_t)verdict_number(guard));
		else if (json_is_number(value))
			metrics_real(text, labels, json_number_value(value));
	}
}

// On the node that conducts: what the guards of each cutover under way said of their last window.
static void write_guards(
	struct metrics_text *text, struct verbs *verbs, const struct fleet_cutovers *cutovers)
{
	json_t *said[FLEET_CUTOVERS_MAX];
	uint32_t series = 0;

	for (uint32_t i = 0; i < cutovers->count; i++) {
		const struct cutover *cutover = &cutovers->items[i]->cutover;

		said[i] = cutover_state_terminal(cutover->state)
			? json_array()
			: fleet_verdicts(fleet_link_fleet(verbs->fleet), cutover);
		series += 2 * (uint32_t)json_array_size(said[i]);
	}
	bool fits = metrics_room(text, series);

	for (unsigned values = 0; values < 2 && fits; values++) {
		metrics_family(text, values ? "cutover_guard_value" : "cutover_guard_verdict",
			METRICS_GAUGE,
			values ? "What a guard measured last, where it is a number."
			       : "What a guard said last: 0 passed, 1 failed, 2 inconclusive, "
				 "3 error.");
		for (uint32_t i = 0; i < cutovers->count; i++)
			write_guard_family(
				text, cutovers->items[i]->cutover.spec.pool, said[i], values);
	}
	for (uint32_t i = 0; i < cutovers->count; i++)
		json_decref(said[i]);
}

static void write_fleet(struct metrics_text *text, struct verbs *verbs)
{
	const struct fleet_cutovers *cutovers = verbs_cutovers(verbs);
	struct fleet_state state;

	if (cutovers == NULL || !metrics_room(text, 4 + cutovers->count))
		return;
	write_held(text, cutovers);
	fleet_state(fleet_link_fleet(verbs->fleet), &state);
	gauge(text, "store_connected", "1 while the store answers.", state.connected);
	gauge(text, "store_silent_seconds", "Since the store answered last.",
		(double)state.silent_ms / 1e3);
	gauge(text, "conductor", "1 on the node that conducts cutovers.", state.elected);
	gauge(text, "cutover_kill_switch", "1 while this node's kill switch is on.",
		fleet_link_status(verbs->fleet)->kill_switch);
	write_guards(text, verbs, cutovers);
}

static void write_pools(
	struct metrics_text *text, struct verbs *verbs, const struct stats_file *stats)
{
	const struct document *document = node_document(verbs->node);
	uint32_t series = document->pools->pool_count * (stats ? 16 : 5);

	if (!metrics_room(text, series))
		return;
	write_backend_states(text, document->pools);
	write_cutovers(text, verbs);
	if (stats == NULL)
		return;
	write_pool_counters(text, verbs, stats);
	write_pool_shadow(text, verbs, stats);
	write_live_flows(text, verbs, stats);
}

// Works the balance of a ring out, against the weights of the configuration.
// Returns false when the ring is not the one of the configuration any more, or memory is short.
static bool measure(
	const struct config_pools *pools, const struct node_ring *ring, struct ring_balance *ret)
{
	const struct config_pool *pool = config_pool_find(pools, ring->pool);
	uint32_t count = ring->ring->header->member_count;
	struct config_ring shape;
	struct pool_ring made;
	struct ring_error error;
	uint64_t *arcs;
	uint32_t *weights;
	bool found;

	if (pool == NULL || count == 0 || ring->ring->header->usable_count == 0)
		return false;
	// Only the order and the weights of the members are wanted, so any version will do.
	shape = (struct config_ring){.version = RING_V2, .points = 1, .seed = pool->ring.seed};
	if (pool_ring_spec(pool, &shape, (const char *const *)ring->tags, ring->tag_count, &made,
		    &error) != 0)
		return false;
	arcs = calloc(count, sizeof(*arcs));
	weights = calloc(count, sizeof(*weights));
	found = made.spec.member_count == count && arcs && weights;
	for (uint32_t i = 0; i < count && found; i++)
		weights[i] = made.spec.members[i].weight;
	if (found) {
		ring_shares(ring->ring, arcs);
		ring_balance_measure(arcs, weights, count, ret);
	}
	free(arcs);
	free(weights);
	pool_ring_free(&made);
	return found;
}

// The balance of a ring, remembered from scrape to scrape. budget: points that may still be looked at in this one.
static const struct ring_balance *balance_of(
	struct exporter *exporter, const struct node_ring *ring, uint32_t *budget)
{
	const struct ring_header *header = ring->ring->header;
	struct known_balance fresh = {.usable_count = header->usable_count};
	struct known_balance *place;

	for (uint32_t i = 0; i < exporter->known_count; i++) {
		struct known_balance *known = &exporter->known[i];

		if (memcmp(known->digest, header->points_digest, RING_DIGEST_BYTES) == 0 &&
			known->usable_count == header->usable_count)
			return &known->balance;
	}
	if (header->point_count > *budget ||
		!measure(node_document(exporter->verbs->node)->pools, ring, &fresh.balance))
		return NULL;
	*budget -= header->point_count;
	memcpy(fresh.digest, header->points_digest, RING_DIGEST_BYTES);
	// Full of rings that are gone: start over.
	if (exporter->known_count == SNAPSHOT_RINGS_MAX)
		exporter->known_count = 0;
	place = &exporter->known[exporter->known_count++];
	*place = fresh;
	return &place->balance;
}

// The labels that name a ring: its pool, the tags of its members, its number.
struct ring_labels {
	char subset[512];
	char number[12];
};

static void label_ring(const struct node_ring *ring, struct ring_labels *ret)
{
	size_t used = 0;

	ret->subset[0] = '\0';
	for (uint32_t i = 0; i < ring->tag_count && used < sizeof(ret->subset) - 1; i++)
		used += (size_t)snprintf(ret->subset + used, sizeof(ret->subset) - used, "%s%s",
			i ? "," : "", ring->tags[i]);
	snprintf(ret->number, sizeof(ret->number), "%u", ring->index);
}

#define RING_LABELS(ring, labels)                                           \
	METRICS_LABELS({"pool", (ring)->pool}, {"subset", (labels).subset}, \
		{"ring", (labels).number}, {"role", (ring)->is_new ? "new" : "old"})

static void write_ring_info(
	struct metrics_text *text, const struct node_ring *rings, uint32_t count)
{
	metrics_family(text, "ring_info", METRICS_GAUGE, "1; a ring's identity as labels.");
	for (uint32_t i = 0; i < count; i++) {
		char digest[2 * RING_DIGEST_BYTES + 1];
		struct ring_labels labels;

		label_ring(&rings[i], &labels);
		ring_digest_format(rings[i].ring->header->points_digest, digest);
		metrics_count(text,
			METRICS_LABELS({"pool", rings[i].pool}, {"subset", labels.subset},
				{"ring", labels.number}, {"role", rings[i].is_new ? "new" : "old"},
				{"version",
					config_ring_version_name(rings[i].ring->header->version)},
				{"digest", digest}),
			1);
	}
}

enum ring_value {
	RING_POINTS,
	RING_BYTES,
	RING_V1_BYTES,
	RING_SERVERS,
	RING_USABLE,
	RING_VALUES,
};

static uint64_t ring_value(const struct node_ring *ring, enum ring_value value)
{
	const struct ring_header *header = ring->ring->header;

	switch (value) {
	case RING_POINTS:
		return header->point_count;
	case RING_BYTES:
		return header->bytes;
	case RING_V1_BYTES:
		return ring->v1_bytes;
	case RING_SERVERS:
		return header->member_count;
	default:
		return header->usable_count;
	}
}

static void write_ring_values(
	struct metrics_text *text, const struct node_ring *rings, uint32_t count)
{
	static const struct {
		const char *name;
		const char *help;
	} families[RING_VALUES] = {
		[RING_POINTS] = {"ring_points", "Points of a ring."},
		[RING_BYTES] = {"ring_memory_bytes", "Bytes of one worker's copy of a ring."},
		[RING_V1_BYTES] = {"ring_as_v1_memory_bytes",
			"Bytes that the ring would take as v1."},
		[RING_SERVERS] = {"ring_servers", "Backends of a ring."},
		[RING_USABLE] = {"ring_usable_servers",
			"Backends of a ring that may get new flows."},
	};

	for (int f = 0; f < RING_VALUES; f++) {
		metrics_family(text, families[f].name, METRICS_GAUGE, families[f].help);
		for (uint32_t i = 0; i < count; i++) {
			struct ring_labels labels;

			label_ring(&rings[i], &labels);
			metrics_count(
				text, RING_LABELS(&rings[i], labels), ring_value(&rings[i], f));
		}
	}
}

static void write_ring_balance(struct exporter *exporter, struct metrics_text *text,
	const struct node_ring *rings, uint32_t count)
{
	uint32_t budget = POINTS_A_SCRAPE;

	// In the first round the hottest, in the second the coldest: a family's series stand together.
	for (int coldest = 0; coldest < 2; coldest++) {
		metrics_family(text, coldest ? "ring_share_min_ratio" : "ring_share_max_ratio",
			METRICS_GAUGE,
			coldest ? "Share of the coldest backend over its fair share."
				: "Share of the hottest backend over its fair share.");
		for (uint32_t i = 0; i < count; i++) {
			const struct ring_balance *balance =
				balance_of(exporter, &rings[i], &budget);
			struct ring_labels labels;

			label_ring(&rings[i], &labels);
			if (balance != NULL)
				metrics_real(text, RING_LABELS(&rings[i], labels),
					coldest ? balance->coldest_ratio : balance->hottest_ratio);
		}
	}
}

static void write_rings(struct exporter *exporter, struct metrics_text *text)
{
	const struct node *node = exporter->verbs->node;
	uint32_t workers = node_config(node)->dataplane.worker_count;
	uint64_t bytes = 0, v1_bytes = 0;
	const struct node_ring *rings;
	uint32_t count = node_rings(node, &rings);

	for (uint32_t i = 0; i < count; i++) {
		bytes += rings[i].ring->header->bytes;
		v1_bytes += rings[i].v1_bytes;
	}
	gauge(text, "rings", "Rings of the node.", count);
	gauge(text, "rings_node_memory_bytes", "Bytes of all rings in all workers.",
		(double)(bytes * workers));
	gauge(text, "rings_as_v1_node_memory_bytes",
		"Bytes that all rings would take in all workers as v1.",
		(double)(v1_bytes * workers));
	if (!metrics_room(text, count * (RING_VALUES + 3)))
		return;
	write_ring_info(text, rings, count);
	write_ring_values(text, rings, count);
	write_ring_balance(exporter, text, rings, count);
}

static void write_services(
	struct metrics_text *text, struct verbs *verbs, const struct stats_file *stats)
{
	static const struct {
		const char *name;
		const char *help;
	} families[] = {
		{"service_packets_total", "Packets of a service."},
		{"service_bytes_total", "Bytes of a service's packets as they came."},
		{"service_new_flows_total", "New flows of a service."},
		{"service_drops_total", "Packets of a service that were dropped."},
	};
	const struct config_pools *pools = node_document(verbs->node)->pools;

	if (stats == NULL || !metrics_room(text, pools->service_count * 4))
		return;
	for (unsigned f = 0; f < 4; f++) {
		metrics_family(text, families[f].name, METRICS_COUNTER, families[f].help);
		for (uint32_t i = 0; i < pools->service_count; i++) {
			const char *service = pools->services[i].name;
			struct stats_service sums;

			stats_file_service(
				stats, verbs_id(verbs, DOCUMENT_SERVICE, "", service), &sums);
			metrics_count(text, METRICS_LABELS({"service", service}),
				f == 0           ? sums.packets
					: f == 1 ? sums.bytes
					: f == 2 ? sums.new_flows_old + sums.new_flows_new
						 : sums.drops);
		}
	}
}

// Only with ?scope=backend: their number has no bound that a scrape could bear.
static void write_backends(
	struct metrics_text *text, struct verbs *verbs, const struct stats_file *stats)
{
	static const struct {
		const char *name;
		const char *help;
		enum metrics_type type;
	} families[] = {
		{"backend_up", "1 while a backend may get new flows.", METRICS_GAUGE},
		{"backend_packets_total", "Packets sent to a backend.", METRICS_COUNTER},
		{"backend_bytes_total", "Bytes of these packets as they came.", METRICS_COUNTER},
		{"backend_new_flows_total", "New flows of a backend.", METRICS_COUNTER},
	};
	const struct document *document = node_document(verbs->node);

	for (unsigned f = 0; f < (stats ? 4 : 1); f++) {
		metrics_family(text, families[f].name, families[f].type, families[f].help);
		for (uint32_t i = 0; i < document->id_count; i++) {
			const struct document_id *id = &document->ids[i];
			const struct snapshot *snapshot = node_snapshot(verbs->node);
			struct stats_backend sums = {0};

			if (id->kind != DOCUMENT_BACKEND || id->freed_s != 0)
				continue;
			if (stats != NULL)
				stats_file_backend(stats, id->id, &sums);
			metrics_count(text,
				METRICS_LABELS({"pool", id->pool}, {"backend", id->name}),
				f == 0 ? snapshot != NULL && id->id < snapshot->backend_count &&
						snapshot->backends[id->id].state ==
							SNAPSHOT_BACKEND_UP
					: f == 1 ? sums.packets
					: f == 2 ? sums.bytes
						 : sums.new_flows);
		}
	}
}

static struct scope read_scope(const char *text)
{
	bool all = text != NULL && strcmp(text, "all") == 0;

	if (text == NULL)
		return (struct scope){0};
	return (struct scope){
		.pools = all || strcmp(text, "pool") == 0,
		.rings = all || strcmp(text, "ring") == 0,
		.services = all || strcmp(text, "service") == 0,
		.backends = all || strcmp(text, "backend") == 0,
	};
}

char *exporter_render(void *context, const char *scope_text, size_t *ret_length)
{
	struct exporter *exporter = context;
	struct scope scope = read_scope(scope_text);
	const struct stats_file *stats = verbs_stats(exporter->verbs);
	char *ret = NULL;
	struct metrics_text text = {.out = open_memstream(&ret, ret_length)};

	if (text.out == NULL)
		return NULL;
	write_node(&text, exporter->verbs);
	write_requests(&text, exporter->verbs->server);
	if (stats != NULL)
		metrics_dataplane(&text, stats, now_ns());
	text.unlimited = scope.pools;
	write_pools(&text, exporter->verbs, stats);
	write_fleet(&text, exporter->verbs);
	text.unlimited = scope.rings;
	write_rings(exporter, &text);
	text.unlimited = scope.services;
	write_services(&text, exporter->verbs, stats);
	if (scope.backends)
		write_backends(&text, exporter->verbs, stats);
	gauge(&text, "series_left_out", "Series that did not fit this scrape; ask with ?scope=.",
		text.left_out_count);
	if (fclose(text.out) != 0) {
		free(ret);
		return NULL;
	}
	return ret;
}
