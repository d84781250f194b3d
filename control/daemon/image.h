// SPDX-License-Identifier: Apache-2.0
// The snapshot writer: document and rings to one flat image (common/snapshot.h) in a memfd.
#pragma once

#include "common/snapshot.h"
#include "control/daemon/rings.h"

#define IMAGE_ERROR_BYTES 256u

struct image {
	int fd;         // memfd, sealed against write, grow and shrink
	uint64_t bytes; // of the image
	void *memory; // private, writable mapping: gates can be set in it without touching the memfd
	struct snapshot *snapshot; // view of memory
};

// Which share a gate begins with.
enum image_shares {
	IMAGE_SHARES_NOW, // that the document has: what to send
	IMAGE_SHARES_SENT, // that its snapshot was made with: what a dataplane that was not restarted has
};

// Writes the image of a document. rings: built, of this document.
// Owners of backends that are down or draining are resolved to the next usable backend along their ring.
// Returns 0; -ENOMEM or another -errno; -EINVAL when the image would not be accepted (a fault of this program).
// ret_error says why. The caller destroys *ret with image_destroy().
int image_write(const struct document *document, const struct rings *rings,
	enum image_shares shares, struct image *ret, char ret_error[static IMAGE_ERROR_BYTES]);

// The checksum that the image would have with other shares. Cost: one pass over the image.
uint64_t image_checksum(
	const struct image *image, const struct document *document, enum image_shares shares);

void image_destroy(struct image *image);
