#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Guards at work on real traffic: a figure that is missing pauses; a backend of the new ring that swallows connections
# takes the cutover back by itself; clients that make a backend hot pause; a gate waits for its hook, which is absent, hangs,
# and says no before it says yes; mended, the cutover runs to RETIRED. A real Prometheus answers the queries.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
E2E_TOOLS="$E2E_TOOLS prometheus curl"
sandbox "$@"

NODE=$E2E_WORK/node.yaml
sed 's/^run_dir:/metrics: "127.0.0.1:9464"\nrun_dir:/' "$E2E_SOURCE/configs/demo/node.yaml" > "$NODE"
# The new ring has a fifth backend; four points of five that move go there or come from there.
# IPv6 clients have a home, on subset rings of their own.
sed -e '/name: http-v6/,$ s/pool: web/&\n    affinity: client\n    requires: [six]/' -e 's/weight: [48]0/&, tags: [six]/' \
	"$POOLS" > "$E2E_WORK/pools.yaml"
POOLS=$E2E_WORK/pools.yaml
# A pool that no client asks, for a cutover beside the one that is watched.
sed -i -e '/^services:/i\  - {name: side, ring: {version: v1}, backends: [{name: s1, address: 10.10.1.2}, {name: s2, address: 10.10.2.2}]}' \
	-e '$a\  - {name: side, address: 203.0.113.10, protocol: tcp, ports: [81], pool: side}' "$POOLS"
sed 's/- {name: b4, /- {name: b5, address: 10.10.5.2, weight: 80, tags: [six]}\n      &/' "$POOLS" > "$E2E_WORK/pools-new.yaml"

need_hugepages
make_network 5 80
for i in 1 2 3 4 5; do
	attach_decap "$i"
done
start_dataplane
start_ringwayd
ringway apply -f "$POOLS" >> "$E2E_WORK/apply.log" 2>&1

cat > "$E2E_WORK/prometheus.yml" << END
global: {scrape_interval: 1s}
scrape_configs: [{job_name: ringway, static_configs: [{targets: ["127.0.0.1:9464"]}]}]
END
spawn prometheus lb prometheus --config.file "$E2E_WORK/prometheus.yml" --storage.tsdb.path "$E2E_WORK/tsdb" \
	--web.listen-address 127.0.0.1:9090
prometheus_says() {
	on lb curl -s "http://127.0.0.1:9090/api/v1/query" --data-urlencode "query=$1" | jq -e '.data.result | length == 1'
}
wait_for 20 prometheus_says 'min(up) == 1'

# spec QUERY [GUARD]: a cutover of two steps, watched closely.
spec() {
	local guard=${2:-"{kind: load, window: 4s}"}
	cat > "$E2E_WORK/cutover.yaml" << END
pool: web
to: {version: v2, points: 16}
shadow: 2s
full_soak: 0s
retire_hold: 1s
prometheus: http://127.0.0.1:9090
default_guards: false
guard_passes: 2
guards:
  - {kind: new_drops, window: 2s}
  - {kind: early_abort, difference: 10%, window: 4s, failures: 2}
  - {kind: share, window: 4s}
  - {kind: digest, window: 2s}
  - {name: alive, query: '$1', direction: below, pause: 0.5, window: 2s}
  - $guard
stages:
  - {datacenters: all, steps: [50%, 100%], min_soak: 5s}
END
}

stage() {
	ringway cutover plan -f "$E2E_WORK/cutover.yaml" --pools "$E2E_WORK/pools-new.yaml" -o json > "$E2E_WORK/plan.json"
	ringway cutover stage "$(jq -r .plan "$E2E_WORK/plan.json")" --reason test
}

# state_is STATE [POOL]
state_is() {
	ringway cutover show "${2:-web}" -o json | jq -e --arg state "$1" '.state == $state'
}

noted() {
	ringway cutover history web | grep -F "$1"
}

# exported SERIES VALUE
exported() {
	on lb curl -s http://127.0.0.1:9464/metrics | grep -xF "$1 $2"
}

