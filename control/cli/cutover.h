// SPDX-License-Identifier: Apache-2.0
// Commands of cutovers whose output is more than a table.
#pragma once

#include "control/cli/cli.h"

// plan: reads cutover.yaml, asks, prints what would happen.
enum answer cutover_plan_run(struct cli *cli);

// A verb that moves a cutover: one sentence, and after a rollback the share of every node.
enum answer cutover_change_run(struct cli *cli);

// rollback: the same; with --move-established it says first what that would move, and asks.
enum answer cutover_rollback_run(struct cli *cli);

// show: a page for people (cutover_page.h), the whole object for programs.
enum answer cutover_show_run(struct cli *cli);

// watch: that page with what flows do, again and again. cutover_watch.c
enum answer cutover_watch_run(struct cli *cli);

// Columns of the terminal; 0 when the output is none. cutover_watch.c
unsigned cutover_width(void);

// wait: until a state is reached.
enum answer cutover_wait_run(struct cli *cli);

// ring verify: a table, and an exit code.
enum answer ring_verify_run(struct cli *cli);
