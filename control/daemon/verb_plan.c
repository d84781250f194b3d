// SPDX-License-Identifier: Apache-2.0
// `cutover plan` and `cutover stage`: what a cutover would do, measured on both rings, and its beginning.
#include "control/cutover/json.h"
#include "control/cutover/plan.h"
#include "control/config/reader.h"
#include "control/daemon/plan_facts.h"
#include "control/daemon/plan_pairs.h"
#include "control/daemon/verb_fleet.h"
#include "control/ring/spec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define FAULTS_MAX  32u
#define PLAN_DIGITS 16u

// --- the specification -----------------------------------------------------------------------------

static enum answer faults_fail(
	struct server_call *call, const struct cutover_spec_error *faults, size_t count)
{
	server_fail(call, ANSWER_INVALID, "the specification has %zu fault%s", count,
		count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++)
		server_detail(call, "%s: %s", faults[i].where, faults[i].text);
	return call->answer;
}

static void ring_describe(const struct config_ring *ring, struct cutover_ring *ret)
{
	ret->version = (enum ring_version)ring->version;
	ret->points = ring->points;
	ret->balance = (double)ring->balance / 1e6;
	ret->keeps_seed = false;
	ret->seed_mark = hash_seed_mark(ring->hash_seed);
	memcpy(ret->hash_seed, ring->hash_seed, sizeof(ret->hash_seed));
}

// The plan binds to the members' file, too: its hash is part of the specification.
static void members_describe(const json_t *text, uint8_t ret[RING_DIGEST_BYTES])
{
	memset(ret, 0, RING_DIGEST_BYTES);
	if (!json_is_string(text))
		return;
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(
		&canonical, XXH3_128bits(json_string_value(text), json_string_length(text)));
	memcpy(ret, canonical.digest, RING_DIGEST_BYTES);
}

// A version brings its own defaults for what is left out; without one all that is left out stays the pool's.
static struct config_ring ring_of(const struct cutover_ring *wanted, const struct config_pool *pool)
{
	uint32_t balance = (uint32_t)(wanted->balance * 1e6 + 0.5);
	struct config_ring ring = pool->ring;
	bool is_named = wanted->version != 0;

	if (is_named)
		ring.version = wanted->version;
	if (is_named || wanted->points != 0)
		ring.points = wanted->points;
	if (is_named || balance != 0)
		ring.balance = balance;
	if (!wanted->keeps_seed)
		memcpy(ring.hash_seed, wanted->hash_seed, sizeof(ring.hash_seed));
	config_ring_complete(&ring);
	return ring;
}

// "all" means every datacenter that has said something, and this one.
static enum answer add_datacenters(struct server_call *call, struct cutover_spec *spec)
{
	struct fleet_roster roster = {0};
	struct cutover_facts *facts = malloc(sizeof(*facts));
	int rc = facts ? fleet_look_at(call, NULL, &roster, facts) : -ENOMEM;

	for (uint32_t i = 0; i < roster.count; i++)
		cutover_datacenter_add(spec, roster.members[i]->status.datacenter);
	cutover_datacenter_add(spec, node_config(verbs_of(call)->node)->datacenter);
	fleet_roster_free(&roster);
	free(facts);
	return rc < 0 ? fleet_store_fail(call, rc, store_error(node_store(verbs_of(call)->node)))
		      : ANSWER_DONE;
}

// The pools file that the new ring's members come from, if one was given: what it says of the pool, checked as a whole.
// *ret: the caller's to free; NULL when none was given.
static enum answer read_members(
	struct server_call *call, const json_t *from, struct config_pools **ret)
{
	const json_t *value = json_object_get(from, "pools");
	struct config_report *report;
	int rc;

