// SPDX-License-Identifier: Apache-2.0
// What must hold for every packet that parse_burst() returned, whatever its bytes were.
#pragma once

#include "dataplane/packet/packet.h"

// Checks offsets against bytes, flags against each other, and the key's padding.
// Returns NULL when all is well, else the rule that is broken.
const char *packet_broken_rule(const struct packet *packet);
