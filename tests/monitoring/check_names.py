#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rules, dashboards and docs/operations.md name only metrics that a scrape has, and their expressions are ones that Prometheus takes.

usage: check_names.py SCRAPE CONFIGS_DIRECTORY
Prints what is wrong; exit code 1 if anything is.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def expressions(path):
    """Yields the PromQL of a dashboard, with its variables filled in."""
    board = json.loads(path.read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield re.sub(r"\$\w+", ".*", target["expr"])


def main():
    scrape = pathlib.Path(sys.argv[1]).read_text()
    configs = pathlib.Path(sys.argv[2])
    known = set(re.findall(r"^# TYPE (ringway_\w+) ", scrape, re.M))
    faults = []
    boards = sorted((configs / "grafana").glob("*.json"))
    rules = sorted((configs / "prometheus").glob("*.rules.yml"))
    if len(known) < 50 or len(boards) < 5 or not rules:
        faults.append(f"too little to compare: {len(known)} metrics, {len(boards)} dashboards, {len(rules)} rule files")
    exprs = [expr for path in boards for expr in expressions(path)]
    documents = rules + [configs.parent / "docs" / "operations.md"]
    text = "\n".join(exprs + [path.read_text() for path in documents])
    for name in sorted(set(re.findall(r"\bringway_\w+", text)) - known):
        faults.append(f"no scrape has {name}")
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump({"groups": [{"name": "dashboards", "rules": [
            {"record": f"panel_{i}", "expr": expr} for i, expr in enumerate(exprs)]}]}, file)
        file.flush()
        check = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True)
        if check.returncode:
            faults.append(check.stdout + check.stderr)
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(1 if faults else 0)


main()
