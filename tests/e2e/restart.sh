#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What may die, and what may be sent that is wrong: connections go on, and the old state serves.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
sandbox "$@"
start_balancer

start_downloads d4 4 40
start_downloads d6 6 20
wait_for 10 downloads_run d4 40
wait_for 10 downloads_run d6 20
# Now most of these flows are where the new ring would not put them: only the flow table knows.
ringway cutover set web --to v2 --points 16 --share 100% > /dev/null
generation=$(stats | jq .generation)
half=$(intended_mix web web@v2:16 0.5)

# Each gets 50 kB a second: two seconds' worth of bytes, and none broke or stalled.
downloads_go_on() {
	downloads_get d4 4000000 && downloads_get d6 2000000 && downloads_run d4 40 && downloads_run d6 20
}

dataplane_says_what_it_kept() {
	grep "is back in use" "$E2E_WORK/dataplane.log"
}

for signal in TERM KILL; do
	stop ringwayd "$signal" || true
	check "SIG$signal to ringwayd: new flows without ringwayd" shares_match "$(intended web@v2:16)" 4 500
	check "downloads go on without ringwayd" downloads_go_on
	start_ringwayd
	check "ringwayd is back and changes nothing" [ "$(stats | jq .generation)" = "$generation" ]
	check "its cutover is as it was" sh -c "'$RINGWAY' cutover show web --json | jq -e '.share_ppm == 1000000'"
done

for round in 1 2; do
	stop dataplane KILL || true
	start_dataplane
	check "kill -9 of the dataplane, round $round: downloads go on" downloads_go_on
	check "round $round: no packet of theirs was unknown" [ "$(counter flow_miss_non_syn)" = 0 ]
	check "round $round: thresholds are as they were" shares_match "$(intended web@v2:16)" 4 500
done
stop dataplane TERM || true
start_dataplane
check "an orderly restart keeps the flows, too" downloads_go_on

check "ringwayd sets shares on the restarted dataplane" ringway cutover set web --share 50%
check "and they hold" shares_match "$half" 4 1000
stop dataplane KILL || true
check "a change while the dataplane is down is taken" ringway cutover set web --share 0%
start_dataplane
check "and reaches it when it is back" wait_for 15 shares_match "$(intended web)" 4 1000

for kind in garbage flipped cut unsealed stale overlong noise; do
	check "bad snapshot refused: $kind" "$E2E_SOURCE/tests/e2e/bad_snapshot.py" "$RUN_DIR" "$kind"
done
check "the old one serves" shares_match "$(intended web)" 6 500

cat > "$E2E_WORK/bad.yaml" << 'YAML'
pools:
  - name: web
    ring: {version: v9}
    backends:
      - {name: b1, address: 10.10.1.2, weight: 0}
      - {name: b1, address: 10.10.1.300}
services:
  - {name: http, address: 203.0.113.10, protocol: tcp, ports: [80], pool: nowhere, colour: red}
YAML
check "bad configuration: exit code 7" exits 7 ringway apply -f "$E2E_WORK/bad.yaml"
ringway apply -f "$E2E_WORK/bad.yaml" > "$E2E_WORK/bad.out" 2>&1 || true
for what in v9 "weight: 0" 10.10.1.300 nowhere colour; do
	check "it names '$what'" grep -F "$what" "$E2E_WORK/bad.out"
done
check "nothing was changed" shares_match "$(intended web)" 4 500
check "downloads lived through all of it" downloads_go_on
check "every byte was right: IPv4" stop d4
check "every byte was right: IPv6" stop d6
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
