// SPDX-License-Identifier: Apache-2.0
#include "control/cli/top.h"

#include "control/cli/request.h"

#include <curses.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#define REFRESH_MS 1000

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

// The row of an array that has the same name (or worker) as another.
static const json_t *same(const json_t *rows, const json_t *row, const char *key)
{
	const json_t *other;
	size_t i;

	json_array_foreach (rows, i, other) {
		if (json_equal(json_object_get(other, key), json_object_get(row, key)))
			return other;
	}
	return NULL;
}

// Rates of the fields of rows that both answers have.
static json_t *row_rates(const json_t *before, const json_t *after, const char *key,
	const char *const *fields, double seconds)
{
	json_t *ret = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach (after, i, row) {
		const json_t *old = same(before, row, key);
		json_t *rates = json_object();

		json_object_set(rates, key, json_object_get(row, key));
		for (unsigned f = 0; fields[f] != NULL && old != NULL; f++)
			json_object_set_new(rates, fields[f],
				json_real((number(row, fields[f]) - number(old, fields[f])) /
					seconds));
		json_array_append_new(ret, rates);
	}
	return ret;
}

json_t *top_rates(const json_t *before, const json_t *after)
{
	static const char *const balance[] = {
		"rx_packets", "forwarded", "punted", "answered", "dropped", NULL};
	static const char *const counters[] = {"count", NULL};
	static const char *const drops[] = {"packets", NULL};
	static const char *const pools[] = {"new_flows_old", "new_flows_new", "packets_old",
		"packets_new", "drops_old", "drops_new", NULL};
	static const char *const workers[] = {
		"rx_packets", "forwarded", "dropped", "bursts", "polls", "busy_cycles", NULL};
	double seconds = (number(after, "time_ns") - number(before, "time_ns")) / 1e9;
	const json_t *old = json_object_get(before, "balance"),
		     *new = json_object_get(after, "balance");
	json_t *ret;

	// Counters that fell are those of another process.
	if (!(seconds > 0) || number(new, "rx_packets") < number(old, "rx_packets"))
		return NULL;
	ret = json_pack("{s:f, s:f, s:O, s:o, s:o, s:o, s:o}", "seconds", seconds, "tsc_hz",
		number(after, "tsc_hz"), "totals", new, "counters",
		row_rates(json_object_get(before, "counters"), json_object_get(after, "counters"),
			"name", counters, seconds),
		"drops",
		row_rates(json_object_get(before, "drops"), json_object_get(after, "drops"), "name",
			drops, seconds),
		"pools",
		row_rates(json_object_get(before, "pools"), json_object_get(after, "pools"), "name",
			pools, seconds),
		"workers",
		row_rates(json_object_get(before, "workers"), json_object_get(after, "workers"),
			"worker", workers, seconds));
	for (unsigned f = 0; balance[f] != NULL; f++)
		json_object_set_new(ret, balance[f],
			json_real((number(new, balance[f]) - number(old, balance[f])) / seconds));
	return ret;
}

static double counter_rate(const json_t *rates, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(rates, "counters"), i, row) {
		if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
			return number(row, "count");
	}
	return 0;
}

static void draw_head(const json_t *status, const json_t *rates)
{
	const json_t *dataplane = json_object_get(status, "dataplane");
	const json_t *totals = json_object_get(rates, "totals");
	char rx[16], forwarded[16], punted[16], answered[16], dropped[16], rx_bytes[16];
	double difference = number(totals, "difference");

	attron(A_BOLD);
	printw("%s  %s", json_string_value(json_object_get(status, "node")),
		json_string_value(json_object_get(status, "datacenter")));
	attroff(A_BOLD);
	printw("   generation %.0f   dataplane %s\n\n", number(status, "generation"),
		json_string_value(json_object_get(dataplane, "state")));
	printw("rx %s/s = forwarded %s + punted %s + answered %s + dropped %s",
		output_short(number(rates, "rx_packets"), rx),
		output_short(number(rates, "forwarded"), forwarded),
		output_short(number(rates, "punted"), punted),
		output_short(number(rates, "answered"), answered),
		output_short(number(rates, "dropped"), dropped));
	printw("   %sbit/s", output_short(counter_rate(rates, "rx_bytes") * 8, rx_bytes));
	if (difference > number(totals, "in_flight_max") || difference < 0) {
		attron(A_REVERSE);
		printw("  off by %.0f packets", difference);
		attroff(A_REVERSE);
	}
	addch('\n');
}

static void draw_flows(const json_t *rates)
{
	double hits = counter_rate(rates, "flow_hit") + counter_rate(rates, "flow_hit_other");
	double syn = counter_rate(rates, "flow_miss_syn"),
	       udp = counter_rate(rates, "flow_miss_udp");
	double lost = counter_rate(rates, "flow_miss_non_syn");
	double all = hits + syn + udp + lost;
	char new_text[16], lost_text[16];

	printw("flow table: %.1f %% hits, %s new flows/s, %s packets/s of unknown TCP flows\n\n",
		all > 0 ? hits / all * 100 : 0, output_short(syn + udp, new_text),
		output_short(lost, lost_text));
}

