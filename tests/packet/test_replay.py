# SPDX-License-Identifier: Apache-2.0
"""Replays a capture and checks every packet that leaves, field by field, with tshark's eyes.

usage: test_replay.py REPLAY_CASE RINGWAY_DATAPLANE GUE_LUA
"""

import os
import shutil
import subprocess
import sys
import tempfile

FIELDS = """frame.len frame.time_epoch eth.dst eth.src vlan.id
ip.src ip.dst ip.ttl ip.len ip.proto ip.dsfield ip.id ip.flags.df ip.checksum.status
ipv6.src ipv6.dst ipv6.hlim ipv6.plen ipv6.nxt ipv6.tclass
tcp.srcport tcp.dstport tcp.seq_raw tcp.flags tcp.checksum.status
udp.srcport udp.dstport udp.checksum.status gre.proto icmp.type icmp.code icmp.mtu icmpv6.type
arp.opcode arp.src.proto_ipv4 arp.src.hw_mac data.data tcp.payload udp.payload""".split()

failures = 0
checks = 0


def check(condition, what, packet):
    global failures, checks
    checks += 1
    if not condition:
        failures += 1
        if failures < 20:
            print(f"# {what}: {dict((k, v) for k, v in packet.items() if v != [''])}")


def dissect(path, lua):
    command = ["tshark", "-r", path, "-X", f"lua_script:{lua}", "-T", "fields",
               "-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,",
               "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
               "-o", "udp.check_checksum:TRUE", "-o", "tcp.relative_sequence_numbers:FALSE"]
    for field in FIELDS:
        command += ["-e", field]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [dict(zip(FIELDS, (f.split(",") for f in line.split(";")))) for line in out.splitlines()]


def is_forwarded(packet):
    """Packets that the case sends to a port of a service."""
    port = (packet["tcp.dstport"] + packet["udp.dstport"])
    return ("80" in port or "443" in port) and int(packet["frame.len"][0]) < 1400


def check_outer(sent, seen, overhead):
    six = sent["ipv6.src"] != [""]
    tag = 4 if sent["vlan.id"] != [""] else 0
    inner_bytes = int(sent["ipv6.plen"][0]) + 40 if six else int(sent["ip.len"][0])
    check(seen["eth.dst"] == ["02:00:00:00:00:99"], "MAC of the next hop", seen)
    check(seen["eth.src"] == ["02:00:00:00:00:00"], "MAC of the port", seen)
    check(seen["vlan.id"] == sent["vlan.id"], "VLAN", seen)
    check(seen["frame.time_epoch"] == sent["frame.time_epoch"], "time", seen)
    check(seen["ip.src"][0].startswith("10.100."), "outer source", seen)
    check(seen["ip.dst"][0].startswith("10.1.0."), "outer destination", seen)
    check(seen["ip.ttl"][0] == "64", "outer TTL", seen)
    check(int(seen["ip.len"][0]) == inner_bytes + overhead, "outer length", seen)
    check(int(seen["frame.len"][0]) == 14 + tag + inner_bytes + overhead, "padding is cut", seen)
    check(seen["ip.dsfield"][0] == (sent["ipv6.tclass"] if six else sent["ip.dsfield"])[0]
          or int(seen["ip.dsfield"][0], 16) == int((sent["ipv6.tclass"] if six else
                                                    sent["ip.dsfield"])[0], 16),
          "DSCP and ECN", seen)
    check(set(seen["ip.checksum.status"]) == {"1"}, "IP checksums", seen)
    check(seen["ip.flags.df"][0] in ("1", "True"), "outer DF", seen)


def check_inner(sent, seen):
    if sent["ipv6.src"] != [""]:
        for field in ("ipv6.src", "ipv6.dst", "ipv6.plen", "ipv6.nxt", "ipv6.tclass"):
            check(seen[field][-1] == sent[field][-1], f"inner {field}", seen)
        check(int(seen["ipv6.hlim"][-1]) == int(sent["ipv6.hlim"][-1]) - 1, "hop limit", seen)
    else:
        for field in ("ip.src", "ip.dst", "ip.len", "ip.proto", "ip.dsfield", "ip.id"):
            check(seen[field][-1] == sent[field][-1], f"inner {field}", seen)
        check(int(seen["ip.ttl"][-1]) == int(sent["ip.ttl"][-1]) - 1, "TTL", seen)
    for field in ("tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.flags", "tcp.payload",
                  "tcp.checksum.status"):
        check(seen[field] == sent[field], f"inner {field}", seen)
    check(seen["udp.dstport"][-1] == sent["udp.dstport"][-1] or sent["udp.dstport"] == [""],
          "inner UDP port", seen)


