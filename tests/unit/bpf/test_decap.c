// SPDX-License-Identifier: Apache-2.0
// Runs the real decapsulation programs in the kernel on byte arrays (BPF_PROG_TEST_RUN): bytes in, bytes out, verdict
// and counter. Both programs get every case. The test lives in a network namespace of its own, where the virtual
// addresses are on lo and 198.51.100.9 is somebody else's.
#include "tests/lib/suite.h"

#include "bpf/bpf_shared.h"
#include "bpf/decap.skel.h"
#include "dataplane/packet/encap.h"
#include "dataplane/packet/parse.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VIP4    "203.0.113.10"
#define VIP6    "2001:db8:100::10"
#define AWAY4   "203.0.113.77" // in the VIP map, but not on this host
#define HOST4   "10.1.0.11"
#define HOST6   "fd00:1::11"
#define CLIENT4 "198.51.100.7"
#define CLIENT6 "2001:db8:200::7"

struct bytes {
	uint8_t data[512];
	size_t length;
};

// A packet that a balancer could send to this host; the zero value is the plain case of its tunnel and families.
struct spec {
	enum decap_tunnel tunnel;
	bool outer_v6, inner_v6;
	unsigned vlan_count;
	uint8_t outer_ecn, inner_ecn;
	uint8_t inner_ecn_out;
	bool gue_variant1;
	bool encapsulation_limit; // 8 bytes of destination options, as Linux's ip6tnl sends
	const char *outer_destination;
	const char *inner_destination;
};

static struct decap_bpf *skeleton;

static void put(struct bytes *to, const void *data, size_t length)
{
	memcpy(to->data + to->length, data, length);
	to->length += length;
}

static void put8(struct bytes *to, unsigned value)
{
	to->data[to->length++] = (uint8_t)value;
}

static void put16(struct bytes *to, unsigned value)
{
	put8(to, value >> 8);
	put8(to, value);
}

static void put_address(struct bytes *to, const char *text)
{
	uint8_t address[16];
	bool v6 = strchr(text, ':') != NULL;

	CU_ASSERT_EQUAL_FATAL(inet_pton(v6 ? AF_INET6 : AF_INET, text, address), 1);
	put(to, address, v6 ? 16 : 4);
}

static void fix_ipv4_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	ip[10] = ip[11] = 0;
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

static void put_ipv4(struct bytes *to, unsigned protocol, unsigned ecn, size_t payload,
	const char *source, const char *destination)
{
	size_t start = to->length;

	put8(to, 0x45);
	put8(to, 0x28 | ecn);
	put16(to, (unsigned)(20 + payload));
	put16(to, 0x1234);
	put16(to, 0x4000);
	put8(to, 64);
	put8(to, protocol);
	put16(to, 0);
	put_address(to, source);
	put_address(to, destination);
	fix_ipv4_checksum(to->data + start);
}

static void put_ipv6(struct bytes *to, unsigned protocol, unsigned ecn, size_t payload,
	const char *source, const char *destination)
{
	put8(to, 0x62);
	put8(to, 0x80 | ecn << 4);
	put16(to, 0xbeef);
	put16(to, (unsigned)payload);
	put8(to, protocol);
	put8(to, 64);
	put_address(to, source);
	put_address(to, destination);
}

// The packet that a client sent: TCP, with 33 bytes of payload.
static void put_inner(struct bytes *to, const struct spec *spec, uint8_t ecn)
{
	static const uint8_t tcp[20 + 33] = {0x9c, 0x40, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10,
		1, 0, 0xab, 0xcd, 0, 0, 'r', 'i', 'n', 'g', 'w', 'a', 'y'};
	const char *destination = spec->inner_destination;

	if (spec->inner_v6)
		put_ipv6(to, IPPROTO_TCP, ecn, sizeof(tcp), CLIENT6, destination ?: VIP6);
	else
		put_ipv4(to, IPPROTO_TCP, ecn, sizeof(tcp), CLIENT4, destination ?: VIP4);
	put(to, tcp, sizeof(tcp));
}