	*ret = NULL;
	if (!json_is_string(value))
		return ANSWER_DONE;
	report = calloc(1, sizeof(*report));
	if (report == NULL)
		return server_fail(call, ANSWER_FAILED, "out of memory");
	config_report_init(report, "pools", json_string_value(value), json_string_length(value));
	rc = config_pools_read(report, ret);
	if (rc < 0) {
		server_fail(
			call, ANSWER_INVALID, "the pools file has %u errors", report->error_count);
		verbs_findings(call, report);
	}
	config_report_free(report);
	free(report);
	return call->answer;
}

// What the cutover moves to: the specification's ring, and the members of the pools file.
static enum answer wanted_fill(struct server_call *call, const struct cutover_spec *spec,
	const struct config_pools *members, struct node_cutover *ret)
{
	const struct config_pool *now =
		config_pool_find(node_document(verbs_of(call)->node)->pools, spec->pool);
	const struct config_pool *then = members ? config_pool_find(members, spec->pool) : NULL;

	if (now == NULL || (members != NULL && then == NULL))
		return server_fail(call, ANSWER_NOT_FOUND, "there is no pool %s%s", spec->pool,
			now == NULL ? "" : " in the pools file");
	*ret = (struct node_cutover){
		.pool = spec->pool, .has_ring = true, .ring = ring_of(&spec->to, now)};
	if (then != NULL) {
		ret->backends = then->backends;
		ret->backend_count = then->backend_count;
	}
	return ANSWER_DONE;
}

static bool says_nothing(const struct cutover_ring *to)
{
	return to->version == 0 && to->points == 0 && !(to->balance > 0) && to->keeps_seed;
}

static enum answer read_spec(struct server_call *call, struct cutover_spec *ret)
{
	struct cutover_spec_error faults[FAULTS_MAX];
	const json_t *object = json_object_get(call->request->args, "spec");
	size_t count = cutover_spec_read(object, ret, faults, FAULTS_MAX);
	const struct config_pool *pool;

	if (count != 0)
		return faults_fail(call, faults, count);
	if (add_datacenters(call, ret) != ANSWER_DONE)
		return call->answer;
	count = cutover_spec_check(ret, faults, FAULTS_MAX);
	if (says_nothing(&ret->to) && count < FAULTS_MAX)
		faults[count++] = (struct cutover_spec_error){
			"to", "names nothing of a ring: a version, points, or a hash_seed"};
	if (count != 0)
		return faults_fail(call, faults, count);
	pool = config_pool_find(node_document(verbs_of(call)->node)->pools, ret->pool);
	if (pool == NULL)
		return server_fail(call, ANSWER_NOT_FOUND, "there is no pool %s", ret->pool);
	struct config_ring to = ring_of(&ret->to, pool);

	ring_describe(&pool->ring, &ret->from);
	ring_describe(&to, &ret->to);
	members_describe(json_object_get(call->request->args, "pools"), ret->to.digest);
	return ANSWER_DONE;
}

// What a plan was made of.
struct measures {
	struct plan_pairs pairs;
	struct plan plan;
	struct hit_ratio hit; // as measured
	double flows_per_second[CUTOVER_DATACENTERS_MAX];
	bool flows_given; // by the operator
};

// --- the answer ------------------------------------------------------------------------------------

static json_t *datacenters_json(const struct cutover_spec *spec, uint32_t stage)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		if (datacenter_set_has(&spec->stages[stage].datacenters, i))
			json_array_append_new(list, json_string(spec->datacenters[i]));
	}
	return list;
}

