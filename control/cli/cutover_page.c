// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cutover_page.h"

#include "control/cli/output.h"
#include "control/cli/trace.h"
#include "control/cutover/json.h"
#include "control/cutover/waits.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Datacenters that one page names; --json and `dc list` name all.
#define ROWS_MAX   24u
#define TEXT_BYTES 256u
// Where the sentences of the head begin, and the words of a guard.
#define LABEL_COLUMNS 10
#define GUARD_COLUMNS 80
// Less room than this is not worth a wrap.
#define WRAP_COLUMNS_MIN 20

// One page on its way.
struct page {
	FILE *out;
	const json_t *object;
	const struct cutover *cutover; // NULL: by hand, on one node
	uint64_t now_ms;
	unsigned width;
};

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t count_at(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static double number_at(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static bool has(const json_t *object, const char *key)
{
	return json_is_number(json_object_get(object, key));
}

// Writes a text that begins at a column, and goes on below itself where the page ends.
static void wrap(const struct page *page, unsigned column, const char *text)
{
	size_t room = page->width > column + WRAP_COLUMNS_MIN ? page->width - column : 0;

	while (room != 0 && strlen(text) > room) {
		size_t cut = room;

		while (cut > 0 && text[cut] != ' ')
			cut--;
		if (cut == 0)
			break;
		fprintf(page->out, "%.*s\n%*s", (int)cut, text, (int)column, "");
		text += cut + 1;
	}
	fprintf(page->out, "%s\n", text);
}

__attribute__((format(printf, 3, 4))) static void line(
	const struct page *page, const char *label, const char *format, ...)
{
	char text[2 * TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(page->out, "%-*s", LABEL_COLUMNS, label);
	wrap(page, LABEL_COLUMNS, text);
}

// Appends to a text that may be full.
__attribute__((format(printf, 2, 3))) static void append(
	char text[static TEXT_BYTES], const char *format, ...)
{
	size_t length = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + length, TEXT_BYTES - length, format, args);
	va_end(args);
}

static void share_of(uint64_t ppm, char ret[static CUTOVER_SHARE_TEXT_BYTES])
{
	cutover_share_format((uint32_t)ppm, ret);
}

static void since(const struct page *page, uint64_t at_ms, char ret[static CUTOVER_SPAN_TEXT_BYTES])
{
	cutover_span_format(page->now_ms > at_ms ? page->now_ms - at_ms : 0, ret);
}

static void until(const struct page *page, uint64_t at_ms, char ret[static CUTOVER_SPAN_TEXT_BYTES])
{
	cutover_span_format(at_ms > page->now_ms ? at_ms - page->now_ms : 0, ret);
}

static void upper(const char *text, char *ret, size_t bytes)
{
	snprintf(ret, bytes, "%s", text);
	for (char *c = ret; *c; c++)
		*c = *c == '_' ? ' ' : (char)toupper((unsigned char)*c);
}

// --- the head: what, where, why, what next -----------------------------------------------------------

static void print_rings(const struct page *page)
{
	const json_t *members = json_object_get(page->object, "members");
	char text[TEXT_BYTES] = "";

	if (members != NULL)
		append(text, "; members: %llu added, %llu removed, %llu with another weight",
			(unsigned long long)count_at(members, "added"),
			(unsigned long long)count_at(members, "removed"),
			(unsigned long long)count_at(members, "reweighted"));
	if (has(page->object, "churn"))
		append(text, "; %.2f%% of the keys move", 100 * number_at(page->object, "churn"));
	line(page, "pool", "%s: %s -> %s%s", text_at(page->object, "name"),
		text_at(page->object, "from"), text_at(page->object, "to"), text);
}

static void print_state(const struct page *page)
{
	const struct cutover *cutover = page->cutover;
	time_t at = (time_t)(cutover->state_ms / CUTOVER_SECOND_MS);
	char state[32], span[CUTOVER_SPAN_TEXT_BYTES], when[32], pause[TEXT_BYTES] = "";
	struct tm utc;

	upper(cutover_state_name(cutover->state), state, sizeof(state));
	since(page, cutover->state_ms, span);
	gmtime_r(&at, &utc);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &utc);
	if (cutover->state == CUTOVER_PAUSED)
		append(pause, " (%s; was %s)", cutover_pause_name(cutover->pause),
			cutover_state_name(cutover->resume_to));
	line(page, "state", "%s%s for %s, since %s UTC", state, pause, span, when);
	if (cutover->reason[0] != '\0')
		line(page, "why", "%s", cutover->reason);
	line(page, "moved by", "%s, revision %llu of plan %s", cutover->actor,
		(unsigned long long)cutover->revision, text_at(page->object, "plan"));
}

static void print_stage(const struct page *page)
{
	static const char *const requires[] = {[CUTOVER_REQUIRE_AUTO] = "goes on by itself",
		[CUTOVER_REQUIRE_MANUAL] = "ends with advance",
		[CUTOVER_REQUIRE_HOOK] = "ends with its hook or advance"};
	const struct cutover *cutover = page->cutover;
	const struct cutover_spec *spec = &cutover->spec;
	const struct cutover_stage *stage = &spec->stages[cutover->stage];
	char names[TEXT_BYTES] = "";
	unsigned count = 0;

	for (uint32_t i = 0; i < spec->datacenter_count; i++) {
		if (!datacenter_set_has(&stage->datacenters, i))
			continue;
		if (count < 6)
			append(names, "%s%s", count ? ", " : "", spec->datacenters[i]);
		count++;
	}
	if (count > 6)
		append(names, " and %u more", count - 6);
	line(page, "stage", "%u of %u: %s; %s%s", cutover->stage + 1, spec->stage_count, names,
		requires[stage->require],
		cutover -> manual ? "; set by hand, goes on with advance" : "");
}

// The steps of the stage, the one it is at in brackets: "1%, 10%, [25%], 50%, 100%".
static void print_steps(const struct page *page)
{
	const struct cutover *cutover = page->cutover;
	const struct cutover_stage *stage = &cutover->spec.stages[cutover->stage];
	char text[TEXT_BYTES] = "", share[CUTOVER_SHARE_TEXT_BYTES], soak[CUTOVER_SPAN_TEXT_BYTES];
	bool marked = false;

	cutover_span_format(stage->min_soak_ms, soak);
	for (uint32_t i = 0; i < stage->step_count; i++) {
		bool here = stage->steps[i] == cutover->share;

		share_of(stage->steps[i], share);
		append(text, here ? "%s[%s]" : "%s%s", i ? ", " : "", share);
		marked |= here;
	}
	if (stage->step_count == 0) {
		share_of(stage->ramp_step, share);
		append(text, "%s more after every soak,", share);
		share_of(stage->ramp_to, share);
		append(text, " up to %s", share);
	}
	share_of(cutover->share, share);
	if (!marked)
		append(text, "; now at %s", share);
	line(page, "steps", "%s; soak %s each", text, soak);
}

static void print_holds(const struct page *page)
{
	const struct cutover *cutover = page->cutover;
	char span[CUTOVER_SPAN_TEXT_BYTES], share[CUTOVER_SHARE_TEXT_BYTES];

	if (cutover->lock.owner[0] != '\0') {
		until(page, cutover->lock.expires_ms, span);
		line(page, "lock", "%s for %s more: %s", cutover->lock.owner, span,
			cutover->lock.reason);
	}
	for (uint32_t i = 0; i < CUTOVER_OVERRIDES_MAX; i++) {
		const struct cutover_override *override = &cutover->overrides[i];

		if (!override->used)
			continue;
		until(page, override->expires_ms, span);
		share_of(override->share, share);
		line(page, "override", "%s at %s for %s more: %s",
			cutover->spec.datacenters[override->datacenter], share, span,
			override->reason);
	}
}

static void print_next(const struct page *page)
{
	const struct cutover *cutover = page->cutover;

	line(page, "waits for", "%s", text_at(page->object, "waits_for"));
	print_holds(page);
	if (has(page->object, "rollback_surge_now"))
		line(page, "rollback", "now costs about %+.0f%% origin traffic",
			100 * number_at(page->object, "rollback_surge_now"));
	else if (cutover_state_needs_old(cutover->state) &&
		cutover->state != CUTOVER_ROLLING_BACK && cutover->state != CUTOVER_ROLLED_BACK)
		line(page, "rollback", "now costs one document: both rings are in memory");
	if (json_is_false(json_object_get(page->object, "store_connected")))
		line(page, "store", "does not answer: this is what was known last");
	line(page, "next", "%s", text_at(page->object, "next"));
}

static void print_local(const struct page *page)
{
	char state[32], share[CUTOVER_SHARE_TEXT_BYTES];

	upper(text_at(page->object, "state"), state, sizeof(state));
	share_of(count_at(page->object, "share_ppm"), share);
	line(page, "state", "%s by hand on this node: %s of new flows take the new ring", state,
		share);
	if (has(page->object, "share_here_ppm") &&
		count_at(page->object, "share_here_ppm") < count_at(page->object, "share_ppm"))
		line(page, "but",
			"this node takes none: its kill switch is on, or it was rolled back "
			"alone (rollback --local)");
	line(page, "dataplane", "%s", text_at(page->object, "dataplane"));
	line(page, "next", "ringway cutover set %s --share PERCENT, rollback, %s",
		text_at(page->object, "name"),
		count_at(page->object, "share_ppm") == GATE_SHARE_ALL ? "retire" : "discard at 0%");
}

// --- datacenters -----------------------------------------------------------------------------------

// Rows that a full page may leave out: all is well, and the stage is elsewhere.
static bool is_dull(const struct page *page, const json_t *row, size_t index)
{
	const struct cutover *cutover = page->cutover;

	return cutover != NULL && index < cutover->spec.datacenter_count &&
		!datacenter_set_has(
			&cutover->spec.stages[cutover->stage].datacenters, (uint32_t)index) &&
		count_at(row, "missing") + count_at(row, "refused") + count_at(row, "mismatched") ==
		0;
}

// The rows that the page shows, in their order: a new reference.
static json_t *pick_rows(const struct page *page)
{
	const json_t *rows = json_object_get(page->object, "datacenters_now");
	bool is_full = json_array_size(rows) > ROWS_MAX;
	json_t *ret = json_array(), *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		if (json_array_size(ret) < ROWS_MAX && (!is_full || !is_dull(page, row, i)))
			json_array_append(ret, row);
	}
	return ret;
}

