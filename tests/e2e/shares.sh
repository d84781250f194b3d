#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole path with real TCP: every connection is answered, backends get what their ring says, `explain` tells the
# truth, virtual addresses answer pings, and every packet is accounted for.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
sandbox "$@"
start_balancer

check "IPv4: 2,000 connections from 250 addresses, shares as intended" shares_match "$(intended web)" 4 2000
check "IPv6: 2,000 connections from 250 addresses, shares as intended" shares_match "$(intended web)" 6 2000
check "both workers forwarded" sh -c "'$E2E_BUILD/tests/e2e/stats_read' '$RUN_DIR/stats' |
	jq -e '.workers | length == 2 and all(.[]; .counters.forwarded > 100)'"

# explained_as_seen SOURCE PORT DESTINATION: the server that explain names is the one that answers.
explained_as_seen() {
	local explained seen source=$1 target=$3
	[[ $1 != *:* ]] || { source="[$1]" target="[$3]"; }
	explained=$(ringway explain tcp "$source:$2" "$target:80" --json | jq -r '.backend.name // .backend')
	seen=$(on c curl -s --max-time 20 --interface "$1" --local-port "$2" "http://$target/")
	echo "explained $explained, seen $seen"
	[ -n "$seen" ] && [ "$explained" = "$seen" ]
}
for i in 1 2 3 4 5 6; do
	check "explain names the backend of 198.51.100.$i" explained_as_seen "198.51.100.$i" $((40000 + i)) "$VIP4"
	check "explain names the backend of 2001:db8:c::$i" explained_as_seen "2001:db8:c::$i" $((40000 + i)) "$VIP6"
done

check "the IPv4 address answers pings" on c ping -c 3 -i 0.2 -W 2 "$VIP4"
check "the IPv6 address answers pings" on c ping -c 3 -i 0.2 -W 2 "$VIP6"
check "the dataplane's own address answers pings" on c ping -c 2 -i 0.2 -W 2 "$LB4"
check "a port without a service is dropped by name" sh -c "
	! nsenter --net=/run/netns/c curl -s --max-time 1 http://$VIP4:81/ &&
	'$E2E_BUILD/tests/e2e/stats_read' '$RUN_DIR/stats' | jq -e '.drops.no_service + .drops.no_punt + .counters.punted > 0'"
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
check "ringway stats says so too" sh -c "'$RINGWAY' stats --json | jq -e .balance.balanced"
finish
