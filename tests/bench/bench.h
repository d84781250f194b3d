// SPDX-License-Identifier: Apache-2.0
// The stop watch of benchmarks: CPU time of the calling thread, so that being descheduled on a shared machine costs
// nothing but a colder cache; the best of several rounds is what is told.
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
