// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/fleet_link.h"

#include "control/daemon/load.h"
#include "control/daemon/rates.h"
#include "control/fleet/live.h"
#include "control/metrics/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#define TICK_US          1000000u
#define KILL_SWITCH_NAME "kill-switch"
#define LOCAL_NAME       "rollback-local"
#define LOCAL_MOVES      "move-established"
#define LOCAL_LINE_BYTES (CUTOVER_NAME_BYTES + sizeof(LOCAL_MOVES) + 2)
#define PATH_BYTES       4096
// A node that does not conduct puts rings in order only when nobody else has done it for so long.
#define PATIENCE_TICKS 10u

// The load of one pool since its share last changed.
struct pool_load {
	char pool[CUTOVER_NAME_BYTES];
	uint64_t revision; // of the share
	struct load *load;
};

// A pool that is rolled back on this node alone.
struct local {
	char pool[CUTOVER_NAME_BYTES];
	enum fleet_link_local mode; // not FLEET_LINK_FOLLOWS
};

struct fleet_link {
	struct node *node;
	struct fleet *fleet;
	sd_event_source *timer;
	sd_event_source *hint;
	struct stats_file stats;
	struct fleet_status status;
	bool kill_switch;
	struct local locals[FLEET_POOLS_MAX];
	uint32_t local_count;
	struct rates *rates;
	struct pool_load loads[FLEET_POOLS_MAX];
	uint32_t load_count;
	unsigned unsettled_ticks; // that the document's rings have not been those of the cutovers
	unsigned patience;
};

// --- the node's own switches -----------------------------------------------------------------------

