#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pool moves from its v1 to its v2 ring and back while long downloads run: new flows split as asked, established ones
# never move, and the way back is one command.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
sandbox "$@"
start_balancer

start_downloads d4 4 40
start_downloads d6 6 20
wait_for 10 downloads_run d4 40
wait_for 10 downloads_run d6 20

# moves_to PERCENT [OPTIONS of cutover set...]
moves_to() {
	local percent=$1
	shift
	check "$percent %: set" ringway cutover set web "$@" --share "$percent%"
	before=$(new_flows)
	check "$percent %: shares as intended" \
		shares_match "$(intended_mix web web@v2:16 "$(jq -n "$percent / 100")")" 4 1000
	check "$percent %: IPv6, too" \
		shares_match "$(intended_mix web web@v2:16 "$(jq -n "$percent / 100")")" 6 1000
	check "$percent %: rings as asked" split_matches "$before" "$(jq -n "$percent / 100")"
	check "$percent %: IPv4 downloads go on" downloads_run d4 40
	check "$percent %: IPv6 downloads go on" downloads_run d6 20
}

moves_to 0 --to v2 --points 16
moves_to 10
moves_to 50
moves_to 100
check "the same share again is nothing to do" ringway cutover set web --share 100%
check "discarding a ring in use is refused" exits 8 ringway cutover discard web --yes
check "rollback" ringway cutover rollback web --reason "test"
before=$(new_flows)
check "after it: shares of the old ring" shares_match "$(intended web)" 4 1000
check "after it: no flow on the new ring" split_matches "$before" 0
check "rollback twice is the same as once" ringway cutover rollback web --reason "test"
check "IPv4 downloads go on" downloads_run d4 40
check "IPv6 downloads go on" downloads_run d6 20
check "retiring the ring in use is refused" exits 8 ringway cutover retire web --yes
check "a stale generation is a conflict" exits 4 ringway cutover set web --share 10% --generation 1
check "an unknown pool is not found" exits 3 ringway cutover set nowhere --share 10%

# The whole way there and back, 2,001 thresholds, while new connections come, too.
spawn meanwhile c "$E2E_SOURCE/tests/e2e/clients.py" connect --to "$VIP4:80" --from "$CLIENTS4" --count 4000 --concurrency 8
sweep() {
	local percent
	for percent in $(seq 0 0.1 100) $(seq 99.9 -0.1 0); do
		ringway cutover set web --share "$percent%" || return 1
	done
}
check "sweep 0 -> 100 -> 0 % in steps of 0.1 %" sweep
check "every connection made meanwhile was answered" wait "${e2e_pids[meanwhile]}"
check "no IPv4 download broke or stalled" downloads_run d4 40
check "no IPv6 download broke or stalled" downloads_run d6 20
check "no established flow picked again" [ "$(counter flow_rerouted)" = 0 ]

check "to 100 % and retire" sh -c "'$RINGWAY' cutover set web --share 100% && '$RINGWAY' cutover retire web --yes"
check "shares of the new ring, which is the only one" shares_match "$(intended web@v2:16)" 4 1000
check "IPv4 downloads go on without their old ring" downloads_run d4 40
check "every byte was right: IPv4" stop d4
check "every byte was right: IPv6" stop d6
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
