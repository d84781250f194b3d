#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends one bad snapshot to a running dataplane, as a broken or hostile ringwayd might, and prints what it says.

  bad_snapshot.py RUN-DIR KIND     KIND: garbage flipped cut unsealed stale overlong noise

The image that the dataplane has saved is the base, so all but the damage is right. Exit code: 0 when it was refused
with a reason, 1 when it was taken, or when nobody answered.
"""
import array
import fcntl
import os
import socket
import struct
import sys

MAGIC, VERSION = 0x59574752, 1
LOAD, RESULT = 2, 101
HEADER = struct.Struct("<IHHII")
GENERATION_OFFSET = 24  # struct snapshot_header
SEALS = 0x0002 | 0x0004 | 0x0008 | 0x0001  # shrink, grow, write, seal


def memfd(image, sealed):
    fd = os.memfd_create("snapshot", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, image)
    if sealed:
        fcntl.fcntl(fd, 1033, SEALS)  # F_ADD_SEALS
    return fd


def damage(kind, image):
    """Returns the image as it is sent, its claimed length and whether it is sealed."""
    generation = struct.unpack_from("<Q", image, GENERATION_OFFSET)[0]
    image = bytearray(image)
    if kind != "stale":
        struct.pack_into("<Q", image, GENERATION_OFFSET, generation + 1)
    if kind == "garbage":
        image[:] = os.urandom(len(image))
    elif kind == "flipped":
        image[len(image) // 2] ^= 0x10
    elif kind == "cut":
        del image[len(image) // 2:]
    length = len(image) * 2 if kind == "overlong" else len(image)
    return bytes(image), length, kind != "unsealed", generation + (kind != "stale")


def main():
    run_dir, kind = sys.argv[1:]
    with open(os.path.join(run_dir, "snapshot.img"), "rb") as file:
        image, length, sealed, generation = damage(kind, file.read())
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(10)
    client.connect(os.path.join(run_dir, "dataplane.sock"))
    if kind == "noise":
        client.send(os.urandom(64))
        closed = client.recv(65536) == b""
        print("connection closed" if closed else "answered noise")
        return 0 if closed else 1
    body = struct.pack("<QQ", length, generation)
    message = HEADER.pack(MAGIC, VERSION, LOAD, HEADER.size + len(body), 7) + body
    fd = memfd(image, sealed)
    client.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    reply = client.recv(65536)
    _, _, kind_of_reply, _, request = HEADER.unpack_from(reply)
    result, _, in_use = struct.unpack_from("<IIQ", reply, HEADER.size)
    text = reply[HEADER.size + 16:].split(b"\0")[0].decode()
    print(f"result {result}, generation in use {in_use}: {text}")
    refused = kind_of_reply == RESULT and request == 7 and result != 0 and text != ""
    return 0 if refused else 1


if __name__ == "__main__":
    sys.exit(main())
