// SPDX-License-Identifier: Apache-2.0
// The clsact qdisc, shared by everybody who puts programs on an interface.
#pragma once

#include <stdbool.h>

// Removes an interface's clsact qdisc unless a filter, ours or not, is still on it.
// Returns 0 (removed, or left because it is used), or -errno.
int tc_hook_remove_if_empty(int ifindex);
