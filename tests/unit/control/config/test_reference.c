// SPDX-License-Identifier: Apache-2.0
// docs/configuration.md must say what the tables say. After a change of the tables: test_config_reference DOC write.
#include "control/config/reader.h"
#include "control/config/writer.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char begin[] = "<!-- keys: begin -->\n";
static const char end[] = "<!-- keys: end -->\n";
static const char *path;

static char *reference(void)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	config_reference_write(out);
	fclose(out);
	return text;
}

static char *document(void)
{
	char *text = NULL;
	size_t length;

	if (config_file_load(path, &text, &length) < 0)
		return strdup("");
	return text;
}

static void documentation_has_every_key_as_the_tables_have_it(void)
{
	char *text = document();
	char *wanted = reference();
	char *from = strstr(text, begin);
	char *to = strstr(text, end);

	CU_ASSERT_PTR_NOT_NULL_FATAL(from);
	CU_ASSERT_PTR_NOT_NULL_FATAL(to);
	*to = '\0';
	CU_ASSERT_STRING_EQUAL(from + strlen(begin), wanted);
	free(text);
	free(wanted);
}

static void every_key_has_a_meaning(void)
{
	char *text = reference();

	CU_ASSERT_PTR_NULL(strstr(text, "(null)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
		"| `pools[].backends[].weight` | number | 1–65535 | `1` "
		"| live |"));
	free(text);
}

static int document_write(void)
{
	char *text = document();
	char *wanted = reference();
	char *from = strstr(text, begin);
	char *to = strstr(text, end);
	FILE *out = from == NULL || to == NULL ? NULL : fopen(path, "w");

	if (out == NULL)
		return 1;
	fwrite(text, 1, (size_t)(from - text) + strlen(begin), out);
	fputs(wanted, out);
	fputs(to, out);
	return fclose(out);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"documentation_has_every_key_as_the_tables_have_it",
			documentation_has_every_key_as_the_tables_have_it},
		{"every_key_has_a_meaning", every_key_has_a_meaning},
	};

	if (argc < 2)
		return 1;
	path = argv[1];
	if (argc > 2 && strcmp(argv[2], "write") == 0)
		return document_write();
	return SUITE_RUN("config_reference", cases);
}