static void print_datacenters(const struct page *page, const json_t *rows)
{
	size_t all = json_array_size(json_object_get(page->object, "datacenters_now")), i;
	json_t *row;

	if (json_array_size(rows) == 0)
		return;
	fprintf(page->out, "\n%-14s%9s %6s %9s %8s %8s %8s %11s  %s\n", "DATACENTER", "SHARE",
		"NODES", "PREPARED", "APPLIED", "MISSING", "REFUSED", "MISMATCHED", "BECAUSE");
	json_array_foreach (rows, i, row) {
		char share[CUTOVER_SHARE_TEXT_BYTES];

		share_of(count_at(row, "share_ppm"), share);
		fprintf(page->out, "%-14.14s%9s %6llu %9llu %8llu %8llu %8llu %11llu  %s\n",
			text_at(row, "name"), share, (unsigned long long)count_at(row, "nodes"),
			(unsigned long long)count_at(row, "prepared"),
			(unsigned long long)count_at(row, "applied"),
			(unsigned long long)count_at(row, "missing"),
			(unsigned long long)count_at(row, "refused"),
			(unsigned long long)count_at(row, "mismatched"),
			json_is_true(json_object_get(row, "move_established"))
				? "rollback of established flows, too"
				: text_at(row, "cause"));
	}
	if (all > json_array_size(rows))
		fprintf(page->out, "%zu more are not in this stage and in order: ringway dc list\n",
			all - json_array_size(rows));
}

