// SPDX-License-Identifier: Apache-2.0
#include "control/cutover/threshold.h"

#include "common/gate.h"

#include <stddef.h>

static uint32_t decide(const struct threshold_inputs *inputs, enum threshold_cause *ret_cause)
{
	if (inputs->kill_switch) {
		*ret_cause = THRESHOLD_KILL_SWITCH;
		return 0;
	}
	if (inputs->has_override) {
		*ret_cause = THRESHOLD_OVERRIDE;
		return inputs->override_share;
	}
	if (!inputs->admitted) {
		*ret_cause = THRESHOLD_NOT_ADMITTED;
		return 0;
	}
	*ret_cause = inputs->cap < inputs->share ? THRESHOLD_CAP : THRESHOLD_STAGE;
	return inputs->cap < inputs->share ? inputs->cap : inputs->share;
}

uint32_t threshold_share(const struct threshold_inputs *inputs, enum threshold_cause *ret_cause)
{
	enum threshold_cause cause;
	uint32_t share = decide(inputs, &cause);

	if (ret_cause != NULL)
		*ret_cause = cause;
	return share < GATE_SHARE_ALL ? share : GATE_SHARE_ALL;
}

const char *threshold_cause_text(enum threshold_cause cause)
{
	static const char *const texts[] = {
		[THRESHOLD_KILL_SWITCH] = "kill switch of the node",
		[THRESHOLD_OVERRIDE] = "override of the datacenter",
		[THRESHOLD_NOT_ADMITTED] = "datacenter does not take part yet",
		[THRESHOLD_STAGE] = "share of the stage",
		[THRESHOLD_CAP] = "cap of the datacenter",
	};

	return texts[cause];
}
