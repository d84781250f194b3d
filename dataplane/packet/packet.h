// SPDX-License-Identifier: Apache-2.0
// One packet on its way through the pipeline: bytes in, verdict out. No DPDK here: io fills in where the bytes
// lie and carries the verdict out, so the same code runs over a NIC, a pcap file and a test's byte array.
#pragma once

#include "common/flow.h"
#include "common/stats.h"

#include <stdbool.h>

#define PACKET_BURST 32u // packets a burst

// Room that io leaves in front of every packet: IPv6 (40) + UDP (8) + GUE (4) and to spare.
#define PACKET_HEADROOM_MIN 64u

enum packet_verdict {
	PACKET_PENDING = 0, // still in the pipeline
	PACKET_FORWARD,     // send data..data+length on port_out
	PACKET_PUNT,        // hand to the kernel as it came
	PACKET_ANSWER,      // now holds our answer: send it on port_out
	PACKET_CONSUME,     // used up (an ARP reply, say); nothing to send; counts as answered
	PACKET_DROP,        // free it; reason says why
	PACKET_DROP_REPLY, // dropped with reason, and the buffer now holds an ICMP error: send it on port_out
};

enum packet_flag {
	PACKET_FRAGMENT = 1u << 0,       // any fragment
	PACKET_FRAGMENT_LATER = 1u << 1, // not the first one: no ports in it
	PACKET_SYN = 1u << 2,            // TCP SYN without ACK
	PACKET_FIN = 1u << 3,
	PACKET_RST = 1u << 4,
	PACKET_ICMP_ERROR = 1u << 5, // key is the quoted flow, turned to client -> virtual address
	PACKET_ARP = 1u << 6,
	PACKET_ND = 1u << 7,   // neighbour solicitation or advertisement
	PACKET_ECHO = 1u << 8, // ICMP or ICMPv6 echo request
	PACKET_DONT_FRAGMENT = 1u << 9,
	PACKET_QUIC_ID = 1u << 10,        // connection_id is set
	PACKET_QUIC_CLIENT_ID = 1u << 11, // and was made up by the client: it names no server
};

// Fields grouped by writer. Two cache lines and a bit for the key; packets stand in an array of PACKET_BURST.
struct packet {
	// io: before the pipeline
	uint8_t *data;     // first byte of the Ethernet frame
	void *handle;      // io's own (an mbuf); the pipeline never looks
	uint32_t length;   // bytes at data
	uint16_t headroom; // writable bytes in front of data
	uint16_t tailroom; // writable bytes behind data + length
	uint8_t port_in;

	// pipeline: the outcome
	uint8_t port_out;
	uint8_t verdict; // enum packet_verdict
	uint8_t reason;  // enum drop_reason, with PACKET_DROP and PACKET_DROP_REPLY

	// parse
	uint32_t flags;     // enum packet_flag
	uint16_t l3_offset; // from data
	uint16_t l4_offset; // from data; 0 when there is none (a later fragment)
	uint16_t l3_length; // IP header and payload as the IP header says; the frame may be padded
	uint16_t payload_offset;
	uint8_t family; // enum addr_family of the (outer) IP header; ADDR_NONE for ARP and others
	uint8_t vlan_count; // 0..2
	uint8_t connection_id_length;
	uint8_t reserved;
	uint16_t connection_id_offset; // from data
	uint16_t reserved2;
	uint32_t fragment_id; // of a fragment, host order
	struct flow_key key;  // of the packet, or of the flow that an ICMP error quotes

	// classify, hash, flow table, select
	uint64_t hash;     // flow_hash() of key
	uint32_t service;  // id
	uint32_t backend;  // id
	uint32_t next_hop; // index in the next-hop table
};