static void switch_path(
	const struct fleet_link *link, const char *name, char ret[static PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%s/%s", node_config(link->node)->run_dir, name);
}

static struct local *local_find(const struct fleet_link *link, const char *pool)
{
	for (uint32_t i = 0; i < link->local_count; i++) {
		if (strcmp(link->locals[i].pool, pool) == 0)
			return (struct local *)&link->locals[i];
	}
	return NULL;
}

enum fleet_link_local fleet_link_local(const struct fleet_link *link, const char *pool)
{
	const struct local *local = local_find(link, pool);

	return local ? local->mode : FLEET_LINK_FOLLOWS;
}

// A line a pool: its name, and LOCAL_MOVES behind it.
static void local_read(struct fleet_link *link, char *line)
{
	struct local *local = &link->locals[link->local_count++];
	size_t length = strcspn(line, " \n");

	local->mode = strstr(line + length, LOCAL_MOVES) ? FLEET_LINK_BACK_ALL : FLEET_LINK_BACK;
	line[length] = '\0';
	snprintf(local->pool, sizeof(local->pool), "%.63s", line);
}

static void switches_load(struct fleet_link *link)
{
	char path[PATH_BYTES], line[LOCAL_LINE_BYTES];
	FILE *file;

	switch_path(link, KILL_SWITCH_NAME, path);
	link->kill_switch = access(path, F_OK) == 0;
	switch_path(link, LOCAL_NAME, path);
	file = fopen(path, "re");
	while (file != NULL && link->local_count < FLEET_POOLS_MAX &&
		fgets(line, sizeof(line), file) != NULL)
		local_read(link, line);
	if (file != NULL)
		fclose(file);
}

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	ssize_t length = (ssize_t)strlen(text);
	int rc = fd < 0 ? -errno : 0;

	if (rc == 0 && (write(fd, text, (size_t)length) != length || fsync(fd) != 0))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

int fleet_link_kill_switch(struct fleet_link *link, bool on)
{
	char path[PATH_BYTES];

	link->kill_switch = on;
	fleet_link_refresh(link);
	switch_path(link, KILL_SWITCH_NAME, path);
	if (on)
		return file_write(path, "on\n");
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int local_save(const struct fleet_link *link)
{
	char path[PATH_BYTES], text[FLEET_POOLS_MAX * LOCAL_LINE_BYTES] = "";
	size_t length = 0;

	switch_path(link, LOCAL_NAME, path);
	for (uint32_t i = 0; i < link->local_count; i++) {
		const struct local *local = &link->locals[i];

		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s\n",
			local->pool, local->mode == FLEET_LINK_BACK_ALL ? " " LOCAL_MOVES : "");
	}
	return file_write(path, text);
}

int fleet_link_local_set(struct fleet_link *link, const char *pool, enum fleet_link_local mode)
{
	struct local *local = local_find(link, pool);

	if (fleet_link_local(link, pool) == mode)
		return 0;
	if (mode == FLEET_LINK_FOLLOWS) {
		*local = link->locals[--link->local_count];
	} else {
		if (local == NULL && link->local_count == FLEET_POOLS_MAX)
			return -ENOSPC;
		if (local == NULL)
			local = &link->locals[link->local_count++];
		snprintf(local->pool, sizeof(local->pool), "%s", pool);
		local->mode = mode;
	}
	fleet_link_refresh(link);
	return local_save(link);
}

// The rings of this very cutover in the document, known by its salt: a later one of the same pool is not ours.
static const struct document_cutover *rings_of(
	const struct document *document, const struct cutover *cutover)
{
	const struct document_cutover *rings =
		document_cutover_find((struct document *)document, cutover->spec.pool);

	return rings != NULL && rings->salt == cutover->spec.salt ? rings : NULL;
}

// A cutover that this document alone knows of, or NULL.
static const struct document_cutover *by_hand(const struct fleet_link *link, const char *pool)
{
	const struct fleet_cutovers *cutovers = fleet_cutovers(link->fleet);
	const struct document *document = node_document(link->node);
	const struct document_cutover *ret =
		document_cutover_find((struct document *)document, pool);

	for (uint32_t i = 0; i < cutovers->count && ret != NULL; i++) {
		if (rings_of(document, &cutovers->items[i]->cutover) == ret)
			ret = NULL;
	}
	return ret;
}

static const struct cutover *of_fleet(const struct fleet_link *link, const char *pool)
{
	const struct fleet_cutovers *cutovers = fleet_cutovers(link->fleet);

	for (uint32_t i = 0; i < cutovers->count; i++) {
		if (strcmp(cutovers->items[i]->cutover.spec.pool, pool) == 0)
			return &cutovers->items[i]->cutover;
	}
	return NULL;
}

bool fleet_link_moves(const struct fleet_link *link, const char *pool)
{
	const struct cutover *cutover = of_fleet(link, pool);

	return by_hand(link, pool) != NULL ||
		(cutover != NULL && cutover->state != CUTOVER_RETIRED &&
			cutover->state != CUTOVER_DISCARDED);
}

// A local way back has done its work when all went the same way, or are past the cutover.
static bool local_is_over(const struct fleet_link *link, const struct local *local)
{
	const char *datacenter = node_config(link->node)->datacenter;
	const struct document_cutover *hand = by_hand(link, local->pool);
	const struct cutover *cutover = of_fleet(link, local->pool);
	bool all = local->mode == FLEET_LINK_BACK_ALL;

	if (hand != NULL)
		return hand->share == 0 && (!all || hand->moves_established != 0);
	if (!fleet_link_moves(link, local->pool))
		return true;
	return (cutover->state == CUTOVER_ROLLING_BACK || cutover->state == CUTOVER_ROLLED_BACK) &&
		(!all || cutover_recalls(cutover, datacenter));
}

// Not without the store: what is known then may be less than what this node was told to go back from.
static void locals_settle(struct fleet_link *link)
{
	uint32_t before = link->local_count;
	struct fleet_state state;

	fleet_state(link->fleet, &state);
	if (!state.connected)
		return;
	for (uint32_t i = before; i-- > 0;) {
		if (local_is_over(link, &link->locals[i]))
			link->locals[i] = link->locals[--link->local_count];
	}
	if (link->local_count != before)
		local_save(link);
}

// --- shares ----------------------------------------------------------------------------------------

// This node alone has said that it takes no new ring of the pool.
static bool is_off(const struct fleet_link *link, const char *pool)
{
	return link->kill_switch || fleet_link_local(link, pool) != FLEET_LINK_FOLLOWS;
}

static uint32_t share_here(const struct fleet_link *link, const struct cutover *cutover,
	enum threshold_cause *ret_cause)
{
	return cutover_share(cutover, node_config(link->node)->datacenter,
		is_off(link, cutover->spec.pool), ret_cause);
}

static bool recalls_here(const struct fleet_link *link, const struct cutover *cutover)
{
	return fleet_link_local(link, cutover->spec.pool) == FLEET_LINK_BACK_ALL ||
		cutover_recalls(cutover, node_config(link->node)->datacenter);
}

// A local way back holds for cutovers by hand as well.
static uint32_t shares_by_hand(
	const struct fleet_link *link, struct node_share *shares, uint32_t count)
{
	const struct document *document = node_document(link->node);

	for (uint32_t i = 0; i < document->cutover_count && count < NODE_SHARES_MAX; i++) {
		const char *pool = document->cutovers[i].pool;

		if (fleet_link_local(link, pool) == FLEET_LINK_FOLLOWS ||
			by_hand(link, pool) == NULL)
			continue;
		shares[count] = (struct node_share){
			.moves_established = fleet_link_local(link, pool) == FLEET_LINK_BACK_ALL};
		snprintf(shares[count].pool, sizeof(shares[count].pool), "%s", pool);
		count++;
	}
	return count;
}

static void shares_use(struct fleet_link *link)
{
	const struct fleet_cutovers *cutovers = fleet_cutovers(link->fleet);
	struct node_share shares[NODE_SHARES_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < cutovers->count && count < NODE_SHARES_MAX; i++) {
		const struct cutover *cutover = &cutovers->items[i]->cutover;

		if (cutover->state == CUTOVER_PLANNED ||
			rings_of(node_document(link->node), cutover) == NULL)
			continue;
		snprintf(shares[count].pool, sizeof(shares[count].pool), "%s", cutover->spec.pool);
		shares[count].moves_established = recalls_here(link, cutover);
		shares[count++].share = share_here(link, cutover, NULL);
	}
	node_shares_set(link->node, shares, shares_by_hand(link, shares, count), link->kill_switch);
}

// --- rings in the document -------------------------------------------------------------------------

// Tells whether the document has the rings that the cutover's state wants.
static bool settled(const struct document *document, const struct cutover *cutover)
{
	bool has = rings_of(document, cutover) != NULL;
	bool wants =
		cutover_state_needs_new(cutover->state) && cutover_state_needs_old(cutover->state);

	return has == wants;
}

bool fleet_link_settle(struct fleet_link *link, const struct cutover *cutover)
{
	struct node_request request = {.verb = "cutover.rings", .reason = "follows the cutover"};
	const char *pool = cutover->spec.pool;
	struct node_outcome outcome = {0};

	if (settled(node_document(link->node), cutover))
		return true;
	if (cutover->state == CUTOVER_RETIRED)
		node_cutover_retire(link->node, &request, pool, &outcome);
	else if (cutover->state == CUTOVER_DISCARDED)
		node_cutover_discard(link->node, &request, pool, &outcome);
	else
		return false; // rings come with `stage` alone
	if (outcome.code != NODE_OK && outcome.code != NODE_CONFLICT)
		fprintf(stderr, "<4>cutover of %s: %s\n", pool, outcome.text);
	node_outcome_free(&outcome);
	return settled(node_document(link->node), cutover);
}

// The conductor does it; anybody does when nobody has.
static void rings_settle(struct fleet_link *link)
{
	const struct fleet_cutovers *cutovers = fleet_cutovers(link->fleet);
	const struct cutover *unsettled = NULL;
	struct fleet_state state;

	for (uint32_t i = 0; i < cutovers->count && unsettled == NULL; i++) {
		const struct cutover *cutover = &cutovers->items[i]->cutover;

		if (cutover_state_terminal(cutover->state) &&
			!settled(node_document(link->node), cutover))
			unsettled = cutover;
	}
	if (unsettled == NULL) {
		link->unsettled_ticks = 0;
		return;
	}
	fleet_state(link->fleet, &state);
	if (state.elected || ++link->unsettled_ticks > link->patience)
		fleet_link_settle(link, unsettled);
}

// --- the statement ---------------------------------------------------------------------------------

static const struct stats_file *stats_of(struct fleet_link *link)
{
	char path[PATH_BYTES];

	switch_path(link, IPC_STATS_NAME, path);
	return stats_file_refresh(&link->stats, path) == 0 ? &link->stats : NULL;
}

static void rings_fill(const struct fleet_link *link, struct fleet_pool *ret)
{
	uint64_t workers = node_config(link->node)->dataplane.worker_count;
	const struct node_ring *rings;
	uint32_t count = node_rings(link->node, &rings);

	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(rings[i].pool, ret->pool) != 0)
			continue;
		fleet_digest_add(
			rings[i].is_new ? ret->new_digest : ret->old_digest, rings[i].ring->header);
		ret->has_new |= rings[i].is_new;
		ret->has_old |= !rings[i].is_new;
		*(rings[i].is_new ? &ret->ring_bytes_new : &ret->ring_bytes_old) +=
			workers * rings[i].ring->header->bytes;
	}
}

