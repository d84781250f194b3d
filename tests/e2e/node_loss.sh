#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two balancers behind one router that spreads flows over both (ECMP). One dies without a word: its flows come to the other,
# which has never seen them, and reach the same backends, because the rings and the hash are the same. It comes back, and the
# router moves half of all flows again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
POOLS=/run/e2e/pools.yaml
NODE2=/run/e2e/node2.yaml
RUN_DIR2=/run/ringway2
HUGEPAGES_NEEDED=384
sandbox "$@"
need_hugepages
{
	echo "hash_seed: \"000102030405060708090a0b0c0d0e0f\""
	cat "$E2E_SOURCE/configs/demo/pools.yaml"
} > "$POOLS"
sed -e 's|/run/ringway|/run/ringway2|' -e 's/lb-demo-1/lb-demo-2/' -e 's/10\.20\.0\./10.21.0./g' -e 's/fd00:20::/fd00:21::/g' \
	"$E2E_SOURCE/configs/demo/node.yaml" > "$NODE2"

make_network 4 80
for i in 1 2 3 4; do
	attach_decap "$i"
done
add_balancer lb2 balancer2
ip -n r addr add 10.21.0.1/24 dev balancer2
ip -n r addr add fd00:21::1/64 dev balancer2
sysctl_on r net/ipv4/fib_multipath_hash_policy=1 net/ipv6/fib_multipath_hash_policy=1

route_over_both() {
	ip -n r route replace "$VIP4/32" nexthop via "$LB4" nexthop via 10.21.0.10
	ip -n r route replace "$VIP6/128" nexthop via "$LB6" nexthop via fd00:21::10
}
route_over_first() {
	ip -n r route replace "$VIP4/32" via "$LB4"
	ip -n r route replace "$VIP6/128" via "$LB6"
}
start_second_dataplane() {
	mkdir -p "$RUN_DIR2"
	"$RINGWAY" dataplane-args -f "$NODE2" > "$E2E_WORK/dataplane2.args" 2>> "$E2E_WORK/dataplane-args.log"
	spawn dataplane2 lb2 "$DATAPLANE" --args "$E2E_WORK/dataplane2.args"
	wait_for 15 [ -S "$RUN_DIR2/dataplane.sock" ]
}
# of_second NAME: a counter of the second balancer.
of_second() {
	"$E2E_BUILD/tests/e2e/stats_read" "$RUN_DIR2/stats" | jq --arg name "$1" '.counters[$name]'
}

start_dataplane
start_ringwayd
start_second_dataplane
spawn ringwayd2 lb2 "$RINGWAYD" -f "$NODE2"
wait_for 10 [ -S "$RUN_DIR2/ringwayd.sock" ]
check "first node takes the configuration" ringway apply -f "$POOLS"
check "second node takes the configuration" ringway --run-dir "$RUN_DIR2" apply -f "$POOLS"
digest() {
	ringway --run-dir "$1" ring list --json | jq -r '.rings[].digest'
}
check "their rings have the same digest" [ "$(digest "$RUN_DIR")" = "$(digest "$RUN_DIR2")" ]
route_over_both

check "2,000 connections over both, shares as intended" shares_match "$(intended web)" 4 2000
check "the first forwarded" [ "$(counter flow_miss_syn)" -gt 500 ]
check "the second forwarded" [ "$(of_second flow_miss_syn)" -gt 500 ]

start_downloads d4 4 40
start_downloads d6 6 40
# Each gets 50 kB a second: four seconds' worth of bytes, and none broke or stalled.
downloads_go_on() {
	downloads_get d4 8000000 && downloads_get d6 8000000 && downloads_run d4 40 && downloads_run d6 40
}
wait_for 10 downloads_run d4 40
wait_for 10 downloads_run d6 40
stop dataplane2 KILL || true
route_over_first
check "the second node is killed: no download breaks" downloads_go_on
check "the first had to pick for flows that it did not know" [ "$(counter flow_miss_non_syn)" -gt 10 ]
check "new connections pass" shares_match "$(intended web)" 4 500
start_second_dataplane
route_over_both
check "the second node is back: no download breaks" downloads_go_on
check "and forwards again" [ "$(of_second rx_packets)" -gt 0 ]
check "every byte was right: IPv4" stop d4
check "every byte was right: IPv6" stop d6
check "first node: rx = forwarded + punted + answered + drops" is_balanced
RUN_DIR=$RUN_DIR2
check "second node: rx = forwarded + punted + answered + drops" is_balanced
finish
