# SPDX-License-Identifier: Apache-2.0
# Frame of the CLI tests: TAP from shell. $1 of a test script is the ringway binary.
# check NAME COMMAND...: passes when the command succeeds. run CODE ARGS...: runs ringway and compares its exit code;
# stdout and stderr are left in $work/out and $work/err.
ringway=$1
data=$(dirname "$0")/data
work=$(mktemp -d /tmp/ringway-cli-XXXXXX)
trap 'rm -rf "$work"' EXIT
count=0
failed=0
unset RINGWAY_RUN_DIR NO_COLOR

result() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		failed=1
		echo "not ok $count - $2"
		sed 's/^/# out: /' "$work/out" | head -20
		sed 's/^/# err: /' "$work/err" | head -20
	fi
}

check() {
	local name=$1
	shift
	"$@" >/dev/null 2>"$work/check"
	result $? "$name"
}

# Runs ringway; the exit code must be the first argument.
run() {
	local expected=$1
	shift
	"$ringway" "$@" >"$work/out" 2>"$work/err"
	local code=$?
	[ "$code" = "$expected" ] || echo "# exit code $code, expected $expected: ringway $*"
	[ "$code" = "$expected" ]
}

# A test of exit code and JSON: json NAME CODE JQ-FILTER ARGS...
json() {
	local name=$1 code=$2 filter=$3
	shift 3
	# jq is content with no input at all; we are not.
	run "$code" --json "$@" && [ -s "$work/out" ] && jq -e "$filter" "$work/out" >/dev/null
	result $? "$name"
}

finish() {
	echo "1..$count"
	exit $failed
}
