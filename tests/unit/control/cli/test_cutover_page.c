// SPDX-License-Identifier: Apache-2.0
// The page, letter for letter.
#include "control/cli/cutover_page.h"

#include "control/cli/cutover_rates.h"
#include "control/cutover/json.h"
#include "tests/lib/suite.h"
#include "tests/unit/control/cutover/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const char shown[] =
	"pool      web: v1 x160 -> v2 x16; members: 1 added, 0 removed, 0 with another weight; 89.64% of the keys move\n"
	"state     SOAKING for 18 s, since 2026-11-30 06:51:11 UTC\n"
	"moved by  conductor, revision 4 of plan f5473d9b71ff71fb\n"
	"stage     1 of 2: ams, waw; ends with advance\n"
	"steps     [1%], 10%; soak 1 min each\n"
	"waits for 42 s more of soak, and 1 round in a row that every guard passes\n"
	"lock      ann@lb-ams01-1 for 29 min 42 s more: change 1234\n"
	"override  waw at 2% for 1 h 59 min more: one hot backend\n"
	"rollback  now costs about +12% origin traffic\n"
	"next      nothing: 10% comes by itself; ringway cutover pause web holds it\n"
	"\n"
	"DATACENTER        SHARE  NODES  PREPARED  APPLIED  MISSING  REFUSED  MISMATCHED  BECAUSE\n"
	"ams                  1%      2         2        2        0        0           0  share of the stage\n"
	"waw                  2%      2         1        1        1        0           0  override of the datacenter\n"
	"\n"
	"GUARD         VERDICT           VALUE  LIMIT                               AGE  SAYS\n"
	"early_abort   passed             0.92  rollback > 1.5                     12 s  0.0010% of 10000 new-ring flows end e...\n"
	"origin        error                 -  -                                     -  no measurement: the query has no value\n"
	"                                                                                at this time\n";

static const char watched[] =
	"pool      web: v1 x160 -> v2 x16; 89.64% of the keys move\n"
	"state     SOAKING for 18 s, since 2026-11-30 06:51:11 UTC\n"
	"moved by  conductor, revision 4 of plan f5473d9b71ff71fb\n"
	"stage     1 of 2: ams, waw; ends with advance\n"
	"steps     [1%], 10%; soak 1 min each\n"
	"waits for 42 s more of soak, and 1 round in a row that every guard passes\n"
	"lock      ann@lb-ams01-1 for 29 min 42 s more: change 1234\n"
	"override  waw at 2% for 1 h 59 min more: one hot backend\n"
	"rollback  now costs about +12% origin traffic\n"
	"next      nothing: 10% comes by itself; ringway cutover pause web holds it\n"
	"\n"
	"DATACENTER        SHARE  NODES  PREPARED  APPLIED  MISSING  REFUSED  MISMATCHED  BECAUSE\n"
	"ams                  1%      2         2        2        0        0           0  share of the stage\n"
	"waw                  2%      2         1        1        1        0           0  override of the datacenter\n"
	"\n"
	"FLOWS         RING  NEW FLOWS/S   PACKETS/S   DROPS/S  EARLY ABORTS     SHARE  INTENDED  OF FLOWS  LIVE FLOWS\n"
	"ams           old         49.5k        446k         0         0.10%\n"
	"              new           506       4.55k         0         0.99%     1.01%        1%      100k         506\n"
	"waw           no node says anything\n"
	"\n"
	"GUARD         VERDICT           VALUE  LIMIT                               AGE  SAYS\n"
	"early_abort   passed             0.92  rollback > 1.5                     12 s  0.0010% of 10000 new-ring flows end e...\n"
	"origin        error                 -  -                                     -  no measurement: the query has no value\n"
	"                                                                                at this time\n"
	"\n"
	"SHADOW, MEMORY   DIFFERENT  PLANNED   OF FLOWS DATAPLANE RSS    RINGWAYD  HUGE PAGES   OLD RINGS   NEW RINGS\n"
	"ams                 90.91%   89.64%      1.09k      49.4 MiB    27.4 MiB   256.0 MiB   500.3 KiB    37.8 KiB\n"
	"\n"
	"STARTS        of the slowest of the datacenter's nodes\n"
	"ams           dataplane 179.6 ms = eal 175.2 ms + ports 481.7 us + flows 1.6 ms + snapshot 2.3 ms + poll 63.2 us\n"
	"              ringwayd  6.6 ms = read 2.3 ms + build 72.8 us + publish 4.2 ms\n";