static void put_ethernet(struct bytes *to, const struct spec *spec, bool v6)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	put(to, macs, sizeof(macs));
	for (unsigned i = 0; i < spec->vlan_count; i++) {
		put16(to, i == 0 && spec->vlan_count == 2 ? ETH_P_8021AD : ETH_P_8021Q);
		put16(to, 100 + i);
	}
	put16(to, v6 ? ETH_P_IPV6 : ETH_P_IP);
}

// Everything between the outer IP header and the inner packet.
static void put_tunnel(struct bytes *to, const struct spec *spec, size_t inner_bytes)
{
	size_t gue_bytes = spec->gue_variant1 ? 0 : 4;

	if (spec->tunnel == DECAP_GRE) {
		put16(to, 0);
		put16(to, spec->inner_v6 ? ETH_P_IPV6 : ETH_P_IP);
	} else if (spec->tunnel == DECAP_GUE) {
		put16(to, 0xc123);
		put16(to, DECAP_GUE_PORT);
		put16(to, (unsigned)(8 + gue_bytes + inner_bytes));
		put16(to, 0);
		if (!spec->gue_variant1) {
			put8(to, 0);
			put8(to, spec->inner_v6 ? IPPROTO_IPV6 : IPPROTO_IPIP);
			put16(to, 0);
		}
	}
}

static unsigned outer_protocol(const struct spec *spec)
{
	if (spec->tunnel == DECAP_GRE)
		return IPPROTO_GRE;
	if (spec->tunnel == DECAP_GUE)
		return IPPROTO_UDP;
	return spec->inner_v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
}

static struct bytes make_tunnelled(const struct spec *spec)
{
	struct bytes inner = {}, tunnel = {}, frame = {};
	const char *destination = spec->outer_destination;

	put_inner(&inner, spec, spec->inner_ecn);
	if (spec->encapsulation_limit) {
		// RFC 2473 section 5.1: option 4, one byte, limit 4, then PadN.
		put8(&tunnel, outer_protocol(spec));
		put(&tunnel, "\0\4\1\4\1\1\0", 7);
	}
	put_tunnel(&tunnel, spec, inner.length);
	put_ethernet(&frame, spec, spec->outer_v6);
	if (spec->outer_v6)
		put_ipv6(&frame, spec->encapsulation_limit ? IPPROTO_DSTOPTS : outer_protocol(spec),
			spec->outer_ecn, tunnel.length + inner.length, "fd00:1::1",
			destination ?: HOST6);
	else
		put_ipv4(&frame, outer_protocol(spec), spec->outer_ecn,
			tunnel.length + inner.length, "10.1.0.1", destination ?: HOST4);
	put(&frame, tunnel.data, tunnel.length);
	put(&frame, inner.data, inner.length);
	return frame;
}

static struct bytes make_plain(const struct spec *spec)
{
	struct bytes frame = {};

	put_ethernet(&frame, spec, spec->inner_v6);
	put_inner(&frame, spec, spec->inner_ecn_out);
	return frame;
}

static uint64_t packets_counted(uint32_t counter)
{
	struct decap_count counts[256] = {};
	uint64_t sum = 0;

	CU_ASSERT_EQUAL(
		bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.decap_counters), &counter, counts),
		0);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		sum += counts[cpu].packets;
	return sum;
}

