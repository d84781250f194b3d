// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse.h"
#include "dataplane/packet/step.h"
#include "dataplane/packet/wire.h"

static bool is_extension(unsigned next_header)
{
	return next_header == WIRE_PROTO_HOP_BY_HOP || next_header == WIRE_PROTO_ROUTING ||
		next_header == WIRE_PROTO_FRAGMENT || next_header == WIRE_PROTO_AUTHENTICATION ||
		next_header == WIRE_PROTO_DESTINATION;
}

// Bytes of one extension header, or 0 when it may not stand where it stands. first: right behind the IPv6 header.
static unsigned extension_bytes(
	unsigned kind, const struct wire_ip6_extension *extension, bool first)
{
	switch (kind) {
	case WIRE_PROTO_HOP_BY_HOP: // RFC 8200 section 4.3
		return first ? (extension->length + 1u) * 8 : 0;
	case WIRE_PROTO_ROUTING: // RFC 8200 section 4.4: with segments left it is not for this destination
		return extension->segments_left == 0 ? (extension->length + 1u) * 8 : 0;
	case WIRE_PROTO_AUTHENTICATION: { // RFC 4302 section 2.2: a multiple of 8 bytes in IPv6
		unsigned bytes = (extension->length + 2u) * 4;

		return bytes % 8 == 0 ? bytes : 0;
	}
	case WIRE_PROTO_FRAGMENT:
		return (unsigned)sizeof(struct wire_ip6_fragment);
	default:
		return (extension->length + 1u) * 8;
	}
}

static void read_fragment(const uint8_t *bytes, unsigned offset, struct ip6_chain *chain)
{
	const struct wire_ip6_fragment *fragment =
		(const struct wire_ip6_fragment *)(bytes + offset);

	chain->has_fragment = true;
	chain->fragment_offset_be = fragment->offset_be;
	chain->fragment_data = (uint16_t)(offset + sizeof(*fragment));
	chain->fragment_id = be32toh(fragment->id_be);
}

unsigned ip6_chain_walk(const uint8_t *bytes, unsigned length, struct ip6_chain *ret)
{
	struct ip6_chain chain = {.protocol = ((const struct wire_ip6 *)bytes)->next_header};
	unsigned start = sizeof(struct wire_ip6);
	unsigned offset = start;
	bool later = false;

	for (unsigned n = 0; is_extension(chain.protocol) && !later; n++) {
		const struct wire_ip6_extension *extension =
			(const struct wire_ip6_extension *)(bytes + offset);

		// Every extension header has at least eight bytes.
		if (n == PARSE_IP6_EXTENSIONS_MAX || length - offset < 8)
			return DROP_ip6_extension_chain;
		unsigned size = extension_bytes(chain.protocol, extension, n == 0);

		if (size == 0 || size > length - offset ||
			offset + size - start > PARSE_IP6_EXTENSION_BYTES_MAX)
			return DROP_ip6_extension_chain;
		if (chain.protocol == WIRE_PROTO_FRAGMENT) {
			if (chain.has_fragment)
				return DROP_ip6_extension_chain;
			read_fragment(bytes, offset, &chain);
			later = be16toh(chain.fragment_offset_be) & WIRE_IP6_OFFSET_MASK;
		}
		chain.protocol = extension->next_header;
		offset += size;
	}
	chain.offset = (uint16_t)offset;
	*ret = chain;
	return PARSE_FINE;
}