static json_t *step_json(const struct cutover_spec *spec, const struct plan_step *step)
{
	char from[CUTOVER_SHARE_TEXT_BYTES], to[CUTOVER_SHARE_TEXT_BYTES];
	char rise[CUTOVER_SHARE_TEXT_BYTES];
	json_t *soak = step->soak_min_ms == UINT64_MAX
		? json_null()
		: json_integer((json_int_t)step->soak_min_ms);

	cutover_share_format(step->from, from);
	cutover_share_format(step->to, to);
	cutover_share_format(step->rise, rise);
	return json_pack(
		"{s:I, s:o, s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:b, s:f, s:I, s:o, s:f, s:I}",
		"stage", (json_int_t)step->stage + 1, "datacenters",
		datacenters_json(spec, step->stage), "from", from, "to", to, "rise", rise, "rises",
		(json_int_t)step->rises, "moves", step->moves, "surge", step->surge,
		"max_step_surge", spec->stages[step->stage].max_step_surge, "over_limit",
		step->over_limit, "rollback_late", step->rollback_late, "soak_ms",
		(json_int_t)step->soak_ms, "soak_min_ms", soak, "flows_per_second",
		step->flows_per_second, "total_ms", (json_int_t)step->total_ms);
}

// Where the hit ratio is from, and how old it is.
static json_t *hit_ratio_json(const struct cutover_spec *spec, const struct hit_ratio *hit)
{
	if (isnan(spec->hit_ratio))
		return json_null();
	if (spec->hit_query[0] == '\0')
		return json_pack("{s:f, s:s}", "value", spec->hit_ratio, "source", "specification");
	return json_pack("{s:f, s:s, s:s, s:f}", "value", spec->hit_ratio, "source", "prometheus",
		"query", spec->hit_query, "age_s", round(hit->age_s * 10) / 10);
}

static json_t *plan_json(const struct server_call *call, const struct cutover_spec *spec,
	const struct node_preview *preview, const struct measures *measures)
{
	const struct plan *plan = &measures->plan;
	uint64_t generation = node_document(verbs_of(call)->node)->generation;
	uint32_t workers = node_config(verbs_of(call)->node)->dataplane.worker_count;
	json_t *rings = plan_pairs_rings(&measures->pairs, preview, workers);
	json_t *steps = json_array();
	char id[PLAN_DIGITS + 1];

	snprintf(id, sizeof(id), "%016llx", (unsigned long long)cutover_plan_id(spec, generation));
	for (uint32_t i = 0; i < plan->step_count; i++)
		json_array_append_new(steps, step_json(spec, &plan->steps[i]));
	json_t *ret = json_pack("{s:i, s:s, s:I, s:s, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:I}",
		"schema_version", 1, "plan", id, "base_generation", (json_int_t)generation, "pool",
		spec->pool, "rings", rings, "steps", steps, "churn", plan->churn, "churn_surge",
		plan->churn_surge, "step_max", plan->step_max, "flows_min", plan->flows_min,
		"rollback_late", plan->rollback_late, "total_ms", (json_int_t)plan->total_ms);

	json_object_set_new(ret, "memory", plan_pairs_memory(&measures->pairs, workers));
	json_object_set_new(ret, "hit_ratio", hit_ratio_json(spec, &measures->hit));
	json_object_set_new(
		ret, "flows_source", json_string(measures->flows_given ? "operator" : "measured"));
	json_object_set_new(ret, "spec", cutover_spec_write(spec));
	return ret;
}

static void plan_path(const struct server_call *call, const char *id, char ret[static PATH_BYTES])
{
	const char *run_dir = node_config(verbs_of(call)->node)->run_dir;

	snprintf(ret, PATH_BYTES, "%s/plans", run_dir);
	mkdir(ret, 0750);
	snprintf(ret, PATH_BYTES, "%s/plans/%s.json", run_dir, id);
}

// What stage needs and nobody is shown goes into the file alone: the new ring's seed.
static json_t *plan_kept(const json_t *plan, const struct cutover_ring *to)
{
	json_t *kept = json_copy((json_t *)plan);
	char digits[2 * HASH_SEED_BYTES + 1];

	ring_digest_format(to->hash_seed, digits);
	if (to->seed_mark != 0)
		json_object_set_new(kept, "hash_seed", json_string(digits));
	return kept;
}

static enum answer plan_save(struct server_call *call, const struct cutover_spec *spec)
{
	char path[PATH_BYTES];
	json_t *kept;
	bool done;
	int fd;

