// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/guards.h"

#include "common/stats.h"
#include "control/fleet/inquiry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLAN_BYTES 17 // sixteen hex digits

// What the fleet did on this cutover, summed up over nodes since the first look. Grows.
struct totals {
	uint64_t flows_old;
	uint64_t flows_new;
	uint64_t aborts_old;
	uint64_t aborts_new;
	uint64_t drops_old;
	uint64_t drops_new;
	uint64_t packets;
	uint64_t cycles;
	// The old ring's part of every node, also of those at 0 %: what it was like before all went away from it.
	uint64_t base_flows;
	uint64_t base_aborts;
	double intended;  // new-ring flows as the shares wanted them
	uint64_t reports; // statements that brought something
};

// A node's counters at the last look.
struct mark {
	char node[CUTOVER_NAME_BYTES];
	uint64_t time_ms;
	uint64_t started_ns;
	uint64_t revision;
	uint64_t packets;
	uint64_t cycles;
	struct fleet_pool pool;
};

struct window {
	struct totals from;
	uint64_t began_ms;
	bool judged; // since the last round
};

// A query that was sent.
struct question {
	struct inquiry *inquiry; // NULL: none
	uint64_t shares_revision;
	uint64_t valued_ms; // when it last had a value; 0: never
};

struct fleet_guards {
	struct mark *marks;
	uint32_t mark_count;
	uint32_t mark_room;
	struct totals totals;
	uint64_t shares_revision; // that the windows belong to
	bool started;
	struct guard_memory memory[CUTOVER_GUARDS_MAX];
	time_t judged_at
		[CUTOVER_GUARDS_MAX]; // wall clock, for people; of guards that have a window
	struct window windows[CUTOVER_GUARDS_MAX];
	struct question questions[CUTOVER_GUARDS_MAX];
	// As they were while both rings were staged; 0: not seen.
	double baseline_cost;
	double baseline_memory;
	double baseline_startup;
};

struct fleet_guards *fleet_guards_create(void)
{
	return calloc(1, sizeof(struct fleet_guards));
}

void fleet_guards_free(struct fleet_guards *guards)
{
	struct inquiry_answer answer;

	if (guards == NULL)
		return;
	for (uint32_t i = 0; i < CUTOVER_GUARDS_MAX; i++) {
		if (guards->questions[i].inquiry != NULL)
			inquiry_wait(guards->questions[i].inquiry, &answer);
	}
	free(guards->marks);
	free(guards);
}

static struct mark *mark_of(struct fleet_guards *guards, const char *node)
{
	for (uint32_t i = 0; i < guards->mark_count; i++) {
		if (strcmp(guards->marks[i].node, node) == 0)
			return &guards->marks[i];
	}
	if (guards->mark_count == guards->mark_room) {
		uint32_t room = guards->mark_room ? 2 * guards->mark_room : 16;
		void *larger = realloc(guards->marks, room * sizeof(*guards->marks));

		if (larger == NULL)
			return NULL;
		guards->marks = larger;
		guards->mark_room = room;
	}
	struct mark *mark = &guards->marks[guards->mark_count++];

	*mark = (struct mark){0};
	snprintf(mark->node, sizeof(mark->node), "%s", node);
	return mark;
}

// Adds what a node did between two statements, if both are of one dataplane and one share.
static void add(struct totals *totals, const struct mark *before, const struct fleet_status *status,
	const struct fleet_pool *pool)
{
	const struct fleet_pool *old = &before->pool;

	if (before->time_ms == 0 || before->started_ns != status->started_ns ||
		before->revision != pool->revision || old->share != pool->share ||
		pool->flows_old < old->flows_old || pool->flows_new < old->flows_new)
		return;
	uint64_t flows_old = pool->flows_old - old->flows_old;
	uint64_t flows_new = pool->flows_new - old->flows_new;

	totals->reports++;
	totals->packets += status->rx_packets - before->packets;
	totals->cycles += status->busy_cycles - before->cycles;
	totals->base_flows += flows_old;
	totals->base_aborts += pool->aborts_old - old->aborts_old;
	// A node at 0 % has nothing to compare, but its new-ring flows, of which there must be none.
	totals->flows_new += flows_new;
	totals->drops_new += pool->drops_new - old->drops_new;
	totals->aborts_new += pool->aborts_new - old->aborts_new;
	if (pool->share == 0)
		return;
	totals->flows_old += flows_old;
	totals->aborts_old += pool->aborts_old - old->aborts_old;
	totals->drops_old += pool->drops_old - old->drops_old;
	totals->intended += (double)(flows_old + flows_new) * pool->share / (double)GATE_SHARE_ALL;
}

