#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where the links to the backends carry no more than the clients' link, a full-size packet does not fit once it is
# wrapped: the balancer tells the sender, and uploads go through at the smaller size.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
TUNNEL_MTU=1500
NODE=/run/e2e/node.yaml
sandbox "$@"
sed 's/mtu: 1600/mtu: 1500/' "$E2E_SOURCE/configs/demo/node.yaml" > "$NODE"
start_balancer

# upload ADDRESS: 1 MiB in full-size segments.
upload() {
	head -c 1048576 /dev/zero |
		on c curl -s --max-time 60 -X POST -H Expect: --data-binary @- -o /dev/null -w '%{http_code} %{size_upload}\n' "http://$1/"
}
upload_passes() {
	local result
	result=$(upload "$1")
	echo "$result"
	[ "$result" = "200 1048576" ]
}
# route_mtu ADDRESS BYTES: what the client's kernel learnt. GUE over IPv4 takes 32 bytes of 1500.
route_mtu() {
	on c ip route get "$1"
	[ "$(on c ip -j route get "$1" | jq '.[0].metrics[0].mtu // .[0].mtu')" = "$2" ]
}

check "IPv4: an upload passes" upload_passes "$VIP4"
check "IPv4: the client was told the size that fits" route_mtu "$VIP4" 1468
check "IPv6: an upload passes" upload_passes "[$VIP6]"
check "IPv6: the client was told the size that fits" route_mtu "$VIP6" 1468
check "the drop has a name" [ "$(counter too_big)" -gt 0 ]
check "a ping of that size passes whole" on c ping -c 1 -W 2 -M do -s 1440 "$VIP4"
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
