// SPDX-License-Identifier: Apache-2.0
// What an operator writes about a cutover: from which ring to which, through which datacenters, in which steps,
// watched by which guards. Plain values of fixed size: copied by assignment, nothing to free.
#pragma once

#include "common/gate.h"
#include "common/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUTOVER_NAME_BYTES      64u // pool, datacenter and guard names with their NUL
#define CUTOVER_DATACENTERS_MAX 512u
#define CUTOVER_STAGES_MAX      32u
#define CUTOVER_STEPS_MAX       24u
#define CUTOVER_GUARDS_MAX      32u
#define CUTOVER_QUERY_BYTES     512u
#define CUTOVER_URL_BYTES       256u
#define CUTOVER_REASON_BYTES    192u

// One second as the clock of this module counts it: milliseconds since 1970, at the conductor.
#define CUTOVER_SECOND_MS UINT64_C(1000)

// A set of datacenters by their position in the specification's list.
struct datacenter_set {
	uint64_t words[CUTOVER_DATACENTERS_MAX / 64];
};

enum cutover_require {
	CUTOVER_REQUIRE_AUTO,   // the next stage begins by itself
	CUTOVER_REQUIRE_MANUAL, // `advance` opens the gate
	CUTOVER_REQUIRE_HOOK,   // an external confirmation opens it, or `advance`
};

enum cutover_expiry {
	CUTOVER_EXPIRY_PAUSE,
	CUTOVER_EXPIRY_ROLLBACK, // sensible for the first, small stage only
};

// Datacenters that move together. Shares are millionths (gate.h).
struct cutover_stage {
	struct datacenter_set datacenters;
	bool every; // it was written as "all": datacenters that join later belong to it
	uint32_t steps[CUTOVER_STEPS_MAX]; // strictly rising; empty for a ramp
	uint32_t step_count;               // 0: a ramp
	uint32_t ramp_to;                  // last share of the ramp
	uint32_t ramp_step;                // added once a soak
	uint64_t min_soak_ms;              // after every step
	uint64_t max_duration_ms;          // of the whole stage; 0: none
	enum cutover_expiry on_expiry;
	enum cutover_require require; // to leave the stage
	uint32_t missing_nodes_max;   // in each datacenter
	uint32_t
		step_share_max; // largest rise without force, from max_step_surge by the plan; 0: no limit
	double max_step_surge; // tolerated growth of origin traffic, 0.25 = 25 %; 0: no limit
};

// A ring as the specification names it. Everything else about the ring (backends, tags, weights) is in the pools
// that the cutover stages.
struct cutover_ring {
	enum ring_version
		version; // 0 and points or balance 0, as an operator leaves them out: the pool's
	uint32_t points; // a weight, v2
	double balance;  // v3
	// Its own hash seed; all zero: the fleet's. A secret: it comes from an operator and goes into the document, and
	// is never written with the specification, which has its mark (hash_seed_mark()) alone.
	uint8_t hash_seed[HASH_SEED_BYTES];
	uint64_t seed_mark;
	bool keeps_seed; // an operator left it out: the pool's
	uint8_t digest
		[RING_DIGEST_BYTES]; // all subset rings of the pool together; what nodes acknowledge
};

enum guard_kind {
	GUARD_DIGEST,      // nodes that built another ring
	GUARD_NEW_DROPS,   // new flows that found no backend on the new ring
	GUARD_EARLY_ABORT, // flows that ended in their first packets, new ring against old
	GUARD_LOAD,        // hottest backend against what the plan says for this share
	GUARD_SHARE,       // share of flows on the new ring against the intended one
	GUARD_LOOKUP_COST, // cycles a packet against those before
	GUARD_MEMORY,      // bytes against the plan
	GUARD_STARTUP,     // seconds from start to forwarding against the plan
	GUARD_MISSING,     // nodes that do not answer
	GUARD_PROMQL,      // an external figure
	GUARD_KIND_COUNT,
};

enum guard_direction {
	GUARD_ABOVE, // bad when the value is above the threshold
	GUARD_BELOW,
	GUARD_NOT_RECOVERING, // bad when the value's slope per minute is below the threshold after the refill time
};

