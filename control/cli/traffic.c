// SPDX-License-Identifier: Apache-2.0
#include "control/cli/traffic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Returns false when the line is none: not a hash, not a weight, or something behind them.
static bool line_parse(const char *line, uint32_t *ret_hash, double *ret_weight)
{
	double weight = 1;
	int64_t hash;
	int used = 0;
	int read = sscanf(line, "%" SCNi64 "%n %lf%n", &hash, &used, &weight, &used);

	if (read < 1 || hash < 0 || hash > UINT32_MAX || !(weight >= 0 && weight < 1e18) ||
		line[used + (int)strspn(line + used, " \t\r\n")] != '\0')
		return false;
	*ret_hash = (uint32_t)hash;
	*ret_weight = weight;
	return true;
}

enum answer traffic_read(struct cli *cli, traffic_sink *sink, void *context)
{
	const char *path = cli->value[CLI_TRAFFIC];
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	enum answer answer = ANSWER_DONE;
	unsigned long number = 0;
	char line[128];

	if (in == NULL)
		return cli_fail(cli, answer_of_errno(errno), "%s: %s", path, strerror(errno));
	while (answer == ANSWER_DONE && fgets(line, sizeof(line), in) != NULL) {
		double weight;
		uint32_t hash;

		number++;
		if (line[0] == '#' || line[strspn(line, " \t\r\n")] == '\0')
			continue;
		if (line_parse(line, &hash, &weight))
			sink(context, hash, weight);
		else
			answer = cli_fail(cli, ANSWER_INVALID,
				"%s:%lu: a line is a ring hash (0..4294967295 or hexadecimal with 0x) and "
				"a weight",
				path, number);
	}
	if (in != stdin)
		fclose(in);
	return answer;
}
