// SPDX-License-Identifier: Apache-2.0
// The hit ratio of the caches behind a pool, as a Prometheus has it: measured once, when a plan is made.
#pragma once

#include "control/fleet/http.h"

#define HIT_RATIO_ERROR_BYTES (HTTP_ERROR_BYTES + 64)

struct hit_ratio {
	double value;                      // 0 up to, not including, 1
	double age_s;                      // of the sample; 0 for what the query computes at once
	char error[HIT_RATIO_ERROR_BYTES]; // why there is none
};

// Asks url (base of a Prometheus) for the one value of a query, and how old it is: an instant query takes samples of up to
// 5 minutes ago without a word.
// Returns 0; -ERANGE when the value is no hit ratio; else as http_query(), with ret->error set.
// Blocks for at most HTTP_TIMEOUT_MS.
int hit_ratio_measure(const char *url, const char *query, struct hit_ratio *ret);
