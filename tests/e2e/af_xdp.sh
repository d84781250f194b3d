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

# Datagrams of 4,000 bytes come in three fragments, in one burst.
for i in 1 2 3 4; do
	spawn "udp-b$i" "b$i" "$E2E_SOURCE/tests/e2e/udp.py" serve "b$i" 5000 "$VIP4" "$VIP6"
done
sed -e 's/tcp/udp/' -e 's/\[80\]/[5000]/' -e 's/name: http/name: udp/' "$POOLS" | sed -n '/^services:/,$p' |
	grep -v '^services:' | cat "$POOLS" - > "$E2E_WORK/pools.yaml"
check "UDP services beside them" ringway apply -f "$E2E_WORK/pools.yaml"
ask() {
	on c "$E2E_SOURCE/tests/e2e/udp.py" ask "$@"
}
wait_for 10 ask "$VIP4:5000" 198.51.100.1
wait_for 10 ask "[$VIP6]:5000" 2001:db8:c::1
same_backend() {
	local small large
	small=$(ask "$1:5000" "$2") && large=$(ask "$1:5000" "$2" --bytes 4000 --count 5)
	echo "small ones at $small, fragments at $large"
	[[ $small =~ ^b[1-4]$ ]] && [ "$small" = "$large" ]
}
for i in 1 2 3 4 5; do
	check "IPv4: fragments of flow $i reach its backend" same_backend "$VIP4" "198.51.100.$i@6000"
	check "IPv6: fragments of flow $i reach its backend" same_backend "[$VIP6]" "2001:db8:c::$i@6000"
done
check "all later fragments went the way of their first ones" [ "$(counter fragment_routed)" = 100 ]

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
