// SPDX-License-Identifier: Apache-2.0
#include "control/ring/seed.h"

#include <string.h>
#include <strings.h>

static uint32_t seed_address(
	const struct chain_tables *tables, const struct ring_spec_member *member)
{
	char host[ADDR_TEXT_BYTES], port[8];
	size_t length = addr_format(&member->address, host);
	uint32_t state = chain_seed(tables, UINT32_MAX, host, length + 1);

	if (member->port == 0)
		return state;
	length = 0;
	for (unsigned left = member->port; left > 0; left /= 10)
		port[sizeof(port) - ++length] = (char)('0' + left % 10);
	return chain_seed(tables, state, port + sizeof(port) - length, length);
}

// The length of the host part: nginx cuts at the last colon when only digits follow it.
static size_t nginx_host_length(const char *text, size_t length)
{
	for (size_t i = length; i > 0; i--) {
		char c = text[i - 1];

		if (c == ':')
			return i - 1;
		if (c < '0' || c > '9')
			return length;
	}
	return length;
}

static uint32_t seed_nginx(const struct chain_tables *tables, const char *text)
{
	static const char unix_prefix[] = "unix:";
	size_t length = strlen(text), host = length;

	if (strncasecmp(text, unix_prefix, sizeof(unix_prefix) - 1) == 0) {
		text += sizeof(unix_prefix) - 1;
		length -= sizeof(unix_prefix) - 1;
		host = length;
	} else {
		host = nginx_host_length(text, length);
	}
	uint32_t state = chain_seed(tables, UINT32_MAX, text, host);

	state = chain_seed(tables, state, "", 1);
	return host < length ? chain_seed(tables, state, text + host + 1, length - host - 1)
			     : state;
}

uint32_t seed_state(const struct chain_tables *tables, enum ring_seed seed,
	const struct ring_spec_member *member)
{
	return seed == RING_SEED_NGINX ? seed_nginx(tables, member->text)
				       : seed_address(tables, member);
}
