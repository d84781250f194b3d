// SPDX-License-Identifier: Apache-2.0
// Verbs of cutovers that run over a fleet: each is a command to the state machine (control/cutover/machine.h),
// committed by compare-and-swap, and written down in the audit log.
#include "control/daemon/verb_fleet.h"

#include "control/cutover/json.h"
#include "control/daemon/established.h"
#include "control/fleet/conductor.h"
#include "control/fleet/guards.h"
#include "control/fleet/roster.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SWAP_TRIES 8u

uint64_t fleet_wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t steady_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void fleet_actor(const struct server_call *call, char ret[static CUTOVER_NAME_BYTES])
{
	const struct passwd *user = getpwuid(call->uid);
	const char *node = node_config(verbs_of(call)->node)->node;

	if (user != NULL)
		snprintf(ret, CUTOVER_NAME_BYTES, "%.24s@%.36s", user->pw_name, node);
	else
		snprintf(ret, CUTOVER_NAME_BYTES, "uid %u@%.36s", call->uid, node);
}

enum answer fleet_store_fail(struct server_call *call, int rc, const char *error)
{
	enum answer answer = rc == -ENOENT ? ANSWER_NOT_FOUND
		: rc == -ESTALE            ? ANSWER_CONFLICT
					   : ANSWER_FAILED;

	return server_fail(call, answer, "%s", error);
}

// What the conductor's guards said last: a start or resume does not walk past them.
static void guards_read(
	struct store *store, const struct cutover *cutover, struct cutover_guard_facts *ret)
{
	json_t *item, *list = fleet_guards_said(store, cutover);
	size_t i;

	*ret = (struct cutover_guard_facts){.action = GUARD_GO};
	json_array_foreach (list, i, item) {
		const char *action = json_string_value(json_object_get(item, "action"));
		enum guard_action said = GUARD_GO;

		if (action != NULL && strcmp(action, "rollback") == 0)
			said = GUARD_ROLLBACK;
		else if (action != NULL && strcmp(action, "pause") == 0)
			said = GUARD_PAUSE;
		if (said <= ret->action)
			continue;
		const char *name = json_string_value(json_object_get(item, "name"));
		const char *why = json_string_value(json_object_get(item, "text"));

		ret->action = said;
		snprintf(ret->text, sizeof(ret->text), "%.60s: %.120s", name ? name : "?",
			why ? why : "");
	}
	json_decref(list);
}

int fleet_look_at(struct server_call *call, const struct cutover *cutover,
	struct fleet_roster *ret_roster, struct cutover_facts *ret_facts)
{
	struct verbs *verbs = verbs_of(call);
	struct store *store = node_store(verbs->node);
	uint64_t now_ms = steady_ms(), wall_ms = fleet_wall_ms();
	int rc = fleet_roster_read(store, ret_roster, now_ms);

	memset(ret_facts, 0, sizeof(*ret_facts));
	if (rc < 0)
		return rc;
	// One look cannot tell who has gone silent but by what the statements say of their time.
	for (uint32_t i = 0; i < ret_roster->count; i++) {
		struct fleet_member *member = ret_roster->members[i];

		if (member->status.time_ms + FLEET_MISSING_MS < wall_ms)
			member->seen_ms =
				now_ms > 2 * FLEET_MISSING_MS ? now_ms - 2 * FLEET_MISSING_MS : 0;
	}
	if (cutover != NULL) {
		fleet_facts(
			ret_roster, cutover, fleet_link_status(verbs->fleet), now_ms, ret_facts);
		guards_read(store, cutover, &ret_facts->guards);
	}
	return 0;
}

// --- arguments -------------------------------------------------------------------------------------

static enum answer read_datacenters(
	struct server_call *call, const struct cutover_spec *spec, struct datacenter_set *ret)
{
	const json_t *value = json_object_get(call->request->args, "dc");
	const char *rest = json_string_value(value);

