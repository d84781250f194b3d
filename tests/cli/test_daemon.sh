#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ringway against a real ringwayd that has no dataplane: every verb, exit codes, conflicts, restart, metrics.
# $1 ringway, $2 ringwayd.
. "$(dirname "$0")/lib.sh"
ringwayd=$2
export RINGWAY_RUN_DIR=$work/run
port=$((20000 + RANDOM % 20000))
sed "s|/tmp/ringway-test/state|$work/state|; s|/tmp/ringway-test|$work/run|; s|^dataplane:|metrics: \"127.0.0.1:$port\"\ndataplane:|" \
	"$data/node.yaml" >"$work/node.yaml"

start() {
	"$ringwayd" -f "$work/node.yaml" --pools "$data/pools.yaml" >>"$work/log" 2>&1 &
	pid=$!
	for _ in $(seq 100); do
		"$ringway" status >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	sed 's/^/# log: /' "$work/log"
	return 1
}

stop() {
	kill "$1" "$pid"
	wait "$pid" 2>/dev/null
}

trap 'kill -9 $pid 2>/dev/null; rm -rf "$work"' EXIT
start
result $? "ringwayd starts and answers"

json "status" 0 '.node == "lb-test-1" and .services == 3 and .dataplane.state == "absent" and .generation > 0' status
json "services" 0 '[.services[].name] == ["https", "https6", "dns"] and .services[0].ports == [443]' service list
json "one service" 0 '.name == "dns" and .affinity == "client" and .protocol == "udp"' service show dns
json "an unknown service" 3 '.name == "not_found" and .code == 3' service show none
json "pools" 0 '.pools[0].backends == 4 and .pools[0].drain == 1 and .pools[0].ring == "v1 x160"' pool list
json "one pool" 0 '(.members | length) == 4 and .members[0].name == "web-1"' pool show web
json "backends" 0 '[.backends[].weight] == [1, 2, 1, 1]' backend list
json "backends of a pool" 0 '(.backends | length) == 4' backend list web
json "an unknown pool" 3 '.code == 3' backend list none
json "one backend" 0 '.state == "drain" and .tags == ["eu", "nvme"]' backend show web web-4
json "rings are shared where they are equal" 0 \
	'(.rings | length) == 2 and ([.rings[].name] | sort) == ["web", "web+nvme"] and .total.workers == 2
	 and .total.node_bytes == 2 * .total.worker_bytes and all(.rings[]; .usable == .backends - 1)' ring list
run 0 ring list -o wide && grep -q 'AS V1' "$work/out" && grep -q '^  v1 node  *[0-9.]* KiB$' "$work/out"
result $? "wide tables show more, and the total"
run 0 pool list -o name && [ "$(cat "$work/out")" = web ]
result $? "names alone"
json "the ring of the node" 0 '.pool == "web" and .points == 800' ring show web
node_digest=$("$ringway" ring list --json | jq -r '.rings[] | select(.name == "web") | .spec_digest')
json "and it is the one that the CLI builds" 0 ".spec_digest == \"$node_digest\"" ring show web

json "explain from the snapshot" 0 \
	'.verdict == "forward" and .service == "https" and .source == "snapshot" and .backend.name == .old_ring_pick.name
	 and (.why | length) > 10' explain tcp 198.51.100.7:40000 203.0.113.10:443
json "a drained backend is never picked" 0 '.backend.name != "web-4"' \
	explain tcp '[2001:db8::7]:40000' '[2001:db8:ffff::10]:443'
json "no service" 0 '.verdict == "no_service"' explain tcp 198.51.100.7:40000 203.0.113.10:80
for flow in "sctp 1.2.3.4:1 203.0.113.10:443" "tcp 1.2.3.4 203.0.113.10:443" "tcp 1.2.3.4:1 [2001:db8::1]:443" \
	"tcp 1.2.3.4:99999 203.0.113.10:443" "tcp 2001:db8::1 203.0.113.10:443"; do
	run 2 explain $flow
	result $? "no flow: $flow"
done
json "without a dataplane there are no statistics" 3 '.code == 3' stats

run 0 config export && "$ringway" diff --exit-code -f "$work/out" >/dev/null 2>&1
result $? "what is exported is what runs"
json "no difference to the applied file" 0 '.different == false and .changes == []' diff -f "$data/pools.yaml"
json "a dry run changes nothing" 0 '.dry_run and .changed and (.changes | length) > 0' \
	apply -f "$data/pools-next.yaml" --dry-run
