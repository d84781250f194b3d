#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random walk of an operator: any command in any state, sense or nonsense, and ringwayd killed or stopped on the way.

usage: walk.py RINGWAY RINGWAYD [STEPS]

Holds at every step: ringwayd lives, and the exit code is a documented one. After a start: generation, rings with their
digests, shares and picks are as before the end. At the end the audit log is whole. RINGWAY_TEST_SEED repeats a walk.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

EXIT_CODES = {0, 1, 2, 3, 4, 6, 7, 8, 10}
POOLS = ["web", "api", "dns"]
TAGS = ["x", "y", "z"]
VERSIONS = ["v1", "v2", "v3"]
SHARES = ["0%", "1%", "50%", "100%"]
NODE = """node: n1
datacenter: ams
run_dir: {work}/run
store: {{type: file, path: {work}/state}}
dataplane:
  eal: ["--no-huge", "-m", "64"]
  main: 0
  workers: [1]
  flow_entries: 65536
  ports: [{{device: net_null0, mtu: 1600, addresses: [192.0.2.10/24], gateways: [192.0.2.1]}}]
"""


class Fault(Exception):
    pass


class Node:
    """A ringwayd without a dataplane, in a directory of its own."""

    def __init__(self, ringway, ringwayd, work):
        self.ringway, self.ringwayd, self.work = ringway, ringwayd, work
        self.said = []
        self.write("node.yaml", NODE.format(work=work))
        self.start()

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self):
        with open(os.path.join(self.work, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([self.ringwayd, "-f", self.work + "/node.yaml"], stdout=log, stderr=log)
        for _ in range(600):
            if self.process.poll() is None and self.ask("status")[0] == 0:
                return
            time.sleep(0.05)
        raise Fault("ringwayd does not start")

    def end(self, how):
        self.process.send_signal(how)
        code = self.process.wait(60)
        if code not in (0, -signal.SIGKILL):
            raise Fault(f"ringwayd ended with {code}")

    def ask(self, *words):
        command = [self.ringway, "--run-dir", self.work + "/run", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout

    def say(self, *words):
        self.said.append(" ".join(words))
        code, out = self.ask(*words)
        if code not in EXIT_CODES:
            raise Fault(f"exit code {code}")
        if self.process.poll() is not None:
            raise Fault(f"ringwayd ended with {self.process.returncode}")
        return code, out

    def state(self):
        """What an end and a start must leave as it was."""
        rings = json.loads(self.ask("ring", "list", "--json")[1])["rings"]
        picks = [self.ask("explain", "tcp", f"198.51.100.7:{port}", f"203.0.113.{1 + port % 4}:80", "--json")[1]
                 for port in range(1000, 1012)]
        return {
            "generation": json.loads(self.ask("status", "--json")[1])["generation"],
            "rings": sorted((r["name"], r["role"], r["spec_digest"]) for r in rings),
            "cutovers": sorted((c["name"], c["share_ppm"]) for c in json.loads(self.ask("cutover", "list", "--json")[1])["cutovers"]),
            "picks": [(p.get("bucket"), p.get("threshold"), p.get("backend")) for p in map(json.loads, picks)],
        }


class Operator:
    def __init__(self, node, rng):
        self.node, self.rng = node, rng

    def maybe(self, chance, text):
        return text if self.rng.random() < chance else ""

    def seed(self):
        return f"{self.rng.getrandbits(128):032x}"

    def ring(self, version):
        points = self.maybe(0.6, f", points: {self.rng.choice([1, 4, 16, 40])}") if version != "v1" else ""
        balance = self.maybe(0.4, ", balance: 10%") if version == "v3" else ""
        return f"version: {version}{points}{balance}{self.maybe(0.15, f', hash_seed: {self.seed()}')}"

    def backend(self, number):
        address = f"10.0.0.{number}" if number % 3 else f'"2001:db8::{number:x}"'
        return ("      - {name: b%d, address: %s" % (number, address)
                + self.maybe(0.5, f", weight: {self.rng.choice([1, 2, 10, 100])}")
                + self.maybe(0.5, f", tags: [{', '.join(self.rng.sample(TAGS, self.rng.randint(0, 3)))}]")
                + self.maybe(0.3, f", state: {self.rng.choice(['up', 'drain', 'down'])}")
                + self.maybe(0.1, f", port: {self.rng.randint(1, 65535)}") + "}\n")

    def service(self, number, pool):
        return ("  - {name: s%d, address: 203.0.113.%d, protocol: tcp, pool: %s" % (number, number, pool)
                + self.maybe(0.5, f", ports: [{', '.join(self.rng.sample(['80', '81', '443'], self.rng.randint(0, 3)))}]")
                + self.maybe(0.5, f", requires: [{', '.join(self.rng.sample(TAGS, self.rng.randint(0, 2)))}]")
                + self.maybe(0.4, f", affinity: {self.rng.choice(['client', 'destination'])}")
                + self.maybe(0.3, ", tunnel: {type: gue}") + self.maybe(0.2, ", state: none")
                + self.maybe(0.3, ", timeouts: {udp: %d}" % self.rng.randint(1, 200)) + "}\n")

    def pools(self):
        names = self.rng.sample(POOLS, self.rng.randint(1, 3))
        text = self.maybe(0.1, "unknown: drop\n") + "pools:\n"
        for name in names:
            members = self.rng.sample(range(1, 12), self.rng.randint(1, 8))
            text += f"  - name: {name}\n    ring: {{{self.ring(self.rng.choice(VERSIONS))}}}\n    backends:\n"
            text += "".join(map(self.backend, members))
        services = [self.service(i + 1, self.rng.choice(names)) for i in range(self.rng.randint(0, 5))]
        return self.node.write("pools.yaml", text + ("services:\n" + "".join(services) if services else ""))

    def cutover(self, pool):
        to = self.rng.choice([self.ring(self.rng.choice(VERSIONS)), f"hash_seed: {self.seed()}", "hash_seed: fleet"])
        return self.node.write("cutover.yaml", f"""pool: {pool}
to: {{{to}}}
shadow: 0s
full_soak: 0s
retire_hold: 0s
stages: [{{datacenters: all, steps: [{self.maybe(0.5, '10%, 50%, ')}100%], min_soak: 0s, require: manual}}]
""")

    def apply(self, _pool):
        path = self.pools()
        self.node.say("diff", "-f", path)
        self.node.say("apply", "-f", path, "--force", "--reason", "walk")

    def change_backend(self, pool):
        backend = f"b{self.rng.randint(1, 11)}"
        self.node.say("backend", *self.rng.choice([
            ["set", pool, backend, "--weight", str(self.rng.randint(1, 100))],
            ["set", pool, backend, "--state", self.rng.choice(["up", "down"])],
            ["drain", pool, backend], ["remove", pool, backend, "--yes"]]))

    def by_hand(self, pool):
        self.node.say("cutover", *self.rng.choice([
            ["set", pool, "--to", self.rng.choice(VERSIONS), "--share", self.rng.choice(SHARES)],
            ["set", pool, "--share", self.rng.choice(SHARES)],
            ["discard", pool, "--yes"], ["retire", pool, "--yes"]]))

    def plan(self, pool):
        members = ["--pools", self.pools()] if self.rng.random() < 0.5 else []
        code, out = self.node.say("cutover", "plan", "-f", self.cutover(pool), *members, "--json")
        if code == 0 and self.rng.random() < 0.7:
            self.node.say("cutover", "stage", json.loads(out)["plan"], "--reason", "walk")
            self.node.say("cutover", "start", pool, "--reason", "walk")

    def steer(self, pool):
        reason = ["--reason", "walk"]
        self.node.say("cutover", *self.rng.choice([
            ["advance", pool, "--force", *reason], ["pause", pool, *reason], ["resume", pool, "--force", *reason],
            ["rollback", pool, *reason], ["rollback", pool, "--local", *reason], ["resume", pool, "--local", *reason],
            ["rollback", pool, "--move-established", "--yes", *reason],
            ["kill-switch", self.rng.choice(["on", "off"]), *reason]]))

    def look(self, pool):
        self.node.say(*self.rng.choice([
            ["cutover", "show", pool], ["cutover", "watch", pool, "--count", "1"], ["cutover", "history", pool],
            ["config", "export"], ["ring", "verify"], ["node", "list"], ["ring", "show", pool],
            ["ring", "diff", pool, f"{pool}@v2:16"]]))

    def crash(self, _pool):
        # A conductor that moves something meanwhile is no fault of the start.
        for pool in POOLS:
            self.node.say("cutover", "pause", pool, "--reason", "walk")
        before = self.node.state()
        self.node.end(self.rng.choice([signal.SIGKILL, signal.SIGTERM]))
        self.node.start()
        after = self.node.state()
        if before != after:
            raise Fault(f"a start changed {[key for key in before if before[key] != after[key]]}:\n{before}\n{after}")

    def step(self):
        deed = self.rng.choices([self.apply, self.change_backend, self.by_hand, self.plan, self.steer, self.look, self.crash],
                                [6, 5, 6, 4, 4, 3, 1])[0]
        deed(self.rng.choice(POOLS))


def main():
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    seed = int(os.environ.get("RINGWAY_TEST_SEED", time.time_ns()))
    work = tempfile.mkdtemp(prefix="ringway-walk-")
    node = None
    print(f"1..1\n# RINGWAY_TEST_SEED={seed}, {steps} steps", flush=True)
    try:
        node = Node(sys.argv[1], sys.argv[2], work)
        operator = Operator(node, random.Random(seed))
        for _ in range(steps):
            operator.step()
        if node.say("audit", "verify")[0] != 0:
            raise Fault("the audit log is broken")
        print("ok 1 - whatever is said, ringwayd lives and a start changes nothing")
    except (Fault, subprocess.TimeoutExpired, ValueError, KeyError) as fault:
        print(f"not ok 1 - {type(fault).__name__}")
        last = "\n".join(node.said[-12:]) if node else ""
        with open(work + "/log", encoding="utf-8") as log:
            for line in f"{fault}\n{last}\n{''.join(log.readlines()[-12:])}".splitlines():
                print("#", line)
        return 1
    finally:
        if node and node.process.poll() is None:
            node.process.kill()
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
