// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a process.
#pragma once

#include <stdint.h>

// Resident bytes of a process, huge pages not counted; 0 when it is gone.
// Context: any; reads one line of /proc.
uint64_t process_resident_bytes(uint64_t pid);
