// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/established.h"

void established_add(struct established *established, const struct established_node *node)
{
	established->live_new += node->live_new;
	established->sampled += node->shadow_same + node->shadow_different;
	established->different += node->shadow_different;
	established->node_count++;
}

json_t *established_write(const struct established *established)
{
	double ratio = established->sampled == 0
		? 0
		: (double)established->different / (double)established->sampled;
	json_t *moving = json_null(), *differ = json_null();

	if (established->sampled != 0) {
		moving = json_integer((json_int_t)((double)established->live_new * ratio + 0.5));
		differ = json_real(ratio);
	}
	return json_pack("{s:I, s:o, s:o, s:I, s:i, s:i}", "live_new",
		(json_int_t)established->live_new, "moving", moving, "differ_ratio", differ,
		"sampled", (json_int_t)established->sampled, "nodes", (int)established->node_count,
		"nodes_silent", (int)established->silent_count);
}
