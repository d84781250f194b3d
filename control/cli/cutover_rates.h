// SPDX-License-Identifier: Apache-2.0
// What flows do, from answers of cutover.show one after the other.
#pragma once

#include <jansson.h>

// Adds to each row of "datacenters_now":
//   "rates"   a second, over the time between its newest statements and those before: "seconds", and for "old" and "new"
//             "flows", "packets", "drops"
//   "ratios"  since the watch began or the share changed: "flows", "new_share", "old_aborts_ratio", "new_aborts_ratio",
//             "shadow_flows", "shadow_different_share"; without flows only their number
// null while there is nothing to compare: at first, when a node came, went or restarted, when nodes are silent.
// memory: an object, empty at first, that is handed from call to call.
void cutover_rates_add(json_t *memory, json_t *cutover);
