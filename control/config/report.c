// SPDX-License-Identifier: Apache-2.0
#include "control/config/report.h"

#include "control/config/tree.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void config_report_init(
	struct config_report *report, const char *file, const char *source, size_t source_length)
{
	memset(report, 0, sizeof(*report));
	report->file = file;
	report->source = source;
	report->source_length = source_length;
}

void config_report_free(struct config_report *report)
{
	for (uint32_t i = 0; i < report->finding_count; i++) {
		free(report->findings[i].path);
		free(report->findings[i].text);
		free(report->findings[i].hint);
	}
	tree_free(report->tree);
	report->tree = NULL;
	report->finding_count = 0;
}

// Counts a finding and returns the slot to fill, NULL when no more are kept.
static struct config_finding *finding_add(
	struct config_report *report, enum config_code code, bool warning)
{
	struct config_finding *finding;

	if (warning)
		report->warning_count++;
	else
		report->error_count++;
	if (report->finding_count == CONFIG_FINDINGS_MAX)
		return NULL;
	finding = &report->findings[report->finding_count++];
	finding->code = code;
	finding->warning = warning;
	finding->width = 1;
	return finding;
}

// Lines of flow style hold whole items: the key's mark is the best place for a map or list.
static void finding_place(struct config_finding *finding, const struct config_report *report)
{
	const struct tree_node *node;
	struct tree_mark mark;
	bool whole;

	if (report->tree == NULL)
		return;
	node = tree_find(report->tree, finding->path, &whole);
	mark = node->mark;
	if (node->kind != TREE_SCALAR)
		mark.width = 1;
	if (node->key != NULL && node->kind != TREE_SCALAR)
		mark = node->key_mark;
	finding->line = mark.line;
	finding->column = mark.column;
	finding->width = mark.width;
}

// Makes a sentence that quotes a file fit for terminals and JSON: no control characters, no UTF-8 character that was
// cut in its middle.
static void text_clean(char *text)
{
	unsigned char *p = (unsigned char *)text;

	while (*p != '\0') {
		unsigned length = *p < 0x80 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
		unsigned whole = 1;

		while (whole < length && (p[whole] & 0xc0) == 0x80)
			whole++;
		if (whole < length || *p < 0x20 || *p == 0x7f || (*p & 0xc0) == 0x80)
			memset(p, '?', whole);
		p += whole;
	}
}

__attribute__((format(printf, 4, 0))) static void report_add(struct config_report *report,
	struct config_finding *finding, const char *path, const char *format, va_list args)
{
	if (finding == NULL)
		return;
	finding->path = strdup(path);
	if (vasprintf(&finding->text, format, args) < 0)
		finding->text = NULL;
	if (finding->text != NULL)
		text_clean(finding->text);
	if (finding->path != NULL)
		finding_place(finding, report);
}

void config_report_add(struct config_report *report, enum config_code code, const char *path,
	const char *hint, const char *format, ...)
{
	struct config_finding *finding = finding_add(report, code, false);
	va_list args;

	va_start(args, format);
	report_add(report, finding, path, format, args);
	va_end(args);
	if (finding != NULL && hint != NULL)
		finding->hint = strdup(hint);
}

void config_report_warn(struct config_report *report, enum config_code code, const char *path,
	const char *hint, const char *format, ...)
{
	struct config_finding *finding = finding_add(report, code, true);
	va_list args;

	va_start(args, format);
	report_add(report, finding, path, format, args);
	va_end(args);
	if (finding != NULL && hint != NULL)
		finding->hint = strdup(hint);
}

void config_report_add_at(struct config_report *report, enum config_code code,
	const struct tree_mark *mark, const char *hint, const char *text)
{
	struct config_finding *finding = finding_add(report, code, false);

	if (finding == NULL)
		return;
	finding->line = mark->line;
	finding->column = mark->column;
	finding->width = mark->width;
	finding->path = strdup("");
	finding->text = strdup(text);
	if (finding->text != NULL)
		text_clean(finding->text);
	if (hint != NULL)
		finding->hint = strdup(hint);
}

