// SPDX-License-Identifier: Apache-2.0
// A fleet of 300 datacenters with 10 nodes each and the real state machine: nodes that are lost, slow or come back,
// conductors that die or wake up with an old document, guards that trip, people who interfere. Time is simulated.
//
//	store (one document, compare-and-swap) <- conductor: facts from reports, cutover_step()
//	      |                                <- operator: cutover_command()
//	      v newest document only
//	3,000 nodes, each with its own delay: share = cutover_share(document) -> reports with jitter
//
// What holds, at every tick and for every node, whatever happens:
//	- a share never falls unless somebody or something took it back, and never rises above what the document allowed;
//	- a flow changes rings at most once in each direction between two lowerings;
//	- a step is taken only when at most the tolerated nodes of its datacenters do not follow;
//	- a lost conductor, a stale one, and a restart at any transition lose no revision and no share;
//	- after a rollback every reachable node is at 0, and a node that comes back later goes to 0.
#include "control/cutover/machine.h"
#include "tests/lib/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATACENTERS  300u
#define NODES_EACH   10u
#define NODES        (DATACENTERS * NODES_EACH)
#define TICK_MS      UINT64_C(5000)
#define TICKS_MAX    4000u
#define MISSING_MS   UINT64_C(30000)
#define FLOWS        16u // watched on every node
#define MISSING_MAX  2u
#define RING_HASH(i) ((uint32_t)(i)*0x9e3779b9u)

struct sim_node {
	bool alive;
	bool slow;
	uint32_t share;        // in use; survives a restart, as the snapshot does
	uint64_t revision;     // shares_revision that it follows
	uint64_t next_read_ms; // of the document
	uint64_t next_report_ms;
	uint16_t uses_new; // a bit a watched flow
	// As the conductor knows it.
	uint64_t reported_ms;
	uint64_t reported_revision;
};

struct simulation {
	struct cutover store;     // the committed document
	struct cutover conductor; // its copy, stale when it was away
	bool conductor_alive;
	uint64_t conductor_wakes_ms;
	struct sim_node nodes[NODES];
	uint32_t ceiling[DATACENTERS]; // largest share the document ever gave a datacenter
	uint64_t lowered;              // counts what may lower shares
	uint64_t node_lowered[NODES];
	uint64_t now_ms;
	uint64_t random;
	uint64_t guard_trips_at_ms; // 0: never
	bool troubled;              // seeds of even number have troubles
	bool rolled_back;
	uint64_t commits;
};

static unsigned seed_count = 12;
static struct simulation sim;
static struct cutover_facts facts;

static uint32_t chance(uint32_t below)
{
	return (uint32_t)(suite_random(&sim.random) % below);
}

// Validation -> small -> world, as a careful operator writes it.
static void make_spec(struct cutover_spec *spec)
{
	static const uint32_t steps[3][4] = {
		{10000}, {10000, 100000, 500000}, {1, 100000, 500000, GATE_SHARE_ALL}};
	static const uint32_t counts[3] = {1, 3, 4};

	cutover_spec_init(spec);
	snprintf(spec->pool, sizeof(spec->pool), "web");
	spec->salt = (uint32_t)suite_random(&sim.random);
	spec->shadow_ms = 60000;
	spec->full_soak_ms = 60000;
	spec->retire_hold_ms = 60000;
	spec->guard_passes = 2;
	guard_default(GUARD_EARLY_ABORT, &spec->guards[spec->guard_count++]);
	spec->stage_count = 3;
	for (unsigned s = 0; s < 3; s++) {
		memcpy(spec->stages[s].steps, steps[s], sizeof(steps[s]));
		spec->stages[s].step_count = counts[s];
		spec->stages[s].min_soak_ms = 60000;
		spec->stages[s].missing_nodes_max = MISSING_MAX;
	}
	spec->stages[2].every = true;
	for (unsigned i = 0; i < DATACENTERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "dc%03u", i);
		cutover_datacenter_add(spec, name);
		if (i == 0)
			datacenter_set_add(&spec->stages[0].datacenters, i);
		if (i < 20)
			datacenter_set_add(&spec->stages[1].datacenters, i);
	}
}