static const char paused[] =
	"pool      web: v1 x160 -> v2 x16; 89.64% of the keys move\n"
	"state     PAUSED (guard; was shifting) for 3 min 12 s, since 2026-11-30 06:51:11\n"
	"          UTC\n"
	"why       early_abort: 2.1000% of 10000 new-ring flows end early, 0.0011% of\n"
	"          990000 old-ring flows\n"
	"moved by  ann, revision 5 of plan f5473d9b71ff71fb\n"
	"stage     1 of 2: ams, waw; ends with advance\n"
	"steps     [1%], 10%; soak 1 min each\n"
	"waits for somebody who decides\n"
	"rollback  now costs one document: both rings are in memory\n"
	"store     does not answer: this is what was known last\n"
	"next      ringway cutover resume web, or rollback\n";

static const char by_hand[] =
	"pool      web: v1 x160 -> v2 x16\n"
	"state     SHIFTING by hand on this node: 12.5% of new flows take the new ring\n"
	"dataplane uses generation 3\n"
	"next      ringway cutover set web --share PERCENT, rollback, discard at 0%\n";

static const char held_here[] =
	"pool      web: v1 x160 -> v2 x16\n"
	"state     SHIFTING by hand on this node: 12.5% of new flows take the new ring\n"
	"but       this node takes none: its kill switch is on, or it was rolled back alone (rollback --local)\n"
	"dataplane uses generation 3\n"
	"next      ringway cutover set web --share PERCENT, rollback, discard at 0%\n";
// clang-format on

static void assert_page(const json_t *object, const struct cutover_page *page, const char *expected)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	cutover_page_print(out, object, page);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s",
			text); // what it should be by now, when the page was changed on purpose
	for (const char *line = text; *line != '\0';) {
		size_t columns = strcspn(line, "\n");

		CU_ASSERT(page->width == 0 || columns <= page->width);
		CU_ASSERT(columns == 0 || line[columns - 1] != ' ');
		line += columns + (line[columns] == '\n');
	}
	free(text);
}

static json_t *live(int time_ms, int old, int new)
{
	return json_pack(
		"{s:i, s:s, s:i, s:i, s:{s:i, s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i, "
		"s:i}, s:i, s:i, s:i, s:i, s:i, s:i, s:{s:i, s:i, s:i, s:i, s:i}, s:{s:i, s:i, "
		"s:i}}",
		"nodes", 2, "counters_of", "a", "time_ms", time_ms, "intended_ppm", 10000, "old",
		"flows", old, "aborts", old / 1000, "drops", 0, "packets", 9 * old, "ring_bytes",
		512320, "new", "flows", new, "aborts", new / 100, "drops", 0, "packets", 9 * new,
		"ring_bytes", 38720, "live_new", new / 2, "shadow_same", old / 1000,
		"shadow_different", old / 100, "dataplane_resident_bytes", 51800000,
		"daemon_resident_bytes", 28700000, "hugepage_bytes", 268435456,
		"dataplane_startup_ns", "eal", 175200000, "ports", 481700, "flows", 1600000,
		"snapshot", 2300000, "poll", 63200, "daemon_startup_ns", "read", 2300000, "build",
		72800, "publish", 4200000);
}