static uint32_t id_of(
	const struct fleet_link *link, enum document_kind kind, const char *pool, const char *name)
{
	const struct document_id *id =
		document_id_find(node_document(link->node), kind, pool, name);

	return id ? id->id : UINT32_MAX;
}

// --- load --------------------------------------------------------------------------------------------

static struct pool_load *load_of(struct fleet_link *link, const char *pool)
{
	struct pool_load *load;

	for (uint32_t i = 0; i < link->load_count; i++) {
		if (strcmp(link->loads[i].pool, pool) == 0)
			return &link->loads[i];
	}
	if (link->load_count == FLEET_POOLS_MAX)
		return NULL;
	load = &link->loads[link->load_count];
	load->load = load_create();
	if (load->load == NULL)
		return NULL;
	link->load_count++;
	memcpy(load->pool, pool, strnlen(pool, sizeof(load->pool) - 1));
	return load;
}

static void service_flows(void *context, uint32_t id, uint64_t *ret_old, uint64_t *ret_new)
{
	struct stats_service sums;

	stats_file_service(context, id, &sums);
	*ret_old = sums.new_flows_old;
	*ret_new = sums.new_flows_new;
}

static uint64_t backend_flows(void *context, uint32_t id)
{
	struct stats_backend sums;

	stats_file_backend(context, id, &sums);
	return sums.new_flows;
}