start() {
	wait_for 15 ringway cutover start web --reason test
}

traffic() {
	while :; do
		on c "$E2E_SOURCE/tests/e2e/clients.py" connect --to "$VIP4:80" --from "$CLIENTS4" --count 200 \
			--concurrency 50 --timeout 4 > /dev/null || true
		sleep 0.2
	done
}

start_downloads d4 4 20
wait_for 10 downloads_run d4 20
traffic &
e2e_pids[traffic]=$!

# The hit ratio is what Prometheus says when the plan is made, or there is no plan.
spec 'min(up)'
plan_with() {
	sed "1i hit_ratio: {query: '$1'}" "$E2E_WORK/cutover.yaml" > "$E2E_WORK/queried.yaml"
	ringway cutover plan -f "$E2E_WORK/queried.yaml" --pools "$E2E_WORK/pools-new.yaml" "${@:2}"
}
measured() {
	plan_with 'vector(0.95)' -o json | jq -e '.hit_ratio.value == 0.95 and .hit_ratio.source == "prometheus" and
		.hit_ratio.age_s >= 0 and .spec.hit_ratio == {query: "vector(0.95)", value: 0.95} and .steps[0].surge > 0 and
		.steps[0].rollback_late > 0 and .flows_source == "measured" and .steps[0].flows_per_second > 0'
}
check "a plan has the hit ratio from Prometheus and the flows from its nodes" wait_for 10 measured
plan_with 'vector(0.95)' > "$E2E_WORK/plan.txt"
sed 's/^/# /' "$E2E_WORK/plan.txt"
in_columns() {
	! grep -E '.{121}' "$E2E_WORK/plan.txt"
}
check "in 120 columns" in_columns
# refused QUERY WHY
refused() {
	exits 1 plan_with "$1" 2> "$E2E_WORK/refusal" && grep -F "the hit ratio is not known: $2" "$E2E_WORK/refusal"
}
check "a query without a value makes no plan" refused 'no_such_metric' "the query has 0 values, not one"
check "nor one with several" refused 'up or vector(0.5)' "the query has 2 values, not one"
check "nor NaN" refused 'vector(0) / 0' "the query's value is no number"
check "nor a percentage" refused 'vector(95)' "95 is no hit ratio"
check "nor nonsense" refused 'rate(' 'invalid parameter "query"'

# A query without a value is no pass.
spec 'no_such_metric'
check "stage a cutover that changes the backends, too" stage
check "start" start
check "missing data pauses" wait_for 30 state_is paused
# paused_for PAUSE GUARD
paused_for() {
	ringway cutover show web -o json |
		jq -e --arg pause "$1" --arg guard "$2" '.pause == $pause and (.reason | startswith($guard))'
}
check "and says which and why" paused_for guard_inconclusive alive
check "resume is refused while it still fails" exits 8 ringway cutover resume web --reason test
check "rollback" ringway cutover rollback web --reason test
check "rolled back" wait_for 10 state_is rolled_back
check "discard" ringway cutover discard web --yes

# The fifth backend takes packets and answers nothing: clients send their SYN again.
spec 'min(up)'
ip -n b5 addr del "$VIP4/32" dev lo
check "stage the cutover to the broken backend" stage
check "start it" start
check "it goes back by itself" wait_for 60 state_is rolled_back
because() {
	ringway cutover show web -o json | jq -r .reason | tee "$E2E_WORK/reason" | grep -q "^$1"
}
check "because flows of the new ring end early" because early_abort
sed 's/^/# /' "$E2E_WORK/reason"
check "which a metric says" exported 'ringway_cutover_held{pool="web",reason="rollback_guard",guard="early_abort"}' 1
check "and the audit log says" noted "early_abort: "
before=$(new_flows)
check "nothing goes there any more" shares_match "$(intended web)" 4 1000
check "no flow takes the new ring" split_matches "$before" 0
check "downloads never noticed" downloads_run d4 20
check "discard it" ringway cutover discard web --yes

