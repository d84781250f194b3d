#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A fleet on one machine: 3 datacenters of 2 nodes, each with its ringwayd and its dataplane, and a real etcd.
#
#	        etcd (kill -9 and back)
#	  ams: a1 a2    waw: w1 w2    fra: f1 f2      each: ringwayd + ringway-dataplane (net_null, asleep)
#
# Validation -> small -> world to RETIRED with every process killed on the way, then a second cutover that is rolled
# back by one command. No network namespace is needed; hugepages are, so root is.
#
. "$(dirname "$0")/fleet_lib.sh"
command -v etcd >/dev/null || { echo "1..0 # SKIP needs etcd"; exit 0; }

start_etcd() {
	etcd --name m0 --data-dir "$dir/etcd" --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" \
		--listen-peer-urls "$peer_url" --initial-advertise-peer-urls "$peer_url" \
		--initial-cluster "m0=$peer_url" --log-level error >>"$dir/etcd.log" 2>&1 &
	pids[etcd]=$!
	until_true 15 env ETCDCTL_API=3 etcdctl --endpoints "$etcd_url" put ready yes
}

nodes="a1 a2 w1 w2 f1 f2"

all_current() {
	[ "$(at a1 node list -o json | jq '[.nodes[] | select(.state == "current")] | length')" = 6 ]
}

all_share() { # PPM: every dataplane really has that threshold
	local node
	for node in $nodes; do
		[ "$(share_of "$node")" = "$1" ] || return 1
	done
}

state() { at "${2:-a1}" cutover show web -o json | jq -r .state; }
is_state() { [ "$(state x "${2:-a1}")" = "$1" ]; }

# --- begin -----------------------------------------------------------------------------------------

etcd_url=http://127.0.0.1:$(free_port) peer_url=http://127.0.0.1:$(free_port)
store="{type: etcd, endpoints: [\"$etcd_url\"], prefix: /fleet}"
write_pools
cat >"$dir/cutover.yaml" <<-END
	pool: web
	to: {version: v2, points: 16}
	shadow: 0s
	full_soak: 0s
	retire_hold: 1s
	default_guards: false
	guards:
	  - {kind: digest, window: 1s}
	  - {kind: missing, window: 1s}
	guard_passes: 1
	stages:
	  - {datacenters: [ams], steps: [1%], min_soak: 1s, require: manual}
	  - {datacenters: [ams, waw], steps: [10%, 50%], min_soak: 1s}
	  - {datacenters: all, steps: [10%, 50%, 100%], min_soak: 1s, missing_nodes_max: 1}
END
start_etcd || { echo "Bail out! etcd did not start"; failed=1; exit 1; }
for node in a1 a2; do write_node $node ams; done
for node in w1 w2; do write_node $node waw; done
for node in f1 f2; do write_node $node fra; done
for node in $nodes; do start_dataplane $node; done
for node in $nodes; do start_daemon $node; sleep 0.3; done
ok "six nodes take the fleet's document into use" until_true 30 all_current
[ $failed = 0 ] || exit 1

plan_of() { at a1 cutover plan -f "$dir/cutover.yaml" -o json | jq -r .plan; }
plan=$(plan_of)
at a1 cutover plan -f "$dir/cutover.yaml" | sed 's/^/# /'
ok "a plan changes nothing" [ "$(at a1 cutover list -o json | jq '.cutovers | length')" = 0 ]
at w1 backend set web b3 --weight 11 --reason "to make the plan stale" >/dev/null 2>&1
until_true 10 all_current
at a1 cutover stage "$plan" >"$dir/stale" 2>&1
ok "a stale plan is refused with what changed" [ $? = 4 ]
sed 's/^/# /' "$dir/stale"
plan=$(plan_of)
ok "stage" at a1 cutover stage "$plan" --reason test
all_prepared() {
	[ "$(at w2 cutover show web -o json | jq '[.datacenters_now[].prepared] | add')" = 6 ]
}
ok "every node holds both rings" until_true 20 all_prepared
ok "digests are equal everywhere" at f1 ring verify
ok "nobody sends anything to the new ring" all_share 0
ok "start on another node" at f2 cutover start web --reason test
ok "the first stage ends at its gate" at a1 cutover wait web --for=state=GATED --timeout 30

