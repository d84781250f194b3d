#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up meson's test logs: names what failed or was skipped, and ends with `N passed, N failed, N skipped`.

A TAP program counts by its lines; one that crashed, hung or left lines out counts one failure more.
"""
import json
import re
import sys

TAP = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*)$")
GOOD = ("OK", "EXPECTEDFAIL")


def subtests(output):
    """Yields (outcome, name) of every TAP line."""
    for line in output.splitlines():
        match = TAP.match(line)
        if not match:
            continue
        failed, name = match.groups()
        if "# SKIP" in name.upper():
            yield "skipped", name
        else:
            yield "failed" if failed else "passed", name


def outcomes(entry):
    """Yields (outcome, name) of everything that one test program stands for."""
    lines = list(subtests(entry["stdout"]))
    yield from lines
    if entry["result"] == "SKIP" and not lines:
        yield "skipped", "all of it"
    elif entry["result"] not in GOOD + ("SKIP",):
        if not any(outcome == "failed" for outcome, _ in lines):
            yield "failed", f"{entry['result'].lower()}, exit status {entry.get('returncode')}"
    elif not lines:
        yield "passed", "all of it"


def main(arguments):
    extra = 0
    if "--extra-failed" in arguments:
        at = arguments.index("--extra-failed")
        extra = int(arguments[at + 1])
        arguments = arguments[:at]
    counts = {"passed": 0, "failed": extra, "skipped": 0}
    for log in arguments:
        with open(log, encoding="utf-8") as lines:
            for entry in map(json.loads, lines):
                for outcome, name in outcomes(entry):
                    counts[outcome] += 1
                    if outcome != "passed":
                        print(f"{outcome}: {entry['name']}: {name}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


sys.exit(main(sys.argv[1:]))