// What ringwayd adds to the document.
static json_t *answer(const struct cutover *cutover, uint64_t after_ms)
{
	json_t *object = cutover_write(cutover);

	json_object_set_new(object, "name", json_string("web"));
	json_object_set_new(
		object, "now_ms", json_integer((json_int_t)(cutover->state_ms + after_ms)));
	json_object_set_new(object, "from", json_string("v1 x160"));
	json_object_set_new(object, "to", json_string("v2 x16"));
	json_object_set_new(object, "churn", json_real(0.8964));
	json_object_set_new(object, "plan", json_string("f5473d9b71ff71fb"));
	json_object_set_new(object, "next",
		json_string("nothing: 10% comes by itself; ringway cutover pause web holds it"));
	json_object_set_new(object, "waits_for",
		json_string("42 s more of soak, and 1 round in a row that every guard passes"));
	json_object_set_new(object, "rollback_surge_now", json_real(0.124));
	json_object_set_new(object, "store_connected", json_true());
	json_object_set_new(object, "datacenters_now",
		json_pack("[{s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i}, {s:s, s:i, s:s, s:i, "
			  "s:i, s:i, s:i, s:i, s:i, s:n}]",
			"name", "ams", "share_ppm", 10000, "cause", "share of the stage", "nodes",
			2, "prepared", 2, "applied", 2, "missing", 0, "refused", 0, "mismatched", 0,
			"name", "waw", "share_ppm", 20000, "cause", "override of the datacenter",
			"nodes", 2, "prepared", 1, "applied", 1, "missing", 1, "refused", 0,
			"mismatched", 0, "live"));
	json_object_set_new(object, "guards",
		json_pack("[{s:s, s:s, s:f, s:s, s:I}, {s:s, s:s, s:n, s:s}]", "name",
			"early_abort", "verdict", "passed", "value", 0.92, "text",
			"0.0010% of 10000 new-ring flows end early, 0.0011% of 990000 old-ring "
			"flows",
			"time_ms", (json_int_t)(cutover->state_ms + after_ms - 12000), "name",
			"origin", "verdict", "error", "value", "text",
			"no measurement: the query has no value at this time"));
	return object;
}

static void soaking(struct cutover *ret)
{
	fixture_reach(ret, CUTOVER_SOAKING);
	ret->state_ms = ret->soak_ms = 1796021471000;
	ret->lock = (struct cutover_lock){.owner = "ann@lb-ams01-1",
		.expires_ms = ret->state_ms + 1800000,
		.reason = "change 1234"};
	ret->overrides[0] = (struct cutover_override){.used = true,
		.datacenter = 1,
		.share = 20000,
		.expires_ms = ret->state_ms + 7200000,
		.reason = "one hot backend"};
}

static void show_is_one_page(void)
{
	static const struct cutover_page page = {.width = 120};
	struct cutover cutover;

	soaking(&cutover);
	json_t *object = answer(&cutover, 18000);

	json_object_set_new(object, "members",
		json_pack("{s:i, s:i, s:i}", "added", 1, "removed", 0, "reweighted", 0));
	assert_page(object, &page, shown);
	json_decref(object);
}

static void watch_adds_what_flows_do(void)
{
	static const struct cutover_page page = {.width = 120, .is_live = true};
	json_t *memory = json_object();
	struct cutover cutover;
	json_t *object = NULL;

	soaking(&cutover);
	for (int i = 0; i < 2; i++) {
		json_decref(object);
		object = answer(&cutover, 18000);
		json_object_set_new(json_array_get(json_object_get(object, "datacenters_now"), 0),
			"live", live(1000 + 2000 * i, 99000 * i, 1012 * i));
		cutover_rates_add(memory, object);
	}
	assert_page(object, &page, watched);
	json_decref(object);
	json_decref(memory);
}

static void paused_says_why_and_wraps(void)
{
	static const struct cutover_page page = {.width = 80};
	struct cutover cutover;

	fixture_reach(&cutover, CUTOVER_PAUSED);
	cutover.state_ms = 1796021471000;
	cutover.pause = CUTOVER_PAUSE_GUARD;
	snprintf(cutover.reason, sizeof(cutover.reason),
		"early_abort: 2.1000%% of 10000 new-ring flows end early, 0.0011%% of 990000 "
		"old-ring flows");
	json_t *object = answer(&cutover, 192000);

	json_object_del(object, "datacenters_now");
	json_object_del(object, "guards");
	json_object_del(object, "rollback_surge_now");
	json_object_set_new(object, "store_connected", json_false());
	json_object_set_new(object, "waits_for", json_string("somebody who decides"));
	json_object_set_new(object, "next", json_string("ringway cutover resume web, or rollback"));
	assert_page(object, &page, paused);
	json_decref(object);
}