ip -n b5 addr add "$VIP4/32" dev lo

# Two clients of a service where each client has its backend make as many connections as all others together.
hot_clients() {
	while :; do
		on c "$E2E_SOURCE/tests/e2e/clients.py" connect --to "[$VIP6]:80" --from "${CLIENTS6%/*}/126" --count 400 \
			--concurrency 50 --timeout 4 > /dev/null || true
	done
}
hot_clients &
e2e_pids[hot]=$!
spec 'min(up)' '{kind: load, window: 2s, failures: 2}'
check "stage a cutover while two clients are half of the traffic" stage
check "start that" start
check "the backend that got too much pauses it" wait_for 40 state_is paused
check "because of its load" paused_for guard load
ringway cutover show web -o json | jq -r .reason | sed 's/^/# /'
check "which a metric says, too" exported 'ringway_cutover_held{pool="web",reason="guard",guard="load"}' 1
check "and what the guard said" wait_for 5 exported \
	'ringway_cutover_guard_verdict{pool="web",guard="load",kind="load",dry_run="false"}' 1
check "and the audit log" noted "load: b"
kill "${e2e_pids[hot]}"
check "roll that back" ringway cutover rollback web --reason test
check "that is rolled back" wait_for 10 state_is rolled_back
check "by the operator, says the metric" wait_for 5 exported \
	'ringway_cutover_held{pool="web",reason="rollback_operator",guard=""}' 1
check "discard that" ringway cutover discard web --yes

# Mended, the plan runs through, but for a gate.
HOOK=http://127.0.0.1:9070/ok
spec 'min(up)'
sed -i '/^stages:/,$d' "$E2E_WORK/cutover.yaml"
cat >> "$E2E_WORK/cutover.yaml" << END
hook: $HOOK
stages:
  - {datacenters: all, steps: [50%], min_soak: 5s, require: hook}
  - {datacenters: all, steps: [100%], min_soak: 5s}
