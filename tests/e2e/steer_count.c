// SPDX-License-Identifier: Apache-2.0
// Prints the counters of the steering program on an interface, "name count" a line.
//
//	steer_count INTERFACE
#include "bpf/steer.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const char *const names[] = {
#define COUNTER(name, text) #name,
		STEER_COUNTERS(COUNTER)
#undef COUNTER
	};
	__u64 counts[STEER_COUNTER_COUNT];
	int error;

	if (argc != 2) {
		fprintf(stderr, "usage: steer_count INTERFACE\n");
		return 2;
	}
	error = steer_read_counters((int)if_nametoindex(argv[1]), counts);
	if (error != 0) {
		fprintf(stderr, "steer_count: %s: %s\n", argv[1], strerror(-error));
		return 1;
	}
	for (int i = 0; i < STEER_COUNTER_COUNT; i++)
		printf("%s %llu\n", names[i], counts[i]);
	return 0;
}
