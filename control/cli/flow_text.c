// SPDX-License-Identifier: Apache-2.0
#include "control/cli/flow_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static int port_of(const char *text, uint16_t *ret)
{
	uint32_t port = 0;

	if (*text == '\0' || strlen(text) > 5)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		port = port * 10 + (uint32_t)(*text - '0');
	}
	if (port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

int flow_text_endpoint(const char *text, struct ip_addr *ret_address, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	char host[ADDR_TEXT_BYTES + 2];
	struct ip_addr address;
	size_t length;
	uint16_t port;

	if (colon == NULL)
		return -EINVAL;
	length = (size_t)(colon - text);
	if (length >= sizeof(host) || port_of(colon + 1, &port) != 0)
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = '\0';
	if (host[0] == '[') {
		if (host[length - 1] != ']')
			return -EINVAL;
		host[length - 1] = '\0';
		if (addr_parse(host + 1, &address) != 0 || address.family != ADDR_V6)
			return -EINVAL;
	} else if (addr_parse(host, &address) != 0 || address.family != ADDR_V4) {
		// Without brackets the last group of an IPv6 address would pass for a port.
		return -EINVAL;
	}
	*ret_address = address;
	*ret_port = port;
	return 0;
}

void flow_text_format(const uint8_t *address, uint8_t family, uint16_t port_be,
	char ret[static FLOW_TEXT_ENDPOINT_BYTES])
{
	struct ip_addr parsed = {.family = family};
	char text[ADDR_TEXT_BYTES];

	memcpy(parsed.bytes, address, family == ADDR_V4 ? 4 : 16);
	addr_format(&parsed, text);
	snprintf(ret, FLOW_TEXT_ENDPOINT_BYTES, family == ADDR_V4 ? "%s:%u" : "[%s]:%u", text,
		ntohs(port_be));
}

int flow_text_parse(const char *protocol, const char *source, const char *destination,
	struct flow_key *ret, char ret_error[static 256])
{
	struct ip_addr from, to;
	uint16_t from_port, to_port;
	struct flow_key key = {0};

	if (strcmp(protocol, "tcp") == 0)
		key.protocol = IPPROTO_TCP;
	else if (strcmp(protocol, "udp") == 0)
		key.protocol = IPPROTO_UDP;
	const char *bad = flow_text_endpoint(source, &from, &from_port) ? source
		: flow_text_endpoint(destination, &to, &to_port)        ? destination
									: NULL;

	if (key.protocol == 0)
		snprintf(ret_error, 256, "\"%.64s\" is no protocol: tcp or udp", protocol);
	else if (bad != NULL)
		snprintf(ret_error, 256,
			"\"%.64s\" is no address and port: write 198.51.100.7:40000 or "
			"[2001:db8::7]:40000",
			bad);
	else if (from.family != to.family)
		snprintf(ret_error, 256, "source and destination are of two address families");
	else {
		memcpy(key.source, from.bytes, sizeof(key.source));
		memcpy(key.destination, to.bytes, sizeof(key.destination));
		key.source_port_be = htons(from_port);
		key.destination_port_be = htons(to_port);
		key.family = from.family;
		*ret = key;
		return 0;
	}
	return -EINVAL;
}
