// SPDX-License-Identifier: Apache-2.0
// Messages of ringwayd go to standard error as "<PRIORITY>text", which is how the journal takes priorities.
#pragma once

// Makes standard error fit for who reads it: the journal gets the priorities, anybody else (a terminal, a log file)
// gets "ringwayd: text". Call it once, before the first message.
void log_open(void);
