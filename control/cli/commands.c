// SPDX-License-Identifier: Apache-2.0
// The command table. Everything that ringway says about its own grammar is made from it.
#include "control/cli/apply.h"
#include "control/cli/change.h"
#include "control/cli/cli.h"
#include "control/cli/cutover.h"
#include "control/cli/drops.h"
#include "control/cli/explain.h"
#include "control/cli/files.h"
#include "control/cli/help.h"
#include "control/cli/request.h"
#include "control/cli/ring_ref.h"
#include "control/cli/simulate.h"
#include "control/cli/top.h"
#include "control/cli/trace.h"

#define ANSWER(name) (1u << ANSWER_##name)

static const struct cli_column drop_columns[] = {
	{"REASON", "name", false},
	{"STAGE", "stage", false},
	{"MEANING", "text", false},
	{0},
};

static const struct cli_column service_columns[] = {
	{"SERVICE", "name", false},
	{"ADDRESS", "address", false},
	{"PROTOCOL", "protocol", false},
	{"PORTS", "ports", false},
	{"POOL", "pool", false},
	{"REQUIRES", "requires", false},
	{"AFFINITY", "affinity", true},
	{"TUNNEL", "tunnel", false},
	{"STATE", "state", true},
	{"PACKETS", "packets", false},
	{"BYTES", "bytes", true},
	{"NEW FLOWS", "new_flows", false},
	{"DROPS", "drops", false},
	{"ID", "id", true},
	{0},
};

static const struct cli_column pool_columns[] = {
	{"POOL", "name", false},
	{"RING", "ring", false},
	{"BACKENDS", "backends", false},
	{"UP", "up", false},
	{"DRAIN", "drain", false},
	{"DOWN", "down", false},
	{"NEW RING", "new_ring", false},
	{"SHARE", "new_share_ppm", false},
	{"NEW FLOWS", "new_flows", false},
	{"PACKETS", "packets", true},
	{"DROPS", "drops", true},
	{"ID", "id", true},
	{0},
};

static const struct cli_column backend_columns[] = {
	{"POOL", "pool", false},
	{"BACKEND", "name", false},
	{"ADDRESS", "address", false},
	{"PORT", "port", true},
	{"WEIGHT", "weight", false},
	{"STATE", "state", false},
	{"TAGS", "tags", false},
	{"NEW FLOWS", "new_flows", false},
	{"PACKETS", "packets", false},
	{"BYTES", "bytes", true},
	{"ID", "id", true},
	{0},
};

static const struct cli_column cutover_columns[] = {
	{"POOL", "name", false},
	{"FROM", "from", false},
	{"TO", "to", false},
	{"STATE", "state", false},
	{"SHARE", "share_ppm", false},
	{"MEASURED", "new_flows_new_share", false},
	{"FLOWS OLD", "new_flows_old", false},
	{"FLOWS NEW", "new_flows_new", false},
	{"ABORTS OLD", "aborts_old", true},
	{"ABORTS NEW", "aborts_new", true},
	{0},
};

static const struct cli_column node_columns[] = {
	{"NODE", "name", false},
	{"DATACENTER", "datacenter", false},
	{"STATE", "state", false},
	{"SHARES", "shares", false},
	{"GENERATION", "generation", false},
	{"KILL SWITCH", "kill_switch", false},
	{"SAID", "text", true},
	{"HUGEPAGES", "hugepage_bytes", true},
	{"STARTUP", "startup_ns", true},
	{0},
};

static const struct cli_column datacenter_columns[] = {
	{"DATACENTER", "name", false},
	{"NODES", "nodes", false},
	{"CURRENT", "current", false},
	{"BEHIND", "behind", false},
	{"ABSENT", "absent", false},
	{"MISSING", "missing", false},
	{"FLOWS OLD", "flows_old", false},
	{"FLOWS NEW", "flows_new", false},
	{"GENERATION", "generation_max", true},
	{0},
};

static const struct cli_column verify_columns[] = {
	{"NODE", "node", false},
	{"DATACENTER", "datacenter", false},
	{"POOL", "pool", false},
	{"GENERATION", "generation", false},
	{"DIGESTS", "digests", false},
	{0},
};

