// SPDX-License-Identifier: Apache-2.0
// The watch of the etcd backend: a thread that holds a stream open and turns whatever comes into a readable
// descriptor. A hint, nothing more: what changed is read by the store's ordinary calls.
#pragma once

#include "control/config/config.h"

struct etcd_watch;

// Starts watching below root ("/ringway/"): names of documents, and all keys but those that begin with "status/".
// The stream is opened again, at another member and with jitter, whenever it breaks or its member has lost the leader.
// Each time that it stands again is a hint, since changes may have been missed.
// wait: for at most 2 s, until the first stream stands; what changed before is then not hinted.
// config: must outlive the watch.
// Returns 0 or -errno.
int etcd_watch_start(
	const struct config_store *config, const char *root, bool wait, struct etcd_watch **ret);

// Ends the thread; waits for at most a second. NULL is allowed.
void etcd_watch_stop(struct etcd_watch *watch);

// The descriptor that polls readable, and taking what made it so.
int etcd_watch_descriptor(const struct etcd_watch *watch);
bool etcd_watch_take(struct etcd_watch *watch);