// After a rollback that takes established flows along: how far it is.
static void print_established(const struct page *page)
{
	const json_t *rows = json_object_get(page->object, "datacenters_now");
	uint64_t recalled = 0, left = 0;
	bool any = false;
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const json_t *live = json_object_get(row, "live");

		if (!json_is_true(json_object_get(row, "move_established")))
			continue;
		any = true;
		recalled += count_at(live, "recalled");
		left += count_at(live, "live_new");
	}
	if (any)
		fprintf(page->out,
			"\nestablished flows of the new ring come back: %llu moved, %llu on it still\n",
			(unsigned long long)recalled, (unsigned long long)left);
}

// --- guards ----------------------------------------------------------------------------------------

static const struct guard_config *guard_find(const struct page *page, const char *name)
{
	for (uint32_t i = 0; i < page->cutover->spec.guard_count; i++) {
		if (strcmp(page->cutover->spec.guards[i].name, name) == 0)
			return &page->cutover->spec.guards[i];
	}
	return NULL;
}

// "pause > 1.25, rollback > 1.5".
static void limit_of(const struct guard_config *guard, char ret[static TEXT_BYTES])
{
	const char *sign = guard->direction == GUARD_ABOVE ? ">" : "<";

	ret[0] = '\0';
	if (!isnan(guard->pause_at))
		append(ret, "pause %s %g", sign, guard->pause_at);
	if (!isnan(guard->rollback_at))
		append(ret, "%srollback %s %g", ret[0] ? ", " : "", sign, guard->rollback_at);
	if (guard->direction == GUARD_NOT_RECOVERING)
		append(ret, " a min");
}