// Runs one program over a frame and compares verdict, the whole output and that one counter moved by one.
static void run(const struct bpf_program *program, const struct bytes *in, uint32_t verdict,
	const struct bytes *out, enum decap_counter counter)
{
	struct bytes got = {};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = in->data,
		.data_size_in = (uint32_t)in->length, .data_out = got.data,
		.data_size_out = sizeof(got.data));
	uint64_t before[DECAP_COUNTER_COUNT];
	int error;

	for (uint32_t i = 0; i < DECAP_COUNTER_COUNT; i++)
		before[i] = packets_counted(i);
	error = bpf_prog_test_run_opts(bpf_program__fd(program), &options);
	CU_ASSERT_EQUAL_FATAL(error, 0);
	CU_ASSERT_EQUAL(options.retval, verdict);
	for (uint32_t i = 0; i < DECAP_COUNTER_COUNT; i++)
		CU_ASSERT_EQUAL(packets_counted(i) - before[i], i == counter);
	if (out == NULL)
		return;
	CU_ASSERT_EQUAL(options.data_size_out, out->length);
	CU_ASSERT_EQUAL(memcmp(got.data, out->data, out->length), 0);
}

static void check(const struct bytes *in, const struct bytes *out, enum decap_counter counter)
{
	run(skeleton->progs.ringway_decap, in, XDP_PASS, out, counter);
	run(skeleton->progs.ringway_tcdecap, in, (uint32_t)TC_ACT_UNSPEC, out, counter);
}

static void check_untouched(const struct bytes *in, enum decap_counter counter)
{
	check(in, in, counter);
}

static void all_tunnels_and_families_lose_their_header(void)
{
	for (unsigned i = 0; i < DECAP_COUNTER_TUNNELS; i++) {
		struct spec spec = {.tunnel = i / 4, .outer_v6 = i & 2, .inner_v6 = i & 1};
		struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

		check(&in, &out, i);
	}
}

static void gue_variant_1_carries_the_packet_directly(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct spec spec = {.tunnel = DECAP_GUE,
			.outer_v6 = i & 2,
			.inner_v6 = i & 1,
			.gue_variant1 = true};
		struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

		check(&in, &out, DECAP_COUNTER_gue_v4_in_v4 + i);
	}
}

static void vlan_tags_stay(void)
{
	for (unsigned count = 1; count <= 2; count++) {
		struct spec spec = {.vlan_count = count, .inner_v6 = true};
		struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

		// tc sees packets whose outermost tag the kernel took off; test runs do not do that.
		run(skeleton->progs.ringway_decap, &in, XDP_PASS, &out,
			DECAP_COUNTER_ipip_v6_in_v4);
	}
}

static void encapsulation_limit_of_linux_tunnels_is_skipped(void)
{
	struct spec spec = {.outer_v6 = true, .encapsulation_limit = true};
	struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

	check(&in, &out, DECAP_COUNTER_ipip_v4_in_v6);
}

static void ethernet_padding_behind_the_packet_stays_behind_it(void)
{
	struct spec spec = {};
	struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

	put(&in, "padding", 7);
	put(&out, "padding", 7);
	check(&in, &out, DECAP_COUNTER_ipip_v4_in_v4);
}

static void ecn_follows_rfc_6040(void)
{
	// Rows: outer Not-ECT, ECT(1), ECT(0), CE as the wire codes them; -1 is a drop.
	static const int want[4][4] = {
		[0] = {0, 1, 2, 3},
		[1] = {0, 1, 1, 3},
		[2] = {0, 1, 2, 3},
		[3] = {-1, 3, 3, 3},
	};

	for (unsigned i = 0; i < 32; i++) {
		struct spec spec = {
			.outer_ecn = i >> 2 & 3, .inner_ecn = i & 3, .inner_v6 = i >> 4};
		int ecn = want[spec.outer_ecn][spec.inner_ecn];
		struct bytes in = make_tunnelled(&spec), out;

		if (ecn < 0) {
			run(skeleton->progs.ringway_decap, &in, XDP_DROP, NULL,
				DECAP_COUNTER_ecn_dropped);
			run(skeleton->progs.ringway_tcdecap, &in, TC_ACT_SHOT, NULL,
				DECAP_COUNTER_ecn_dropped);
			continue;
		}
		spec.inner_ecn_out = (uint8_t)ecn;
		out = make_plain(&spec);
		check(&in, &out,
			spec.inner_v6 ? DECAP_COUNTER_ipip_v6_in_v4 : DECAP_COUNTER_ipip_v4_in_v4);
	}
}

