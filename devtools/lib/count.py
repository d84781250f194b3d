#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up meson's JUnit reports: names what failed, and ends with `N passed, N failed, N skipped`."""
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def main(arguments):
    extra = 0
    if "--extra-failed" in arguments:
        at = arguments.index("--extra-failed")
        extra = int(arguments[at + 1])
        arguments = arguments[:at]
    counts = {"passed": 0, "failed": extra, "skipped": 0}
    for report in arguments:
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                result = outcome(case)
                counts[result] += 1
                if result != "passed":
                    print(f"{result}: {suite.get('name')} {case.get('name')}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


sys.exit(main(sys.argv[1:]))