// Compare-and-swap: a document is taken only in place of the one that it was made from.
// cause: a command or event; only some may lower a share.
static bool commit(const struct cutover *next, uint64_t expected, enum cutover_event cause)
{
	if (sim.store.revision != expected)
		return false;
	bool may_lower = cause == CUTOVER_ROLLBACK || cause == CUTOVER_FAIL ||
		cause == CUTOVER_SET || cause == CUTOVER_OVERRIDE_SET ||
		cause == CUTOVER_OVERRIDE_CLEAR;

	CU_ASSERT_EQUAL_FATAL(next->revision, expected + 1);
	CU_ASSERT_TRUE_FATAL(next->shares_revision >= sim.store.shares_revision);
	for (uint32_t i = 0; i < DATACENTERS; i++) {
		uint32_t before =
			cutover_share(&sim.store, sim.store.spec.datacenters[i], false, NULL);
		uint32_t after = cutover_share(next, next->spec.datacenters[i], false, NULL);

		// Nodes look only when shares_revision says so.
		CU_ASSERT_TRUE_FATAL(before == after || next->shares_revision == next->revision);
		CU_ASSERT_TRUE_FATAL(after >= before || may_lower);
		// Flows come back only where none goes, and nodes hear of it.
		bool recalled = cutover_recalls(&sim.store, sim.store.spec.datacenters[i]);
		bool recalls = cutover_recalls(next, next->spec.datacenters[i]);

		CU_ASSERT_TRUE_FATAL(!recalls || after == 0);
		CU_ASSERT_TRUE_FATAL(
			recalled == recalls || next->shares_revision == next->revision);
		CU_ASSERT_TRUE_FATAL(recalled || !recalls || cause == CUTOVER_ROLLBACK);
		if (after < before)
			sim.lowered++;
		if (after > sim.ceiling[i])
			sim.ceiling[i] = after;
	}
	sim.store = *next;
	sim.commits++;
	return true;
}

static void watch_flows(struct sim_node *node, unsigned index, uint32_t share)
{
	uint16_t uses = 0;

	for (unsigned i = 0; i < FLOWS; i++) {
		uses |= (uint16_t)(gate_uses_new(gate_threshold(share), sim.store.spec.salt,
					   RING_HASH(index * FLOWS + i))
			<< i);
	}
	bool lowering = sim.node_lowered[index] != sim.lowered;

	// Without a lowering in between flows only go over to the new ring.
	CU_ASSERT_TRUE_FATAL(lowering || (node->uses_new & ~uses) == 0);
	// A smaller share gives back only flows that a larger one had taken.
	if (share < node->share)
		CU_ASSERT_TRUE_FATAL((uses & ~node->uses_new) == 0);
	sim.node_lowered[index] = sim.lowered;
	node->uses_new = uses;
}

static void node_reads(struct sim_node *node, unsigned index)
{
	uint32_t datacenter = index / NODES_EACH;
	uint32_t share =
		cutover_share(&sim.store, sim.store.spec.datacenters[datacenter], false, NULL);

	CU_ASSERT_TRUE_FATAL(share <= sim.ceiling[datacenter]);
	watch_flows(node, index, share);
	node->share = share;
	node->revision = sim.store.shares_revision;
}

static void node_tick(unsigned index)
{
	struct sim_node *node = &sim.nodes[index];

	if (sim.troubled && chance(20000) == 0)
		node->alive = !node->alive;
	if (!node->alive) {
		if (chance(100) == 0)
			node->alive = true; // with what it had, until it reads again
		return;
	}
	if (sim.now_ms >= node->next_read_ms) {
		if (node->revision != sim.store.shares_revision)
			node_reads(node, index);
		node->next_read_ms =
			sim.now_ms + (node->slow ? 30000 + chance(30000) : chance(8000));
	}
	if (sim.now_ms >= node->next_report_ms) {
		node->reported_ms = sim.now_ms;
		node->reported_revision = node->revision;
		node->next_report_ms = sim.now_ms + 5000 + chance(10000);
	}
}

static void gather_facts(void)
{
	const struct cutover *document = &sim.conductor;

	memset(&facts, 0, sizeof(facts));
	for (unsigned i = 0; i < NODES; i++) {
		const struct sim_node *node = &sim.nodes[i];
		struct cutover_datacenter_facts *seen = &facts.datacenters[i / NODES_EACH];

		seen->nodes++;
		if (node->reported_ms + MISSING_MS < sim.now_ms) {
			seen->missing++;
			continue;
		}
		seen->prepared += cutover_state_needs_new(document->state);
		seen->applied += node->reported_revision >= document->shares_revision;
	}
	facts.guards.evaluated = true;
	if (sim.guard_trips_at_ms != 0 && sim.now_ms >= sim.guard_trips_at_ms) {
		facts.guards.action = GUARD_ROLLBACK;
		snprintf(facts.guards.text, sizeof(facts.guards.text), "simulated fault");
	}
}

