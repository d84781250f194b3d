// SPDX-License-Identifier: Apache-2.0
// Any bytes as node.yaml: what is refused says why.
#include "control/config/reader.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_node *node = NULL;
	struct config_report report;
	int rc;

	config_report_init(&report, "fuzz", (const char *)data, size);
	rc = config_node_read(&report, &node);
	if (rc == -EINVAL && report.error_count == 0)
		abort();
	config_report_free(&report);
	config_node_free(node);
	return 0;
}