	while (rest != NULL && *rest != '\0') {
		size_t length = strcspn(rest, ",");
		char name[CUTOVER_NAME_BYTES];
		int index = -ENOENT;

		if (length < sizeof(name)) {
			snprintf(name, sizeof(name), "%.*s", (int)length, rest);
			index = cutover_datacenter_find(spec, name);
		}
		if (index < 0)
			return server_fail(call, ANSWER_NOT_FOUND,
				"the cutover lists no datacenter \"%.*s\"", (int)length, rest);
		datacenter_set_add(ret, (uint32_t)index);
		rest += length + (rest[length] == ',');
	}
	return ANSWER_DONE;
}

static enum answer read_command(struct server_call *call, enum cutover_event verb,
	const struct cutover_spec *spec, struct cutover_command *ret)
{
	uint64_t share = UINT64_MAX, cap = UINT64_MAX, ttl_s = 0, revision = 0;
	const char *ttl = NULL;

	if (server_number_optional(call, "share_ppm", 0, GATE_SHARE_ALL, &share) != ANSWER_DONE ||
		server_number_optional(call, "cap_ppm", 0, GATE_SHARE_ALL, &cap) != ANSWER_DONE ||
		server_number_optional(call, "revision", 0, INT64_MAX, &revision) != ANSWER_DONE ||
		server_text_optional(call, "ttl", &ttl) != ANSWER_DONE ||
		read_datacenters(call, spec, &ret->datacenters) != ANSWER_DONE)
		return call->answer;
	if (ttl != NULL && cutover_time_parse(ttl, &ttl_s) != 0)
		return server_fail(call, ANSWER_USAGE, "\"ttl\" must be a time such as 30m or 2h");
	ret->verb = verb;
	ret->reason = call->request->reason;
	ret->revision = revision;
	ret->ttl_ms = ttl_s;
	ret->force = server_flag(call, "force");
	ret->allow_node_churn = server_flag(call, "allow_node_churn");
	ret->move_established = server_flag(call, "move_established");
	ret->has_share = share != UINT64_MAX;
	ret->share = ret->has_share ? (uint32_t)share : 0;
	ret->has_cap = cap != UINT64_MAX;
	ret->cap = ret->has_cap ? (uint32_t)cap : 0;
	return ANSWER_DONE;
}

// --- commands --------------------------------------------------------------------------------------

// One command on its way: what was read, what it became.
struct run {
	struct fleet_cutover *before;
	struct cutover next;
	struct cutover_facts facts;
	struct cutover_result result;
	struct fleet_roster roster;
};

static void run_free(struct run *run)
{
	fleet_cutover_free(run->before);
	fleet_roster_free(&run->roster);
	free(run);
}

// A way back that the store does not let through has another one.
static enum answer command_fail(
	struct server_call *call, enum cutover_event verb, int rc, const char *error)
{
	if (verb != CUTOVER_ROLLBACK || rc == -ENOENT || rc == -ESTALE)
		return fleet_store_fail(call, rc, error);
	return server_fail(call, ANSWER_FAILED,
		"%s. Without the store, on each node: cutover rollback POOL --local", error);
}

// One try. Returns ANSWER_DONE, or the failure is set; *ret_again: somebody was faster, and it may be tried again.
static enum answer try_once(
	struct server_call *call, enum cutover_event verb, struct run *run, bool *ret_again)
{
	struct verbs *verbs = verbs_of(call);
	struct store *store = node_store(verbs->node);
	char actor[CUTOVER_NAME_BYTES], error[STORE_ERROR_BYTES];
	struct cutover_command command = {.actor = actor};
	const char *pool;

	*ret_again = false;
	fleet_actor(call, actor);
	if (server_text(call, "pool", &pool) != ANSWER_DONE)
		return call->answer;
	int rc = fleet_cutover_read(store, pool, &run->before, error);

