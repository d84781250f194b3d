// SPDX-License-Identifier: Apache-2.0
// Any bytes as a document of the store: what is refused says why; what is taken can be built into a snapshot's parts
// and reads back as itself.
#include "control/daemon/lanes.h"
#include "control/daemon/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct document *document)
{
	struct document *again = NULL;
	struct config_report report;
	char *text, *text_again;
	size_t length, length_again;

	if (document_write(document, &text, &length) != 0)
		abort();
	config_report_init(&report, "again", text, length);
	if (document_read(&report, &again) != 0 ||
		document_write(again, &text_again, &length_again) != 0 ||
		strcmp(text, text_again) != 0)
		abort();
	config_report_free(&report);
	document_free(again);
	free(text);
	free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document *document = NULL;
	struct config_report report;
	char error[RINGS_ERROR_BYTES];
	struct rings *rings = NULL;
	int rc;

	config_report_init(&report, "fuzz", (const char *)data, size);
	rc = document_read(&report, &document);
	if (rc == -EINVAL && report.error_count == 0)
		abort();
	config_report_free(&report);
	if (rc != 0)
		return 0;
	round_trip(document);
	// Planned, not built: a weight of 65,535 is a valid wish for millions of points.
	if (rings_plan(document, &rings, error) == 0)
		rings_free(rings);
	document_free(document);
	return 0;
}
