#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""UDP servers that say their name, and a client that asks them.

  udp.py serve NAME PORT ADDRESS...                     answers every datagram with "NAME length", until killed
  udp.py ask ADDRESS:PORT SOURCE[:PORT] [--bytes N] [--count N] [--quic-id HEX]

`ask` sends count datagrams from one socket and prints the names that answered, each once. With --quic-id they look like
QUIC packets of an established connection with this ID (short header, RFC 9000 section 17.3). Exit code 1 when one is not
answered.
"""
import argparse
import os
import select
import socket
import sys


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve(arguments):
    sockets = []
    for address in arguments.address:
        server = socket.socket(family_of(address), socket.SOCK_DGRAM)
        server.bind((address, arguments.port))
        sockets.append(server)
    while True:
        for server in select.select(sockets, [], [])[0]:
            data, client = server.recvfrom(65535)
            server.sendto(f"{arguments.name} {len(data)}".encode(), client)


def payload(arguments):
    if not arguments.quic_id:
        return b"x" * arguments.bytes
    return b"\x41" + bytes.fromhex(arguments.quic_id) + os.urandom(100)


def ask(arguments):
    host, _, port = arguments.to.rpartition(":")
    host = host.strip("[]")
    source, _, source_port = arguments.source.rpartition("@")
    client = socket.socket(family_of(host), socket.SOCK_DGRAM)
    client.bind((source or source_port, int(source_port) if source else 0))
    client.settimeout(5)
    names, data = set(), payload(arguments)
    for _ in range(arguments.count):
        client.sendto(data, (host, int(port)))
        try:
            name, length = client.recv(65535).decode().split()
        except socket.timeout:
            print("no answer")
            return 1
        if int(length) != len(data):
            print(f"{name} got {length} bytes of {len(data)}")
            return 1
        names.add(name)
    print(" ".join(sorted(names)))
    return 0


def main():
    parser = argparse.ArgumentParser()
    modes = parser.add_subparsers(dest="mode", required=True)
    server = modes.add_parser("serve")
    server.add_argument("name")
    server.add_argument("port", type=int)
    server.add_argument("address", nargs="+")
    client = modes.add_parser("ask")
    client.add_argument("to")
    client.add_argument("source", help="ADDRESS, or ADDRESS@PORT")
    client.add_argument("--bytes", type=int, default=16)
    client.add_argument("--count", type=int, default=1)
    client.add_argument("--quic-id", default="")
    arguments = parser.parse_args()
    return serve(arguments) if arguments.mode == "serve" else ask(arguments)


if __name__ == "__main__":
    sys.exit(main())