# Two operators at once.
at a1 cutover advance web --reason one >"$dir/one" 2>&1 &
one=$!
at f1 cutover advance web --reason two >"$dir/two" 2>&1
two=$?
wait $one
one=$?
ok "of two operators exactly one wins, the other gets 4" [ "$(printf '%s\n' $one $two | sort | tr '\n' ' ')" = "0 4 " ]
cat "$dir/one" "$dir/two" | sed 's/^/# /'

# Whoever conducts is killed, and etcd dies for a while: frozen, never reset.
conductor=$(ETCDCTL_API=3 etcdctl --endpoints "$etcd_url" get /fleet/locks/conductor --print-value-only)
echo "# $conductor conducts"
kill_process "ringwayd-$conductor"
before=$(at "$([ "$conductor" = a1 ] && echo a2 || echo a1)" cutover show web -o json | jq -c '[.datacenters[].share]')
kill_process etcd
sleep 3
other=$([ "$conductor" = w1 ] && echo w2 || echo w1)
ok "without the store every node stays where it is" [ "$(share_of "$other")" -gt 0 ]
start_daemon "$conductor" # without its store: from the run directory
until_true 30 at "$conductor" status # it looks for the store twice, 5 s each
ok "a daemon that starts without the store keeps its share" [ "$(share_of "$conductor")" != "" ]
ok "rollback on one node works without the store" at "$other" cutover rollback web --local --reason "store is down"
ok "it is at 0 there" [ "$(share_of "$other")" = 0 ]
start_etcd
ok "resume on that node" at "$other" cutover resume web --local --reason "store is back"

# kill -9 of a daemon and of a dataplane in every state from here to the end.
pass_on() {
	local now
	now=$(state x a1 2>/dev/null)
	case $now in
	gated) at a1 cutover advance web --reason test >/dev/null 2>&1 ;;
	paused) at a1 cutover resume web --reason test >/dev/null 2>&1 ;;
	esac
	[ "$now" = full ]
}
ok "it goes on to FULL by itself" until_true 120 pass_on
all=4294967296
ok "every dataplane sends everything to the new ring" until_true 10 all_share $all
kill_process dataplane-f2
start_dataplane f2
ok "a dataplane that was killed comes back with its share" until_true 20 eval '[ "$(share_of f2)" = '$all' ]'
ok "retire, once that node says that it follows" until_true 20 at a1 cutover retire web --yes --reason test
ok "it is retired" at a1 cutover wait web --for=state=RETIRED --timeout 30
only_new() { [ "$(at "$1" ring list -o json | jq -c '[.rings[].version]')" = '["v2"]' ]; }
all_new() { for node in $nodes; do only_new $node || return 1; done; }
ok "only the new ring is left on every node" until_true 30 all_new
ok "rollback of what is retired is refused" eval 'at a1 cutover rollback web --reason late 2>/dev/null; [ $? = 4 ]'

# --- and back --------------------------------------------------------------------------------------

sed -i 's/to: .*/to: {version: v1}/; s/\[ams\], steps: \[1%\]/[ams], steps: [30%]/' "$dir/cutover.yaml"
until_true 10 all_current
plan=$(plan_of)
ok "a second cutover is staged" at a1 cutover stage "$plan" --reason test
until_true 20 all_prepared
ok "and started" at a1 cutover start web --reason test
ok "to its gate" at a1 cutover wait web --for=state=GATED --timeout 30
ok "a pause is heeded" at a1 cutover pause web --reason "look at it"
ok "rollback is one command from PAUSED, thresholds 0 on every node within a second" \
	at w1 cutover rollback web --reason "test is over"
ok "every dataplane is at 0" all_share 0
ok "it is rolled back" at a1 cutover wait web --for=state=ROLLED_BACK --timeout 20
ok "the rejected ring is discarded" at a1 cutover discard web --yes --reason test
ok "only the old ring is left on every node" until_true 30 all_new
ok "the audit log is whole" at f1 audit verify
at a1 cutover history web | cut -c1-160 | sed 's/^/# /'
echo "1..$number"
exit $failed