// Thresholds are NAN when the guard has none of that kind. Built-in guards have defaults (guard_default()).
struct guard_config {
	char name[CUTOVER_NAME_BYTES];
	enum guard_kind kind;
	enum guard_direction direction;
	char query[CUTOVER_QUERY_BYTES]; // PromQL
	double pause_at;
	double rollback_at;
	double difference_min; // early_abort: absolute excess that counts
	uint32_t failures;     // consecutive failed windows before it acts, >= 1
	uint32_t errors;       // consecutive windows without data before it pauses, >= 1
	uint64_t window_ms;    // between evaluations
	bool dry_run;          // evaluated and shown, never acts
};

struct cutover_spec {
	char pool[CUTOVER_NAME_BYTES];
	struct cutover_ring from;
	struct cutover_ring to;
	uint32_t salt; // of the gate; fixed for the life of the cutover
	char datacenters[CUTOVER_DATACENTERS_MAX][CUTOVER_NAME_BYTES];
	uint32_t datacenter_count;
	struct cutover_stage stages[CUTOVER_STAGES_MAX];
	uint32_t stage_count;
	struct guard_config guards[CUTOVER_GUARDS_MAX];
	uint32_t guard_count;
	// Consecutive rounds in which all guards pass before a step is over, >= 1.
	uint32_t guard_passes;
	char prometheus[CUTOVER_URL_BYTES]; // base URL that queries go to; "": none
	char hook[CUTOVER_URL_BYTES];       // is asked to open a gate (require: hook); "": none
	uint64_t shadow_ms;                 // at least so long staged before start
	uint64_t full_soak_ms;              // at least so long at 100 % before retire
	uint64_t retire_hold_ms;            // from retire until the old ring is freed
	uint64_t apply_ms;                  // in which nodes must take over a share, else it pauses
	uint64_t refill_ms;                 // time in which a cold cache fills
	double hit_ratio;                   // of the caches behind the pool; NAN: not a cache tier
	char hit_query
		[CUTOVER_QUERY_BYTES]; // PromQL that a plan measures hit_ratio by; "": it was written down
	// Keys that the plan saw move where keys have a home, 0..1; NAN: no plan has looked. Not part of the plan's id.
	double churn_surge;
};

// Why a specification is refused: where, what is wrong, what would be right.
struct cutover_spec_error {
	char where[64]; // "stages[1].steps[2]"
	char text[CUTOVER_REASON_BYTES];
};

void datacenter_set_add(struct datacenter_set *set, uint32_t index);
bool datacenter_set_has(const struct datacenter_set *set, uint32_t index);
bool datacenter_set_empty(const struct datacenter_set *set);

// A specification with every default and nothing else.
void cutover_spec_init(struct cutover_spec *ret);

// Position of a datacenter, or -ENOENT.
int cutover_datacenter_find(const struct cutover_spec *spec, const char *name);

// Adds a datacenter that is not listed yet; stages written as "all" take it in.
// Returns its position, -EEXIST, -ENAMETOOLONG (or an empty name), or -ENOSPC.
int cutover_datacenter_add(struct cutover_spec *spec, const char *name);

// Checks a specification: names, at least one stage, datacenters of every stage, rising steps in range, sane times and
// guards, and that it ends with every datacenter at 100 %.
// max: room at ret. Returns the number of faults found, up to max; 0 when it is good.
size_t cutover_spec_check(
	const struct cutover_spec *spec, struct cutover_spec_error *ret, size_t max);

// The stage's share after a given one: the next step above it, or one ramp step more, never beyond the last.
// Returns share itself when the stage has nothing higher.
uint32_t cutover_stage_next_share(const struct cutover_stage *stage, uint32_t share);

// The stage's last share.
uint32_t cutover_stage_last_share(const struct cutover_stage *stage);

// Reads a share: "10%", "0.0001 %", "12.5". At most four decimals, 0 to 100.
// Returns 0, or -EINVAL; *ret is then untouched.
int cutover_share_parse(const char *text, uint32_t *ret);

// Writes a share as percent with as many decimals as it needs: "12.5%".
#define CUTOVER_SHARE_TEXT_BYTES 16u
void cutover_share_format(uint32_t share, char ret[static CUTOVER_SHARE_TEXT_BYTES]);

// Identifies what was planned: everything in the specification, and the generation of the configuration that it was
// computed on. Two nodes make the same id. Never 0.
uint64_t cutover_plan_id(const struct cutover_spec *spec, uint64_t base_generation);
