#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A fleet on one machine: 3 datacenters of 2 nodes, each with its ringwayd and its dataplane, and a real etcd of 3 members
# with TLS, client certificates and users (etcd_lib.sh).
#
#	        etcd: m0 m1 m2 (kill -9 of the leader, of two, and back)
#	  ams: a1 a2    waw: w1 w2    fra: f1 f2      each: ringwayd + ringway-dataplane (net_null, asleep)
#
# Validation -> small -> world to RETIRED with every process killed on the way, then a second cutover that is rolled
# back by one command. No network namespace is needed; hugepages are, so root is.
#
. "$(dirname "$0")/fleet_lib.sh"
. "$(dirname "$0")/etcd_lib.sh"
for tool in etcd etcdctl openssl; do
	command -v $tool >/dev/null || { echo "1..0 # SKIP needs $tool"; exit 0; }
done

nodes="a1 a2 w1 w2 f1 f2"

all_current() {
	[ "$(at a1 node list -o json | jq '[.nodes[] | select(.state == "current")] | length')" = 6 ]
}

all_share() { # PPM: every dataplane really has that threshold
	local node
	for node in $nodes; do
		[ "$(share_of "$node")" = "$1" ] || return 1
	done
}

state() { at "${2:-a1}" cutover show web -o json | jq -r .state; }
is_state() { [ "$(state x "${2:-a1}")" = "$1" ]; }

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# Thresholds of the plan's steps.
all=4294967296 half=$((4294967296 / 2)) tenth=$((4294967296 / 10))

shares_are() { # AMS WAW FRA: what the dataplanes really have
	[ "$(for node in $nodes; do share_of $node; done | xargs)" = "$1 $1 $2 $2 $3 $3" ]
}

# --- what shares do all the while --------------------------------------------------------------------

# Asks all dataplanes, again and again: NODE THRESHOLD, in order. A line with a word in place of the number is ours.
sample() {
	local node
	while sleep 0.1; do
		for node in $nodes; do
			timeout 5 "$ringway" --run-dir "$dir/$node/run" explain tcp 198.51.100.7:40000 203.0.113.10:443 -o json 2>/dev/null |
				jq -r --arg node $node 'select(.source == "dataplane") | "\($node) \(.threshold)"'
		done
	done >>"$dir/samples"
}

# No share falls, and none is another than those that the plan has. Between "away" and "back" a node goes its own way.
shares_only_rise() {
	awk -v steps="0 $((all / 100)) $tenth $half $all" '
		BEGIN { n = split(steps, list); for (i = 1; i <= n; i++) { legal[list[i]] = 1; legal[list[i] + 1] = 1 } }
		$2 == "away" { away[$1] = 1; next }
		$2 == "back" { away[$1] = 0; next }
		away[$1] { next }
		!($2 in legal) || $2 < last[$1] { print $1 ": " last[$1] ", then " $2; bad = 1 }
		{ last[$1] = $2; seen++ }
		END { print seen " looks at a share"; exit bad || seen < 100 }
	' "$dir/samples"
}

# Whether every node but w2 was looked at since line $mark, and all had one share.
shares_stood_still() {
	tail -n "+$((mark + 1))" "$dir/samples" | awk '
		$1 in last && last[$1] != $2 { print $1 ": " last[$1] ", then " $2; bad = 1 }
		{ last[$1] = $2 }
		END { exit bad || length(last) < 5 }'
}

longest=0 # ms that a commit took over the death of a leader
# kill_leader STATE: kill -9 of etcd's leader in a state of the cutover, and at once a commit.
kill_leader() {
	etcd_find_leader && until_true 30 is_state "$1" || return 1
	mark=$(wc -l <"$dir/samples")
	local began took
	began=$(now_ms)
	kill_process "etcd-$leader"
	at a1 cutover lock web --ttl 1m --reason test >/dev/null || return 1
	took=$(($(now_ms) - began))
	[ "$took" -le "$longest" ] || longest=$took
	echo "m$leader led; the commit after its death took $took ms"
	at a1 cutover unlock web --reason test >/dev/null
}