// The hottest backend since the share last changed.
static void load_fill(struct fleet_link *link, struct fleet_pool *ret)
{
	const struct document *document = node_document(link->node);
	uint32_t pool = id_of(link, DOCUMENT_POOL, "", ret->pool);
	struct pool_load *load = load_of(link, ret->pool);
	struct load_counters counters = {.context = &link->stats,
		.service = service_flows,
		.backend = backend_flows,
		.epoch = link->status.started_ns};
	struct load_hottest hottest;

	if (load == NULL)
		return;
	// Without a revision something is on its way to the dataplane, so nobody knows what it uses.
	if (ret->revision == 0 || pool == UINT32_MAX || link->stats.memory == NULL) {
		load_skip(load->load);
		return;
	}
	if (load->revision != ret->revision)
		load_reset(load->load);
	load->revision = ret->revision;
	if (load_look(load->load, node_snapshot(link->node), pool, &counters) < 0 ||
		!load_hottest(load->load, &hottest))
		return;
	const struct document_id *id =
		document_id_name(document, DOCUMENT_BACKEND, hottest.backend);

	snprintf(ret->load_backend, sizeof(ret->load_backend), "%s", id ? id->name : "?");
	ret->load = (double)hottest.flows;
	ret->load_expected = hottest.most;
	ret->load_flows = hottest.total;
}

static void counters_fill(const struct fleet_link *link, struct fleet_pool *ret)
{
	struct stats_pool sums = {0};

	if (link->stats.memory != NULL)
		stats_file_pool(&link->stats, id_of(link, DOCUMENT_POOL, "", ret->pool), &sums);
	ret->flows_old = sums.new_flows_old;
	ret->flows_new = sums.new_flows_new;
	ret->aborts_old = sums.aborts_old;
	ret->aborts_new = sums.aborts_new;
	ret->drops_old = sums.drops_old;
	ret->drops_new = sums.drops_new;
	ret->packets_old = sums.packets_old;
	ret->packets_new = sums.packets_new;
	ret->shadow_same = sums.shadow_same;
	ret->shadow_different = sums.shadow_different;
	ret->recalled = sums.recalled;
	ret->live_new = sums.live_new;
}

