#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The balancer on VLAN 100 of a trunk: questions for neighbours, tunnels and answers carry the tag. And what a traceroute
# sees of a balancer: a hop that answers with the virtual address.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
NODE=/run/e2e/node.yaml
sandbox "$@"
sed 's/mtu: 1600/mtu: 1600\n      vlan: 100/' "$E2E_SOURCE/configs/demo/node.yaml" > "$NODE"

# The router's end of the balancer's link is the VLAN: tagged on the wire, plain for the router.
eval "connect_interfaces() $(declare -f connect_router | tail -n +2)"
connect_router() {
	local object=$E2E_BUILD/tests/e2e/vlan.bpf.o
	on r tc qdisc add dev balancer clsact
	on r tc filter add dev balancer egress bpf direct-action object-file "$object" section push
	on r tc filter add dev balancer ingress bpf direct-action object-file "$object" section pop
	connect_interfaces
}
start_balancer

all_answered() {
	local result
	result=$(connect_from "$1" 200)
	echo "$result"
	jq -e '.failed == 0 and (.servers | length) == 4' <<< "$result"
}
# hop ADDRESS LIMIT: who says that a SYN with this TTL has died.
hop() {
	on c python3 - "$1" "$2" << 'PYTHON'
import ipaddress, socket, sys

address, limit = sys.argv[1], int(sys.argv[2])
six = ":" in address
# IP_RECVERR, IPV6_RECVERR: the error ends the connection attempt, and says who sent it.
level, ttl, recverr = (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 25) if six else (socket.IPPROTO_IP, socket.IP_TTL, 11)
client = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
client.settimeout(3)
client.setsockopt(level, ttl, limit)
client.setsockopt(level, recverr, 1)
try:
    client.connect((address, 80))
    print("connected")
except OSError as error:
    print(error)
    for _, _, data in [client.recvmsg(0, 512, socket.MSG_ERRQUEUE)[1][0]]:
        # struct sock_extended_err, then the sender's socket address
        kind, code = data[5], data[6]
        sender = data[16 + 8:16 + 24] if six else data[16 + 4:16 + 8]
        print(f"type {kind} code {code} from {ipaddress.ip_address(sender)}")
PYTHON
}
hop_is() {
	local seen
	seen=$(hop "$1" "$2")
	echo "$seen"
	[ "$(tail -n 1 <<< "$seen")" = "$3" ]
}

for family in 4 6; do
	[ "$family" = 4 ] && address=$VIP4 type=11 router=10.30.0.1 || address=$VIP6 type=3 router=fd00:30::1
	check "IPv$family: 200 connections over the trunk" all_answered "$family"
	check "IPv$family: the virtual address answers a ping" on c ping -c 2 -W 2 "$address"
	check "IPv$family: hop 1 is the router" hop_is "$address" 1 "type $type code 0 from $router"
	check "IPv$family: hop 2 is the balancer, by the virtual address" hop_is "$address" 2 "type $type code 0 from $address"
	check "IPv$family: hop 5 is the server" hop_is "$address" 5 connected
done
# The balancer asks for its neighbours too. clsact counts what its program refused.
all_tagged() {
	on r tc -s qdisc show dev balancer
	on r tc -s -j qdisc show dev balancer | jq -e '[.[] | select(.kind == "clsact")][0].drops == 0'
}
check "no frame came without the tag" all_tagged
check "the drops have a name" [ "$(counter ttl_expired)" -ge 2 ]
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
