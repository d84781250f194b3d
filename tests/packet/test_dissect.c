// SPDX-License-Identifier: Apache-2.0
// Encapsulated packets and answers as an independent dissector sees them: the frames go into a pcap file, tshark prints
// their fields, and each line is compared with what it must be. Skips where there is no tshark.
//
// usage: test_dissect GUE.lua
#include "dataplane/packet/answer.h"
#include "dataplane/packet/discovery.h"
#include "dataplane/packet/encap.h"
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAMES_MAX 128
#define LINE_BYTES 1024
#define SKIP       77

static struct frame frame;
static const char *lua_path;

// Frames seen so far: what tshark must say about each.
static char expected[FRAMES_MAX][LINE_BYTES];
static unsigned expected_count;
static FILE *pcap;
static char pcap_path[64];

static void open_pcap(void)
{
	// The classic format: magic, version 2.4, snap length, Ethernet.
	static const uint32_t header[6] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1};
	int fd;

	snprintf(pcap_path, sizeof(pcap_path), "/tmp/ringway-dissect-XXXXXX");
	fd = mkstemp(pcap_path);
	CU_ASSERT_FATAL(fd >= 0);
	pcap = fdopen(fd, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(pcap);
	CU_ASSERT_EQUAL(fwrite(header, sizeof(header), 1, pcap), 1);
	expected_count = 0;
}

// Adds a frame; returns the line for what must be seen of it.
static char *write_frame(const struct packet *packet)
{
	uint32_t header[4] = {0, expected_count, packet->length, packet->length};

	CU_ASSERT_FATAL(expected_count < FRAMES_MAX);
	CU_ASSERT_EQUAL(fwrite(header, sizeof(header), 1, pcap), 1);
	CU_ASSERT_EQUAL(fwrite(packet->data, packet->length, 1, pcap), 1);
	return expected[expected_count++];
}

// What tshark guesses about a payload is not of interest.
static void cut(char *line, const char *guess)
{
	char *at = strstr(line, guess);

	if (at != NULL)
		memmove(at, at + strlen(guess), strlen(at + strlen(guess)) + 1);
}

// Runs tshark over the file and compares line by line. fields: "-e" options.
static void compare(const char *fields)
{
	char command[4096], line[LINE_BYTES];
	unsigned n = 0;
	FILE *tshark;

	CU_ASSERT_EQUAL(fclose(pcap), 0);
	snprintf(command, sizeof(command),
		"tshark -n -r %s -X lua_script:%s -o ip.check_checksum:TRUE "
		"-o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE "
		"-o udp.ignore_ipv6_zero_checksum:TRUE "
		"-T fields -E separator=';' -E occurrence=a -E aggregator=, %s 2>/dev/null",
		pcap_path, lua_path, fields);
	tshark = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(tshark);
	while (fgets(line, sizeof(line), tshark) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		cut(line, ":data");
		cut(line, ":tls");
		if (n >= expected_count || strcmp(line, expected[n]) != 0) {
			printf("# frame %u\n#  seen     '%s'\n#  expected '%s'\n", n, line,
				n < expected_count ? expected[n] : "nothing");
			CU_FAIL("tshark sees something else");
		}
		n++;
	}
	CU_ASSERT_EQUAL(pclose(tshark), 0);
	CU_ASSERT_EQUAL(n, expected_count);
	unlink(pcap_path);
}

static struct ip_addr address(const char *text)
{
	struct ip_addr ret = {.family = strchr(text, ':') ? ADDR_V6 : ADDR_V4};

	inet_pton(ret.family == ADDR_V6 ? AF_INET6 : AF_INET, text, ret.bytes);
	return ret;
}

struct mix {
	unsigned tunnel;
	bool outer6, inner6, udp;
	unsigned vlan_count;
	uint64_t hash;
};

