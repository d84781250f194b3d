# SPDX-License-Identifier: Apache-2.0
# devtools/demo fleet: three datacenters of two nodes, a real etcd and a real Prometheus, on one machine. Sourced by devtools/demo
# inside its sandbox.
#
#	          etcd, Prometheus          mgmt: everything of the control plane talks over its loopback
#	              |
#	 ams: a1 a2         waw: w1 w2         fra: f1 f2         each ringwayd + ringway-dataplane
#	 |    |   real traffic: clients -> router (ECMP) -> a1, a2 -> b1 .. b4; the new ring brings b5
#	 w and f: net_null devices, since two CPUs have to do for all of it

FLEET=/run/fleet
POOLS=$FLEET/pools.yaml
POOLS_NEW=$FLEET/pools-new.yaml
NODES="a1 a2 w1 w2 f1 f2"
ETCD=http://127.0.0.1:2379
PROMETHEUS=http://127.0.0.1:9090

at() {
	local node=$1
	shift
	"$RINGWAY" --run-dir "$FLEET/$node" "$@"
}

# Shows a command of the operator on a1, and runs it.
run_at() {
	echo "a1\$ ringway $*"
	at a1 "$@"
}

# write_node NAME DATACENTER METRICS-PORT DEVICE ADDRESS4 GATEWAY4 ADDRESS6 GATEWAY6 WORKERS
write_node() {
	mkdir -p "$FLEET/$1"
	cat > "$FLEET/$1.yaml" <<- YAML
		node: $1
		datacenter: $2
		run_dir: $FLEET/$1
		pools_file: $POOLS
		metrics: 127.0.0.1:$3
		store: {type: etcd, endpoints: ["$ETCD"], prefix: /fleet}
		dataplane:
		  eal: ["--in-memory", "-m", "64"]
		  main: 0
		  workers: $9
		  idle: sleep
		  flow_entries: 65536
		  services: 16
		  pools: 8
		  backends: 256
		  ports:
		    - {device: "$4", mtu: 1600, addresses: [$5/24, "$7/64"], gateways: [$6, "$8"]}
	YAML
}

start_node() {
	local node=$1 namespace=$2
	"$RINGWAY" dataplane-args -f "$FLEET/$node.yaml" > "$FLEET/$node.args" 2>> "$E2E_WORK/dataplane-args.log"
	spawn "dataplane-$node" "$namespace" "$DATAPLANE" --args "$FLEET/$node.args"
	wait_for 20 [ -S "$FLEET/$node/dataplane.sock" ]
	spawn "ringwayd-$node" mgmt "$RINGWAYD" -f "$FLEET/$node.yaml"
}

start_control() {
	add_namespace mgmt
	mkdir -p "$E2E_WORK/metrics" "$E2E_WORK/prometheus"
	spawn etcd mgmt etcd --data-dir "$E2E_WORK/etcd" --listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" \
		--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
		--initial-cluster default=http://127.0.0.1:2380 --log-level error
	wait_for 15 on mgmt curl -sf "$ETCD/health"
	cat > "$E2E_WORK/prometheus.yml" <<- YAML
		global: {scrape_interval: 1s, scrape_timeout: 1s}
		scrape_configs:
		  - job_name: ringway
		    static_configs: [{targets: ["127.0.0.1:9101", "127.0.0.1:9102", "127.0.0.1:9103", "127.0.0.1:9104", "127.0.0.1:9105", "127.0.0.1:9106"]}]
		  - job_name: clients
		    static_configs: [{targets: ["127.0.0.1:9200"]}]
	YAML
	cat > "$E2E_WORK/metrics.conf" <<- CONF
		daemon off; worker_processes 1; pid $E2E_WORK/metrics.pid; events {}
		http { access_log off; server { listen 127.0.0.1:9200; root $E2E_WORK/metrics; default_type text/plain; } }
	CONF
	spawn clients-metrics mgmt nginx -p "$E2E_WORK" -c "$E2E_WORK/metrics.conf" -e stderr
	spawn prometheus mgmt prometheus --config.file="$E2E_WORK/prometheus.yml" --storage.tsdb.path="$E2E_WORK/prometheus" \
		--web.listen-address=127.0.0.1:9090
	wait_for 20 on mgmt curl -sf "$PROMETHEUS/-/ready"
}

# What a real Prometheus says.
query() {
	on mgmt curl -s "$PROMETHEUS/api/v1/query" --data-urlencode "query=$1" |
		jq -r '.data.result[] | "  \(.metric | del(.__name__, .job) | to_entries | map("\(.key)=\(.value)") | join(" "))  \(.value[1])"'
}

