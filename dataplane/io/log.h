// SPDX-License-Identifier: Apache-2.0
// Lines for people, on standard error: with the level that journald understands when it reads them, plain otherwise.
#pragma once

enum log_level {
	LOG_LEVEL_ERROR = 3, // values of syslog
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
};

// Writes one line. Context: main; never a worker.
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
