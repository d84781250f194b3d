// SPDX-License-Identifier: Apache-2.0
// Any bytes as a snapshot image: refused with a sentence, or every lookup in it stays inside.
#include "common/selection.h"
#include "common/snapshot.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pick(const struct snapshot *snapshot, uint32_t service, struct selection_hash hash)
{
	struct selection selection;
	uint32_t on_old, on_new;

	selection_pick(snapshot, &snapshot->services[service], hash, &selection);
	selection_pick_both(snapshot, &snapshot->services[service], hash, &on_old, &on_new);
	if (selection.backend != (selection.uses_new ? on_new : on_old) ||
		(selection.backend != SELECTION_NO_BACKEND &&
			selection.backend >= snapshot->backend_count))
		abort();
}

static void use(const struct snapshot *snapshot)
{
	struct flow_key key = {.family = ADDR_V4, .source = {198, 51, 100, 7}};
	static const uint8_t connection_id[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	for (uint32_t i = 0; i < snapshot->service_count; i++) {
		if (!(snapshot->services[i].flags & SNAPSHOT_USED))
			continue;
		for (uint32_t hash = 0; hash < 64; hash++)
			pick(snapshot, i,
				(struct selection_hash){hash * 0x04104104u, ~hash * 0x04104104u});
		pick(snapshot, i,
			selection_ring_hash(snapshot, &snapshot->services[i], &key,
				flow_hash(&key, &snapshot->hash_seed), connection_id,
				sizeof(connection_id)));
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
