#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures dpdk-testpmd on a virtual device: prints nanoseconds of its worker's CPU time a packet, the best of rounds."""
import argparse
import os
import re
import subprocess
import sys
import time

PACKETS = re.compile(r"TX-packets:\s*(\d+)")


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read().split()[0])


def worker_thread(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as comm:
            if comm.read().startswith(("rte-worker", "lcore-worker")):
                return task
    return None


def cpu_ns(pid, task):
    with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0])


def packets(testpmd):
    """Asks for the port's counters and waits for the line that carries them."""
    testpmd.stdin.write("show port stats 0\n")
    testpmd.stdin.flush()
    while True:
        line = testpmd.stdout.readline()
        if not line:
            sys.exit("testpmd ended early")
        found = PACKETS.search(line)
        if found:
            return int(found.group(1))


def measure(arguments):
    main = 0 if arguments.cpu != 0 else 1
    # Its answers would wait in a buffer of 4 KiB.
    command = ["stdbuf", "-oL", "timeout", "60", "dpdk-testpmd", "--no-pci", "--in-memory", "-m", "128", "--no-telemetry",
               "--lcores", f"0@{main},1@{arguments.cpu}", "--file-prefix", f"testpmd-{os.getpid()}",
               "--vdev", arguments.device, "--", "-i", "--auto-start",
               f"--total-num-mbufs={arguments.buffers}", f"--mbuf-size={arguments.buffer_size}",
               f"--forward-mode={arguments.mode}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as testpmd:
        try:
            packets(testpmd)
            pid = child_of(testpmd.pid)
            task = worker_thread(pid)
            if task is None:
                sys.exit("testpmd has no worker thread")
            best = float("inf")
            for _ in range(arguments.rounds):
                count, spent = packets(testpmd), cpu_ns(pid, task)
                time.sleep(0.3)
                count, spent = packets(testpmd) - count, cpu_ns(pid, task) - spent
                if count > 0:
                    best = min(best, spent / count)
            testpmd.stdin.write("quit\n")
            testpmd.stdin.flush()
            testpmd.communicate(timeout=20)
        finally:
            if testpmd.poll() is None:
                testpmd.kill()
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--device", default="net_null0,size=64")
    parser.add_argument("--mode", default="macswap")
    parser.add_argument("--buffers", type=int, default=16384)
    parser.add_argument("--buffer-size", type=int, default=2176)
    parser.add_argument("--rounds", type=int, default=7)
    print(f"{measure(parser.parse_args()):.2f}")


if __name__ == "__main__":
    main()
