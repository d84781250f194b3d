#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on files and functions past the hard limits of the house style; tables are exempt by nature."""
import collections
import json
import pathlib
import re
import subprocess
import sys

FUNCTION_LINES = 70
C_LINES = 800
H_LINES = 400
PARAMETERS = 6  # the target is 5; a sixth is for callbacks that a library defines
LIBRARY_CALLBACKS = {"handle_http"}  # libmicrohttpd's access handler has eight


def listing():
    out = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.c", "*.h"],
        check=True, capture_output=True, text=True).stdout.split()
    return [path for path in out if pathlib.Path(path).exists()]


def functions(paths):
    """Yields (path, name, first line, last line, signature) as universal-ctags sees them."""
    out = subprocess.run(
        ["ctags", "--output-format=json", "--fields=+neS", "--c-kinds=f", "--languages=C", "--langmap=C:.c.h", "-f", "-", *paths],
        check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        tag = json.loads(line)
        if tag.get("kind") == "function" and "end" in tag:
            yield tag["path"], tag["name"], tag["line"], tag["end"], tag.get("signature", "()")


def parameters(signature):
    inner = re.sub(r"\([^()]*\)", "", signature.strip()[1:-1])
    return 0 if inner.strip() in ("", "void") else inner.count(",") + 1


def main():
    paths = listing()
    found = []
    for path in paths:
        lines = len(pathlib.Path(path).read_text().splitlines())
        limit = H_LINES if path.endswith(".h") else C_LINES
        if lines > limit:
            found.append(f"{path}: {lines} lines, at most {limit}: one file, one noun")
    spread = collections.Counter()
    for path, name, first, last, signature in functions(paths) if paths else ():
        lines = last - first + 1
        spread[min(lines // 20, 4)] += 1
        if lines > FUNCTION_LINES:
            found.append(f"{path}:{first}: {name}() has {lines} lines, at most {FUNCTION_LINES}")
        if parameters(signature) > PARAMETERS and name not in LIBRARY_CALLBACKS:
            found.append(f"{path}:{first}: {name}() takes {parameters(signature)} parameters, at most {PARAMETERS}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


sys.exit(main())
