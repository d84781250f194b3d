// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mbmi2; nothing else may be in this file, since it would get them too.
#include "control/ring/kernels.h"

extern const struct ring_kernels ring_kernels_x86;

#define KERNELS ring_kernels_x86
#include "control/ring/kernels.inc.c"