// The words of a guard: of one that passed a line is enough.
static void print_words(const struct page *page, const json_t *said, bool dry_run)
{
	int room = page->width > GUARD_COLUMNS + 3 ? (int)page->width - GUARD_COLUMNS : 0;
	const char *says = text_at(said, "text");
	char text[TEXT_BYTES] = "";

	if (dry_run && strncmp(says, "dry run", 7) != 0)
		append(text, "dry run: ");
	append(text, "%s", says);
	if (strcmp(text_at(said, "verdict"), "passed") == 0 && room != 0 &&
		strlen(text) > (size_t)room)
		fprintf(page->out, "%.*s...\n", room - 3, text);
	else
		wrap(page, GUARD_COLUMNS, text);
}

static void print_guards(const struct page *page)
{
	const json_t *guards = json_object_get(page->object, "guards");
	json_t *said;
	size_t i;

	if (json_array_size(guards) == 0)
		return;
	fprintf(page->out, "\n%-14s%-13s%10s  %-30s%9s  %s\n", "GUARD", "VERDICT", "VALUE", "LIMIT",
		"AGE", "SAYS");
	json_array_foreach (guards, i, said) {
		const struct guard_config *guard = guard_find(page, text_at(said, "name"));
		char limit[TEXT_BYTES] = "-", value[32] = "-", age[CUTOVER_SPAN_TEXT_BYTES] = "-";

		if (guard != NULL)
			limit_of(guard, limit);
		if (has(said, "value"))
			snprintf(value, sizeof(value), "%.4g", number_at(said, "value"));
		if (has(said, "time_ms"))
			since(page, count_at(said, "time_ms"), age);
		fprintf(page->out, "%-14.14s%-13s%10s  %-30s%9s  ", text_at(said, "name"),
			text_at(said, "verdict"), value, limit, age);
		print_words(page, said, guard != NULL && guard->dry_run);
	}
}

// --- live ------------------------------------------------------------------------------------------

