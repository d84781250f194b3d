# SPDX-License-Identifier: Apache-2.0
# The network of the end-to-end tests and of devtools/demo. Source it after lib.sh.
#
#	 clients                                                                backends
#	+-----------------+           +-------------------+          +----------------------------------+
#	| c               |           | r, a router:      |          | b1: nginx, decapsulation on eth0 |
#	| 198.51.100.0/24 |           | the way to a      |  backend1|     10.10.1.2, fd00:10:1::2      |
#	| 2001:db8:c::/64 |-----------| virtual address   |-----+----|     lo: the virtual addresses    |
#	|                 |eth0       | is the balancer   |     |eth0|                                  |
#	+-----------------+    clients+-------------------+     |    +----------------------------------+
#	                                        |balancer       +----| b2 .. b4                         |
#	                                    eth0|                    +----------------------------------+
#	                              +-------------------+
#	                              | lb, the balancer: |     client -> r -> lb -> r -> backend, in a tunnel
#	                              | ringway-dataplane |     backend -> r -> client, directly
#	                              | ringwayd, ringway |
#	                              | 10.20.0.10        |     virtual addresses: 203.0.113.10, 2001:db8:100::10
#	                              | fd00:20::10       |
#	                              +-------------------+
#
# Each box is a network namespace; each line is a veth pair. Links that carry tunnels have MTU 1600, the clients' link
# 1500. Hosts that send TCP have transmit checksum offload off: a veth would leave checksums unfinished, which is right
# between two kernels and wrong for a balancer that reads the wire.

VIP4=203.0.113.10
VIP6=2001:db8:100::10
LB4=10.20.0.10
LB6=fd00:20::10
CLIENTS4=198.51.100.0/24
CLIENTS6=2001:db8:c::/64
TUNNEL_MTU=1600

backend_count=0

sysctl_on() {
	local namespace=$1 setting
	shift
	for setting in "$@"; do
		on "$namespace" sh -c "echo ${setting#*=} > /proc/sys/${setting%%=*}"
	done
}

# add_namespace NAME: with lo up and no delay before an IPv6 address may be used.
add_namespace() {
	ip netns add "$1"
	ip -n "$1" link set dev lo up
	sysctl_on "$1" net/ipv6/conf/all/accept_dad=0 net/ipv6/conf/default/accept_dad=0
}

# add_link NS1 IF1 NS2 IF2 MTU
add_link() {
	ip link add name "$2" netns "$1" mtu "$5" type veth peer name "$4" netns "$3" mtu "$5"
	ip -n "$1" link set dev "$2" up
	ip -n "$3" link set dev "$4" up
}

add_clients() {
	add_namespace c
	add_link c eth0 r clients 1500
	ip -n c addr add 10.30.0.2/24 dev eth0
	ip -n c addr add fd00:30::2/64 dev eth0 nodad
	ip -n c route add default via 10.30.0.1
	ip -n c route add default via fd00:30::1
	# Every address of these networks is ours to bind to, without a thousand 'ip addr add'.
	ip -n c route add local "$CLIENTS4" dev lo
	ip -n c route add local "$CLIENTS6" dev lo
	sysctl_on c net/ipv6/ip_nonlocal_bind=1
	on c ethtool -K eth0 tx off > /dev/null
}

add_router() {
	add_namespace r
	sysctl_on r net/ipv4/ip_forward=1 net/ipv6/conf/all/forwarding=1
}

connect_router() {
	ip -n r addr add 10.30.0.1/24 dev clients
	ip -n r addr add fd00:30::1/64 dev clients nodad
	ip -n r addr add 10.20.0.1/24 dev balancer
	ip -n r addr add fd00:20::1/64 dev balancer nodad
	ip -n r route add "$CLIENTS4" via 10.30.0.2
	ip -n r route add "$CLIENTS6" via fd00:30::2
	ip -n r route add "$VIP4/32" via "$LB4"
	ip -n r route add "$VIP6/128" via "$LB6"
}

