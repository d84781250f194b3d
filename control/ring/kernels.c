// SPDX-License-Identifier: Apache-2.0
#include "control/ring/kernels.h"

#include <stddef.h>

#define KERNELS ring_kernels_plain
#include "control/ring/kernels.inc.c"

#if defined(__x86_64__)
extern const struct ring_kernels ring_kernels_x86;
#endif

const struct ring_kernels *ring_kernels_wide(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return &ring_kernels_x86;
#endif
	return NULL;
}

const struct ring_kernels *ring_kernels(void)
{
	const struct ring_kernels *wide = ring_kernels_wide();

	return wide != NULL ? wide : &ring_kernels_plain;
}
