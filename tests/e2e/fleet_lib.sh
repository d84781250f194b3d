# SPDX-License-Identifier: Apache-2.0
# Nodes without a network for the tests of fleets: each a ringwayd and a ringway-dataplane (net_null, asleep). Source it.
# Everything lies in one directory and ends with the script. Settings: E2E_BUILD (build directory).
set -u
build=${E2E_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
ringwayd=$build/control/daemon/ringwayd ringway=$build/control/cli/ringway dataplane=$build/dataplane/io/ringway-dataplane
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root for hugepages"; exit 0; }
command -v jq >/dev/null || { echo "1..0 # SKIP needs jq"; exit 0; }

dir=$(mktemp -d /tmp/ringway-fleet-XXXXXX)
declare -A pids
number=0 failed=0

cleanup() {
	for name in "${!pids[@]}"; do kill -9 "${pids[$name]}" 2>/dev/null; done
	wait 2>/dev/null
	if [ $failed = 0 ]; then rm -rf "$dir"; else echo "# logs are in $dir"; fi
}
trap cleanup EXIT
trap 'exit 1' INT TERM

ok() { # NAME COMMAND...: one line of TAP
	local name=$1
	shift
	number=$((number + 1))
	# What the command says is a comment of its line: stdout is TAP.
	if "$@" >"$dir/said"; then echo "ok $number - $name"; else echo "not ok $number - $name"; failed=1; fi
	sed 's/^/# /' "$dir/said"
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

until_true() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

write_node() { # NAME DATACENTER
	mkdir -p "$dir/$1"
	cat >"$dir/$1/node.yaml" <<-END
		node: $1
		datacenter: $2
		run_dir: $dir/$1/run
		pools_file: $dir/pools.yaml
		store: $store
		dataplane:
		  eal: ["--in-memory", "-m", "64"]
		  workers: [1]
		  flow_entries: 4096
		  services: 16
		  pools: 8
		  backends: 256
		  ports:
		    - {device: "net_null0,no-rx=1", addresses: [192.0.2.10/24], gateways: [192.0.2.1]}
	END
}

start_dataplane() { # NAME
	mkdir -p "$dir/$1/run"
	"$dataplane" --run-dir "$dir/$1/run" --main 0 --workers 1 --flow-entries 4096 --services 16 --pools 8 \
		--backends 256 --idle-sleep --eal --in-memory --eal -m --eal 64 --eal --no-pci --eal --no-telemetry \
		--eal --file-prefix --eal "fleet-$1" --port net_null0,no-rx=1 --address 192.0.2.10/24 \
		--gateway 192.0.2.1 >>"$dir/$1/dataplane.log" 2>&1 &
	pids[dataplane-$1]=$!
}

start_daemon() { # NAME
	"$ringwayd" -f "$dir/$1/node.yaml" >>"$dir/$1/ringwayd.log" 2>&1 &
	pids[ringwayd-$1]=$!
}

kill_process() { # NAME
	kill -9 "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	return 0
}

at() { # NODE COMMAND...
	local node=$1
	shift
	"$ringway" --run-dir "$dir/$node/run" "$@"
}

# share_of NODE: the threshold that its dataplane really has, 0 .. 2^32.
share_of() {
	at "$1" explain tcp 198.51.100.7:40000 203.0.113.10:443 -o json | jq .threshold
}

write_pools() {
	cat >"$dir/pools.yaml" <<-END
		pools:
		  - name: web
		    ring: {version: v1}
		    backends:
		$(for i in $(seq 1 40); do echo "      - {name: b$i, address: 10.0.0.$i, weight: 10}"; done)
		services:
		  - {name: https, address: 203.0.113.10, protocol: tcp, ports: [443], pool: web, tunnel: {type: gue}}
	END
}
