// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/encap.h"

#include "dataplane/packet/header.h"

// Bytes between the outer IP header and the packet inside, and the protocol that the outer header names
// (0: that of the packet inside).
static const struct {
	uint8_t bytes;
	uint8_t protocol;
} shims[SNAPSHOT_TUNNEL_COUNT] = {
	[SNAPSHOT_TUNNEL_IPIP] = {0, 0},
	[SNAPSHOT_TUNNEL_GUE] = {sizeof(struct wire_udp) + sizeof(struct wire_gue), WIRE_PROTO_UDP},
	[SNAPSHOT_TUNNEL_GRE] = {sizeof(struct wire_gre), WIRE_PROTO_GRE},
};

// What decides which code a packet needs. encap_burst() runs the usual shapes as constants: then a compiler drops the
// branches of all others: 135 instructions a packet instead of 230 (callgrind).
struct shape {
	unsigned tunnel; // enum snapshot_tunnel
	unsigned outer;  // families
	unsigned inner;
	bool tagged; // the frame came with tags or leaves with one
};

#define SHAPED static inline __attribute__((always_inline))

SHAPED unsigned overhead_of(unsigned tunnel, unsigned outer_family)
{
	if (tunnel >= SNAPSHOT_TUNNEL_L2)
		return 0;
	return shims[tunnel].bytes +
		(unsigned)(outer_family == ADDR_V6 ? sizeof(struct wire_ip6)
						   : sizeof(struct wire_ip4));
}

unsigned encap_overhead(unsigned tunnel, unsigned outer_family)
{
	return overhead_of(tunnel, outer_family);
}

unsigned encap_inner_mtu(const struct encap_job *job)
{
	unsigned overhead = encap_overhead(job->service->tunnel, job->destination->family);

	return job->port->mtu > overhead ? job->port->mtu - overhead : 0;
}

// The inner header's share of forwarding. Adding 1 to the checksum's high byte is RFC 1624 equation 3 for a TTL that
// falls by one; 0xffff, the other zero, is never stored, since a header is not all zero.
SHAPED void decrement_ttl(uint8_t *l3, unsigned family)
{
	if (family == ADDR_V6) {
		((struct wire_ip6 *)l3)->hop_limit--;
		return;
	}
	struct wire_ip4 *ip = (struct wire_ip4 *)l3;
	uint32_t sum = be16toh(ip->checksum_be) + 0x0100u;

	ip->checksum_be = htobe16((uint16_t)(sum + (sum >= UINT16_MAX)));
	ip->ttl--;
}

SHAPED unsigned inner_ttl(const uint8_t *l3, unsigned family)
{
	return family == ADDR_V6 ? ((const struct wire_ip6 *)l3)->hop_limit
				 : ((const struct wire_ip4 *)l3)->ttl;
}

// UDP's checksum stays zero: RFC 768 allows it over IPv4, RFC 6935 and RFC 6936 section 4 for tunnels over IPv6;
// the packet inside has its own.
static void write_gue(uint8_t *at, const struct packet *packet, uint16_t port_be, uint8_t protocol)
{
	uint32_t entropy = (uint32_t)packet->hash >> 16 & ENCAP_GUE_SOURCE_PORT_MASK;
	uint32_t length =
		(uint32_t)(sizeof(struct wire_udp) + sizeof(struct wire_gue)) + packet->l3_length;

	header_store(at, htobe32((ENCAP_GUE_SOURCE_PORT_BASE | entropy) << 16 | be16toh(port_be)));
	header_store(at + 4, htobe32(length << 16)); // checksum 0
	header_store(at + 8, htobe32((uint32_t)protocol << 16));
}

static void write_gre(uint8_t *at, unsigned inner_family)
{
	struct wire_gre gre = {
		.protocol_be =
			htobe16(inner_family == ADDR_V6 ? WIRE_ETHERTYPE_IP6 : WIRE_ETHERTYPE_IP4),
	};

	memcpy(at, &gre, sizeof(gre));
}

// The outer source of a job: the service's prefix or the port's address, or NULL.
SHAPED const struct ip_addr *outer_source(
	const struct encap_job *job, unsigned family, unsigned *ret_bits)
{
	const struct snapshot_service *service = job->service;
	const struct ip_addr *source = family == ADDR_V6 ? &service->source6 : &service->source4;

	if (source->family == family) {
		*ret_bits = family == ADDR_V6 ? service->source6_bits : service->source4_bits;
		return source;
	}
	source = family == ADDR_V6 ? &job->port->source6 : &job->port->source4;
	*ret_bits = 128;
	return source->family == family ? source : NULL;
}

// Puts the flow's hash into the host bits of an address: the last 32 bits at most, a few billion values being
// enough for any RSS. last: the last four bytes; prefix: how many of their bits stay.
SHAPED void mix_entropy(uint8_t last[4], int prefix, uint32_t entropy)
{
	uint32_t host = prefix >= 32 ? 0 : UINT32_MAX >> (prefix > 0 ? prefix : 0);
	uint32_t word;

	memcpy(&word, last, sizeof(word));
	word = htobe32((be32toh(word) & ~host) | (entropy & host));
	memcpy(last, &word, sizeof(word));
}

