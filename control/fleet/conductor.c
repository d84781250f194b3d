// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/conductor.h"

#include "control/fleet/guards.h"
#include "control/fleet/hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RENEW_MS (FLEET_CONDUCTOR_TTL_S * 1000u / 3)

// What is remembered of one cutover between looks. All of it can be lost: guards then begin anew.
struct score {
	char pool[CUTOVER_NAME_BYTES];
	uint64_t plan_id;
	struct fleet_guards *guards;
	struct hook hook;
	json_t *said; // fleet_guards_write()
};

// A swap that was sent and not answered: whether it was done is seen when the cutovers are read again.
struct unheard {
	bool pending;
	enum cutover_event event;
	struct cutover before, next;
};

struct fleet_conductor {
	char node[CUTOVER_NAME_BYTES];
	char actor[CUTOVER_NAME_BYTES + 16];
	bool elected;
	uint64_t renewed_ms;
	uint64_t worked_ms; // last look that went well while elected
	struct fleet_roster roster;
	struct score scores[FLEET_CUTOVERS_MAX];
	uint32_t score_count;
	bool said_more;      // since fleet_conductor_said()
	struct cutover next; // too large for a stack
	struct unheard unheard;
	struct cutover_facts facts;
};

static uint64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct fleet_conductor *fleet_conductor_create(const char *node)
{
	struct fleet_conductor *conductor = calloc(1, sizeof(*conductor));

	if (conductor == NULL)
		return NULL;
	snprintf(conductor->node, sizeof(conductor->node), "%s", node);
	snprintf(conductor->actor, sizeof(conductor->actor), "conductor %s", node);
	return conductor;
}

static void score_clear(struct score *score)
{
	fleet_guards_free(score->guards);
	hook_reset(&score->hook);
	json_decref(score->said);
	*score = (struct score){0};
}

static void forget(struct fleet_conductor *conductor)
{
	for (uint32_t i = 0; i < conductor->score_count; i++)
		score_clear(&conductor->scores[i]);
	conductor->said_more = true;
	conductor->score_count = 0;
	conductor->worked_ms = 0;
}

void fleet_conductor_free(struct fleet_conductor *conductor)
{
	if (conductor == NULL)
		return;
	forget(conductor);
	fleet_roster_free(&conductor->roster);
	free(conductor);
}

bool fleet_conductor_elected(const struct fleet_conductor *conductor)
{
	return conductor->elected;
}

void fleet_conductor_resign(struct fleet_conductor *conductor, struct store *store)
{
	if (conductor->elected)
		store_lock_drop(store, FLEET_CONDUCTOR_LOCK);
	conductor->elected = false;
}

// Returns 1 when this node conducts, 0 when another does, or -errno.
static int elect(struct fleet_conductor *conductor, struct store *store, uint64_t now_ms)
{
	if (now_ms - conductor->renewed_ms < RENEW_MS && conductor->renewed_ms != 0)
		return conductor->elected;
	bool before = conductor->elected;
	int rc = store_lock_take(store, FLEET_CONDUCTOR_LOCK, FLEET_CONDUCTOR_TTL_S, NULL);

	if (rc < 0 && rc != -EBUSY) {
		// The lock runs out in the store while we cannot renew it: somebody else may have it.
		if (now_ms - conductor->renewed_ms > FLEET_CONDUCTOR_TTL_S * 1000u)
			conductor->elected = false;
		return rc;
	}
	conductor->renewed_ms = now_ms;
	conductor->elected = rc == 0;
	if (conductor->elected && !before)
		fprintf(stderr, "<5>fleet: this node conducts cutovers\n");
	if (before && !conductor->elected)
		forget(conductor);
	return conductor->elected;
}

static struct score *score_of(struct fleet_conductor *conductor, const struct cutover *cutover)
{
	struct score *score = NULL;

	for (uint32_t i = 0; i < conductor->score_count && score == NULL; i++) {
		if (strcmp(conductor->scores[i].pool, cutover->spec.pool) == 0)
			score = &conductor->scores[i];
	}
	if (score == NULL && conductor->score_count == FLEET_CUTOVERS_MAX)
		return NULL;
	if (score == NULL) {
		score = &conductor->scores[conductor->score_count++];
		*score = (struct score){0};
	}
	if (score->plan_id != cutover->plan_id) {
		score_clear(score);
		score->plan_id = cutover->plan_id;
		snprintf(score->pool, sizeof(score->pool), "%s", cutover->spec.pool);
		score->guards = fleet_guards_create();
	}
	return score->guards ? score : NULL;
}

static void say(struct fleet_conductor *conductor, struct score *score,
	const struct cutover *cutover, struct store *store)
{
	json_decref(score->said);
	score->said = fleet_guards_write(score->guards, cutover, hook_said(&score->hook, cutover));
	fleet_guards_publish(score->said, cutover, store);
	conductor->said_more = true;
}