static void tunnel_to_another_host_passes(void)
{
	struct spec v4 = {.outer_destination = "10.1.0.12"};
	struct spec v6 = {.outer_v6 = true, .outer_destination = "fd00:1::12"};
	struct bytes in4 = make_tunnelled(&v4), in6 = make_tunnelled(&v6);

	check_untouched(&in4, DECAP_COUNTER_other);
	check_untouched(&in6, DECAP_COUNTER_other);
}

static void packet_for_no_virtual_address_passes(void)
{
	struct spec v4 = {.inner_destination = "203.0.114.1"};
	struct spec v6 = {.inner_v6 = true, .inner_destination = "2001:db8:101::10"};
	struct bytes in4 = make_tunnelled(&v4), in6 = make_tunnelled(&v6);

	check_untouched(&in4, DECAP_COUNTER_not_vip);
	check_untouched(&in6, DECAP_COUNTER_not_vip);
}

static void virtual_address_that_is_not_here_passes_instead_of_looping(void)
{
	struct spec spec = {.inner_destination = AWAY4};
	struct bytes in = make_tunnelled(&spec);

	check_untouched(&in, DECAP_COUNTER_not_local);
}

static void plain_traffic_passes(void)
{
	struct spec spec = {}, spec6 = {.inner_v6 = true};
	struct bytes tcp = make_plain(&spec), tcp6 = make_plain(&spec6), arp = {};
	struct spec gue = {.tunnel = DECAP_GUE};
	struct bytes udp = make_tunnelled(&gue);

	check_untouched(&tcp, DECAP_COUNTER_other);
	check_untouched(&tcp6, DECAP_COUNTER_other);
	udp.data[14 + 20 + 3]++; // another port
	check_untouched(&udp, DECAP_COUNTER_other);
	put(&arp, tcp.data, 12);
	put16(&arp, ETH_P_ARP);
	put(&arp, tcp.data, 46);
	check_untouched(&arp, DECAP_COUNTER_other);
}

static void fragments_of_tunnel_packets_pass(void)
{
	struct spec spec = {}, gue_spec = {.tunnel = DECAP_GUE};
	struct bytes in = make_tunnelled(&spec), gue = make_tunnelled(&gue_spec);

	in.data[14 + 6] = 0x20; // more fragments
	fix_ipv4_checksum(in.data + 14);
	check_untouched(&in, DECAP_COUNTER_fragment);
	in.data[14 + 6] = 0;
	in.data[14 + 7] = 8; // a later one
	fix_ipv4_checksum(in.data + 14);
	check_untouched(&in, DECAP_COUNTER_fragment);
	gue.data[14 + 6] = 0x20;
	fix_ipv4_checksum(gue.data + 14);
	check_untouched(&gue, DECAP_COUNTER_fragment);
	gue.data[14 + 6] = 0;
	gue.data[14 + 7] = 8; // its bytes are not a UDP header: nobody knows what it is
	fix_ipv4_checksum(gue.data + 14);
	check_untouched(&gue, DECAP_COUNTER_other);
}

static void fragment_inside_the_tunnel_is_decapsulated(void)
{
	struct spec spec = {};
	struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

	in.data[14 + 20 + 7] = out.data[14 + 7] = 8;
	fix_ipv4_checksum(in.data + 14 + 20);
	fix_ipv4_checksum(out.data + 14);
	check(&in, &out, DECAP_COUNTER_ipip_v4_in_v4);
}