# add_balancer NAME LINK: LINK is its end on the router. The balancer's kernel has no address on its link and stays silent
# there: the dataplane speaks for it.
add_balancer() {
	add_namespace "$1"
	add_link "$1" eth0 r "$2" "$TUNNEL_MTU"
	sysctl_on "$1" net/ipv6/conf/eth0/disable_ipv6=1
	on "$1" ethtool -K eth0 tx off > /dev/null
}

# add_backend NUMBER: a host with both virtual addresses on lo.
add_backend() {
	local ns=b$1
	add_namespace "$ns"
	add_link "$ns" eth0 r "backend$1" "$TUNNEL_MTU"
	ip -n r addr add "10.10.$1.1/24" dev "backend$1"
	ip -n r addr add "fd00:10:$1::1/64" dev "backend$1" nodad
	ip -n "$ns" addr add "10.10.$1.2/24" dev eth0
	ip -n "$ns" addr add "fd00:10:$1::2/64" dev eth0 nodad
	# Answers to clients fit the clients' link without an ICMP error from the router.
	ip -n "$ns" route add default via "10.10.$1.1" mtu 1500
	ip -n "$ns" route add default via "fd00:10:$1::1" mtu 1500
	ip -n "$ns" addr add "$VIP4/32" dev lo
	ip -n "$ns" addr add "$VIP6/128" dev lo nodad
	on "$ns" ethtool -K eth0 tx off > /dev/null
	backend_count=$((backend_count > $1 ? backend_count : $1))
}

# attach_decap NUMBER [OPTIONS...]
attach_decap() {
	local ns=b$1
	shift
	on "$ns" "$E2E_BUILD/bpf/ringway-decap" attach eth0 --vip "$VIP4" --vip "$VIP6" "$@" \
		>> "$E2E_WORK/decap.log" 2>&1
}

# A file whose bytes say where they stand, for downloads that are checked byte by byte: lines of 16 bytes.
make_download() {
	mkdir -p "$E2E_WORK/www"
	seq -f %015.0f 0 524287 > "$E2E_WORK/www/download" # 8 MiB
}

# start_server NUMBER PORT...: an nginx that says its name. /download is slow enough to last through a test.
start_server() {
	local name=b$1 port conf=$E2E_WORK/nginx-b$1.conf
	shift
	{
		echo "daemon off; worker_processes 1; pid $E2E_WORK/nginx-$name.pid; error_log stderr warn;"
		echo "events { worker_connections 4096; }"
		echo "http { access_log off; keepalive_requests 1000000;"
		for path in client_body proxy fastcgi uwsgi scgi; do
			echo "${path}_temp_path $E2E_WORK/nginx-$name-$path;"
		done
		echo "server {"
		for port in "$@"; do
			echo "listen $VIP4:$port; listen [$VIP6]:$port;"
		done
		echo "root $E2E_WORK/www; default_type text/plain; client_max_body_size 64m;"
		echo "location = / { return 200 \"$name\\n\"; }"
		echo "location = /download { limit_rate ${DOWNLOAD_RATE:-50k}; }"
		echo "location = /file { alias $E2E_WORK/www/download; }"
		echo "} }"
	} > "$conf"
	spawn "nginx-$name" "$name" nginx -p "$E2E_WORK" -c "$conf" -e stderr
}

server_answers() {
	[ "$(on "b$1" curl -s --max-time 5 "http://$VIP4:$2/")" = "b$1" ]
}

# make_network BACKENDS PORT...: everything but the balancer's programs.
make_network() {
	local count=$1 i
	shift
	add_router
	add_clients
	add_balancer lb balancer
	connect_router
	make_download
	for i in $(seq "$count"); do
		add_backend "$i"
		start_server "$i" "$@"
	done
	for i in $(seq "$count"); do
		wait_for 10 server_answers "$i" "$1"
	done
}
