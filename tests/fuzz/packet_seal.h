// SPDX-License-Identifier: Apache-2.0
// Makes the checksums of a frame right, so that a fuzzer's changes are not all stopped by the first of them.
#pragma once

#include "dataplane/packet/checksum.h"
#include "dataplane/packet/wire.h"

// Behind IPv4 or IPv6, without extension headers. bytes: the message. addresses: IPv6 only, for the pseudo-header.
static inline void packet_seal_icmp(uint8_t *bytes, size_t length, const uint8_t *addresses)
{
	struct wire_icmp *icmp = (struct wire_icmp *)bytes;
	uint64_t sum = 0;

	if (length < sizeof(*icmp) || length > UINT16_MAX)
		return;
	icmp->checksum_be = 0;
	if (addresses != NULL)
		sum = checksum_pseudo6(
			checksum_add(0, addresses, 32), (uint32_t)length, WIRE_PROTO_ICMP6);
	icmp->checksum_be = checksum_finish(checksum_add(sum, bytes, length));
}

static inline void packet_seal_ip4(uint8_t *bytes, size_t length)
{
	struct wire_ip4 *ip = (struct wire_ip4 *)bytes;
	size_t header = (ip->version_length & 0xfu) * 4u;
	size_t total = be16toh(ip->total_length_be);

	if (header < sizeof(*ip) || header > length || total > length || total < header)
		return;
	ip->checksum_be = 0;
	ip->checksum_be = checksum_finish(checksum_add(0, ip, header));
	if (ip->protocol == WIRE_PROTO_ICMP)
		packet_seal_icmp(bytes + header, total - header, NULL);
}

static inline void packet_seal_ip6(uint8_t *bytes, size_t length)
{
	struct wire_ip6 *ip = (struct wire_ip6 *)bytes;
	size_t payload = be16toh(ip->payload_length_be);

	if (payload <= length - sizeof(*ip) && ip->next_header == WIRE_PROTO_ICMP6)
		packet_seal_icmp(bytes + sizeof(*ip), payload, ip->source);
}

// Seals an untagged or tagged frame of IP; leaves everything else alone.
static inline void packet_seal(uint8_t *frame, size_t length)
{
	size_t offset = 14;
	unsigned type;

	if (length < offset)
		return;
	type = (unsigned)frame[12] << 8 | frame[13];
	while ((type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_S_VLAN) &&
		offset + 4 <= length) {
		offset += 4;
		type = (unsigned)frame[offset - 2] << 8 | frame[offset - 1];
	}
	if (type == WIRE_ETHERTYPE_IP4 && length - offset >= sizeof(struct wire_ip4))
		packet_seal_ip4(frame + offset, length - offset);
	else if (type == WIRE_ETHERTYPE_IP6 && length - offset >= sizeof(struct wire_ip6))
		packet_seal_ip6(frame + offset, length - offset);
}
