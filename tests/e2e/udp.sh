#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is not plain TCP: UDP flows, QUIC by connection ID, affinity to a client, services without flow table, and ICMP errors
# that must find the backend whose packet they quote. Fragments: af_xdp.sh.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
POOLS=/run/e2e/pools.yaml
sandbox "$@"

# service NAME ADDRESS PROTOCOL PORT [OPTION]
service() {
	echo "  - name: $1"
	echo "    address: \"$2\""
	echo "    protocol: $3"
	echo "    ports: [$4]"
	echo "    pool: web"
	echo "    tunnel: {type: ipip}"
	[ -z "${5:-}" ] || echo "    $5"
}
{
	sed -n '/^pools:/,/^services:/p' "$E2E_SOURCE/configs/demo/pools.yaml"
	for family in 4 6; do
		[ "$family" = 4 ] && address=$VIP4 || address=$VIP6
		service "http-$family" "$address" tcp 80
		service "udp-$family" "$address" udp 5000
		service "quic-$family" "$address" udp 443 "affinity: quic"
		service "client-$family" "$address" tcp 81 "affinity: client"
		service "stateless-$family" "$address" udp 5001 "state: none"
	done
} > "$POOLS"

need_hugepages
make_network 4 80 81
for i in 1 2 3 4; do
	attach_decap "$i"
	for port in 5000 5001 443; do
		spawn "udp-b$i-$port" "b$i" "$E2E_SOURCE/tests/e2e/udp.py" serve "b$i" "$port" "$VIP4" "$VIP6"
	done
done
start_dataplane
start_ringwayd
check "ten services are applied" ringway apply -f "$POOLS"

# ask PORT SOURCE [OPTIONS]: the names that answered.
ask() {
	local target=$VIP4 port=$1
	shift
	[[ $1 != *:* ]] || target="[$VIP6]"
	on c "$E2E_SOURCE/tests/e2e/udp.py" ask "$target:$port" "$@"
}
udp_answers() {
	ask 5000 198.51.100.1 && ask 5000 2001:db8:c::1
}
wait_for 10 udp_answers

one_backend() {
	local names
	names=$(ask "$@")
	echo "$names"
	[[ $names =~ ^b[1-4]$ ]]
}
# many_backends PORT FAMILY: thirty flows reach at least three of the four.
many_backends() {
	local i names=""
	for i in $(seq 30); do
		[ "$2" = 4 ] && names+="$(ask "$1" "198.51.100.$i") " || names+="$(ask "$1" "2001:db8:c::$i") "
	done
	echo "$names"
	[ "$(tr ' ' '\n' <<< "$names" | sort -u | grep -c b)" -ge 3 ]
}
for family in 4 6; do
	[ "$family" = 4 ] && source=198.51.100.77 || source=2001:db8:c::77
	check "UDP over IPv$family: a flow stays at its backend" one_backend 5000 "$source@6000" --count 20
	check "UDP over IPv$family: flows spread" many_backends 5000 "$family"
	check "UDP over IPv$family without flow table: a flow stays, too" one_backend 5001 "$source@6000" --count 20
	check "UDP over IPv$family without flow table: flows spread" many_backends 5001 "$family"
done
check "services without flow table used the ring alone" [ "$(counter stateless)" -ge 80 ]

# A client whose address and port change keeps its backend by the connection ID.
quic_stays() {
	local id=$1 port=$2 i names=""
	for i in $(seq 10); do
		names+="$(ask 443 "198.51.100.$((100 + i))@$((port + i))" --quic-id "$id") "
	done
	echo "$names"
	[ "$(tr ' ' '\n' <<< "$names" | sort -u | grep -c b)" = 1 ]
}
port=7000
for id in 1122334455667788 a1b2c3d4e5f60718 0011223344556677; do
	port=$((port + 100))
	check "QUIC connection $id keeps its backend from ten addresses" quic_stays "$id" "$port"
done
check "they were routed by connection ID" [ "$(counter quic_routed)" = 30 ]

client_stays() {
	local result
	result=$(on c "$E2E_SOURCE/tests/e2e/clients.py" connect --to "$VIP4:81" --from 198.51.100.0/24 \
		--addresses 1 --count 100)
	echo "$result"
	jq -e '.failed == 0 and (.servers | length) == 1' <<< "$result"
}
check "affinity client: 100 connections of one client, one backend" client_stays

# Behind a narrow link the router answers a server's full-size packets with ICMP errors, to the virtual address: they
# come to the balancer, and must go to the backend that sent the packet, else the download stops at once.
ip -n r link set dev clients mtu 1300
fetch() {
	local i
	for i in 1 2 3 4 5 6; do
		on c curl -s --max-time 60 --interface "$2$i" -o /dev/null -w '%{size_download}\n' "http://$1/file"
	done | sort | uniq -c | grep -E '^ *6 8388608$'
}
check "IPv4: six downloads of 8 MiB through a link of MTU 1300" fetch "$VIP4" 198.51.100.
check "IPv6: six downloads of 8 MiB through a link of MTU 1300" fetch "[$VIP6]" 2001:db8:c::
check "ICMP errors found their backend" [ "$(counter icmp_routed)" -ge 2 ]
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