# Each revision of the cutover since it was staged is in the audit log, once, in order.
history_is_complete() {
	at a1 cutover history web -o json | jq -c '[.events[] | .after.revision // empty]' | tee "$dir/revisions" |
		jq -e 'unique as $u | . == $u and $u == [range($u[0]; $u[-1] + 1)]' >/dev/null || { cat "$dir/revisions"; return 1; }
}

# --- begin -----------------------------------------------------------------------------------------

write_pools
cat >"$dir/cutover.yaml" <<-END
	pool: web
	to: {version: v2, points: 16}
	shadow: 0s
	full_soak: 0s
	retire_hold: 1s
	default_guards: false
	guards:
	  - {kind: digest, window: 1s}
	  - {kind: missing, window: 1s}
	guard_passes: 1
	stages:
	  - {datacenters: [ams], steps: [1%], min_soak: 1s, require: manual}
	  - {datacenters: [ams, waw], steps: [10%, 50%], min_soak: 2s, require: manual}
	  - {datacenters: all, steps: [10%, 50%, 100%], min_soak: 1s, missing_nodes_max: 1}
END
etcd_begin || { echo "Bail out! etcd did not start"; failed=1; exit 1; }
for node in a1 a2; do write_node $node ams; done
for node in w1 w2; do write_node $node waw; done
for node in f1 f2; do write_node $node fra; done
cp -p "$dir/etcd/password" "$dir/f1/password"
sed -i "s,etcd/password,f1/password," "$dir/f1/node.yaml"
for node in $nodes; do start_dataplane $node; done
for node in $nodes; do start_daemon $node; done
ok "six nodes that start at once agree on the fleet's document" until_true 30 all_current
[ $failed = 0 ] || exit 1

plan_of() { at a1 cutover plan -f "$dir/cutover.yaml" -o json | jq -r .plan; }
plan=$(plan_of)
at a1 cutover plan -f "$dir/cutover.yaml" | sed 's/^/# /'
ok "a plan changes nothing" [ "$(at a1 cutover list -o json | jq '.cutovers | length')" = 0 ]
at w1 backend set web b3 --weight 11 --reason "to make the plan stale" >/dev/null 2>&1
until_true 10 all_current
at a1 cutover stage "$plan" >"$dir/stale" 2>&1
ok "a stale plan is refused with what changed" [ $? = 4 ]
sed 's/^/# /' "$dir/stale"
plan=$(plan_of)
ok "stage" at a1 cutover stage "$plan" --reason test
all_prepared() {
	[ "$(at w2 cutover show web -o json | jq '[.datacenters_now[].prepared] | add')" = 6 ]
}
ok "every node holds both rings" until_true 20 all_prepared
ok "digests are equal everywhere" at f1 ring verify
ok "nobody sends anything to the new ring" all_share 0
ok "start on another node" at f2 cutover start web --reason test
ok "the first stage ends at its gate" at a1 cutover wait web --for=state=GATED --timeout 30

# A node that cannot follow yet keeps the next step SHIFTING.
kill_process dataplane-w2
sample &
pids[sample]=$!

# Two operators at once.
at a1 cutover advance web --reason one >"$dir/one" 2>&1 &
one=$!
at f1 cutover advance web --reason two >"$dir/two" 2>&1
two=$?
wait $one
one=$?
ok "of two operators exactly one wins, the other gets 4" [ "$(printf '%s\n' $one $two | sort | tr '\n' ' ')" = "0 4 " ]
cat "$dir/one" "$dir/two" | sed 's/^/# /'

# The leader dies while a share is committed and not everybody follows; and again while it soaks.
ok "ams and waw have 10 %, but for the node without a dataplane" until_true 20 \
	eval '[ "$(for n in a1 a2 w1; do share_of $n; done | sort -u)" -gt '$((tenth - 1))' ]'
