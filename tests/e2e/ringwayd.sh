#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ringwayd and ringway-dataplane as processes, without traffic: what a restart of either changes (nothing), and that
# the dataplane comes to what the store says, whatever happened meanwhile.
. "$(dirname "$0")/lib.sh"
sandbox "$@"

RUN_DIR=/run/ringway
RINGWAY=$E2E_BUILD/control/cli/ringway
RINGWAYD=$E2E_BUILD/control/daemon/ringwayd
DATAPLANE=$E2E_BUILD/dataplane/io/ringway-dataplane
[ -x "$DATAPLANE" ] || skip_all "ringway-dataplane is not built"

cat > "$E2E_WORK/node.yaml" << EOF
node: lb-1
run_dir: $RUN_DIR
pools_file: $E2E_WORK/pools.yaml
store: {path: /run/store}
dataplane:
  eal: ["--no-huge", "-m", "128", "--no-pci", "--no-shconf"]
  workers: [1]
  idle: sleep
  flow_entries: 1024
  services: 16
  pools: 16
  backends: 256
  ports: [{device: net_null0, addresses: [192.0.2.10/24]}]
EOF
cat > "$E2E_WORK/pools.yaml" << EOF
pools:
  - name: web
    ring: {version: v1}
    backends:
      - {name: web-1, address: 10.0.0.11, weight: 10, tags: [nvme]}
      - {name: web-2, address: 10.0.0.12, weight: 20, tags: [nvme]}
      - {name: web-3, address: 10.0.0.13, weight: 10}
services:
  - {name: http, address: 203.0.113.10, protocol: tcp, ports: [80], pool: web}
  - {name: https, address: 203.0.113.10, protocol: tcp, ports: [443], pool: web, requires: [nvme]}
EOF
ip netns add lb
mkdir -p "$RUN_DIR"

start_ringwayd() {
	spawn ringwayd lb "$RINGWAYD" -f "$E2E_WORK/node.yaml"
	wait_for 10 status .generation
}
start_dataplane() {
	"$RINGWAY" dataplane-args -f "$E2E_WORK/node.yaml" > "$E2E_WORK/dataplane.args"
	spawn dataplane lb "$DATAPLANE" --args "$E2E_WORK/dataplane.args"
}
# status FILTER: true, and its value printed, if the node's status has it.
status() {
	"$RINGWAY" --json status | jq -e "$1"
}
is() { # FILTER VALUE
	[ "$(status "$1")" = "$2" ]
}
current() {
	is .dataplane.state '"current"' && is .dataplane.generation "$(status .snapshot_generation)"
}
# How often the dataplane took a snapshot, over all its lives.
loads() {
	grep -c 'generation [0-9]* is in use' "$E2E_WORK/dataplane.log" || true
}
loads_are() {
	[ "$(loads)" = "$1" ]
}
# Exit code of a ringway command.
answers() {
	local expected=$1 code=0
	shift
	"$RINGWAY" "$@" || code=$?
	[ "$code" = "$expected" ]
}
explained() {
	"$RINGWAY" --json explain tcp 198.51.100.7:40000 203.0.113.10:80 | jq -S 'del(.in_table, .source)'
}

start_ringwayd
check "without a dataplane the file is committed" is .applied_generation 2
check "and the status says that the dataplane is absent" is .dataplane.state '"absent"'
start_dataplane
check "a dataplane that comes later gets the snapshot" wait_for 15 current
check "once" loads_are 1

cp "$E2E_WORK/pools.yaml" "$E2E_WORK/bad.yaml"
sed -i 's/weight: 20/weight: 70000/; s/pool: web,/pool: wbe,/' "$E2E_WORK/bad.yaml"
check "a bad file is refused with exit code 7" answers 7 apply -f "$E2E_WORK/bad.yaml"
check "and its generation is not committed" is .generation 2
check "nor sent" loads_are 1

sed 's/version: v1/version: v2/' "$E2E_WORK/pools.yaml" > "$E2E_WORK/ring.yaml"
check "another ring at once is refused with exit code 8" answers 8 apply -f "$E2E_WORK/ring.yaml"
check "also by force, without a reason" answers 2 apply --force -f "$E2E_WORK/ring.yaml"
check "a dry run says that force and a reason would do" answers 0 apply --force --reason test --dry-run -f "$E2E_WORK/ring.yaml"

check "a cutover starts at 10 %" answers 0 cutover set web --to v2 --points 16 --share 10%
check "with a snapshot that holds both rings" loads_are 2
check "the share moves to 25 %" answers 0 cutover set web --share 25%
check "without another snapshot" loads_are 2
check "which the dataplane uses" current
explained > "$E2E_WORK/before.json"

sed -i 's/flow_entries: 1024/flow_entries: 2048/' "$E2E_WORK/node.yaml"
kill -HUP "${e2e_pids[ringwayd]}"
check "a changed node file is told by SIGHUP" wait_for 5 grep -q 'dataplane.flow_entries differs' "$E2E_WORK/ringwayd.log"
sed -i 's/flow_entries: 2048/flow_entries: 1024/' "$E2E_WORK/node.yaml"

check "SIGTERM ends ringwayd" stop ringwayd
start_ringwayd
check "a restarted ringwayd finds the dataplane current" wait_for 5 current
check "and has sent it nothing" loads_are 2
explained > "$E2E_WORK/after.json"
check "a flow is explained as before" diff "$E2E_WORK/before.json" "$E2E_WORK/after.json"

stop ringwayd KILL || true
start_ringwayd
check "so does one that was killed" wait_for 5 current
check "with nothing sent" loads_are 2

stop dataplane KILL || true
check "a killed dataplane is missed" wait_for 5 is .dataplane.state '"absent"'
check "commits go on without it" answers 0 cutover set web --share 50%
start_dataplane
check "the restarted one comes to the new share" wait_for 15 current
check "with its own snapshot" loads_are 2

stop dataplane || true
check "a backend is drained meanwhile" answers 0 backend drain web web-1
rm -f "$RUN_DIR"/*.img
start_dataplane
check "a dataplane that lost its files gets all again" wait_for 15 current
check "in one snapshot" loads_are 3
check "with the share of now" is .generation 6

stop ringwayd || true
rm -rf /run/store
start_ringwayd
check "a new store takes over a dataplane that is ahead of it" wait_for 5 current
check "with a higher generation" loads_are 4

weights_are() { # "A B": of web-1 and web-2
	[ "$("$RINGWAY" --json backend list web | jq -r '[.backends[] | .weight] | .[0:2] | join(" ")')" = "$1" ]
}
check "a stale generation is a conflict: exit code 4" answers 4 backend set web web-1 --weight 9 --generation 1
"$RINGWAY" backend set web web-1 --weight 11 > "$E2E_WORK/one.log" 2>&1 &
"$RINGWAY" backend set web web-2 --weight 12 > "$E2E_WORK/two.log" 2>&1 &
wait $! || true
check "two changes at once are both kept" wait_for 5 weights_are "11 12"
check "and the dataplane has them" wait_for 5 current
finish