// A step may go on only when nearly all nodes of the stage truly are where the document wants them.
static void check_applied(const struct cutover *document)
{
	const struct cutover_stage *stage = &document->spec.stages[document->stage];

	for (uint32_t i = 0; i < DATACENTERS; i++) {
		unsigned behind = 0;

		if (!datacenter_set_has(&stage->datacenters, i))
			continue;
		for (unsigned n = 0; n < NODES_EACH; n++)
			behind +=
				sim.nodes[i * NODES_EACH + n].revision < document->shares_revision;
		CU_ASSERT_TRUE_FATAL(behind <= MISSING_MAX);
	}
}

static void check_rolled_back(void)
{
	for (unsigned i = 0; i < NODES; i++) {
		const struct sim_node *node = &sim.nodes[i];

		if (node->reported_ms + MISSING_MS >= sim.now_ms)
			CU_ASSERT_EQUAL_FATAL(node->share, 0);
	}
	sim.rolled_back = true;
}

static void conductor_tick(void)
{
	enum cutover_event event;

	if (sim.troubled && sim.conductor_alive && chance(60) == 0) {
		sim.conductor_alive = false;
		sim.conductor_wakes_ms = sim.now_ms + chance(180000);
	}
	if (!sim.conductor_alive) {
		if (sim.now_ms < sim.conductor_wakes_ms)
			return;
		// Half of them are new ones that read the store; half wake up with what they knew.
		sim.conductor_alive = true;
		if (chance(2) == 0)
			sim.conductor = sim.store;
	}
	gather_facts();
	uint64_t expected = sim.conductor.revision;

	if (!cutover_step(&sim.conductor, &facts, sim.now_ms, &event)) {
		if (sim.conductor.revision != sim.store.revision)
			sim.conductor = sim.store;
		return;
	}
	if (!commit(&sim.conductor, expected, event)) {
		sim.conductor = sim.store; // somebody was faster
		return;
	}
	if (event == CUTOVER_APPLIED && sim.store.state == CUTOVER_SOAKING)
		check_applied(&sim.store);
	if (event == CUTOVER_APPLIED && sim.store.state == CUTOVER_ROLLED_BACK)
		check_rolled_back();
}

static bool operator_does(struct cutover_command *command)
{
	struct cutover next = sim.store;
	struct cutover_result result;
	uint64_t expected = next.revision;

	command->actor = "operator";
	command->reason = "simulated";
	if (cutover_command(&next, command, &facts, sim.now_ms, &result) != CUTOVER_OK ||
		!result.changed)
		return false;
	CU_ASSERT_TRUE_FATAL(commit(&next, expected, command->verb));
	return true;
}

static void operator_verb(enum cutover_event verb)
{
	struct cutover_command command = {.verb = verb};

	operator_does(&command);
}

// What was set by hand must be set by hand again before it can be full everywhere.
static void operator_opens_gate(void)
{
	struct cutover_command advance = {.verb = CUTOVER_ADVANCE};
	struct cutover_command set = {
		.verb = CUTOVER_SET, .has_share = true, .share = GATE_SHARE_ALL};
	uint32_t last = sim.store.spec.stage_count - 1;

	if (!operator_does(&advance) && sim.store.stage == last && chance(5) == 0)
		operator_does(&set);
}

static void operator_interferes(void)
{
	struct cutover_command command = {.ttl_ms = 60000 + chance(200000)};
	uint32_t what = chance(9);

	command.verb = what == 0 ? CUTOVER_PAUSE
		: what <= 2      ? CUTOVER_OVERRIDE_SET
		: what <= 4      ? CUTOVER_SET
		: what == 5      ? CUTOVER_LOCK
		: what == 8      ? CUTOVER_ROLLBACK
				 : CUTOVER_OVERRIDE_CLEAR;
	if (command.verb == CUTOVER_SET || command.verb == CUTOVER_OVERRIDE_SET) {
		command.has_share = true;
		command.share = chance(GATE_SHARE_ALL + 1);
		datacenter_set_add(&command.datacenters, chance(DATACENTERS));
	}
	if (command.verb == CUTOVER_ROLLBACK) {
		command.move_established = chance(2) == 0;
		datacenter_set_add(&command.datacenters, chance(DATACENTERS));
	}
	operator_does(&command);
}

