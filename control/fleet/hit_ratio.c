// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/hit_ratio.h"

#include "control/cutover/spec.h"
#include "control/fleet/inquiry.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static double wall_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int hit_ratio_measure(const char *url, const char *query, struct hit_ratio *ret)
{
	char when[CUTOVER_QUERY_BYTES + 16], error[HTTP_ERROR_BYTES];
	struct inquiry_answer answer = {.result = -ENOMEM};
	struct inquiry *inquiry;

	*ret = (struct hit_ratio){0};
	snprintf(when, sizeof(when), "timestamp(%s)", query);
	inquiry = inquiry_query(
		url, when); // beside the other: a server that hangs costs its time once
	int rc = http_query(url, query, &ret->value, error);

	if (inquiry != NULL)
		inquiry_wait(inquiry, &answer);
	if (rc < 0) {
		snprintf(ret->error, sizeof(ret->error), "%s", error);
		return rc;
	}
	if (!(ret->value >= 0 && ret->value < 1)) {
		snprintf(ret->error, sizeof(ret->error),
			"%g is no hit ratio: it must be from 0 up to, not including, 1",
			ret->value);
		return -ERANGE;
	}
	// A scalar has no timestamp: it is as old as the question.
	if (answer.result == 0 && answer.value < wall_s())
		ret->age_s = wall_s() - answer.value;
	return 0;
}
