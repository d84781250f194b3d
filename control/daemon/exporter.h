// SPDX-License-Identifier: Apache-2.0
// Everything that a scrape of ringwayd shows: the node's configuration, rings and cutovers beside the dataplane's
// counters. Within METRICS_SERIES_MAX series whatever the number of backends: per-backend series only with
// ?scope=backend, and groups that do not fit (very many pools or rings) only with their scope.
#pragma once

#include "control/daemon/verbs.h"

struct exporter;

// verbs: must outlive the exporter. Returns NULL without memory.
struct exporter *exporter_create(struct verbs *verbs);
void exporter_destroy(struct exporter *exporter);

// Renders a scrape; a metrics_render (control/metrics/http.h) with an exporter as context.
// scope: NULL, "pool", "ring", "service", "backend" or "all"; anything else is as NULL.
char *exporter_render(void *exporter, const char *scope, size_t *ret_length);
