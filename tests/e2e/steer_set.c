// SPDX-License-Identifier: Apache-2.0
// Tells the steering program on an interface which addresses are the dataplane's, with the project's own loader, and
// prints its counters.
//
//	steer_set INTERFACE [vip=ADDRESS | port=ADDRESS]...
#include "bpf/steer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define ADDRESSES_MAX 64

static int parse(const char *text, struct steer_address *ret)
{
	const char *address = strchr(text, '=');
	struct decap_prefix *prefix = &ret->prefix;

	if (address == NULL)
		return -EINVAL;
	address++;
	ret->kind = strncmp(text, "vip=", 4) == 0 ? STEER_VIP : STEER_PORT;
	if (inet_pton(AF_INET, address, prefix->bytes) == 1) {
		prefix->family = DECAP_V4;
		prefix->bits = DECAP_PREFIX_BASE_BITS + 32;
		return 0;
	}
	prefix->family = DECAP_V6;
	prefix->bits = DECAP_PREFIX_BASE_BITS + 128;
	return inet_pton(AF_INET6, address, prefix->bytes) == 1 ? 0 : -EINVAL;
}

static int print_counters(int ifindex)
{
	static const char *const names[] = {
#define COUNTER(name, text) #name,
		STEER_COUNTERS(COUNTER)
#undef COUNTER
	};
	__u64 counts[STEER_COUNTER_COUNT];
	int error = steer_read_counters(ifindex, counts);

	for (int i = 0; i < STEER_COUNTER_COUNT && error == 0; i++)
		printf("%s %llu\n", names[i], counts[i]);
	return error;
}

int main(int argc, char **argv)
{
	static struct steer_address addresses[ADDRESSES_MAX];
	int error = 0, ifindex;

	if (argc < 2 || argc - 2 > ADDRESSES_MAX) {
		fprintf(stderr, "usage: steer_set INTERFACE [vip=ADDRESS | port=ADDRESS]...\n");
		return 2;
	}
	ifindex = (int)if_nametoindex(argv[1]);
	for (int i = 2; i < argc && error == 0; i++)
		error = parse(argv[i], &addresses[i - 2]);
	if (error == 0 && argc > 2)
		error = steer_set_addresses(ifindex, addresses, (size_t)argc - 2);
	if (error == 0)
		error = print_counters(ifindex);
	if (error != 0)
		fprintf(stderr, "steer_set: %s: %s\n", argv[1], strerror(-error));
	return error != 0;
}
