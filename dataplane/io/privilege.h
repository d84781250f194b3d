// SPDX-License-Identifier: Apache-2.0
// Giving up what only start-up needed.
#pragma once

#include "dataplane/io/options.h"

#define PRIVILEGE_ERROR_BYTES 192u

// Drops the calling thread's capabilities, save those that closing the ports will need.
// Threads have capabilities of their own, so each worker calls it for itself. closes_ports: true for main.
// Returns 0 or -errno.
int privilege_drop_capabilities(const struct options *options, bool closes_ports);

// For the whole process, once everything is open: takes on options->user if one is named, forbids new privileges, and
// leaves the system calls that the rest of its life needs. Others fail with EPERM from now on.
// Returns 0 or -errno with *ret_error.
int privilege_drop(const struct options *options, char ret_error[static PRIVILEGE_ERROR_BYTES]);