	if (rc < 0)
		return command_fail(call, verb, rc, error);
	if (read_command(call, verb, &run->before->cutover.spec, &command) != ANSWER_DONE)
		return call->answer;
	// The way back needs no facts, so it does not wait for them.
	if (verb != CUTOVER_ROLLBACK && verb != CUTOVER_PAUSE)
		fleet_look_at(call, &run->before->cutover, &run->roster, &run->facts);
	run->next = run->before->cutover;
	enum cutover_code code =
		cutover_command(&run->next, &command, &run->facts, fleet_wall_ms(), &run->result);

	if (code != CUTOVER_OK)
		return server_fail(call, (enum answer)code, "%s", run->result.text);
	if (!run->result.changed || call->request->dry_run)
		return ANSWER_DONE;
	rc = fleet_cutover_swap(store, run->before, &run->next, error);
	*ret_again = rc == -ESTALE;
	return rc < 0 ? command_fail(call, verb, rc, error) : ANSWER_DONE;
}

static void write_down(struct server_call *call, const struct run *run)
{
	struct verbs *verbs = verbs_of(call);
	char actor[CUTOVER_NAME_BYTES];
	struct fleet_event event = {
		.verb = call->request->verb,
		.actor = actor,
		.node = node_config(verbs->node)->node,
		.reason = call->request->reason,
		.result = run->result.text,
		.before = &run->before->cutover,
		.after = &run->next,
	};

	fleet_actor(call, actor);
	if (fleet_audit(node_store(verbs->node), &event) < 0)
		fprintf(stderr, "<3>audit: %s was not written down: %s\n", event.verb,
			store_error(node_store(verbs->node)));
}

// What nodes say until all that can be reached follow the document, or the time is over.
static void wait_for_nodes(struct server_call *call, struct run *run, uint64_t wait_ms)
{
	struct verbs *verbs = verbs_of(call);
	uint64_t end_ms = steady_ms() + wait_ms;
	bool all;

	do {
		struct timespec slice = {.tv_nsec = 20 * 1000000};

		nanosleep(&slice, NULL);
		fleet_link_refresh(verbs->fleet);
		if (fleet_look_at(call, &run->next, &run->roster, &run->facts) < 0)
			return;
		all = cutover_applied(&run->next, &run->facts, true, NULL);
	} while (!all && steady_ms() < end_ms);
}

static json_t *shares_json(const struct run *run)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < run->roster.count; i++) {
		const struct fleet_status *status = &run->roster.members[i]->status;
		const struct fleet_pool *pool = fleet_pool_find(status, run->next.spec.pool);
		bool follows = pool != NULL && pool->revision >= run->next.shares_revision &&
			status->dataplane == FLEET_DATAPLANE_CURRENT;

		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:I, s:b, s:b, s:s}", "node", status->node,
				"datacenter", status->datacenter, "share_ppm",
				(json_int_t)(pool ? pool->share : 0), "moves_established",
				pool != NULL && pool->moves_established, "follows", follows,
				"dataplane", fleet_dataplane_name(status->dataplane)));
	}
	return rows;
}

static void give_result(struct server_call *call, const struct run *run, uint64_t took_ms)
{
	call->result = json_pack("{s:b, s:b, s:b, s:s, s:s, s:s, s:I, s:I, s:o}", "changed",
		run->result.changed, "different", run->result.changed, "dry_run",
		call->request->dry_run, "text", run->result.text, "pool", run->next.spec.pool,
		"state", cutover_state_name(run->next.state), "revision",
		(json_int_t)run->next.revision, "took_ms", (json_int_t)took_ms, "nodes",
		shares_json(run));
}

// What the rollback concerns, from the last statements: for a look before, since the way back does not wait for them.
static json_t *established_json(struct server_call *call, struct run *run)
{
	struct established established = {0};

	fleet_look_at(call, &run->next, &run->roster, &run->facts);
	for (uint32_t i = 0; i < run->roster.count; i++) {
		const struct fleet_member *member = run->roster.members[i];
		const struct fleet_pool *pool =
			fleet_pool_find(&member->status, run->next.spec.pool);

		if (!cutover_recalls(&run->next, member->status.datacenter))
			continue;
		if (pool == NULL || member->status.dataplane == FLEET_DATAPLANE_ABSENT ||
			fleet_member_missing(member, steady_ms()))
			established.silent_count++;
		else
			established_add(&established,
				&(struct established_node){
					pool->live_new, pool->shadow_same, pool->shadow_different});
	}
	return established_write(&established);
}

