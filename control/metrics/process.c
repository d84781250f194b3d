// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

uint64_t process_resident_bytes(uint64_t pid)
{
	unsigned long long size, resident = 0;
	char path[64];
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/statm", pid);
	in = fopen(path, "re");
	if (in == NULL)
		return 0;
	if (fscanf(in, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	fclose(in);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
