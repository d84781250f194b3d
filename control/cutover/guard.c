// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/guard.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Standard deviations by which a share may be off, and new-ring flows below which nothing is said.
#define SHARE_SIGMAS       4.0
#define SHARE_EXPECTED_MIN 16.0

static const char *const kind_names[GUARD_KIND_COUNT] = {"digest", "new_drops", "early_abort",
	"load", "share", "lookup_cost", "memory", "startup", "missing", "promql"};

static const struct guard_config defaults[GUARD_KIND_COUNT] = {
	[GUARD_DIGEST] = {.pause_at = 0, .rollback_at = NAN, .failures = 1, .window_ms = 5000},
	// More than none for 10 s.
	[GUARD_NEW_DROPS] = {.pause_at = NAN, .rollback_at = 0, .failures = 2, .window_ms = 5000},
	// 1.5 times the old ring's ratio and 0.1 % more, in 3 of 3 windows of 20 s.
	[GUARD_EARLY_ABORT] = {.pause_at = NAN,
		.rollback_at = 1.5,
		.difference_min = 0.001,
		.failures = 3,
		.window_ms = 20000},
	[GUARD_LOAD] = {.pause_at = 1.2, .rollback_at = NAN, .failures = 3, .window_ms = 20000},
	[GUARD_SHARE] = {.pause_at = SHARE_SIGMAS,
		.rollback_at = NAN,
		.failures = 2,
		.window_ms = 20000},
	// Against what they were when both rings were staged. Noisy, so they only speak until they are told to act.
	[GUARD_LOOKUP_COST] = {.pause_at = 1.2,
		.rollback_at = NAN,
		.failures = 3,
		.window_ms = 20000,
		.dry_run = true},
	[GUARD_MEMORY] = {.pause_at = 1.25,
		.rollback_at = NAN,
		.failures = 1,
		.window_ms = 20000,
		.dry_run = true},
	[GUARD_STARTUP] = {.pause_at = 1.5,
		.rollback_at = NAN,
		.failures = 1,
		.window_ms = 20000,
		.dry_run = true},
	[GUARD_MISSING] = {.pause_at = 0, .rollback_at = NAN, .failures = 2, .window_ms = 5000},
	[GUARD_PROMQL] = {.pause_at = NAN, .rollback_at = NAN, .failures = 2, .window_ms = 20000},
};

void guard_default(enum guard_kind kind, struct guard_config *ret)
{
	*ret = defaults[kind];
	ret->kind = kind;
	ret->errors = 2;
	snprintf(ret->name, sizeof(ret->name), "%s", kind_names[kind]);
}

uint32_t guard_defaults(struct guard_config *ret)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < GUARD_KIND_COUNT; i++) {
		if (i != GUARD_PROMQL)
			guard_default((enum guard_kind)i, &ret[count++]);
	}
	return count;
}

void guard_reset(struct guard_memory *memory)
{
	memset(memory, 0, sizeof(*memory));
	memory->verdict = GUARD_INCONCLUSIVE;
	memory->action = GUARD_WAIT;
	memory->value = NAN;
	memory->previous = NAN;
	snprintf(memory->text, sizeof(memory->text), "not evaluated yet");
}

double guard_sample_min(double error, double difference)
{
	double ratio = error > 0 ? error : difference;

	return 16.0 * ratio * (1.0 - ratio) / (difference * difference);
}

bool guard_share_off(
	uint64_t flows_new, uint64_t flows, double share, double sigmas, double *ret_sigmas)
{
	double deviation = fabs((double)flows_new / (double)flows - share);
	double sigma = sqrt(share * (1.0 - share) / (double)flows);

	// At 0 % and 100 % there is no chance in it: one flow on the wrong ring is one too many.
	*ret_sigmas = sigma > 0 ? deviation / sigma : deviation > 0 ? HUGE_VAL : 0;
	return *ret_sigmas > sigmas;
}

// What a window says, before it is held against the windows before.
struct finding {
	enum guard_verdict verdict;
	bool severe; // beyond the rollback threshold
	double value;
	char *text;
	size_t text_bytes;
};

__attribute__((format(printf, 2, 3))) static void say(
	struct finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->text, finding->text_bytes, format, args);
	va_end(args);
}

// Holds a value against both thresholds; NAN thresholds compare false and so never trip.
static void hold_against(const struct guard_config *config, struct finding *finding)
{
	double value = finding->value;

	if (isnan(value)) {
		finding->verdict = GUARD_ERROR;
		return;
	}
	if (config->direction == GUARD_ABOVE) {
		finding->severe = value > config->rollback_at;
		finding->verdict =
			finding->severe || value > config->pause_at ? GUARD_FAILED : GUARD_PASSED;
	} else {
		finding->severe = value < config->rollback_at;
		finding->verdict =
			finding->severe || value < config->pause_at ? GUARD_FAILED : GUARD_PASSED;
	}
}

