// SPDX-License-Identifier: Apache-2.0
// Any bytes as a snapshot image: refused with a sentence, or every lookup in it stays inside.
#include "common/selection.h"
#include "common/snapshot.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct snapshot *snapshot)
{
	struct selection selection;

	for (uint32_t i = 0; i < snapshot->service_count; i++) {
		if (!(snapshot->services[i].flags & SNAPSHOT_USED))
			continue;
		for (uint32_t hash = 0; hash < 64; hash++) {
			selection_pick(
				snapshot, &snapshot->services[i], hash * 0x04104104u, &selection);
			if (selection.backend != SELECTION_NO_BACKEND &&
				selection.backend >= snapshot->backend_count)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct snapshot snapshot;
	struct snapshot_error error = {.text = ""};
	struct snapshot_header *header;
	uint8_t *image;
	int result;

	image = aligned_alloc(SNAPSHOT_ALIGN, (size / SNAPSHOT_ALIGN + 1) * SNAPSHOT_ALIGN);
	if (image == NULL)
		return 0;
	// The input ends where the allocation ends only when it is a whole number of lines; images are.
	memcpy(image, data, size);
	if (size >= sizeof(*header) && data[size - 1] == 0) {
		// The engine cannot guess a checksum: give it one, so that what lies behind is reached.
		header = (struct snapshot_header *)image;
		header->bytes = size;
		header->checksum = snapshot_checksum(image, size);
	}
	result = snapshot_open(image, size, &snapshot, &error);
	if (result == 0)
		use(&snapshot);
	else if (error.text[0] == '\0')
		abort();
	free(image);
	return 0;
}