static void fields_that_we_do_not_handle_pass(void)
{
	struct spec gue_spec = {.tunnel = DECAP_GUE}, gre_spec = {.tunnel = DECAP_GRE};
	struct bytes gue = make_tunnelled(&gue_spec), gre = make_tunnelled(&gre_spec);
	const size_t gue_offset = 14 + 20 + 8, gre_offset = 14 + 20;

	gue.data[gue_offset] = 0x20; // control message
	check_untouched(&gue, DECAP_COUNTER_unsupported);
	gue.data[gue_offset] = 0x01; // optional fields
	check_untouched(&gue, DECAP_COUNTER_unsupported);
	gue.data[gue_offset] = 0x80; // variant 2
	check_untouched(&gue, DECAP_COUNTER_unsupported);
	gue.data[gue_offset] = 0;
	gue.data[gue_offset + 1] = IPPROTO_SCTP;
	check_untouched(&gue, DECAP_COUNTER_unsupported);
	gre.data[gre_offset] = 0x20; // key
	check_untouched(&gre, DECAP_COUNTER_unsupported);
	gre.data[gre_offset] = 0;
	gre.data[gre_offset + 2] = 0x65; // transparent Ethernet bridging, nearly
	check_untouched(&gre, DECAP_COUNTER_unsupported);
}

// Changes one byte of a frame and wants it to pass as malformed.
static void check_malformed(const struct spec *spec, size_t offset, uint8_t value, bool fix_outer)
{
	struct bytes in = make_tunnelled(spec);

	in.data[offset] = value;
	if (fix_outer)
		fix_ipv4_checksum(in.data + 14);
	check_untouched(&in, DECAP_COUNTER_malformed);
}

static void malformed_packets_pass(void)
{
	const struct spec v4 = {}, v6 = {.outer_v6 = true, .inner_v6 = true};
	const struct spec gue = {.tunnel = DECAP_GUE};

	check_malformed(&v4, 14 + 10, 0xff, false);    // outer checksum
	check_malformed(&v4, 14 + 2, 0x7f, true);      // outer length beyond the frame
	check_malformed(&v4, 14 + 3, 19, true);        // outer length below its header
	check_malformed(&v4, 14 + 20, 0x55, false);    // inner version
	check_malformed(&v4, 14 + 20, 0x44, false);    // inner header length
	check_malformed(&v4, 14 + 20 + 2, 1, false);   // inner length beyond the outer one
	check_malformed(&v4, 14 + 20 + 8, 0, false);   // inner TTL
	check_malformed(&v6, 14 + 4, 0x7f, false);     // outer length beyond the frame
	check_malformed(&v6, 14 + 40, 0x42, false);    // inner version
	check_malformed(&v6, 14 + 40 + 4, 1, false);   // inner length beyond the outer one
	check_malformed(&v6, 14 + 40 + 7, 0, false);   // inner hop limit
	check_malformed(&gue, 14 + 20 + 4, 1, false);  // UDP length beyond the packet
	check_malformed(&gue, 14 + 20 + 5, 11, false); // UDP length that ends in the GUE header
}

static void every_cut_of_every_packet_passes(void)
{
	for (unsigned i = 0; i < DECAP_COUNTER_TUNNELS; i++) {
		struct spec spec = {.tunnel = i / 4, .outer_v6 = i & 2, .inner_v6 = i & 1};
		struct bytes in = make_tunnelled(&spec);

		for (in.length--; in.length >= 14; in.length--) {
			struct bytes got = {};
			LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = in.data,
				.data_size_in = (uint32_t)in.length, .data_out = got.data,
				.data_size_out = sizeof(got.data));
			int fd = bpf_program__fd(skeleton->progs.ringway_decap);

			CU_ASSERT_EQUAL(bpf_prog_test_run_opts(fd, &options), 0);
			CU_ASSERT_EQUAL(options.retval, XDP_PASS);
			CU_ASSERT_EQUAL(options.data_size_out, in.length);
			CU_ASSERT_EQUAL(memcmp(got.data, in.data, in.length), 0);
		}
	}
}

static int set_config(uint32_t flags)
{
	struct decap_config config = {.magic = DECAP_MAGIC,
		.version = DECAP_VERSION,
		.flags = flags,
		.gue_port = htons(DECAP_GUE_PORT)};
	uint32_t zero = 0;

	return bpf_map_update_elem(
		bpf_map__fd(skeleton->maps.decap_config), &zero, &config, BPF_ANY);
}