void fleet_add_established_here(struct server_call *call, const char *pool)
{
	const struct stats_file *stats = verbs_stats(verbs_of(call));
	struct established established = {0};
	struct stats_pool sums = {0};

	if (call->result == NULL || !call->request->dry_run ||
		!server_flag(call, "move_established"))
		return;
	if (stats == NULL) {
		established.silent_count = 1;
	} else {
		stats_file_pool(stats, verbs_id(verbs_of(call), DOCUMENT_POOL, "", pool), &sums);
		established_add(&established,
			&(struct established_node){
				sums.live_new, sums.shadow_same, sums.shadow_different});
	}
	json_object_set_new(call->result, "established", established_write(&established));
}

static void run_verb(struct server_call *call, enum cutover_event verb)
{
	struct run *run = calloc(1, sizeof(*run));
	uint64_t began_ms = steady_ms();
	bool again = true;

	for (unsigned i = 0; run != NULL && again && i < SWAP_TRIES; i++) {
		fleet_cutover_free(run->before);
		run->before = NULL;
		call->answer = ANSWER_DONE;
		try_once(call, verb, run, &again);
	}
	if (run == NULL) {
		server_fail(call, ANSWER_FAILED, "out of memory");
		return;
	}
	if (call->answer == ANSWER_DONE) {
		if (run->result.changed && !call->request->dry_run) {
			// Followed here first, then written down: the log must not hold the way back up.
			fleet_poke(fleet_link_fleet(verbs_of(call)->fleet));
			if (verb == CUTOVER_ROLLBACK)
				wait_for_nodes(call, run, 1000);
			if (verb == CUTOVER_DISCARD)
				fleet_link_settle(verbs_of(call)->fleet, &run->next);
			write_down(call, run);
		}
		give_result(call, run, steady_ms() - began_ms);
		if (call->request->dry_run && server_flag(call, "move_established"))
			json_object_set_new(
				call->result, "established", established_json(call, run));
	}
	run_free(run);
}

void verb_cutover_start(struct server_call *call)
{
	run_verb(call, CUTOVER_START);
}

void verb_cutover_advance(struct server_call *call)
{
	run_verb(call, CUTOVER_ADVANCE);
}

void verb_cutover_pause(struct server_call *call)
{
	run_verb(call, CUTOVER_PAUSE);
}

void verb_cutover_lock(struct server_call *call)
{
	run_verb(call, CUTOVER_LOCK);
}

void verb_cutover_unlock(struct server_call *call)
{
	run_verb(call, CUTOVER_UNLOCK);
}

void verb_cutover_override(struct server_call *call)
{
	run_verb(call, server_flag(call, "clear") ? CUTOVER_OVERRIDE_CLEAR : CUTOVER_OVERRIDE_SET);
}

