#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What dozens of subset rings cost on one node: 2,048 weighted backends, a ring for each set of five features
# (configs/subsets), two workers. Real ringwayd and ringway-dataplane over a null device; huge pages are counted by the
# kernel. Needs root, 2.5 GB of huge pages and as much memory again for v1.
#	bench_subsets.sh BUILD_DIRECTORY
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
ringway=$build/control/cli/ringway
pages=/sys/kernel/mm/hugepages/hugepages-2048kB
pages_before=$(cat $pages/nr_hugepages)
work=$(mktemp -d /dev/shm/ringway-subsets-XXXXXX)
pids=()

stop_all() {
	for pid in "${pids[@]}"; do
		kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null || true
	done
	pids=()
}
finish() {
	stop_all
	rm -rf "$work"
	echo "$pages_before" > $pages/nr_hugepages
}
trap finish EXIT

[ "$pages_before" -ge 1300 ] || echo 1300 > $pages/nr_hugepages

start_dataplane() {
	rm -f "$work/dataplane.log"
	"$build/dataplane/io/ringway-dataplane" --args "$work/args" > "$work/dataplane.log" 2>&1 &
	pids+=($!)
	wait_for "$work/dataplane.log" 'poll after'
}

wait_for() {
	for _ in $(seq 600); do
		grep -q "$2" "$1" 2> /dev/null && return
		sleep 0.1
	done
	echo "bench_subsets: no '$2' in 60 s:" >&2
	cat "$1" >&2
	exit 1
}

status() {
	"$ringway" status --run-dir "$work/run" --json | jq -r "$1"
}

measure() {
	local version=$1 free_before free_after points worker hottest started loaded restart
	rm -rf "$work"/run "$work"/store "$work/ringwayd.log"
	mkdir -p "$work/run"
	cat > "$work/node.yaml" <<-EOF
		node: bench
		datacenter: bench
		run_dir: $work/run
		store: {type: file, path: $work/store}
		dataplane:
		  eal: ["--in-memory", "--file-prefix=subsets$$", "--no-telemetry"]
		  main: 0
		  workers: [0, 1]
		  flow_entries: 65536
		  services: 64
		  pools: 16
		  backends: 4096
		  ports:
		    - {device: net_null0, mtu: 1500, addresses: [10.20.0.10/24], gateways: [10.20.0.1]}
	EOF
	configs/subsets/generate --ring "$version" > "$work/pools.yaml"
	"$ringway" dataplane-args -f "$work/node.yaml" > "$work/args" 2> /dev/null
	start_dataplane
	free_before=$(cat $pages/free_hugepages)
	started=$(date +%s%N)
	"$build/control/daemon/ringwayd" -f "$work/node.yaml" --pools "$work/pools.yaml" 2> "$work/ringwayd.log" &
	pids+=($!)
	wait_for "$work/ringwayd.log" 'dataplane: uses generation 2'
	loaded=$((($(date +%s%N) - started) / 1000000))
	wait_for "$work/ringwayd.log" 'serves generation'
	free_after=$(cat $pages/free_hugepages)
	points=$("$ringway" ring list --run-dir "$work/run" --json | jq '[.rings[].points] | add')
	worker=$(status .dataplane.snapshot_bytes)
	hottest=$("$ringway" ring show -f "$work/pools.yaml" cache --json | jq .hottest_ratio)
	stop_all
	start_dataplane
	restart=$(sed -n 's/.*poll after \([0-9]*\) ms.*/\1/p' "$work/dataplane.log")
	stop_all
	printf '| %s | %d | %.1f MiB | %d MiB | %.1f s | %d ms | %.3f |\n' "$version" "$points" \
		"$(jq -n "$worker / 1048576")" $(((free_before - free_after) * 2)) "$(jq -n "$loaded / 1000")" \
		"$restart" "$hottest"
}

echo '| ring | points | a worker | huge pages, 2 workers | file to use | restart to first poll | hottest backend |'
echo '|---|---|---|---|---|---|---|'
for version in v1 v2 v3; do
	measure "$version"
done
