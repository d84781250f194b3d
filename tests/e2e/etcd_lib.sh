# SPDX-License-Identifier: Apache-2.0
# A real etcd as a fleet runs it, for fleet_lib.sh's nodes: three members, TLS on client and peer ports, clients show a
# certificate, and log in as a user whose role has the prefix /fleet/ alone. Source it after fleet_lib.sh.
# Everything lies in $dir/etcd; members are pids[etcd-0..2].

etcd_members="0 1 2"
etcd_password='not-to-be-seen"anywhere"' # etcdctl takes it up to a space
declare -A etcd_client etcd_peer

etcd_start() { # MEMBER: starts it, or starts it again with what it had
	local initial="" member
	for member in $etcd_members; do initial+="${initial:+,}m$member=${etcd_peer[$member]}"; done
	(cd "$dir/etcd" && exec etcd --name "m$1" --data-dir "m$1" --initial-cluster "$initial" --log-level error \
		--listen-client-urls "${etcd_client[$1]}" --advertise-client-urls "${etcd_client[$1]}" \
		--listen-peer-urls "${etcd_peer[$1]}" --initial-advertise-peer-urls "${etcd_peer[$1]}" \
		--cert-file server.pem --key-file server.key --trusted-ca-file ca.pem --client-cert-auth \
		--peer-cert-file server.pem --peer-key-file server.key --peer-trusted-ca-file ca.pem \
		--peer-client-cert-auth --bcrypt-cost 4) >>"$dir/etcd-$1.log" 2>&1 &
	pids[etcd-$1]=$!
}

etcd_root="" # user and password, once there are users
etcdctl_at() { # ENDPOINTS WORDS...: as root
	ETCDCTL_API=3 ETCDCTL_USER=$etcd_root timeout 10 etcdctl --endpoints "$1" --cacert "$dir/etcd/ca.pem" \
		--cert "$dir/etcd/node.pem" --key "$dir/etcd/node.key" "${@:2}"
}

etcd_all() {
	local member all=""
	for member in $etcd_members; do all+="${all:+,}${etcd_client[$member]}"; done
	echo "$all"
}

etcd_users() {
	local at=${etcd_client[0]}
	etcdctl_at "$at" user add root:root && etcdctl_at "$at" user grant-role root root &&
		etcdctl_at "$at" role add balancer &&
		etcdctl_at "$at" role grant-permission balancer --prefix=true readwrite /fleet/ &&
		etcdctl_at "$at" user add ringway --interactive=false <<<"$etcd_password" &&
		etcdctl_at "$at" user grant-role ringway balancer && etcdctl_at "$at" auth enable &&
		etcd_root=root:root
}

# Starts all of it. $store is then what node.yaml says of it.
etcd_begin() {
	local member
	mkdir "$dir/etcd"
	"$(dirname "${BASH_SOURCE[0]}")/../lib/certificates" "$dir/etcd" || return 1
	(umask 077 && echo "$etcd_password" >"$dir/etcd/password")
	for member in $etcd_members; do
		etcd_client[$member]=https://127.0.0.1:$(free_port)
		etcd_peer[$member]=https://127.0.0.1:$(free_port)
	done
	for member in $etcd_members; do etcd_start "$member"; done
	until_true 15 etcdctl_at "${etcd_client[0]}" put ready yes || return 1
	etcd_users >"$dir/users.log" 2>&1 || return 1
	store="{type: etcd, endpoints: [\"$(etcd_all | sed 's/,/", "/g')\"], prefix: /fleet, user: ringway,
		password_file: $dir/etcd/password,
		tls: {ca: $dir/etcd/ca.pem, certificate: $dir/etcd/node.pem, key: $dir/etcd/node.key}}"
}

# Finds the leader: $leader is its member. Finding takes longer than killing.
etcd_find_leader() {
	for leader in $etcd_members; do
		[ -d "/proc/${pids[etcd-$leader]}" ] || continue
		etcdctl_at "${etcd_client[$leader]}" endpoint status -w json 2>/dev/null |
			jq -e '.[0].Status | .header.member_id == .leader' >/dev/null && return 0
	done
	return 1
}

# etcd_caught_up MEMBER KEY: what it has in its own memory is what the cluster agrees on.
etcd_caught_up() {
	[ "$(etcdctl_at "${etcd_client[$1]}" get "$2" --consistency=s --print-value-only | sha256sum)" = \
		"$(etcdctl_at "$(etcd_all)" get "$2" --print-value-only | sha256sum)" ]
}