json "still nothing changed" 0 '.different == false' diff --exit-code -f "$data/pools.yaml"
json "differences end with 10 when asked" 10 '.different' diff --exit-code -f "$data/pools-next.yaml"

json "a weight" 0 '.changed and (.changes | length) == 1 and .changes[0].after == "7"' \
	backend set web web-2 --weight 7 --reason test
generation=$("$ringway" status --json | jq .generation)
json "the same weight again is nothing to do" 0 '.changed == false' backend set web web-2 --weight 7
json "and makes no generation" 0 ".generation == $generation" status
json "a stale generation is a conflict" 4 '.name == "conflict"' \
	backend set web web-2 --weight 8 --generation $((generation - 1))
json "the right generation is not" 0 '.changed' backend set web web-2 --weight 8 --generation "$generation"
run 2 backend set web web-2
result $? "nothing to set is a usage error"
run 2 backend set web web-2 --weight 0
result $? "weight 0 is a usage error"
run 2 backend set web web-2 --state sideways
result $? "an unknown state is a usage error"
run 3 backend set web none --weight 1
result $? "an unknown backend is not found"
json "add a backend" 0 '.changed' backend add web web-9 --address 10.0.0.19 --port 8080 --weight 3 --tags nvme,b,a
json "it is there" 0 '.port == 8080 and .tags == ["a", "b", "nvme"]' backend show web web-9
run 4 backend add web web-9 --address 10.0.0.20
result $? "a name that is taken is a conflict"
run 7 backend add web web-10 --address 10.0.0.19 --port 8080
result $? "an address that is taken is invalid"
run 2 backend add web web-10 --address 10.0.0.300
result $? "an address that is none is a usage error"
run 2 backend add web web-10
result $? "a backend needs an address"
json "drain" 0 '.changed' backend drain web web-9
run 2 backend del web web-9 </dev/null
result $? "deletion wants --yes where nobody can be asked"
json "delete" 0 '.changed' backend del web web-9 --yes
run 3 backend show web web-9
result $? "it is gone"

run 3 cutover show web
result $? "no cutover yet"
json "start a cutover" 0 '.changed' cutover set web --to v2 --points 16 --share 10% --reason "less memory"
json "both rings are there" 0 '(.rings | length) == 4 and ([.rings[] | select(.role == "new")] | length) == 2' ring list
json "its share" 0 '.share_ppm == 100000 and .state == "shifting" and .from == "v1 x160" and .to == "v2 x16"' \
	cutover show web
run 0 cutover show web && grep -q '^pool      web: v1 x160 -> v2 x16; [0-9.]*% of the keys move$' "$work/out" &&
	grep -q '^state     SHIFTING by hand on this node: 10% of new flows take the new ring$' "$work/out"
result $? "people get a page"
run 0 cutover watch web --count 2 --interval 1 && [ "$(grep -c '^STARTS' "$work/out")" = 2 ] &&
	! grep -q "$(printf '\033')" "$work/out"
result $? "a watch into a pipe is pages, and ends"
run 0 cutover watch web --count 2 --interval 1 --json &&
	jq -se 'length == 2 and all(.[]; .schema_version == 1 and .churn > 0 and .datacenters_now[0].rates == null)' \
		"$work/out" >/dev/null
result $? "for programs an object a line"
if [ -x /usr/bin/python3 ]; then
	/usr/bin/python3 "$(dirname "$0")/on_terminal.py" 12 60 "$ringway" cutover watch web --count 2 --interval 1 >"$work/out"
	[ $? = 0 ] && [ "$(grep -c '^page 12 60$' "$work/out")" = 2 ] && [ "$(grep -c '^FLOWS ' "$work/out")" = 2 ]
	result $? "on a terminal it stays in place and within its edges"
fi
for wrong in "--interval 0" "--interval 1h" "--count 0" "--shift 32 --traces"; do
	run 2 cutover watch web --count 1 $wrong
	result $? "no watch: $wrong"