static void take(struct fleet_guards *guards, const struct cutover *cutover,
	const struct fleet_roster *roster)
{
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct fleet_status *status = &roster->members[i]->status;
		const struct fleet_pool *pool = fleet_pool_find(status, cutover->spec.pool);
		struct mark *mark = pool ? mark_of(guards, status->node) : NULL;

		if (mark == NULL || mark->time_ms == status->time_ms)
			continue;
		add(&guards->totals, mark, status, pool);
		mark->time_ms = status->time_ms;
		mark->started_ns = status->started_ns;
		mark->revision = pool->revision;
		mark->packets = status->rx_packets;
		mark->cycles = status->busy_cycles;
		mark->pool = *pool;
	}
}

static void largest(const struct fleet_roster *roster, double *ret_memory, double *ret_startup)
{
	*ret_memory = *ret_startup = 0;
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct fleet_status *status = &roster->members[i]->status;

		*ret_memory = fmax(*ret_memory, (double)status->hugepage_bytes);
		*ret_startup = fmax(*ret_startup, (double)status->startup_ns / 1e9);
	}
}

static void begin_windows(
	struct fleet_guards *guards, const struct cutover *cutover, uint64_t now_ms)
{
	guards->shares_revision = cutover->shares_revision;
	guards->started = true;
	for (uint32_t i = 0; i < CUTOVER_GUARDS_MAX; i++) {
		guard_reset(&guards->memory[i]);
		guards->windows[i] = (struct window){.from = guards->totals, .began_ms = now_ms};
	}
}

// --- one measurement each ------------------------------------------------------------------------------

static void measure_arms(const struct totals *from, const struct totals *now, enum guard_kind kind,
	struct guard_sample *ret)
{
	double flows;

	ret->before.flows = now->flows_old - from->flows_old;
	ret->after.flows = now->flows_new - from->flows_new;
	ret->before.events = now->aborts_old - from->aborts_old;
	ret->after.events = now->aborts_new - from->aborts_new;
	if (kind == GUARD_NEW_DROPS) {
		ret->before.events = now->drops_old - from->drops_old;
		ret->after.events = now->drops_new - from->drops_new;
	}
	flows = (double)(ret->before.flows + ret->after.flows);
	ret->share = flows > 0 ? (now->intended - from->intended) / flows : 0;
	// At 100 % nothing is left beside the new ring: what the old one was like on the way there stands in.
	if (kind == GUARD_EARLY_ABORT && ret->before.flows == 0 && ret->share >= 1) {
		ret->before.flows = now->base_flows;
		ret->before.events = now->base_aborts;
	}
}

// The node that is furthest beyond what its rings predict. Few flows make a hot backend by chance.
static void measure_load(
	const struct cutover *cutover, const struct fleet_roster *roster, struct guard_sample *ret)
{
	ret->few = true;
	for (uint32_t i = 0; i < roster->count; i++) {
		const struct fleet_status *status = &roster->members[i]->status;
		const struct fleet_pool *pool = fleet_pool_find(status, cutover->spec.pool);

		if (pool == NULL || pool->share == 0 || pool->load_flows == 0 ||
			pool->revision != cutover->shares_revision || !(pool->load_expected > 0))
			continue;
		if (ret->few || pool->load / pool->load_expected > ret->value / ret->reference) {
			ret->value = pool->load;
			ret->reference = pool->load_expected;
			ret->backend = pool->load_backend;
			ret->node = status->node;
		}
		ret->few = false;
	}
}

static void measure_nodes(const struct cutover *cutover, const struct cutover_facts *facts,
	enum guard_kind kind, struct guard_sample *ret)
{
	const struct cutover_stage *stage = &cutover->spec.stages[cutover->stage];

	for (uint32_t i = 0; i < cutover->spec.datacenter_count; i++) {
		const struct cutover_datacenter_facts *seen = &facts->datacenters[i];

		if (kind == GUARD_DIGEST)
			ret->value += seen->mismatched;
		else if (seen->missing > stage->missing_nodes_max)
			ret->value += seen->missing - stage->missing_nodes_max;
	}
}

static void measure_against(double value, double baseline, struct guard_sample *ret)
{
	ret->few = !(baseline > 0) || !(value > 0);
	ret->value = value;
	ret->reference = baseline;
}