static void pool_fill(
	struct fleet_link *link, const struct cutover *cutover, struct fleet_pool *ret)
{
	const struct node_dataplane *dataplane = node_dataplane(link->node);

	*ret = (struct fleet_pool){0};
	snprintf(ret->pool, sizeof(ret->pool), "%s", cutover->spec.pool);
	ret->share = share_here(link, cutover, NULL);
	ret->local = fleet_link_local(link, ret->pool) != FLEET_LINK_FOLLOWS;
	ret->moves_established = ret->share == 0 && recalls_here(link, cutover);
	// Until rings and shares are in use, what is followed is what was before; nobody waits for a number in between.
	if (dataplane->state == NODE_DATAPLANE_CURRENT &&
		settled(node_document(link->node), cutover))
		ret->revision = cutover->shares_revision;
	if (cutover_state_needs_new(cutover->state) && cutover_state_needs_old(cutover->state) &&
		!settled(node_document(link->node), cutover))
		snprintf(ret->error, sizeof(ret->error), "the document has no rings of it");
	rings_fill(link, ret);
	counters_fill(link, ret);
	load_fill(link, ret);
}

static void statement_head(struct fleet_link *link, struct fleet_status *ret)
{
	const struct config_node *config = node_config(link->node);
	const struct node_dataplane *dataplane = node_dataplane(link->node);
	const struct ipc_status *status = &dataplane->status;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(ret->node, sizeof(ret->node), "%s", config->node);
	snprintf(ret->datacenter, sizeof(ret->datacenter), "%s", config->datacenter);
	ret->time_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	ret->generation = node_document(link->node)->generation;
	ret->dataplane = dataplane->state == NODE_DATAPLANE_CURRENT ? FLEET_DATAPLANE_CURRENT
		: dataplane->state == NODE_DATAPLANE_BEHIND         ? FLEET_DATAPLANE_BEHIND
								    : FLEET_DATAPLANE_ABSENT;
	snprintf(ret->text, sizeof(ret->text), "%.190s", dataplane->text);
	ret->kill_switch = link->kill_switch;
	ret->started_ns = status->started_ns;
	ret->startup_ns = status->startup_ns;
	memcpy(ret->daemon_startup_ns, node_startup(link->node), sizeof(ret->daemon_startup_ns));
	ret->daemon_resident_bytes = process_resident_bytes((uint64_t)getpid());
	ret->hugepage_bytes = status->hugepage_bytes;
	ret->snapshot_bytes = status->snapshot_bytes;
}

static void process_fill(const struct stats_header *header, struct fleet_status *ret)
{
	memcpy(ret->startup_phases_ns, header->startup_ns, sizeof(ret->startup_phases_ns));
	if (ret->dataplane != FLEET_DATAPLANE_ABSENT)
		ret->dataplane_resident_bytes = process_resident_bytes(header->pid);
}

