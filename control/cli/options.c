// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cli.h"

#include "common/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct cli_option_info cli_options[CLI_OPTION_COUNT] = {
	[CLI_HELP] = {"help", 'h', CLI_FLAG, NULL, "say what the command does, and stop"},
	[CLI_VERSION] = {"version", 0, CLI_FLAG, NULL, "print the version, and stop"},
	[CLI_JSON] = {"json", 'j', CLI_FLAG, NULL, "the same as -o json"},
	[CLI_OUTPUT] = {"output", 'o', CLI_TEXT, "FORMAT",
		"table, wide, json, jsonl, yaml or name; table when not given"},
	[CLI_RUN_DIR] = {"run-dir", 0, CLI_TEXT, "DIR",
		"run directory of the node; RINGWAY_RUN_DIR or " PROTOCOL_RUN_DIR
		" when not given"},
	[CLI_SOCKET] = {"socket", 0, CLI_TEXT, "PATH",
		"socket of ringwayd; " PROTOCOL_SOCKET_NAME " in the run directory when not given"},
	[CLI_DRY_RUN] = {"dry-run", 'n', CLI_FLAG, NULL, "say what would happen; change nothing"},
	[CLI_REASON] = {"reason", 0, CLI_TEXT, "TEXT", "why, for the audit log"},
	[CLI_GENERATION] = {"generation", 0, CLI_NUMBER, "N",
		"refuse (exit code 4) unless the node is at generation N"},
	[CLI_YES] = {"yes", 'y', CLI_FLAG, NULL, "do not ask for the name again"},
	[CLI_FORCE] = {"force", 0, CLI_FLAG, NULL, "go past a limit; needs --reason"},
	[CLI_WATCH] = {"watch", 'w', CLI_FLAG, NULL, "once a second, until interrupted"},
	[CLI_FILE] = {"file", 'f', CLI_TEXT, "FILE", "file to read; - is standard input"},
	[CLI_NODE_FILE] = {"node", 0, CLI_TEXT, "FILE", "node.yaml to read beside it"},
	[CLI_EXIT_CODE] = {"exit-code", 0, CLI_FLAG, NULL,
		"exit with 10 when there are differences"},
	[CLI_ADDRESS] = {"address", 0, CLI_TEXT, "ADDRESS", "IPv4 or IPv6 address"},
	[CLI_PORT] = {"port", 0, CLI_NUMBER, "PORT", "port; part of the ring seed"},
	[CLI_WEIGHT] = {"weight", 0, CLI_NUMBER, "N", "weight, 1 or more"},
	[CLI_TAGS] = {"tags", 0, CLI_LIST, "TAG,...", "tags of the backend"},
	[CLI_STATE] = {"state", 0, CLI_TEXT, "STATE", "up, drain or down"},
	[CLI_TO] = {"to", 0, CLI_TEXT, "VERSION", "ring version to move to: v1, v2 or v3"},
	[CLI_POINTS] = {"points", 0, CLI_NUMBER, "N", "points a weight"},
	[CLI_BALANCE] = {"balance", 0, CLI_REAL, "CV",
		"balance that a v3 ring aims at, such as 0.01"},
	[CLI_SHARE] = {"share", 0, CLI_PERCENT, "PERCENT",
		"part of the new flows that takes the new ring, such as 12.5%"},
	[CLI_REQUIRES] = {"requires", 0, CLI_LIST, "TAG,...",
		"only backends with all these tags: a subset ring"},
	[CLI_TRAFFIC] = {"traffic", 0, CLI_TEXT, "FILE",
		"flow sample to weigh by: a ring hash and a weight a line"},
	[CLI_BACKENDS] = {"backends", 'b', CLI_NUMBER, "N", "number of equal backends"},
	[CLI_WEIGHTS] = {"weights", 0, CLI_LIST, "N,...", "weights, given to the backends in turn"},
	[CLI_RING] = {"ring", 0, CLI_TEXT, "VERSION", "ring version: v1, v2 or v3"},
	[CLI_TARGET_CV] = {"target-cv", 0, CLI_REAL, "CV",
		"say how many points a weight reach this spread, such as 0.05"},
	[CLI_SWEEP] = {"sweep", 0, CLI_TEXT, "points=A..B", "a table over a range of points"},
	[CLI_SVG] = {"svg", 0, CLI_TEXT, "FILE", "draw the sweep's curve into FILE"},
	[CLI_RUNS] = {"runs", 0, CLI_NUMBER, "N", "sets of addresses to average over"},
	[CLI_SEED] = {"seed", 0, CLI_NUMBER, "N", "first set of addresses"},
	[CLI_WORKERS] = {"workers", 0, CLI_NUMBER, "N",
		"workers of a node, for the memory figures"},
	[CLI_NODES] = {"nodes", 0, CLI_NUMBER, "N", "nodes of the fleet, for the memory figures"},
	[CLI_WORKER] = {"worker", 0, CLI_NUMBER, "N", "one worker alone"},
	[CLI_MOVE_ESTABLISHED] = {"move-established", 0, CLI_FLAG, NULL,
		"established flows of the new ring go back, too; asks, or needs --yes"},
	[CLI_SHIFT] = {"shift", 0, CLI_NUMBER, "K",
		"1 of 2^K new flows; the same ones on every node"},
	[CLI_COUNT] = {"count", 0, CLI_NUMBER, "N", "end after N flows or pages"},
	[CLI_SECONDS] = {"seconds", 0, CLI_NUMBER, "S", "end after S seconds"},
	[CLI_INTERVAL] = {"interval", 0, CLI_NUMBER, "S",
		"seconds from page to page; 2 when not given"},
	[CLI_TRACES] = {"traces", 0, CLI_FLAG, NULL,
		"with the newest selections of this node (1 of 2^K flows, see --shift)"},
	[CLI_SERVICE] = {"service", 0, CLI_TEXT, "SERVICE", "flows of one service alone"},
	[CLI_DATACENTER] = {"dc", 0, CLI_TEXT, "NAME,...", "these datacenters alone"},
	[CLI_CAP] = {"cap", 0, CLI_PERCENT, "PERCENT", "the most that the datacenters may reach"},
	[CLI_TTL] = {"ttl", 0, CLI_TEXT, "TIME", "how long it stands: 30m, 2h"},
	[CLI_REVISION] = {"revision", 0, CLI_NUMBER, "N",
		"refuse (exit code 4) unless the cutover is at revision N"},
	[CLI_LOCAL] = {"local", 0, CLI_FLAG, NULL, "on this node alone, without the store"},
	[CLI_CLEAR] = {"clear", 0, CLI_FLAG, NULL, "take it away"},
	[CLI_ALLOW_NODE_CHURN] = {"allow-node-churn", 0, CLI_FLAG, NULL,
		"although nodes are draining or joining"},
	[CLI_FLOWS] = {"flows-per-second", 0, CLI_REAL, "N",
		"new flows of one datacenter, for the soak times; as its nodes measure them when not given"},
	[CLI_FOR] = {"for", 0, CLI_TEXT, "state=STATE", "what to wait for"},
	[CLI_POOLS_FILE] = {"pools", 0, CLI_TEXT, "FILE",
		"pools file that the new ring's backends, weights and tags come from"},
	[CLI_TIMEOUT] = {"timeout", 0, CLI_NUMBER, "SECONDS",
		"how long to wait; 600 when not given"},
};

