// SPDX-License-Identifier: Apache-2.0
// A cutover's specification as JSON, which is also what an operator's cutover.yaml becomes (docs/cutover.md).
//
// Scalars may be strings or numbers, since a YAML reader that types nothing hands on strings: "10%", "22m", "0.95".
#pragma once

#include "control/cutover/spec.h"

#include <jansson.h>

// Reads a specification: defaults first, then what the object says; unknown keys are faults. Datacenters that stages
// name are listed in the order in which they come; for "all" the caller adds those that it knows
// (cutover_datacenter_add()) and then checks (cutover_spec_check()).
// max: room at ret_errors. Returns the number of faults, up to max; on 0 *ret holds the specification.
size_t cutover_spec_read(const json_t *object, struct cutover_spec *ret,
	struct cutover_spec_error *ret_errors, size_t max);

// Writes a specification so that cutover_spec_read() makes the same of it.
// Returns a new reference, or NULL when memory is short.
json_t *cutover_spec_write(const struct cutover_spec *spec);

// Reads bytes that stand as hexadecimal digits, exactly so many. text: NULL is none.
// Returns false when they are not; *ret is then untouched.
bool cutover_hex_parse(const char *text, uint8_t *ret, size_t bytes);

// Reads a time: "500ms", "20s", "22m", "24h", "1d"; a plain number is seconds. At most 10 years.
// Returns 0 or -EINVAL; *ret_ms is then untouched.
int cutover_time_parse(const char *text, uint64_t *ret_ms);

// Writes a time in its largest whole unit: "22m".
#define CUTOVER_TIME_TEXT_BYTES 24u
void cutover_time_format(uint64_t ms, char ret[static CUTOVER_TIME_TEXT_BYTES]);
