// SPDX-License-Identifier: Apache-2.0
// A cutover on one page for people: `cutover show`, and with what flows do `cutover watch`.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct cutover_page {
	bool is_live;   // with rates, shadow, memory, starts: of a watch (cutover_rates.h)
	unsigned width; // columns at which the words of guards end; 0: they are never cut
};

// Writes the page of what cutover.show answered, over a fleet or by hand on one node.
// Fields that an older ringwayd does not say are left out.
void cutover_page_print(FILE *out, const json_t *cutover, const struct cutover_page *page);
