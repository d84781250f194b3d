// SPDX-License-Identifier: Apache-2.0
// Files to models: strict YAML (and so JSON), every scalar typed by the schema.
//
// Not taken: anchors, aliases, tags, merge keys, several documents, duplicate or unknown keys. Bounded: 32 MiB,
// depth 16, and the schema's own limit for every list. All errors of a file are reported at once.
#pragma once

#include "control/config/config.h"
#include "control/config/report.h"

// Read and check (check.h) the text that the report was initialised with.
// Return 0 (report may hold warnings), -EINVAL (report says why) or -ENOMEM; *ret is untouched on failure.
int config_pools_read(struct config_report *report, struct config_pools **ret);
int config_node_read(struct config_report *report, struct config_node **ret);

// Reads a whole file of at most CONFIG_BYTES_MAX. *ret_text is the caller's, to be freed.
// Returns 0, -EFBIG or another -errno.
int config_file_load(const char *path, char **ret_text, size_t *ret_length);
