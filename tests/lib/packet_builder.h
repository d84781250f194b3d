// SPDX-License-Identifier: Apache-2.0
// Builds frames for tests, header by header, outermost first:
//
//	struct frame frame;
//
//	FRAME_START(&frame, .destination = MAC_BALANCER, .source = MAC_ROUTER);
//	FRAME_IP4(&frame, .source = "198.51.100.7", .destination = "203.0.113.10");
//	FRAME_TCP(&frame, .source_port = 40000, .destination_port = 443, .flags = FRAME_SYN);
//	frame_payload(&frame, "hello", 5);
//	frame_finish(&frame);
//
// A field that is not named takes its usual value. frame_finish() fills in lengths and checksums from the inside
// out; fields named *_override win over it, and fields named bad_checksum spoil it, so that malformed packets are
// as easy to write as good ones. The checksums here are summed byte by byte, on purpose unlike those under test.
#pragma once

#include "dataplane/packet/packet.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAME_BYTES_MAX  66000u
#define FRAME_LAYERS_MAX 16u

#define MAC_BALANCER "02:00:00:00:00:01"
#define MAC_ROUTER   "02:00:00:00:00:02"
#define MAC_BACKEND  "02:00:00:00:00:03"

enum frame_tcp_flags {
	FRAME_FIN = 1,
	FRAME_SYN = 2,
	FRAME_RST = 4,
	FRAME_PSH = 8,
	FRAME_ACK = 16,
};

enum frame_layer_kind {
	FRAME_LAYER_IP4,
	FRAME_LAYER_IP6,
	FRAME_LAYER_UDP,
	FRAME_LAYER_TCP,
	FRAME_LAYER_ICMP4,
	FRAME_LAYER_ICMP6,
};

// A header whose length or checksum frame_finish() fills in.
struct frame_layer {
	enum frame_layer_kind kind;
	unsigned offset;
	unsigned network; // index of the layer whose addresses are in the pseudo-header
	bool keep_length;
	bool keep_checksum;
	bool bad_checksum;
};

struct frame {
	uint8_t bytes[FRAME_BYTES_MAX];
	unsigned length;
	unsigned type_offset; // of the Ethernet type that the next header sets
	unsigned layer_count;
	unsigned network;         // index of the innermost IP layer so far
	unsigned protocol_offset; // of the next-header field that the next header sets
	struct frame_layer layers[FRAME_LAYERS_MAX];
};

struct frame_ethernet {
	const char *destination; // MAC_BALANCER
	const char *source;      // MAC_ROUTER
	unsigned type_override;
};

struct frame_vlan {
	unsigned id;
	unsigned type; // 0x8100
};

struct frame_ip4 {
	const char *source;      // "198.51.100.7"
	const char *destination; // "203.0.113.10"
	unsigned ttl;            // 64
	bool ttl_zero;
	unsigned tos;
	unsigned id;
	bool dont_fragment;
	bool more_fragments;
	unsigned fragment_offset; // bytes
	unsigned options_bytes;   // of no-operation options, a multiple of 4
	unsigned protocol_override;
	unsigned version_override;
	unsigned header_words_override;
	unsigned total_length_override;
	bool bad_checksum;
};

struct frame_ip6 {
	const char *source;      // "2001:db8:c::7"
	const char *destination; // "2001:db8:5::10"
	unsigned hop_limit;      // 64
	bool hop_limit_zero;
	unsigned traffic_class;
	unsigned flow_label;
	unsigned next_header_override;
	unsigned version_override;
	unsigned payload_length_override;
	bool payload_length_zero;
};

// Any extension header; body bytes beyond the first two are zero but for those named.
struct frame_extension {
	unsigned kind;   // next-header number that announces it
	unsigned units;  // its length field
	unsigned bytes;  // bytes to write; 0: what units means
	uint8_t body[6]; // bytes 2..7
};

struct frame_fragment6 {
	unsigned offset; // bytes
	bool more;
	unsigned id;
	unsigned next_header_override;
};

struct frame_tcp {
	unsigned source_port;      // 40000
	unsigned destination_port; // 443
	unsigned flags;
	unsigned sequence;
	unsigned header_words_override; // 5
	unsigned options_bytes;         // multiple of 4
};

