#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that goes against the layers of docs/architecture.md."""
import pathlib
import re
import subprocess
import sys

# Folder -> folders whose headers it may include. A folder may always include itself. The longest match counts.
# None: anything.
MAY = {
    "common": [],
    "dataplane/packet": ["common"],
    "dataplane/table": ["common"],
    "dataplane/pipeline": ["common", "dataplane/packet", "dataplane/table"],
    "dataplane/replay": ["common", "dataplane/packet", "dataplane/table", "dataplane/pipeline"],
    "dataplane/io": ["common", "dataplane"],
    "dataplane": ["common", "dataplane"],
    "control/ring": ["common"],
    "control/cutover": ["common", "control/ring"],
    "control/config": ["common", "control/ring", "control/cutover"],
    "control/cli": ["common", "control/config", "control/ring", "control/cutover"],
    "control": ["common", "control", "bpf"],
    "bpf": ["common"],
    "tests": None,
}

# Folders that must stay free of the outside world, and what would betray them.
PURE = ("common", "dataplane/packet", "dataplane/table", "dataplane/pipeline", "control/ring", "control/cutover")
IMPURE = re.compile(
    r"^(rte_|yaml|jansson|curl/|systemd/|microhttpd|libsmartcols|ncurses|bpf/|sys/socket|sys/mman|fcntl|unistd|syslog|pthread)"
)
# JSON of plans and states is data, not input or output.
IMPURE_BUT = {"control/cutover": re.compile(r"^jansson")}
DPDK_MAY = ("dataplane/io", "dataplane/main.c", "tests")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')


def folder_of(path, table):
    best = ""
    for folder in table:
        if (path == folder or path.startswith(folder + "/")) and len(folder) > len(best):
            best = folder
    return best


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def faults(path):
    home = folder_of(path, MAY)
    may = MAY.get(home)
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"{path}:{number}: "
        if quote == "<":
            if target.startswith("rte_") and not any(inside(path, ok) for ok in DPDK_MAY):
                yield where + f"<{target}>: only dataplane/io and dataplane/main.c may include DPDK"
            elif any(inside(path, pure) for pure in PURE) and IMPURE.match(target):
                allowed = IMPURE_BUT.get(home)
                if not (allowed and allowed.match(target)):
                    yield where + f"<{target}>: {home} is pure"
            continue
        generated = target.endswith((".skel.h", "_generated.h")) or target == "vmlinux.h"
        if "/" not in target and not generated:
            yield where + f'"{target}": includes are rooted, like "common/ring.h"'
        if may is None or generated or inside(target, home):
            continue
        if home == "" or not any(inside(target, ok) for ok in may):
            yield where + f'"{target}": {home or path} may include only {", ".join(may) or "itself"}'


def main():
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.c", "*.h"],
        check=True, capture_output=True, text=True).stdout.split()
    found = [fault for path in listing if pathlib.Path(path).exists() for fault in faults(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


sys.exit(main())
