// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/hook.h"

#include "control/cutover/json.h"

#include <stdio.h>
#include <stdlib.h>

static bool waits(const struct cutover *cutover)
{
	return cutover->state == CUTOVER_GATED && !cutover->manual &&
		cutover->spec.hook[0] != '\0' &&
		cutover->spec.stages[cutover->stage].require == CUTOVER_REQUIRE_HOOK;
}

// What the hook is told (docs/cutover.md).
static char *body_of(const struct cutover *cutover)
{
	const struct cutover_spec *spec = &cutover->spec;
	json_t *datacenters = json_array();
	char plan[17];

	snprintf(plan, sizeof(plan), "%016llx", (unsigned long long)cutover->plan_id);
	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		if (datacenter_set_has(&spec->stages[cutover->stage].datacenters, i))
			json_array_append_new(datacenters, json_string(spec->datacenters[i]));
	}
	json_t *object = json_pack("{s:i, s:s, s:s, s:I, s:I, s:f, s:I, s:o}", "schema_version", 1,
		"pool", spec->pool, "plan", plan, "stage", (json_int_t)cutover->stage + 1, "stages",
		(json_int_t)spec->stage_count, "share", (double)cutover->share / GATE_SHARE_ALL,
		"revision", (json_int_t)cutover->revision, "datacenters", datacenters);
	char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));

	json_decref(object);
	return text;
}

static void ask(struct hook *hook, const struct cutover *cutover, uint64_t now_ms)
{
	char *body = body_of(cutover);

	hook->asked_ms = now_ms;
	hook->stage = cutover->stage;
	if (body != NULL)
		hook->inquiry = inquiry_post(cutover->spec.hook, body);
	free(body);
}

// Returns whether an answer came.
static bool take(struct hook *hook, const struct cutover *cutover)
{
	struct inquiry_answer answer;

	if (hook->inquiry == NULL || !inquiry_end(hook->inquiry, &answer))
		return false;
	hook->inquiry = NULL;
	// The gate that it was asked about may be behind us.
	if (!waits(cutover) || hook->stage != cutover->stage)
		return false;
	hook->answered = answer.result >= 0;
	hook->yes = answer.result >= 200 && answer.result < 300;
	if (hook->answered)
		snprintf(hook->text, sizeof(hook->text), "hook answered %d", answer.result);
	else
		snprintf(hook->text, sizeof(hook->text), "hook gave no answer: %s", answer.error);
	return true;
}

bool hook_look(struct hook *hook, const struct cutover *cutover, uint64_t now_ms)
{
	bool news = take(hook, cutover);

	if (hook->stage != cutover->stage || !waits(cutover)) {
		hook->answered = hook->yes = false;
		hook->text[0] = '\0';
	}
	if (waits(cutover) && hook->inquiry == NULL && !hook_opens(hook, cutover) &&
		(hook->text[0] == '\0' || now_ms - hook->asked_ms >= HOOK_PERIOD_MS))
		ask(hook, cutover, now_ms);
	return news;
}

bool hook_opens(const struct hook *hook, const struct cutover *cutover)
{
	return hook->yes && hook->stage == cutover->stage;
}

json_t *hook_said(const struct hook *hook, const struct cutover *cutover)
{
	if (!waits(cutover))
		return NULL;
	const char *verdict = hook->yes ? "passed"
		: hook->answered        ? "failed"
		: hook->text[0] != '\0' ? "error"
					: "inconclusive";

	return json_pack("{s:s, s:s, s:s, s:s, s:n, s:s, s:b, s:s}", "name", "hook", "kind", "hook",
		"verdict", verdict, "action", hook->yes ? "go" : "wait", "value", "text",
		hook->text[0] != '\0' ? hook->text : "not asked yet", "dry_run", 0, "url",
		cutover->spec.hook);
}

void hook_reset(struct hook *hook)
{
	struct inquiry_answer answer;

	if (hook->inquiry != NULL)
		inquiry_wait(hook->inquiry, &answer);
	*hook = (struct hook){0};
}
