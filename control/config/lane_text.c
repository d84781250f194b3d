// SPDX-License-Identifier: Apache-2.0
#include "control/config/lane_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void lane_text_format(const struct ring_lane *lane, char ret[static LANE_TEXT_BYTES])
{
	char address[ADDR_TEXT_BYTES];

	addr_format(&lane->address, address);
	snprintf(ret, LANE_TEXT_BYTES, "%s %u %u %u %" PRIx64, address, lane->port, lane->weight,
		lane->base, lane->mask);
}

int lane_text_parse(const char *text, struct ring_lane *ret)
{
	char address[ADDR_TEXT_BYTES];
	unsigned port, weight, base;
	uint64_t mask;
	int end = -1;

	if (sscanf(text, "%45s %5u %7u %7u %16" SCNx64 "%n", address, &port, &weight, &base, &mask,
		    &end) != 5 ||
		text[end] != '\0' || port > UINT16_MAX || addr_parse(address, &ret->address) < 0)
		return -EINVAL;
	ret->port = (uint16_t)port;
	ret->weight = weight;
	ret->base = base;
	ret->mask = mask;
	return 0;
}