// A local way back is this node's alone: no store, no fleet; the statement tells the others.
static void run_local(struct server_call *call, bool on)
{
	static const char *const texts[] = {
		[FLEET_LINK_FOLLOWS] = "this node does as all others again",
		[FLEET_LINK_BACK] =
			"this node sends no new flow to the new ring, whatever others say",
		[FLEET_LINK_BACK_ALL] =
			"this node sends no flow to the new ring, and takes established ones back",
	};
	struct fleet_link *link = verbs_of(call)->fleet;
	enum fleet_link_local before, mode = FLEET_LINK_FOLLOWS;
	const char *pool;
	int rc = 0;

	if (server_text(call, "pool", &pool) != ANSWER_DONE)
		return;
	if (on && call->request->reason[0] == '\0') {
		server_fail(call, ANSWER_USAGE, "rollback needs a reason");
		return;
	}
	if (!fleet_link_moves(link, pool)) {
		server_fail(call, ANSWER_NOT_FOUND, "pool %s has no cutover on this node", pool);
		return;
	}
	before = fleet_link_local(link, pool);
	if (on)
		mode = server_flag(call, "move_established") || before == FLEET_LINK_BACK_ALL
			? FLEET_LINK_BACK_ALL
			: FLEET_LINK_BACK;
	if (!call->request->dry_run)
		rc = fleet_link_local_set(link, pool, mode);
	call->result = json_pack("{s:b, s:b, s:b, s:s, s:s, s:s}", "changed", before != mode,
		"dry_run", call->request->dry_run, "local", on, "pool", pool, "dataplane",
		node_dataplane(verbs_of(call)->node)->text, "text",
		rc < 0 ? "in effect, but not kept on disk: a restart forgets it" : texts[mode]);
	fleet_add_established_here(call, pool);
	if (!call->request->dry_run)
		fprintf(stderr,
			"<5>cutover of %s: rollback on this node alone: %s%s (uid %u: %s)\n", pool,
			on ? "on" : "off",
			mode == FLEET_LINK_BACK_ALL ? ", established flows, too" : "", call->uid,
			call->request->reason);
}

void verb_cutover_resume(struct server_call *call)
{
	if (server_flag(call, "local"))
		run_local(call, false);
	else
		run_verb(call, CUTOVER_RESUME);
}

void verb_cutover_kill_switch(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const char *state;

	if (server_text(call, "state", &state) != ANSWER_DONE)
		return;
	if (strcmp(state, "on") != 0 && strcmp(state, "off") != 0) {
		server_fail(call, ANSWER_USAGE, "the kill switch is on or off");
		return;
	}
	bool before = fleet_link_status(verbs->fleet)->kill_switch;
	bool on = strcmp(state, "on") == 0;
	int rc = fleet_link_kill_switch(verbs->fleet, on);

	fprintf(stderr, "<5>kill switch %s (uid %u: %s)\n", state, call->uid,
		call->request->reason);
	call->result =
		json_pack("{s:b, s:s, s:s}", "changed", before != on, "kill_switch", state, "text",
			rc < 0       ? "in effect, but not kept on disk: a restart forgets it"
				: on ? "no pool takes its new ring on this node"
				     : "this node does as all others again");
}

// --- verbs that one node alone has as well ---------------------------------------------------------

// The cutover of the fleet that a verb of the pool means: one that has not ended, or the last one when the document
// knows of no other. NULL: none.
static const struct cutover *cutover_meant(struct server_call *call)
{
	struct verbs *verbs = verbs_of(call);
	const char *pool = json_string_value(json_object_get(call->request->args, "pool"));
	const struct fleet_cutovers *cutovers = verbs_cutovers(verbs);

	for (uint32_t i = 0; cutovers != NULL && pool != NULL && i < cutovers->count; i++) {
		const struct cutover *cutover = &cutovers->items[i]->cutover;
		bool ended =
			cutover->state == CUTOVER_RETIRED || cutover->state == CUTOVER_DISCARDED;

		if (strcmp(cutover->spec.pool, pool) == 0 &&
			(!ended || document_cutover_find(node_document(verbs->node), pool) == NULL))
			return cutover;
	}
	return NULL;
}

bool fleet_takes(struct server_call *call, enum cutover_event verb)
{
	const struct cutover *cutover;

	if (verb == CUTOVER_ROLLBACK && server_flag(call, "local")) {
		run_local(call, true);
		return true;
	}
	cutover = cutover_meant(call);
	// Another ring after the end is a cutover of its own.
	if (cutover == NULL ||
		(verb == CUTOVER_SET && cutover_state_terminal(cutover->state) &&
			json_object_get(call->request->args, "to") != NULL))
		return false;
	run_verb(call, verb);
	return true;
}
