#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 at every transition of a cutover, of the daemon and of the dataplane in turn: both come back with the share
# that they had, no share ever falls but by a rollback, and the cutover goes on from where it was.
. "$(dirname "$0")/fleet_lib.sh"

store="{type: file, path: $dir/store}"
write_pools
write_node n1 ams
cat >"$dir/cutover.yaml" <<-END
	pool: web
	to: {version: v2, points: 16}
	shadow: 0s
	full_soak: 0s
	retire_hold: 4s
	default_guards: false
	guards: [{kind: digest, window: 1s}]
	guard_passes: 1
	stages:
	  - {datacenters: all, steps: [10%, 40%], min_soak: 2s, require: manual}
	  - {datacenters: all, steps: [70%, 100%], min_soak: 2s, require: manual}
END

state() { at n1 cutover show web -o json | jq -r .state; }
state_is() { [ "$(state)" = "$1" ]; }
current() { [ "$(at n1 node list -o json | jq -r '.nodes[0].state')" = current ]; }
# Told by the dataplane itself, not by what the daemon would tell it.
live() { [ "$(at n1 explain tcp 198.51.100.7:40000 203.0.113.10:443 -o json | jq -r .source)" = dataplane ]; }

crashes=0 least=0
# crash NAME: kills one of the two processes, or both, and looks at what comes back.
crash() {
	local before after
	until_true 15 live || { echo "# $1: no dataplane"; return 1; }
	before=$(share_of n1)
	case $((crashes++ % 3)) in
	0) kill_process ringwayd-n1 && start_daemon n1 ;;
	1) kill_process dataplane-n1 && start_dataplane n1 ;;
	2) kill_process ringwayd-n1 && kill_process dataplane-n1 && start_dataplane n1 && start_daemon n1 ;;
	esac
	until_true 15 live || { echo "# $1: nobody answers"; return 1; }
	after=$(share_of n1)
	[ "$after" -ge "$before" ] && [ "$after" -ge "$least" ] || { echo "# $1: $before, then $after"; return 1; }
	least=$after
}

# step NAME STATE COMMAND...: does it, kills at once, and goes on until the state is there.
step() {
	local name=$1 goal=$2
	shift 2
	until_true 20 "$@" || { echo "# $*"; return 1; }
	crash "$name" || return 1
	until_true 40 state_is "$goal"
}

start_dataplane n1
start_daemon n1
ok "a node" until_true 20 current
plan=$(at n1 cutover plan -f "$dir/cutover.yaml" -o json | jq -r .plan)
ok "stage: killed and back, staged" step stage staged at n1 cutover stage "$plan" --reason test
ok "again while STAGED" crash staged
ok "start: killed while SHIFTING, on to SOAKING" step start soaking at n1 cutover start web --reason test
ok "killed while SOAKING, on to the gate" step soaking gated true
ok "killed while GATED" crash gated
ok "advance: killed at once, on to the next gate" step advance gated at n1 cutover advance web --reason test
ok "pause: killed at once, still paused" step pause paused at n1 cutover pause web --reason test
ok "killed while PAUSED" crash paused
ok "resume: killed at once, on to the gate" step resume gated at n1 cutover resume web --reason test
ok "full: killed at once" step full full at n1 cutover advance web --reason test
ok "killed while FULL" crash full
ok "everything takes the new ring" [ "$(share_of n1)" = 4294967296 ]
ok "retire: killed while RETIRING, on to RETIRED" step retire retired at n1 cutover retire web --yes --reason test
only_new() { [ "$(at n1 ring list -o json | jq -c '[.rings[].version]')" = '["v2"]' ]; }
ok "the new ring is the only one" until_true 30 only_new
least=0
ok "killed while RETIRED" crash retired
ok "and still is" until_true 10 only_new

sed -i 's/to: .*/to: {version: v1}/' "$dir/cutover.yaml"
until_true 20 current
plan=$(at n1 cutover plan -f "$dir/cutover.yaml" -o json | jq -r .plan)
ok "a second cutover" step stage staged at n1 cutover stage "$plan" --reason test
ok "on its way" step start soaking at n1 cutover start web --reason test
at n1 cutover rollback web --reason test >/dev/null 2>&1
least=0
ok "rollback: killed while ROLLING_BACK" crash rollback
ok "at 0" [ "$(share_of n1)" = 0 ]
ok "rolled back" until_true 20 state_is rolled_back
ok "killed while ROLLED_BACK" crash rolled_back
ok "still at 0" [ "$(share_of n1)" = 0 ]
ok "discard: killed at once" step discard discarded at n1 cutover discard web --yes --reason test
ok "the old ring is the only one" until_true 30 only_new
ok "the audit log is whole" at n1 audit verify
echo "# $crashes crashes"
echo "1..$number"
exit $failed
