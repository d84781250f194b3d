#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Backends come and go: draining keeps connections and takes no new ones, down moves only its own keys, adding and
# removing touch nobody else's flows.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
sandbox "$@"
start_balancer

start_downloads d4 4 60
wait_for 10 downloads_run d4 60

# servers FILTER: the names that answer 600 new connections satisfy a jq filter, and all are answered.
servers() {
	local result
	result=$(connect_from 4 600)
	echo "$result"
	jq -e ".failed == 0 and (.servers | $1)" <<< "$result"
}

check "all four serve" servers '(keys == ["b1", "b2", "b3", "b4"])'
check "drain b2, the strongest" ringway backend drain web b2
check "no new connection reaches it" servers '(.b2 == null and length == 3)'
check "its downloads go on" downloads_run d4 60
check "drain again is nothing to do" ringway backend drain web b2
check "bring it back" ringway backend set web b2 --state up
check "shares are what they were" shares_match "$(intended web)" 4 2000
check "its downloads went on" downloads_run d4 60

# Which server does each of 64 source ports get?
picks() {
	local port
	for port in $(seq 41000 41063); do
		ringway explain tcp "198.51.100.200:$port" "$VIP4:80" --json | jq -r '.backend.name // .backend'
	done
}
picks > "$E2E_WORK/picks.up"
check "b3 down" ringway backend set web b3 --state down
check "no connection reaches it" servers '(.b3 == null)'
picks > "$E2E_WORK/picks.down"
only_its_own_keys_moved() {
	paste "$E2E_WORK/picks.up" "$E2E_WORK/picks.down" | awk '
		$1 != $2 && $1 != "b3" {bad++; print "moved:", $0}
		$1 == "b3" {its_own++}
		END {print its_own " of 64 were its own"; exit bad > 0 || its_own == 0}'
}
check "only its own keys moved" only_its_own_keys_moved
check "b3 up" ringway backend set web b3 --state up
picks > "$E2E_WORK/picks.again"
check "they came back" cmp "$E2E_WORK/picks.up" "$E2E_WORK/picks.again"

check "all down" sh -c "for b in b1 b2 b3 b4; do '$RINGWAY' backend set web \$b --state down || exit 1; done"
check "then nobody answers" sh -c "! nsenter --net=/run/netns/c curl -s --max-time 1 http://$VIP4/"
check "and the drop has a name" [ "$(counter all_unusable)" -gt 0 ]
check "all up" sh -c "for b in b1 b2 b3 b4; do '$RINGWAY' backend set web \$b --state up || exit 1; done"
check "all four serve again" servers '(keys == ["b1", "b2", "b3", "b4"])'
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
