#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every tunnel in every mix of families, from the dataplane to the decapsulation program: six services a virtual
# address, one port each.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
POOLS=/run/e2e/pools.yaml
sandbox "$@"
need_hugepages

declare -A ports=()
port=8000
{
	echo "pools:"
	for outer in 4 6; do
		echo "  - name: outer$outer"
		echo "    ring: {version: v2, points: 160}"
		echo "    backends:"
		for i in 1 2; do
			[ "$outer" = 4 ] && address=10.10.$i.2 || address="\"fd00:10:$i::2\""
			echo "      - {name: b$i, address: $address}"
		done
	done
	echo "services:"
	for tunnel in ipip gue gre; do
		for outer in 4 6; do
			port=$((port + 1))
			ports[$tunnel$outer]=$port
			for inner in 4 6; do
				[ "$inner" = 4 ] && address=$VIP4 || address="\"$VIP6\""
				echo "  - name: $tunnel-v$inner-in-v$outer"
				echo "    address: $address"
				echo "    protocol: tcp"
				echo "    ports: [$port]"
				echo "    pool: outer$outer"
				echo "    tunnel: {type: $tunnel}"
			done
		done
	done
} > "$POOLS"

make_network 2 80 "${ports[@]}"
attach_decap 1
attach_decap 2
start_dataplane
start_ringwayd
check "twelve services are applied" ringway apply -f "$POOLS"

counted() {
	local i
	for i in 1 2; do
		on "b$i" "$E2E_BUILD/bpf/ringway-decap" status eth0 --json |
			jq -e --arg name "$1" '.interfaces[0].counters[$name].packets > 0' || return 1
	done
}

all_answered() {
	local result
	result=$(connect_from "$1" 200 "$2")
	echo "$result"
	jq -e '.failed == 0 and (.servers | length) == 2' <<< "$result"
}

for tunnel in ipip gue gre; do
	for outer in 4 6; do
		for inner in 4 6; do
			check "$tunnel, IPv$inner in IPv$outer: 200 connections" all_answered "$inner" "${ports[$tunnel$outer]}"
			check "both backends removed that header" counted "${tunnel}_v${inner}_in_v${outer}"
		done
	done
done
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
