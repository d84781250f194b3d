#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every header alone: a header that needs another one first is a trap for its next user."""
import concurrent.futures
import pathlib
import subprocess
import sys

FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Wno-pragma-once-outside-header",
         "-I."]
PACKAGES = ["libdpdk", "jansson", "yaml-0.1", "libsystemd", "libcurl", "libbpf", "cunit"]


def package_flags():
    out = subprocess.run(["pkg-config", "--cflags", *PACKAGES], check=True, capture_output=True, text=True).stdout
    # Other people's headers are not ours to warn about.
    return [flag.replace("-I", "-isystem", 1) if flag.startswith("-I") else flag for flag in out.split()]


def compile_alone(path, flags):
    source = f'#include "{path}"\n'
    run = subprocess.run(["gcc", *FLAGS, *flags, "-x", "c", "-"], input=source, capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def main():
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.h"],
        check=True, capture_output=True, text=True).stdout.split()
    # Headers of BPF programs compile for the BPF target, in the build.
    headers = [path for path in listing if pathlib.Path(path).exists() and not path.endswith(".bpf.h")]
    flags = package_flags()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        errors = [error for error in pool.map(lambda path: compile_alone(path, flags), headers) if error]
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


sys.exit(main())
