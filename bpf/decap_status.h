// SPDX-License-Identifier: Apache-2.0
// Shows what is attached, for people and for programs.
#pragma once

#include "bpf/decap.h"

#define DECAP_PREFIX_TEXT_BYTES 64

// Writes a prefix as text; without its length when it is one address. Returns ret.
const char *decap_format_prefix(
	const struct decap_prefix *prefix, char ret[DECAP_PREFIX_TEXT_BYTES]);

// Prints the programs of one interface, or of all when ifindex is 0.
// json: one object, {"schema_version":1,"interfaces":[...]}; fields are only ever added.
// Returns an exit code: DECAP_EXIT_NOT_FOUND when an interface was named and nothing of ours is on it.
int decap_status(int ifindex, bool json);