SHAPED void write_outer4(uint8_t *at, struct header *header, const struct ip_addr *source,
	unsigned bits, uint32_t hash)
{
	uint8_t mixed[4];

	memcpy(mixed, source->bytes, sizeof(mixed));
	mix_entropy(mixed, (int)bits, hash);
	header->source = mixed;
	header_write4(at, header);
}

SHAPED void write_outer6(uint8_t *at, struct header *header, const struct ip_addr *source,
	unsigned bits, uint32_t hash)
{
	uint8_t mixed[16];

	memcpy(mixed, source->bytes, sizeof(mixed));
	mix_entropy(mixed + 12, (int)bits - 96, hash);
	header->source = mixed;
	// RFC 6438 section 3: the label carries the flow; RFC 6437 section 3: 0 would mean that it carries none.
	header->label = hash & 0xfffff;
	header->label += header->label == 0;
	header_write6(at, header);
}

// Bytes of VLAN tags that the frame leaves with.
static unsigned tag_bytes_out(const struct packet *packet, const struct encap_port *port)
{
	if (port->vlan != 0)
		return sizeof(struct wire_vlan);
	// Tags mean something on their own link alone.
	return packet->port_out == packet->port_in
		? packet->vlan_count * (unsigned)sizeof(struct wire_vlan)
		: 0;
}

// Writes the port's tag where tags stand, with the priority of the tag that was there (IEEE 802.1Q section 9.6).
static void write_tag(uint8_t *at, const struct packet *packet, uint16_t vlan)
{
	unsigned control = vlan;

	if (packet->vlan_count != 0)
		control |= (unsigned)packet->data[14] << 8 & 0xf000u;
	header_store(at, htobe32(WIRE_ETHERTYPE_VLAN << 16 | control));
}

// The Ethernet header of a frame that has tags, or gets one: in front of l3, the new network header.
static __attribute__((noinline)) void write_tagged_link(
	struct packet *packet, uint8_t *l3, const struct encap_port *port)
{
	unsigned tag_bytes = tag_bytes_out(packet, port);
	uint8_t *data = l3 - sizeof(struct wire_ethernet) - tag_bytes;

	if (port->vlan != 0)
		write_tag(data + 12, packet, port->vlan);
	else if (tag_bytes != 0)
		memmove(data + 12, packet->data + 12, tag_bytes);
	packet->headroom = (uint16_t)(packet->headroom + (data - packet->data));
	packet->length = (uint32_t)(packet->data + packet->length - data);
	packet->data = data;
	packet->l3_offset = (uint16_t)(l3 - data);
	packet->vlan_count = (uint8_t)(tag_bytes / sizeof(struct wire_vlan));
}

static bool is_tagged(const struct packet *packet, const struct encap_port *port)
{
	return (packet->vlan_count | port->vlan) != 0;
}

// Puts the Ethernet header in front of an outer header: tags and type, not the MAC addresses. Untagged frames do
// without the sums over tags: 2.5 ns a packet (tests/bench/bench_packet.c).
SHAPED void write_link(struct packet *packet, const struct encap_job *job, struct shape shape)
{
	unsigned overhead = overhead_of(shape.tunnel, shape.outer);
	uint8_t *l3 = packet->data + packet->l3_offset - overhead;
	uint16_t type_be =
		shape.outer == ADDR_V6 ? htobe16(WIRE_ETHERTYPE_IP6) : htobe16(WIRE_ETHERTYPE_IP4);

	if (shape.tagged) {
		write_tagged_link(packet, l3, job->port);
	} else {
		packet->data -= overhead;
		packet->headroom = (uint16_t)(packet->headroom - overhead);
		packet->length += overhead;
	}
	memcpy(l3 - sizeof(type_be), &type_be, sizeof(type_be));
}

// The frame ends with its IP packet: Ethernet padding inside a tunnel would be padding no more.
SHAPED void cut_padding(struct packet *packet)
{
	uint32_t length = (uint32_t)packet->l3_offset + packet->l3_length;

	packet->tailroom = (uint16_t)(packet->tailroom + (packet->length - length));
	packet->length = length;
}

SHAPED void write_tunnel(struct packet *packet, const struct encap_job *job,
	const struct ip_addr *source, unsigned bits, struct shape shape)
{
	unsigned overhead = overhead_of(shape.tunnel, shape.outer);
	unsigned shim = shims[shape.tunnel].bytes;
	uint8_t *l3 = packet->data + packet->l3_offset;
	uint8_t inner_protocol = shape.inner == ADDR_V6 ? WIRE_PROTO_IP6 : WIRE_PROTO_IP4;
	struct header header = {
		.destination = job->destination->bytes,
		.payload = shim + packet->l3_length,
		// DSCP and ECN are copied outwards: RFC 2983 section 4.1 (uniform model), RFC 6040 section 4.1
		// (normal mode, CE included), which asks the decapsulator to carry marks back in.
		.class = header_class(l3, shape.inner),
		.ttl = ENCAP_TTL,
		.protocol = shape.tunnel == SNAPSHOT_TUNNEL_IPIP ? inner_protocol
								 : shims[shape.tunnel].protocol,
	};

	write_link(packet, job, shape);
	if (shape.tunnel == SNAPSHOT_TUNNEL_GUE)
		write_gue(l3 - shim, packet, job->service->gue_port_be, inner_protocol);
	else if (shape.tunnel == SNAPSHOT_TUNNEL_GRE)
		write_gre(l3 - shim, shape.inner);
	if (shape.outer == ADDR_V6)
		write_outer6(l3 - overhead, &header, source, bits, (uint32_t)packet->hash);
	else
		write_outer4(l3 - overhead, &header, source, bits, (uint32_t)packet->hash);
	packet->family = (uint8_t)shape.outer;
	packet->l3_length = (uint16_t)(packet->l3_length + overhead);
	packet->l4_offset = 0;
}