# The guard early_abort sees connections that end in their first packets, in the dataplanes of the new ring beside those of
# the old one; with 30 new flows a second it can tell 15 % from chance within seconds. client_errors is what Prometheus knows
# of the clients: it only says what it would do.
write_cutover() {
	cat > "$FLEET/cutover.yaml" <<- YAML
		pool: web
		to: {version: v2, points: 16}
		prometheus: $PROMETHEUS
		shadow: 3s
		full_soak: 3s
		retire_hold: 2s
		guard_passes: 2
		default_guards: false
		guards:
		  - {kind: digest, window: 1s}
		  - {kind: missing, window: 2s}
		  - {kind: new_drops, window: 2s}
		  - {kind: share, window: 5s}
		  - {kind: early_abort, window: 3s, difference: 15%, failures: 2}
		  - name: client_errors
		    query: 'sum(rate(client_connections_failed_total[5s])) / sum(rate(client_connections_total[5s]))'
		    window: 2s
		    pause: 0.01
		    rollback: 0.02
		    dry_run: true
		stages:
		  - {datacenters: [ams], steps: [20%], min_soak: 4s, require: manual}
		  - {datacenters: [ams, waw], steps: [50%], min_soak: 4s, require: manual}
		  - {datacenters: all, steps: [100%], min_soak: 4s}
	YAML
}

all_current() {
	[ "$(at a1 node list --json | jq '[.nodes[] | select(.state == "current")] | length')" = 6 ]
}

# The conductor takes a ring out of the document after the command has returned.
one_ring_everywhere() {
	local node
	for node in $NODES; do
		[ "$(at "$node" ring list --json | jq '.rings | length')" = 1 ] || return 1
	done
	all_current
}

all_prepared() {
	[ "$(at a1 cutover show web --json | jq '[.datacenters_now[].prepared] | add')" = 6 ]
}

# What the dataplanes of a1 and a2 have counted: new flows by ring, and sampled ones for which both rings agree and differ.
counted() {
	local node
	for node in a1 a2; do
		"$E2E_BUILD/tests/e2e/stats_read" "$FLEET/$node/stats"
	done | jq -sc '{same: (map(.counters.shadow_same) | add), different: (map(.counters.shadow_different) | add),
		old: (map(.pools[].new_flows_old) | add), new: (map(.pools[].new_flows_new) | add)}'
}

counted_since() {
	jq -nc --argjson a "$1" --argjson b "$(counted)" '$b | with_entries(.value -= $a[.key])'
}

# step_measured BEFORE SHARE: what the plan said of this step, and what packets show since BEFORE.
step_measured() {
	local seen
	seen=$(counted_since "$1")
	echo "churn, as planned and as sampled packets show it:"
	tests/e2e/shares.py "$(jq -nc --argjson c "$churn" '{different: $c, same: (1 - $c)}')" "$(jq -c '{same, different}' <<< "$seen")"
	echo "which ring new flows of ams took:"
	tests/e2e/shares.py "$(jq -nc --argjson s "$2" '{new: $s, old: (1 - $s)}')" "$(jq -c '{old, new}' <<< "$seen")"
}

# plan_and_stage: a plan, then both rings in every node's memory.
plan_and_stage() {
	run_at cutover plan -f "$FLEET/cutover.yaml" --pools "$POOLS_NEW"
	at a1 cutover plan -f "$FLEET/cutover.yaml" --pools "$POOLS_NEW" --json > "$FLEET/plan.json"
	churn=$(jq .churn "$FLEET/plan.json")
	run_at cutover stage "$(jq -r .plan "$FLEET/plan.json")" --reason demo
	wait_for 20 all_prepared
	run_at ring verify
	sleep 3 # the shadow time of the plan
}

# step SHARE END: from the moment that all nodes follow until the cutover is END, what packets show of this share.
step() {
	local before
	at a1 cutover wait web --for=state=SOAKING --timeout 180
	before=$(counted)
	run_at cutover wait web --for=state="$2" --timeout 180
	step_measured "$before" "$1"
}

thresholds_are_zero() {
	local node
	for node in $NODES; do
		[ "$(at "$node" explain tcp 198.51.100.7:40000 "$VIP4:80" --json | jq .threshold)" = 0 ] || return 1
	done
}

# One of them is told that somebody was faster.
two_at_once() {
	local one two=0
	at a1 cutover advance web --reason "operator one" > "$E2E_WORK/one" 2>&1 &
	one=$!
	at f1 cutover advance web --reason "operator two" > "$E2E_WORK/two" 2>&1 || two=$?
	echo "f1\$ ringway cutover advance web &   exit code $two: $(cat "$E2E_WORK/two")"
	wait "$one" && one=0 || one=$?
	echo "a1\$ ringway cutover advance web &   exit code $one: $(cat "$E2E_WORK/one")"
	must "exactly one won" eval '[ $((one + two)) = 4 ]'
}

title "1. The network of ams, and a control plane for three datacenters"
sed -n '/^#	/p' devtools/lib/demo_fleet.sh | sed 's/^#	/  /'
make_network 5 80
for i in 1 2 3 4 5; do
	attach_decap "$i"