void config_report_add_key(struct config_report *report, enum config_code code,
	const struct tree_node *node, const char *hint)
{
	char text[160];

	if (code == CONFIG_DUPLICATE_KEY)
		snprintf(text, sizeof(text), "`%.64s` stands twice in one map", node->key);
	else
		snprintf(text, sizeof(text), "unknown key `%.64s`", node->key);
	config_report_add_at(report, code, &node->key_mark, hint, text);
}

static int finding_compare(const void *a, const void *b)
{
	const struct config_finding *x = a, *y = b;

	if (x->line != y->line)
		return (x->line > y->line) - (x->line < y->line);
	return (x->column > y->column) - (x->column < y->column);
}

void config_report_sort(struct config_report *report)
{
	qsort(report->findings, report->finding_count, sizeof(report->findings[0]),
		finding_compare);
}

// Finds the source line of a number; returns its length, 0 when there is none.
static size_t source_line(const struct config_report *report, uint32_t line, const char **ret)
{
	const char *at = report->source;
	const char *end = at + report->source_length;

	for (uint32_t i = 1; i < line && at < end; i++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline == NULL ? end : newline + 1;
	}
	*ret = at;
	for (const char *p = at; p < end; p++) {
		if (*p == '\n' || *p == '\r')
			return (size_t)(p - at);
	}
	return (size_t)(end - at);
}

// Terminals must not take orders from a configuration file.
static void print_line(const char *text, size_t length, FILE *out)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		fputc(c < 0x20 && c != '\t' ? ' ' : c, out);
	}
}

static void print_caret(const char *text, size_t length, const struct config_finding *f, FILE *out)
{
	size_t at = 0;

	fputs("      | ", out);
	for (uint32_t column = 1; column < f->column && at < length; at++) {
		// Only the first byte of a UTF-8 character takes a column.
		if (((unsigned char)text[at] & 0xc0) == 0x80)
			continue;
		fputc(text[at] == '\t' ? '\t' : ' ', out);
		column++;
	}
	for (uint32_t i = 0; i < f->width && i < 60; i++)
		fputc('^', out);
	fputc('\n', out);
}

#define EXCERPT_BYTES_MAX 160u

static void print_excerpt(
	const struct config_report *report, const struct config_finding *f, FILE *out)
{
	const char *text;
	size_t length;

	if (report->source == NULL || f->line == 0)
		return;
	length = source_line(report, f->line, &text);
	if (length == 0 || length > EXCERPT_BYTES_MAX)
		return;
	fprintf(out, " %4u | ", f->line);
	print_line(text, length, out);
	fputc('\n', out);
	print_caret(text, length, f, out);
}

static void print_finding(
	const struct config_report *report, const struct config_finding *f, FILE *out)
{
	fprintf(out, "%s[CFG%03d]: %s", f->warning ? "warning" : "error", (int)f->code,
		report->file);
	if (f->line > 0)
		fprintf(out, ":%u:%u", f->line, f->column);
	if (f->path != NULL && f->path[0] != '\0')
		fprintf(out, "  %s:", f->path);
	else if (f->line > 0)
		fputc(':', out);
	fprintf(out, " %s\n", f->text != NULL ? f->text : "out of memory");
	print_excerpt(report, f, out);
	if (f->hint != NULL)
		fprintf(out, "  hint: %s\n", f->hint);
}

void config_report_print(const struct config_report *report, FILE *out)
{
	uint32_t found = report->error_count + report->warning_count;

	for (uint32_t i = 0; i < report->finding_count; i++)
		print_finding(report, &report->findings[i], out);
	if (found == 0)
		return;
	fprintf(out, "%s: %u error%s, %u warning%s", report->file, report->error_count,
		report->error_count == 1 ? "" : "s", report->warning_count,
		report->warning_count == 1 ? "" : "s");
	if (found > report->finding_count)
		fprintf(out, "; the first %u are shown", report->finding_count);
	fputc('\n', out);
}
