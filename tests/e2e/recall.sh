#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rollback with --move-established: of the downloads that run, those that the new ring picked and for which the rings
# differ go to the old ring's backend at their next packet, which does not know them and says so; all others go on. It
# holds after kill -9 of everything, before the first packet, and without ringwayd.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/topology.sh"
. "$(dirname "$0")/balancer.sh"
sandbox "$@"
DOWNLOAD_RATE=20k # so that none is complete before its time
start_balancer

# endpoints: address and port of every connection that clients have open to the virtual address.
endpoints() {
	on c ss -Htn state established dst "$VIP4" | awk '{print $3}' | sort
}

# explained: what the balancer says of each of them, a JSON object a line.
explained() {
	local endpoint
	while read -r endpoint; do
		ringway explain tcp "$endpoint" "$VIP4:80" --json | jq -c --arg endpoint "$endpoint" '{endpoint: $endpoint,
			uses_new, old: .old_ring_pick.name, new: .new_ring_pick.name, has: .flow_table.backend.name}'
	done
}

# As they were picked at the share that stands: on the new ring, and with another backend there.
known() {
	endpoints | explained > "$E2E_WORK/known"
	jq -s '{flows: length, on_new: (map(select(.uses_new)) | length),
		odd: (map(select(.has != (if .uses_new then .new else .old end))) | length)}' "$E2E_WORK/known"
	jq -r 'select(.uses_new and .old != .new) | .endpoint' "$E2E_WORK/known" | sort > "$E2E_WORK/moving"
	jq -r 'select((.uses_new and .old != .new) | not) | .endpoint' "$E2E_WORK/known" | sort > "$E2E_WORK/staying"
	jq -s -e 'map(select(.has != (if .uses_new then .new else .old end))) | length == 0' "$E2E_WORK/known" > /dev/null
}

# broke NAME: exactly those that were to move have ended, by a reset; the others go on.
broke() {
	download_report "$1" | jq -e --argjson count "$(wc -l < "$E2E_WORK/moving")" \
		'.errors == {"Connection reset by peer": $count} and .stalled == 0' && endpoints | cmp - "$E2E_WORK/staying"
}

# live_new: flows of the new ring, as the last sweep counted them.
live_new() {
	stats | jq '[.pools[].live_new] | add // 0'
}

preview() {
	ringway cutover rollback web --move-established --reason test --dry-run --json | jq -c .established
}

# tells KEY VALUE: of the preview.
tells() {
	preview
	preview | jq -e --arg key "$1" --argjson value "$2" '.[$key] == $value' > /dev/null
}

# At 0 % both rings are asked for a sample of the new flows, and all take the old one.
ringway cutover set web --to v2 --points 16 --share 0%
connect_from 4 400 > "$E2E_WORK/sample"
ringway cutover set web --share 50%
start_downloads d 4 60
wait_for 10 downloads_run d 60
check "explain names ring and backend of every download" known
moving=$(wc -l < "$E2E_WORK/moving")
check "some of them are to move" [ "$moving" -gt 5 ]
check "some are to stay" [ "$(wc -l < "$E2E_WORK/staying")" -gt 5 ]
on_new=$(jq -s 'map(select(.uses_new)) | length' "$E2E_WORK/known")
# A flow that came to two workers has an entry with each.
all_counted() {
	local live
	live=$(live_new)
	echo "$live entries of $on_new flows; $(stats | jq -c .counters)"
	[ "$live" -ge "$on_new" ] && [ "$live" -le $((on_new + $(counter flow_hit_other))) ]
}
check "the sweep counts the flows of the new ring" wait_for 20 all_counted

check "a plain rollback" ringway cutover rollback web --reason test
downloads_get d 2000000
check "breaks nothing" downloads_run d 60
check "the preview tells them" eval 'tells live_new "$(live_new)"'
check "and an estimate of those that break" \
	eval 'preview | jq -e ".moving > 0 and .moving <= .live_new and .sampled > 20 and .nodes == 1"'
check "and changes nothing" downloads_run d 60
check "without a terminal and without --yes it is refused" \
	exits 2 ringway cutover rollback web --move-established --reason test < /dev/null
check "nothing came back yet" [ "$(counter flow_recalled)" = 0 ]
check "rollback of established flows, too, after the rollback" \
	ringway cutover rollback web --move-established --reason test --yes
check "exactly those break that were on the new ring and differ" wait_for 60 broke d
check "as many as were counted" [ "$(counter flow_recalled)" = "$moving" ]
downloads_get d 2000000
check "the others get their bytes" broke d
check "show tells it" eval 'ringway cutover show web | grep -q "come back: $moving moved, "'
check "no flow of the new ring is left" wait_for 20 eval '[ "$(live_new)" -le "$(counter flow_hit_other)" ]'
connect_from 4 500 > "$E2E_WORK/after"
check "new connections are all answered" jq -e '.failed == 0' "$E2E_WORK/after"
check "said again it is nothing to do" \
	eval 'ringway cutover rollback web --move-established --reason test --yes --json | jq -e ".changed == false"'
stop d || true

# Everything is killed between the rollback and the next packet of its flows; ringwayd stays away.
ringway cutover set web --share 100%
start_downloads e 4 40
wait_for 10 downloads_run e 40
check "set ends it: new downloads run on the new ring" known
check "all of them" [ "$(jq -s 'map(select(.uses_new)) | length' "$E2E_WORK/known")" = 40 ]
ip -n r route replace blackhole "$VIP4/32"
check "rollback, while no packet comes through" \
	ringway cutover rollback web --move-established --reason test --yes
kill -KILL "${e2e_pids[ringwayd]}" "${e2e_pids[dataplane]}"
wait_for 10 eval '! is_running dataplane && ! is_running ringwayd'
start_dataplane
ip -n r route replace "$VIP4/32" via "$LB4"
check "the dataplane alone, restarted: the same flows break" wait_for 60 broke e
check "as many as were to move" [ "$(counter flow_recalled)" = "$(wc -l < "$E2E_WORK/moving")" ]
rm -f "$RUN_DIR/ringwayd.sock"
start_ringwayd
check "ringwayd is back, and the dataplane current" wait_for 20 eval 'ringway status --json | jq -e ".dataplane.state == \"current\""'
check "discard ends it" ringway cutover discard web --yes
connect_from 4 200 > "$E2E_WORK/last"
check "connections are answered" jq -e '.failed == 0' "$E2E_WORK/last"
check "those that stayed go on" broke e
check "rx = forwarded + punted + answered + drops, for each worker" is_balanced
finish