// Looks at the counters of all pools, in a cutover or not: plans are made for those that are in none.
static void rates_look(struct fleet_link *link)
{
	const struct config_pools *pools = node_document(link->node)->pools;
	const struct stats_file *stats = stats_of(link);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (uint32_t i = 0; stats != NULL && i < pools->pool_count; i++) {
		uint32_t id = id_of(link, DOCUMENT_POOL, "", pools->pools[i].name);
		struct stats_pool sums;

		if (id == UINT32_MAX)
			continue;
		stats_file_pool(stats, id, &sums);
		rates_take(link->rates, id, sums.new_flows_old + sums.new_flows_new,
			stats->view.header->started_ns,
			(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	}
}

static void rates_fill(const struct fleet_link *link, struct fleet_status *ret)
{
	const struct config_pools *pools = node_document(link->node)->pools;

	for (uint32_t i = 0; i < pools->pool_count && ret->rate_count < FLEET_POOLS_MAX; i++) {
		const char *pool = pools->pools[i].name;
		double rate = rates_of(link->rates, id_of(link, DOCUMENT_POOL, "", pool));

		if (rate <= 0)
			continue;
		snprintf(ret->rates[ret->rate_count].pool, CUTOVER_NAME_BYTES, "%s", pool);
		ret->rates[ret->rate_count++].flows_per_second = rate;
	}
}

static void statement_give(struct fleet_link *link)
{
	const struct fleet_cutovers *cutovers = fleet_cutovers(link->fleet);
	const struct stats_file *stats = stats_of(link);
	struct stats_reading reading;

	memset(&link->status, 0, sizeof(link->status));
	statement_head(link, &link->status);
	if (stats != NULL) {
		stats_file_read(stats, UINT32_MAX, &reading);
		link->status.rx_packets = reading.counter[COUNTER_rx_packets];
		link->status.busy_cycles = reading.counter[COUNTER_busy_cycles];
		process_fill(stats->view.header, &link->status);
	}
	for (uint32_t i = 0; i < cutovers->count && link->status.pool_count < FLEET_POOLS_MAX; i++)
		pool_fill(link, &cutovers->items[i]->cutover,
			&link->status.pools[link->status.pool_count++]);
	rates_fill(link, &link->status);
	fleet_report(link->fleet, &link->status);
}

void fleet_link_live(
	struct fleet_link *link, const struct document_cutover *cutover, struct fleet_live *live)
{
	struct fleet_pool pool = {.share = document_cutover_share(cutover)};

	if (stats_of(link) == NULL)
		return;
	statement_give(link);
	snprintf(pool.pool, sizeof(pool.pool), "%s", cutover->pool);
	rings_fill(link, &pool);
	counters_fill(link, &pool);
	fleet_live_add(live, &link->status, &pool);
}

// --- life ------------------------------------------------------------------------------------------

void fleet_link_refresh(struct fleet_link *link)
{
	fleet_take(link->fleet);
	locals_settle(link);
	shares_use(link);
	statement_give(link);
}

static int on_tick(sd_event_source *source, uint64_t time_us, void *context)
{
	struct fleet_link *link = context;

	fleet_take(link->fleet);
	locals_settle(link);
	rings_settle(link);
	shares_use(link);
	rates_look(link);
	statement_give(link);
	sd_event_source_set_time(source, time_us + TICK_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_hint(sd_event_source *source, int fd, uint32_t events, void *context)
{
	(void)source, (void)fd, (void)events;
	fleet_link_refresh(context);
	return 0;
}

int fleet_link_open(struct node *node, struct fleet_link **ret, char *ret_error)
{
	struct fleet_link *link = calloc(1, sizeof(*link));
	uint32_t random = 0;

	if (link == NULL)
		return -ENOMEM;
	link->node = node;
	link->rates = rates_create();
	if (link->rates == NULL) {
		free(link);
		return -ENOMEM;
	}
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint32_t)getpid();
	link->patience = PATIENCE_TICKS + random % PATIENCE_TICKS;
	int rc = fleet_open(node_config(node), node_started_alone(node), &link->fleet, ret_error);

	if (rc < 0) {
		rates_free(link->rates);
		free(link);
		return rc;
	}
	switches_load(link);
	locals_settle(link);
	shares_use(link);
	*ret = link;
	return 0;
}

void fleet_link_close(struct fleet_link *link)
{
	if (link == NULL)
		return;
	sd_event_source_unref(link->timer);
	sd_event_source_unref(link->hint);
	fleet_close(link->fleet);
	stats_file_close(&link->stats);
	rates_free(link->rates);
	for (uint32_t i = 0; i < link->load_count; i++)
		load_free(link->loads[i].load);
	free(link);
}

int fleet_link_attach(struct fleet_link *link, struct sd_event *event)
{
	int rc = sd_event_add_time_relative(
		event, &link->timer, CLOCK_MONOTONIC, TICK_US, 0, on_tick, link);

	if (rc >= 0)
		rc = sd_event_add_io(
			event, &link->hint, fleet_descriptor(link->fleet), EPOLLIN, on_hint, link);
	return rc < 0 ? rc : 0;
}

struct fleet *fleet_link_fleet(struct fleet_link *link)
{
	return link->fleet;
}

const struct fleet_status *fleet_link_status(const struct fleet_link *link)
{
	return &link->status;
}