struct frame_udp {
	unsigned source_port;
	unsigned destination_port;
	unsigned length_override;
	bool length_zero;
	bool no_checksum; // leave zero
};

struct frame_icmp {
	unsigned type;
	unsigned code;
	unsigned word0;
	unsigned word1;
	bool bad_checksum;
};

struct frame_arp {
	unsigned operation; // 1
	const char *sender_mac;
	const char *sender;
	const char *target_mac; // zero
	const char *target;
};

struct frame_nd {
	unsigned type; // 135
	unsigned code;
	unsigned flags;
	const char *target;
	unsigned option; // 0: none
	const char *option_mac;
	bool bad_checksum;
};

void frame_start(struct frame *frame, const struct frame_ethernet *fields);
void frame_vlan(struct frame *frame, const struct frame_vlan *fields);
void frame_ip4(struct frame *frame, const struct frame_ip4 *fields);
void frame_ip6(struct frame *frame, const struct frame_ip6 *fields);
void frame_extension(struct frame *frame, const struct frame_extension *fields);
void frame_fragment6(struct frame *frame, const struct frame_fragment6 *fields);
void frame_tcp(struct frame *frame, const struct frame_tcp *fields);
void frame_udp(struct frame *frame, const struct frame_udp *fields);
void frame_icmp4(struct frame *frame, const struct frame_icmp *fields);
void frame_icmp6(struct frame *frame, const struct frame_icmp *fields);
void frame_arp(struct frame *frame, const struct frame_arp *fields);
void frame_nd(struct frame *frame, const struct frame_nd *fields);
void frame_gue(struct frame *frame, unsigned protocol);
void frame_gre(struct frame *frame, unsigned type);
void frame_payload(struct frame *frame, const void *bytes, unsigned length);

// Appends length bytes that count up from first.
void frame_fill(struct frame *frame, unsigned length, uint8_t first);

// Fills in lengths and checksums. Bytes appended later (Ethernet padding) belong to no layer.
void frame_finish(struct frame *frame);

#define FRAME_START(frame, ...)     frame_start(frame, &(struct frame_ethernet){__VA_ARGS__})
#define FRAME_VLAN(frame, ...)      frame_vlan(frame, &(struct frame_vlan){__VA_ARGS__})
#define FRAME_IP4(frame, ...)       frame_ip4(frame, &(struct frame_ip4){__VA_ARGS__})
#define FRAME_IP6(frame, ...)       frame_ip6(frame, &(struct frame_ip6){__VA_ARGS__})
#define FRAME_EXTENSION(frame, ...) frame_extension(frame, &(struct frame_extension){__VA_ARGS__})
#define FRAME_FRAGMENT6(frame, ...) frame_fragment6(frame, &(struct frame_fragment6){__VA_ARGS__})
#define FRAME_TCP(frame, ...)       frame_tcp(frame, &(struct frame_tcp){__VA_ARGS__})
#define FRAME_UDP(frame, ...)       frame_udp(frame, &(struct frame_udp){__VA_ARGS__})
#define FRAME_ICMP4(frame, ...)     frame_icmp4(frame, &(struct frame_icmp){__VA_ARGS__})
#define FRAME_ICMP6(frame, ...)     frame_icmp6(frame, &(struct frame_icmp){__VA_ARGS__})
#define FRAME_ARP(frame, ...)       frame_arp(frame, &(struct frame_arp){__VA_ARGS__})
#define FRAME_ND(frame, ...)        frame_nd(frame, &(struct frame_nd){__VA_ARGS__})

// A frame in memory of its own, laid out as io would: headroom, frame, tailroom, and not a byte more on either
// side, so that a sanitizer sees every access beyond. Free with packet_unload().
void packet_load(
	struct packet *packet, const struct frame *frame, unsigned headroom, unsigned tailroom);

// The same with the first length bytes only.
void packet_load_cut(struct packet *packet, const struct frame *frame, unsigned length);
void packet_unload(struct packet *packet);

// Compares a packet's bytes with a frame; prints both, from the first byte that differs, as TAP comments.
bool packet_equals(const struct packet *packet, const struct frame *expected);
