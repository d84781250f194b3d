#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on what a tree that stands alone does not say: paths of a machine, unfinished marks, a missing licence line."""
import pathlib
import re
import subprocess
import sys

LICENSED = (".c", ".h", ".py", ".sh", ".lua")
MACHINE_PATH = re.compile(r"/(work|farm|root|home)/[a-z]")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
# These carry the patterns themselves or bytes that are not text.
SKIP = ("devtools/lib/prose.py", "tests/fuzz/corpus/", "tests/conformance/vectors/", "LICENSE")


def faults(path, text):
    head = text[:400]
    if (path.endswith(LICENSED) or head.startswith("#!")) and "SPDX-License-Identifier:" not in head:
        yield f"{path}:1: no SPDX-License-Identifier line"
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: path of a machine: {line.strip()[:80]}"
        if UNFINISHED.search(line):
            yield f"{path}:{number}: unfinished mark: {line.strip()[:80]}"
        if line != line.rstrip() and not path.endswith((".md", ".patch")):
            yield f"{path}:{number}: white space at the end of the line"


def main():
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             check=True, capture_output=True, text=True).stdout.splitlines()
    found = []
    for path in listing:
        if path.startswith(SKIP) or not pathlib.Path(path).is_file():
            continue
        data = pathlib.Path(path).read_bytes()
        if b"\0" in data:
            continue
        found += faults(path, data.decode("utf-8", "replace"))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


sys.exit(main())