static void judge_early_abort(const struct guard_config *config, const struct guard_sample *sample,
	struct finding *finding)
{
	const struct guard_arm *old = &sample->before, *new = &sample->after;
	double difference = config->difference_min > 0 ? config->difference_min : 0.001;

	if (old->flows == 0 || new->flows == 0) {
		finding->verdict = GUARD_INCONCLUSIVE;
		say(finding, "%lu flows on the old ring and %lu on the new one: nothing to compare",
			(unsigned long)old->flows, (unsigned long)new->flows);
		return;
	}
	double before = (double)old->events / (double)old->flows;
	double after = (double)new->events / (double)new->flows;
	double need = guard_sample_min(before, difference);
	bool worse = after - before > difference && (before <= 0 || after / before > 1);

	finding->value = before > 0 ? after / before : after > 0 ? HUGE_VAL : 1;
	say(finding, "%.4f%% of %lu new-ring flows end early, %.4f%% of %lu old-ring flows",
		after * 100, (unsigned long)new->flows, before * 100, (unsigned long)old->flows);
	// Too few flows hide a small difference. A large one shows in far fewer: hold the sample against the
	// difference that was seen.
	double seen = worse ? guard_sample_min((before + after) / 2, after - before) : need;
	double smaller = (double)(old->flows < new->flows ? old->flows : new->flows);

	if (smaller < (seen < need ? seen : need)) {
		finding->verdict = GUARD_INCONCLUSIVE;
		return;
	}
	hold_against(config, finding);
	if (finding->verdict == GUARD_FAILED && !worse) {
		finding->verdict = GUARD_PASSED;
		finding->severe = false;
	}
	if (finding->verdict == GUARD_PASSED && sample->young)
		finding->verdict = GUARD_INCONCLUSIVE;
}

static void judge_new_drops(const struct guard_config *config, const struct guard_sample *sample,
	struct finding *finding)
{
	finding->value = (double)sample->after.events;
	say(finding, "%lu new flows found no backend on the new ring",
		(unsigned long)sample->after.events);
	hold_against(config, finding);
}

static void judge_share(const struct guard_config *config, const struct guard_sample *sample,
	struct finding *finding)
{
	uint64_t flows = sample->before.flows + sample->after.flows;
	double rarer = sample->share < 0.5 ? sample->share : 1 - sample->share;
	double off = 0;

	if (flows == 0 || (rarer > 0 && (double)flows * rarer < SHARE_EXPECTED_MIN)) {
		finding->verdict = GUARD_INCONCLUSIVE;
		say(finding, "%lu new flows are too few to tell a share of %.4f%%",
			(unsigned long)flows, sample->share * 100);
		return;
	}
	guard_share_off(sample->after.flows, flows, sample->share, config->pause_at, &off);
	finding->value = off;
	say(finding, "%.4f%% of %lu flows took the new ring, %.4f%% intended: %.1f sigma",
		100.0 * (double)sample->after.flows / (double)flows, (unsigned long)flows,
		sample->share * 100, off);
	hold_against(config, finding);
}

static void judge_load(const struct guard_config *config, const struct guard_sample *sample,
	struct finding *finding)
{
	finding->value = sample->value / sample->reference;
	say(finding, "%s got %.0f new flows on %s; its rings and chance explain %.0f",
		sample->backend, sample->value, sample->node, sample->reference);
	hold_against(config, finding);
}

// Figures that are a multiple of a reference: lookup cost, memory, start-up time.
static void judge_ratio(const struct guard_config *config, const struct guard_sample *sample,
	struct finding *finding)
{
	if (!(sample->reference > 0) || isnan(sample->value)) {
		finding->verdict = GUARD_ERROR;
		say(finding, "no reference to compare with");
		return;
	}
	finding->value = sample->value / sample->reference;
	say(finding, "%g is %.3f times the expected %g", sample->value, finding->value,
		sample->reference);
	hold_against(config, finding);
}

static void judge_count(const struct guard_config *config, const struct guard_sample *sample,
	struct finding *finding)
{
	finding->value = sample->value;
	say(finding, "%.0f nodes %s", sample->value,
		config->kind == GUARD_DIGEST ? "have another digest" : "do not answer");
	hold_against(config, finding);
}

