// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/discovery.h"

#include "dataplane/packet/header.h"

// RFC 2464 section 7: 33:33 and the last four bytes of the group.
static void group_mac(uint8_t mac[WIRE_MAC_BYTES], const uint8_t group[16])
{
	mac[0] = 0x33;
	mac[1] = 0x33;
	memcpy(mac + 2, group + 12, 4);
}

// RFC 4291 section 2.7.1: ff02::1:ff and the last three bytes of the address.
static void solicited_node(uint8_t group[16], const uint8_t address[16])
{
	static const uint8_t prefix[13] = {0xff, 0x02, [11] = 0x01, [12] = 0xff};

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + 13, address + 13, 3);
}

// Writes both addresses, the tag and the type. Returns where the next header goes.
static uint8_t *write_link(uint8_t *frame, const struct discovery_message *message,
	const uint8_t *destination, unsigned type)
{
	uint8_t *at = frame + offsetof(struct wire_ethernet, type_be);
	uint16_t type_be = htobe16((uint16_t)type);

	memcpy(frame, destination, WIRE_MAC_BYTES);
	memcpy(frame + WIRE_MAC_BYTES, message->mac, WIRE_MAC_BYTES);
	if (message->vlan != 0) {
		header_store(at, htobe32(WIRE_ETHERTYPE_VLAN << 16 | message->vlan));
		at += sizeof(struct wire_vlan);
	}
	memcpy(at, &type_be, sizeof(type_be));
	return at + sizeof(type_be);
}

// target: 4 bytes.
static void write_arp(uint8_t *frame, const struct discovery_message *message,
	const uint8_t *target, const uint8_t *destination)
{
	struct wire_arp arp = {
		.hardware_be = htobe16(1),
		.protocol_be = htobe16(WIRE_ETHERTYPE_IP4),
		.hardware_bytes = WIRE_MAC_BYTES,
		.protocol_bytes = sizeof(arp.sender),
		.operation_be = htobe16(WIRE_ARP_REQUEST),
	};

	memcpy(arp.sender_mac, message->mac, sizeof(arp.sender_mac));
	memcpy(arp.sender, message->sender.bytes, sizeof(arp.sender));
	memcpy(arp.target, target, sizeof(arp.target));
	memcpy(write_link(frame, message, destination, WIRE_ETHERTYPE_ARP), &arp, sizeof(arp));
}

// A neighbour message with one option: our MAC address. nd: all but the checksum.
struct nd_message {
	struct wire_nd nd;
	struct wire_nd_option option;
} WIRE_PACKED;

static void write_nd(uint8_t *l3, const struct discovery_message *message, struct nd_message *body,
	const uint8_t destination[16])
{
	struct header header = {
		.source = message->sender.bytes,
		.destination = destination,
		.payload = sizeof(*body),
		.ttl = WIRE_ND_HOP_LIMIT,
		.protocol = WIRE_PROTO_ICMP6,
	};

	body->option.length = 1;
	memcpy(body->option.mac, message->mac, sizeof(body->option.mac));
	header_write6(l3, &header);
	body->nd.checksum_be = header_icmp6_checksum((struct wire_ip6 *)l3, body, sizeof(*body));
	memcpy(l3 + sizeof(struct wire_ip6), body, sizeof(*body));
}

static void write_solicitation(uint8_t *frame, const struct discovery_message *message)
{
	struct nd_message body = {
		.nd.type = WIRE_ICMP6_SOLICITATION,
		.option.type = WIRE_ND_OPTION_SOURCE,
	};
	uint8_t group[16];
	uint8_t mac[WIRE_MAC_BYTES];
	bool is_probe = message->neighbour_mac != NULL;

	solicited_node(group, message->target.bytes);
	group_mac(mac, group);
	memcpy(body.nd.target, message->target.bytes, sizeof(body.nd.target));
	write_nd(write_link(frame, message, is_probe ? message->neighbour_mac : mac,
			 WIRE_ETHERTYPE_IP6),
		message, &body, is_probe ? message->target.bytes : group);
}

