// SPDX-License-Identifier: Apache-2.0
// Ids: who has which, who gets the next, and how long a freed one rests. Part of the document (document.h).
#pragma once

#include "control/daemon/document.h"

// A freed id rests until no flow-table entry can name it: the longest idle time there is, and a margin for the clock
// and for a dataplane that was behind.
#define IDS_QUARANTINE_S (CONFIG_IDLE_MAX_S + 600u)

// Sorts the ids of a document that was read, and reports doubles and ids beyond their kind's limit.
void ids_check(struct document *document, struct config_report *report);
