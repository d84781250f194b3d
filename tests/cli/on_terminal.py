#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal of its own and prints its pages as they would stand there.

usage: on_terminal.py ROWS COLUMNS COMMAND...
A page begins where the cursor goes home. Prints each, behind a line "page LINES COLUMNS" of what it takes; the command's exit code.
"""
import fcntl
import os
import pty
import struct
import sys
import termios

rows, columns = int(sys.argv[1]), int(sys.argv[2])
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])
out = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    out += more
for page in out.decode().split("\033[H")[1:]:
    lines = page.replace("\033[K", "").replace("\033[J", "").replace("\r", "").split("\n")
    print("page", len(lines), max(map(len, lines)))
    print("\n".join(lines))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
