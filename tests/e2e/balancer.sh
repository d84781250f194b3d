# SPDX-License-Identifier: Apache-2.0
# The balancer's own programs in the sandbox. Source it after topology.sh.

RUN_DIR=/run/ringway
RINGWAY=$E2E_BUILD/control/cli/ringway
RINGWAYD=$E2E_BUILD/control/daemon/ringwayd
DATAPLANE=$E2E_BUILD/dataplane/io/ringway-dataplane
NODE=${NODE:-$E2E_SOURCE/configs/demo/node.yaml}
POOLS=${POOLS:-$E2E_SOURCE/configs/demo/pools.yaml}
HUGEPAGES_NEEDED=192 # of 2 MB, for one dataplane of configs/demo/node.yaml

ringway() {
	"$RINGWAY" "$@"
}

need_hugepages() {
	local free
	free=$(awk '/HugePages_Free/ {print $2}' /proc/meminfo)
	[ "$free" -ge "$HUGEPAGES_NEEDED" ] || skip_all "needs $HUGEPAGES_NEEDED free huge pages of 2 MB, has $free:" \
		"echo 512 > /proc/sys/vm/nr_hugepages"
}

dataplane_answers() {
	[ -S "$RUN_DIR/dataplane.sock" ] && [ -f "$RUN_DIR/stats" ] && is_running dataplane
}

# Workers poll; on a machine with as many workers as CPUs they must give way to the programs that they serve.
start_dataplane() {
	mkdir -p "$RUN_DIR"
	"$RINGWAY" dataplane-args -f "$NODE" > "$E2E_WORK/dataplane.args"
	spawn dataplane lb "$DATAPLANE" --args "$E2E_WORK/dataplane.args" --idle-sleep
	wait_for 15 dataplane_answers
}

start_ringwayd() {
	mkdir -p "$RUN_DIR"
	spawn ringwayd lb "$RINGWAYD" -f "$NODE"
	wait_for 10 [ -S "$RUN_DIR/ringwayd.sock" ]
}

stats() {
	"$E2E_BUILD/tests/e2e/stats_read" "$RUN_DIR/stats"
}

# counter NAME: the sum over all workers.
counter() {
	stats | jq --arg name "$1" '.counters[$name] // .drops[$name]'
}

# Traffic has come to rest when a second look sees the same.
counters_rest() {
	local before
	before=$(counter rx_packets)
	sleep 0.2
	[ "$(counter rx_packets)" = "$before" ]
}

is_balanced() {
	wait_for 10 counters_rest
	stats | jq '{balanced, rx: .counters.rx_packets, forwarded: .counters.forwarded, punted: .counters.punted,
		answered: .counters.answered, drops: ([.drops[]] | add)}'
	stats | jq -e '.balanced and .counters.rx_packets > 0' > /dev/null
}

# connect_from 4|6 COUNT [PORT]: connections to the virtual address from many addresses; the JSON of clients.py.
connect_from() {
	local to=$VIP4 from=$CLIENTS4
	[ "$1" = 4 ] || { to="[$VIP6]" from=$CLIENTS6; }
	on c "$E2E_SOURCE/tests/e2e/clients.py" connect --to "$to:${3:-80}" --from "$from" --count "$2"
}

# start_downloads NAME 4|6 COUNT [PORT]
start_downloads() {
	local to=$VIP4 from=$CLIENTS4
	[ "$2" = 4 ] || { to="[$VIP6]" from=$CLIENTS6; }
	spawn "$1" c "$E2E_SOURCE/tests/e2e/clients.py" download --to "$to:${4:-80}" --from "$from" --count "$3"
}

# The newest report of downloads. Asked with a signal, so wait until there is one line more.
download_report() {
	local log=$E2E_WORK/$1.log lines
	lines=$(grep -c asked "$log" || true)
	kill -USR1 "${e2e_pids[$1]}"
	wait_for 5 sh -c "[ \$(grep -c asked '$log') -gt $lines ]"
	grep asked "$log" | tail -n 1
}

downloads_run() {
	download_report "$1" | jq -e --argjson count "$2" '.open + .complete == $count and .broken == 0 and .stalled == 0'
}
