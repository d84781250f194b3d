// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/text.h"

#include <inttypes.h>

bool metrics_room(struct metrics_text *text, uint32_t series)
{
	if (text->unlimited || text->series_count + series <= METRICS_SERIES_MAX)
		return true;
	text->left_out_count += series;
	return false;
}

void metrics_family(
	struct metrics_text *text, const char *name, enum metrics_type type, const char *help)
{
	text->family = name;
	fprintf(text->out, "# HELP ringway_%s %s\n# TYPE ringway_%s %s\n", name, help, name,
		type == METRICS_COUNTER ? "counter" : "gauge");
}

// The format escapes backslash, double quote and newline in label values.
static void write_value(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
	}
}

static void write_name(struct metrics_text *text, const struct metrics_label *labels)
{
	fprintf(text->out, "ringway_%s", text->family);
	for (unsigned i = 0; labels != NULL && labels[i].name != NULL; i++) {
		fprintf(text->out, "%c%s=\"", i ? ',' : '{', labels[i].name);
		write_value(text->out, labels[i].value ? labels[i].value : "");
		fputc('"', text->out);
	}
	fputs(labels != NULL && labels[0].name != NULL ? "} " : " ", text->out);
	text->series_count++;
}

void metrics_count(struct metrics_text *text, const struct metrics_label *labels, uint64_t value)
{
	write_name(text, labels);
	fprintf(text->out, "%" PRIu64 "\n", value);
}

void metrics_real(struct metrics_text *text, const struct metrics_label *labels, double value)
{
	write_name(text, labels);
	fprintf(text->out, "%.9g\n", value);
}