// Whether the answer to a guard's query is there; sends the query when none is under way.
static bool query_answered(struct fleet_guards *guards, uint32_t index,
	const struct cutover *cutover, struct inquiry_answer *ret)
{
	struct question *question = &guards->questions[index];

	if (question->inquiry != NULL) {
		if (!inquiry_end(question->inquiry, ret))
			return false;
		question->inquiry = NULL;
		if (question->shares_revision == cutover->shares_revision)
			return true;
		// Of another share: asked anew.
	}
	question->shares_revision = cutover->shares_revision;
	question->inquiry =
		inquiry_query(cutover->spec.prometheus, cutover->spec.guards[index].query);
	if (question->inquiry != NULL)
		return false;
	*ret = (struct inquiry_answer){.result = -ENOMEM, .error = "out of memory"};
	return true;
}

static void measure_query(struct question *question, const struct fleet_look *look,
	const struct inquiry_answer *answer, struct guard_sample *ret)
{
	ret->available = answer->result == 0;
	ret->error = answer->error;
	ret->value = answer->value;
	ret->reference = (double)look->cutover->spec.refill_ms;
	ret->soaked_ms = look->soaked_ms;
	if (!ret->available)
		return;
	ret->since_ms = question->valued_ms != 0 ? look->now_ms - question->valued_ms : 0;
	question->valued_ms = look->now_ms;
}

// answer: of a guard with a query.
static void measure(struct fleet_guards *guards, uint32_t index, const struct fleet_look *look,
	const struct inquiry_answer *answer, struct guard_sample *ret)
{
	const struct guard_config *config = &look->cutover->spec.guards[index];
	const struct totals *from = &guards->windows[index].from, *now = &guards->totals;
	double memory, startup;

	*ret = (struct guard_sample){.available = true};
	largest(look->roster, &memory, &startup);
	switch (config->kind) {
	case GUARD_DIGEST:
	case GUARD_MISSING:
		measure_nodes(look->cutover, look->facts, config->kind, ret);
		break;
	case GUARD_NEW_DROPS:
	case GUARD_EARLY_ABORT:
	case GUARD_SHARE:
		measure_arms(from, now, config->kind, ret);
		ret->available = now->reports > from->reports;
		ret->young = look->soaked_ms < STATS_ABORT_DELAY_MS;
		break;
	case GUARD_LOAD:
		measure_load(look->cutover, look->roster, ret);
		break;
	case GUARD_LOOKUP_COST:
		measure_against(now->packets > from->packets
				? (double)(now->cycles - from->cycles) /
					(double)(now->packets - from->packets)
				: 0,
			guards->baseline_cost, ret);
		break;
	case GUARD_MEMORY:
		measure_against(memory, guards->baseline_memory, ret);
		break;
	case GUARD_STARTUP:
		measure_against(startup, guards->baseline_startup, ret);
		break;
	default:
		measure_query(&guards->questions[index], look, answer, ret);
		break;
	}
}

// Statements come when they come: a window that has seen none waits for one, until its nodes count as missing.
static bool due(const struct fleet_guards *guards, uint32_t index, const struct fleet_look *look)
{
	const struct guard_config *config = &look->cutover->spec.guards[index];
	const struct window *window = &guards->windows[index];
	uint64_t age_ms = look->now_ms - window->began_ms;
	bool counts = config->kind == GUARD_NEW_DROPS || config->kind == GUARD_EARLY_ABORT ||
		config->kind == GUARD_SHARE;

	if (age_ms < config->window_ms)
		return false;
	return !counts || guards->totals.reports > window->from.reports ||
		age_ms >= FLEET_MISSING_MS;
}

static void remember_baselines(struct fleet_guards *guards, const struct fleet_look *look)
{
	if (look->cutover->state != CUTOVER_STAGED)
		return;
	largest(look->roster, &guards->baseline_memory, &guards->baseline_startup);
	if (guards->totals.packets > 0)
		guards->baseline_cost =
			(double)guards->totals.cycles / (double)guards->totals.packets;
}

// Returns whether one gave a verdict.
static bool judge_due(struct fleet_guards *guards, const struct fleet_look *look)
{
	const struct cutover_spec *spec = &look->cutover->spec;
	bool judged = false;

	for (uint32_t i = 0; i < spec->guard_count; i++) {
		struct totals from = guards->windows[i].from;
		struct inquiry_answer answer = {0};
		struct guard_sample sample;

		if (!due(guards, i, look) ||
			(spec->guards[i].kind == GUARD_PROMQL &&
				!query_answered(guards, i, look->cutover, &answer)))
			continue;
		judged = true;
		measure(guards, i, look, &answer, &sample);
		guard_judge(&spec->guards[i], &sample, &guards->memory[i]);
		guards->judged_at[i] = time(NULL);
		guards->windows[i] = (struct window){
			.from = guards->totals, .began_ms = look->now_ms, .judged = true};
		if (guards->memory[i].verdict == GUARD_INCONCLUSIVE)
			guards->windows[i].from = from;
	}
	return judged;
}