#define FLAGS_ALL (DECAP_FLAG_IPIP | DECAP_FLAG_GUE | DECAP_FLAG_GRE | DECAP_FLAG_GUARD)

static void tunnel_types_are_switched_one_by_one(void)
{
	for (unsigned off = 0; off < DECAP_TUNNEL_COUNT; off++) {
		CU_ASSERT_EQUAL(set_config(FLAGS_ALL & ~(1u << off)), 0);
		for (unsigned i = 0; i < DECAP_COUNTER_TUNNELS; i += 4) {
			struct spec spec = {.tunnel = i / 4};
			struct bytes in = make_tunnelled(&spec), out = make_plain(&spec);

			check(&in, i / 4 == off ? &in : &out,
				i / 4 == off ? DECAP_COUNTER_other : i);
		}
	}
	CU_ASSERT_EQUAL(set_config(FLAGS_ALL), 0);
}

static struct ip_addr address_of(const char *text)
{
	struct ip_addr ret;

	CU_ASSERT_EQUAL_FATAL(addr_parse(text, &ret), 0);
	return ret;
}

// Puts a client's packet into a tunnel as the dataplane does.
static struct bytes balance(const struct bytes *plain, const struct spec *spec)
{
	static const uint8_t tunnels[] = {[DECAP_IPIP] = SNAPSHOT_TUNNEL_IPIP,
		[DECAP_GUE] = SNAPSHOT_TUNNEL_GUE,
		[DECAP_GRE] = SNAPSHOT_TUNNEL_GRE};
	struct bytes ret = {};
	uint8_t buffer[PACKET_HEADROOM_MIN + sizeof(plain->data)];
	struct packet packet = {.data = buffer + PACKET_HEADROOM_MIN,
		.length = (uint32_t)plain->length,
		.headroom = PACKET_HEADROOM_MIN};
	struct snapshot_service service = {
		.tunnel = tunnels[spec->tunnel], .gue_port_be = htons(DECAP_GUE_PORT)};
	struct encap_port port = {
		.source4 = address_of("10.1.0.1"), .source6 = address_of("fd00:1::1"), .mtu = 1600};
	struct ip_addr backend = address_of(spec->outer_v6 ? HOST6 : HOST4);
	struct encap_job job = {&service, &backend, &port};

	memcpy(packet.data, plain->data, plain->length);
	parse_burst(&packet, 1);
	packet.hash = 0x0123456789abcdef;
	encap_burst(&packet, &job, 1);
	CU_ASSERT_EQUAL_FATAL(packet.verdict, PACKET_PENDING);
	encap_set_macs(&packet, plain->data, plain->data + 6);
	put(&ret, packet.data, packet.length);
	return ret;
}

static void what_the_balancer_writes_comes_out_one_hop_older(void)
{
	for (unsigned i = 0; i < DECAP_COUNTER_TUNNELS * 4; i++) {
		unsigned counter = i / 4;
		struct spec spec = {.tunnel = counter / 4,
			.outer_v6 = counter & 2,
			.inner_v6 = counter & 1,
			.inner_ecn = i & 3,
			.inner_ecn_out = i & 3};
		struct bytes plain = make_plain(&spec), out = plain, in = balance(&plain, &spec);

		out.data[14 + (spec.inner_v6 ? 7 : 8)]--;
		if (!spec.inner_v6)
			fix_ipv4_checksum(out.data + 14);
		check(&in, &out, counter);
	}
}