done
add_balancer lb2 balancer2
ip -n r addr add 10.21.0.1/24 dev balancer2
ip -n r addr add fd00:21::1/64 dev balancer2 nodad
sysctl_on r net/ipv4/fib_multipath_hash_policy=1
ip -n r route replace "$VIP4/32" nexthop via "$LB4" nexthop via 10.21.0.10
start_control
mkdir -p "$FLEET"
{
	echo 'hash_seed: "000102030405060708090a0b0c0d0e0f"'
	cat configs/demo/pools.yaml
} > "$POOLS"
sed 's/- {name: b4, /- {name: b5, address: 10.10.5.2, weight: 40}\n      &/' "$POOLS" > "$POOLS_NEW"
write_cutover
write_node a1 ams 9101 net_af_packet0,iface=eth0 "$LB4" 10.20.0.1 "$LB6" fd00:20::1 "[0]"
write_node a2 ams 9102 net_af_packet0,iface=eth0 10.21.0.10 10.21.0.1 fd00:21::10 fd00:21::1 "[1]"
port=9103
for node in w1 w2 f1 f2; do
	write_node "$node" "$([ "${node:0:1}" = w ] && echo waw || echo fra)" "$port" net_null0,no-rx=1 \
		192.0.2.10 192.0.2.1 2001:db8:1::10 2001:db8:1::1 "[1]"
	port=$((port + 1))
done
start_node a1 lb
start_node a2 lb2
for node in w1 w2 f1 f2; do
	start_node "$node" mgmt
done
wait_for 30 all_current
run_at node list
run_at ring list

title "2. Clients: 150 connections a second, and 40 long downloads"
spawn stream c "$E2E_SOURCE/tests/e2e/clients.py" stream --to "$VIP4:80" --from "$CLIENTS4" --rate 150 --timeout 3 \
	--metrics "$E2E_WORK/metrics/metrics"
start_downloads d4 4 40
wait_for 10 downloads_run d4 40
wait_for 15 eval 'query "sum(rate(client_connections_total[5s])) > 50" | grep -q .'
echo "Prometheus: connections a second of the clients, and new flows a second of a1 and a2"
query 'sum(rate(client_connections_total[5s]))'
query 'sum by (instance) (rate(ringway_new_flows_total[5s])) > 0'

title "3. To a smaller ring with a fifth backend, which resets connections: a guard sees it and rolls back by itself"
stop nginx-b5 || true # its kernel resets every connection
plan_and_stage
run_at cutover start web --reason demo
run_at cutover wait web --for=state=ROLLED_BACK --timeout 180
run_at cutover show web
must "the guard that did it compares the new ring with the old one" eval \
	'at a1 cutover show web --json | jq -e ".reason | startswith(\"early_abort\")"'
must "every dataplane is at 0 again" thresholds_are_zero
must "40 downloads go on, no byte wrong, none broken" downloads_run d4 40
run_at cutover history web
run_at cutover discard web --yes --reason "b5 is broken"
wait_for 30 one_ring_everywhere

title "4. b5 is mended. Again to the first gate; two operators at once; and back by hand, in one command"
start_server 5 80
wait_for 10 server_answers 5 80
wait_for 30 eval 'query "sum(rate(client_connections_failed_total[5s])) == 0" | grep -q .'
plan_and_stage > "$E2E_WORK/plan2.log"
run_at cutover start web --reason demo
step 0.2 GATED
run_at dc list
two_at_once
run_at cutover pause web --reason "who was that?"
begun=${EPOCHREALTIME/./}
run_at cutover rollback web --reason "to show it"
echo "took $(((${EPOCHREALTIME/./} - begun) / 1000)) ms"
must "every dataplane is at 0" thresholds_are_zero
run_at cutover wait web --for=state=ROLLED_BACK --timeout 180
run_at cutover discard web --yes --reason demo
wait_for 30 one_ring_everywhere

title "5. A clean run: validation in ams, small in two datacenters, the world, retired"
memory_before=$(at a1 ring list --json | jq .total.worker_bytes)
plan_and_stage > "$E2E_WORK/plan3.log"
run_at cutover start web --reason demo
step 0.2 GATED
run_at cutover advance web --reason "ams looks well"
step 0.5 GATED
echo "a1\$ ringway cutover watch web     its second page:"
at a1 cutover watch web --count 2 --interval 4 |
	awk '/^pool / {count = 0} {page[count++] = $0} END {for (i = 0; i < count; i++) print page[i]}'
run_at cutover advance web --reason "so does waw"
step 1 FULL
run_at dc list
run_at node list
must "40 downloads go on, no byte wrong, none broken" downloads_run d4 40
sleep 3 # full_soak
run_at cutover retire web --yes --reason demo
run_at cutover wait web --for=state=RETIRED --timeout 180
wait_for 30 one_ring_everywhere
run_at ring list
echo "ring memory of a worker: $memory_before bytes before, $(at a1 ring list --json | jq .total.worker_bytes) after"
must "40 downloads go on, no byte wrong, none broken" downloads_run d4 40

title "6. What is on record"
run_at audit verify
stop stream || true
stop d4 || true
tail -n 1 "$E2E_WORK/stream.log"
for node in a1 a2; do
	RUN_DIR=$FLEET/$node
	must "$node: rx = forwarded + punted + answered + drops" is_balanced
done
