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

start_dataplane() {
	mkdir -p "$RUN_DIR"
	"$RINGWAY" dataplane-args -f "$NODE" > "$E2E_WORK/dataplane.args" 2>> "$E2E_WORK/dataplane-args.log"
	spawn dataplane lb "$DATAPLANE" --args "$E2E_WORK/dataplane.args"
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

balanced_at_rest() {
	local seen
	counters_rest && seen=$(stats) || return 1
	jq '{balanced, rx: .counters.rx_packets, forwarded: .counters.forwarded, punted: .counters.punted,
		answered: .counters.answered, drops: ([.drops[]] | add)}' <<< "$seen"
	jq -e '.balanced and .counters.rx_packets > 0' <<< "$seen" > /dev/null
}

# A packet that comes between two counters of a look is in one of them only: then another look must find them equal.
is_balanced() {
	wait_for 10 balanced_at_rest
	balanced_at_rest || true
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
	wait_for 10 grep -q asked "$E2E_WORK/$1.log"
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

# downloads_get NAME BYTES: so many more come from now on, or all of them are complete.
downloads_get() {
	local wanted
	wanted=$(($(download_report "$1" | jq .bytes) + $2))
	wait_for 30 eval "download_report '$1' | jq -e '.bytes >= $wanted or .open == 0'"
}

# start_balancer: four backends with decapsulation, the dataplane, ringwayd, and the configuration applied.
start_balancer() {
	local i
	need_hugepages
	make_network 4 80
	for i in 1 2 3 4; do
		attach_decap "$i"
	done
	start_dataplane
	start_ringwayd
	ringway apply -f "$POOLS" >> "$E2E_WORK/apply.log" 2>&1
}

# intended RING: {name: share} of a ring of the pools file, written as `ringway ring show` takes it.
intended() {
	ringway ring show "$1" -f "$POOLS" --json | jq -c '[.members[] | {(.name): .ring_share}] | add'
}

# intended_mix OLD NEW SHARE: what the backends get while SHARE (0..1) of the new flows takes the new ring.
intended_mix() {
	jq -nc --argjson old "$(intended "$1")" --argjson new "$(intended "$2")" --argjson share "$3" \
		'[$old | keys[] | {(.): ($old[.] * (1 - $share) + $new[.] * $share)}] | add'
}

# shares_match INTENDED FAMILY COUNT: sends connections; all are answered, and shared out as intended.
shares_match() {
	local result
	result=$(connect_from "$2" "$3")
	echo "$result"
	"$E2E_SOURCE/tests/e2e/shares.py" "$1" "$(jq -c .servers <<< "$result")" && jq -e '.failed == 0' <<< "$result"
}

# new_flows: how many flows took each ring so far.
new_flows() {
	stats | jq -c '[.pools[]] | {old: ((map(.new_flows_old) | add) // 0), new: ((map(.new_flows_new) | add) // 0)}'
}

# split_matches BEFORE SHARE: which ring the flows since BEFORE took, beside what was asked for.
split_matches() {
	local split
	split=$(jq -nc --argjson a "$1" --argjson b "$(new_flows)" \
		'{"new ring": ($b.new - $a.new), "old ring": ($b.old - $a.old)}')
	"$E2E_SOURCE/tests/e2e/shares.py" "$(jq -nc --argjson p "$2" '{"new ring": $p, "old ring": (1 - $p)}')" "$split"
}

# exits CODE COMMAND...
exits() {
	local wanted=$1 status=0
	shift
	"$@" || status=$?
	echo "exit code $status, wanted $wanted"
	[ "$status" = "$wanted" ]
}