bool fleet_guards_run(
	struct fleet_guards *guards, const struct fleet_look *look, struct cutover_guard_facts *ret)
{
	const struct cutover *cutover = look->cutover;
	bool round = true, judged;

	take(guards, cutover, look->roster);
	remember_baselines(guards, look);
	if (!guards->started || guards->shares_revision != cutover->shares_revision)
		begin_windows(guards, cutover, look->now_ms);
	judged = judge_due(guards, look);
	*ret = (struct cutover_guard_facts){.action = GUARD_GO};
	for (uint32_t i = 0; i < cutover->spec.guard_count; i++) {
		const struct guard_memory *memory = &guards->memory[i];

		round &= guards->windows[i].judged;
		if (memory->windows != 0 && memory->action > ret->action) {
			ret->action = memory->action;
			ret->no_data = memory->verdict == GUARD_ERROR;
			snprintf(ret->text, sizeof(ret->text), "%.60s: %.120s",
				cutover->spec.guards[i].name, memory->text);
		}
	}
	ret->evaluated = round && cutover->spec.guard_count != 0;
	for (uint32_t i = 0; round && i < CUTOVER_GUARDS_MAX; i++)
		guards->windows[i].judged = false;
	return judged;
}

static json_t *list_of(const struct fleet_guards *guards, const struct cutover *cutover)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < cutover->spec.guard_count; i++) {
		const struct guard_config *config = &cutover->spec.guards[i];
		const struct guard_memory *memory = &guards->memory[i];
		json_t *value = isfinite(memory->value) ? json_real(memory->value) : json_null();

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:b, s:I, s:o}", "name",
				config->name, "kind", guard_kind_name(config->kind), "verdict",
				guard_verdict_name(memory->verdict), "action",
				guard_action_name(memory->action), "value", value, "text",
				memory->windows ? memory->text : "not evaluated yet", "dry_run",
				config->dry_run, "windows", (json_int_t)memory->windows, "time_ms",
				memory->windows != 0
					? json_integer((json_int_t)guards->judged_at[i] * 1000)
					: json_null()));
	}
	return list;
}

static void plan_text(const struct cutover *cutover, char ret[static PLAN_BYTES])
{
	snprintf(ret, PLAN_BYTES, "%016llx", (unsigned long long)cutover->plan_id);
}

json_t *fleet_guards_write(
	const struct fleet_guards *guards, const struct cutover *cutover, json_t *beside)
{
	json_t *list = list_of(guards, cutover);
	char plan[PLAN_BYTES];

	if (beside != NULL)
		json_array_append_new(list, beside);
	plan_text(cutover, plan);
	return json_pack("{s:s, s:o}", "plan", plan, "guards", list);
}

json_t *fleet_guards_of(const json_t *said, const struct cutover *cutover)
{
	const char *of = json_string_value(json_object_get(said, "plan"));
	json_t *list = json_object_get(said, "guards");
	char plan[PLAN_BYTES];

	plan_text(cutover, plan);
	return of != NULL && strcmp(of, plan) == 0 && json_is_array(list) ? json_incref(list)
									  : json_array();
}

void fleet_guards_publish(const json_t *said, const struct cutover *cutover, struct store *store)
{
	char key[STORE_KEY_BYTES], *text = said ? json_dumps(said, JSON_COMPACT) : NULL;

	snprintf(key, sizeof(key), FLEET_GUARDS_PREFIX "%s", cutover->spec.pool);
	if (text != NULL)
		store_key_write(store, key, text, strlen(text));
	free(text);
}

json_t *fleet_guards_said(struct store *store, const struct cutover *cutover)
{
	char key[STORE_KEY_BYTES], *text = NULL;
	json_t *said = NULL, *ret;
	size_t length;

	snprintf(key, sizeof(key), FLEET_GUARDS_PREFIX "%s", cutover->spec.pool);
	if (store_key_read(store, key, &text, &length) == 0)
		said = json_loadb(text, length, 0, NULL);
	free(text);
	ret = fleet_guards_of(said, cutover);
	json_decref(said);
	return ret;
}