static void write_inner(const struct mix *mix)
{
	FRAME_START(&frame, 0);
	if (mix->vlan_count == 2)
		FRAME_VLAN(&frame, .type = 0x88a8, .id = 7);
	if (mix->vlan_count >= 1)
		FRAME_VLAN(&frame, .id = 100);
	if (mix->inner6)
		FRAME_IP6(&frame, .hop_limit = 33, .traffic_class = 0xb9, .flow_label = 0x12345);
	else
		FRAME_IP4(&frame, .ttl = 33, .tos = 0xb9, .id = 4711);
	if (mix->udp)
		FRAME_UDP(&frame, 0);
	else
		FRAME_TCP(&frame, .flags = FRAME_ACK);
	frame_fill(&frame, 41, 1);
	frame_finish(&frame);
}

static void encapsulate(struct packet *packet, const struct mix *mix)
{
	struct snapshot_service service = {.tunnel = (uint8_t)mix->tunnel,
		.gue_port_be = htons(6080),
		.source4 = address("10.255.0.0"),
		.source4_bits = 16,
		.source6 = address("2001:db8:ffff::"),
		.source6_bits = 96};
	struct encap_port port = {.mtu = 1600};
	struct ip_addr backend = address(mix->outer6 ? "2001:db8:b::1" : "10.0.0.11");
	struct encap_job job = {&service, &backend, &port};
	static const uint8_t to[6] = {2, 0, 0, 0, 0, 3}, from[6] = {2, 0, 0, 0, 0, 1};

	packet_load(packet, &frame, PACKET_HEADROOM_MIN, 0);
	parse_burst(packet, 1);
	packet->hash = mix->hash;
	packet->port_out = packet->port_in;
	encap_burst(packet, &job, 1);
	CU_ASSERT_EQUAL(packet->verdict, PACKET_PENDING);
	encap_set_macs(packet, to, from);
}

// One value, or none, in front of another: how tshark prints fields of nested layers.
static const char *pair(char *buffer, bool first_here, const char *first, const char *second)
{
	sprintf(buffer, "%s%s%s", first_here ? first : "", first_here && second[0] ? "," : "",
		second);
	return buffer;
}

static void expect_mix(char *line, const struct mix *mix)
{
	static const char *const tunnels[] = {"", ":udp:gue", ":gre", ""};
	uint32_t hash = (uint32_t)mix->hash;
	bool is_gue = mix->tunnel == SNAPSHOT_TUNNEL_GUE;
	bool is_l2 = mix->tunnel == SNAPSHOT_TUNNEL_L2;
	bool outer4 = !is_l2 && !mix->outer6, outer6 = !is_l2 && mix->outer6;
	unsigned l4 = mix->udp ? 8 : 20;
	unsigned shim = is_gue ? 12 : mix->tunnel == SNAPSHOT_TUNNEL_GRE ? 4 : 0;
	char source4[32], source6[64], length4[16], length6[16], label[16], sport[16];
	char b[12][128];

	sprintf(source4, "10.255.%u.%u", hash >> 8 & 255, hash & 255);
	sprintf(source6, "2001:db8:ffff::%x:%x", hash >> 16, hash & 0xffff);
	sprintf(length4, "%u", 20 + shim + (mix->inner6 ? 40 : 20) + l4 + 41);
	sprintf(length6, "%u", shim + (mix->inner6 ? 40 : 20) + l4 + 41);
	sprintf(label, "0x%06x", hash & 0xfffff);
	sprintf(sport, "%u", 0xc000 | (hash >> 16 & 0x3fff));
	const char *inner_length4 = mix->udp ? "69" : "81";
	const char *inner_length6 = mix->udp ? "49" : "61";

	sprintf(line,
		"02:00:00:00:00:03;02:00:00:00:00:01;eth:ethertype%s%s%s%s:%s;"
		"%s;%s;%s;%s;%s;%s;%s;%s;%s;%s;%s;%s",
		mix->vlan_count == 2      ? ":ieee8021ad:ethertype:vlan:ethertype"
			: mix->vlan_count ? ":vlan:ethertype"
					  : "",
		outer4           ? ":ip"
			: outer6 ? ":ipv6"
				 : "",
		tunnels[mix->tunnel], mix->inner6 ? ":ipv6" : ":ip", mix->udp ? "udp" : "tcp",
		// IPv4: source, length, TTL, DS field, DF, checksum status (1: good)
		pair(b[0], outer4, source4, mix->inner6 ? "" : "198.51.100.7"),
		pair(b[1], outer4, length4, mix->inner6 ? "" : inner_length4),
		pair(b[2], outer4, "64", mix->inner6 ? "" : "32"),
		pair(b[3], outer4, "0xb9", mix->inner6 ? "" : "0xb9"),
		pair(b[4], outer4, "1", mix->inner6 ? "" : "0"),
		pair(b[5], outer4, "1", mix->inner6 ? "" : "1"),
		// IPv6: source, payload length, hop limit, flow label
		pair(b[6], outer6, source6, mix->inner6 ? "2001:db8:c::7" : ""),
		pair(b[7], outer6, length6, mix->inner6 ? inner_length6 : ""),
		pair(b[8], outer6, "64", mix->inner6 ? "32" : ""),
		pair(b[9], outer6, label, mix->inner6 ? "0x012345" : ""),
		// UDP source port; checksum status of UDP or TCP (3: none was sent)
		pair(b[10], is_gue, sport, mix->udp ? "40000" : ""),
		pair(b[11], is_gue, "3", mix->udp ? "1" : ""));
	sprintf(line + strlen(line), ";%s", mix->udp ? "" : "1");
	sprintf(line + strlen(line), ";%s;%s;%s;",
		is_gue ? (mix->inner6 ? "0;0;0;41;0x0000" : "0;0;0;4;0x0000") : ";;;;",
		mix->tunnel == SNAPSHOT_TUNNEL_GRE ? (mix->inner6 ? "0x86dd" : "0x0800") : "",
		mix->tunnel == SNAPSHOT_TUNNEL_GRE ? "0x0000" : "");
}

