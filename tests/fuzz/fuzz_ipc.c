// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message between the daemons: a message that passes is as long as its type says.
#include "common/ipc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ipc_gates *gates = (const struct ipc_gates *)data;
	struct ipc_header header;

	if (ipc_check(data, size) != 0)
		return 0;
	memcpy(&header, data, sizeof(header));
	if (header.length != size || size > IPC_MESSAGE_BYTES_MAX)
		abort();
	// What a receiver does next: read the last element.
	if (header.type == IPC_SET_GATES && gates->gates[gates->count - 1].word == size)
		return 0;
	return 0;
}