// A number of an object in words, "-" when it is not there.
static void short_at(const json_t *object, const char *key, char ret[static OUTPUT_SHORT_BYTES])
{
	snprintf(ret, OUTPUT_SHORT_BYTES, "-");
	if (has(object, key))
		output_short(number_at(object, key), ret);
}

static void percent_at(const json_t *object, const char *key, char ret[static OUTPUT_SHORT_BYTES])
{
	snprintf(ret, OUTPUT_SHORT_BYTES, "-");
	if (has(object, key))
		snprintf(ret, OUTPUT_SHORT_BYTES, "%.2f%%", 100 * number_at(object, key));
}

// What the new ring got beside what it should.
static void print_shares(const struct page *page, const json_t *row)
{
	const json_t *ratios = json_object_get(row, "ratios");
	const json_t *live = json_object_get(row, "live");
	char seen[OUTPUT_SHORT_BYTES], flows[OUTPUT_SHORT_BYTES], want[CUTOVER_SHARE_TEXT_BYTES],
		held[OUTPUT_SHORT_BYTES];

	percent_at(ratios, "new_share", seen);
	share_of(count_at(live, "intended_ppm"), want);
	short_at(ratios, "flows", flows);
	short_at(live, "live_new", held);
	fprintf(page->out, "%10s%10s%10s%12s", seen, want, flows, held);
}

static void print_side(const struct page *page, const json_t *row, bool is_new)
{
	const json_t *rates =
		json_object_get(json_object_get(row, "rates"), is_new ? "new" : "old");
	char flows[OUTPUT_SHORT_BYTES], packets[OUTPUT_SHORT_BYTES], drops[OUTPUT_SHORT_BYTES],
		aborts[OUTPUT_SHORT_BYTES];

	short_at(rates, "flows", flows);
	short_at(rates, "packets", packets);
	short_at(rates, "drops", drops);
	percent_at(json_object_get(row, "ratios"), is_new ? "new_aborts_ratio" : "old_aborts_ratio",
		aborts);
	fprintf(page->out, "%-14.14s%-5s%12s%12s%10s%14s", is_new ? "" : text_at(row, "name"),
		is_new ? "new" : "old", flows, packets, drops, aborts);
	if (is_new)
		print_shares(page, row);
	fputc('\n', page->out);
}

static void print_flows(const struct page *page, const json_t *rows)
{
	json_t *row;
	size_t i;

	fprintf(page->out, "\n%-14s%-5s%12s%12s%10s%14s%10s%10s%10s%12s\n", "FLOWS", "RING",
		"NEW FLOWS/S", "PACKETS/S", "DROPS/S", "EARLY ABORTS", "SHARE", "INTENDED",
		"OF FLOWS", "LIVE FLOWS");
	json_array_foreach (rows, i, row) {
		if (!json_is_object(json_object_get(row, "live"))) {
			fprintf(page->out, "%-14.14sno node says anything\n", text_at(row, "name"));
			continue;
		}
		print_side(page, row, false);
		print_side(page, row, true);
	}
}

// A value in its unit, in a field that is aligned to the right.
static void print_unit(FILE *out, const json_t *object, const char *key, int width)
{
	char *text = output_text(key, json_object_get(object, key), false);

	fprintf(out, "%*s", width, text ? text : "-");
	free(text);
}