// A cold cache dips, which is expected; after the refill time its hit ratio must be on the way back.
static void judge_recovery(const struct guard_config *config, const struct guard_sample *sample,
	const struct guard_memory *memory, struct finding *finding)
{
	if ((double)sample->soaked_ms < sample->reference || isnan(memory->value) ||
		sample->since_ms == 0) {
		finding->verdict = GUARD_INCONCLUSIVE;
		finding->value = sample->value;
		say(finding, "%g; the time to refill is not over", sample->value);
		return;
	}
	double minutes = (double)sample->since_ms / 60000.0;
	double slope = (sample->value - memory->value) / minutes;

	say(finding, "%g, %+g a minute", sample->value, slope);
	finding->value = slope;
	hold_against(config, finding);
	finding->value = sample->value;
}

static void judge_promql(const struct guard_config *config, const struct guard_sample *sample,
	const struct guard_memory *memory, struct finding *finding)
{
	if (isnan(sample->value)) {
		finding->verdict = GUARD_ERROR;
		say(finding, "the query has no value");
		return;
	}
	if (config->direction == GUARD_NOT_RECOVERING) {
		judge_recovery(config, sample, memory, finding);
		return;
	}
	finding->value = sample->value;
	say(finding, "%g", sample->value);
	hold_against(config, finding);
}

static void judge(const struct guard_config *config, const struct guard_sample *sample,
	const struct guard_memory *memory, struct finding *finding)
{
	if (!sample->available) {
		finding->verdict = GUARD_ERROR;
		say(finding, "no measurement%s%s", sample->error ? ": " : "",
			sample->error ? sample->error : "");
		return;
	}
	if (sample->few) {
		finding->verdict = GUARD_INCONCLUSIVE;
		say(finding, "too little was seen to tell");
		return;
	}
	switch (config->kind) {
	case GUARD_EARLY_ABORT:
		judge_early_abort(config, sample, finding);
		break;
	case GUARD_NEW_DROPS:
		judge_new_drops(config, sample, finding);
		break;
	case GUARD_SHARE:
		judge_share(config, sample, finding);
		break;
	case GUARD_DIGEST:
	case GUARD_MISSING:
		judge_count(config, sample, finding);
		break;
	case GUARD_LOAD:
		judge_load(config, sample, finding);
		break;
	case GUARD_PROMQL:
		judge_promql(config, sample, memory, finding);
		break;
	default:
		judge_ratio(config, sample, finding);
		break;
	}
}

static enum guard_action decide(const struct guard_config *config, const struct finding *finding,
	const struct guard_memory *memory)
{
	if (finding->verdict == GUARD_PASSED)
		return GUARD_GO;
	if (finding->verdict == GUARD_FAILED && memory->failures >= config->failures)
		return finding->severe ? GUARD_ROLLBACK : GUARD_PAUSE;
	if (finding->verdict == GUARD_ERROR && memory->errors >= config->errors)
		return GUARD_PAUSE;
	return GUARD_WAIT;
}

enum guard_action guard_judge(const struct guard_config *config, const struct guard_sample *sample,
	struct guard_memory *memory)
{
	char text[CUTOVER_REASON_BYTES] = "";
	struct finding finding = {
		.verdict = GUARD_ERROR, .value = NAN, .text = text, .text_bytes = sizeof(text)};

	judge(config, sample, memory, &finding);
	memory->windows++;
	memory->verdict = finding.verdict;
	memory->failures = finding.verdict == GUARD_FAILED ? memory->failures + 1 : 0;
	memory->errors = finding.verdict == GUARD_ERROR ? memory->errors + 1 : 0;
	if (!isnan(finding.value)) {
		memory->previous = memory->value;
		memory->value = finding.value;
	}
	memory->action = decide(config, &finding, memory);
	if (config->dry_run && memory->action != GUARD_GO) {
		snprintf(memory->text, sizeof(memory->text), "dry run, would say %s: %.150s",
			guard_action_name(memory->action), text);
		memory->action = GUARD_GO;
	} else {
		snprintf(memory->text, sizeof(memory->text), "%s", text);
	}
	return memory->action;
}

const char *guard_kind_name(enum guard_kind kind)
{
	return kind_names[kind];
}

bool guard_kind_find(const char *name, enum guard_kind *ret)
{
	for (unsigned i = 0; i < GUARD_KIND_COUNT; i++) {
		if (strcmp(name, kind_names[i]) == 0) {
			*ret = (enum guard_kind)i;
			return true;
		}
	}
	return false;
}

const char *guard_verdict_name(enum guard_verdict verdict)
{
	static const char *const names[] = {"passed", "failed", "inconclusive", "error"};

	return names[verdict];
}

const char *guard_action_name(enum guard_action action)
{
	static const char *const names[] = {"go", "wait", "pause", "rollback"};

	return names[action];
}
