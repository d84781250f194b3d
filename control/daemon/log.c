// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Whether the next byte begins a line.
static bool line_begins = true;

// Bytes of a priority "<N>" at the start of text.
static size_t priority_length(const char *text, size_t length)
{
	return length >= 3 && text[0] == '<' && text[1] >= '0' && text[1] <= '7' && text[2] == '>'
		? 3
		: 0;
}

static ssize_t write_plain(void *cookie, const char *text, size_t length)
{
	size_t done = 0;

	(void)cookie;
	while (done < length) {
		const char *line = text + done;
		const char *newline = memchr(line, '\n', length - done);
		size_t rest = newline == NULL ? length - done : (size_t)(newline - line) + 1;
		size_t skip = line_begins ? priority_length(line, rest) : 0;

		// Only messages have a priority; what is printed for people, such as findings, passes as it is.
		if (skip > 0)
			dprintf(STDERR_FILENO, "ringwayd: ");
		dprintf(STDERR_FILENO, "%.*s", (int)(rest - skip), line + skip);
		line_begins = newline != NULL;
		done += rest;
	}
	return (ssize_t)length;
}

void log_open(void)
{
	static const cookie_io_functions_t plain = {.write = write_plain};
	FILE *stream;

	if (getenv("JOURNAL_STREAM") != NULL)
		return;
	stream = fopencookie(NULL, "w", plain);
	if (stream == NULL)
		return;
	setvbuf(stream, NULL, _IOLBF, 4096);
	stderr = stream;
}