static void every_tunnel_and_mix_reads_as_intended(void)
{
	struct packet packet;

	open_pcap();
	for (unsigned i = 0; i < 96; i++) {
		struct mix mix = {.tunnel = i % 4,
			.outer6 = i / 4 % 2,
			.inner6 = i / 8 % 2,
			.udp = i / 16 % 2,
			.vlan_count = i / 32,
			.hash = UINT64_C(0x1122334455667788) * (i + 1)};

		write_inner(&mix);
		encapsulate(&packet, &mix);
		expect_mix(write_frame(&packet), &mix);
		packet_unload(&packet);
	}
	compare("-e eth.dst -e eth.src -e frame.protocols "
		"-e ip.src -e ip.len -e ip.ttl -e ip.dsfield -e ip.flags.df -e ip.checksum.status "
		"-e ipv6.src -e ipv6.plen -e ipv6.hlim -e ipv6.flow "
		"-e udp.srcport -e udp.checksum.status -e tcp.checksum.status "
		"-e gue.variant -e gue.control -e gue.hlen -e gue.protocol -e gue.flags "
		"-e gre.proto -e gre.flags_and_version -e _ws.malformed");
}

// A question of each kind, and what tshark must say about the reply.
struct reply {
	void (*write)(void);
	bool (*answer)(struct packet *packet);
	const char *line;
};

static void write_arp(void)
{
	FRAME_START(&frame, .destination = "ff:ff:ff:ff:ff:ff");
	FRAME_ARP(&frame, 0);
}

static void write_solicitation(void)
{
	FRAME_START(&frame, .destination = "33:33:ff:00:00:10");
	FRAME_IP6(&frame, .source = "2001:db8:1::1", .destination = "ff02::1:ff00:10",
		.hop_limit = 255);
	FRAME_ND(&frame, .option = 1);
}

static void write_echo4(void)
{
	FRAME_START(&frame, 0);
	FRAME_IP4(&frame, .options_bytes = 8);
	FRAME_ICMP4(&frame, .type = 8, .word0 = 7, .word1 = 9);
	frame_fill(&frame, 57, 3);
}

