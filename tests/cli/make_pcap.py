#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a capture: SYNs of many clients to one service, as many datagrams to port 5353, the gateway's answer to ARP.

usage: make_pcap.py OUT.pcap FLOWS
"""
import struct
import sys

PORT_MAC = bytes.fromhex("027063617000")
GATEWAY_MAC = bytes.fromhex("0200c0000201")


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(client, protocol, payload):
    source = bytes([198, 51, 100 + client // 250, 1 + client % 250])
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), client, 0, 64, protocol, 0, source, bytes([203, 0, 113, 10]))
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return PORT_MAC + GATEWAY_MAC + b"\x08\x00" + header + payload


def syn(client):
    return packet(client, 6, struct.pack("!HHIIBBHHH", 40000, 443, 1, 0, 0x50, 0x02, 64240, 0, 0))


def datagram(client):
    return packet(client, 17, struct.pack("!HHHH", 40000, 5353, 8, 0))


def arp_reply():
    return PORT_MAC + GATEWAY_MAC + b"\x08\x06" + struct.pack(
        "!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 2, GATEWAY_MAC, bytes([192, 0, 2, 1]), PORT_MAC, bytes([192, 0, 2, 10]))


def main():
    count = int(sys.argv[2])
    frames = [arp_reply()] + [syn(i) for i in range(count)] + [datagram(i) for i in range(count)] + [b"\x00" * 10]
    with open(sys.argv[1], "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


main()