int64_t cli_share_parse(const char *text)
{
	uint64_t whole = 0, scale = GATE_SHARE_ALL;
	bool percent = strchr(text, '%') != NULL;
	unsigned digits = 0;
	const char *c = text;

	if (percent)
		scale /= 100;
	for (; *c >= '0' && *c <= '9'; c++, digits++) {
		whole = whole * 10 + (uint64_t)(*c - '0');
		if (whole > 100)
			return -EINVAL;
	}
	whole *= scale;
	if (*c == '.') {
		for (c++; *c >= '0' && *c <= '9'; c++, digits++) {
			// A digit below a millionth cannot be kept, unless it is zero.
			if (scale <= 1 && *c != '0')
				return -EINVAL;
			scale /= 10;
			whole += scale * (uint64_t)(*c - '0');
		}
	}
	if (percent && *c == '%')
		c++;
	if (*c != '\0' || digits == 0 || whole > GATE_SHARE_ALL)
		return -EINVAL;
	return (int64_t)whole;
}

enum answer cli_number(
	struct cli *cli, enum cli_option option, uint64_t low, uint64_t high, uint64_t *ret)
{
	const char *text = cli->value[option];
	char *end;

	if (text == NULL)
		return ANSWER_DONE;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || errno || number < low || number > high)
		return cli_fail(cli, ANSWER_USAGE,
			"--%s: \"%s\" is not a whole number from %llu to %llu",
			cli_options[option].name, text, (unsigned long long)low,
			(unsigned long long)high);
	*ret = number;
	return ANSWER_DONE;
}

enum answer cli_real(struct cli *cli, enum cli_option option, double low, double high, double *ret)
{
	const char *text = cli->value[option];
	char *end;

	if (text == NULL)
		return ANSWER_DONE;
	double number = strtod(text, &end);

	if (end != text && strcmp(end, "%") == 0) {
		number /= 100;
		end++;
	}
	// The negation catches NaN too.
	if (end == text || *end != '\0' || !(number >= low && number <= high))
		return cli_fail(cli, ANSWER_USAGE, "--%s: \"%s\" is not a number from %g to %g",
			cli_options[option].name, text, low, high);
	*ret = number;
	return ANSWER_DONE;
}