static const struct cli_column event_columns[] = {
	{"#", "number", false},
	{"TIME", "time", false},
	{"VERB", "verb", false},
	{"ACTOR", "actor", false},
	{"STATE", "after.state", false},
	{"SHARE", "after.share_max", false},
	{"REASON", "reason", false},
	{"HASH", "hash", true},
	{0},
};

static const struct cli_column ring_columns[] = {
	{"RING", "name", false},
	{"ROLE", "role", false},
	{"VERSION", "version", false},
	{"BACKENDS", "backends", false},
	{"USABLE", "usable", false},
	{"POINTS", "points", false},
	{"WORKER", "worker_bytes", false},
	{"NODE", "node_bytes", false},
	{"AS V1, WORKER", "v1_worker_bytes", true},
	{"AS V1, NODE", "v1_node_bytes", true},
	{"SERVICES", "services", true},
	{"DIGEST", "digest", true},
	{0},
};

#define RING_REFERENCE                                                                                 \
	"A ring is written [FILE:]POOL[+TAG,...][@VERSION[:POINTS]]: pools.yaml:web is the ring that " \
	"the file says, pools.yaml:web@v2:16 what it would be as v2 with 16 points a weight, "         \
	"web+nvme,eu the subset ring of the backends with both tags, web@new the new ring of its "     \
	"cutover. Without a file the node's configuration is taken."

