// SPDX-License-Identifier: Apache-2.0
// What a cutover will do, before it does anything: what moves, how the load will lie, what the caches' origin will
// feel, how long each step must soak, and what a way back will cost. Formulas and sums; rings are measured elsewhere
// (control/ring/walk.h) and come in as arcs of the circle of 2^32 hashes.
//
// Derivations: docs/cutover.md, "The arithmetic".
#pragma once

#include "common/flow.h"
#include "control/cutover/spec.h"

// How evenly a ring spreads keys over its members, relative to what each should get.
struct plan_balance {
	double cv;        // coefficient of variation, 32-bit collisions included
	double predicted; // the same by formula: sqrt((N-1)/(kN+1)) for equal weights
	double hottest;   // times its fair share
	double coldest;
	uint32_t hottest_member;
	uint32_t coldest_member;
};

// arcs: hashes that each member gets, summing to 2^32. weights: what each should get, in proportion; each >= 1.
// points: of the whole ring before equal hashes are cut. count >= 1.
void plan_balance_of(const uint64_t *arcs, const uint32_t *weights, uint32_t count, uint64_t points,
	struct plan_balance *ret);

// The coefficient of variation that chance gives, each member relative to its fair share f = w/sum(w): a member with
// fw of K points has an arc ~ Beta(fK, (1-f)K), so CV^2 = mean of (1-f)/(f(K+1)); equal weights: (N-1)/(kN+1).
double plan_cv_predicted(const uint32_t *weights, uint32_t count, uint64_t points);

// Growth of origin traffic when a part of the traffic goes to caches that do not have its keys yet:
// now/before = 1 + step churn hit/(1 - hit). All arguments 0..1, hit below 1.
double plan_surge(double step, double churn, double hit_ratio);

// The largest step whose surge stays within growth (0.25 = 25 %): growth (1 - hit)/(hit churn), at most 1.
double plan_step_max(double growth, double churn, double hit_ratio);

// Growth of origin traffic if everything went back now. The caches forget the old placement as fast as a cold cache
// fills: after t they still have exp(-t/refill) of it, so the growth is share churn (hit - kept)/(1 - hit).
// moved_ms: how long the share has been where it is.
double plan_rollback_surge(
	double share, double churn, double hit_ratio, uint64_t moved_ms, uint64_t refill_ms);

// The time until the rarer side of a comparison has seen flows flows.
// flows_per_second: new flows of the datacenters that take part; share: 0..1 of them on the new ring.
// Returns 0 when none are needed, UINT64_MAX when they never come.
uint64_t plan_soak_ms(double flows, double flows_per_second, double share);

// Standard error of a churn that was counted on a sample: sqrt(c(1-c)/n).
double plan_sample_error(double churn, uint64_t sampled);

// Whether the surge of origin traffic is real for an affinity: a ring that hashes whole flows sends each cache the
// same mix of keys as before.
bool plan_surge_applies(enum flow_affinity affinity);

// One subset ring of the pool, measured.
struct plan_ring {
	char name[CUTOVER_NAME_BYTES]; // its tags, "nvme,eu"; "-" for all backends
	uint32_t services;
	enum flow_affinity affinity; // the worst of its services'
	double churn;                // of the keyspace, exact
	double churn_traffic;        // of sampled flows; NAN: no sample
	uint64_t sampled;
	struct plan_balance before;
	struct plan_balance after;
	uint64_t build_ns;
};

// One step, or a whole ramp, of one stage.
struct plan_step {
	uint32_t stage;
	uint32_t from;  // share before
	uint32_t to;    // share after; of a ramp, its end
	uint32_t rise;  // the largest single rise in it
	uint32_t rises; // how many; 1 for a step
	double moves; // part of the new flows of these datacenters that change their backend, whole step or ramp
	double surge; // growth of origin traffic at its worst; 0 where it does not apply
	double rollback_late; // growth of origin traffic when all goes back a refill time after it; 0 the same
	bool over_limit;         // surge beyond the stage's max_step_surge
	uint64_t soak_ms;        // the stage's min_soak
	double flows_per_second; // new flows of its datacenters; 0: unknown
	uint64_t soak_min_ms;    // what guards and caches need; UINT64_MAX: no flows are known
	uint64_t total_ms;       // soak of all its rises
};

#define PLAN_STEPS_MAX (CUTOVER_STAGES_MAX * CUTOVER_STEPS_MAX)

struct plan_input {
	const struct cutover_spec *spec;
	const struct plan_ring *rings;
	uint32_t ring_count;
	const double *
		flows_per_second; // new flows of each of spec->datacenters, 0: unknown; NULL: all of them
	double error_ratio;       // early aborts as they are now; 0: unknown
};

struct plan {
	double churn;       // of the ring that moves most
	double churn_surge; // the same over rings whose affinity makes the surge real; 0: none
	double step_max; // largest safe step at 25 % growth, or the strictest stage's limit; 1: any
	double flows_min;     // each side of the early-abort comparison needs; 0: nothing compares
	double rollback_late; // growth of origin traffic when all goes back after a full refill time
	uint64_t total_ms;    // soak times of all steps
	struct plan_step steps[PLAN_STEPS_MAX];
	uint32_t step_count;
};

// Computes the plan of a checked specification.
void plan_compute(const struct plan_input *input, struct plan *ret);

// Writes the largest rise that max_step_surge allows into each stage (cutover_stage.step_share_max), so that `set`
// is held to it.
void plan_limit_steps(struct cutover_spec *spec, const struct plan *plan);