	plan_path(call, json_string_value(json_object_get(call->result, "plan")), path);
	if (json_object_get(call->request->args, "pools") != NULL)
		json_object_set(
			call->result, "pools", json_object_get(call->request->args, "pools"));
	kept = plan_kept(call->result, &spec->to);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	done = fd >= 0 && json_dumpfd(kept, fd, JSON_COMPACT) == 0;
	if (fd >= 0)
		done = close(fd) == 0 && done;
	json_decref(kept);
	return done ? ANSWER_DONE
		    : server_fail(call, ANSWER_FAILED, "cannot keep the plan in %s", path);
}

static enum answer measure(
	struct server_call *call, struct cutover_spec *spec, struct measures *measures)
{
	struct node *node = verbs_of(call)->node;
	struct config_pools *members = NULL;
	struct node_outcome outcome = {0};
	struct node_preview *preview = NULL;
	struct node_cutover wanted;

	if (plan_hit_ratio(call, spec, &measures->hit) != ANSWER_DONE)
		return call->answer;
	plan_flows(call, spec, measures->flows_per_second, &measures->flows_given);
	if (read_members(call, call->request->args, &members) != ANSWER_DONE)
		return call->answer;
	if (wanted_fill(call, spec, members, &wanted) == ANSWER_DONE &&
		node_preview(node, &wanted, &preview, &outcome) != NODE_OK)
		server_fail(call, (enum answer)outcome.code, "%s", outcome.text);
	config_pools_free(members);
	if (preview == NULL)
		return call->answer;
	struct plan_input input = {
		.spec = spec,
		.rings = measures->pairs.rings,
		.flows_per_second = measures->flows_per_second,
		.error_ratio = plan_error_ratio(verbs_of(call), spec->pool),
	};

	if (plan_pairs_measure(preview, spec->pool, json_object_get(call->request->args, "traffic"),
		    &measures->pairs) < 0)
		server_fail(call, ANSWER_INVALID,
			"pool %s: its services ask more than %u different pairs of rings",
			spec->pool, SNAPSHOT_RINGS_MAX);
	else {
		input.ring_count = measures->pairs.count;
		plan_compute(&input, &measures->plan);
		plan_limit_steps(spec, &measures->plan);
		spec->churn_surge = measures->plan.churn_surge;
		call->result = plan_json(call, spec, preview, measures);
	}
	node_preview_free(preview);
	return call->answer;
}

void verb_cutover_plan(struct server_call *call)
{
	struct cutover_spec *spec = malloc(sizeof(*spec));
	struct measures *measures = calloc(1, sizeof(*measures));

	if (spec == NULL || measures == NULL)
		server_fail(call, ANSWER_FAILED, "out of memory");
	else if (read_spec(call, spec) == ANSWER_DONE &&
		measure(call, spec, measures) == ANSWER_DONE)
		plan_save(call, spec);
	free(spec);
	free(measures);
}

// --- stage -----------------------------------------------------------------------------------------

static bool plan_name_good(const char *name)
{
	return strlen(name) == PLAN_DIGITS && strspn(name, "0123456789abcdef") == PLAN_DIGITS;
}

// A stage on its way.
struct staging {
	struct cutover_spec spec;
	struct cutover next;
	struct fleet_cutover *before; // of an earlier cutover of the pool, or NULL
	struct config_pools *members; // of the new ring, or NULL
	uint64_t base;
	uint64_t plan_id;
	bool there; // it is staged already
};

static enum answer plan_load(struct server_call *call, const char *name, struct staging *ret)
{
	struct cutover_spec_error fault;
	char path[PATH_BYTES];
	json_t *plan;

	if (!plan_name_good(name))
		return server_fail(call, ANSWER_USAGE, "\"%.32s\" is no plan; it has %u digits",
			name, PLAN_DIGITS);
	plan_path(call, name, path);
	plan = json_load_file(path, 0, NULL);
	if (plan == NULL)
		return server_fail(call, ANSWER_NOT_FOUND,
			"this node has made no plan %s; run `ringway cutover plan -f FILE`", name);
	size_t faults = cutover_spec_read(json_object_get(plan, "spec"), &ret->spec, &fault, 1);
	struct cutover_ring *to = &ret->spec.to;