static void write_echo6(void)
{
	FRAME_START(&frame, 0);
	FRAME_IP6(&frame, 0);
	FRAME_EXTENSION(&frame, .kind = 60, .units = 0, .body = {1, 4});
	FRAME_ICMP6(&frame, .type = 128, .word0 = 7, .word1 = 9);
	frame_fill(&frame, 57, 3);
}

static void write_long4(void)
{
	FRAME_START(&frame, 0);
	FRAME_VLAN(&frame, .id = 100);
	FRAME_IP4(&frame, .ttl = 1, .dont_fragment = true);
	FRAME_UDP(&frame, .source_port = 4000, .destination_port = 9);
	frame_fill(&frame, 1472, 3);
}

static void write_long6(void)
{
	FRAME_START(&frame, 0);
	FRAME_IP6(&frame, .hop_limit = 1);
	FRAME_UDP(&frame, .source_port = 4000, .destination_port = 9);
	frame_fill(&frame, 1452, 3);
}

static bool answer_mac(struct packet *packet)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

	answer_discovery(packet, mac);
	return packet->verdict == PACKET_ANSWER;
}

static bool answer_ping(struct packet *packet)
{
	answer_echo(packet);
	return packet->verdict == PACKET_ANSWER;
}

static bool answer_mtu(struct packet *packet)
{
	return answer_too_big(packet, 1448);
}

// The columns are those of compare() below. What a quoted layer says comes behind a comma.
static const struct reply replies[] = {
	{write_arp, answer_mac,
		"02:00:00:00:00:02;eth:ethertype:arp;;;;;;;;;;;2;02:00:00:00:00:01;192.0.2.10;"
		"192.0.2.1;;;"},
	{write_solicitation, answer_mac,
		"02:00:00:00:00:02;eth:ethertype:ipv6:icmpv6;;;;2001:db8:1::10;255;;;;136;1;;;;;;"
		"02:00:00:00:00:01;"},
	{write_echo4, answer_ping,
		"02:00:00:00:00:02;eth:ethertype:ip:icmp;203.0.113.10;64;1;;;0;1;;;;;;;;;;"},
	{write_echo6, answer_ping,
		"02:00:00:00:00:02;eth:ethertype:ipv6:icmpv6;;;;2001:db8:5::10;64;;;;129;1;;;;;;;"},
	{write_long4, answer_mtu,
		"02:00:00:00:00:02;eth:ethertype:vlan:ethertype:ip:icmp:ip:udp;"
		"203.0.113.10,198.51.100.7;64,1;1,1;;;3;1;1448;;;;;;;;;"},
	{write_long4, answer_time_exceeded,
		"02:00:00:00:00:02;eth:ethertype:vlan:ethertype:ip:icmp:ip:udp;"
		"203.0.113.10,198.51.100.7;64,1;1,1;;;11;1;;;;;;;;;;"},
	{write_long6, answer_mtu,
		"02:00:00:00:00:02;eth:ethertype:ipv6:icmpv6:ipv6:udp;;;;"
		"2001:db8:5::10,2001:db8:c::7;64,1;;;;2;1;;;;;1448;;"},
	{write_long6, answer_time_exceeded,
		"02:00:00:00:00:02;eth:ethertype:ipv6:icmpv6:ipv6:udp;;;;"
		"2001:db8:5::10,2001:db8:c::7;64,1;;;;3;1;;;;;;;"},
};

static void every_answer_reads_as_intended(void)
{
	struct packet packet;

	open_pcap();
	for (unsigned i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		replies[i].write();
		frame_finish(&frame);
		packet_load(&packet, &frame, PACKET_HEADROOM_MIN, 32);
		parse_burst(&packet, 1);
		CU_ASSERT(replies[i].answer(&packet));
		strcpy(write_frame(&packet), replies[i].line);
		packet_unload(&packet);
	}
	compare("-e eth.dst -e frame.protocols "
		"-e ip.src -e ip.ttl -e ip.checksum.status -e ipv6.src -e ipv6.hlim "
		"-e icmp.type -e icmp.checksum.status -e icmp.mtu "
		"-e icmpv6.type -e icmpv6.checksum.status "
		"-e arp.opcode -e arp.src.hw_mac -e arp.src.proto_ipv4 -e arp.dst.proto_ipv4 "
		"-e icmpv6.mtu -e icmpv6.opt.linkaddr -e _ws.malformed");
}

