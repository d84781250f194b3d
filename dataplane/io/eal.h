// SPDX-License-Identifier: Apache-2.0
// DPDK's environment: what it is started with, and whether it can be.
#pragma once

#include "dataplane/io/options.h"

#define EAL_ERROR_BYTES 256u

// lcore 0 is main; worker w runs on lcore w + 1, whatever CPUs they are on.
#define EAL_LCORE(worker) ((worker) + 1u)

// Tells whether EAL gets an argument from the operator: "--no-huge", "-m", ...
bool eal_has(const struct options *options, const char *argument);

// Checks that the memory is there, and starts EAL with lcores, devices and the operator's own arguments.
// Returns 0 or -errno with *ret_error: what is missing, how much, and the way out. Once in a process.
int eal_start(const struct options *options, char ret_error[static EAL_ERROR_BYTES]);

void eal_stop(void);