def check_forwarded(sent, seen, backends):
    service = int((sent["ipv6.dst"][0].rsplit("::", 1)[-1] or "0") if sent["ipv6.dst"] != [""]
                  else sent["ip.dst"][0].rsplit(".", 1)[-1])
    overhead = {0: 20, 1: 32, 2: 24}[service]
    check_outer(sent, seen, overhead)
    check_inner(sent, seen)
    if service == 1:
        check(seen["udp.dstport"][0] == "6080", "GUE port", seen)
        check(0xc000 <= int(seen["udp.srcport"][0]) <= 0xffff, "GUE entropy", seen)
    if service == 2:
        check(seen["gre.proto"][0] == ("0x86dd" if sent["ipv6.src"] != [""] else "0x0800"),
              "GRE protocol", seen)
    # Backend b is 10.1.0.b+1 and of pool b % 3, the service's.
    check((int(seen["ip.dst"][0].rsplit(".", 1)[-1]) - 1) % 3 == service, "pool", seen)
    flow = (sent["ip.src"][0], sent["ipv6.src"][0], bool(sent["tcp.srcport"][0]))
    check(backends.setdefault(flow, seen["ip.dst"][0]) == seen["ip.dst"][0], "one backend", seen)


def check_answers(answers):
    arp, echo4, echo6, too_big = answers
    check(arp["arp.opcode"] == ["2"] and arp["arp.src.proto_ipv4"] == ["192.0.2.10"]
          and arp["arp.src.hw_mac"] == ["02:00:00:00:00:00"], "ARP answer", arp)
    check(echo4["icmp.type"] == ["0"] and echo4["ip.src"] == ["203.0.113.0"], "echo", echo4)
    check(echo6["icmpv6.type"] == ["129"] and echo6["ipv6.src"] == ["2001:db8:cb::"], "echo", echo6)
    check(too_big["icmp.type"][0] == "3" and too_big["icmp.code"][0] == "4"
          and too_big["icmp.mtu"] == ["1480"], "too big", too_big)


def check_inputs(command, folder):
    """The other format of captures gives the same output; bad inputs give one clear line and leave the output alone."""
    ng, out = os.path.join(folder, "in.pcapng"), os.path.join(folder, "ng.pcap")
    subprocess.run(["tshark", "-r", command[2], "-F", "pcapng", "-w", ng], check=True, capture_output=True)
    subprocess.run([*command[:2], ng, out, *command[4:]], check=True, capture_output=True)
    with open(command[3], "rb") as one, open(out, "rb") as two:
        check(one.read() == two.read(), "pcapng is read like pcap", {})
    cut = os.path.join(folder, "cut.img")
    with open(command[5], "rb") as image, open(cut, "wb") as to:
        to.write(image.read()[:-1])
    for captured, snapshot, expected in (
            (os.path.join(folder, "none.pcap"), command[5], "none.pcap: No such file or directory"),
            (command[5], command[5], "snapshot.img: unknown file format"),
            (command[2], "/dev/null", "/dev/null: "),
            (command[2], cut, "cut.img: ")):
        bad = subprocess.run([*command[:2], captured, out + ".bad", "--snapshot", snapshot, *command[6:]],
                             capture_output=True, text=True, check=False)
        check(bad.returncode == 1 and expected in bad.stderr and bad.stderr.count("\n") == 1,
              f"an error that says {expected}, not {bad.stderr}", {})
        check(not os.path.exists(out + ".bad"), "no output of a replay that could not begin", {})


def main(case, dataplane, lua):
    if shutil.which("tshark") is None:
        print("tshark is not here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([case, folder], check=True)
        path = [os.path.join(folder, name) for name in ("in.pcap", "out.pcap", "snapshot.img")]
        command = [dataplane, "--replay", path[0], path[1], "--snapshot", path[2],
                   "--port", "none", "--address", "192.0.2.10/24", "--address",
                   "2001:db8:1::10/64", "--gateway", "192.0.2.1", "--gateway", "2001:db8:1::1",
                   "--neighbour-mac", "02:00:00:00:00:99"]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        sent, seen = dissect(path[0], lua), dissect(path[1], lua)
        again = os.path.join(folder, "again.pcap")
        subprocess.run(command[:3] + [again] + command[4:], check=True, capture_output=True)
        with open(path[1], "rb") as one, open(again, "rb") as two:
            check(one.read() == two.read(), "a second replay gives the same bytes", {})
        check_inputs(command, folder)
    counts = dict(line.rsplit(" ", 1) for line in report.splitlines() if line.count(" ") < 3)
    forwarded = [packet for packet in sent if is_forwarded(packet)]
    check(len(forwarded) == 300 and len(seen) == 304, "number of packets", counts)
    check(counts.get("forwarded") == "300" and counts.get("answered") == "3"
          and counts.get("drop no_service") == "1" and counts.get("drop too_big") == "1"
          and counts.get("generated") == "1" and counts.get("rx_packets") == "305", "counts", counts)
    backends = {}
    for one, two in zip(forwarded, seen):
        check_forwarded(one, two, backends)
    check(len(set(backends.values())) > 15, "flows are spread", {})
    check_answers(seen[300:])
    print(f"{checks} checks, {failures} failed; {len(seen)} packets dissected")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
