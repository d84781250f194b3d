// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/plan.h"

#include "control/cutover/guard.h"

#include <math.h>
#include <string.h>

#define CIRCLE 4294967296.0

// Growth that the plan takes for tolerable where a stage names none.
#define GROWTH_DEFAULT 0.25

double plan_cv_predicted(const uint32_t *weights, uint32_t count, uint64_t points)
{
	double total = 0, sum = 0;

	for (uint32_t i = 0; i < count; i++)
		total += weights[i];
	for (uint32_t i = 0; i < count; i++) {
		double fair = weights[i] / total;

		sum += (1 - fair) / (fair * ((double)points + 1));
	}
	return sqrt(sum / count);
}

void plan_balance_of(const uint64_t *arcs, const uint32_t *weights, uint32_t count, uint64_t points,
	struct plan_balance *ret)
{
	double total = 0, sum = 0, squares = 0;

	*ret = (struct plan_balance){.hottest = 0, .coldest = HUGE_VAL};
	for (uint32_t i = 0; i < count; i++)
		total += weights[i];
	for (uint32_t i = 0; i < count; i++) {
		double ratio = (double)arcs[i] / CIRCLE / (weights[i] / total);

		sum += ratio;
		squares += ratio * ratio;
		if (ratio > ret->hottest) {
			ret->hottest = ratio;
			ret->hottest_member = i;
		}
		if (ratio < ret->coldest) {
			ret->coldest = ratio;
			ret->coldest_member = i;
		}
	}
	double mean = sum / count, variance = squares / count - mean * mean;

	ret->cv = mean > 0 && variance > 0 ? sqrt(variance) / mean : 0;
	ret->predicted = plan_cv_predicted(weights, count, points);
}

double plan_surge(double step, double churn, double hit_ratio)
{
	return 1 + step * churn * hit_ratio / (1 - hit_ratio);
}

double plan_step_max(double growth, double churn, double hit_ratio)
{
	double step = growth * (1 - hit_ratio) / (hit_ratio * churn);

	return step < 1 ? step : 1; // also for 0/0 and x/0: nothing moves, or nothing is cached
}

double plan_rollback_surge(
	double share, double churn, double hit_ratio, uint64_t moved_ms, uint64_t refill_ms)
{
	double kept = refill_ms == 0 ? 0 : exp(-(double)moved_ms / (double)refill_ms);

	return share * churn * hit_ratio * (1 - kept) / (1 - hit_ratio);
}

uint64_t plan_soak_ms(double flows, double flows_per_second, double share)
{
	double rarer = share < 0.5 ? share : 1 - share;
	double seconds;

	// At 100 % there is no other side to compare with; the new one alone must show as much.
	if (rarer <= 0)
		rarer = share;
	if (flows <= 0)
		return 0;
	seconds = flows / (flows_per_second * rarer);
	return seconds < 1e12 ? (uint64_t)(seconds * 1000) : UINT64_MAX;
}

double plan_sample_error(double churn, uint64_t sampled)
{
	return sampled == 0 ? 1 : sqrt(churn * (1 - churn) / (double)sampled);
}

bool plan_surge_applies(enum flow_affinity affinity)
{
	return affinity == FLOW_AFFINITY_CLIENT || affinity == FLOW_AFFINITY_DESTINATION;
}

// What the rings say together.
static void sum_rings(const struct plan_input *input, struct plan *ret)
{
	for (uint32_t i = 0; i < input->ring_count; i++) {
		const struct plan_ring *ring = &input->rings[i];

		if (ring->churn > ret->churn)
			ret->churn = ring->churn;
		if (plan_surge_applies(ring->affinity) && ring->churn > ret->churn_surge)
			ret->churn_surge = ring->churn;
	}
}

static bool surge_known(const struct plan_input *input, const struct plan *plan)
{
	return plan->churn_surge > 0 && !isnan(input->spec->hit_ratio);
}

static double flows_of(const struct plan_input *input, const struct cutover_stage *stage)
{
	double sum = 0;

	for (uint32_t i = 0; input->flows_per_second != NULL && i < input->spec->datacenter_count;
		i++) {
		if (datacenter_set_has(&stage->datacenters, i))
			sum += input->flows_per_second[i];
	}
	return sum;
}

// What caches feel of a step, and of a way back from it.
static void add_surge(const struct plan_input *input, const struct plan *plan,
	const struct cutover_stage *stage, struct plan_step *step)
{
	const struct cutover_spec *spec = input->spec;

	step->surge = plan_surge((double)step->rise / GATE_SHARE_ALL, plan->churn_surge,
			      spec->hit_ratio) -
		1;
	step->over_limit = stage->max_step_surge > 0 && step->surge > stage->max_step_surge;
	step->rollback_late = plan_rollback_surge((double)step->to / GATE_SHARE_ALL,
		plan->churn_surge, spec->hit_ratio, spec->refill_ms, spec->refill_ms);
}

