#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real TCP clients from many addresses, for the end-to-end tests and the demo.

  clients.py connect --to ADDRESS:PORT --from NETWORK --count N    N connections, one GET each; counts who answered
  clients.py download --to ADDRESS:PORT --from NETWORK --count N   N slow downloads at once, every byte checked
  clients.py stream --to ADDRESS:PORT --from NETWORK --rate R      R connections a second until SIGTERM

`download` runs until its downloads end or it gets SIGTERM; SIGUSR1 prints how it stands. `stream` writes
--metrics FILE for Prometheus twice a second. Results are JSON on stdout:
connect {"asked", "answered", "failed", "servers": {name: count}, "errors": {text: count}, "seconds"}
download {"asked", "open", "complete", "broken", "stalled", "bytes", "errors"}.
"""
import argparse
import asyncio
import collections
import ipaddress
import json
import os
import signal
import sys
import time

STALL_SECONDS = 20.0  # of a loaded machine; a flow that lost its backend is reset or silent for good
FAILURES_MAX = 100  # then nothing answers, and asking on would only take time


def describe(error):
    """The kind of an error, without addresses, so that a thousand of them count as one."""
    if getattr(error, "errno", None):
        return os.strerror(error.errno)
    return f"{type(error).__name__} {error}".strip()


def parse_target(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


class Sources:
    """Hands out addresses of a network in turn, leaving out the first (the subnet's own name)."""

    def __init__(self, network, limit):
        self.network = ipaddress.ip_network(network)
        self.count = min(limit, self.network.num_addresses - 2)
        self.next = 0

    def take(self):
        address = self.network[1 + self.next % self.count]
        self.next += 1
        return str(address)


async def open_connection(target, sources):
    host, port = target
    return await asyncio.open_connection(host, port, local_addr=(sources.take(), 0))


async def get_name(target, sources, timeout):
    """One connection, one request; returns the name in the body."""

    async def ask():
        reader, writer = await open_connection(target, sources)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: vip\r\nConnection: close\r\n\r\n")
            reply = await reader.read(-1)
        finally:
            writer.close()
        head, _, body = reply.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError("no 200 in the reply")
        return body.decode().strip()

    return await asyncio.wait_for(ask(), timeout)


async def connect(arguments):
    target, sources = parse_target(arguments.to), Sources(arguments.source, arguments.addresses)
    servers, errors = collections.Counter(), collections.Counter()
    left = iter(range(arguments.count))

    async def one_after_another():
        for _ in left:
            if sum(errors.values()) >= FAILURES_MAX:
                return
            try:
                servers[await get_name(target, sources, arguments.timeout)] += 1
            except (OSError, asyncio.TimeoutError) as error:
                errors[describe(error)] += 1

    began = time.monotonic()
    await asyncio.gather(*(one_after_another() for _ in range(arguments.concurrency)))
    answered = sum(servers.values())
    print(json.dumps({
        "asked": arguments.count, "answered": answered, "failed": arguments.count - answered,
        "servers": dict(sorted(servers.items())), "errors": dict(errors),
        "seconds": round(time.monotonic() - began, 3)}))
    return 0 if answered == arguments.count else 1


class Stream:
    def __init__(self, arguments):
        self.target = parse_target(arguments.to)
        self.sources = Sources(arguments.source, arguments.addresses)
        self.arguments = arguments
        self.servers, self.errors = collections.Counter(), collections.Counter()

    async def one(self):
        try:
            self.servers[await get_name(self.target, self.sources, self.arguments.timeout)] += 1
        except (OSError, asyncio.TimeoutError) as error:
            self.errors[describe(error)] += 1

    def write_metrics(self):
        failed = sum(self.errors.values())
        text = (f"# TYPE client_connections_total counter\n"
                f"client_connections_total {sum(self.servers.values()) + failed}\n"
                f"# TYPE client_connections_failed_total counter\n"
                f"client_connections_failed_total {failed}\n")
        with open(self.arguments.metrics + ".new", "w", encoding="ascii") as file:
            file.write(text)
        os.rename(self.arguments.metrics + ".new", self.arguments.metrics)

    async def write_metrics_forever(self):
        while True:
            self.write_metrics()
            await asyncio.sleep(0.5)

    async def run(self):
        stop, running = asyncio.Event(), set()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        if self.arguments.metrics:
            running.add(asyncio.create_task(self.write_metrics_forever()))
        next_time = time.monotonic()
        while not stop.is_set():
            running.add(asyncio.create_task(self.one()))
            running = {task for task in running if not task.done()}
            next_time = max(next_time + 1 / self.arguments.rate, time.monotonic() - 1)
            await asyncio.sleep(max(0, next_time - time.monotonic()))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        print(json.dumps({"servers": dict(sorted(self.servers.items())), "errors": dict(self.errors)}))
        return 0


class Downloads:
    def __init__(self, arguments):
        self.target = parse_target(arguments.to)
        self.sources = Sources(arguments.source, arguments.addresses)
        self.arguments = arguments
        self.expected = b"".join(b"%015d\n" % i for i in range(524288))
        self.errors = collections.Counter()
        self.complete = 0
        self.bytes = 0
        self.last_byte = {}

    async def one(self, number):
        try:
            reader, writer = await asyncio.wait_for(
                open_connection(self.target, self.sources), self.arguments.timeout)
            writer.write(b"GET /download HTTP/1.1\r\nHost: vip\r\nConnection: close\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self.arguments.timeout)
            if not head.startswith(b"HTTP/1.1 200"):
                raise OSError("no 200 in the reply")
            await self.read_body(number, reader)
            self.complete += 1
        except asyncio.CancelledError:
            raise
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            self.errors[describe(error)] += 1
        finally:
            if sys.exc_info()[0] is not asyncio.CancelledError:
                self.last_byte.pop(number, None)

    async def read_body(self, number, reader):
        offset = 0
        while offset < len(self.expected):
            self.last_byte[number] = time.monotonic()
            data = await reader.read(65536)
            if not data:
                raise OSError(f"closed after {offset} bytes")
            if data != self.expected[offset:offset + len(data)]:
                raise OSError(f"wrong bytes at {offset}")
            offset += len(data)
            self.bytes += len(data)

    def report(self):
        now = time.monotonic()
        print(json.dumps({
            "asked": self.arguments.count, "open": len(self.last_byte), "complete": self.complete,
            "broken": sum(self.errors.values()), "errors": dict(self.errors), "bytes": self.bytes,
            "stalled": sum(now - last > STALL_SECONDS for last in self.last_byte.values())}), flush=True)

    async def run(self):
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGUSR1, self.report)
        self.report()  # from now on it may be asked
        tasks = [asyncio.create_task(self.one(i)) for i in range(self.arguments.count)]
        finished = asyncio.gather(*tasks)
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([finished, stopping], return_when=asyncio.FIRST_COMPLETED)
        self.report()
        for task in tasks:
            task.cancel()
        finished.cancel()
        stopping.cancel()
        await asyncio.gather(finished, stopping, return_exceptions=True)
        return 1 if self.errors else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["connect", "download", "stream"])
    parser.add_argument("--to", required=True)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--addresses", type=int, default=250, help="how many addresses of the network")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--metrics", default="")
    arguments = parser.parse_args()
    if arguments.mode == "connect":
        return asyncio.run(connect(arguments))
    mode = Stream if arguments.mode == "stream" else Downloads
    return asyncio.run(mode(arguments).run())


if __name__ == "__main__":
    sys.exit(main())
