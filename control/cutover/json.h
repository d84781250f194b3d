// SPDX-License-Identifier: Apache-2.0
// A cutover as the JSON document that stands in the store and that `ringway cutover show --json` prints.
#pragma once

#include "control/cutover/machine.h"

#include <jansson.h>

#define CUTOVER_SCHEMA_VERSION 1

// Writes a cutover so that cutover_read() makes the same of it. Shares are millionths, times milliseconds since 1970.
// Returns a new reference, or NULL when memory is short.
json_t *cutover_write(const struct cutover *cutover);

// Reads a document that may come from anywhere: every name, number and position is checked.
// Returns 0; -ENOTSUP when its schema is newer; -EINVAL with a sentence in ret_error (CUTOVER_REASON_BYTES). *ret is
// undefined on failure.
int cutover_read(const json_t *object, struct cutover *ret, char *ret_error);
