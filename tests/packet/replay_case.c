// SPDX-License-Identifier: Apache-2.0
// Writes what test_replay.py replays: a capture and a snapshot.
//
//	replay_case DIR		-> DIR/in.pcap, DIR/snapshot.img
//
// Service 0 leads through IPIP to IPv4 backends, service 1 through GUE, service 2 through GRE.
#include "tests/lib/image.h"
#include "tests/lib/packet_builder.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#define FLOWS 60u

static struct frame frame;
static struct pcap_pkthdr header;

static void write_frame(pcap_dumper_t *to)
{
	frame_finish(&frame);
	header.caplen = header.len = frame.length;
	header.ts.tv_usec += 100; // microseconds apart
	pcap_dump((u_char *)to, &header, frame.bytes);
}

static void begin(unsigned service, bool six, unsigned flow)
{
	char source[48], destination[48];

	FRAME_START(&frame);
	if (flow % 7 == 0)
		FRAME_VLAN(&frame, .id = 7);
	snprintf(source, sizeof(source), six ? "2001:db8:c::%u" : "198.51.100.%u", 1 + flow);
	snprintf(destination, sizeof(destination), six ? "2001:db8:cb::%u" : "203.0.113.%u",
		service);
	if (six)
		FRAME_IP6(&frame, .source = source, .destination = destination,
			.hop_limit = 10 + flow, .traffic_class = 0x28 | flow % 4);
	else
		FRAME_IP4(&frame, .source = source, .destination = destination, .ttl = 10 + flow,
			.tos = 0x28 | flow % 4, .id = flow, .dont_fragment = flow % 2,
			.options_bytes = flow % 5 == 0 ? 8 : 0);
}

static void write_flow(pcap_dumper_t *to, unsigned flow)
{
	bool six = flow & 1;
	unsigned service = flow / 2 % 3;

	for (unsigned i = 0; i < 4; i++) {
		begin(service, six, flow);
		FRAME_TCP(&frame, .source_port = 30000 + flow, .destination_port = IMAGE_PORT_TCP,
			.flags = i == 0 ? FRAME_SYN : FRAME_ACK, .sequence = i);
		frame_fill(&frame, i == 0 ? 0 : flow, (uint8_t)flow);
		write_frame(to);
	}
	begin(service, six, flow);
	FRAME_UDP(&frame, .source_port = 30000 + flow, .destination_port = IMAGE_PORT_UDP);
	frame_fill(&frame, 20 + flow, (uint8_t)flow);
	write_frame(to);
}

// What is answered or dropped.
static void write_rest(pcap_dumper_t *to)
{
	FRAME_START(&frame, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(&frame, .operation = 1, .sender_mac = MAC_ROUTER, .sender = "192.0.2.55",
		.target = "192.0.2.10");
	write_frame(to);
	begin(0, false, 1);
	FRAME_ICMP4(&frame, .type = 8, .word0 = 1, .word1 = 2);
	frame_fill(&frame, 32, 0);
	write_frame(to);
	begin(0, true, 1);
	FRAME_ICMP6(&frame, .type = 128, .word0 = 1, .word1 = 2);
	frame_fill(&frame, 32, 0);
	write_frame(to);
	begin(0, false, 1);
	FRAME_TCP(&frame, .destination_port = IMAGE_PORT_TCP + 1, .flags = FRAME_SYN);
	write_frame(to);
	begin(0, false, 1);
	FRAME_TCP(&frame, .destination_port = IMAGE_PORT_TCP, .flags = FRAME_ACK);
	frame_fill(&frame, 1460, 0);
	write_frame(to);
}

static int write_capture(const char *path)
{
	pcap_t *format = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *to = pcap_dump_open(format, path);

	if (to == NULL)
		return 1;
	header.ts.tv_sec = 1700000000;
	for (unsigned flow = 0; flow < FLOWS; flow++)
		write_flow(to, flow);
	write_rest(to);
	pcap_dump_close(to);
	pcap_close(format);
	return 0;
}

static int write_snapshot(const char *path)
{
	static const struct image_shape shape = {
		.generation = 1, .pool_count = 3, .backend_count = 30, .points = 40};
	static const uint8_t tunnels[] = {
		SNAPSHOT_TUNNEL_IPIP, SNAPSHOT_TUNNEL_GUE, SNAPSHOT_TUNNEL_GRE};
	uint64_t bytes;
	char *image = image_build(&shape, &bytes);
	struct snapshot_header *head = (struct snapshot_header *)image;
	struct snapshot_service *services =
		(struct snapshot_service *)(image + head->services.offset);
	FILE *to = fopen(path, "we");
	bool written;

	for (unsigned i = 0; i < 3; i++)
		services[i].tunnel = tunnels[i];
	image_seal(image);
	written = to != NULL && fwrite(image, 1, bytes, to) == bytes;
	if (to != NULL)
		written &= fclose(to) == 0;
	free(image);
	return !written;
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2) {
		fprintf(stderr, "usage: replay_case DIR\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/in.pcap", argv[1]);
	if (write_capture(path) != 0)
		return 1;
	snprintf(path, sizeof(path), "%s/snapshot.img", argv[1]);
	return write_snapshot(path);
}
