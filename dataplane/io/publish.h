// SPDX-License-Identifier: Apache-2.0
// Publishing: from an image that arrived to the pointer that workers follow, and the gates inside it.
#pragma once

#include "dataplane/io/dataplane.h"

// Takes an image into use: checks it whole, computes what all workers will need and that it is there, builds a block
// for each worker on its node, stores one pointer a worker, waits until no worker uses the old blocks, frees them.
// image: image_bytes of writable memory from mmap(); owned by the publication when this returns 0, else the caller's.
// Returns 0; -EINVAL for a bad image, -ESTALE for a generation that is not newer, -ENOSPC for ids or memory that do not
// fit, with *ret_error saying why in figures. A refused image changes nothing.
// Context: main. Waits for the workers, microseconds as a rule.
int publish_image(struct dataplane *dataplane, void *image, uint64_t image_bytes,
	struct snapshot_error *ret_error);

// Sets gates in every worker's copy and in main's own: one relaxed store each. All or nothing.
// Returns 0; -ENOENT when nothing is loaded, -ESTALE for another generation, -EINVAL for a bad pool, salt or threshold.
int publish_gates(struct dataplane *dataplane, const struct ipc_gates *gates,
	struct snapshot_error *ret_error);

// Frees all blocks. Context: main, when no worker runs.
void publish_close(struct dataplane *dataplane);