const struct cli_command cli_commands[] = {
	{
		.noun = "validate",
		.operands = "[POOLS]",
		.summary = "check configuration files, and say all that is wrong",
		.details =
			"Needs no daemon. Findings go to standard error with file, line, column and "
			"the way out; with --json they are in the result too.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_NODE_FILE),
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(PERMISSION),
		.rows = "findings",
		.run = files_validate_run,
	},
	{
		.noun = "diff",
		.operands = "[FILE] [FILE]",
		.summary = "what differs between two pools files, or between a file and the node",
		.details =
			"With two files no daemon is asked. With -f FILE: what `apply -f FILE` would "
			"change, checked by the node as apply would.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_EXIT_CODE),
		.answers =
			ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED) | ANSWER(DIFFERENT),
		.rows = "changes",
		.run = apply_diff_run,
	},
	{
		.noun = "apply",
		.summary = "make a pools file the configuration of the node, all or nothing",
		.details =
			"A file with an error changes nothing: the old configuration serves, and all "
			"errors are said. What did not change is not touched. Another ring for a pool "
			"that has one is refused, since most flows would move at once: use a cutover, "
			"or --force with a --reason.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_FORCE),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.rows = "changes",
		.run = apply_run,
	},
	{
		.noun = "config",
		.verb = "export",
		.summary = "what runs, as a pools file",
		.details = "The text is what `apply -f` takes, and what `diff -f` compares with.",
		.run = apply_export_run,
	},
	{
		.noun = "dataplane-args",
		.summary = "the arguments of ringway-dataplane that a node file stands for",
		.details = "One argument a line, as `ringway-dataplane --args FILE` reads them.",
		.options = CLI_BIT(CLI_FILE),
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(PERMISSION),
		.run = files_dataplane_args_run,
	},
	{
		.noun = "status",
		.summary = "the node: generations, store, dataplane, what is configured",
		.flags = CLI_STREAMS,
		.run = request_run,
	},
	{
		.noun = "stats",
		.summary =
			"packets, drops by reason, ring split; and whether every packet is accounted for",
		.details =
			"The first line is checked: every packet that was received was forwarded, handed "
			"to the kernel, answered, or dropped for a named reason. Zeroes are left out; "
			"-o wide shows them.",
		.options = CLI_BIT(CLI_WORKER),
		.flags = CLI_STREAMS,
		.answers = ANSWER(NOT_FOUND),
		.run = stats_run,
	},
	{
		.noun = "top",
		.summary = "rates by pool, worker and drop reason, on a full screen",
		.details =
			"Busy is the part of the time spent on bursts that were not empty. Programs use "
			"stats --watch --json.",
		.answers = ANSWER(NOT_FOUND),
		.run = top_run,
	},
	{
		.noun = "explain",
		.operands = "PROTOCOL SOURCE DESTINATION",
		.summary = "where a flow goes, and why",
		.details =
			"ringway explain tcp 198.51.100.7:40000 203.0.113.10:443\n\n"
			"Service, hashes, the flow's bucket at the gate and the threshold, what both "
			"rings pick, its entry in the flow table, and the backend. A running dataplane "
			"is asked itself; without one the node's snapshot answers, by the same code.\n\n"
			"With -f FILE a snapshot image answers and nobody is asked: the dataplane keeps "
			"its own as snapshot.img in the run directory.",
		.options = CLI_BIT(CLI_FILE),
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID),
		.run = explain_run,
	},
	{
		.noun = "service",
		.verb = "list",
		.summary = "all services",
		.rows = "services",
		.columns = service_columns,
		.run = request_run,
	},
	{
		.noun = "service",
		.verb = "show",
		.operands = "SERVICE",
		.summary = "one service",
		.answers = ANSWER(NOT_FOUND),
		.run = request_run,
	},
	{
		.noun = "pool",
		.verb = "list",
		.summary = "all pools",
		.rows = "pools",
		.columns = pool_columns,
		.run = request_run,
	},
	{
		.noun = "pool",
		.verb = "show",
		.operands = "POOL",
		.summary = "one pool and its backends",
		.answers = ANSWER(NOT_FOUND),
		.rows = "members",
		.run = request_run,
	},
	{
		.noun = "backend",
		.verb = "list",
		.operands = "[POOL]",
		.summary = "all backends, or those of one pool",
		.flags = CLI_STREAMS,
		.answers = ANSWER(NOT_FOUND),
		.rows = "backends",
		.columns = backend_columns,
		.run = request_run,
	},
	{
		.noun = "backend",
		.verb = "show",
		.operands = "POOL BACKEND",
		.summary = "one backend",
		.flags = CLI_STREAMS,
		.answers = ANSWER(NOT_FOUND),
		.run = request_run,
	},
	{
		.noun = "backend",
		.verb = "add",
		.operands = "POOL BACKEND",
		.summary = "add a backend to a pool",
		.options = CLI_BIT(CLI_ADDRESS) | CLI_BIT(CLI_PORT) | CLI_BIT(CLI_WEIGHT) |
			CLI_BIT(CLI_TAGS) | CLI_BIT(CLI_STATE),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = change_run,
	},
	{
		.noun = "backend",
		.verb = "set",
		.operands = "POOL BACKEND",
		.summary = "change weight, state or tags of a backend",
		.options = CLI_BIT(CLI_WEIGHT) | CLI_BIT(CLI_TAGS) | CLI_BIT(CLI_STATE),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = change_run,
	},
	{
		.noun = "backend",
		.verb = "drain",
		.operands = "POOL BACKEND",
		.summary = "no new flows for a backend; it keeps those that it has",
		.details = "Its keys go to the next backends along the ring, and come back with "
			   "`backend set POOL BACKEND --state up`.",
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = change_run,
	},
	{
		.noun = "backend",
		.verb = "del",
		.operands = "POOL BACKEND",
		.summary = "take a backend out of its pool; its flows choose again",
		.flags = CLI_MUTATES | CLI_DANGER,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = change_run,
	},
	{
		.noun = "cutover",
		.verb = "list",
		.summary = "all cutovers that are under way",
		.flags = CLI_STREAMS,
		.rows = "cutovers",
		.columns = cutover_columns,
		.run = request_run,
	},
	{
		.noun = "cutover",
		.verb = "show",
		.operands = "POOL",
		.summary =
			"one cutover on a page: where it is, why, what it waits for, what to type next",
		.details =
			"What moves, state and since when, the reason and whose, stage and steps, locks "
			"and overrides with their time left, what a rollback would cost now; each "
			"datacenter with its nodes; each guard with value, limit and age. --json gives "
			"the document and all of these as fields.",
		.flags = CLI_STREAMS,
		.answers = ANSWER(NOT_FOUND),
		.run = cutover_show_run,
	},
	{
		.noun = "cutover",
		.verb = "set",
		.operands = "POOL",
		.summary = "start a cutover to another ring by hand, or move its share",
		.details =
			"In a cutover that was planned: a step by hand inside its stage, for --dc or all "
			"of the stage's datacenters; it then waits for `advance`. Without a plan, with "
			"--to it starts: both rings are in memory, the new one at --share, 0% when not "
			"given. Later calls give --share alone. Raising the share never moves a flow "
			"back; lowering it undoes exactly what raising did; established flows stay.",
		.options = CLI_BIT(CLI_TO) | CLI_BIT(CLI_POINTS) | CLI_BIT(CLI_BALANCE) |
			CLI_BIT(CLI_SHARE) | CLI_BIT(CLI_CAP) | CLI_BIT(CLI_DATACENTER) |
			CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_ALLOW_NODE_CHURN) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "rollback",
		.operands = "POOL",
		.summary = "all new flows back to the old ring, at once, from any state",
		.details =
			"Needs no rebuild and asks for no generation. Both rings stay; established "
			"flows stay where they are. With --move-established those that the new ring "
			"picked go back, too, each at its next packet: connections of theirs break "
			"wherever the rings differ. It says first how many that are, as far as nodes "
			"have counted, and asks; it can be said after a rollback as well, and ends "
			"with discard, set or override.",
		.options = CLI_BIT(CLI_DATACENTER) | CLI_BIT(CLI_LOCAL) |
			CLI_BIT(CLI_MOVE_ESTABLISHED) | CLI_BIT(CLI_YES),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(REFUSED),
		.run = cutover_rollback_run,
	},
	{
		.noun = "cutover",
		.verb = "retire",
		.operands = "POOL",
		.summary = "end a cutover at 100%: the new ring is the only one",
		.options = CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES | CLI_DANGER,
		.answers = ANSWER(NOT_FOUND) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "discard",
		.operands = "POOL",
		.summary = "end a cutover at 0%: the old ring is the only one",
		.options = CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES | CLI_DANGER,
		.answers = ANSWER(NOT_FOUND) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "plan",
		.summary = "compute what a cutover would do; change nothing",
		.details =
			"Reads a cutover.yaml (docs/cutover.md) and measures both rings: churn by exact "
			"arithmetic (--traffic weighs it by a sample of flows, too), balance before and "
			"after, memory, the surge of origin traffic of each step, what a rollback costs after it, the largest safe step, soak times. The plan is bound to the node's "
			"generation; `cutover stage PLAN` takes it while that stands.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_FLOWS) | CLI_BIT(CLI_POOLS_FILE) |
			CLI_BIT(CLI_TRAFFIC),
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = cutover_plan_run,
	},
	{
		.noun = "cutover",
		.verb = "stage",
		.operands = "PLAN",
		.summary = "put both rings into every node's memory, the new one at 0%",
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "start",
		.operands = "POOL",
		.summary = "begin the first step of the first stage",
		.options =
			CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_ALLOW_NODE_CHURN) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "advance",
		.operands = "POOL",
		.summary = "open a gate: on to the next stage, or to FULL",
		.details = "With --force and --reason also while a step still soaks.",
		.options =
			CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_ALLOW_NODE_CHURN) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "pause",
		.operands = "POOL",
		.summary = "freeze all shares where they are",
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "resume",
		.operands = "POOL",
		.summary = "go on after a pause: the last share is taken over and soaked anew",
		.options = CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_REVISION) | CLI_BIT(CLI_LOCAL),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "override",
		.operands = "POOL",
		.summary = "hold datacenters at a share for some time, whatever their stage says",
		.options = CLI_BIT(CLI_DATACENTER) | CLI_BIT(CLI_SHARE) | CLI_BIT(CLI_TTL) |
			CLI_BIT(CLI_CLEAR) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT) | ANSWER(REFUSED),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "lock",
		.operands = "POOL",
		.summary = "keep others from moving it; rollback and pause heed no lock",
		.options = CLI_BIT(CLI_TTL) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "unlock",
		.operands = "POOL",
		.summary = "give the lock back; another's with --force and --reason",
		.options = CLI_BIT(CLI_FORCE) | CLI_BIT(CLI_REVISION),
		.flags = CLI_MUTATES,
		.answers = ANSWER(NOT_FOUND) | ANSWER(CONFLICT),
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "kill-switch",
		.operands = "STATE",
		.summary = "on: no pool takes its new ring on this node; off: it follows the fleet",
		.flags = CLI_MUTATES,
		.run = cutover_change_run,
	},
	{
		.noun = "cutover",
		.verb = "history",
		.operands = "POOL",
		.summary = "everything that happened to a pool's cutovers, from the audit log",
		.rows = "events",
		.columns = event_columns,
		.run = request_run,
	},
	{
		.noun = "cutover",
		.verb = "watch",
		.operands = "POOL",
		.summary = "the page of `show` with what flows do on both rings, again and again",
		.details =
			"For each datacenter, from the statements that its nodes write every two "
			"seconds: new flows, packets and drops a second on both rings; since the watch "
			"began or the share changed, the share that the new ring got beside the "
			"intended one, early aborts of each ring, and how often both rings differed on "
			"sampled flows, beside the churn of the plan; memory of both processes, huge "
			"pages and rings; starts by phase. External figures are the guards' values "
			"with their age. On a terminal it redraws in place, elsewhere it writes a page "
			"an interval, with --json an object a line. --traces adds the newest lines of "
			"`trace selections` of this node.",
		.options = CLI_BIT(CLI_COUNT) | CLI_BIT(CLI_INTERVAL) | CLI_BIT(CLI_TRACES) |
			CLI_BIT(CLI_SHIFT),
		.answers = ANSWER(NOT_FOUND),
		.run = cutover_watch_run,
	},
	{
		.noun = "cutover",
		.verb = "wait",
		.operands = "POOL",
		.summary =
			"wait until the cutover is in a state; exit code 6 when the time is over",
		.details =
			"What for: --for=state=FULL. Ends with exit code 1 when a state is reached from which that "
			"one cannot come any more.",
		.options = CLI_BIT(CLI_FOR) | CLI_BIT(CLI_TIMEOUT),
		.answers = ANSWER(NOT_FOUND) | ANSWER(TIMEOUT),
		.run = cutover_wait_run,
	},
	{
		.noun = "node",
		.verb = "list",
		.summary = "all nodes of the fleet: what they use, and what they send to new rings",
		.flags = CLI_STREAMS,
		.rows = "nodes",
		.columns = node_columns,
		.run = request_run,
	},
	{
		.noun = "dc",
		.verb = "list",
		.summary = "all datacenters: how many nodes follow, and what their flows took",
		.flags = CLI_STREAMS,
		.rows = "datacenters",
		.columns = datacenter_columns,
		.run = request_run,
	},
	{
		.noun = "audit",
		.verb = "list",
		.summary = "the audit log: who did what, when and why",
		.rows = "events",
		.columns = event_columns,
		.run = request_run,
	},
	{
		.noun = "audit",
		.verb = "verify",
		.summary = "walk the chain of hashes: nothing was changed, left out or put in",
		.run = request_run,
	},
	{
		.noun = "ring",
		.verb = "verify",
		.summary =
			"compare the digests of every node's rings in cutovers; exit code 10 if they differ",
		.answers = ANSWER(DIFFERENT),
		.rows = "nodes",
		.columns = verify_columns,
		.run = ring_verify_run,
	},
	{
		.noun = "ring",
		.verb = "list",
		.summary = "all rings of the node: points, memory, digests",
		.details =
			"With -o wide also what the same ring would take as v1, and the digest of its points.",
		.rows = "rings",
		.columns = ring_columns,
		.run = request_run,
	},
	{
		.noun = "ring",
		.verb = "show",
		.operands = "RING",
		.summary = "a ring: its points, bytes, digests, and the share of each backend",
		.details = RING_REFERENCE,
		.options = CLI_BIT(CLI_FILE),
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.rows = "members",
		.run = ring_show_run,
	},
	{
		.noun = "ring",
		.verb = "diff",
		.operands = "FROM TO",
		.summary = "exactly what moves between two rings, for each backend, and why",
		.details = RING_REFERENCE
		"\n\nThe churn is exact arithmetic on the arcs of both rings. --traffic weighs it by a "
		"sample of flows: a ring hash and a weight a line. unavoidable is what the change "
		"of the target shares alone must move.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_TRAFFIC) | CLI_BIT(CLI_EXIT_CODE),
		.answers =
			ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED) | ANSWER(DIFFERENT),
		.rows = "servers",
		.run = ring_diff_run,
	},
	{
		.noun = "ring",
		.verb = "simulate",
		.operands = "[POOL]",
		.summary = "predict and simulate the balance and memory of a ring",
		.details =
			"Builds real rings of N backends (10.r.x.y:80), or of a pool's own with -f FILE "
			"POOL, and compares their spread with the "
			"formula sqrt((K-k)/(k(K+1))) for a backend with k of K points, taken as root mean "
			"square over the backends; with equal weights that is sqrt((N-1)/(Nk+1)).\n\n"
			"Equal hashes are cut to one. v1 and v2 give it to the lowest address, which costs "
			"the higher ones a part of their share that grows with the points; v3 gives it to "
			"a fair winner, and chooses which points of its chain a backend uses, so that weights "
			"are shares. --target-cv says how many points reach a spread. --sweep measures a "
			"range of points under both rules of ties.",
		.options = CLI_BIT(CLI_FILE) | CLI_BIT(CLI_BACKENDS) | CLI_BIT(CLI_WEIGHTS) |
			CLI_BIT(CLI_RING) | CLI_BIT(CLI_POINTS) | CLI_BIT(CLI_RUNS) |
			CLI_BIT(CLI_SEED) | CLI_BIT(CLI_WORKERS) | CLI_BIT(CLI_NODES) |
			CLI_BIT(CLI_TARGET_CV) | CLI_BIT(CLI_SWEEP) | CLI_BIT(CLI_SVG),
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND) | ANSWER(INVALID) | ANSWER(REFUSED),
		.run = simulate_run,
	},
	{
		.noun = "trace",
		.verb = "selections",
		.summary = "how new flows get their backend, as it happens",
		.details =
			"One line a flow: what both rings pick, its bucket at the gate and the "
			"threshold, where it goes, what the flow table said (miss, hit_other_worker, "
			"stale_backend, recalled) and what became of its entry (inserted, over_expired, "
			"over_unproven, over_oldest, refused, rewritten, not_stored). 1 of 2^K flows "
			"by their hash (K is 6 when not given), so that every node of a fleet shows "
			"the same flows; those that their worker knows need no backend and show "
			"nothing. Ends with --count, --seconds, an hour, or an interrupt; a reader "
			"that is killed leaves nothing running. One reader a node: two share the "
			"traces between them.",
		.options = CLI_BIT(CLI_SHIFT) | CLI_BIT(CLI_COUNT) | CLI_BIT(CLI_SECONDS) |
			CLI_BIT(CLI_SERVICE),
		.run = trace_selections_run,
	},
	{
		.noun = "drop",
		.verb = "list",
		.summary = "every reason why a packet is not forwarded",
		.details =
			"The names are stable: they are labels of the metrics and keys of `stats`.",
		.flags = CLI_OFFLINE,
		.rows = "drops",
		.columns = drop_columns,
		.run = drops_list_run,
	},
	{
		.noun = "help",
		.operands = "[NOUN] [VERB]",
		.summary = "say what a command does",
		.flags = CLI_OFFLINE,
		.answers = ANSWER(NOT_FOUND),
		.run = help_run,
	},
	{
		.noun = "version",
		.summary = "print the version",
		.flags = CLI_OFFLINE,
		.run = help_version_run,
	},
	{
		.noun = "completion",
		.operands = "SHELL",
		.summary = "print a completion script for bash, zsh or fish",
		.details = "For bash: source <(ringway completion bash).",
		.flags = CLI_OFFLINE,
		.run = help_completion_run,
	},
	{
		.noun = "man",
		.operands = "[PAGE]",
		.summary = "print the scdoc source of ringway(1), node.yaml(5) or pools.yaml(5)",
		.flags = CLI_OFFLINE | CLI_HIDDEN,
		.answers = ANSWER(NOT_FOUND),
		.run = help_man_run,
	},
};

const unsigned cli_command_count = sizeof(cli_commands) / sizeof(cli_commands[0]);
