#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without a tunnel: the balancer has a port to each backend's link and sends packets there as they came, for the
# backend's MAC address. Three ports; backends answer through the router.
#
#	c --- r --- eth0 lb eth1 --- eth1 b1 eth0 --- r
#	               lb eth2 --- eth1 b2 eth0 --- r
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
NODE=/run/e2e/node.yaml
POOLS=/run/e2e/pools.yaml
sandbox "$@"
need_hugepages

{
	cat "$E2E_SOURCE/configs/demo/node.yaml"
	for i in 1 2; do
		echo "    - device: \"net_af_packet$i,iface=eth$i,qpairs=2\""
		echo "      mtu: 1500"
		echo "      addresses: [10.4$i.0.10/24]"
	done
} > "$NODE"
{
	echo "pools:"
	echo "  - name: near"
	echo "    ring: {version: v2, points: 160}"
	echo "    backends:"
	for i in 1 2; do
		echo "      - {name: b$i, address: 10.4$i.0.2}"
	done
	echo "services:"
	for address in "$VIP4" "$VIP6"; do
		echo "  - name: http-${address%%[.:]*}"
		echo "    address: \"$address\""
		echo "    protocol: tcp"
		echo "    ports: [80]"
		echo "    pool: near"
		echo "    tunnel: {type: l2}"
	done
} > "$POOLS"

make_network 2 80
for i in 1 2; do
	add_link lb "eth$i" "b$i" eth1 1500
	sysctl_on lb "net/ipv6/conf/eth$i/disable_ipv6=1"
	# The way back to clients is another interface; IPv6 has no such filter.
	sysctl_on "b$i" net/ipv4/conf/all/rp_filter=0 net/ipv4/conf/eth1/rp_filter=0
	on lb ethtool -K "eth$i" tx off > /dev/null
	ip -n "b$i" addr add "10.4$i.0.2/24" dev eth1
done
start_dataplane
start_ringwayd
check "two services are applied" ringway apply -f "$POOLS"

all_answered() {
	local result
	result=$(connect_from "$1" 300)
	echo "$result"
	jq -e '.failed == 0 and (.servers | length) == 2' <<< "$result"
}
upload_passes() {
	head -c 1048576 /dev/zero |
		on c curl -s --max-time 10 -X POST -H Expect: --data-binary @- -o /dev/null -w '%{http_code} %{size_upload}\n' "http://$1/" |
		grep -x '200 1048576'
}
# received NUMBER: packets for the virtual address that came by the direct link.
received() {
	ip -n "b$1" -j -s link show dev eth1 | jq '.[0].stats64.rx.packets'
}

for family in 4 6; do
	[ "$family" = 4 ] && address=$VIP4 || address="[$VIP6]"
	check "IPv$family: 300 connections, both backends" all_answered "$family"
	check "IPv$family: full-size packets need no room for a tunnel" upload_passes "$address"
done
check "packets came by the direct links" [ "$(received 1)" -gt 1000 -a "$(received 2)" -gt 1000 ]
check "nothing was too big" [ "$(counter too_big)" = 0 ]
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
