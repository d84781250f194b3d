// SPDX-License-Identifier: Apache-2.0
// Models to text, canonical: one model has one text, and reading that text gives the model back.
#pragma once

#include "control/config/config.h"

#include <stdio.h>

enum config_format {
	CONFIG_YAML,
	CONFIG_JSON,
};

// Write a model without its secrets (hash_seed). full: also the keys that stand at their defaults.
// A text that is read back keeps the secrets that are in use.
// Return 0 or -EIO.
int config_pools_write(
	const struct config_pools *pools, enum config_format format, bool full, FILE *out);
int config_node_write(
	const struct config_node *node, enum config_format format, bool full, FILE *out);

// Prints the reference of all keys (type, unit, range, default, reload class, meaning) as Markdown tables.
void config_reference_write(FILE *out);
