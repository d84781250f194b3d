// SPDX-License-Identifier: Apache-2.0
#include "control/cli/drops.h"

#include "common/stats.h"
#include "control/cli/request.h"

enum answer drops_list_run(struct cli *cli)
{
	json_t *rows = json_array(), *result;
	enum answer answer;

	for (int i = 0; i < DROP_COUNT; i++)
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s}", "name", stats_drop_name(i), "stage",
				stats_drop_stage(i), "text", stats_drop_text(i)));
	result = json_pack("{s:o}", "drops", rows);
	answer =
		result ? request_print(cli, result) : cli_fail(cli, ANSWER_FAILED, "out of memory");
	json_decref(result);
	return answer;
}