done
run 3 cutover watch dns --count 1
result $? "nothing to watch"
json "the finest share" 0 '.changed' cutover set web --share 0.0001%
json "is kept exactly" 0 '.cutovers[0].share_ppm == 1 and .cutovers[0].threshold == 4294' cutover list
run 2 cutover set web --share 0.00001%
result $? "a finer one is refused, not rounded"
run 4 cutover set web --to v2 --points 32 --share 20%
result $? "another ring while one is under way is a conflict"
run 8 cutover discard web --yes
result $? "discard above 0 % is refused"
run 8 cutover retire web --yes
result $? "retire below 100 % is refused"
run 0 cutover set web --share 100%
flow=(tcp 198.51.100.7:40000 203.0.113.10:443)
json "at 100 % every flow takes the new ring" 0 '.uses_new and .backend.name == .new_ring_pick.name' explain "${flow[@]}"
json "ring diff of the live rings" 0 '.from.version == "v1" and .to.version == "v2" and .churn_share > 0.3' \
	ring diff web web@new
run 3 cutover rollback dns --local --reason night
result $? "no way back alone without a cutover"
json "back on this node alone" 0 '.changed' cutover rollback web --local --reason night
json "whatever the document says" 0 '.threshold == 0 and .uses_new == false' explain "${flow[@]}"
json "as show says" 0 '.share_ppm == 1000000 and .share_here_ppm == 0 and .threshold == 0' cutover show web
json "and as all others again" 0 '.changed' cutover resume web --local
json "which is 100 %" 0 '.uses_new' explain "${flow[@]}"
json "the kill switch" 0 '.changed' cutover kill-switch on --reason night
json "holds for every pool" 0 '.threshold == 0 and .uses_new == false' explain "${flow[@]}"
json "and lets go" 0 '.changed' cutover kill-switch off --reason day
json "of it" 0 '.uses_new' explain "${flow[@]}"
json "rollback" 0 '.changed' cutover rollback web --reason night
json "rollback again is nothing to do" 0 '.changed == false' cutover rollback web
json "what established flows it concerns is said before" 0 \
	'.changed and .dry_run and .established.nodes_silent == 1 and .established.moving == null' \
	cutover rollback web --move-established --dry-run
run 2 cutover rollback web --move-established --reason night </dev/null
result $? "moving established flows wants --yes where nobody can be asked"
grep -q 'about\|not known' "$work/err"
result $? "and says first how many"
json "nothing was changed by that" 0 '.cutovers[0] | .share_ppm == 0' cutover list
json "established flows come back" 0 '.changed and (.established | has("live_new"))' \
	cutover rollback web --move-established --reason night --yes
json "again is nothing to do" 0 '.changed == false' cutover rollback web --move-established --yes
json "no flow takes the new ring" 0 '(.uses_new | not) and .threshold == 0' explain "${flow[@]}"
before=$("$ringway" explain "${flow[@]}" --json | jq -r .backend.name)

stop -TERM
run 1 status
result $? "a daemon that is down is said to be down"
[ ! -e "$RINGWAY_RUN_DIR/ringwayd.sock" ]
result $? "it takes its socket away"
start
result $? "it starts again"
json "a restart keeps the cutover" 0 '.cutovers[0].share_ppm == 0 and .cutovers[0].to == "v2 x16"' cutover list
json "and the picks" 0 ".backend.name == \"$before\"" explain "${flow[@]}"
stop -KILL
start
result $? "it starts after kill -9, over the socket that was left"
json "discard at 0 %" 0 '.changed' cutover discard web --yes
json "no cutover" 0 '.cutovers == []' cutover list

json "apply" 0 '.changed and ([.changes[].kind] | unique) == ["added", "changed", "removed"]' apply -f "$data/pools-next.yaml"
printf 'pools: 7\n' >"$work/bad.yaml"
json "a bad file is refused with its place" 7 '.code == 7 and ([.details[] | select(test("bad.yaml:1:8"))] | length) == 1' \
	apply -f "$work/bad.yaml"
json "and the old configuration serves" 0 '.services == 3' status
run 3 apply -f "$work/none.yaml"
result $? "a file that is not there"

# The line language itself.
printf 'nonsense\n{"id":5,"verb":"status"}\n' | timeout 5 socat -t 0.5 - "UNIX-CONNECT:$RINGWAY_RUN_DIR/ringwayd.sock" >"$work/out" 2>"$work/err"
[ "$(jq -s -c '[.[].ok, .[1].id]' "$work/out")" = '[false,true,5]' ]
result $? "a malformed line is answered, and the connection goes on"
timeout 2.8 "$ringway" status --watch --json >"$work/out" 2>"$work/err"
[ "$(jq -s 'length >= 3 and all(.[]; .node == "lb-test-1")' "$work/out")" = true ]
result $? "a watched verb is a stream of JSON lines"

