// SPDX-License-Identifier: Apache-2.0
// A flow as an operator writes it: tcp 198.51.100.7:40000 203.0.113.10:443, or [2001:db8::7]:40000.
#pragma once

#include "common/flow.h"

// Reads "address:port"; an IPv6 address stands in brackets. Returns 0 or -EINVAL.
int flow_text_endpoint(const char *text, struct ip_addr *ret_address, uint16_t *ret_port);

// Makes the flow key of protocol ("tcp" or "udp"), source and destination.
// Returns 0, or -EINVAL with a sentence in ret_error.
int flow_text_parse(const char *protocol, const char *source, const char *destination,
	struct flow_key *ret, char ret_error[static 256]);
