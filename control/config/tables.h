// SPDX-License-Identifier: Apache-2.0
// The descriptor tables of both files, and rows that other documents build on.
#pragma once

#include "control/config/schema.h"

extern const struct schema_map config_pools_table;
extern const struct schema_map config_node_table;
extern const struct schema_map config_pool_table;
extern const struct schema_map config_ring_table;
extern const struct schema_map config_backend_table;
extern const struct schema_map config_service_table;

extern const struct schema_choice config_protocols[];
extern const struct schema_choice config_ring_versions[];
extern const struct schema_choice config_backend_states[];
extern const struct schema_choice config_affinities[];
extern const struct schema_choice config_tunnels[];