	if (faults == 0 && to->seed_mark != 0 &&
		(!cutover_hex_parse(json_string_value(json_object_get(plan, "hash_seed")),
			 to->hash_seed, sizeof(to->hash_seed)) ||
			hash_seed_mark(to->hash_seed) != to->seed_mark)) {
		fault = (struct cutover_spec_error){
			"to.hash_seed", "is not in the plan: plan again"};
		faults = 1;
	}

	ret->base = (uint64_t)json_integer_value(json_object_get(plan, "base_generation"));
	read_members(call, plan, &ret->members);
	json_decref(plan);
	if (faults != 0)
		return server_fail(call, ANSWER_INVALID, "%s: %s", fault.where, fault.text);
	return call->answer;
}

static int audit_tell(
	void *context, uint64_t number, const char *entry, const uint8_t hash[STORE_HASH_BYTES])
{
	struct server_call *call = context;
	json_t *object = json_loads(entry, 0, NULL);
	const json_t *after = json_object_get(object, "after");
	uint64_t base = (uint64_t)json_integer_value(
		json_object_get(call->request->args, "base_generation"));

	(void)number, (void)hash;
	if (json_is_integer(after) && (uint64_t)json_integer_value(after) > base)
		server_detail(call, "generation %lld by uid %lld on %s: %s %s",
			(long long)json_integer_value(after),
			(long long)json_integer_value(json_object_get(object, "uid")),
			json_string_value(json_object_get(object, "node")),
			json_string_value(json_object_get(object, "verb")),
			json_string_value(json_object_get(object, "result")));
	json_decref(object);
	return 0;
}

// A plan of another generation is stale: say what has changed since, and who did.
static enum answer check_fresh(struct server_call *call, uint64_t base)
{
	struct node *node = verbs_of(call)->node;
	uint64_t now = node_document(node)->generation;

	if (now == base)
		return ANSWER_DONE;
	server_fail(call, ANSWER_CONFLICT,
		"the plan was made on generation %llu, it is %llu now: plan again",
		(unsigned long long)base, (unsigned long long)now);
	json_object_set_new(call->request->args, "base_generation", json_integer((json_int_t)base));
	store_audit_list(node_store(node), 1, audit_tell, call);
	return call->answer;
}

// Both rings into the document of the fleet, at 0 %. What was so already is no change.
static enum answer stage_rings(
	struct server_call *call, struct cutover_spec *spec, const struct config_pools *members)
{
	struct node *node = verbs_of(call)->node;
	struct node_request request = verbs_request(call);
	struct node_outcome outcome = {0};
	struct node_cutover wanted;
	const struct document_cutover *staged;

	if (wanted_fill(call, spec, members, &wanted) != ANSWER_DONE)
		return call->answer;
	request.generation = 0;
	node_cutover_set(node, &request, &wanted, &outcome);
	node_outcome_free(&outcome);
	if (outcome.code != NODE_OK)
		return server_fail(call, (enum answer)outcome.code, "%s", outcome.text);
	staged = document_cutover_find(node_document(node), spec->pool);
	if (staged == NULL)
		return server_fail(call, ANSWER_CONFLICT, "somebody took the ring out again");
	spec->salt = staged->salt;
	return ANSWER_DONE;
}

static enum answer check_before(struct server_call *call, struct staging *staging)
{
	struct store *store = node_store(verbs_of(call)->node);
	char error[STORE_ERROR_BYTES];
	int rc = fleet_cutover_read(store, staging->spec.pool, &staging->before, error);

	if (rc == -ENOENT)
		return ANSWER_DONE;
	if (rc < 0)
		return fleet_store_fail(call, rc, error);
	const struct cutover *before = &staging->before->cutover;

