#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The dataplane on AF_XDP, sharing its link with the kernel: the steering program gives it what is for its addresses and
# virtual ones; the kernel's own address on the same link answers as ever.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
NODE=/run/e2e/node.yaml
sandbox "$@"
sed -e "s|net_af_packet0,iface=eth0,qpairs=2|net_af_xdp0,iface=eth0,xdp_prog=$E2E_BUILD/bpf/xdp_steer.bpf.o|" \
	-e 's/workers: \[0, 1\]/workers: [1]/' "$E2E_SOURCE/configs/demo/node.yaml" > "$NODE"
need_hugepages
make_network 4 80
for i in 1 2 3 4; do
	attach_decap "$i"
done
ip -n lb addr add 10.20.0.11/24 dev eth0
start_dataplane
start_ringwayd
check "apply" ringway apply -f "$POOLS"
steer() {
	on lb "$E2E_BUILD/tests/e2e/steer_count" eth0
}
check "the kernel's address on the link answers" on r ping -c 2 -i 0.2 -W 2 10.20.0.11
check "the dataplane's address on the link answers" on r ping -c 2 -i 0.2 -W 2 "$LB4"
check "IPv4: 1,000 connections, shares as intended" shares_match "$(intended web)" 4 1000
check "IPv6: 1,000 connections, shares as intended" shares_match "$(intended web)" 6 1000
steered() {
	steer | tee /dev/stderr | awk '{count[$1] = $2} END {exit !(count["vip"] > 8000 && count["neighbour"] > 0 &&
		count["kernel"] > 0 && count["no_socket"] == 0)}'
}
check "packets for virtual addresses were steered, others left to the kernel" steered
stop dataplane TERM || true
check "the program leaves with the dataplane" \
	[ "$(ip -n lb -j link show eth0 | jq -c '.[0].xdp // empty')" = "" ]
check "and the kernel's address still answers" on r ping -c 2 -i 0.2 -W 2 10.20.0.11
finish