static const struct test_case cases[] = {
	{"all_tunnels_and_families_lose_their_header", all_tunnels_and_families_lose_their_header},
	{"what_the_balancer_writes_comes_out_one_hop_older",
		what_the_balancer_writes_comes_out_one_hop_older},
	{"gue_variant_1_carries_the_packet_directly", gue_variant_1_carries_the_packet_directly},
	{"vlan_tags_stay", vlan_tags_stay},
	{"encapsulation_limit_of_linux_tunnels_is_skipped",
		encapsulation_limit_of_linux_tunnels_is_skipped},
	{"ethernet_padding_behind_the_packet_stays_behind_it",
		ethernet_padding_behind_the_packet_stays_behind_it},
	{"ecn_follows_rfc_6040", ecn_follows_rfc_6040},
	{"tunnel_to_another_host_passes", tunnel_to_another_host_passes},
	{"packet_for_no_virtual_address_passes", packet_for_no_virtual_address_passes},
	{"virtual_address_that_is_not_here_passes_instead_of_looping",
		virtual_address_that_is_not_here_passes_instead_of_looping},
	{"plain_traffic_passes", plain_traffic_passes},
	{"fragments_of_tunnel_packets_pass", fragments_of_tunnel_packets_pass},
	{"fragment_inside_the_tunnel_is_decapsulated", fragment_inside_the_tunnel_is_decapsulated},
	{"fields_that_we_do_not_handle_pass", fields_that_we_do_not_handle_pass},
	{"malformed_packets_pass", malformed_packets_pass},
	{"every_cut_of_every_packet_passes", every_cut_of_every_packet_passes},
	{"tunnel_types_are_switched_one_by_one", tunnel_types_are_switched_one_by_one},
};

static void add_prefix(const char *text, unsigned bits)
{
	bool v6 = strchr(text, ':') != NULL;
	struct decap_prefix key = {
		.bits = DECAP_PREFIX_BASE_BITS + bits, .family = v6 ? DECAP_V6 : DECAP_V4};
	uint32_t value = 1;

	inet_pton(v6 ? AF_INET6 : AF_INET, text, key.bytes);
	bpf_map_update_elem(bpf_map__fd(skeleton->maps.decap_vips), &key, &value, BPF_ANY);
}

static void add_local(const char *text)
{
	bool v6 = strchr(text, ':') != NULL;
	struct decap_address key = {.family = v6 ? DECAP_V6 : DECAP_V4};
	uint32_t value = 1;

	inet_pton(v6 ? AF_INET6 : AF_INET, text, key.bytes);
	bpf_map_update_elem(bpf_map__fd(skeleton->maps.decap_locals), &key, &value, BPF_ANY);
}

// A host that forwards, so that the guard has something to guard against.
static int make_host(void)
{
	if (unshare(CLONE_NEWNET) != 0)
		return -errno;
	return system("ip link set lo up && ip addr add " VIP4 "/32 dev lo && "
		      "ip addr add " VIP6 "/128 dev lo && "
		      "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up && "
		      "ip addr add " HOST4 "/24 dev v0 && ip route add default via 10.1.0.1 && "
		      "ip neigh add 10.1.0.1 lladdr 02:00:00:00:00:01 dev v0 && "
		      "echo 1 > /proc/sys/net/ipv4/ip_forward && "
		      "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding") == 0
		? 0
		: -EIO;
}

int main(void)
{
	int failed;

	if (geteuid() != 0) {
		printf("1..0 # SKIP needs root: loads BPF programs\n");
		return 0;
	}
	if (make_host() != 0) {
		printf("1..0 # SKIP cannot make a network namespace with veth devices\n");
		return 0;
	}
	skeleton = decap_bpf__open_and_load();
	if (skeleton == NULL) {
		printf("1..1\nnot ok 1 - programs load\n");
		return 1;
	}
	add_prefix(VIP4, 32);
	add_prefix("203.0.113.64", 26); // AWAY4 lies in it
	add_prefix(VIP6, 128);
	add_local(HOST4);
	add_local(HOST6);
	if (set_config(FLAGS_ALL) != 0) {
		printf("1..1\nnot ok 1 - maps can be filled\n");
		return 1;
	}
	failed = SUITE_RUN("decap", cases);
	decap_bpf__destroy(skeleton);
	return failed;
}
