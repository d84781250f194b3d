// SPDX-License-Identifier: Apache-2.0
// A flow as an operator writes it: tcp 198.51.100.7:40000 203.0.113.10:443, or [2001:db8::7]:40000.
#pragma once

#include "common/flow.h"

// Reads "address:port"; an IPv6 address stands in brackets. Returns 0 or -EINVAL.
int flow_text_endpoint(const char *text, struct ip_addr *ret_address, uint16_t *ret_port);

// Longest "[address]:port" with its NUL.
#define FLOW_TEXT_ENDPOINT_BYTES (ADDR_TEXT_BYTES + 8)

// Writes an endpoint of a flow key; without a port (0) too.
void flow_text_format(const uint8_t *address, uint8_t family, uint16_t port_be,
	char ret[static FLOW_TEXT_ENDPOINT_BYTES]);

// Makes the flow key of protocol ("tcp" or "udp"), source and destination.
// Returns 0, or -EINVAL with a sentence in ret_error.
int flow_text_parse(const char *protocol, const char *source, const char *destination,
	struct flow_key *ret, char ret_error[static 256]);