static void write_unsolicited(uint8_t *frame, const struct discovery_message *message)
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	struct nd_message body = {
		.nd.type = WIRE_ICMP6_ADVERTISEMENT,
		.nd.flags_be = htobe32(WIRE_ND_OVERRIDE),
		.option.type = WIRE_ND_OPTION_TARGET,
	};
	uint8_t mac[WIRE_MAC_BYTES];

	group_mac(mac, all_nodes);
	memcpy(body.nd.target, message->sender.bytes, sizeof(body.nd.target));
	write_nd(write_link(frame, message, mac, WIRE_ETHERTYPE_IP6), message, &body, all_nodes);
}

// Bytes of the frame that a message becomes, or 0 when it cannot be written.
static unsigned frame_bytes(const struct discovery_message *message, unsigned capacity)
{
	unsigned bytes = (unsigned)sizeof(struct wire_ethernet) +
		(message->vlan != 0 ? (unsigned)sizeof(struct wire_vlan) : 0);

	if (message->sender.family == ADDR_V4)
		bytes += (unsigned)sizeof(struct wire_arp);
	else if (message->sender.family == ADDR_V6)
		bytes += (unsigned)(sizeof(struct wire_ip6) + sizeof(struct nd_message));
	else
		return 0;
	bytes = bytes < WIRE_ETHERNET_MIN ? WIRE_ETHERNET_MIN : bytes;
	return bytes <= capacity ? bytes : 0;
}

static const uint8_t broadcast_mac[WIRE_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

unsigned discovery_write_question(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message)
{
	unsigned bytes = frame_bytes(message, capacity);

	if (bytes == 0 || message->target.family != message->sender.family)
		return 0;
	memset(frame, 0, bytes);
	if (message->sender.family == ADDR_V4)
		write_arp(frame, message, message->target.bytes,
			message->neighbour_mac ? message->neighbour_mac : broadcast_mac);
	else
		write_solicitation(frame, message);
	return bytes;
}

unsigned discovery_write_announcement(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message)
{
	unsigned bytes = frame_bytes(message, capacity);

	if (bytes == 0)
		return 0;
	memset(frame, 0, bytes);
	if (message->sender.family == ADDR_V4)
		write_arp(frame, message, message->sender.bytes, broadcast_mac);
	else
		write_unsolicited(frame, message);
	return bytes;
}

// The report of a group, but for its checksum, which starts behind the options.
static void write_report(uint8_t *l3, const uint8_t group[16])
{
	static const uint8_t unspecified[16];
	static const uint8_t all_mld2_routers[16] = {0xff, 0x02, [15] = 0x16};
	struct wire_mld_report report = {
		.next_header = WIRE_PROTO_ICMP6,
		.alert = {5, 2, 0, 0}, // for MLD
		.padding = {1, 0},
		.type = WIRE_ICMP6_MLD2_REPORT,
		.record_count_be = htobe16(1),
		.record_type = WIRE_MLD2_TO_EXCLUDE,
	};
	struct header header = {
		.source = unspecified,
		.destination = all_mld2_routers,
		.payload = sizeof(report),
		.ttl = 1,
		.protocol = WIRE_PROTO_HOP_BY_HOP,
	};
	unsigned options = offsetof(struct wire_mld_report, type);

	memcpy(report.group, group, sizeof(report.group));
	header_write6(l3, &header);
	report.checksum_be = header_icmp6_checksum(
		(struct wire_ip6 *)l3, &report.type, (unsigned)sizeof(report) - options);
	memcpy(l3 + sizeof(struct wire_ip6), &report, sizeof(report));
}

unsigned discovery_write_membership(
	uint8_t *frame, unsigned capacity, const struct discovery_message *message)
{
	static const uint8_t destination[WIRE_MAC_BYTES] = {0x33, 0x33, 0, 0, 0, 0x16};
	unsigned bytes = (unsigned)(sizeof(struct wire_ethernet) + sizeof(struct wire_ip6) +
		sizeof(struct wire_mld_report) +
		(message->vlan != 0 ? sizeof(struct wire_vlan) : 0));
	uint8_t group[16];

	if (message->sender.family != ADDR_V6 || bytes > capacity)
		return 0;
	solicited_node(group, message->sender.bytes);
	write_report(write_link(frame, message, destination, WIRE_ETHERTYPE_IP6), group);
	return bytes;
}