// One line more, and only when a rollback said so; a datacenter without a figure adds none.
static void rollback_of_established_flows_says_how_far_it_is(void)
{
	static const struct cutover_page page;
	json_t *object =
		json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:b, s:{s:i, s:i}}, {s:s, s:b, s:n}, "
			  "{s:s, s:b, s:{s:i, s:i}}]}",
			"name", "web", "from", "v1 x160", "to", "v2 x16", "state", "staged",
			"datacenters_now", "name", "ams", "move_established", 1, "live", "recalled",
			891, "live_new", 7, "name", "waw", "move_established", 1, "live", "name",
			"fra", "move_established", 0, "live", "recalled", 5, "live_new", 5);
	char *text = NULL;
	size_t length = 0;

	for (int marked = 1; marked >= 0; marked--) {
		FILE *out = open_memstream(&text, &length);

		cutover_page_print(out, object, &page);
		fclose(out);
		CU_ASSERT_EQUAL(
			strstr(text, "come back: 891 moved, 7 on it still\n") != NULL, marked);
		CU_ASSERT_EQUAL(strstr(text, "come back") != NULL, marked);
		free(text);
		for (size_t i = 0; i < 2; i++)
			json_object_set_new(
				json_array_get(json_object_get(object, "datacenters_now"), i),
				"move_established", json_false());
	}
	json_decref(object);
}

static void by_hand_it_is_short(void)
{
	static const struct cutover_page page;
	json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:[{s:s, s:i, s:s, s:i}]}",
		"name", "web", "from", "v1 x160", "to", "v2 x16", "state", "shifting", "share_ppm",
		125000, "dataplane", "uses generation 3", "datacenters_now", "name", "ams",
		"share_ppm", 125000, "cause", "set by hand", "nodes", 1);

	assert_page(object, &page, by_hand);
	json_object_set_new(object, "share_here_ppm", json_integer(125000));
	assert_page(object, &page, by_hand);
	json_object_set_new(object, "share_here_ppm", json_integer(0));
	assert_page(object, &page, held_here);
	json_decref(object);
}

static void many_datacenters_leave_out_what_is_dull(void)
{
	static const struct cutover_page page;
	struct cutover cutover;
	char *text = NULL;
	size_t length;

	soaking(&cutover);
	json_t *rows = json_array(), *object = answer(&cutover, 0);
	char name[16];

	while (cutover.spec.datacenter_count < 300) {
		snprintf(name, sizeof(name), "dc%u", cutover.spec.datacenter_count);
		cutover_datacenter_add(&cutover.spec, name);
	}
	for (uint32_t i = 0; i < 300; i++)
		json_array_append_new(rows,
			json_pack("{s:s, s:i}", "name", cutover.spec.datacenters[i], "missing",
				i == 150));
	json_t *document = cutover_write(&cutover);

	json_object_update(object, document);
	json_object_set_new(object, "datacenters_now", rows);
	FILE *out = open_memstream(&text, &length);

	cutover_page_print(out, object, &page);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nams "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nwaw "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ndc150 "));
	CU_ASSERT_PTR_NULL(strstr(text, "\ndc151 "));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "\n297 more are not in this stage and in order: ringway dc list\n"));
	free(text);
	json_decref(document);
	json_decref(object);
}

#define CASE(name)          \
	{                   \
#name, name \
	}

static const struct test_case cases[] = {
	CASE(show_is_one_page),
	CASE(watch_adds_what_flows_do),
	CASE(paused_says_why_and_wraps),
	CASE(rollback_of_established_flows_says_how_far_it_is),
	CASE(by_hand_it_is_short),
	CASE(many_datacenters_leave_out_what_is_dull),
};

int main(void)
{
	return SUITE_RUN("cutover page", cases);
}