curl -s "http://127.0.0.1:$port/metrics" >"$work/out"
promtool check metrics <"$work/out" >"$work/err" 2>&1
result $? "promtool takes the metrics"
grep -q '^ringway_control_requests_total{verb="apply",code="invalid"} 1$' "$work/out" &&
	grep -q '^ringway_ring_info{pool="web",subset="nvme",ring="0",role="old",version="v1",digest="[0-9a-f]\{32\}"} 1$' "$work/out" &&
	! grep -q backend= "$work/out"
result $? "requests, rings, and no backend"
curl -s "http://127.0.0.1:$port/metrics?scope=backend" | grep -q '^ringway_backend_up{pool="web",backend="web-2"} 1$'
result $? "backends when asked"

python3 -c "
print('pools:')
for pool in ('big', 'bigger'):
    print(f'  - name: {pool}\n    ring: {{version: v2, points: 4}}\n    backends:')
    for i in range(3000):
        print(f'      - {{name: b{i}, address: 10.{1 if pool == \"big\" else 2}.{i // 250}.{i % 250 + 1}}}')" >"$work/big.yaml"
json "6,000 backends" 0 '.changed' apply -f "$work/big.yaml"
[ "$(curl -s "http://127.0.0.1:$port/metrics" | grep -vc '^#')" -lt 2000 ]
result $? "the number of series does not follow the number of backends"

sed 's/version: v2, points: 4/version: v3, points: 16/; s/name: big$/name: web/' "$work/big.yaml" >"$work/v3.yaml"
echo 'services: [{name: https, address: 203.0.113.10, protocol: tcp, ports: [443], pool: web, tunnel: {type: gue}}]' >>"$work/v3.yaml"
json "v3 rings" 0 '.changed' apply -f "$work/v3.yaml" --force --reason test
node_digest=$("$ringway" ring list --json | jq -r '.rings[] | select(.name == "web") | .spec_digest')
json "the CLI builds the balanced ring that the node has" 0 \
	".spec_digest == \"$node_digest\" and .hottest_ratio < 1.05 and .cv_share < 0.02" ring show web
run 0 backend set web b7 --weight 2
node_digest=$("$ringway" ring list --json | jq -r '.rings[] | select(.name == "web") | .spec_digest')
json "and the repaired one" 0 ".spec_digest == \"$node_digest\"" ring show web
json "which another fresh one is not" 0 '.churn_share > 0.01' ring diff web web@v3:15

# What only v3 has must not stay behind in a ring of another version.
run 2 cutover set web --to v2 --balance 0.1
result $? "only v3 has a balance"
for version in v2 v3; do
	json "a cutover to $version" 0 '.changed' cutover set web --to $version --points 16 --share 100%
	run 0 cutover retire web --yes
	stop -KILL
	start
	json "that a start can read" 0 "[.rings[] | select(.name == \"web\") | .version] == [\"$version\"]" ring list
done

cat >"$work/cutover.yaml" <<-END
	pool: web
	to: {version: v2, points: 8}
	datacenters: [$(sed -n 's/^datacenter: *//p' "$work/node.yaml")]
	stages: [{datacenters: all, steps: [10%, 100%], min_soak: 10s}]
END
# Every 65,536th hash of the circle, all of one weight: the weighted churn is the exact one within sampling error.
seq 0 65536 4294967295 >"$work/sample"
json "a plan weighs its churn by a sample of flows" 0 \
	'all(.rings[]; .churn > 0.3 and (.churn - .churn_traffic | fabs) < 0.01)' \
	cutover plan -f "$work/cutover.yaml" --traffic "$work/sample"
# All the traffic is one flow: it moves or it does not.
echo "0x80000000 5" >"$work/sample"
json "and one flow is all or nothing" 0 'all(.rings[]; .churn_traffic == 0 or .churn_traffic == 1)' \
	cutover plan -f "$work/cutover.yaml" --traffic "$work/sample"
plan_text() { run 0 cutover plan -f "$work/cutover.yaml" && ! grep -qE '.{121}' "$work/out" && grep -qF "$1" "$work/out"; }
plan_text "WARN early_abort wants 15984 flows on each ring; no rate of flows is known"
result $? "a plan warns when nobody knows how long to soak, in 120 columns"
sed -i '1a hit_ratio: {query: "hits"}' "$work/cutover.yaml"
run 7 cutover plan -f "$work/cutover.yaml" && grep -q 'cutover.yaml:2:1  hit_ratio: .*prometheus' "$work/err"
result $? "a query without a prometheus is refused with its line and column"
sed -i '1a prometheus: http://127.0.0.1:1' "$work/cutover.yaml"
run 1 cutover plan -f "$work/cutover.yaml" && grep -q "the hit ratio is not known: Couldn't connect" "$work/err" &&
	grep -q 'write one: hit_ratio: 0.95' "$work/err"
result $? "without an answer there is no plan, and the way out is named"
sed -i '/^hit_ratio/d; /^prometheus/d' "$work/cutover.yaml"
echo "nonsense" >"$work/sample"
run 7 cutover plan -f "$work/cutover.yaml" --traffic "$work/sample" && grep -q 'sample:1: ' "$work/err"
result $? "a bad sample is refused with its line"

# A cutover that changes the hash seed alone. In a file it would move most flows at once.
seed=00112233445566778899aabbccddeeff
"$ringway" config export >"$work/seeded.yaml"
json "what was exported changes nothing" 0 '.changed == false' apply -f "$work/seeded.yaml"
sed -i "s/ring: {version: v3/ring: {hash_seed: $seed, version: v3/" "$work/seeded.yaml"
json "diff says what another seed would move, and not which" 0 \
	'any(.changes[]; .path == "pools.web.ring.hash_seed") and all(.changes[]; .after | test("not shown")) and
	all(.moves[]; .moved_ratio > 0.99)' diff -f "$work/seeded.yaml"
run 8 apply -f "$work/seeded.yaml" && grep -q 'cutover plan' "$work/err"
result $? "apply refuses it and names the cutover"
cat >"$work/cutover.yaml" <<-END
	pool: web
	to: {hash_seed: $seed}
	datacenters: [$(sed -n 's/^datacenter: *//p' "$work/node.yaml")]
	stages: [{datacenters: all, steps: [10%, 100%], min_soak: 10s}]
END
seq 0 65536 4294967295 >"$work/sample"
json "a plan to another hash seed says so, and weighs the sample by shares" 0 \
	'all(.rings[]; .hash_seed_changes and .churn > 0.5 and (.churn - .churn_traffic | fabs) < 0.01)' \
	cutover plan -f "$work/cutover.yaml" --traffic "$work/sample"
plan=$(jq -r .plan "$work/out")
churn=$(jq '.rings[] | select(.tags == "-") | .churn' "$work/out")
! grep -q "$seed" "$work/out" && [ "$(stat -c %a "$work/run/plans/$plan.json")" = 600 ]
result $? "nobody is shown the seed, and the plan's file is private"
run 0 cutover plan -f "$work/cutover.yaml" && grep -q "the hash seed changes" "$work/out"
result $? "the plan for people says it, too"
json "stage it" 0 '.changed' cutover stage "$plan" --reason leak
json "the rings tell their seeds apart" 0 '.hash_seed_differs and .different' ring diff web web@new
diff_churn=$(jq .churn_share "$work/out")
jq -en --argjson a "$churn" --argjson b "$diff_churn" '$a - $b | fabs < 1e-6' >/dev/null
result $? "ring diff and plan agree on the churn ($churn)"
node_digest=$("$ringway" ring list --json | jq -r '.rings[] | select(.name == "web@new") | .spec_digest')
json "the mark is enough for the digest" 0 ".spec_digest == \"$node_digest\"" ring show web@new
run 0 cutover list -o wide && grep -q ' seed [0-9a-f]\{8\}' "$work/out" && ! grep -q "$seed" "$work/out"
result $? "a list shows a mark"
json "show says the seeds and the same churn" 0 \
	"(.to | test(\" seed [0-9a-f]{8}\$\")) and (.from | test(\"seed\") | not) and (.churn - $churn | fabs) < 1e-6" \
	cutover show web
sed "s/hash_seed: .*/hash_seed: 0011}/" "$work/cutover.yaml" >"$work/bad.yaml"
run 7 cutover plan -f "$work/bad.yaml" && grep -q 'bad.yaml:2:.*to.hash_seed: must be 32 hexadecimal digits' "$work/err"
result $? "a seed that is none is refused with its line"

stop -TERM
finish