typedef unsigned (*write_message)(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message);

// What we say to neighbours unasked. Columns as in compare() below.
static const struct {
	write_message write;
	bool six, probe;
	const char *line;
} messages[] = {
	{discovery_write_question, false, false,
		"ff:ff:ff:ff:ff:ff;100;eth:ethertype:vlan:ethertype:arp;1;192.0.2.10;192.0.2.1;;;;;;;;;"},
	{discovery_write_question, false, true,
		"02:00:00:00:00:02;100;eth:ethertype:vlan:ethertype:arp;1;192.0.2.10;192.0.2.1;;;;;;;;;"},
	{discovery_write_announcement, false, false,
		"ff:ff:ff:ff:ff:ff;100;eth:ethertype:vlan:ethertype:arp;1;192.0.2.10;192.0.2.10;;;;;;;;;"},
	{discovery_write_question, true, false,
		"33:33:ff:00:00:01;100;eth:ethertype:vlan:ethertype:ipv6:icmpv6;;;;2001:db8:1::10;"
		"ff02::1:ff00:1;255;135;1;02:00:00:00:00:01;;;"},
	{discovery_write_question, true, true,
		"02:00:00:00:00:02;100;eth:ethertype:vlan:ethertype:ipv6:icmpv6;;;;2001:db8:1::10;"
		"2001:db8:1::1;255;135;1;02:00:00:00:00:01;;;"},
	{discovery_write_announcement, true, false,
		"33:33:00:00:00:01;100;eth:ethertype:vlan:ethertype:ipv6:icmpv6;;;;2001:db8:1::10;"
		"ff02::1;255;136;1;02:00:00:00:00:01;;;"},
	{discovery_write_membership, true, false,
		"33:33:00:00:00:16;100;eth:ethertype:vlan:ethertype:ipv6:ipv6.hopopts:icmpv6;;;;::;"
		"ff02::16;1;143;1;;0;ff02::1:ff00:10;"},
};

static void every_neighbour_message_reads_as_intended(void)
{
	static const uint8_t router[6] = {2, 0, 0, 0, 0, 2};

	open_pcap();
	for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		uint8_t bytes[DISCOVERY_FRAME_MAX];
		struct packet packet = {.data = bytes};
		struct discovery_message message = {
			.sender = address(messages[i].six ? "2001:db8:1::10" : "192.0.2.10"),
			.target = address(messages[i].six ? "2001:db8:1::1" : "192.0.2.1"),
			.mac = {2, 0, 0, 0, 0, 1},
			.neighbour_mac = messages[i].probe ? router : NULL,
			.vlan = 100};

		packet.length = messages[i].write(bytes, sizeof(bytes), &message);
		strcpy(write_frame(&packet), messages[i].line);
	}
	compare("-e eth.dst -e vlan.id -e frame.protocols "
		"-e arp.opcode -e arp.src.proto_ipv4 -e arp.dst.proto_ipv4 "
		"-e ipv6.src -e ipv6.dst -e ipv6.hlim -e icmpv6.type -e icmpv6.checksum.status "
		"-e icmpv6.opt.linkaddr -e ipv6.opt.router_alert "
		"-e icmpv6.mldr.mar.multicast_address -e _ws.malformed");
}

static const struct test_case cases[] = {
	SUITE_CASE(every_tunnel_and_mix_reads_as_intended),
	SUITE_CASE(every_answer_reads_as_intended),
	SUITE_CASE(every_neighbour_message_reads_as_intended),
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	lua_path = argv[1];
	if (system("tshark -v >/dev/null 2>&1") != 0) {
		printf("1..0 # SKIP no tshark\n");
		return SKIP;
	}
	return SUITE_RUN("dissect", cases);
}
