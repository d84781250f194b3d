#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Decapsulation with real TCP: health checks go from a management link of the balancer through each tunnel to a backend,
# whose answer comes back directly. Three ways to attach; twelve mixes of tunnel and families each.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
sandbox "$@"

make_network 1 80
add_link lb mgmt r mgmt "$TUNNEL_MTU"
ip -n r addr add 10.40.0.1/24 dev mgmt
ip -n r addr add fd00:40::1/64 dev mgmt
ip -n lb addr add 10.40.0.2/24 dev mgmt
ip -n lb addr add fd00:40::2/64 dev mgmt
ip -n lb route add default via 10.40.0.1
ip -n lb route add default via fd00:40::1
on lb ethtool -K mgmt tx off > /dev/null

decap() {
	on b1 "$E2E_BUILD/bpf/ringway-decap" "$@"
}

# probe TUNNEL OUTER-FAMILY INNER-FAMILY
probe() {
	local source=10.40.0.2 backend=10.10.1.2 address=$VIP4 answer
	[ "$2" = 4 ] || { source=fd00:40::2 backend=fd00:10:1::2; }
	[ "$3" = 4 ] || address=$VIP6
	answer=$(on lb "$E2E_BUILD/tests/e2e/hc_probe" mgmt "$1" "$source" "$backend" "$address" 80)
	[ "$answer" = b1 ]
}

probe_fails() {
	! probe "$@"
}

counted() {
	decap status eth0 --json | jq -e --arg name "$1" '.interfaces[0].counters[$name].packets > 0'
}

nothing_is_left() {
	[ "$(ip -n b1 -j -d link show eth0 | jq -c '.[0].xdp // empty')" = "" ] &&
		[ "$(tc -n b1 qdisc show dev eth0 | grep -c clsact)" = 0 ]
}

check "a check fails while nothing decapsulates" probe_fails ipip 4 4
for mode in native generic tc; do
	check "$mode: attach" decap attach eth0 --vip "$VIP4" --vip "$VIP6" --mode "$mode"
	for tunnel in ipip gue gre; do
		for outer in 4 6; do
			for inner in 4 6; do
				check "$mode: real TCP, $tunnel, IPv$inner in IPv$outer" probe "$tunnel" "$outer" "$inner"
				check "$mode: and it is counted" counted "${tunnel}_v${inner}_in_v${outer}"
			done
		done
	done
	check "$mode: detach" decap detach eth0
	check "$mode: detach again says so and succeeds" decap detach eth0
	check "$mode: interface as before" nothing_is_left
done

decap attach eth0 --vip "$VIP4" > /dev/null
check "a virtual address that was not given is not decapsulated" probe_fails ipip 4 6
check "attach again adds it without detaching" decap attach eth0 --vip "$VIP4" --vip "$VIP6"
check "and it is decapsulated" probe ipip 4 6
check "switching off a tunnel type" decap attach eth0 --vip "$VIP4" --tunnel gue,gre
check "stops that one" probe_fails ipip 4 4
check "and not the others" probe gue 4 4
decap attach eth0 --vip "$VIP4" > /dev/null

ip -n b1 addr del "$VIP4/32" dev lo
sysctl_on b1 net/ipv4/ip_forward=1
check "a host that forwards does not send a lost virtual address round" probe_fails ipip 4 4
check "it counts it" counted not_local
ip -n b1 addr add "$VIP4/32" dev lo
check "and serves it again when it is back" probe ipip 4 4
decap detach eth0 > /dev/null

# Somebody else's program stays where it is.
ip -n b1 link set dev eth0 xdp obj "$E2E_BUILD/bpf/xdp_steer.bpf.o" sec xdp
status=0
decap attach eth0 --vip "$VIP4" > "$E2E_WORK/conflict.log" 2>&1 || status=$?
check "another XDP program is a conflict, exit code 4" [ "$status" = 4 ]
check "detach leaves it alone" decap detach eth0
check "it is still there" [ "$(ip -n b1 -j link show eth0 | jq '.[0].xdp.mode')" = 1 ]
check "tc mode works beside it" decap attach eth0 --vip "$VIP4" --mode tc
check "and decapsulates" probe gue 4 4
finish