END
shadow() {
	jq -nc --argjson a "$1" --argjson b "$(stats | jq -c .counters)" \
		'{same: ($b.shadow_same - $a.shadow_same), different: ($b.shadow_different - $a.shadow_different)}'
}
check "stage it again" stage
before=$(stats | jq -c .counters)
check "start it again" start
memory_of() {
	ringway ring list -o json | jq '[.rings[] | select(.pool == "web") | .node_bytes] | add'
}
during=$(memory_of)
# What an operator watches, at the first step: both rings' flows, the share beside the intended one, memory, starts.
watched() {
	ringway cutover watch web --count 2 --interval 4 -o json > "$E2E_WORK/watched" || return
	jq -se 'length == 2 and (.[1].datacenters_now[0] | .live as $live | .ratios as $ratios
		| ($live.intended_ppm / 1e6) as $want | $want == 0.5 and $live.nodes == 1
		and .rates.old.flows > 0 and .rates.new.flows > 0 and .rates.old.packets > 0 and .rates.new.packets > 0
		and $ratios.flows > 100 and $ratios.shadow_flows > 0
		and ($ratios.new_share - $want | fabs) < 4 * ($want * (1 - $want) / $ratios.flows | sqrt)
		and $live.dataplane_resident_bytes > 0 and $live.daemon_resident_bytes > 0 and $live.hugepage_bytes > 0
		and $live.old.ring_bytes > 0 and $live.new.ring_bytes > 0
		and ($live.dataplane_startup_ns | length == 5 and all(.[]; . > 0))
		and ($live.daemon_startup_ns | length == 3 and all(.[]; . > 0)))
		and (.[1].churn | . > 0 and . < 1) and .[1].members.added == 1' "$E2E_WORK/watched"
}
check "watch shows flows of both rings, shares, memory and starts" wait_for 30 watched
jq -c '.datacenters_now[0] | {rates, ratios}' "$E2E_WORK/watched" | sed 's/^/# /'
traced() {
	ringway cutover watch web --count 2 --interval 2 --traces --shift 0 -o json |
		jq -se '.[1].traces | length == 8 and all(.[]; .service != null and .entry == "inserted"
			and .uses_new == (.bucket < .threshold))'
}
check "and the newest selections, when asked" wait_for 20 traced
ringway cutover watch web --count 1 | sed 's/^/# /'
hook_said() {
	ringway cutover show web -o json | jq -e --arg text "$1" '.guards[] | select(.name == "hook") | .text == $text'
}
check "guards let it go to its gate" wait_for 60 state_is gated
check "where nobody answers for the hook" wait_for 15 hook_said "hook gave no answer: Couldn't connect to server"
spawn hook lb python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 9070))
time.sleep(600)'
check "then the hook hangs" wait_for 20 hook_said "hook gave no answer: Timeout was reached"
side() {
	cat > "$E2E_WORK/side.yaml" << END
pool: side
to: {version: v2, points: 16}
shadow: 0s
full_soak: 0s
retire_hold: 1s
default_guards: false
guards: [{kind: digest, window: 1s}]
stages: [{datacenters: all, steps: [1%, 100%], min_soak: 1s}]
END
	ringway cutover stage "$(ringway cutover plan -f "$E2E_WORK/side.yaml" -o json | jq -r .plan)" --reason test
	wait_for 15 ringway cutover start side --reason test
	wait_for 30 state_is full side
}
check "the cutover of another pool goes on meanwhile" side
check "and the gate is still closed" state_is gated
kill "${e2e_pids[hook]}"
# hook_answers STATUS
hook_answers() {
	cat > "$E2E_WORK/hook.conf" << END
daemon off; worker_processes 1; pid $E2E_WORK/hook.pid; error_log stderr warn;
events { worker_connections 64; }
http { access_log off; server { listen 127.0.0.1:9070; location = /ok { return $1; } } }
END
}
hook_answers 403
spawn hook lb nginx -p "$E2E_WORK" -c "$E2E_WORK/hook.conf" -e stderr
check "then it says no" wait_for 20 hook_said "hook answered 403"
check "which a metric says" exported \
	'ringway_cutover_guard_verdict{pool="web",guard="hook",kind="hook",dry_run="false"}' 1
check "a no opens nothing" state_is gated
hook_answers 200
kill -HUP "${e2e_pids[hook]}"
check "a yes opens the gate, and guards let it go to FULL" wait_for 90 state_is full
check "the audit log names the hook" noted "stage 1: its hook $HOOK said yes"
# Both rings were asked for sampled new flows all the way: that is the churn as packets show it.
churn_matches() {
	local seen
	seen=$(shadow "$before")
	echo "plan $(jq .churn "$E2E_WORK/plan.json"), shadow $seen"
	jq -ne --argjson s "$seen" --argjson plan "$(jq .churn "$E2E_WORK/plan.json")" \
		'($s.same + $s.different) as $n | $n > 100 and
		(($s.different / $n - $plan) | fabs) < 4 * (($plan * (1 - $plan) / $n) | sqrt)' > /dev/null
}
check "predicted churn is what packets showed" churn_matches
churn_matches | sed 's/^/# /'
check "downloads never noticed that either" downloads_run d4 20
check "retire" ringway cutover retire web --yes --reason test
check "retired" wait_for 15 state_is retired
only_new() {
	ringway ring list -o json | jq -e '[.rings[] | select(.pool == "web")] | length == 2 and all(.version == "v2")'
}
check "the old rings are gone" wait_for 10 only_new
echo "# rings of the node: $during bytes during, $(memory_of) after"
POOLS=$E2E_WORK/pools-new.yaml
check "shares of the new ring, fifth backend included" shares_match "$(intended web@v2:16)" 4 1000
check "the audit log is whole" ringway audit verify
ringway cutover history web | cut -c 1-150 | sed 's/^/# /'
kill "${e2e_pids[traffic]}"
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