json_t *fleet_conductor_said(struct fleet_conductor *conductor)
{
	json_t *object;

	if (!conductor->said_more)
		return NULL;
	conductor->said_more = false;
	object = json_object();
	for (uint32_t i = 0; i < conductor->score_count; i++) {
		if (conductor->scores[i].said != NULL)
			json_object_set_new(object, conductor->scores[i].pool,
				json_deep_copy(conductor->scores[i].said));
	}
	return object;
}

static void write_down(struct fleet_conductor *conductor, struct store *store,
	const struct cutover *before, const struct cutover *after, enum cutover_event happened)
{
	char verb[48];
	struct fleet_event event = {
		.verb = verb,
		.actor = conductor->actor,
		.node = conductor->node,
		.reason = after->reason,
		.before = before,
		.after = after,
	};

	snprintf(verb, sizeof(verb), "cutover.%s", cutover_event_name(happened));
	fprintf(stderr, "<5>cutover of %s: %s -> %s (%s)%s%s\n", before->spec.pool,
		cutover_state_name(before->state), cutover_state_name(after->state),
		cutover_event_name(happened), event.reason[0] ? ": " : "", event.reason);
	if (fleet_audit(store, &event) < 0)
		fprintf(stderr, "<3>audit: %s was not written down: %s\n", verb,
			store_error(store));
}

static void remember(struct unheard *unheard, const struct cutover *before,
	const struct cutover *next, enum cutover_event event)
{
	unheard->pending = true;
	unheard->event = event;
	unheard->before = *before;
	unheard->next = *next;
}

// Returns whether it moved, or -errno.
static int conduct(struct fleet_conductor *conductor, struct store *store,
	struct fleet_cutover *item, const struct fleet_status *self)
{
	const struct cutover *cutover = &item->cutover;
	uint64_t now_ms = clock_ms(CLOCK_MONOTONIC), wall_ms = clock_ms(CLOCK_REALTIME);
	struct score *score = score_of(conductor, cutover);
	char error[STORE_ERROR_BYTES];
	enum cutover_event event;

	if (score == NULL)
		return -ENOMEM;
	fleet_facts(&conductor->roster, cutover, self, now_ms, &conductor->facts);
	struct fleet_look look = {
		.cutover = cutover,
		.roster = &conductor->roster,
		.facts = &conductor->facts,
		.now_ms = now_ms,
		.soaked_ms = wall_ms > cutover->soak_ms ? wall_ms - cutover->soak_ms : 0,
	};

	bool judged = fleet_guards_run(score->guards, &look, &conductor->facts.guards);

	if (hook_look(&score->hook, cutover, now_ms) || judged)
		say(conductor, score, cutover, store);
	conductor->facts.hook_confirmed = hook_opens(&score->hook, cutover);
	conductor->next = *cutover;
	if (!cutover_step(&conductor->next, &conductor->facts, wall_ms, &event)) {
		// Passed rounds are not worth a document; until the next step they live here.
		item->cutover.passes = conductor->next.passes;
		return 0;
	}
	int rc = fleet_cutover_swap(store, item, &conductor->next, error);

	if (rc == 0)
		write_down(conductor, store, cutover, &conductor->next, event);
	else if (rc != -ESTALE)
		remember(&conductor->unheard, cutover, &conductor->next, event);
	return rc == -ESTALE ? 0 : rc < 0 ? rc : 1;
}

void fleet_conductor_saw(struct fleet_conductor *conductor, struct store *store,
	const struct fleet_cutovers *cutovers)
{
	struct unheard *unheard = &conductor->unheard;
	char *text = unheard->pending ? fleet_cutover_text(&unheard->next) : NULL;

	for (uint32_t i = 0; text != NULL && i < cutovers->count; i++) {
		if (strcmp(cutovers->items[i]->text, text) == 0)
			write_down(
				conductor, store, &unheard->before, &unheard->next, unheard->event);
	}
	unheard->pending = false;
	free(text);
}

int fleet_conductor_run(struct fleet_conductor *conductor, struct store *store,
	const struct fleet_cutovers *cutovers, const struct fleet_status *self)
{
	uint64_t now_ms = clock_ms(CLOCK_MONOTONIC);
	int moved = 0, rc = elect(conductor, store, now_ms);

	// What was read is older than what may have been done.
	if (rc <= 0 || conductor->unheard.pending)
		return rc <= 0 ? rc : 0;
	rc = fleet_roster_read(store, &conductor->roster, now_ms);
	if (rc < 0)
		return rc;
	conductor->facts.store_lost =
		conductor->worked_ms != 0 && now_ms - conductor->worked_ms > FLEET_STORE_LOST_MS;
	for (uint32_t i = 0; i < cutovers->count; i++) {
		enum cutover_state state = cutovers->items[i]->cutover.state;

		if (state == CUTOVER_PLANNED || cutover_state_terminal(state))
			continue;
		rc = conduct(conductor, store, cutovers->items[i], self);
		if (rc < 0)
			return rc;
		moved += rc;
	}
	conductor->worked_ms = now_ms;
	return moved;
}
