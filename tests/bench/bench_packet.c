// SPDX-License-Identifier: Apache-2.0
// Cost of parsing and of encapsulation by themselves, in bursts of 32, beside a baseline that only writes each frame
// (a copy of its first 64 bytes): nanoseconds of thread CPU time a packet, best of ROUNDS.
#include "dataplane/packet/encap.h"
#include "dataplane/packet/parse.h"

#include "tests/bench/bench.h"
#include "tests/lib/packet_builder.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFERS \
	512u // as many as a receive queue holds: 1 MB, so that headers come from the second-level cache
#define BUFFER_BYTES 2048u
#define HEADROOM     128u
#define BURSTS       (1u << 14)
#define ROUNDS       9u

enum work {
	WORK_WRITE,
	WORK_PARSE,
	WORK_ENCAP,
};

struct bench {
	uint8_t (*buffers)[BUFFER_BYTES];
	struct frame frame;
	struct snapshot_service service;
	struct encap_port port;
	struct ip_addr backend;
};

static void fill_burst(struct bench *bench, struct packet *packets, unsigned first)
{
	for (unsigned i = 0; i < PACKET_BURST; i++) {
		uint8_t *buffer = bench->buffers[(first + i) % BUFFERS];

		memcpy(buffer + HEADROOM, bench->frame.bytes, 64);
		packets[i].data = buffer + HEADROOM;
		packets[i].length = bench->frame.length;
		packets[i].headroom = HEADROOM;
		packets[i].tailroom = (uint16_t)(BUFFER_BYTES - HEADROOM - bench->frame.length);
		packets[i].port_in = 0;
		packets[i].port_out = 0;
		packets[i].hash = first * UINT64_C(0x9e3779b97f4a7c15) + i;
	}
}

static double measure(struct bench *bench, enum work work)
{
	struct packet packets[PACKET_BURST];
	struct encap_job jobs[PACKET_BURST];
	static const uint8_t mac[6] = {2};
	double best = 1e9;

	for (unsigned i = 0; i < PACKET_BURST; i++)
		jobs[i] = (struct encap_job){&bench->service, &bench->backend, &bench->port};
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t begin = bench_now_ns();

		for (unsigned n = 0; n < BURSTS; n++) {
			fill_burst(bench, packets, n * PACKET_BURST);
			if (work >= WORK_PARSE)
				parse_burst(packets, PACKET_BURST);
			if (work >= WORK_ENCAP) {
				encap_burst(packets, jobs, PACKET_BURST);
				for (unsigned i = 0; i < PACKET_BURST; i++)
					encap_set_macs(&packets[i], mac, mac);
			}
			__asm__ volatile("" : : "r"(packets) : "memory");
		}
		double each = (double)(bench_now_ns() - begin) / ((double)BURSTS * PACKET_BURST);

		best = each < best ? each : best;
	}
	if (work != WORK_WRITE && packets[0].verdict != PACKET_PENDING) {
		fprintf(stderr, "the frame was refused: %s\n", stats_drop_name(packets[0].reason));
		exit(1);
	}
	return best;
}

static void write_frame(struct frame *frame, bool six, bool udp, unsigned vlan_count)
{
	FRAME_START(frame, 0);
	for (unsigned i = 0; i < vlan_count; i++)
		FRAME_VLAN(frame, .id = i + 1);
	if (six)
		FRAME_IP6(frame, 0);
	else
		FRAME_IP4(frame, 0);
	if (udp)
		FRAME_UDP(frame, 0);
	else
		FRAME_TCP(frame, .flags = FRAME_ACK);
	frame_finish(frame);
}

static void set_tunnel(struct bench *bench, unsigned tunnel, bool six)
{
	static const char *const prefix4 = "10.255.0.0", *const prefix6 = "2001:db8:ffff::";

	bench->service.tunnel = (uint8_t)tunnel;
	bench->service.gue_port_be = htons(6080);
	bench->service.source4.family = ADDR_V4;
	bench->service.source4_bits = 16;
	inet_pton(AF_INET, prefix4, bench->service.source4.bytes);
	bench->service.source6.family = ADDR_V6;
	bench->service.source6_bits = 96;
	inet_pton(AF_INET6, prefix6, bench->service.source6.bytes);
	bench->backend.family = six ? ADDR_V6 : ADDR_V4;
	inet_pton(six ? AF_INET6 : AF_INET, six ? "2001:db8:b::1" : "10.0.0.11",
		bench->backend.bytes);
	bench->port.mtu = 1600;
}

static void print_parse(struct bench *bench, const char *what, double write)
{
	double parse = measure(bench, WORK_PARSE) - write;

	printf("parse %-28s %6.1f ns %6.2f x\n", what, parse, parse / write);
}

static void print_encap(struct bench *bench, unsigned tunnel, bool outer6, double parse)
{
	static const char *const names[] = {"IPIP", "GUE", "GRE", "L2"};
	double encap, write = measure(bench, WORK_WRITE);

	set_tunnel(bench, tunnel, outer6);
	encap = measure(bench, WORK_ENCAP) - parse;
	printf("encap %-4s over %-19s %6.1f ns %6.2f x\n", names[tunnel], outer6 ? "IPv6" : "IPv4",
		encap, encap / write);
}

int main(void)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	double write, parse;

	if (bench == NULL || (bench->buffers = calloc(BUFFERS, BUFFER_BYTES)) == NULL)
		return 1;
	set_tunnel(bench, SNAPSHOT_TUNNEL_IPIP, false);
	write_frame(&bench->frame, false, false, 0);
	write = measure(bench, WORK_WRITE);
	printf("baseline: write 64 bytes           %6.1f ns   1.00 x\n", write);
	print_parse(bench, "IPv4 TCP", write);
	write_frame(&bench->frame, false, true, 0);
	print_parse(bench, "IPv4 UDP", write);
	write_frame(&bench->frame, false, false, 1);
	print_parse(bench, "IPv4 TCP, one tag", write);
	write_frame(&bench->frame, true, true, 0);
	print_parse(bench, "IPv6 UDP", write);
	write_frame(&bench->frame, false, false, 0);
	parse = measure(bench, WORK_PARSE);
	for (unsigned tunnel = 0; tunnel < SNAPSHOT_TUNNEL_COUNT; tunnel++) {
		print_encap(bench, tunnel, false, parse);
		if (tunnel != SNAPSHOT_TUNNEL_L2)
			print_encap(bench, tunnel, true, parse);
	}
	free(bench->buffers);
	free(bench);
	return 0;
}