ok "etcd's leader is killed while SHIFTING, and a commit goes through" kill_leader shifting
ok "meanwhile no share moved" until_true 20 shares_stood_still
ok "it is SHIFTING still" is_state shifting
first=$leader
etcd_start "$first"
ok "the member that was killed comes back and catches up" until_true 20 etcd_caught_up "$first" /fleet/keys/cutover/web
start_dataplane w2
ok "the leader is killed while SOAKING, and a commit goes through" kill_leader soaking
began=$(now_ms)
ok "the cutover goes on under the new leader, to its next gate" at a1 cutover wait web --for=state=GATED --timeout 60
echo "# the gate was reached $(($(now_ms) - began)) ms later"
ok "ams and waw have 50 %, with the node that was away" until_true 10 shares_are $half $half 0
ok "every step of it is in the audit log, once" history_is_complete
ok "the audit log is whole so far" at f1 audit verify
etcd_start "$leader"
ok "that member comes back and catches up, too" until_true 20 etcd_caught_up "$leader" /fleet/keys/cutover/web

# Whoever conducts is killed, and two of three members: frozen, never reset.
conductor=$(etcdctl_at "$(etcd_all)" get /fleet/locks/conductor --print-value-only)
echo "# $conductor conducts"
[ -n "$conductor" ] || conductor=a1
before=$(share_of "$conductor")
kill_process "ringwayd-$conductor"
kill_process etcd-0
kill_process etcd-1
sleep 3
other=$([ "$conductor" = w1 ] && echo w2 || echo w1)
ok "without a quorum every node stays where it is" [ "$(share_of "$other")" = $half ]
start_daemon "$conductor" # without its store: from the run directory
began=$(now_ms)
until_true 30 at "$conductor" status
echo "# a daemon that starts without its store answers after $(($(now_ms) - began)) ms"
ok "a daemon that starts without the store keeps its share" [ "$(share_of "$conductor")" = "$before" ]
is_connected() { [ "$(at "$1" status -o json | jq .store.connected)" = true ]; }
is_alone() { [ "$(at "$1" status -o json | jq '.store | (.connected | not) and (.text | length > 10)')" = true ]; }
ok "and says that the store is away, and why" until_true 20 is_alone "$conductor"
at "$conductor" status -o json | jq -r .store.text | sed 's/^/# /'
echo "$other away" >>"$dir/samples"
names_local() { at "$other" cutover rollback web --reason late 2>"$dir/why"; [ $? = 1 ] && grep -q -- "--local" "$dir/why"; }
ok "rollback of the fleet fails, and names the way that works" names_local
# The word of the gate as the dataplane would come back with it: the first one of gates.img.
recalls() { [ "$(od -A n -t x8 -j 56 -N 8 "$dir/$1/run/gates.img")" = " 8000000000000000" ]; }
all_recall() { # NODE...
	local node
	for node in "$@"; do recalls "$node" || return 1; done
}
ok "rollback on one node works without the store" at "$other" cutover rollback web --local --reason "store is down"
ok "it is at 0 there" [ "$(share_of "$other")" = 0 ]
kill_process "ringwayd-$other"
rm "$dir/$other/run/cutovers.json"
start_daemon "$other"
until_true 30 at "$other" status
sleep 2 # ticks
ok "and stays so when the daemon has lost its copy of the cutovers" grep -qx web "$dir/$other/run/rollback-local"
ok "and for established flows" \
	at "$other" cutover rollback web --local --move-established --reason "store is down" --yes
ok "they come back there" until_true 10 recalls "$other"
kill_process "ringwayd-$other"
start_daemon "$other"
until_true 30 at "$other" status
ok "a daemon that starts without the store keeps that" eval 'at "$other" status >/dev/null && recalls "$other"'
etcd_start 0
etcd_start 1
ok "resume on that node" at "$other" cutover resume web --local --reason "store is back"
ok "no flow comes back there any more" eval '! recalls "$other"'
ok "with a quorum all shares are what was committed" until_true 30 shares_are $half $half 0
echo "$other back" >>"$dir/samples"
ok "all six nodes are current" until_true 30 all_current

# kill -9 of a daemon and of a dataplane in every state from here to the end.
pass_on() {
	local now
	now=$(state x a1 2>/dev/null)
	case $now in
	gated) at a1 cutover advance web --reason test >/dev/null 2>&1 ;;
	paused) at a1 cutover resume web --reason test >/dev/null 2>&1 ;;
	esac
	[ "$now" = full ]
}
ok "it goes on to FULL by itself" until_true 120 pass_on
ok "every dataplane sends everything to the new ring" until_true 10 all_share $all
kill_process dataplane-f2
start_dataplane f2
ok "a dataplane that was killed comes back with its share" until_true 20 eval '[ "$(share_of f2)" = '$all' ]'
kill_process sample
ok "no share ever fell, or was another than the plan's" shares_only_rise