// Changes the tags of a packet that goes without a tunnel.
static void relink(struct packet *packet, uint8_t *l3, const struct encap_port *port)
{
	uint16_t type_be;

	memcpy(&type_be, l3 - sizeof(type_be), sizeof(type_be));
	write_tagged_link(packet, l3, port);
	memcpy(l3 - sizeof(type_be), &type_be, sizeof(type_be));
}

SHAPED bool has_headroom(const struct packet *packet, unsigned overhead,
	const struct encap_port *port, struct shape shape)
{
	if (!shape.tagged)
		return packet->headroom >= overhead;
	return (uint32_t)packet->headroom + packet->l3_offset >=
		overhead + sizeof(struct wire_ethernet) + tag_bytes_out(packet, port);
}

// Returns the reason to drop, or DROP_COUNT.
SHAPED unsigned encap_packet(struct packet *packet, const struct encap_job *job, struct shape shape)
{
	bool is_tunnel = shape.tunnel != SNAPSHOT_TUNNEL_L2;
	unsigned overhead = overhead_of(shape.tunnel, shape.outer);
	uint8_t *l3 = packet->data + packet->l3_offset;
	const struct ip_addr *source = NULL;
	unsigned bits = 0;

	// All checks before the first write: a refused packet is quoted as it came.
	// RFC 1812 section 5.3.4: what came as a link-layer broadcast must not be forwarded, or every balancer on
	// the link would send a copy.
	if (packet->data[0] & 1)
		return DROP_link_broadcast;
	if (inner_ttl(l3, shape.inner) < 2)
		return DROP_ttl_expired;
	if (packet->l3_length + overhead > job->port->mtu)
		return DROP_too_big;
	if (!has_headroom(packet, overhead, job->port, shape))
		return DROP_no_headroom;
	if (is_tunnel) {
		source = outer_source(job, shape.outer, &bits);
		if (source == NULL)
			return DROP_no_source_address;
	}
	decrement_ttl(l3, shape.inner);
	cut_padding(packet);
	if (is_tunnel)
		write_tunnel(packet, job, source, bits, shape);
	else if (shape.tagged)
		relink(packet, l3, job->port);
	return DROP_COUNT;
}

// One byte for a shape: cheap to compute and to compare.
static inline unsigned shape_code(struct shape shape)
{
	return shape.tunnel << 5 | (unsigned)(shape.outer == ADDR_V6) << 2 |
		(unsigned)(shape.inner == ADDR_V6) << 1 | (unsigned)shape.tagged;
}

static __attribute__((noinline)) unsigned encap_any(
	struct packet *packet, const struct encap_job *job, struct shape shape)
{
	return encap_packet(packet, job, shape);
}

static inline unsigned encap_one(struct packet *packet, const struct encap_job *job)
{
	const struct shape ipip4 = {SNAPSHOT_TUNNEL_IPIP, ADDR_V4, ADDR_V4, false};
	const struct shape ipip46 = {SNAPSHOT_TUNNEL_IPIP, ADDR_V4, ADDR_V6, false};
	const struct shape ipip6 = {SNAPSHOT_TUNNEL_IPIP, ADDR_V6, ADDR_V6, false};
	const struct shape gue4 = {SNAPSHOT_TUNNEL_GUE, ADDR_V4, ADDR_V4, false};
	struct shape shape = {job->service->tunnel, job->destination->family, packet->family,
		is_tagged(packet, job->port)};
	unsigned code = shape_code(shape);

	if (code == shape_code(ipip4))
		return encap_packet(packet, job, ipip4);
	if (code == shape_code(ipip46))
		return encap_packet(packet, job, ipip46);
	if (code == shape_code(ipip6))
		return encap_packet(packet, job, ipip6);
	if (code == shape_code(gue4))
		return encap_packet(packet, job, gue4);
	return encap_any(packet, job, shape);
}

void encap_burst(struct packet *packets, const struct encap_job *jobs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (packets[i].verdict != PACKET_PENDING)
			continue;
		unsigned reason = encap_one(&packets[i], &jobs[i]);

		if (reason != DROP_COUNT) {
			packets[i].verdict = PACKET_DROP;
			packets[i].reason = (uint8_t)reason;
		}
	}
}
