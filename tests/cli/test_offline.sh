#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that ringway does with no daemon, by the real binary.
. "$(dirname "$0")/lib.sh"

json "good files validate" 0 '.valid and (.findings | length) == 0 and .schema_version == 1' \
	validate -f "$data/pools.yaml" --node "$data/node.yaml"
printf 'pools:\n  - {name: web, ring: {version: v9}, backends: [{name: a, address: 1.2.3, weight: 0}]}\n' \
	>"$work/bad.yaml"
json "all errors of a file are reported at once, with places" 7 \
	'(.valid | not) and (.findings | length) == 3 and all(.findings[]; .line == 2 and .column > 0)' \
	validate -f "$work/bad.yaml"
check "people see the findings on stderr" grep -q 'error\[CFG' "$work/err"
json "twins are refused, both named" 7 '.findings[0].text | test("a .*b |b .*a ")' validate -f "$data/twins.yaml"
run 3 validate -f "$work/none.yaml"
result $? "a missing file is not found"
run 2 validate
result $? "validate without a file is a usage error"
head -c 34000000 /dev/zero | tr '\0' '#' >"$work/large.yaml"
run 7 validate -f "$work/large.yaml"
result $? "a file beyond the limit is invalid"
json "standard input is a file too" 0 '.valid' validate -f - <"$data/pools.yaml"

json "diff names what was added, removed, changed" 0 \
	'.different and ([.changes[].kind] | unique) == ["added", "changed", "removed"]' \
	diff "$data/pools.yaml" "$data/pools-next.yaml"
run 10 diff --exit-code "$data/pools.yaml" "$data/pools-next.yaml"
result $? "differences end with 10 when asked"
json "no differences" 0 '(.different | not) and .changes == []' diff --exit-code "$data/pools.yaml" "$data/pools.yaml"

json "dataplane arguments" 0 \
	'.arguments | index("--run-dir") as $i | .[$i + 1] == "/tmp/ringway-test" and index("1,2") and index("--gateway")' \
	dataplane-args -f "$data/node.yaml"
run 0 dataplane-args -f "$data/node.yaml"
check "one argument a line" grep -qx -- '--port' "$work/out"

# 160 points a weight: 5 weights; shares sum to one.
json "ring show counts points and shares" 0 \
	'.points == 800 and .version == "v1" and ([.members[].ring_share] | add - 1 | fabs) < 1e-9
	 and (.members | length) == 4 and .members[3].name == "web-3"' \
	ring show -f "$data/pools.yaml" web
json "a subset ring has only backends with the tags" 0 '[.members[].name] == ["web-1", "web-2", "web-4"]' \
	ring show -f "$data/pools.yaml" web+nvme
json "any version can be shown" 0 '.version == "v2" and .points == 20 and .ring_bytes < .as_v1_bytes' \
	ring show -f "$data/pools.yaml" web@v2:4
json "a ring without backends is a ring" 0 '.points == 0 and .members == []' ring show -f "$data/pools.yaml" web+none
run 3 ring show -f "$data/pools.yaml" none
result $? "an unknown pool is not found"
run 2 ring show -f "$data/pools.yaml" web@v4
result $? "an unknown version is a usage error"
run 2 ring show -f "$data/pools.yaml" web@v2:x
result $? "points that are no number are a usage error"
run 2 ring show -f "$data/pools.yaml" web@new
result $? "a file holds no cutover"

# v2 x16 is a subset of v1 x160: churn = (1 - 16/160) (1 - sum of squared shares) within the spread of so few points.
json "churn of fewer points is what theory says" 0 \
	'(.churn_share - 0.9 * 0.72 | fabs) < 0.12 and .unavoidable_share == 0
	 and ([.servers[].out_share] | add) == .churn_share and ([.servers[].in_share] | add) == .churn_share' \
	ring diff -f "$data/pools.yaml" web web@v2:16
json "reasons are named" 0 \
	'[.servers[] | {(.name): .why}] | add | ."web-4" == "removed" and ."web-5" == "added" and ."web-2" == "weight 2 -> 3"' \
	ring diff "$data/pools.yaml:web" "$data/pools-next.yaml:web"
json "the same ring moves nothing" 0 '.churn_share == 0 and .different == false' \
	ring diff "$data/pools.yaml:web@v1" "$data/pools.yaml:web"
run 10 ring diff --exit-code "$data/pools.yaml:web" "$data/pools-next.yaml:web"
result $? "rings that differ end with 10 when asked"
# The whole circle in equal steps, as a sample: it must find the exact churn.
awk 'BEGIN { for (i = 0; i < 65536; i++) printf "%.0f 1\n", i * 65536 + 32768 }' >"$work/traffic"
json "sampled churn agrees with exact churn" 0 \
	'(.traffic_churn_share - .churn_share | fabs) < 0.005 and .traffic_weight == 65536' \
	ring diff -f "$data/pools.yaml" web web@v2:16 --traffic "$work/traffic"
printf '0x10 5\n# comment\n\n7\n' >"$work/traffic"
json "hexadecimal, comments and missing weights are read" 0 '.traffic_weight == 6' \
	ring diff -f "$data/pools.yaml" web web@v2 --traffic "$work/traffic"
printf '1\n4294967296 1\n' >"$work/traffic"
run 7 ring diff -f "$data/pools.yaml" web web@v2 --traffic "$work/traffic" && grep -q 'traffic:2:' "$work/err"
result $? "a bad line of a sample is named"

json "simulate a pool's own ring" 0 '.version == "v1" and .backends == 4 and .points == 800' ring simulate -f "$data/pools.yaml" web
shown=$("$ringway" ring show -f "$data/pools.yaml" web --json | jq .cv_share)
json "it is the ring that show shows" 0 ".simulated_cv_share - $shown | fabs < 1e-12" ring simulate -f "$data/pools.yaml" web
run 2 ring simulate web
result $? "a pool needs its file"
run 3 ring simulate -f "$data/pools.yaml" none
result $? "no such pool"
run 2 ring simulate -f "$data/pools.yaml" web --backends 3
result $? "a pool has its own backends"

export RINGWAY_RUN_DIR=$work
run 1 ring show web && grep -q "$work/ringwayd.sock" "$work/err" && [ ! -s "$work/out" ]
result $? "without a daemon the message names the socket, and nothing is printed"
unset RINGWAY_RUN_DIR

for shell in bash zsh fish; do
	run 0 completion $shell && [ -s "$work/out" ]
	result $? "completion for $shell"
done
run 0 completion bash && bash -c 'source "$1"; COMP_WORDS=(ringway ring s); COMP_CWORD=2; _ringway; [[ " ${COMPREPLY[*]} " == *" simulate "* ]]' - "$work/out"
result $? "bash completes verbs"
run 0 man && scdoc <"$work/out" >"$work/man" 2>"$work/err" && [ "$(grep -c '^\.SS ' "$work/man")" -gt 25 ]
result $? "the man page compiles"
for page in node.yaml pools.yaml; do
	run 0 man $page && scdoc <"$work/out" >"$work/man" 2>"$work/err" && [ "$(wc -l <"$work/man")" -gt 60 ]
	result $? "the page of $page compiles"
done
run 3 man none
result $? "no page"
run 0 validate "$data/pools.yaml"
result $? "validate takes a file as a word"
"$ringway" drop list >/dev/full 2>"$work/err"
[ $? = 1 ]
result $? "a full disk is a failure"

finish