# A password that is not taken: the node keeps what it has, says so, and goes on when the file is mended.
kill_process ringwayd-f1
echo wrong >"$dir/f1/password"
start_daemon f1
ok "a daemon whose password is not taken starts" until_true 30 is_alone f1
ok "and keeps its share" [ "$(share_of f1)" = $all ]
at f1 status -o json | jq -r .store.text | tee "$dir/why" | sed 's/^/# /'
ok "it names the endpoint, the user and the file" grep -q "https://127.*ringway.*$dir/f1/password" "$dir/why"
cat "$dir/etcd/password" >"$dir/f1/password"
ok "with the right one it goes on by itself" until_true 30 is_connected f1
ok "retire, once that node says that it follows" until_true 20 at a1 cutover retire web --yes --reason test
ok "it is retired" at a1 cutover wait web --for=state=RETIRED --timeout 30
only_new() { [ "$(at "$1" ring list -o json | jq -c '[.rings[].version]')" = '["v2"]' ]; }
all_new() { for node in $nodes; do only_new $node || return 1; done; }
ok "only the new ring is left on every node" until_true 30 all_new
ok "rollback of what is retired is refused" eval 'at a1 cutover rollback web --reason late 2>/dev/null; [ $? = 4 ]'

# --- and back --------------------------------------------------------------------------------------

sed -i 's/to: .*/to: {version: v1}/; s/\[ams\], steps: \[1%\]/[ams], steps: [30%]/' "$dir/cutover.yaml"
until_true 10 all_current
plan=$(plan_of)
ok "a second cutover is staged" at a1 cutover stage "$plan" --reason test
until_true 20 all_prepared
ok "and started" at a1 cutover start web --reason test
ok "to its gate" at a1 cutover wait web --for=state=GATED --timeout 30
ok "a pause is heeded" at a1 cutover pause web --reason "look at it"
ok "rollback is one command from PAUSED, thresholds 0 on every node within a second" \
	at w1 cutover rollback web --reason "test is over"
ok "every dataplane is at 0" all_share 0
ok "it is rolled back" at a1 cutover wait web --for=state=ROLLED_BACK --timeout 20
ok "established flows stay" eval '! recalls a1'
kill_process ringwayd-f2
ok "taking them back is not for scripts without --yes" \
	eval 'at w1 cutover rollback web --move-established --reason "it hurts" 2>/dev/null </dev/null; [ $? = 2 ]'
at w1 cutover rollback web --move-established --reason "it hurts" --yes >/dev/null 2>&1
ok "established flows come back, too, on every node that is there" until_true 10 all_recall a1 a2 w1 w2 f1
ok "not on the one that is away" eval '! recalls f2'
start_daemon f2
ok "and on that one when it returns" until_true 30 recalls f2
ok "it is rolled back once more" at a1 cutover wait web --for=state=ROLLED_BACK --timeout 60
ok "the document tells for each datacenter" \
	eval 'at a1 cutover show web -o json | jq -e "[.datacenters[].move_established] | all"'
ok "the rejected ring is discarded" at a1 cutover discard web --yes --reason test
ok "only the old ring is left on every node" until_true 30 all_new
ok "the audit log is whole" at f1 audit verify
password_is_nowhere() {
	local pid
	for pid in "${pids[@]}"; do tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline"; done >"$dir/words"
	{ at f1 status -o json; at f1 node list -o json; at f1 cutover show web -o json; at f1 config export
		at f1 audit list -o json; } >>"$dir/words"
	[ "$(grep -c ringwayd "$dir/words")" -ge 1 ] &&
		! grep -rlF not-to-be-seen "$dir" --exclude-dir=etcd --exclude=password
}
ok "the password is in no log, answer, argument or file of a run directory" password_is_nowhere
at a1 cutover history web | cut -c1-160 | sed 's/^/# /'
echo "# longest commit over the death of a leader: $longest ms"
echo "1..$number"
exit $failed