static void operator_tick(void)
{
	if (sim.store.state == CUTOVER_STAGED && facts.guards.action == GUARD_ROLLBACK)
		operator_verb(CUTOVER_DISCARD); // it cannot start, so there is nothing to roll back
	else if (sim.store.state == CUTOVER_STAGED)
		operator_verb(CUTOVER_START);
	else if (sim.store.state == CUTOVER_PAUSED && chance(10) == 0)
		operator_verb(CUTOVER_RESUME);
	else if (sim.store.state == CUTOVER_GATED)
		operator_opens_gate();
	else if (sim.store.state == CUTOVER_FULL)
		operator_verb(CUTOVER_RETIRE);
	else if (sim.troubled && chance(150) == 0)
		operator_interferes();
}

static void begin(uint64_t seed)
{
	static struct cutover_spec spec;

	memset(&sim, 0, sizeof(sim));
	sim.random = seed;
	sim.troubled = seed % 2 == 0;
	sim.now_ms = UINT64_C(1700000000000);
	make_spec(&spec);
	cutover_init(&sim.store, &spec, 1, sim.now_ms);
	for (unsigned i = 0; i < NODES; i++) {
		sim.nodes[i].alive = true;
		sim.nodes[i].slow = chance(50) == 0;
		sim.nodes[i].next_report_ms = sim.now_ms + chance(10000);
		sim.nodes[i].reported_ms = sim.now_ms;
	}
	if (seed % 5 == 0)
		sim.guard_trips_at_ms = sim.now_ms + chance(2000000);
	memset(&facts, 0, sizeof(facts));
	operator_verb(CUTOVER_STAGE);
	sim.conductor = sim.store;
	sim.conductor_alive = true;
}

static void finish(uint64_t seed, unsigned ticks)
{
	enum cutover_state state = sim.store.state;
	bool done = cutover_state_terminal(state);

	if (!done)
		printf("# seed %" PRIu64 ": still %s after %u ticks: %s\n", seed,
			cutover_state_name(state), ticks, sim.store.reason);
	CU_ASSERT_TRUE_FATAL(done);
	CU_ASSERT_TRUE_FATAL(sim.guard_trips_at_ms != 0 || state == CUTOVER_RETIRED);
	CU_ASSERT_EQUAL_FATAL(sim.rolled_back, state == CUTOVER_ROLLED_BACK);
	// Whoever was away comes back, reads once, and is where all are.
	for (unsigned i = 0; i < NODES; i++) {
		node_reads(&sim.nodes[i], i);
		CU_ASSERT_EQUAL_FATAL(
			sim.nodes[i].share, state == CUTOVER_RETIRED ? GATE_SHARE_ALL : 0);
		CU_ASSERT_EQUAL_FATAL(
			sim.nodes[i].uses_new, state == CUTOVER_RETIRED ? (1u << FLOWS) - 1 : 0);
	}
}

// Returns the simulated minutes.
static uint64_t simulate(uint64_t seed)
{
	unsigned tick;

	begin(seed);
	uint64_t started_ms = sim.now_ms;

	for (tick = 0; tick < TICKS_MAX; tick++) {
		sim.now_ms += TICK_MS;
		for (unsigned i = 0; i < NODES; i++)
			node_tick(i);
		conductor_tick();
		operator_tick();
		if (cutover_state_terminal(sim.store.state))
			break;
		// People go home after a while, and everything must still come to an end.
		if (tick == TICKS_MAX / 2)
			sim.troubled = false;
	}
	finish(seed, tick);
	return (sim.now_ms - started_ms) / 60000;
}

static void fleet_keeps_its_promises_whatever_happens(void)
{
	uint64_t state = suite_seed(), minutes = 0, commits = 0;
	unsigned rollbacks = 0;

	for (unsigned i = 0; i < seed_count; i++) {
		uint64_t seed = (suite_random(&state) & ~UINT64_C(15)) + i % 10;

		minutes += simulate(seed);
		commits += sim.commits;
		rollbacks += sim.rolled_back;
	}
	printf("# %u fleets of %u nodes: %" PRIu64 " simulated hours, %" PRIu64
	       " documents, %u rolled back by a guard\n",
		seed_count, NODES, minutes / 60, commits, rollbacks);
}

static const struct test_case cases[] = {
	{"fleet_keeps_its_promises_whatever_happens", fleet_keeps_its_promises_whatever_happens},
};

int main(int argc, char **argv)
{
	if (argc > 1)
		seed_count = (unsigned)strtoul(argv[1], NULL, 10);
	return SUITE_RUN("cutover fleet", cases);
}
