#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ringway, ringwayd and ringway-dataplane together: a capture goes through the real pipeline in a loop, and stats,
# explain, cutover and metrics tell the same story. $1 ringway, $2 ringwayd, $3 ringway-dataplane.
. "$(dirname "$0")/lib.sh"
ringwayd=$2
dataplane=$3
export RINGWAY_RUN_DIR=$work/run
mkdir "$work/run"
port=$((20000 + RANDOM % 20000))
/usr/bin/python3 "$(dirname "$0")/make_pcap.py" "$work/in.pcap" 500
cat >"$work/node.yaml" <<YAML
node: lb-test-1
datacenter: test
run_dir: $work/run
store: {type: file, path: $work/state}
metrics: "127.0.0.1:$port"
dataplane:
  eal: ["--no-huge", "-m", "128", "--no-shconf", "--no-telemetry", "--file-prefix", "ringway-cli-$$"]
  main: 0
  workers: [0]
  idle: sleep
  flow_entries: 65536
  ports:
    - {device: "net_pcap0,rx_pcap=$work/in.pcap,infinite_rx=1,tx_pcap=/dev/null", mtu: 1600,
       addresses: [192.0.2.10/24], gateways: [192.0.2.1]}
YAML
"$ringway" dataplane-args -f "$work/node.yaml" >"$work/args"
"$dataplane" --args "$work/args" >"$work/dataplane.log" 2>&1 &
dataplane_pid=$!
"$ringwayd" -f "$work/node.yaml" --pools "$data/pools.yaml" >"$work/log" 2>&1 &
pid=$!
trap 'kill -9 $pid $dataplane_pid 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT

# Waits for a fact: until FILTER ARGS...
until_json() {
	local filter=$1
	shift
	for _ in $(seq 200); do
		"$ringway" --json "$@" >"$work/until" 2>/dev/null && jq -e "$filter" "$work/until" >/dev/null && return 0
		sleep 0.05
	done
	sed 's/^/# dataplane: /' "$work/dataplane.log"
	sed 's/^/# ringwayd: /' "$work/log"
	return 1
}

until_json '.dataplane.state == "current"' status
result $? "the dataplane takes the snapshot of ringwayd"
until_json '.balance.rx_packets > 2000 and .balance.forwarded > 1000' stats
result $? "packets are forwarded"
# A worker that lost its CPU in the middle of a burst shows 32 packets without a verdict until it runs again.
until_json '.balance | .balanced and .rx_packets == .forwarded + .punted + .answered + .dropped' stats
result $? "every packet is accounted for"
json "the drop has its name" 0 '[.drops[] | select(.packets > 0) | .name] | index("runt")' stats
run 0 stats && head -1 "$work/out" | grep -Eq '^rx [0-9]+ = forwarded [0-9]+ \+ .* (balanced|in flight)$'
result $? "people read it as an equation"
json "one worker alone" 0 '.balance.rx_packets > 0 and (.workers | length) == 1' stats --worker 0
run 2 stats --worker 1
result $? "a worker that is not there"

flow=(tcp 198.51.100.1:40000 203.0.113.10:443)
json "the flow table pins a flow that passed" 0 \
	'.source == "dataplane" and .flow_table.backend.name == .backend.name and (.why | test("keeps its backend"))' \
	explain "${flow[@]}"
pinned=$("$ringway" explain "${flow[@]}" --json | jq -r .backend.name)
json "a flow that never passed has no entry" 0 '.flow_table == "no entry" and .verdict == "forward"' \
	explain tcp 198.51.100.1:40001 203.0.113.10:443
json "flows are counted for their backends" 0 \
	'[.backends[] | select(.new_flows > 0)] | (map(.name) == ["web-1", "web-2"]) and (map(.new_flows) | add) == 500' \
	backend list web
json "and for their service" 0 '.new_flows == 500' service show https

json "a cutover reaches the dataplane" 0 '.in_use' cutover set web --to v2 --points 16 --share 100%
json "established flows stay" 0 ".backend.name == \"$pinned\" and .uses_new" explain "${flow[@]}"
json "a new flow takes the new ring" 0 '.uses_new and .backend.name == .new_ring_pick.name' \
	explain tcp 198.51.100.1:40002 203.0.113.10:443
