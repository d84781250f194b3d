#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hash seed leaked: the pool moves to a ring that differs in its seed alone, there and back and there again, while long
# downloads run. None moves; new flows are drawn anew as often as the plan says; what was retired outlives kill -9.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
sandbox "$@"
start_balancer

SEED=00112233445566778899aabbccddeeff
cat > "$E2E_WORK/cutover.yaml" << END
pool: web
to: {hash_seed: $SEED}
shadow: 0s
full_soak: 0s
retire_hold: 1s
default_guards: false
stages:
  - {datacenters: all, steps: [1%, 100%], min_soak: 1h}
END

start_downloads d4 4 40
start_downloads d6 6 20
wait_for 10 downloads_run d4 40
wait_for 10 downloads_run d6 20

stage() {
	ringway cutover plan -f "$E2E_WORK/cutover.yaml" -o json > "$E2E_WORK/plan.json" &&
		ringway cutover stage "$(jq -r .plan "$E2E_WORK/plan.json")" --reason leak
}
check "stage another hash seed" stage
ringway cutover plan -f "$E2E_WORK/cutover.yaml" | sed 's/^/# /'
churn=$(jq .churn "$E2E_WORK/plan.json")
check "start" wait_for 15 ringway cutover start web --reason leak

# share_is PERCENT: the dataplane's gate stands there.
share_is() {
	ringway explain tcp 198.51.100.1:1 "$VIP4:80" --json |
		jq -e --argjson p "$1" '.threshold == ($p * 42949672.96 | floor)'
}

# moves_to PERCENT: the backends get what they got before, since the points are the same; the gate lets through what was asked.
moves_to() {
	check "$1 %: set" ringway cutover set web --share "$1%" --force --reason leak
	check "$1 %: the gate follows" wait_for 10 share_is "$1"
	before=$(new_flows)
	check "$1 %: IPv4 shares as intended" shares_match "$(intended web)" 4 1000
	check "$1 %: IPv6 shares as intended" shares_match "$(intended web)" 6 1000
	check "$1 %: seeds as asked" split_matches "$before" "$(jq -n "$1 / 100")"
	check "$1 %: IPv4 downloads go on" downloads_run d4 40
	check "$1 %: IPv6 downloads go on" downloads_run d6 20
}

moves_to 0
moves_to 50
moves_to 100

# counted_churn: shadow comparisons of all flows so far, beside the plan: within five standard deviations.
counted_churn() {
	stats | jq -e --argjson plan "$churn" '.counters | (.shadow_same + .shadow_different) as $n |
		(.shadow_different / $n) as $seen | ($plan * (1 - $plan) / $n | sqrt) as $sigma |
		{plan: $plan, seen: $seen, flows: $n, sigmas: (($seen - $plan) / $sigma)},
		($n > 500 and ($seen - $plan | fabs) < 5 * $sigma)'
}
check "new flows are drawn anew as often as the plan says" counted_churn
counted_churn | jq -c 'objects' | sed 's/^/# /'

# The whole way back and there again, while new connections come, too.
spawn meanwhile c "$E2E_SOURCE/tests/e2e/clients.py" connect --to "$VIP4:80" --from "$CLIENTS4" --count 4000 --concurrency 8
sweep() {
	local percent
	for percent in $(seq 99 -1 0) $(seq 1 100); do
		ringway cutover set web --share "$percent%" --force --reason leak || return 1
		wait_for 10 share_is "$percent" || return 1
	done
}
check "sweep 100 -> 0 -> 100 % in steps of 1 %" sweep
check "every connection made meanwhile was answered" wait "${e2e_pids[meanwhile]}"
check "no IPv4 download broke or stalled" downloads_run d4 40
check "no IPv6 download broke or stalled" downloads_run d6 20
check "no established flow picked again" [ "$(counter flow_rerouted)" = 0 ]

# picks: where 200 new flows go.
picks() {
	local i
	for i in $(seq 200); do
		ringway explain tcp "198.51.100.9:$((20000 + i))" "$VIP4:80" --json | jq -r .backend.name
	done
}
picks > "$E2E_WORK/picks.full"
state_is() {
	ringway cutover show web -o json | jq -e --arg state "$1" '.state == $state'
}
check "advance past the soak" ringway cutover advance web --force --reason leak
check "full" wait_for 20 state_is full
check "retire" ringway cutover retire web --yes --reason leak
check "retired" wait_for 30 state_is retired
one_ring() {
	ringway ring list -o json | jq -e '[.rings[] | select(.pool == "web")] | length == 1'
}
check "one ring is left" wait_for 10 one_ring
picks > "$E2E_WORK/picks.retired"
check "the picks are those of the new ring" cmp "$E2E_WORK/picks.full" "$E2E_WORK/picks.retired"
check "IPv4 downloads go on without their old ring" downloads_run d4 40
check "every byte was right: IPv4" stop d4
check "every byte was right: IPv6" stop d6

applies_to_nothing() {
	ringway apply -f "$POOLS" -o json | jq -e '.changed == false'
}
check "the file, which knows no seed, keeps it" applies_to_nothing
sed "s/ring: {version: v1}/ring: {version: v1, hash_seed: ffeeddccbbaa99887766554433221100}/" "$POOLS" > "$E2E_WORK/other.yaml"
check "a third seed at once is refused" exits 8 ringway apply -f "$E2E_WORK/other.yaml"
check "nobody is shown the seed" sh -c "! { '$RINGWAY' config export; '$RINGWAY' cutover show web -o json;
	'$RINGWAY' pool list -o json; '$RINGWAY' cutover history web -o json; } | grep -q $SEED"

stop dataplane KILL || true
stop ringwayd KILL || true
start_dataplane
picks_offline() {
	local i
	for i in $(seq 200); do
		ringway explain -f "$RUN_DIR/snapshot.img" tcp "198.51.100.9:$((20000 + i))" "$VIP4:80" --json |
			jq -r .backend.address
	done
}
picks_offline > "$E2E_WORK/picks.image"
start_ringwayd
wait_for 10 ringway status
picks > "$E2E_WORK/picks.restarted"
check "the picks outlive kill -9 of both" cmp "$E2E_WORK/picks.full" "$E2E_WORK/picks.restarted"
sed 's/^b\([0-9]\)$/10.10.\1.2/' "$E2E_WORK/picks.full" > "$E2E_WORK/picks.addresses"
check "the dataplane's own image says the same" cmp "$E2E_WORK/picks.addresses" "$E2E_WORK/picks.image"
check "and connections are shared out by it" shares_match "$(intended web)" 4 1000
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
