// SPDX-License-Identifier: Apache-2.0
// A cutover document from the store: what is read is whole, reads back equal, and takes every verb and step.
#include "control/cutover/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_verbs(const struct cutover *from)
{
	static struct cutover cutover;
	static struct cutover_facts facts;
	struct cutover_result result;
	enum cutover_event event;

	for (unsigned verb = 0; verb < CUTOVER_VERB_COUNT; verb++) {
		struct cutover_command command = {.verb = (enum cutover_event)verb,
			.actor = "fuzz",
			.reason = "fuzz",
			.force = true,
			.has_share = true,
			.share = 7,
			.ttl_ms = 1};

		cutover = *from;
		cutover_command(&cutover, &command, &facts, from->state_ms + 1, &result);
		for (unsigned i = 0; i < 8; i++)
			cutover_step(&cutover, &facts, from->state_ms + i * 100000, &event);
		if (cutover_share_max(&cutover) > GATE_SHARE_ALL)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cutover first, second;
	char error[CUTOVER_REASON_BYTES] = "";
	json_t *object = json_loadb((const char *)data, size, 0, NULL);

	if (object == NULL)
		return 0;
	if (cutover_read(object, &first, error) == 0) {
		json_t *written = cutover_write(&first);

		if (written == NULL || cutover_read(written, &second, error) != 0)
			abort();
		json_t *again = cutover_write(&second);

		if (!json_equal(written, again))
			abort();
		json_decref(written);
		json_decref(again);
		run_verbs(&first);
	} else if (error[0] == '\0') {
		abort(); // refused without a word
	}
	json_decref(object);
	return 0;
}