static void add_step(const struct plan_input *input, uint32_t index, const struct plan_step *shape,
	struct plan *ret)
{
	const struct cutover_stage *stage = &input->spec->stages[index];
	struct plan_step *step = &ret->steps[ret->step_count++];

	*step = *shape;
	step->stage = index;
	step->moves = (double)(step->to - step->from) / GATE_SHARE_ALL * ret->churn;
	step->flows_per_second = flows_of(input, stage);
	step->soak_ms = stage->min_soak_ms;
	step->soak_min_ms = plan_soak_ms(
		ret->flows_min, step->flows_per_second, (double)step->to / GATE_SHARE_ALL);
	if (surge_known(input, ret)) {
		add_surge(input, ret, stage, step);
		if (step->soak_min_ms < input->spec->refill_ms)
			step->soak_min_ms = input->spec->refill_ms;
	}
	step->total_ms = step->soak_ms * step->rises;
	ret->total_ms += step->total_ms;
}

// base: the share that the stage's datacenters have all reached before it.
static void add_stage(
	const struct plan_input *input, uint32_t index, uint32_t base, struct plan *ret)
{
	const struct cutover_stage *stage = &input->spec->stages[index];
	uint32_t share = base, next;

	if (stage->step_count == 0) {
		uint32_t left = stage->ramp_to > base ? stage->ramp_to - base : 0;
		struct plan_step ramp = {.from = base, .to = base + left, .rise = stage->ramp_step};

		ramp.rises = (left + stage->ramp_step - 1) / stage->ramp_step;
		if (left != 0)
			add_step(input, index, &ramp, ret);
		return;
	}
	while ((next = cutover_stage_next_share(stage, share)) > share) {
		struct plan_step step = {
			.from = share, .to = next, .rise = next - share, .rises = 1};

		add_step(input, index, &step, ret);
		share = next;
	}
}

static uint32_t stage_base(const struct cutover_spec *spec, uint32_t index, const uint32_t *reached)
{
	uint32_t base = GATE_SHARE_ALL;

	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		if (datacenter_set_has(&spec->stages[index].datacenters, i) && reached[i] < base)
			base = reached[i];
	}
	return base;
}

static void add_stages(const struct plan_input *input, struct plan *ret)
{
	const struct cutover_spec *spec = input->spec;
	uint32_t reached[CUTOVER_DATACENTERS_MAX] = {0};

	for (uint32_t s = 0; s < spec->stage_count; s++) {
		uint32_t last = cutover_stage_last_share(&spec->stages[s]);

		add_stage(input, s, stage_base(spec, s, reached), ret);
		for (uint32_t i = 0; i < spec->datacenter_count; i++) {
			if (datacenter_set_has(&spec->stages[s].datacenters, i) &&
				reached[i] < last)
				reached[i] = last;
		}
	}
}

// The difference between the rings that the cutover's early_abort is to see; 0: it has none.
static double difference_of(const struct cutover_spec *spec)
{
	for (uint32_t i = 0; i < spec->guard_count; i++) {
		const struct guard_config *guard = &spec->guards[i];

		if (guard->kind == GUARD_EARLY_ABORT && !guard->dry_run)
			return guard->difference_min > 0 ? guard->difference_min : 0.001;
	}
	return 0;
}

void plan_compute(const struct plan_input *input, struct plan *ret)
{
	const struct cutover_spec *spec = input->spec;
	double growth = 0, difference = difference_of(spec);

	memset(ret, 0, sizeof(*ret));
	sum_rings(input, ret);
	if (difference > 0)
		ret->flows_min = guard_sample_min(input->error_ratio, difference);
	ret->step_max = 1;
	if (surge_known(input, ret)) {
		for (uint32_t i = 0; i < spec->stage_count; i++) {
			double limit = spec->stages[i].max_step_surge;

			if (limit > 0 && (growth <= 0 || limit < growth))
				growth = limit;
		}
		ret->step_max = plan_step_max(
			growth > 0 ? growth : GROWTH_DEFAULT, ret->churn_surge, spec->hit_ratio);
		ret->rollback_late = plan_rollback_surge(
			1, ret->churn_surge, spec->hit_ratio, spec->refill_ms, spec->refill_ms);
	}
	add_stages(input, ret);
}

void plan_limit_steps(struct cutover_spec *spec, const struct plan *plan)
{
	for (uint32_t i = 0; i < spec->stage_count; i++) {
		struct cutover_stage *stage = &spec->stages[i];
		double most = 1;

		if (stage->max_step_surge > 0 && plan->churn_surge > 0 && !isnan(spec->hit_ratio))
			most = plan_step_max(
				stage->max_step_surge, plan->churn_surge, spec->hit_ratio);
		stage->step_share_max = most < 1 ? (uint32_t)(most * GATE_SHARE_ALL) : 0;
		if (most < 1 && stage->step_share_max == 0)
			stage->step_share_max = 1;
	}
}
