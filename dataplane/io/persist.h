// SPDX-License-Identifier: Apache-2.0
// What a restarted dataplane comes back with: the snapshot that was in use, and its gates as they stood.
#pragma once

#include "dataplane/io/dataplane.h"

#define PERSIST_SNAPSHOT_NAME "snapshot.img"
#define PERSIST_GATES_NAME    "gates.img"

// Writes the image and the gates in use to the run directory. Returns 0 or -errno; then the old files are as they were.
int persist_snapshot(const struct dataplane *dataplane);
int persist_gates(const struct dataplane *dataplane);

// Publishes what was written last, before the first packet. A file that is bad is logged and left alone: the dataplane
// then waits for ringwayd. Gates of another generation are ignored, the snapshot's own stand.
void persist_load(struct dataplane *dataplane);
