# SPDX-License-Identifier: Apache-2.0
# The frame of the end-to-end tests and of devtools/demo: a sandbox, processes with logs, facts to wait for, TAP.
#
#	. "$(dirname "$0")/lib.sh"
#	sandbox "$@"
#	...
#	check "what must be true" command arguments...
#	finish
#
# sandbox() runs the script again inside mount and PID namespaces of its own, with an empty /run. Network namespaces,
# mounts, sockets and files live there, and every process does too; when the script ends, is interrupted or killed, the
# kernel takes all of it back. Nothing has to be undone, so nothing can be forgotten.
#
# Settings: E2E_BUILD (build directory), E2E_KEEP=DIR (copy the logs there), E2E_SHELL=1 (a shell inside on failure),
# E2E_PATIENCE (factor of all waits).

set -euo pipefail

E2E_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
E2E_BUILD=${E2E_BUILD:-$E2E_SOURCE/build}
E2E_WORK=/run/e2e # inside the sandbox, on its own tmpfs
E2E_PATIENCE=${E2E_PATIENCE:-5}
E2E_TOOLS="ip tc ethtool nsenter unshare setpriv nginx jq"

e2e_count=0
e2e_failed=0
e2e_finished=false
declare -A e2e_pids=()

# A test that cannot run here says so, as TAP wants it.
skip_all() {
	e2e_finished=true
	echo "1..0 # SKIP $*"
	exit 0
}

# Ends the sandbox and waits until its last process is gone.
end_sandbox() {
	local init
	init=$(cat "/proc/$1/task/$1/children" 2>/dev/null || true)
	kill -KILL "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	for _ in $(seq 100); do
		[ -n "${init// /}" ] && [ -d "/proc/${init// /}" ] || return 0
		sleep 0.05
	done
}

sandbox() {
	local tool child status=0
	if [ -n "${E2E_INSIDE:-}" ]; then
		enter_sandbox
		return
	fi
	[ "$(id -u)" -eq 0 ] || skip_all "needs root: makes network namespaces"
	for tool in $E2E_TOOLS; do
		command -v "$tool" > /dev/null || skip_all "$tool is not installed (devtools/deps installs it)"
	done
	# The chain of death signals reaches the sandbox's init even when this shell is killed with -9.
	E2E_INSIDE=1 setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork \
		--kill-child=KILL --mount-proc -- "$BASH" "$0" "$@" &
	child=$!
	trap 'end_sandbox $child; exit 130' INT TERM HUP
	wait "$child" || status=$?
	exit "$status"
}

enter_sandbox() {
	mount -t tmpfs -o mode=755 tmpfs /run
	mkdir -p "$E2E_WORK" /run/lock
	trap leave_sandbox EXIT
}

leave_sandbox() {
	local status=$?
	if ! $e2e_finished; then
		echo "Bail out! the script stopped early (exit code $status)"
		show_logs
		[ "$status" -ne 0 ] || status=1
	fi
	[ -z "${E2E_KEEP:-}" ] || { mkdir -p "$E2E_KEEP" && cp -r "$E2E_WORK/." "$E2E_KEEP/"; }
	[ -z "${E2E_SHELL:-}" ] || [ "$status" -eq 0 ] || "$BASH" -i < /dev/tty || true
	exit "$status"
}

# Prints text as TAP comments, a screen of it at most.
comment() {
	tail -n 25 | cut -c 1-300 | sed 's/^/# /'
}

show_logs() {
	local log
	for log in "$E2E_WORK"/*.log; do
		[ -s "$log" ] || continue
		echo "# --- ${log##*/}, last lines"
		comment < "$log"
	done
}

# check NAME COMMAND...: one line of TAP; the command's output is shown when it fails.
check() {
	local name=$1 output=$E2E_WORK/check.out
	shift
	e2e_count=$((e2e_count + 1))
	if "$@" > "$output" 2>&1; then
		echo "ok $e2e_count - $name"
		return
	fi
	echo "not ok $e2e_count - $name"
	e2e_failed=$((e2e_failed + 1))
	echo "# command: $*"
	comment < "$output"
}

finish() {
	e2e_finished=true
	echo "1..$e2e_count"
	[ "$e2e_failed" -eq 0 ] && exit 0
	show_logs
	exit 1
}

# wait_for SECONDS COMMAND...: until the command succeeds. Facts, not sleeps. SECONDS are those of a machine of its own; one
# that others use gets E2E_PATIENCE times as many.
wait_for() {
	local deadline=$((${EPOCHREALTIME%.*} + $1 * E2E_PATIENCE)) output
	output=$(mktemp "$E2E_WORK/wait.XXXXXX") # waits nest
	shift
	until "$@" > "$output" 2>&1; do
		if [ "${EPOCHREALTIME%.*}" -ge "$deadline" ]; then
			echo "# waited in vain for: $*"
			comment < "$output"
			return 1
		fi
		sleep 0.05
	done
	rm -f "$output"
}

# on NS COMMAND...: in a network namespace. nsenter and not 'ip netns exec', which hides bpffs and costs a mount namespace.
on() {
	local namespace=$1
	shift
	nsenter --net="/run/netns/$namespace" -- "$@"
}

# spawn NAME NS COMMAND...: in the background, output to NAME.log.
spawn() {
	local name=$1 namespace=$2
	shift 2
	nsenter --net="/run/netns/$namespace" -- "$@" >> "$E2E_WORK/$name.log" 2>&1 &
	e2e_pids[$name]=$!
}

is_running() {
	kill -0 "${e2e_pids[$1]}" 2>/dev/null
}

# stop NAME [SIGNAL]: and wait until it is gone; its exit code is returned.
stop() {
	local status=0
	kill "-${2:-TERM}" "${e2e_pids[$1]}" 2>/dev/null || true
	wait "${e2e_pids[$1]}" 2>/dev/null || status=$?
	unset "e2e_pids[$1]"
	return "$status"
}