json "rollback reaches the dataplane" 0 '.in_use' cutover rollback web
json "and is in use" 0 '(.uses_new | not) and .threshold == 0' explain tcp 198.51.100.1:40002 203.0.113.10:443
# Datagrams to a port without a service become new flows when it gets one: the trace shows how each is selected.
run 0 cutover set web --share 50%
sed '/^services:/a\  - {name: mdns, address: 203.0.113.10, protocol: udp, ports: [5353], pool: web, tunnel: {type: ipip}}' \
	"$data/pools.yaml" >"$work/pools.yaml"
("$ringway" trace selections --shift 0 --count 100 --seconds 10 --service mdns --json >"$work/traces" 2>"$work/err"; echo $? >"$work/rc") &
tracer=$!
sleep 0.5
run 0 apply -f "$work/pools.yaml"
wait $tracer
[ "$(cat "$work/rc")" = 0 ] && [ "$(jq -s 'length == 100 and all(.[]; .service == "mdns" and .protocol == "udp"
	and .uses_new == (.bucket < .threshold) and .backend == (if .uses_new then .new_ring_pick else .old_ring_pick end)
	and .table == "miss" and .entry == "inserted" and (.time | test("^20.*Z$"))) and ([.[] | select(.uses_new)] | length > 25 and length < 75)' "$work/traces")" = true ]
result $? "traces show selections as they happen"
traced=$(head -1 "$work/traces")
json "and agree with explain" 0 \
	"$(jq -r '"(.backend.name == \"\(.backend)\" and .bucket == \(.bucket) and .uses_new == \(.uses_new))"' <<<"$traced")" \
	explain udp $(jq -r '"\(.source) \(.destination)"' <<<"$traced")
run 0 trace selections --seconds 1 --count 1 && grep -q ' > .*(miss, inserted, worker ' "$work/out" || [ ! -s "$work/out" ]
result $? "people read a line a flow"
run 0 cutover rollback web

pinned=$("$ringway" explain "${flow[@]}" --json | jq -r .backend.name)
json "a drained backend keeps its flows" 0 '.in_use' backend drain web "$pinned"
json "as explain says" 0 ".backend.name == \"$pinned\" and .backend.state == \"drain\"" explain "${flow[@]}"

curl -s "http://127.0.0.1:$port/metrics" >"$work/out"
promtool check metrics <"$work/out" >"$work/err" 2>&1
result $? "promtool takes the metrics"
grep -q '^ringway_dataplane_current 1$' "$work/out" && [ "$(awk '/^ringway_new_flows_total/ { sum += $2 } END { print sum }' "$work/out")" = 1000 ] &&
	[ "$(grep -vc '^#' "$work/out")" -lt 300 ]
result $? "they tell the same story"

# What is shipped for Prometheus and Grafana speaks of metrics that are there.
curl -s "http://127.0.0.1:$port/metrics?scope=all" >"$work/scrape"
promtool check metrics <"$work/scrape" >"$work/out" 2>"$work/err" &&
	/usr/bin/python3 "$(dirname "$0")/../monitoring/check_names.py" "$work/scrape" "$(dirname "$0")/../../configs" >"$work/out" 2>"$work/err"
result $? "rules and dashboards name metrics of this scrape"

(sleep 2.5; printf q) | TERM=xterm timeout 10 script -qec "stty rows 40 cols 120; '$ringway' top" /dev/null >"$work/out" 2>"$work/err"
[ $? = 0 ] && grep -aq 'WORKER' "$work/out" && grep -aq 'flow table: [0-9.]* % hits' "$work/out"
result $? "top draws rates, and q ends it"
run 2 top </dev/null && grep -q terminal "$work/err"
result $? "top without a terminal says what to use"

cp "$work/run/snapshot.img" "$work/image"
kill -9 $dataplane_pid
wait $dataplane_pid 2>/dev/null
until_json '.dataplane.state == "absent"' status
result $? "a dataplane that is gone is said to be gone"
json "the last counters can still be read" 0 '.balance.rx_packets > 2000' stats
json "explain goes on from the snapshot" 0 '.source == "snapshot" and .verdict == "forward"' explain "${flow[@]}"
json "and from the image on disk" 0 '.source == "image" and .verdict == "forward"' explain -f "$work/image" "${flow[@]}"

finish