static void draw_workers(const json_t *rates)
{
	double hz = number(rates, "tsc_hz");
	const json_t *row;
	size_t i;

	attron(A_UNDERLINE);
	printw("%-8s %10s %10s %10s %8s %8s %12s\n", "WORKER", "RX/S", "FORWARD/S", "DROP/S",
		"BUSY", "BURST", "CYCLES/PKT");
	attroff(A_UNDERLINE);
	json_array_foreach (json_object_get(rates, "workers"), i, row) {
		char rx[16], forwarded[16], dropped[16];
		double packets = number(row, "rx_packets"), bursts = number(row, "bursts");

		printw("%-8.0f %10s %10s %10s %7.1f%% %8.1f %12.0f\n", number(row, "worker"),
			output_short(packets, rx),
			output_short(number(row, "forwarded"), forwarded),
			output_short(number(row, "dropped"), dropped),
			hz > 0 ? number(row, "busy_cycles") / hz * 100 : 0,
			bursts > 0 ? packets / bursts : 0,
			packets > 0 ? number(row, "busy_cycles") / packets : 0);
	}
	addch('\n');
}

static void draw_pools(const json_t *rates)
{
	const json_t *row;
	size_t i;

	attron(A_UNDERLINE);
	printw("%-24s %10s %10s %10s %10s %9s\n", "POOL", "FLOWS OLD", "FLOWS NEW", "PKTS OLD",
		"PKTS NEW", "NEW RING");
	attroff(A_UNDERLINE);
	json_array_foreach (json_object_get(rates, "pools"), i, row) {
		char flows_old[16], flows_new[16], packets_old[16], packets_new[16];
		double old = number(row, "new_flows_old"), new = number(row, "new_flows_new");

		printw("%-24.24s %10s %10s %10s %10s %8.2f%%\n",
			json_string_value(json_object_get(row, "name")),
			output_short(old, flows_old), output_short(new, flows_new),
			output_short(number(row, "packets_old"), packets_old),
			output_short(number(row, "packets_new"), packets_new),
			old + new > 0 ? new / (old + new) * 100 : 0);
	}
	addch('\n');
}

static void draw_drops(const json_t *rates)
{
	const json_t *row;
	size_t i;

	attron(A_UNDERLINE);
	printw("%-24s %10s\n", "DROPPED", "PACKETS/S");
	attroff(A_UNDERLINE);
	json_array_foreach (json_object_get(rates, "drops"), i, row) {
		char text[16];

		if (number(row, "packets") > 0)
			printw("%-24s %10s\n", json_string_value(json_object_get(row, "name")),
				output_short(number(row, "packets"), text));
	}
}

static void draw(const json_t *status, const json_t *rates)
{
	erase();
	move(0, 0);
	if (rates == NULL) {
		printw("waiting for a second reading...\n");
	} else {
		draw_head(status, rates);
		draw_flows(rates);
		draw_workers(rates);
		draw_pools(rates);
		draw_drops(rates);
	}
	mvprintw(LINES - 1, 0, "q quits");
	refresh();
}

// One screen a second until q is pressed or the node is gone.
static enum answer watch(struct cli *cli)
{
	json_t *before = NULL;
	enum answer answer = ANSWER_DONE;
	int key = 0;

	while (answer == ANSWER_DONE && key != 'q') {
		json_t *after = NULL, *status = NULL, *rates;

		answer = request_ask(cli, "stats", json_object(), &after);
		if (answer == ANSWER_DONE)
			answer = request_ask(cli, "status", json_object(), &status);
		if (answer == ANSWER_DONE) {
			rates = before ? top_rates(before, after) : NULL;
			draw(status, rates);
			json_decref(rates);
			timeout(REFRESH_MS);
			key = getch();
		}
		json_decref(status);
		json_decref(before);
		before = after;
	}
	json_decref(before);
	return answer;
}

enum answer top_run(struct cli *cli)
{
	char messages[512] = "";
	FILE *err = cli->err;
	enum answer answer;

	// For programs there is `stats --watch --json`: a screen is not JSON.
	if (cli->output != OUTPUT_TABLE)
		return cli_fail(
			cli, ANSWER_USAGE, "top is a screen; programs use stats --watch --json");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return cli_fail(
			cli, ANSWER_USAGE, "top needs a terminal; elsewhere use stats --watch");
	initscr();
	cbreak();
	noecho();
	curs_set(0);
	// What goes wrong is said below the last screen, not in the middle of it.
	cli->err = fmemopen(messages, sizeof(messages), "w");
	if (cli->err == NULL)
		cli->err = err;
	answer = watch(cli);
	endwin();
	if (cli->err != err)
		fclose(cli->err);
	cli->err = err;
	fputs(messages, err);
	return answer;
}
