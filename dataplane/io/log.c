// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	// systemd sets JOURNAL_STREAM when standard error goes to the journal.
	if (getenv("JOURNAL_STREAM") != NULL)
		fprintf(stderr, "<%d>%s\n", level, line);
	else
		fprintf(stderr, "ringway-dataplane: %s\n", line);
}