	staging->there = before->plan_id == staging->plan_id &&
		before->state != CUTOVER_DISCARDED && before->state != CUTOVER_RETIRED;
	if (staging->there)
		return ANSWER_DONE;
	if (before->state == CUTOVER_ROLLED_BACK)
		return server_fail(call, ANSWER_CONFLICT,
			"the cutover before was rolled back; discard it first");
	if (!cutover_state_terminal(before->state))
		return server_fail(call, ANSWER_CONFLICT, "cutover %016llx is in progress (%s)",
			(unsigned long long)before->plan_id, cutover_state_name(before->state));
	return ANSWER_DONE;
}

static enum answer stage_commit(struct server_call *call, struct staging *staging)
{
	struct verbs *verbs = verbs_of(call);
	struct store *store = node_store(verbs->node);
	char actor[CUTOVER_NAME_BYTES], error[STORE_ERROR_BYTES];
	struct cutover_command command = {
		.verb = CUTOVER_STAGE, .actor = actor, .reason = call->request->reason};
	struct cutover_facts *facts = calloc(1, sizeof(*facts));
	struct cutover_result result = {0};

	if (facts == NULL)
		return server_fail(call, ANSWER_FAILED, "out of memory");
	fleet_actor(call, actor);
	cutover_init(&staging->next, &staging->spec, staging->base, fleet_wall_ms());
	// The salt is the document's, made when the rings were staged; the plan stays the plan.
	staging->next.plan_id = staging->plan_id;
	cutover_command(&staging->next, &command, facts, fleet_wall_ms(), &result);
	free(facts);
	if (staging->before != NULL)
		staging->next.revision = staging->next.shares_revision =
			staging->before->cutover.revision + 1;
	int rc = fleet_cutover_swap(store, staging->before, &staging->next, error);

	if (rc < 0)
		return fleet_store_fail(call, rc, error);
	struct fleet_event event = {.verb = call->request->verb,
		.actor = actor,
		.node = node_config(verbs->node)->node,
		.reason = call->request->reason,
		.result = result.text,
		.before = staging->before ? &staging->before->cutover : NULL,
		.after = &staging->next};

	fleet_audit(store, &event);
	fleet_poke(fleet_link_fleet(verbs->fleet));
	return ANSWER_DONE;
}

static enum answer stage_run(struct server_call *call, struct staging *staging)
{
	const char *name = NULL;

	if (server_text(call, "plan", &name) != ANSWER_DONE ||
		plan_load(call, name, staging) != ANSWER_DONE)
		return call->answer;
	staging->plan_id = strtoull(name, NULL, 16);
	if (check_before(call, staging) != ANSWER_DONE)
		return call->answer;
	if (!staging->there) {
		if (check_fresh(call, staging->base) != ANSWER_DONE)
			return call->answer;
		if (call->request->dry_run) {
			call->result = json_pack("{s:b, s:b, s:s}", "changed", 1, "dry_run", 1,
				"text", "nothing was changed (dry run)");
			return ANSWER_DONE;
		}
		if (stage_rings(call, &staging->spec, staging->members) != ANSWER_DONE ||
			stage_commit(call, staging) != ANSWER_DONE)
			return call->answer;
	}
	call->result = json_pack("{s:b, s:s, s:s, s:s, s:s}", "changed", !staging->there, "plan",
		name, "pool", staging->spec.pool, "state", "staged", "text",
		staging->there ? "it is staged already"
			       : "both rings are in the document at 0%; nodes build them now");
	return ANSWER_DONE;
}

void verb_cutover_stage(struct server_call *call)
{
	struct staging *staging = calloc(1, sizeof(*staging));

	if (staging == NULL) {
		server_fail(call, ANSWER_FAILED, "out of memory");
		return;
	}
	stage_run(call, staging);
	fleet_cutover_free(staging->before);
	config_pools_free(staging->members);
	free(staging);
}