static void print_memory(const struct page *page, const json_t *rows)
{
	char churn[OUTPUT_SHORT_BYTES];
	json_t *row;
	size_t i;

	percent_at(page->object, "churn", churn);
	fprintf(page->out, "\n%-14s%12s%9s%11s%14s%12s%12s%12s%12s\n", "SHADOW, MEMORY",
		"DIFFERENT", "PLANNED", "OF FLOWS", "DATAPLANE RSS", "RINGWAYD", "HUGE PAGES",
		"OLD RINGS", "NEW RINGS");
	json_array_foreach (rows, i, row) {
		const json_t *live = json_object_get(row, "live");
		const json_t *ratios = json_object_get(row, "ratios");
		char different[OUTPUT_SHORT_BYTES], of[OUTPUT_SHORT_BYTES];

		if (!json_is_object(live))
			continue;
		percent_at(ratios, "shadow_different_share", different);
		short_at(ratios, "shadow_flows", of);
		fprintf(page->out, "%-14.14s%12s%9s%11s", text_at(row, "name"), different, churn,
			of);
		print_unit(page->out, live, "dataplane_resident_bytes", 14);
		print_unit(page->out, live, "daemon_resident_bytes", 12);
		print_unit(page->out, live, "hugepage_bytes", 12);
		print_unit(page->out, json_object_get(live, "old"), "ring_bytes", 12);
		print_unit(page->out, json_object_get(live, "new"), "ring_bytes", 12);
		fputc('\n', page->out);
	}
}

// "1.2 s = eal 900 ms + ports 300 ms".
static void print_start(
	const struct page *page, const char *name, const char *what, const json_t *phases)
{
	const char *key;
	json_t *value, *sum;
	uint64_t total_ns = 0;
	char *text;

	json_object_foreach ((json_t *)(uintptr_t)phases, key, value)
		total_ns += (uint64_t)json_integer_value(value);
	sum = json_integer((json_int_t)total_ns);
	text = output_text("total_ns", sum, false);
	fprintf(page->out, "%-14.14s%-10s%s =", name, what, text ? text : "-");
	free(text);
	json_decref(sum);
	json_object_foreach ((json_t *)(uintptr_t)phases, key, value) {
		text = output_text("phase_ns", value, false);
		fprintf(page->out, "%s%s %s",
			key == json_object_iter_key(json_object_iter((json_t *)(uintptr_t)phases))
				? " "
				: " + ",
			key, text ? text : "-");
		free(text);
	}
	fputc('\n', page->out);
}

static void print_starts(const struct page *page, const json_t *rows)
{
	json_t *row;
	size_t i;

	fprintf(page->out, "\n%-14s%s\n", "STARTS", "of the slowest of the datacenter's nodes");
	json_array_foreach (rows, i, row) {
		const json_t *live = json_object_get(row, "live");

		if (!json_is_object(live))
			continue;
		print_start(page, text_at(row, "name"), "dataplane",
			json_object_get(live, "dataplane_startup_ns"));
		print_start(page, "", "ringwayd", json_object_get(live, "daemon_startup_ns"));
	}
}

static void print_traces(const struct page *page)
{
	const json_t *traces = json_object_get(page->object, "traces");
	json_t *trace;
	size_t i;

	if (traces == NULL)
		return;
	fprintf(page->out, "\nSELECTIONS of this node, the newest first\n");
	json_array_foreach (traces, i, trace)
		trace_print(page->out, trace);
}

void cutover_page_print(FILE *out, const json_t *cutover, const struct cutover_page *page)
{
	struct cutover *document = malloc(sizeof(*document));
	char error[CUTOVER_REASON_BYTES];
	bool known = document != NULL && json_object_get(cutover, "spec") != NULL &&
		cutover_read(cutover, document, error) == 0;
	struct page run = {.out = out,
		.object = cutover,
		.cutover = known ? document : NULL,
		.now_ms = count_at(cutover, "now_ms"),
		.width = page->width};
	json_t *rows = pick_rows(&run);

	print_rings(&run);
	if (known) {
		print_state(&run);
		print_stage(&run);
		print_steps(&run);
		print_next(&run);
		print_datacenters(&run, rows);
	} else {
		print_local(&run);
	}
	print_established(&run);
	// Flows stand high: small terminals show the top of a page.
	if (page->is_live)
		print_flows(&run, rows);
	if (known)
		print_guards(&run);
	if (page->is_live) {
		print_memory(&run, rows);
		print_starts(&run, rows);
		print_traces(&run);
	}
	json_decref(rows);
	free(document);
}
